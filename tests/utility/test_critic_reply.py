"""Reading critic replies: shapes, scales, orders, what is lost, and recorded replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import ReplyError
from agenteval.records import Criterion
from agenteval.utility.critic_reply import CriticReading, read_criteria

RECORDED = (
    Path(__file__).parents[3] / "shared/reference/utility/critic_runs/notebook_critic_replies.jsonl"
)
LEVELS = Path(__file__).parents[1] / "data" / "critic_levels.jsonl"
CLARITY = {
    "name": "Clarity",
    "description": "Easy to read.",
    "accepted_values": ["unclear", "fairly clear", "clear"],
}
ACCURACY = {"name": "Accuracy", "description": "Right.", "accepted_values": ["wrong", "right"]}


def only(value: Any) -> Criterion:
    reading = read_criteria(value)
    assert len(reading.criteria) == 1
    return reading.criteria[0]


def names(reading: CriticReading) -> list[str]:
    return [c.name for c in reading.criteria]


BOTH = json.dumps([CLARITY, ACCURACY])
NAMED = {"Clarity": CLARITY, "Accuracy": ACCURACY}


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        (json.dumps({"task": "x", "evaluation_criteria": [CLARITY, ACCURACY]}), "json"),
        (json.dumps({"result": NAMED}), "json"),
        (json.dumps([{name: entry} for name, entry in NAMED.items()]), "json"),
        (f"```json\n{BOTH}\n```", "fenced"),
        (f"I propose [two] criteria:\n{BOTH}\nDone.", "buried"),
        ("```python\ncriteria = " + repr([CLARITY, ACCURACY]) + "\n```", "loose"),
        (json.dumps(CLARITY) + "\n" + json.dumps(ACCURACY), "buried"),
        # an example repeated at the end does not take the place of the list
        (f"{BOTH}\nA level may be {json.dumps(CLARITY)}", "buried"),
    ],
)
def test_shapes_of_replies(text: str, rung: str) -> None:
    reading = read_criteria(text)
    assert names(reading) == ["Clarity", "Accuracy"]
    levels = [c.accepted_values for c in reading.criteria]
    assert levels == [("unclear", "fairly clear", "clear"), ("wrong", "right")]
    assert (reading.rung, reading.problems) == (rung, [])


def test_levels_and_orders() -> None:
    """100 replies written by hand: what is read of the first criterion, and the one problem."""
    for line in LEVELS.read_text("utf-8").splitlines():
        row = json.loads(line)
        reading = read_criteria(row["reply"])
        first = reading.criteria[0]
        read = {
            "levels": list(first.accepted_values),
            "range": first.numeric_range and list(first.numeric_range),
            "order": first.order,
            "scale": first.scale,
            "names": names(reading),
            "rung": reading.rung,
        }
        assert all(read[key] == row[key] for key in read.keys() & row.keys()), line
        if "problem" in row:
            expected = [] if row["problem"] is None else [True]
            assert [p.startswith(row["problem"] or "") for p in reading.problems] == expected, line


def test_a_criterion_without_levels_beside_others_is_named() -> None:
    for value in (
        [CLARITY, {"name": "Depth", "description": "How deep."}],
        {"Clarity": CLARITY, "Depth": "How deep.", "note": "Two criteria."},
    ):
        reading = read_criteria(value)
        assert names(reading) == ["Clarity"]
        assert [p.startswith("Depth: left out") for p in reading.problems] == [True]


def test_a_criterion_that_stands_twice_costs_itself_only() -> None:
    """Which of the two contents was meant cannot be known."""
    good = '{"accepted_values": ["poor", "good"]}'
    for text in (
        f'{{"A": {good}, "B": {good}, "A": {{"accepted_values": ["bad", "fair", "great"]}}}}',
        f'[{{"name": "A", "accepted_values": ["no", "yes"], {good[1:]}, {{"name": "B", {good[1:]}]',
        f'{{"criteria": {{"A": ["bad", "good"], "B": {good}, "A": ["no", "yes"]}}}}',
    ):
        reading = read_criteria(text)
        assert names(reading) == ["B"]
        assert reading.problems == ["A: left out: it stands twice with different content"]
    same = read_criteria(f'{{"A": {good}, "A": {good}}}')
    assert (names(same), same.problems) == (["A"], [])


def test_sub_criteria_as_a_list_and_as_a_mapping_without_levels_of_the_parent() -> None:
    parts = {"Wording": ["poor", "good"], "Order": {"good": "", "fair": "", "poor": ""}}
    listed = [{"name": name, "accepted_values": levels} for name, levels in parts.items()]
    as_list = {"name": "Clarity", "description": "d", "sub_criteria": listed}
    mapped = {name: {"accepted_values": levels} for name, levels in parts.items()}
    as_mapping = {"Clarity": {"description": "d", "sub_criteria": mapped}}
    for value in ([as_list], as_list, as_mapping, json.dumps(as_mapping)):
        parent = only(value)
        assert parent.accepted_values == ()
        assert [c.id for c in parent.sub_criteria] == ["wording", "order"]
        assert parent.sub_criteria[1].accepted_values == ("poor", "fair", "good")
    leaf = {"name": "Leaf", "accepted_values": ["poor", "good"]}
    deep = [{"name": "Top", "sub_criteria": [{"name": "Mid", "sub_criteria": [leaf, leaf]}]}]
    assert [c.id for c in only(deep).sub_criteria[0].sub_criteria] == ["leaf", "leaf-2"]


def test_a_reply_that_breaks_off_loses_the_criterion_it_broke_in() -> None:
    text = json.dumps([CLARITY, ACCURACY, {**CLARITY, "name": "Last"}])
    cut = text[: text.rindex('"clear"')]  # two of three levels of the last one are complete
    reading = read_criteria(cut)
    assert names(reading) == ["Clarity", "Accuracy"]
    assert reading.rung == "salvaged"
    assert reading.problems == ["the reply broke off in 'Last', left out"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "{}",
        '{"criteria": []}',
        '{"error": "overloaded"}',
        '[{"name": "Clarity"}]',
        '[{"name": "C", "accepted_values": ["one"]}]',
        '["clarity"]',
    ],
)
def test_nothing_readable_is_an_error(text: str) -> None:
    with pytest.raises(ReplyError):
        read_criteria(text)


def test_expected_directions_of_known_operators_only() -> None:
    truncate = {"direction": "none", "why": "x"}
    expect = {"pad": "lower", "truncate": truncate, "drop_words": "sideways", "explode": "lower"}
    criterion = only([{"name": "C", "accepted_values": ["bad", "good"], "expect": expect}])
    assert criterion.expect == {"pad": "lower", "truncate": "none"}


_LEVEL = st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.none())
_KEYS = ("name", "description", "accepted_values", "sub_criteria", "scale", "order", "hint", "x")
_VALUE = st.recursive(
    st.one_of(_LEVEL, st.lists(_LEVEL, max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5)
    ),
    max_leaves=15,
)


@pytest.mark.slow
@given(_VALUE)
def test_any_value_is_read_or_refused(value: Any) -> None:
    try:
        reading = read_criteria(json.dumps(value))
    except ReplyError:
        return
    assert reading.criteria
    for criterion in reading.criteria:
        assert Criterion.model_validate(criterion.model_dump()) == criterion


# What a person reads in the ten recorded replies, in their order. Levels as written in the reply;
# `<` they run worst first, `>` best first (to be reversed), `~` neither
# (to be sorted by the strength of their words), `?` no clear order, `=` nominal.
EXPECTED = [
    "Accuracy <4, Explanation clarity <4, Response speed <4, Relevant use of tools <4, "
    "Concept application <4",
    "Accuracy <3, Completeness <3, Clarity <3, Efficiency <3, Notation <3, Concept Approach <3",
    "Accuracy >4, Efficiency >4, Presentation >4, Context appropriateness >4",
    "Accuracy >2, Conciseness <3, Problem solving time >4, Clarity <3, Difficulty level "
    "?5, Mathematics discipline =6",
    "Accuracy >3, Completeness >3, Clarity >5, Efficiency >5, Relevant illustrations >5 na",
    "Accuracy ?3, Completeness ?3, Efficiency ~3, Methodology ~3, Clarity ~3, Use of language ~3",
    "Accuracy <4, Efficiency <4, Clarity <4, Completeness <4, Correct Use of Math "
    "Concepts and Formulas <4",
    "Accuracy >3, Completeness >3, Clarity >3, Methodology >3, Response time >3",
    "Accuracy >3, Conciseness >3, Problem understanding >3, Methodology >3, Explanation "
    "clarity >3, Solution efficiency >3, Response time >3",
    "Accuracy >4, Conciseness >4, Relevance >4, Efficiency >4, Logic and Structure >4, "
    "Use of Resources ?4, Mathematical Notation >4, Explanation and Justification >4, "
    "Correctness of Answer Format >4, Handling of Edge Cases >4",
]
FIRST_AND_LAST = {  # worst and best of some of them
    (2, "Presentation"): ("poor presentation", "excellent presentation"),
    (3, "Problem solving time"): ("10+ minutes", "0-1 minutes"),
    (4, "Relevant illustrations"): ("very_ineffective", "very_effective"),
    (7, "Accuracy"): ("No", "Yes"),
    (8, "Accuracy"): ("major_inaccuracy", "perfect"),
    (9, "Accuracy"): ("Incorrect", "Correct"),
    (9, "Handling of Edge Cases"): ("No consideration", "Complete"),
}


def _mark(criterion: Criterion, problems: list[str]) -> str:
    turned = any(p.startswith(f"{criterion.name}: reversed") for p in problems)
    in_order = any(p.startswith(f"{criterion.name}: put in order") for p in problems)
    unclear = criterion.order == "unclear"
    way = ">" if turned else "~" if in_order else "<"
    sign = "=" if criterion.scale == "nominal" else "?" if unclear else way
    na = " na" if criterion.allow_na else ""
    return f"{criterion.name} {sign}{len(criterion.accepted_values)}{na}"


@pytest.mark.skipif(not RECORDED.is_file(), reason="recorded replies are not at hand")
def test_all_recorded_replies_are_read_as_a_person_reads_them() -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    readings = [read_criteria(json.loads(line)["raw"]) for line in lines]
    marks = [", ".join(_mark(c, r.problems) for c in r.criteria) for r in readings]
    assert marks == EXPECTED
    for (at, name), ends in FIRST_AND_LAST.items():
        (criterion,) = [c for c in readings[at].criteria if c.name == name]
        assert (criterion.accepted_values[0], criterion.accepted_values[-1]) == ends
    meanings = readings[5].criteria[0].hint
    assert meanings is not None
    assert "correct: The given answer is correct." in meanings
