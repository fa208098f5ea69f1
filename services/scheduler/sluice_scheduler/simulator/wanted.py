"""What a field wants instead of what stands there, in the words of whoever writes the file."""

from __future__ import annotations

from typing import Final

from pydantic_core import ErrorDetails

#: By pydantic's type of the mistake; what stands in braces is of its context.
_WANTED: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "a mapping",
    "string_pattern_mismatch": "lower-case letters, digits and hyphens",
    "string_too_long": "{max_length} characters at most",
    "string_too_short": "a text that is not empty",
    "string_type": "a text, in quotes if it looks like a number",
    "too_long": "{max_length} entries at most",
    "too_short": "one entry at least",
}
_SAID_AT_LENGTH: Final = {
    "extra_forbidden": "there is no such field: correct its name, or take it out",
    "missing": "it is missing: write it",
}


def in_words(problem: ErrorDetails) -> str:
    """What is wrong, and what to write; our own validators say so themselves."""
    kind = problem["type"]
    if kind in _SAID_AT_LENGTH:
        return _SAID_AT_LENGTH[kind]
    if kind not in _WANTED:
        return problem["msg"].removeprefix("Value error, ")
    wanted, found = _WANTED[kind].format_map(problem.get("ctx", {})), problem["input"]
    instead = f", not {found!r}" if isinstance(found, str | int | float) else ""
    return f"write {wanted}{instead}"
