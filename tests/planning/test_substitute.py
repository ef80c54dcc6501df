"""Substitutes keep what they must and change what they should."""

from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.planning.case import RESTART, Activity, Case, OrderRule, TimeRule
from agenteval.planning.grammar import strip
from agenteval.planning.substitute import KINDS, Choices, base_of, substitutes
from agenteval.planning.suite import case_line, contradiction, read_case
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import built_in_topics
from tests.support.english import words_in, written
from tests.thorough import often

BASE = Generator(Shape(actions=(2, 6)), seed=31)
EXTENDED = Generator(Shape(actions=(2, 5), times=(1, 3), extended=True), seed=31)
numbers = st.integers(0, 500)


def places(case: Case) -> dict[str, int]:
    return {action.tool: i for i, action in enumerate(case.actions)}


def rules_by_place(case: Case, *, hours: bool = True) -> set[tuple[object, ...]]:
    place = places(case)
    return {
        (place[r.first], place[r.second])
        if isinstance(r, OrderRule)
        else (place[r.tool], r.side, r.hour if hours else None)
        for r in case.constraints
    }


def good_orders(case: Case) -> set[tuple[int, ...]]:
    pairs = [p for p in rules_by_place(case) if len(p) == 2]
    return {
        order
        for order in permutations(range(case.n))
        if all(order.index(a) < order.index(b) for a, b in pairs)
    }


@settings(max_examples=60, deadline=None)
@given(number=numbers, seed=st.integers(0, 9))
def test_terminal_keeps_skeleton_and_actions_and_changes_words(number: int, seed: int) -> None:
    case = BASE.case(number)
    base = base_of(case)
    for new in substitutes(base, "terminal", 2, seed):
        tree = base_of(new).tree
        assert strip(tree) == strip(base.tree)
        assert all(a != b for a, b in zip(words_in(tree), words_in(base.tree), strict=True))
        assert (new.actions, new.tools, new.topic) == (case.actions, case.tools, case.topic)
        assert rules_by_place(new) == rules_by_place(case)


@settings(max_examples=60, deadline=None)
@given(number=numbers, extended=st.booleans())
def test_topic_changes_the_actions_alone(number: int, extended: bool) -> None:
    case = (EXTENDED if extended else BASE).case(number)
    base = base_of(case)
    for new in substitutes(base, "topic", 2):
        assert base_of(new).tree == base.tree
        activities = {t.role: t.activities for t in built_in_topics()}[new.topic]
        assert new.topic != case.topic
        assert {action.phrase for action in new.actions} <= set(activities)
        assert {t.name for t in new.tools} - {RESTART} == {a.tool for a in new.actions}
        assert new.topic in new.request
        assert new.text in new.request
        assert rules_by_place(new) == rules_by_place(case)
        assert new.hours == case.hours
        assert (new.valid_plans, new.size and new.size.constraints) == (
            case.valid_plans, case.size and case.size.constraints,
        )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(number=numbers, extended=st.booleans(), draws=st.sampled_from([1, 8]))
def test_structure_says_the_same_in_other_sentences(
    number: int, extended: bool, draws: int
) -> None:
    case = (EXTENDED if extended else BASE).case(number)
    base = base_of(case)
    for new in substitutes(base, "structure", 2, choices=Choices(draws=draws)):
        assert strip(base_of(new).tree) != strip(base.tree)
        assert good_orders(new) == good_orders(case)
        assert {r for r in rules_by_place(new) if len(r) == 3} == {
            r for r in rules_by_place(case) if len(r) == 3
        }
        assert (new.actions, new.hours) == (case.actions, case.hours)


def test_any_other_structure_of_one_order_is_another_one() -> None:
    """Ten skeletons say one order: drawn without care, one in ten would be the original's."""
    base = base_of(written("Tea precedes soup.", ("tea", "soup")))
    drawn = substitutes(base, "structure", 80, choices=Choices(draws=1))
    skeletons = {strip(base_of(new).tree) for new in drawn}
    assert strip(base.tree) not in skeletons
    assert len(skeletons) == 9


@settings(max_examples=20, deadline=None)
@given(number=numbers)
def test_every_substitute_is_a_valid_case_of_a_suite(number: int) -> None:
    for generator in (BASE, EXTENDED):
        base = base_of(generator.case(number))
        for kind in KINDS:
            for place, new in enumerate(substitutes(base, kind, 2), 1):
                assert new.id == f"{base.case.id}~{kind}{place}"
                assert read_case(case_line(new), "line") == new
                assert contradiction(new) == ()


def feasible(case: Case, without: int | None = None) -> set[tuple[int, ...]]:
    """Starts of all schedules that keep the rules, by trying every start; small cases alone."""
    hours = case.hours
    assert hours is not None
    rules = [r for i, r in enumerate(case.constraints) if i != without]
    days = product(*(range(25 - length) for length in hours))
    apart = (starts for starts in days if no_overlap(starts, hours))
    return {starts for starts in apart if all(kept(r, case, starts, hours) for r in rules)}


def no_overlap(starts: tuple[int, ...], hours: tuple[int, ...]) -> bool:
    spans = sorted(zip(starts, hours, strict=True))
    return all(a + length <= b for (a, length), (b, _) in pairwise(spans))


def kept(
    rule: OrderRule | TimeRule, case: Case, starts: tuple[int, ...], hours: tuple[int, ...]
) -> bool:
    place = places(case)
    if isinstance(rule, OrderRule):
        first, second = place[rule.first], place[rule.second]
        return starts[first] + hours[first] <= starts[second]
    at = place[rule.tool]
    if rule.side == "before":
        return starts[at] + hours[at] <= rule.hour
    return starts[at] >= rule.hour


def implied(case: Case) -> set[int]:
    whole = feasible(case)
    return {i for i in range(len(case.constraints)) if feasible(case, i) == whole}


def test_other_hours_stay_feasible_and_nothing_becomes_implied() -> None:
    generator = Generator(Shape(actions=(2, 3), times=(1, 2), extended=True), seed=8)
    changed = 0
    for case in generator.cases(often(6, 12)):
        base = base_of(case)
        (new,) = substitutes(base, "terminal", 1)
        assert rules_by_place(new, hours=False) == rules_by_place(case, hours=False)
        assert feasible(new)
        assert implied(new) <= implied(case)
        changed += rules_by_place(new) != rules_by_place(case)
    assert changed >= often(5, 11)


def test_an_hour_without_choice_stays() -> None:
    """Tea takes 23 hours: it ends at 23 or 24, and only "before 23:00" is not said by the day."""
    case = written("Tea happens before 23:00.", ["tea"], durations={"tea": 23})
    (new,) = substitutes(base_of(case), "terminal", 1)
    assert new.text.endswith(" 23:00.")
    assert new.text != case.text


def test_substitutes_are_seeded_and_differ() -> None:
    base = base_of(BASE.case(0))
    for kind in KINDS:
        three = substitutes(base, kind, 3, 5)
        assert three == substitutes(base, kind, 3, 5)
        assert three[:2] == substitutes(base, kind, 2, 5)
        assert three != substitutes(base, kind, 3, 6)
        assert len({case.text for case in (*three, base.case)}) == 4


def test_a_request_of_ones_own_keeps_its_frame_and_tools() -> None:
    case = written(
        "Tea precedes soup.",
        ["tea", "soup"],
        request="Hello cook!\nTea precedes soup.\nBe quick.",
        topic="cook",
        tools=[{"name": "tea", "description": "makes tea"}, {"name": "soup"}],
    )
    base = base_of(case)
    (new,) = substitutes(base, "terminal", 1)
    assert new.request == f"Hello cook!\n{new.text}\nBe quick."
    assert new.tools == case.tools
    (new,) = substitutes(base, "topic", 1)
    assert new.request == f"Hello {new.topic}!\n{new.text}\nBe quick."
    assert [tool.name for tool in new.tools] == [action.tool for action in new.actions]


def test_a_case_without_topic_stays_without() -> None:
    (new,) = substitutes(base_of(written("Tea precedes soup.", ("tea", "soup"))), "terminal", 1)
    assert new.topic == ""
    assert "this job: assistant." in new.request
    assert new.text in new.request


def test_what_cannot_be_dissected() -> None:
    plain = Case(id="x", actions=(Activity(phrase="tea", tool="tea"),), request="Drink tea.")
    with pytest.raises(InputError, match="x: it cannot be dissected: it has no synthesized text"):
        base_of(plain)
    with pytest.raises(InputError, match="x: its line in the suite has no `tree`; run `agenteval"):
        base_of(plain.model_copy(update={"text": "Drink tea."}))
    good = written("Tea precedes soup.", ("tea", "soup"))
    with pytest.raises(InputError, match=r"hand: its `tree` and its `text` differ.*--lexicon"):
        base_of(good.model_copy(update={"text": "Soup precedes tea."}))
    with pytest.raises(InputError, match="hand: its `tree` cannot be read: sentences"):
        base_of(good.model_copy(update={"tree": {"sentences": 1}}))
    other = (OrderRule(first="soup", second="tea"),)
    with pytest.raises(InputError, match="differ"):
        base_of(Case.model_validate({**good.model_dump(), "constraints": other}))
    with pytest.raises(InputError, match="does not hold its text"):
        base_of(good.model_copy(update={"request": "Please."}))
    with pytest.raises(InputError, match="no other topic has 2 activities"):
        substitutes(base_of(good), "topic", 1, choices=Choices(topics=()))
