"""Read rubrics of a case (weighted statements that hold or not) in published formats.

A rubric is a list of items, or an object with the list under `rubric`, `rubrics`, `criteria` or
`items`; sections of Autorubric are objects with their own list. An item is a string, or an object
with

- its statement: `requirement` (Autorubric), `criterion` (HealthBench), `rubric_item` (ResearchQA),
  `statement`, `text`, `description` (with a `title` in Rubrics as Rewards), `title` or `name`;
- its `weight` or `points`, negative for a fault; without any weights, all items weigh the same;
- its `polarity`, positive or negative;
- its own levels under `accepted_values` or `options`, from "not at all" to "fully".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import Notes
from agenteval.records import RUBRIC, Criterion

KEYS = ("rubric", "rubrics", "criteria")  # in a run or case
_LISTS = (*KEYS, "items", "sections")
_STATEMENTS = ("requirement", "criterion", "rubric_item", "statement", "text", "description")
_NAMES = ("title", "name")
_WEIGHTS = ("weight", "points")
_LEVELS = ("accepted_values", "options", "levels")
_POLARITIES = ("polarity", "criterion_type")
_BESIDE = ("id", "tags", "scale_type")  # not needed by a judge
_READS = (
    "read are lists of texts or of {requirement, weight}, {criterion, points} and "
    "{title, description, weight}"
)


@dataclass(frozen=True)
class _RubricEntry:
    statement: str
    name: str
    weight: float | None
    levels: tuple[str, ...]


def read_rubric(value: Any, place: str, notes: Notes | None = None) -> Criterion:
    """Return a rubric as a criterion with its items as parts.

    The levels of an item with a negative weight are reversed, so that 1 is the best value of every
    part. Raises InputError, with `place` and the number of the item, for an unknown format and for
    a rubric without a defined total: no items, an empty or repeated statement, one with both
    polarities, non-numeric weights or weights on some items only, no positive weight.
    """
    entries = enumerate(_entries(value, place), 1)
    items = [_item(entry, f"{place}: item {n}", notes, place) for n, entry in entries]
    if not items:
        raise InputError(f"the rubric has no items; {_READS}", place)
    weights = [item.weight for item in items]
    if None in weights:
        if any(weight is not None for weight in weights):
            which = f"item {weights.index(None) + 1}"
            raise InputError(f"{which} has no weight but others do: weight all or none", place)
        weights = [1.0] * len(items)
    _check_repeats(items, [weight or 0.0 for weight in weights], place)
    if not any(weight is not None and weight > 0 for weight in weights):
        problem = "no item has a positive weight, so the total is not defined"
        raise InputError(f"{problem}: add an item that good work meets", place)
    numbered = enumerate(zip(items, weights, strict=True), 1)
    parts = [_part(item, weight or 0.0, n, place) for n, (item, weight) in numbered]
    return Criterion(id=RUBRIC, name="Rubric", sub_criteria=tuple(parts), aggregation="weighted")


def listed(value: Any) -> Any:
    """Return a value that may be a rubric: a list or an object, or JSON of one in a table cell;
    None for any other value."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, list | dict) else None


def _part(item: _RubricEntry, weight: float, number: int, place: str) -> Criterion:
    try:
        return Criterion(
            id=str(number),
            name=item.name,
            description=item.statement,
            accepted_values=item.levels[:: -1 if weight < 0 else 1],
            scale="binary" if len(item.levels) == 2 else "ordinal",
            allow_na=True,
            weight=weight,
        )
    except ValidationError as error:
        raise InputError(first_problem(error), f"{place}: item {number}") from None


def _entries(value: Any, place: str) -> Iterator[Any]:
    if isinstance(value, dict):
        lists = [value[key] for key in _LISTS if isinstance(value.get(key), list | dict)]
        if len(lists) != 1:
            raise InputError(f"no known layout of a rubric: {', '.join(value)}; {_READS}", place)
        if str(value.get("guidelines") or "").strip():
            raise InputError("`guidelines` are not read: write them into the items", place)
        yield from _entries(lists[0], place)
        return
    if not isinstance(value, list):
        raise InputError(f"a rubric is a list, not {type(value).__name__}; {_READS}", place)
    for entry in value:
        if isinstance(entry, dict) and isinstance(entry.get("criteria"), list):
            yield from _entries(entry["criteria"], place)
        else:
            yield entry


def _item(entry: Any, where: str, notes: Notes | None, place: str) -> _RubricEntry:
    if isinstance(entry, str):
        entry = {"requirement": entry}
    if not isinstance(entry, dict):
        raise InputError(f"not a text or an object: {entry!r:.60}; {_READS}", where)
    texts = [k for k in (*_STATEMENTS, *_NAMES) if isinstance(entry.get(k), str)]
    if not texts:
        keys = ", ".join(map(str, entry)) or "nothing"
        raise InputError(f"no statement among its keys ({keys}); {_READS}", where)
    statement = " ".join(entry[texts[0]].split())
    if not statement:
        raise InputError(f"{texts[0]!r} is empty", where)
    names = [" ".join(entry[k].split()) for k in _NAMES if k in texts[1:]]
    name = next(filter(None, names), statement)
    read = {texts[0], *_NAMES, *_WEIGHTS, *_LEVELS, *_POLARITIES, *_BESIDE}
    if notes is not None and (unread := [str(k) for k in entry if k not in read]):
        notes.add(f"not read in items of rubrics: {', '.join(unread)}", place)
    return _RubricEntry(statement, name, _weight(entry, where), _levels(entry, where))


def _weight(entry: dict[str, Any], where: str) -> float | None:
    """Return the weight with the sign of the polarity, or None without either."""
    stated = [(k, entry[k]) for k in _WEIGHTS if entry.get(k) is not None]
    weight = None
    for key, value in stated:
        try:
            number = float("nan") if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not math.isfinite(number) or weight not in (None, number):
            raise InputError(f"{key!r} must be one number, not {value!r:.40}", where)
        weight = number
    for key in _POLARITIES:
        polarity = entry.get(key)
        if polarity is None:
            continue
        sign = {"positive": 1, "negative": -1}.get(str(polarity).strip().lower())
        if sign is None:
            raise InputError(f"{key!r} must be positive or negative, not {polarity!r:.40}", where)
        if sign > 0 and weight is not None and weight < 0:
            raise InputError(f"polarity positive, but weight {weight:g}", where)
        weight = sign * abs(1.0 if weight is None else weight)
    return weight


def _levels(entry: dict[str, Any], where: str) -> tuple[str, ...]:
    values: Any = next((entry[k] for k in _LEVELS if entry.get(k)), ["no", "yes"])
    if not isinstance(values, list):
        raise InputError("levels must be a list", where)
    if all(isinstance(v, dict) for v in values):  # Autorubric's options
        options = [(v.get("value"), v.get("label")) for v in values if not v.get("na")]
        if not all(isinstance(v, int | float) and isinstance(name, str) for v, name in options):
            raise InputError("options need a label and a value", where)
        options.sort()
        top = max(len(options) - 1, 1)
        if any(abs(v - rank / top) > 0.01 for rank, (v, _) in enumerate(options)):
            raise InputError("the values of options must be evenly spaced from 0 to 1", where)
        values = [name for _, name in options]
    if not all(isinstance(v, str) for v in values):
        raise InputError("levels must be texts, from 'not at all' to 'fully'", where)
    return tuple(values)


def _check_repeats(items: list[_RubricEntry], weights: list[float], place: str) -> None:
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        other = first.setdefault(item.statement.casefold().strip(" ."), number)
        if other == number:
            continue
        both = f"items {other + 1} and {number + 1} are the same statement: {item.statement[:60]!r}"
        if (weights[other] < 0) != (weights[number] < 0):
            raise InputError(f"{both}, once positive and once negative; remove one", place)
        raise InputError(f"{both}; remove one", place)
