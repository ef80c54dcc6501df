"""FlowBench's rows: reading, scoring by our rules and as published, and rows as cases."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval import flow_turns
from agenteval.errors import InputError, Transient
from agenteval.models.asking import ParsedReply
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Request
from agenteval.records import Usage
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.equality import Same, ValueQuestion
from agenteval.workflows.flowbench_rows import Rows, SessionRow, TurnRow, read_rows, row_cases
from agenteval.workflows.flowbench_score import (
    flow_score,
    score_published,
    score_sessions,
    score_turns,
)
from agenteval.workflows.published import count_session, count_turn, predicted_input, shares
from agenteval.workflows.scores import MatchCounts, Resampling
from agenteval.workflows.verdicts import Judges
from tests.golden.files import published

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
        "id": "ann_agent_turn-3",
        "messages": MESSAGES,
        "apis": ["lend"],
        "gt_response": None,
        "gt_thought": {
            "current_node": "LB001",
            "intent": "Lend",
            "Action": "lend",
            "Action Input": '{"title": "Dune"}',
        },
        "predict": acts({"title": "Dune"}),
    }
    return row | more


def reply_row(**more: Any) -> dict[str, Any]:
    row = {
        "id": "ann_agent_turn-1",
        "messages": MESSAGES,
        "gt_thought": {"current_node": "LB000"},
        "gt_response": "Which book?",
        "predict": "Thought: current_node=LB000\nResponse: Which?",
    }
    return row | more


def session_row(**more: Any) -> dict[str, Any]:
    gold = 'Action: lend\nAction Input: {"title": "Dune"}'
    row = {
        "id": "ann",
        "gt_actions_string": gold,
        "user_target": "Borrow Dune.",
        "gen_dialog_str": f"user:\nHi\n\nassistant:\nThought: t\n{gold}\n\nassistant:\nResponse: k",
        "assistant_prompt": PROMPT,
    }
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
    (empty,) = read(tmp_path, call_row(gt_thought={"Action": "lend", "Action Input": ""})).turns
    assert empty.gold.action is not None
    assert (empty.gold.action.arguments, empty.action_input) == ({}, "")
    assert read(tmp_path, call_row(gt_thought={"Action": ""})).turns[0].gold.action is None


def test_the_layout_of_flowswitch(tmp_path: Path) -> None:
    thought = {"current_node": "LB001", "Action": "lend", "Action Input": {"title": "Dune"}}
    row = {
        "turn_id": "bob-turn-2",
        "messages": MESSAGES,
        "predict": acts({"title": "Dune"}),
        "ground_truth": {"thought": thought, "response": "", "content": "x"},
        "answer": ["u"],
        "answer_type": "SINGLE",
    }
    (found,) = read(tmp_path, row).turns
    assert found.gold.session == "bob"
    assert found.gold.action is not None
    assert found.gold.action.arguments == {"title": "Dune"}
    assert json.loads(found.action_input) == {"title": "Dune"}


def test_only_the_agents_messages_hold_its_calls(tmp_path: Path) -> None:
    row = session_row(
        gen_dialog_list=[
            {"role": "user", "content": "Action: lend\nAction Input: {}"},
            {"role": "assistant", "content": 'Action: lend\nAction Input: {"title": "Dune"}'},
        ]
    )
    for with_text in (row, {k: v for k, v in row.items() if k != "gen_dialog_str"}):
        (found,) = read(tmp_path, with_text).sessions
        assert [c.arguments for c in found.calls] == [{"title": "Dune"}]
        assert "Action: lend" in found.dialogue


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("text", "a row must be an object"),
        (call_row(predict=None), "predict is missing"),
        (call_row(gt_thought=None), "gt_thought must be an object"),
        (call_row(gt_thought={"Action": "a", "Action Input": "{oops"}), "must be a JSON object"),
        (call_row(messages="hi"), "messages must be a list"),
        (call_row(id=[1]), "id must be"),
        (session_row(gt_actions_string="", gen_dialog_str=""), None),
        (session_row(gt_actions_string="call lend"), "no line 'Action: <tool>'"),
        (session_row(gt_actions_string="Action: a\nAction Input: oops"), "is not a JSON object"),
        (session_row(progress_gpt=4), "progress_gpt must be a number"),
        # A session that was lost is not a session without calls.
        (session_row(gen_dialog_str=None), "gen_dialog_str is missing"),
        (session_row(gen_dialog_list=[{"role": "agent", "content": "x"}]), "role must be one of"),
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


# -- scores --------------------------------------------------------------------------------------


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
    row = call_row(
        predict=acts({"title": "Dune, the novel"}),
        gt_thought={"Action": "lend", "Action Input": '{"title": "Dune (novel)"}'},
    )
    rows = read(tmp_path, row, reply_row())
    judges, transport = all_judges(answer)
    failing, _ = all_judges(lambda request: Transient("down"))
    for judge, low, unanswered in ((None, 0.0, 2), (judges, 1.0, 0), (failing, 0.0, 2)):
        found = (await score_published(rows, judge and judge.equality)).data
        assert found["figures"]["turn_call_rec"] == {"low": low, "high": 1.0}
        assert found["open"] == unanswered  # the parameter, and the call in lower case
    assert len(transport.requests) == 2


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
    with pytest.raises(InputError, match="some files contain turns"):
        read_rows(paths)


# -- as published: recorded results of the original, and its rules by hand ---------------------

TURNS: dict[str, Any] = published("workflow_turn_cases")
SESSIONS: dict[str, Any] = published("workflow_session_cases")
PAY_PROMPT = (
    "Tools.\nAPI: pay\nAPI Desciption: Pay a bill\nInput parameters: {}\n\nThe time is noon."
)


class CountingJudge:
    """A judge with one answer, which counts; it serves both ways of counting."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[ValueQuestion] = []

    async def __call__(self, question: ValueQuestion) -> Same:
        self.asked.append(question)
        return {"yes": "equal", "no": "different"}.get(self.answer, "unjudged")

    async def same(self, question: ValueQuestion) -> ParsedReply[tuple[bool, str]]:
        self.asked.append(question)
        return ParsedReply((self.answer == "yes", ""), self.answer, Usage(), repaired=False)


def turns_of(folder: Path, turns: list[dict[str, Any]], prompt: str) -> tuple[TurnRow, ...]:
    rows = [
        {
            "id": f"s_agent_turn-{i}",
            "messages": [{"role": "system", "content": prompt}],
            "gt_thought": {"Action": t["gt_action"], "Action Input": t["gt_action_input"]},
            "predict": t["predict"],
        }
        for i, t in enumerate(turns)
    ]
    path = folder / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return read_rows([path]).turns


def session_of(folder: Path, gold: str, dialogue: str) -> SessionRow:
    path = folder / "sessions.json"
    row = {"gt_actions_string": gold, "gen_dialog_str": dialogue}
    path.write_text(json.dumps([row]), encoding="utf-8")
    return read_rows([path]).sessions[0]


def by_name(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", TURNS["cases"], ids=by_name)
async def test_recorded_turns(tmp_path: Path, case: dict[str, Any]) -> None:
    judge, counts = CountingJudge(case["judge_always_answers"]), []
    rows, expected = (
        turns_of(tmp_path, case["turns"], TURNS["system_prompt_used"]),
        case["expected"],
    )
    if "exception" in expected:
        with pytest.raises(InputError, match=r"row 1: .*matches is None\."):
            await count_turn(rows[0], judge)
        return
    counts = [await count_turn(row, judge) for row in rows]
    found = shares("turn_call", [call for call, _ in counts])
    found |= shares("turn_params", [parameters for _, parameters in counts])
    assert {name: [round(end, 6) for end in ends] for name, ends in found.items()} == {
        name: [value, value] for name, value in expected.items()
    }
    assert len(judge.asked) == case["judge_calls"]


@pytest.mark.parametrize("case", SESSIONS["cases"], ids=by_name)
async def test_recorded_sessions(tmp_path: Path, case: dict[str, Any]) -> None:
    row = session_of(tmp_path, case["gt_actions_string"], case["gen_dialog_str"])
    found, expected = (
        await count_session(row, CountingJudge(case["fuzzy_judge"])),
        case["expected_repaired"],
    )
    assert (found.right, found.gold, found.predicted) == (
        expected["right_api_num"],
        expected["all_api_num_gt"],
        expected["all_api_num_pre"],
    )


# What strict counting must say of the same turns, worked out from its rules: tool precision and
# recall, parameter precision and recall ("-": undefined).
STRICT_TURNS = """
exact 1 1 1 1 | missed_call 1 1/2 1 1/2 | spurious_call_on_reply_turn 1/2 1 1 1
wrong_tool_right_params 0 0 0 0 | case_difference_judge_no 1 1 1 1
case_difference_judge_yes 1 1 1 1 | fuzzy_yes 1 1 1 1 | fuzzy_no 0 0 1/2 1/2
extra_predicted_param 1 1 1/2 1 | gt_empty_string_param_missing 1 1 1 1
action_and_input_on_one_line 1 1 1 1 | nested_equal 1 1 1 1 | nested_different 0 0 0 0
functions_prefix 1 1 1 1 | empty_input_object 1 1 - - | gt_action_input_empty_string 1 1 - -
multiline_json 1 1 1 1 | trailing_space_in_action 1 1 1 1 | mixed_five_turns 1/2 2/3 2/3 2/3
no_calls - - - - | unknown_tool_with_fuzzy_string 0 0 0 0 | api_call_error_turn_is_dropped 1 1 1 1
substring_counts_as_equal 0 0 0 0 | pred_substring_does_not 0 0 0 0 | int_vs_float 1 1 1 1
list_order 0 0 0 0
"""
STRICT = {
    name: shares for name, *shares in map(str.split, re.split(r"[|\n]", STRICT_TURNS.strip()))
}


@pytest.mark.parametrize("case", TURNS["cases"], ids=by_name)
async def test_the_same_turns_strictly(tmp_path: Path, case: dict[str, Any]) -> None:
    judge = CountingJudge(case["judge_always_answers"])
    rows = turns_of(tmp_path, case["turns"], TURNS["system_prompt_used"])
    table = (await score_turns(rows, Judges(equality=judge), Resampling(100))).data["table"]
    found = [
        table[kind][share]["known"]["mean"]
        for kind in ("tool", "parameters")
        for share in ("precision", "recall")
    ]
    expected = [None if f == "-" else float(Fraction(f)) for f in STRICT[case["name"]]]
    assert found == [e if e is None else pytest.approx(e) for e in expected]
    assert table["tool"]["undecided"] == 0
    assert len(judge.asked) <= 1  # each pair once, where the published script asks twice


def does(tool: str, given: str) -> str:
    return f"Thought: hm\nAction: {tool}\nAction Input: {given}"


def turn_of(folder: Path, gold: tuple[str, str] | None, predict: str) -> TurnRow:
    action, given = gold or ("", "")
    turn = {"gt_action": action, "gt_action_input": given, "predict": predict}
    return turns_of(folder, [turn], PAY_PROMPT)[0]


SUM = ("pay", '{"sum": 5}')


@pytest.mark.parametrize(
    ("gold", "predict", "call", "parameters"),
    [
        (SUM, does("pay", '{"sum": 5.0}'), (0, 0, 1, 1), (0, 0, 1, 1)),
        (("pay", '{"sum": 1}'), does("pay", '{"sum": true}'), (0, 0, 1, 1), (0, 0, 1, 1)),
        (("pay", '{"to": "am"}'), does("pay", '{"to": "Tampa"}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"to": "N.Y!"}'), does("pay", '{"to": "N-Y"}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"to": ""}'), does("pay", '{"to: }'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"to": [], "sum": 5}'), does("pay", '{"sum": 5}'), (1, 0, 1, 1), (1, 0, 1, 2)),
        (("pay", '{"to": "a"}'), does("pay", '{"to": "b"}'), (0, 1, 1, 1), (0, 1, 1, 1)),
        (SUM, "Action: pay", (0, 0, 0, 1), (0, 0, 0, 1)),
        (SUM, "Action: pay\n", (0, 0, 0, 1), (0, 0, 0, 1)),
        (SUM, "Thought: Action: later\nAction: pay\nx", (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"o": {"a": 1}}'), does("pay", '{"o": {"a": 1}\n}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"o": {"a": 1}}'), does("pay", '{"o": {\n"a": 1}}'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"a": 1}'), does("pay", 'x {"a": {"b": 1}}'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (None, "Action Input: {} comes first\nAction: pay\nmore", (0, 0, 1, 0), (0, 0, 0, 0)),
        (SUM, "an api call error came", (0, 0, 0, 0), (0, 0, 0, 0)),
    ],
)
async def test_rules_of_turns(
    tmp_path: Path,
    gold: tuple[str, str] | None,
    predict: str,
    call: tuple[int, ...],
    parameters: tuple[int, ...],
) -> None:
    found = await count_turn(turn_of(tmp_path, gold, predict), CountingJudge("none"))
    assert found == (MatchCounts(*call), MatchCounts(*parameters))


PIECES = st.lists(st.sampled_from(["{", "}", "a", "\n", "Action Input: "]), max_size=12)


@given(PIECES.map("".join))
def test_nested_braces_as_a_recursive_pattern_finds_them(text: str) -> None:
    first = re.search(r"Action Input: (.*?)}", text)
    nested = r"\{[^{}]*\}"
    for _ in range(6):  # deep enough for 12 pieces
        nested = rf"\{{(?:[^{{}}]|{nested})*\}}"
    match = re.search(rf"Action Input: ({nested})", text)
    if first is not None and first[1].count("{") > 1:
        assert predicted_input(text) == (match[1] if match else "")


def calls_text(*calls: tuple[str, str]) -> str:
    return "\n\n".join(f"Action: {tool}\nAction Input: {given}" for tool, given in calls)


ONE = calls_text(("pay", '{"n": 1}'))
ANN = calls_text(("pay", '{"to": "Ann"}'))


@pytest.mark.parametrize(
    ("gold", "made", "expected"),
    [
        # right, undecided, predicted, gold
        (ONE, calls_text(("PAY", '{"N": 1}')), (1, 0, 1, 1)),
        (ONE, calls_text(("functions.pay", '{"n": 1}')), (1, 0, 1, 1)),
        (ONE, calls_text(("pay", '{"n": 1.0}')), (0, 0, 1, 1)),
        (ONE, calls_text(("pay", '{"n": {"m": 1}}')), (0, 0, 1, 1)),
        (
            calls_text(("pay", '{"n": {"m": 1}}')),
            calls_text(("pay", "nothing at all")),
            (1, 0, 1, 1),
        ),
        (ONE, calls_text(("pay", "{oops}")), (0, 0, 1, 1)),
        (calls_text(*[("pay", '{"n": 1}')] * 3), ONE, (3, 0, 1, 3)),
        ("", "Response: none", (1, 0, 1, 1)),
        (calls_text(("pay", '{"to": ""}')), calls_text(("pay", "{}")), (1, 0, 1, 1)),
        (ANN, calls_text(("pay", '{"to": "Bob"}')), (0, 1, 1, 1)),
        (ANN, calls_text(("pay", '{"to": "Bob"}'), ("pay", '{"to": "Ann"}')), (1, 0, 2, 1)),
    ],
)
async def test_rules_of_sessions(
    tmp_path: Path, gold: str, made: str, expected: tuple[int, ...]
) -> None:
    row = session_of(tmp_path, gold, made)
    assert await count_session(row, CountingJudge("none")) == MatchCounts(*expected)


# -- rows as cases for an agent ---------------------------------------------------------------

CALLED = [
    *MESSAGES,
    {"role": "assistant", "content": acts({"title": "Dune"})},
    {"role": "function", "name": "lend", "content": '{"ok": true}'},
]
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


def test_rows_have_their_own_prompt(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS[0])
    with pytest.raises(InputError, match="--format"):
        flow_turns(path, agent=lambda m, t: "", formats=["text"])
    with pytest.raises(InputError, match="either"):
        flow_turns([path, "meeting_rooms"], agent=lambda m, t: "")
    with pytest.raises(InputError, match="defined twice"):
        row_cases([written(tmp_path, ROWS[0], ROWS[0])])
