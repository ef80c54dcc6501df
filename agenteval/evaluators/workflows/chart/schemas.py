"""What a tool may return for a field, as far as conditions can tell values apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from agenteval.evaluators.workflows.chart.conditions import compare, plain
from agenteval.evaluators.workflows.chart.nouns import Comparison
from agenteval.evaluators.workflows.scenario import WorkflowTool

OTHER = "\u2026"  # stands for all words that no condition names
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?|\d\d:\d\d(:\d\d)?", re.ASCII)


def is_date(text: str) -> bool:
    """Whether order has a meaning for the text: an ISO date or time."""
    return _DATE.fullmatch(text) is not None


def schema_of(tool: WorkflowTool, field: str) -> dict[str, Any]:
    """The schema of a returned field; {} when it says nothing."""
    properties = tool.returns.get("properties")
    found = properties.get(field) if isinstance(properties, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def types_of(schema: dict[str, Any]) -> frozenset[str]:
    """Names of the JSON types allowed; empty when any is."""
    said = schema.get("type")
    names = said if isinstance(said, list) else [said] if isinstance(said, str) else []
    return frozenset(str(name) for name in names)


def listed(schema: dict[str, Any]) -> list[Any] | None:
    """The values that the schema enumerates, None when it does not."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return list(values) if isinstance(values, list) else None


def representatives(schema: dict[str, Any], comparisons: Iterable[Comparison]) -> tuple[Any, ...]:
    """One value for each way in which the comparisons can come out.

    Drawn from booleans, enumerated values, numbers around the constants within the schema's limits
    and the words and dates that the comparisons name, with one that they do not.
    """
    tested = list({(c.op, c.value): c for c in comparisons}.values())
    found: dict[tuple[bool | None, ...], Any] = {}
    for value in _candidates(schema, [c.value for c in tested]):
        found.setdefault(tuple(compare(value, c.op, c.value) for c in tested), value)
    return tuple(found.values())


def _candidates(schema: dict[str, Any], constants: Sequence[str | float | bool]) -> list[Any]:
    values = listed(schema)
    if values is not None:
        return values
    types = types_of(schema)
    found: list[Any] = []
    if not types or "boolean" in types:
        found += [True, False]
    if types & {"integer", "number"}:
        found += _numbers(schema, constants, whole="number" not in types)
    if not types or "string" in types:
        found += _words(constants)
    if "null" in types:
        found.append(None)
    return found or [OTHER]


def _numbers(
    schema: dict[str, Any], constants: Sequence[str | float | bool], *, whole: bool
) -> list[Any]:
    known = sorted({n for n in map(plain, constants) if isinstance(n, float)})
    near = [n + d for n in known for d in (-1, 0, 1)] or [0.0]
    near += [(a + b) / 2 for a, b in pairwise(known)]
    limits = [schema.get(name) for name in ("minimum", "maximum")]
    near += [float(n) for n in limits if isinstance(n, int | float)]
    if whole:
        near = [float(int(n // 1)) for n in near]
    return [int(n) if n.is_integer() else n for n in sorted(set(near)) if _within(n, schema)]


def _within(number: float, schema: dict[str, Any]) -> bool:
    for name, op in (
        ("minimum", ">="),
        ("maximum", "<="),
        ("exclusiveMinimum", ">"),
        ("exclusiveMaximum", "<"),
    ):
        limit = schema.get(name)
        numeric = isinstance(limit, int | float) and not isinstance(limit, bool)
        if numeric and not compare(number, op, float(limit)):  # type: ignore[arg-type]
            return False
    return True


def _words(constants: Sequence[str | float | bool]) -> list[Any]:
    words: list[Any] = [c if isinstance(c, str) else _text(c) for c in constants]
    dates = [word for word in words if is_date(word)]
    if not dates or len(dates) < len(words):
        return [*words, OTHER]
    clock = all(":" in word[:3] for word in dates)  # only dates, or only times, can be meant
    return [*dates, "00:00", "23:59:59"] if clock else [*dates, "0000-01-01", "9999-12-31"]


def _text(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
