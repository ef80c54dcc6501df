"""Turn rows of FlowBench's format as cases for an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval import flow_turns
from agenteval.errors import InputError
from agenteval.workflows.flowbench_api import flow_score
from agenteval.workflows.row_cases import row_cases
from tests.workflows.test_flowbench_rows import MESSAGES, acts, call_row, reply_row

CALLED = [
    *MESSAGES, {"role": "assistant", "content": acts({"title": "Dune"})},
    {"role": "function", "name": "lend", "content": '{"ok": true}'},
]  # fmt: skip
ROWS = [
    call_row(id="ann_agent_turn-1"),
    call_row(id="bob_agent_turn-1", predict=acts({"title": "Emma"}, "return")),
    call_row(id="cleo_agent_turn-1", predict="Thought: none\nResponse: Which book?"),
    reply_row(id="ann_agent_turn-3", messages=CALLED, gt_response="Here you are"),
    reply_row(id="bob_agent_turn-3", messages=CALLED, predict=acts({"title": "Dune"})),
]


def written(folder: Path, *rows: dict[str, Any], name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_row_is_asked_as_it_is_recorded(tmp_path: Path) -> None:
    (case,) = row_cases([written(tmp_path, ROWS[3])])
    dialogue, (tool,) = case.asked("recorded")
    assert dialogue.instructions == MESSAGES[0]["content"]
    assert [m.role for m in dialogue.messages] == ["user", "assistant", "tool"]
    (call,) = dialogue.messages[1].tool_calls
    assert (call.name, call.arguments) == ("lend", {"title": "Dune"})
    assert dialogue.messages[2].tool_call_id == call.id
    assert (tool.name, tool.description) == ("lend", "Lend a book")
    assert tool.parameters["required"] == ["title"]  # a row says so beside the type
    assert (case.info.id, case.info.task) == ("rows/ann:3", "rows/ann")


def test_an_agents_turns_are_scored_as_the_same_predictions_are(tmp_path: Path) -> None:
    rows = [
        {**row, "messages": [*row["messages"], {"role": "user", "content": str(at)}]}
        for at, row in enumerate(ROWS)
    ]
    path, asked = written(tmp_path, *rows), []

    def agent(messages: list[dict[str, Any]], tools: Any) -> str:
        asked.append(int(messages[-1]["content"]))
        return str(rows[asked[-1]]["predict"])

    unpredicted = [{k: v for k, v in row.items() if k != "predict"} for row in rows]
    given = written(tmp_path, *unpredicted, name="given.jsonl")
    store = tmp_path / "s.db"
    report = flow_turns(given, agent=agent, store=store, max_unscored=1)
    (own,) = next(table for table in report.tables if table.key == "turn_calls").rows
    tools = flow_score(path, max_unscored=1).data["table"]["tool"]
    for name in ("precision", "recall", "f1"):
        rate: Any = own[name]
        assert rate.value == pytest.approx(tools[name]["known"]["mean"])
    assert tools["recall"]["known"]["mean"] == pytest.approx(1 / 3)
    assert sorted(asked) == [0, 1, 2, 3, 4]
    flow_turns(given, agent=agent, store=store, max_unscored=1)
    assert len(asked) == 5  # what is stored is not asked again


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (call_row(messages=[]), "messages must end with what the agent answers"),
        (call_row(messages=[*MESSAGES, {"role": "assistant", "content": "Hm"}]), "must end with"),
        (call_row(messages=[{"role": "narrator", "content": "x"}]), "has no known role"),
        (call_row(gt_thought=1), "gt_thought must be an object"),
    ],
)
def test_rows_that_cannot_be_asked(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as told:
        row_cases([written(tmp_path, ROWS[0], row)])
    assert "rows.jsonl:2" in str(told.value)


def test_rows_have_their_own_prompt(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS[0])
    with pytest.raises(InputError, match="no --format"):
        flow_turns(path, agent=lambda m, t: "", formats=["text"])
    with pytest.raises(InputError, match="not both"):
        flow_turns([path, "meeting_rooms"], agent=lambda m, t: "")
    with pytest.raises(InputError, match="there twice"):
        row_cases([written(tmp_path, ROWS[0], ROWS[0])])
