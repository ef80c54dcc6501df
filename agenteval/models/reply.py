"""From a reply's text to a value: the ladder, and the rung that was needed.

json       the text is exactly one JSON value
fenced     it stands in a code fence
buried     it stands somewhere in prose
loose      single quotes, Python literals, trailing commas ... were read as meant
salvaged   the text broke off; complete members are kept

One request for repair is the evaluator's next rung, a Failure the last.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenteval.errors import ReplyError
from agenteval.models.jsonish import NotJsonish, Scan, scan, to_object

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.S)
_MAX_CHARS = 2_000_000
_MAX_STARTS = 500  # prose full of brackets must not turn the search quadratic


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value read from a reply and the rung it took."""

    value: Any
    rung: str


def parse_reply(text: str, accept: Callable[[Any], bool] | None = None) -> Parsed:
    """The object or list in a reply.

    Several may stand in one reply (a rubric repeated before the answer): the last that `accept`
    takes wins, because what comes first may be quoted. Raises ReplyError when there is none.
    """
    if len(text) > _MAX_CHARS:
        raise ReplyError(f"the reply has {len(text)} characters; {_MAX_CHARS} are read at most")
    text = text.lstrip("\ufeff").strip()
    if not text:
        raise ReplyError("the reply is empty")
    accepted = accept or (lambda value: True)
    strict = _strict(text)
    if strict is not None and accepted(strict):
        return Parsed(strict, "json")
    for block in reversed(_FENCE.findall(text)):
        value = _strict(block.strip())
        if value is not None and accepted(value):
            return Parsed(value, "fenced")
    return _search(text, accepted)


def _strict(text: str) -> Any:
    """Object or list when the text is exactly one; None otherwise."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(
            text, object_pairs_hook=to_object, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError):
        return None
    return _clean(value) if "\\ud" in text.lower() else value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond what a float holds")
    return number


def _clean(value: Any) -> Any:
    """Lone surrogates become U+FFFD: they can be neither stored nor printed."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    return [_clean(v) for v in value] if isinstance(value, list) else value


def _search(text: str, accepted: Callable[[Any], bool]) -> Parsed:
    """Every outermost value in the text; the last complete one that is accepted wins."""
    found: list[Scan] = []
    reason = "no object or list in the reply"
    at = starts = 0
    while starts < _MAX_STARTS and (match := re.compile(r"[{\[]").search(text, at)):
        starts += 1
        try:
            found.append(scan(text, match.start()))
            at = found[-1].end
        except NotJsonish as error:
            reason = str(error)
            at = match.start() + 1
    for one in sorted(found, key=lambda s: (not s.cut, s.end), reverse=True):
        if one.value not in ({}, []) and accepted(one.value):
            rung = "salvaged" if one.cut else "loose" if one.loose else "buried"
            return Parsed(one.value, rung)
    if found:
        reason = "the reply holds JSON, but not in the form asked for"
    raise ReplyError(reason)
