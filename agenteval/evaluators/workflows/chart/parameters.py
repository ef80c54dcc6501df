"""The paragraph after a chart: parameters that are asked for and sent to no tool."""

from __future__ import annotations

import json
import re

from agenteval.evaluators.workflows.chart.tokens import Fail

HEADING = "The auxiliary parameter information in the workflow is as follows:"
_HEADING = re.compile(HEADING[:-1].replace(" ", r"[ \t]+") + r"[ \t]*[:\uff1a]?", re.IGNORECASE)
_SKIPPED = re.compile(r"[\s{},]*")
_LINE = re.compile(r'"([^"\n]*)"[ \t]*[:\uff1a][ \t]*"([^\n]*)"[ \t]*,?[ \t]*}?[ \t]*(?=\n|\Z)')


def is_heading(text: str, at: int) -> bool:
    """Whether the paragraph begins there."""
    return _HEADING.match(text, at) is not None


def read_parameters(text: str, at: int, fail: Fail) -> dict[str, str]:
    """Name → description, from the heading at `at` to the end of the text."""
    heading = _HEADING.match(text, at)
    assert heading is not None
    found: dict[str, str] = {}
    at = heading.end()
    while (at := _SKIPPED.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line = _LINE.match(text, at)
        if line is None:
            fail('here a line `"name": "description"` is expected', at)
        name, description = _unescaped(line[1]).strip(), _unescaped(line[2]).strip()
        if not name or found.setdefault(name, description) != description:
            fail(f"the parameter {name!r} is described twice or has no name", at)
        at = line.end()
    return found


def _unescaped(written: str) -> str:
    """As JSON where it is JSON, else as written: people put quotes into descriptions."""
    try:
        return str(json.loads(f'"{written}"'))
    except ValueError:
        return written
