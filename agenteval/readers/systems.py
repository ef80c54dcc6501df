"""The name of the system a run is of: a wrong one would merge systems, so none is made up."""

from __future__ import annotations

from typing import Any

from agenteval.errors import InputError
from agenteval.readers.draft import Context, Draft
from agenteval.readers.fields import snake

LONGEST_NAME = 200
_EXACT = frozenset({"system", "system_name"})


def system_name(draft: Draft, rows: list[tuple[str, Any]], context: Context) -> str | None:
    """The first value that names a system; None when there is none. The others are kept.

    A name is text of at most 200 characters without control characters, an integer, or an object
    with such a `name`, `id` or `label`. A longer text or one with line breaks is a system prompt:
    where another key names the system it goes to the metadata, with a warning. So does a value of
    another kind under a name such as `agent` or `model`. Raises InputError for a value of another
    kind under `system`, and when something stands there and nothing names the system.
    """
    name: str | None = None
    strange: list[tuple[str, Any]] = []
    named_by = ""
    for key, value in rows:
        if value is None or value == "":
            continue
        text = _text(value) if name is None else None
        if name is None and text is None:
            if snake(key) in _EXACT and not isinstance(value, str):
                raise _refused(key, value, context)
            strange.append((key, value))
        if name is not None or text is None or isinstance(value, dict):
            draft.keep(key, value)
        if name is None and text is not None:
            name, named_by = text, key
    if name is None and strange:
        raise _refused(*strange[0], context)
    for key, _ in strange:
        context.notes.add(
            f"{key!r} is no name of a system and goes to the metadata; {named_by!r} names it",
            context.place,
        )
    return name


def check_name(name: str, where: str) -> None:
    """Raises InputError for what is no name of a system."""
    if _text(name) is None:
        raise InputError(
            f"a system's name is text of 1 to {LONGEST_NAME} characters without control characters",
            where,
        )


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = next((value[k] for k in ("name", "id", "label") if k in value), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    fits = isinstance(value, str) and 0 < len(value) <= LONGEST_NAME
    return value if fits and not any(ord(c) < 32 or ord(c) == 127 for c in value) else None


def _refused(key: str, value: Any, context: Context) -> InputError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return InputError(
        f"{key!r} is {shown}: a system's name is text of at most {LONGEST_NAME} characters without "
        "control characters, or an integer (a prompt belongs under 'messages')",
        context.place,
    )
