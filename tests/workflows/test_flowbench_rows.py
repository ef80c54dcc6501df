"""Rows of FlowBench's format: both layouts, what is wrong with a row, and gold against itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError, Transient
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Request
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.flowbench_rows import Rows, read_rows, toolbox
from agenteval.workflows.flowbench_score import (
    score_published,
    score_sessions,
    score_turns,
)
from agenteval.workflows.rates import Resampling
from agenteval.workflows.verdicts import Judges

QUICK = Resampling(resamples=200)
PARAMETERS = {
    "title": {"type": "string", "description": "Title of the book", "required": True},
    "shelf": {"type": "string", "description": "Enumerated type, [low, high]", "required": False},
}
PROMPT = (
    "You serve readers.\nAPI: lend\nAPI Desciption: Lend a book\n"
    f"Input parameters: {json.dumps(PARAMETERS)}\nOutput parameters: {{}}\n\n"
    "API: broken\nAPI Desciption: d\nInput parameters: oops\n\n"
    "Please note that the current time is: noon"
)
MESSAGES = [{"role": "system", "content": PROMPT}, {"role": "user", "content": "Dune, please"}]


def acts(given: Any, tool: str = "lend") -> str:
    return f"Thought: current_node=LB001\nAction: {tool}\nAction Input: {json.dumps(given)}"


def call_row(**more: Any) -> dict[str, Any]:
    row = {
        "id": "ann_agent_turn-3", "messages": MESSAGES, "apis": ["lend"], "gt_response": None,
        "gt_thought": {"current_node": "LB001", "intent": "Lend", "Action": "lend",
                       "Action Input": '{"title": "Dune"}'},
        "predict": acts({"title": "Dune"}),
    }  # fmt: skip
    return row | more


def reply_row(**more: Any) -> dict[str, Any]:
    row = {
        "id": "ann_agent_turn-1", "messages": MESSAGES, "gt_thought": {"current_node": "LB000"},
        "gt_response": "Which book?", "predict": "Thought: current_node=LB000\nResponse: Which?",
    }  # fmt: skip
    return row | more


def session_row(**more: Any) -> dict[str, Any]:
    gold = 'Action: lend\nAction Input: {"title": "Dune"}'
    row = {
        "id": "ann", "gt_actions_string": gold, "user_target": "Borrow Dune.",
        "gen_dialog_str": f"user:\nHi\n\nassistant:\nThought: t\n{gold}\n\nassistant:\nResponse: k",
        "assistant_prompt": PROMPT,
    }  # fmt: skip
    return row | more


def read(tmp_path: Path, *rows: Any, lines: bool = False, **options: Any) -> Rows:
    path = tmp_path / "rows.json"
    text = "\n".join(json.dumps(r) for r in rows) if lines else json.dumps(rows)
    path.write_text(text, encoding="utf-8")
    return read_rows([path], **options)


@pytest.mark.parametrize("lines", [True, False])
def test_turn_rows(tmp_path: Path, lines: bool) -> None:
    rows = read(tmp_path, call_row(), reply_row(), lines=lines)
    assert rows.level == "turn"
    call, reply = rows.turns
    assert (call.gold.session, call.gold.turn, call.gold.node) == ("ann", 1, "LB001")
    assert call.gold.action is not None
    assert (call.gold.action.tool, call.gold.action.arguments) == ("lend", {"title": "Dune"})
    assert (call.action, call.action_input) == ("lend", '{"title": "Dune"}')
    assert call.history == "user: Dune, please"
    assert (reply.gold.action, reply.gold.response, reply.action) == (None, "Which book?", "")
    assert call.where.endswith("rows.json:1" if lines else "row 1")


def test_the_layout_of_flowswitch(tmp_path: Path) -> None:
    thought = {"current_node": "LB001", "Action": "lend", "Action Input": {"title": "Dune"}}
    row = {
        "turn_id": "bob-turn-2", "messages": MESSAGES, "predict": acts({"title": "Dune"}),
        "ground_truth": {"thought": thought, "response": "", "content": "x"},
        "answer": ["u"], "answer_type": "SINGLE",
    }  # fmt: skip
    (found,) = read(tmp_path, row).turns
    assert found.gold.session == "bob"
    assert found.gold.action is not None
    assert found.gold.action.arguments == {"title": "Dune"}
    assert json.loads(found.action_input) == {"title": "Dune"}


def test_an_action_without_input_is_a_call_without_arguments(tmp_path: Path) -> None:
    row = call_row(gt_thought={"Action": "lend", "Action Input": ""})
    (found,) = read(tmp_path, row).turns
    assert found.gold.action is not None
    assert (found.gold.action.arguments, found.action_input) == ({}, "")
    assert read(tmp_path, call_row(gt_thought={"Action": ""})).turns[0].gold.action is None


def test_session_rows(tmp_path: Path) -> None:
    rows = read(tmp_path, session_row(success_gpt="1", progress_gpt=0.5))
    assert rows.level == "session"
    (found,) = rows.sessions
    assert [(a.tool, a.arguments) for a in found.gold] == [("lend", {"title": "Dune"})]
    assert [(c.tool, c.arguments) for c in found.calls] == [("lend", {"title": "Dune"})]
    assert (found.success, found.progress, found.wanted) == (True, 0.5, "Borrow Dune.")
    assert "lend" in found.schemas


def test_only_the_agents_messages_hold_its_calls(tmp_path: Path) -> None:
    row = session_row(gen_dialog_list=[
        {"role": "user", "content": "Action: lend\nAction Input: {}"},
        {"role": "assistant", "content": 'Action: lend\nAction Input: {"title": "Dune"}'},
    ])  # fmt: skip
    for given in (row, {k: v for k, v in row.items() if k != "gen_dialog_str"}):
        (found,) = read(tmp_path, given).sessions
        assert [c.arguments for c in found.calls] == [{"title": "Dune"}]


def test_the_toolbox_of_a_prompt() -> None:
    found = toolbox(PROMPT)
    assert list(found) == ["lend"]
    assert found["lend"]["properties"] == PARAMETERS
    assert toolbox("no tools") == {}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("text", "a row is an object"),
        (call_row(predict=None), "predict is missing"),
        (call_row(predict=3), "predict is no text"),
        (call_row(gt_thought=None), "gt_thought must be an object"),
        (call_row(gt_thought={"Action": 3}), "Action is no text"),
        (call_row(gt_thought={"Action": "a", "Action Input": "{oops"}), "must be a JSON object"),
        (call_row(messages="hi"), "messages must be a list"),
        (call_row(id=[1]), "id must be"),
        (session_row(gt_actions_string="", gen_dialog_str=""), None),
        (session_row(gt_actions_string="call lend"), "no line 'Action: <tool>'"),
        (session_row(gt_actions_string="Action: a\nAction Input: oops"), "is not a JSON object"),
        (session_row(success_gpt="yes"), "success_gpt must be 0 or 1"),
        (session_row(progress_gpt=4), "progress_gpt must be a number"),
    ],
)
def test_what_is_wrong_with_a_row(tmp_path: Path, row: Any, told: str | None) -> None:
    good = session_row() if isinstance(row, dict) and "gt_actions_string" in row else call_row()
    if told is None:
        assert read(tmp_path, good, row).sessions[1].gold == ()
        return
    with pytest.raises(InputError) as error:
        read(tmp_path, good, row)
    assert told in str(error.value)
    assert "rows.json, row 2" in str(error.value)
    assert "\n" not in str(error.value)


def test_sessions_without_what_is_needed(tmp_path: Path) -> None:
    row = session_row()
    del row["gt_actions_string"]
    with pytest.raises(InputError, match="gt_actions_string is missing"):
        read(tmp_path, row)
    row = session_row()
    del row["gen_dialog_str"]
    with pytest.raises(InputError, match="gen_dialog_str is missing"):
        read(tmp_path, row)


@pytest.mark.parametrize("text", ["", "[]", "[{]", "{}\nnot json", '{"a": NaN}'])
def test_files_that_hold_no_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"rows\.json"):
        read_rows([path])
    with pytest.raises(InputError, match="cannot read"):
        read_rows([tmp_path / "missing.json"])


# -- scores --------------------------------------------------------------------------------------


async def test_gold_against_itself_is_perfect(tmp_path: Path) -> None:
    values = [{"title": "Dune"}, {"title": 'A "B" {c}', "shelf": "low"},
              {"title": "x", "o": {"a": [1, {"b": ""}]}}]  # fmt: skip
    rows = [
        call_row(gt_thought={"Action": "lend", "Action Input": v}, predict=acts(v)) for v in values
    ]
    turns = await score_turns(read(tmp_path, *rows, reply_row()).turns, Judges(), QUICK)
    for kind in ("tool", "parameters", "parameters_free"):
        rates = turns.data["table"][kind]
        assert [rates[s]["known"]["mean"] for s in ("precision", "recall", "f1")] == [1.0] * 3
        assert rates["undecided"] == 0
    gold = "\n\n".join(f"Action: lend\nAction Input: {json.dumps(v)}" for v in values)
    whole = session_row(gt_actions_string=gold, gen_dialog_str=gold)
    sessions = await score_sessions(read(tmp_path, whole).sessions, Judges(), QUICK)
    tool = sessions.data["table"]["tool"]
    assert (tool["right"], tool["predicted"], tool["gold"]) == (3, 3, 3)


async def test_a_call_dropped_and_two_swapped(tmp_path: Path) -> None:
    """Three gold calls: without one recall is 2/3; in another order all is as before."""
    calls = [f'Action: {t}\nAction Input: {{"n": {i}}}' for i, t in enumerate("abc")]
    gold = "\n\n".join(calls)
    for made, recall in ((calls[:2], 2 / 3), ([calls[1], calls[0], calls[2]], 1.0)):
        row = session_row(gt_actions_string=gold, gen_dialog_str="\n\n".join(made))
        found = await score_sessions(read(tmp_path, row).sessions, Judges(), QUICK)
        assert found.data["table"]["tool"]["recall"]["known"]["mean"] == pytest.approx(recall)


async def test_enumerations_of_the_prompt_and_failed_turns(tmp_path: Path) -> None:
    gold = {"title": "Dune", "shelf": "low"}
    thought = {"Action": "lend", "Action Input": gold}
    rows = read(
        tmp_path,
        call_row(gt_thought=thought, predict=acts({"title": "Dune", "shelf": "low shelf"})),
        call_row(predict="api call error: 500"),
    )
    found = (await score_turns(rows.turns, Judges(), QUICK)).data
    assert {one["parameter"]: one["by"] for one in found["judgements"]} == {
        "title": "exact",
        "shelf": "enumeration",
    }
    table = found["table"]
    assert table["failures"] == {"error:infrastructure": 1}
    assert (table["turns"], table["tool"]["gold"]) == (1, 1)


def all_judges(answer: Any) -> tuple[Judges, ScriptedTransport]:
    transport = ScriptedTransport(answer)
    client = Client(transport, retry=RetryPolicy(attempts=1))
    return Judges.on(client), transport


def answer(request: Request) -> str:
    if request.role == "flow:equal":
        return json.dumps({"reason": "r", "equal": True})
    if request.role == "flow:response":
        parts = dict.fromkeys(("correctness", "helpfulness", "humanness"), "fine")
        return json.dumps({**parts, "score": 7})
    row = {"goal": "Dune", "evidence": "Action: lend", "reason": "r", "achieved": True}
    return json.dumps({"goals": [row], "success": True})


async def test_judges_at_work(tmp_path: Path) -> None:
    judges, transport = all_judges(answer)
    rows = read(tmp_path, call_row(predict=acts({"title": "Dune, the novel"})), reply_row())
    found = await score_turns(rows.turns, judges, QUICK, "Lend books.")
    table = found.data["table"]
    assert (table["tool"]["right"], table["tool"]["undecided"]) == (1, 0)
    assert (table["response"]["mean"]["mean"], table["response"]["due"]) == (7.0, 1)
    assert (found.usage.requests, len(transport.requests)) == (2, 2)
    session = read(tmp_path, session_row(workflow_text="Lend books.")).sessions
    goals = (await score_sessions(session, judges, QUICK)).data["goals_table"]
    assert (goals["success"]["mean"], goals["unquoted"]) == (1.0, 0)
    without = await score_turns(rows.turns, judges, QUICK)
    assert without.data["table"]["response"] is None  # a grade needs the workflow as text


async def test_open_questions_widen_the_published_figures(tmp_path: Path) -> None:
    row = call_row(predict=acts({"title": "Dune, the novel"}), gt_thought={
        "Action": "lend", "Action Input": '{"title": "Dune (novel)"}'})  # fmt: skip
    rows = read(tmp_path, row, reply_row())
    judges, transport = all_judges(answer)
    failing, _ = all_judges(lambda request: Transient("down"))
    for judge, low, unanswered in ((None, 0.0, 2), (judges, 1.0, 0), (failing, 0.0, 2)):
        found = (await score_published(rows, judge and judge.equality)).data
        assert found["figures"]["turn_call_rec"] == {"low": low, "high": 1.0}
        assert found["open"] == unanswered  # the parameter, and the call in lower case
    assert len(transport.requests) == 2


async def test_where_the_published_script_stops(tmp_path: Path) -> None:
    row = call_row(predict=acts({"title": "other"}, tool="zzz"))
    with pytest.raises(InputError, match=r"row 2: the published script stops"):
        await score_published(read(tmp_path, call_row(), row), None)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (session_row(gen_dialog_str=None), "gen_dialog_str is missing"),
        (session_row(gt_actions_string=None), "gt_actions_string is missing"),
        (
            session_row(
                gen_dialog_str=None, gen_dialog_list=[{"role": "agent", "content": "Response: x"}]
            ),
            "role must be one of",
        ),
    ],
)
def test_a_session_that_was_lost_is_no_session_without_calls(
    tmp_path: Path, row: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told) as error:
        read(tmp_path, session_row(), row)
    assert "row 2" in str(error.value)


def test_the_dialogue_comes_from_the_list_where_the_text_is_null(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": acts({})}]
    (row,) = read(tmp_path, session_row(gen_dialog_str=None, gen_dialog_list=said)).sessions
    assert "Hi" in row.dialogue
    assert [call.tool for call in row.calls] == ["lend"]


@pytest.mark.parametrize(
    ("id", "session"),
    [("ann_agent_turn-3", "ann"), ("ann-turn_3", "ann"), ("return5", "return5"), ("turn-1", "")],
)
def test_the_session_of_a_turn(tmp_path: Path, id: str, session: str) -> None:
    assert read(tmp_path, call_row(id=id)).turns[0].gold.session == session


async def test_sessions_of_one_name_in_two_files_are_two(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json", "c.json", "d.json")]
    for path in paths[:2]:
        path.write_text(json.dumps([call_row(), call_row(), call_row(id=None)]), encoding="utf-8")
    for path in paths[2:]:
        path.write_text(json.dumps([session_row()]), encoding="utf-8")
    turns = (await score_turns(read_rows(paths[:2]).turns, Judges(), QUICK)).data["table"]
    assert (turns["turns"], turns["sessions"]) == (6, 4)
    assert turns["tool"]["recall"]["known"]["n_clusters"] == 4
    sessions = (await score_sessions(read_rows(paths[2:]).sessions, Judges(), QUICK)).data["table"]
    assert sessions["tool"]["recall"]["known"]["n_clusters"] == 2
    with pytest.raises(InputError, match="score them apart"):
        read_rows(paths)


async def test_a_tool_of_gold_with_its_namespace(tmp_path: Path) -> None:
    row = call_row()
    row["gt_thought"] = row["gt_thought"] | {"Action": "functions.lend"}
    rows = read(tmp_path, row).turns
    assert rows[0].action == "functions.lend"  # unchanged for the published count
    assert (await score_turns(rows, Judges(), QUICK)).data["table"]["tool"]["right"] == 1
