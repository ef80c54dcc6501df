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
CLARITY = {"name": "Clarity", "description": "Easy to read.",
           "accepted_values": ["unclear", "fairly clear", "clear"]}  # fmt: skip
ACCURACY = {"name": "Accuracy", "description": "Right.", "accepted_values": ["wrong", "right"]}


def only(value: Any) -> Criterion:
    reading = read_criteria(value)
    assert len(reading.criteria) == 1
    return reading.criteria[0]


def names(reading: CriticReading) -> list[str]:
    return [c.name for c in reading.criteria]


def values(levels: Any, **more: Any) -> Criterion:
    return only([{"name": "Clarity", "accepted_values": levels, **more}])


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        (json.dumps([CLARITY, ACCURACY]), "json"),
        (json.dumps({"criteria": [CLARITY, ACCURACY]}), "json"),
        (json.dumps({"task": "x", "evaluation_criteria": [CLARITY, ACCURACY]}), "json"),
        (json.dumps({"Clarity": CLARITY, "Accuracy": ACCURACY}), "json"),
        (json.dumps({"result": {"Clarity": CLARITY, "Accuracy": ACCURACY}}), "json"),
        (json.dumps([{"Clarity": CLARITY}, {"Accuracy": ACCURACY}]), "json"),
        ("```json\n" + json.dumps([CLARITY, ACCURACY], indent=1) + "\n```", "fenced"),
        ("I propose [two] criteria:\n" + json.dumps([CLARITY, ACCURACY]) + "\nDone.", "buried"),
        (repr([CLARITY, ACCURACY]), "loose"),
        ("```python\ncriteria = " + repr([CLARITY, ACCURACY]) + "\n```", "loose"),
        (json.dumps(CLARITY) + "\n" + json.dumps(ACCURACY), "buried"),
        # an example repeated at the end does not take the place of the list
        (json.dumps([CLARITY, ACCURACY]) + "\nA level may be " + json.dumps(CLARITY), "buried"),
    ],
)
def test_shapes_of_replies(text: str, rung: str) -> None:
    reading = read_criteria(text)
    assert names(reading) == ["Clarity", "Accuracy"]
    assert reading.criteria[0].accepted_values == ("unclear", "fairly clear", "clear")
    assert reading.criteria[1].accepted_values == ("wrong", "right")
    assert reading.rung == rung
    assert reading.problems == []


@pytest.mark.parametrize("key", ["criterion", "title", "Metric", "criterion_name"])
def test_aliases_of_keys(key: str) -> None:
    criterion = only(
        [{key: "Clarity", "Definition": "How clear.", "acceptedValues": ["no", "yes"]}]
    )
    assert (criterion.name, criterion.description) == ("Clarity", "How clear.")
    assert criterion.accepted_values == ("no", "yes")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["unclear", "clear"], ("unclear", "clear")),
        ({"unclear": "I am lost", "clear": "I can follow"}, ("unclear", "clear")),
        ([{"unclear": "I am lost"}, {"clear": "I can follow"}], ("unclear", "clear")),
        ([{"label": "unclear", "description": "lost"}, {"label": "clear"}], ("unclear", "clear")),
        (["0 - unclear", "1 - clear"], ("0 - unclear", "1 - clear")),
        ({"0": "unclear", "1": "clear"}, ("0 - unclear", "1 - clear")),
        ({"clear": 2, "unclear": 0, "fairly clear": 1}, ("unclear", "fairly clear", "clear")),
        ([1, 2, 3], ("1", "2", "3")),
        ([False, True], ("False", "True")),
        ([True, False], ("False", "True")),
        ("unclear, fairly clear, clear", ("unclear", "fairly clear", "clear")),
        ("unclear / clear", ("unclear", "clear")),
        ("- unclear\n- clear", ("unclear", "clear")),
        (["clear", "unclear"], ("unclear", "clear")),
        (["unclear", "clear", "Clear "], ("unclear", "clear")),
        ({"levels": ["poor", "fair", "good"]}, ("poor", "fair", "good")),
        ({"type": "string", "enum": ["poor", "good"]}, ("poor", "good")),
        ({"type": "ordinal", "values": {"1": "poor", "2": "good"}}, ("1 - poor", "2 - good")),
        ({"type": "boolean"}, ("No", "Yes")),
        (["Yes/No"], ("No", "Yes")),
        (["Poor, Fair, Good"], ("Poor", "Fair", "Good")),
        ("Yes or No", ("No", "Yes")),
        ("integer values (1, 2, 3, 4, 5)", ("1", "2", "3", "4", "5")),
    ],
)
def test_accepted_values(written: Any, read: tuple[str, ...]) -> None:
    criterion = values(written)
    assert criterion.accepted_values == read
    assert criterion.order == "worst_to_best"
    assert criterion.scale == ("binary" if len(read) == 2 else "ordinal")


@pytest.mark.parametrize(
    ("written", "bounds"),
    [
        ("1-5", (1, 5)),
        ("0 to 100", (0, 100)), ({"min": 0, "max": 10}, (0, 10)), ({"range": [1, 7]}, (1, 7)),
        (list(range(101)), (0, 100)), ([{"range": [1, 100]}], (1, 100)),
        ({"type": "integer", "minimum": 1, "maximum": 5}, (1, 5)),
        ({"min": "1", "max": "5"}, (1, 5)),
        ({"range": {"min": 0, "max": 1}}, (0, 1)), ({"scale": "1-5"}, (1, 5)),
        ("range: 0-1", (0, 1)), ({"range": "0-1"}, (0, 1)), ("scale of 1 to 5", (1, 5)),
        ("an integer between 1 and 10", (1, 10)), ("percentage (0-100)", (0, 100)),
        ("Likert 1-5", (1, 5)), (["1 (worst) to 5 (best)"], (1, 5)),
        ("1-5, where 5 is the best", (1, 5)), ("1 (best) to 5 (worst)", (5, 1)),
        ("1-5 where 1 is the best and 5 the worst", (5, 1)),
        ("integer values (1, 2, 3, ..., 10)", (1, 10)), (["1", "2", "...", "10"], (1, 10)),
    ],
)  # fmt: skip
def test_numeric_scales(written: Any, bounds: tuple[float, float]) -> None:
    criterion = values(written)
    assert (criterion.scale, criterion.numeric_range) == ("numeric", bounds)
    assert criterion.accepted_values == ()


@pytest.mark.parametrize(
    "more",
    [
        {"scale": "1-5"}, {"scale": {"min": 1, "max": 5}}, {"range": [1, 5]}, {"min": 1, "max": 5},
        {"type": "integer", "minimum": 1, "maximum": 5}, {"rating_scale": "1-5"},
        {"type": "scale", "range": "1-5"}, {"scale": "numeric", "accepted_values": [1, 5]},
    ],
)  # fmt: skip
def test_a_range_stands_under_other_keys_too(more: dict[str, Any]) -> None:
    criterion = only({"Clarity": {"description": "d", **more}})
    assert (criterion.scale, criterion.numeric_range) == ("numeric", (1, 5))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[1, 2, 3, ...]", None), ("any integer", None), ("<number>", None), ("N/A", None),
        ("0-100", (0, 100)), ("[1..5]", (1, 5)), ("[0, 1, ..., 10]", (0, 10)),
        ("range: 0-1", (0, 1)), ('["poor" | "good"]', ("poor", "good")),
        ("[poor, fair, good]", ("poor", "fair", "good")), ('"poor" or "good"', ("poor", "good")),
        ('["poor", "good"', ("poor", "good")), ("{1, 2, 3}", ("1", "2", "3")),
    ],
)  # fmt: skip
def test_levels_that_are_no_json_cost_no_other_criterion(written: str, read: Any) -> None:
    others = json.dumps(CLARITY), json.dumps(ACCURACY)
    text = f'[{others[0]},\n{{"name": "Mid", "accepted_values": {written}}},\n{others[1]}]'
    reading = read_criteria(text)
    found = {c.name: c.accepted_values or c.numeric_range for c in reading.criteria}
    assert found.pop("Mid", None) == read
    assert list(found) == ["Clarity", "Accuracy"]
    assert any(p.startswith("Mid: left out") for p in reading.problems) == (read is None)


def test_a_criterion_without_levels_beside_others_is_named() -> None:
    beside: list[Any] = [
        [CLARITY, {"name": "Depth", "description": "How deep."}],
        {"Clarity": CLARITY, "Depth": "How deep.", "note": "Two criteria."},
    ]
    for value in beside:
        reading = read_criteria(value)
        assert names(reading) == ["Clarity"]
        (problem,) = reading.problems
        assert problem.startswith("Depth: left out")


def test_numbered_levels_with_a_long_description_stay_numbers() -> None:
    long = "The answer is wrong in nearly all respects, and an error follows another one."
    criterion = values({"1": long, "2": "Contains an error", "3": "Contains an error or none"})
    assert (criterion.accepted_values, criterion.order) == (("1", "2", "3"), "worst_to_best")
    assert criterion.hint is not None
    assert criterion.hint.startswith(f"1: {long}; 2: Contains an error; 3: ")


# (accepted values, stated order) of a criterion "Error rate" or "Quality": bounds, order, note
RANGES = [
    ("Quality", "0-100", None, (0, 100), "worst_to_best", None),
    ("Quality", "0-100%", None, (0, 100), "worst_to_best", None),
    ("Quality", ["0-100%"], None, (0, 100), "worst_to_best", None),
    ("Retrieval quality", "1-5", None, (1, 5), "worst_to_best", None),
    ("Quality", "100-0", None, (0, 100), "worst_to_best", "turned round: 100 is the best, 0 the"),
    ("Quality", "0-100", "best_to_worst", (100, 0), "worst_to_best", "turned round: 0 is the best"),
    ("Quality", "100-0", "worst_to_best", (100, 0), "worst_to_best", None),
    ("Error rate", "0-100%", None, (0, 100), "unclear", "order unclear: more of 'Error rate' may"),
    ("Error rate", "100-0", "worst_to_best", (100, 0), "worst_to_best", None),
]


@pytest.mark.parametrize(("name", "written", "stated", "bounds", "order", "note"), RANGES)
def test_more_is_better_on_a_range_unless_it_is_stated_otherwise(
    name: str, written: Any, stated: str | None, bounds: tuple[int, int], order: str,
    note: str | None,
) -> None:  # fmt: skip
    raw = {"name": name, "accepted_values": written, "order": stated}
    reading = read_criteria([raw])
    (criterion,) = reading.criteria
    assert (criterion.numeric_range, criterion.order, criterion.scale) == (bounds, order, "numeric")
    assert bool(reading.problems) == bool(note)
    assert all(p.startswith(f"{name}: {note}") for p in reading.problems)


CODE = [
    ("[x*0.1 for x in range(11)]", (0, 1)),
    ("[i / 10 for i in range(0, 11)]", (0, 1)),
    ("[str(i) for i in range(1, 6)]", (1, 5)),
    ("np.arange(0, 1.1, 0.1)", (0, 1)),
    ("list(np.arange(0, 1.1, 0.1))", (0, 1)),
    ("np.arange(0, 11).tolist()", (0, 10)),
    ("numpy.linspace(0, 1, 5)", (0, 1)),
    ("range(0, 101, 10)", (0, 100)),
    ("list(range(1,6))", (1, 5)),
    ("range(5)", (0, 4)),
]


@pytest.mark.parametrize(("code", "bounds"), CODE)
def test_numbers_written_as_code_are_read(code: str, bounds: tuple[int, int]) -> None:
    text = '[{"name": "Quality", "accepted_values": ' + code + "}]"
    reading = read_criteria(text)
    assert reading.criteria[0].numeric_range == bounds
    assert reading.rung == "loose"
    assert values(code).numeric_range == bounds


@pytest.mark.parametrize(
    "code",
    ["np.random.rand(5)", "[f(x) for x in range(3)]", "range(0, 10**9)", "range(3, 3)",
     "[x for x in range(3) if x]", "list(open(0))", "np.linspace(0, 1, 1)",
     "[x*x for x in range(5)]"],
)  # fmt: skip
def test_code_that_is_no_list_of_numbers_costs_its_criterion_only(code: str) -> None:
    text = json.dumps([{"name": "Odd", "accepted_values": "CODE"}, CLARITY, ACCURACY])
    reading = read_criteria(text.replace('"CODE"', code))
    assert names(reading) == ["Clarity", "Accuracy"]
    (line,) = reading.problems
    assert line.startswith("Odd: left out: ")


def test_numbers_as_keys() -> None:
    text = '{"Accuracy": {"description": "d", "accepted_values": {0: "Incorrect", 1: "Correct"}}}'
    assert only(text).accepted_values == ("0 - Incorrect", "1 - Correct")
    assert only(text.replace("0:", "False:").replace("1:", "True:")).accepted_values == (
        "False", "True",
    )  # fmt: skip


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


def test_meanings_of_levels_go_into_the_hint() -> None:
    criterion = values({"clear": "I can follow.", "unclear": "I am lost."}, hint="Read once.")
    assert criterion.hint == "Read once.; clear: I can follow.; unclear: I am lost."


def test_not_applicable_is_taken_out_of_the_levels() -> None:
    criterion = values(["clear", "unclear", "not_applicable"])
    assert criterion.allow_na
    assert criterion.accepted_values == ("unclear", "clear")
    assert not values(["clear", "unclear"]).allow_na
    assert values(["clear", "unclear"], allow_na=True).allow_na


@pytest.mark.parametrize(
    ("levels", "stated", "scale", "expected"),
    [
        (["bad", "good"], None, None, ("binary", "worst_to_best", ("bad", "good"))),
        (["good", "bad"], None, None, ("binary", "worst_to_best", ("bad", "good"))),
        (["good", "bad"], "Descending", None, ("binary", "worst_to_best", ("bad", "good"))),
        # stated and words disagree: nobody's word is taken
        (["good", "bad"], "worst_to_best", None, ("binary", "unclear", ("good", "bad"))),
        (["bad", "good"], None, "nominal", ("binary", "unclear", ("bad", "good"))),
        # the words say nothing: the statement counts
        (["mauve", "teal"], "low to high", None, ("binary", "worst_to_best", ("mauve", "teal"))),
        (["mauve", "teal"], None, "nominal", ("nominal", "unclear", ("mauve", "teal"))),
    ],
)  # fmt: skip
def test_order_stated_and_told(
    levels: list[str],
    stated: str | None,
    scale: str | None,
    expected: tuple[str, str, tuple[str, ...]],
) -> None:
    raw = {"name": "Thing", "accepted_values": levels, "order": stated, "scale": scale}
    reading = read_criteria([raw])
    (criterion,) = reading.criteria
    assert (criterion.scale, criterion.order, criterion.accepted_values) == expected
    changed = expected[1] == "unclear" or list(expected[2]) != levels
    silent = expected[0] == "nominal" and scale == "nominal"  # as it was stated
    assert bool(reading.problems) == (changed and not silent)
    assert all(p == f"Thing: {criterion.order_reason}" for p in reading.problems if "turned" in p)


def test_sub_criteria_as_a_list_and_as_a_mapping_without_levels_of_the_parent() -> None:
    as_list = {"name": "Clarity", "description": "d", "sub_criteria": [
        {"name": "Wording", "accepted_values": ["poor", "good"]},
        {"name": "Order", "accepted_values": ["poor", "fair", "good"]},
    ]}  # fmt: skip
    as_mapping = {"Clarity": {"description": "d", "sub_criteria": {
        "Wording": {"description": "", "accepted_values": ["poor", "good"]},
        "Order": {"description": "", "accepted_values": {"good": "", "fair": "", "poor": ""}},
    }}}  # fmt: skip
    for value in ([as_list], as_list, as_mapping, json.dumps(as_mapping)):
        parent = only(value)
        assert parent.accepted_values == ()
        assert [c.id for c in parent.sub_criteria] == ["wording", "order"]
        assert parent.sub_criteria[1].accepted_values == ("poor", "fair", "good")
    leaf = {"name": "Leaf", "accepted_values": ["poor", "good"]}
    value = [{"name": "Top", "sub_criteria": [{"name": "Mid", "sub_criteria": [leaf, leaf]}]}]
    assert [c.id for c in only(value).sub_criteria[0].sub_criteria] == ["leaf", "leaf-2"]


def test_one_bad_criterion_loses_none_of_the_others() -> None:
    bad: list[dict[str, Any]] = [
        {"name": "Empty", "accepted_values": []},
        {"name": "Single", "accepted_values": ["good"]},
        {"name": "Number", "accepted_values": 7},
        {"name": "Prose", "accepted_values": "good"},
        {"name": "Null", "accepted_values": ["good", None]},
    ]
    reading = read_criteria([CLARITY, *bad, ACCURACY])
    assert names(reading) == ["Clarity", "Accuracy"]
    assert [p.split(":")[0] for p in reading.problems] == [b["name"] for b in bad]
    assert all("left out" in p for p in reading.problems)


def test_a_reply_that_breaks_off_loses_the_criterion_it_broke_in() -> None:
    text = json.dumps([CLARITY, ACCURACY, {**CLARITY, "name": "Last"}])
    cut = text[: text.rindex('"clear"')]  # two of three levels of the last one are complete
    reading = read_criteria(cut)
    assert names(reading) == ["Clarity", "Accuracy"]
    assert reading.rung == "salvaged"
    assert reading.problems == ["the reply broke off in 'Last', left out"]


@pytest.mark.parametrize(
    "text",
    ["", "I cannot do that.", "[]", "{}", '{"criteria": []}', '{"error": "overloaded"}',
     '[{"name": "Clarity"}]', '[{"name": "C", "accepted_values": ["one"]}]', '["clarity"]'],
)  # fmt: skip
def test_nothing_readable_is_an_error(text: str) -> None:
    with pytest.raises(ReplyError):
        read_criteria(text)


def test_expected_directions_of_known_operators_only() -> None:
    expect = {"pad": "lower", "truncate": {"direction": "none", "why": "x"},
              "drop_words": "sideways", "explode": "lower"}  # fmt: skip
    assert values(["bad", "good"], expect=expect).expect == {"pad": "lower", "truncate": "none"}


_LEVEL = st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.none())
_VALUE = st.recursive(
    st.one_of(_LEVEL, st.lists(_LEVEL, max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "description", "accepted_values", "sub_criteria", "scale",
                             "order", "criteria", "hint", "expect", "x"]),
            inner, max_size=5,
        ),
    ),
    max_leaves=15,
)  # fmt: skip


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
# `<` they run worst first, `>` best first (to be turned round), `~` neither
# (to be sorted by the strength of their words), `?` no clear order, `=` nominal.
EXPECTED: list[list[str]] = [
    ["Accuracy <4", "Explanation clarity <4", "Response speed <4", "Relevant use of tools <4",
     "Concept application <4"],
    ["Accuracy <3", "Completeness <3", "Clarity <3", "Efficiency <3", "Notation <3",
     "Concept Approach <3"],
    ["Accuracy >4", "Efficiency >4", "Presentation >4", "Context appropriateness >4"],
    ["Accuracy >2", "Conciseness <3", "Problem solving time >4", "Clarity <3",
     "Difficulty level ?5", "Mathematics discipline =6"],
    ["Accuracy >3", "Completeness >3", "Clarity >5", "Efficiency >5",
     "Relevant illustrations >5 na"],
    ["Accuracy ?3", "Completeness ?3", "Efficiency ~3", "Methodology ~3", "Clarity ~3",
     "Use of language ~3"],
    ["Accuracy <4", "Efficiency <4", "Clarity <4", "Completeness <4",
     "Correct Use of Math Concepts and Formulas <4"],
    ["Accuracy >3", "Completeness >3", "Clarity >3", "Methodology >3", "Response time >3"],
    ["Accuracy >3", "Conciseness >3", "Problem understanding >3", "Methodology >3",
     "Explanation clarity >3", "Solution efficiency >3", "Response time >3"],
    ["Accuracy >4", "Conciseness >4", "Relevance >4", "Efficiency >4", "Logic and Structure >4",
     "Use of Resources ?4", "Mathematical Notation >4", "Explanation and Justification >4",
     "Correctness of Answer Format >4", "Handling of Edge Cases >4"],
]  # fmt: skip
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
    turned = any(p.startswith(f"{criterion.name}: turned round") for p in problems)
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
    marks = [[_mark(c, r.problems) for c in r.criteria] for r in readings]
    assert marks == EXPECTED
    for (at, name), ends in FIRST_AND_LAST.items():
        (criterion,) = [c for c in readings[at].criteria if c.name == name]
        assert (criterion.accepted_values[0], criterion.accepted_values[-1]) == ends
    meanings = readings[5].criteria[0].hint
    assert meanings is not None
    assert "correct: The given answer is correct." in meanings
