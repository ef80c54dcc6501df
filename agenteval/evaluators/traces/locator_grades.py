"""The four grades of a run and the overall one, read from a judge's reply."""

from __future__ import annotations

import math
from typing import Any

from agenteval.evaluators.traces.locator_ask import Read
from agenteval.evaluators.traces.locator_reply import to_number
from agenteval.models.reply import parse_reply
from agenteval.records import GRADES, Grade

OVERALL = "overall"
_PLACEHOLDER = "<text>"  # as in the prompt: a small model fills in the number alone
WORST, BEST = 1.0, 5.0
_SCORE = ("score", "value", "grade", "rating")
_REASON = ("reason", "reasoning", "explanation")


def read_grades(text: str) -> Read[dict[str, Grade]]:
    """A Grade for each name in GRADES and for "overall".

    A score that is missing or off the scale of 1 to 5 is a Grade without value whose reason says
    so. `overall` is the mean of those given where the reply does not state it (the rule of the
    annotations of TRAIL, arXiv 2505.08638), and has no value where what it states is off the
    scale, or where it would stand alone. The gap names the grades without a value. Raises
    ReplyError when none is there.
    """
    parsed = parse_reply(text, lambda value: _members(value) is not None)
    members = _members(parsed.value) or {}
    grades = {name: _grade(members, name) for name in GRADES}
    said = _raw(members.get(OVERALL))
    known = any(grade.value is not None for grade in grades.values())
    grades[OVERALL] = _mean(grades) if said is None or not known else _grade(members, OVERALL)
    missing = [name for name, grade in grades.items() if grade.value is None]
    gap = f"no score from 1 to 5 for {', '.join(missing)}" if missing else None
    return Read(grades, gap)


def _members(value: Any) -> dict[str, Any] | None:
    """The object that holds at least one of the grades, also one level down or in a list."""
    rows = value if isinstance(value, list) else [value]
    for row in rows:
        if not isinstance(row, dict):
            continue
        for one in (row, *(v for v in row.values() if isinstance(v, dict | list))):
            inner = one[0] if isinstance(one, list) and one else one
            if isinstance(inner, dict) and any(_find(inner, name) is not None for name in GRADES):
                return {**inner, **({OVERALL: row[OVERALL]} if OVERALL in row else {})}
    return None


def _find(members: dict[str, Any], name: str) -> Any:
    """The entry of a grade: `name`, or `name_score` as in the layout of TRAIL."""
    found = members.get(name)
    return members.get(f"{name}_score") if found is None else found


def _raw(entry: Any) -> Any:
    if isinstance(entry, dict):
        return next((entry[key] for key in _SCORE if entry.get(key) is not None), None)
    return entry


def _grade(members: dict[str, Any], name: str) -> Grade:
    entry = _find(members, name)
    said = _raw(entry)
    reason = members.get(f"{name}_reasoning", "")
    if isinstance(entry, dict):
        reason = next((entry[key] for key in _REASON if isinstance(entry.get(key), str)), "")
    reason = reason.strip()[:2000] if isinstance(reason, str) else ""
    number = to_number(said)
    if reason == _PLACEHOLDER:
        return Grade(value=None, reason="the reply repeats the form instead of a reason")
    if number is not None and WORST <= number <= BEST:
        return Grade(value=number, reason=reason)
    why = "not given" if said is None else f"{said!r:.40} is no score from 1 to 5"
    return Grade(value=None, reason=f"{why}. {reason}".strip())


def _mean(grades: dict[str, Grade]) -> Grade:
    given = [grade.value for grade in grades.values() if grade.value is not None]
    if not given:
        return Grade(value=None, reason="no grade was given")
    return Grade(
        value=math.fsum(given) / len(given),
        reason=f"mean of the {len(given)} grades given; not stated by the judge",
    )
