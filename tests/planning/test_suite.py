"""Suites written by hand: what cannot be a case is refused in one line, before any agent runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.planning.suite import read_suite

WALK: dict[str, Any] = {
    "id": "walk",
    "actions": ["walk", "swim"],
    "request": "Walk, then swim.",
    "constraints": [{"first": "walk", "second": "swim"}],
}
HOURS = {"durations": {"walk": 1, "swim": 2}}
TOOLS = [{"name": "walk"}, {"name": "swim"}]
TIMED = {
    "type": "object",
    "properties": {"start_time": {"type": "integer"}},
    "required": ["start_time"],
}


def one(path: Path, **changes: Any) -> Any:
    file = path / "suite.jsonl"
    file.write_text(json.dumps({**WALK, **changes}, ensure_ascii=False) + "\n", encoding="utf-8")
    (case,) = read_suite(file)
    return case


def test_a_case_is_completed(tmp_path: Path) -> None:
    case = one(tmp_path)
    assert [tool.name for tool in case.tools] == ["walk", "swim"]
    assert case.valid_plans == 1


def test_phrases_and_objects_may_be_mixed(tmp_path: Path) -> None:
    case = one(tmp_path, actions=["walk", {"phrase": "日本語", "tool": "swim"}])
    assert [a.phrase for a in case.actions] == ["walk", "日本語"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": ["日本語", "swim"]}, "no name of a tool can be made of '日本語'"),
        ({"actions": ["walk", " "]}, "actions.1"),
        ({"tools": [{"name": "walk"}]}, "tools: 'swim' is missing"),
        ({"tools": [*TOOLS, {"name": "walk"}]}, "tools: 'walk' stands there twice"),
        (
            {"tools": [{"name": "walk", "parameters": {"type": "nonsense"}}, {"name": "swim"}]},
            "the parameters of 'walk' are no JSON schema",
        ),
        (
            {**HOURS, "tools": [{"name": n, "parameters": TIMED} for n in ("walk", "swim")]},
            "tools: 'restart_plan' is missing",
        ),
        (
            {**HOURS, "tools": [*TOOLS, {"name": "restart_plan"}]},
            "tools: 'walk' must require 'start_time'",
        ),
    ],
)
def test_what_no_agent_could_pass_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=r"suite\.jsonl:1: ") as refused:
        one(tmp_path, **changes)
    assert message in str(refused.value)


def test_tools_of_ones_own_may_be_more(tmp_path: Path) -> None:
    assert len(one(tmp_path, tools=[*TOOLS, {"name": "rest"}]).tools) == 3
