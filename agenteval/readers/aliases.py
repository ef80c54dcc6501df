"""Two names of one field that say different things: told, or refused where a guess would count.

Of two texts one is read and the other kept in the metadata: nothing is lost, so a warning is
enough. Of two verdicts, or two gold answers, the wrong one would be counted: an error.
"""

from __future__ import annotations

from typing import Any

from agenteval.errors import InputError
from agenteval.readers.draft import Context
from agenteval.readers.fields import plain_text, snake, verdict

# A worked solution beside the answer is no second answer.
_WORKED = frozenset({"solution", "canonical_solution"})
# These may name another thing than the answer in words: a letter, a class, several answers.
_LOOSE = frozenset({"target", "ideal", "ideal_output", "gold_label", "answer_key"})
# A label is a verdict beside another verdict only where it says so; "1" may be a class.
_LABELS = frozenset({"pass", "passed", "fail", "failed", "correct", "incorrect"})


def tell_left(rows: list[tuple[str, Any]], read: str, context: Context) -> None:
    """Warn of every row after the first that has a value and does not say `read`, the text read."""
    for key, value in rows[1:]:
        if value is not None and bare(value) != read.strip():
            tell(rows[0][0], key, context)


def tell(taken: str, left: str, context: Context) -> None:
    """The warning for one name that was left."""
    context.notes.add(
        f"{taken!r} is read; {left!r} says something else and goes to the metadata", context.place
    )


def bare(value: Any) -> str:
    """The text of a value as it is compared: of an object with one key its value, stripped."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return plain_text(value).strip()


def refuse_other_verdicts(rows: list[tuple[str, Any]], read: bool | None, context: Context) -> None:
    """Raise InputError when a later row holds the other verdict; what is no verdict stays data."""
    for key, value in rows[1:]:
        if _verdict(key, value, context.place) not in (None, read):
            _refuse(rows[0], (key, value), context)


def _verdict(key: str, value: Any, place: str) -> bool | None:
    if snake(key) == "label" and not (isinstance(value, str) and value.strip().lower() in _LABELS):
        return None
    try:
        return verdict(value, key, place)
    except InputError:
        return None


def refuse_other_references(rows: list[tuple[str, Any]], context: Context) -> None:
    """Raise InputError when two rows hold different answers; warn where they may differ."""
    exact = [row for row in rows if row[1] is not None and snake(row[0]) not in _WORKED | _LOOSE]
    for row in exact[1:]:
        if bare(row[1]) != bare(exact[0][1]):
            _refuse(exact[0], row, context)
    for key, value in rows[1:]:
        if snake(key) in _LOOSE and value is not None and bare(value) != bare(rows[0][1]):
            tell(rows[0][0], key, context)


def _refuse(one: tuple[str, Any], other: tuple[str, Any], context: Context) -> None:
    shown = [f"{key!r} ({_short(value)})" for key, value in (one, other)]
    raise InputError(f"{shown[0]} and {shown[1]} differ: only one can be true", context.place)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
