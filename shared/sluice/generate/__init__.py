"""`python -m sluice.generate [--check]` writes what is derived: CRDs, JSON Schemas, AsyncAPI."""
