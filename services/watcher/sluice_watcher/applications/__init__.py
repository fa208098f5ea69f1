"""What applications ask for, computed as their operators compute it, and which pods are theirs.

Pure functions: from an object as the API server sends it to what counts of it. One module a family, and
`kinds.py` is the table of them. docs/adr/0010-applications.md says what becomes of it.
"""
