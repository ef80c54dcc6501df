"""Substitutes keep what they must and change what they should."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.planning.case import RESTART, Activity, Case, OrderRule, TimeLimit, TimeRule, holds
from agenteval.planning.grammar import strip
from agenteval.planning.substitute import VARIANTS, base_of, substitutes
from agenteval.planning.suite import case_line, contradiction, read_case
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import built_in_topics
from tests.support.english import words_in, written
from tests.thorough import often

BASE = Generator(Shape(actions=(2, 6)), seed=31)
EXTENDED = Generator(Shape(actions=(2, 5), times=(1, 3), extended=True), seed=31)
ACTIVITIES = {topic.role: topic.activities for topic in built_in_topics()}
numbers = st.integers(0, 500)


def constraints(case: Case) -> set[object]:
    return {entry.constraint for entry in case.stated}


@settings(max_examples=40, deadline=None)
@given(number=numbers, seed=st.integers(0, 9))
def test_terminal_keeps_skeleton_and_actions_and_changes_words(number: int, seed: int) -> None:
    base = base_of(case := BASE.case(number))
    for new in substitutes(base, "terminal", 2, seed):
        tree = base_of(new).tree
        assert strip(tree) == strip(base.tree)
        assert all(a != b for a, b in zip(words_in(tree), words_in(base.tree), strict=True))
        assert (new.actions, new.tools, new.topic) == (case.actions, case.tools, case.topic)
        assert constraints(new) == constraints(case)


@settings(max_examples=40, deadline=None)
@given(number=numbers, extended=st.booleans())
def test_topic_changes_the_actions_alone(number: int, extended: bool) -> None:
    base = base_of(case := (EXTENDED if extended else BASE).case(number))
    for new in substitutes(base, "topic", 2):
        assert base_of(new).tree == base.tree
        assert new.topic != case.topic
        assert {action.phrase for action in new.actions} <= set(ACTIVITIES[new.topic])
        assert {t.name for t in new.tools} - {RESTART} == {a.tool for a in new.actions}
        assert new.topic in new.request
        assert new.text in new.request
        assert constraints(new) == constraints(case)
        assert (new.hours, new.valid_plans) == (case.hours, case.valid_plans)


@settings(max_examples=30, deadline=None)
@given(number=numbers, extended=st.booleans(), draws=st.sampled_from([1, 8]))
def test_structure_has_the_same_plans_in_other_sentences(
    number: int, extended: bool, draws: int
) -> None:
    base = base_of(case := (EXTENDED if extended else BASE).case(number))
    for new in substitutes(base, "structure", 2, draws=draws):
        assert strip(base_of(new).tree) != strip(base.tree)
        assert (new.actions, new.hours) == (case.actions, case.hours)
        assert new.valid_plans == case.valid_plans
        times = [{c for c in constraints(k) if isinstance(c, TimeLimit)} for k in (new, case)]
        assert times[0] == times[1]


def test_the_structure_of_one_order_is_one_of_nine_others() -> None:
    """Ten skeletons state one order."""
    base = base_of(written("Tea precedes soup.", ("tea", "soup")))
    drawn = substitutes(base, "structure", 80, draws=1)
    skeletons = {strip(base_of(new).tree) for new in drawn}
    assert strip(base.tree) not in skeletons
    assert len(skeletons) == 9


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(number=numbers, generator=st.sampled_from([BASE, EXTENDED]))
def test_substitutes_are_valid_cases_seeded_and_different(
    number: int, generator: Generator
) -> None:
    base = base_of(generator.case(number))
    for variant in VARIANTS:
        cases = substitutes(base, variant, 2, 5)
        assert cases == substitutes(base, variant, 3, 5)[:2]
        assert cases != substitutes(base, variant, 2, 6)
        assert len({case.text for case in (*cases, base.case)}) == 3
        for place, new in enumerate(cases, 1):
            assert new.id == f"{base.case.id}~{variant}{place}"
            assert read_case(case_line(new), "line") == new
            assert contradiction(new) == ()


def schedules(case: Case, without: int | None = None) -> set[tuple[int, ...]]:
    """Starts of all schedules that keep the constraints, by trying every start."""
    kept = [entry.constraint for i, entry in enumerate(case.stated) if i != without]
    found = set()
    for starts in product(*(range(25 - length) for length in case.hours)):
        spans = [(s, s + d) for s, d in zip(starts, case.hours, strict=True)]
        apart = all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(spans, 2))
        if apart and all(holds(c, spans) for c in kept):
            found.add(starts)
    return found


def implied(case: Case) -> set[int]:
    return {i for i in range(len(case.constraints)) if schedules(case, i) == schedules(case)}


@pytest.mark.slow
def test_other_hours_stay_feasible_and_nothing_becomes_implied() -> None:
    generator = Generator(Shape(actions=(2, 3), times=(1, 2), extended=True), seed=8)
    changed = 0
    for case in generator.cases(often(6, 12)):
        (new,) = substitutes(base_of(case), "terminal", 1)
        for old_rule, rule in zip(case.constraints, new.constraints, strict=True):
            hour = {"hour": rule.hour} if isinstance(rule, TimeRule) else {}
            assert old_rule.model_copy(update=hour) == rule
        assert schedules(new)
        assert implied(new) <= implied(case)
        changed += constraints(new) != constraints(case)
    assert changed >= often(5, 11)


def test_an_hour_without_choice_stays() -> None:
    """Tea takes 23 hours: it ends at 23 or 24, so only "before 23:00" says something."""
    case = written("Tea happens before 23:00.", ["tea"], durations={"tea": 23})
    (new,) = substitutes(base_of(case), "terminal", 1)
    assert new.text.endswith(" 23:00.")
    assert new.text != case.text


def test_a_custom_request_keeps_its_frame_and_tools() -> None:
    case = written(
        "Tea precedes soup.",
        ["tea", "soup"],
        request="Hello cook!\nTea precedes soup.\nBe quick.",
        topic="cook",
        tools=[{"name": "tea", "description": "makes tea"}, {"name": "soup"}],
    )
    (new,) = substitutes(base_of(case), "terminal", 1)
    assert new.request == f"Hello cook!\n{new.text}\nBe quick."
    assert new.tools == case.tools
    (new,) = substitutes(base_of(case), "topic", 1)
    assert new.request == f"Hello {new.topic}!\n{new.text}\nBe quick."
    assert [tool.name for tool in new.tools] == [action.tool for action in new.actions]
    (new,) = substitutes(base_of(written("Tea precedes soup.", ("tea", "soup"))), "terminal", 1)
    assert (new.topic, "this job: assistant." in new.request) == ("", True)


TEA = Case(id="hand", actions=(Activity(phrase="tea", tool="tea"),), request="Drink tea.")
GOOD = written("Tea precedes soup.", ("tea", "soup"))


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        (TEA, {}, "hand: it cannot be dissected: it has no synthesized text"),
        (TEA, {"text": "Drink tea."}, "hand: its line in the suite has no `tree`; run `agenteval"),
        (GOOD, {"text": "Soup precedes tea."}, r"`tree` and its `text` differ"),
        (GOOD, {"tree": {"sentences": 1}}, "its `tree` cannot be read: sentences"),
        (GOOD, {"constraints": (OrderRule(first="soup", second="tea"),)}, "differ"),
        (GOOD, {"request": "Please."}, "does not contain its text"),
    ],
)
def test_cases_that_cannot_be_dissected(case: Case, changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        base_of(Case.model_validate({**case.model_dump(), **changes}))


def test_no_other_topic() -> None:
    with pytest.raises(InputError, match="no other topic has 2 activities"):
        substitutes(base_of(GOOD), "topic", 1, topics=())
