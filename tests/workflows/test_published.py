"""The published way of counting: recorded results of the original, and its rules by hand."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.models.asking import ParsedReply
from agenteval.records import Usage
from agenteval.workflows.equality import Same, ValueQuestion
from agenteval.workflows.flowbench_rows import SessionRow, TurnRow, read_rows
from agenteval.workflows.flowbench_score import score_turns
from agenteval.workflows.published import (
    count_session,
    count_turn,
    f1,
    figures,
    predicted_input,
)
from agenteval.workflows.rates import MatchCounts, Resampling
from agenteval.workflows.verdicts import Judges
from tests.golden.files import published

TURNS: dict[str, Any] = published("workflow_turn_cases")
SESSIONS: dict[str, Any] = published("workflow_session_cases")
PROMPT = "Tools.\nAPI: pay\nAPI Desciption: Pay a bill\nInput parameters: {}\n\nThe time is noon."


class Judge:
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
    judge, counts = Judge(case["judge_always_answers"]), []
    rows, expected = (
        turns_of(tmp_path, case["turns"], TURNS["system_prompt_used"]),
        case["expected"],
    )
    if "exception" in expected:
        with pytest.raises(InputError, match=r"row 1: .*matches is None\."):
            await count_turn(rows[0], judge)
        return
    counts = [await count_turn(row, judge) for row in rows]
    found = figures("turn_call", [call for call, _ in counts])
    found |= figures("turn_params", [parameters for _, parameters in counts])
    assert {name: [round(end, 6) for end in ends] for name, ends in found.items()} == {
        name: [value, value] for name, value in expected.items()
    }
    assert len(judge.asked) == case["judge_calls"]


@pytest.mark.parametrize("case", SESSIONS["cases"], ids=by_name)
async def test_recorded_sessions(tmp_path: Path, case: dict[str, Any]) -> None:
    row = session_of(tmp_path, case["gt_actions_string"], case["gen_dialog_str"])
    found, expected = (
        await count_session(row, Judge(case["fuzzy_judge"])),
        case["expected_repaired"],
    )
    assert (found.right, found.gold, found.predicted) == (
        expected["right_api_num"],
        expected["all_api_num_gt"],
        expected["all_api_num_pre"],
    )


def test_all_recorded_cases_are_there() -> None:
    assert (len(TURNS["cases"]), len(SESSIONS["cases"])) == (26, 11)


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
    judge = Judge(case["judge_always_answers"])
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


# -- by hand, without the recorded ones ----------------------------------------------------------


def does(tool: str, given: str) -> str:
    return f"Thought: hm\nAction: {tool}\nAction Input: {given}"


def turn_of(folder: Path, gold: tuple[str, str] | None, predict: str) -> TurnRow:
    action, given = gold or ("", "")
    turn = {"gt_action": action, "gt_action_input": given, "predict": predict}
    return turns_of(folder, [turn], PROMPT)[0]


SUM = ("pay", '{"sum": 5}')


@pytest.mark.parametrize(
    ("gold", "predict", "call", "parameters"),
    [
        # right, undecided, predicted, gold: of the call, of the parameters
        (SUM, does("pay", '{"sum": 5}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (SUM, does("pay", '{"sum": 5.0}'), (0, 0, 1, 1), (0, 0, 1, 1)),
        (("pay", '{"sum": 1}'), does("pay", '{"sum": true}'), (0, 0, 1, 1), (0, 0, 1, 1)),
        (("pay", '{"to": "am"}'), does("pay", '{"to": "Tampa"}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"to": "N.Y!"}'), does("pay", '{"to": "N-Y"}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"to": ""}'), does("pay", '{"to": "x"}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"to": ""}'), does("pay", '{"to: }'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"to": [], "sum": 5}'), does("pay", '{"sum": 5}'), (1, 0, 1, 1), (1, 0, 1, 2)),
        (("pay", '{"to": "a"}'), does("pay", '{"to": "b"}'), (0, 1, 1, 1), (0, 1, 1, 1)),
        (SUM, does("pay.", '{"sum": 5}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (SUM, "Action: pay", (0, 0, 0, 1), (0, 0, 0, 1)),
        (SUM, "Action: pay\n", (0, 0, 0, 1), (0, 0, 0, 1)),
        (SUM, "Thought: Action: later\nAction: pay\nx", (0, 0, 1, 1), (0, 0, 0, 1)),
        (SUM, does("pay", "five}"), (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"o": {"a": 1}}'), does("pay", '{"o": {"a": 1}\n}'), (1, 0, 1, 1), (1, 0, 1, 1)),
        (("pay", '{"o": {"a": 1}}'), does("pay", '{"o": {\n"a": 1}}'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (("pay", '{"a": 1}'), does("pay", 'x {"a": {"b": 1}}'), (0, 0, 1, 1), (0, 0, 0, 1)),
        (None, "Action Input: {} comes first\nAction: pay\nmore", (0, 0, 1, 0), (0, 0, 0, 0)),
        (None, "I take no Action: none", (0, 0, 0, 0), (0, 0, 0, 0)),
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
    found = await count_turn(turn_of(tmp_path, gold, predict), Judge("none"))
    assert found == (MatchCounts(*call), MatchCounts(*parameters))


async def test_the_judge_is_shown_the_predicted_tool(tmp_path: Path) -> None:
    judge = Judge("yes")
    row = turn_of(tmp_path, ("pay", '{"to": "A plumber"}'), does("pay", '{"to": "a smith"}'))
    assert (await count_turn(row, judge))[0].right == 1
    api = PROMPT[PROMPT.index("API:") : PROMPT.index("\n\n")]
    assert judge.asked == [
        ValueQuestion("pay", "to", api, "A plumber", "a smith"),
        ValueQuestion("pay", "to", api, "a plumber", "a smith"),  # calls are compared in lower case
    ]


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


def acts(*calls: tuple[str, str]) -> str:
    return "\n\n".join(f"Action: {tool}\nAction Input: {given}" for tool, given in calls)


ONE = acts(("pay", '{"n": 1}'))
ANN = acts(("pay", '{"to": "Ann"}'))


@pytest.mark.parametrize(
    ("gold", "made", "expected"),
    [
        # right, undecided, predicted, gold
        (ONE, acts(("PAY", '{"N": 1}')), (1, 0, 1, 1)),
        (ONE, acts(("functions.pay", '{"n": 1}')), (1, 0, 1, 1)),
        (ONE, acts(("pay", '{"n": 1, "m": 2}')), (1, 0, 1, 1)),
        (ONE, acts(("pay", '{"n": 1.0}')), (0, 0, 1, 1)),
        (ONE, acts(("pay", '{"n": {"m": 1}}')), (0, 0, 1, 1)),
        (acts(("pay", '{"n": {"m": 1}}')), acts(("pay", "nothing at all")), (1, 0, 1, 1)),
        (ONE, acts(("pay", "{oops}")), (0, 0, 1, 1)),
        (acts(*[("pay", '{"n": 1}')] * 3), ONE, (3, 0, 1, 3)),
        (ONE, acts(*[("pay", '{"n": 1}')] * 3), (1, 0, 3, 1)),
        (f"{ONE}\n\n", ONE, (1, 0, 1, 1)),
        ("", "Response: none", (1, 0, 1, 1)),
        (acts(("pay", '{"to": ""}')), acts(("pay", "{}")), (1, 0, 1, 1)),
        (ANN, acts(("pay", '{"to": "Bob"}')), (0, 1, 1, 1)),
        (ANN, acts(("pay", '{"to": "Bob"}'), ("pay", '{"to": "Ann"}')), (1, 0, 2, 1)),
    ],
)
async def test_rules_of_sessions(
    tmp_path: Path, gold: str, made: str, expected: tuple[int, ...]
) -> None:
    row = session_of(tmp_path, gold, made)
    assert await count_session(row, Judge("none")) == MatchCounts(*expected)


def test_figures_pool_their_counts() -> None:
    counts = [MatchCounts(2, 0, 1, 2), MatchCounts(0, 1, 2, 1)]
    assert figures("x", counts) == {"x_pre": (2 / 3, 1.0), "x_rec": (2 / 3, 1.0)}
    assert [str(end) for ends in figures("x", []).values() for end in ends] == ["-0.0"] * 4
    assert f1(0.5, 2 / 3) == pytest.approx(0.571429, abs=1e-6)
    assert (f1(-0.0, -0.0), f1(0.5, 0.0)) == (None, 0.0)
