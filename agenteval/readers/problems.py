"""Format errors of pydantic as one line for the author of a file."""

from __future__ import annotations

from pydantic import ValidationError

_LONGEST_VALUE = 60
_SHOWN = frozenset({"str", "int", "float", "bool", "NoneType"})


def first_problem(error: ValidationError) -> str:
    """Return the key, problem and value of the first error."""
    first = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part)[:80] for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if first["type"] not in ("missing", "value_error", "extra_forbidden"):
        message += f" ({shown(first['input'])} is given)"
    return f"{key}: {message}" if key else message


def shown(value: object) -> str:
    """Return a short value unchanged, and the kind of any other."""
    if type(value).__name__ not in _SHOWN:
        return "a mapping" if isinstance(value, dict) else "a list"
    # str(int) rejects integers with thousands of digits.
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
