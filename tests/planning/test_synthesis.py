"""Synthesis: what every generated case must satisfy, and shapes that no case can have."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.planning.case import Before, Case, Constraint, TimeLimit
from agenteval.planning.grammar import (
    Actions,
    Link,
    Paragraph,
    Relative,
    RequestSentence,
    SubSentence,
    constraints_of,
    demands,
    fill,
    followed,
    render,
    strip,
)
from agenteval.planning.suite import case_line, paragraph_of
from agenteval.planning.synthesis import Dice, Generator, Shape, placed, resynthesize
from agenteval.planning.words import Topic, ends_in_phrase
from tests.thorough import often


def plans(n: int, constraints: list[Constraint]) -> set[tuple[int, ...]]:
    """All orders that keep the order constraints, by trying every permutation."""
    orders = [c for c in constraints if isinstance(c, Before)]
    return {
        p
        for p in permutations(range(n))
        if all(p.index(c.first) < p.index(c.second) for c in orders)
    }


def limits(constraints: list[Constraint]) -> set[TimeLimit]:
    return {c for c in constraints if isinstance(c, TimeLimit)}


@settings(max_examples=often(60, 150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 10**6), n=st.integers(2, 6))
def test_every_case_is_satisfiable_mentions_all_actions_and_means_its_text(
    seed: int, number: int, n: int
) -> None:
    case = Generator(Shape((n, n)), seed=seed).case(number)
    paragraph = paragraph_of(case)
    assert render(paragraph, [a.phrase for a in case.actions]) == case.text
    assert constraints_of(paragraph) == case.stated
    constraints = [entry.constraint for entry in case.stated]
    assert {i for c in constraints for i in (c.first, c.second)} == set(range(n))
    assert len(plans(n, constraints)) == case.valid_plans > 0
    assert case.text in case.request
    assert [t.name for t in case.tools] == [a.tool for a in case.actions]
    stated: list[Constraint] = []
    for part in paragraph.parts():  # none is implied by those before it
        assert plans(n, stated + demands(part)) < plans(n, stated)
        stated += demands(part)


def schedulable_orders(case: Case) -> int:
    """Orders of the actions for which start hours exist, by trying every start in turn."""
    constraints = [entry.constraint for entry in case.stated]

    def reach(order: tuple[int, ...], at: int) -> bool:
        if not order:
            return True
        action, *others = order
        for start in range(at, 24 - case.hours[action] + 1):
            end = start + case.hours[action]
            kept = all(
                end <= c.hour if c.side == "before" else start >= c.hour
                for c in limits(constraints)
                if c.action == action
            )
            if kept and reach(tuple(others), end):
                return True
        return False

    return sum(reach(order, 0) for order in plans(case.n, constraints))


@pytest.mark.slow
def test_extended_cases_are_feasible_with_their_durations() -> None:
    for case in Generator(Shape((2, 4), extended=True), seed=5).cases(60):
        assert schedulable_orders(case) == case.valid_plans > 0
        assert limits([entry.constraint for entry in case.stated])
        assert constraints_of(paragraph_of(case)) == case.stated
        assert case.tools[-1].name == "restart_plan"


def test_a_seed_gives_the_same_bytes_and_another_does_not() -> None:
    def lines(seed: int, count: int) -> list[str]:
        return [case_line(c) for c in Generator(Shape(), seed=seed).cases(count)]

    assert lines(1, 20) == lines(1, 40)[:20]
    assert not set(lines(1, 20)) & set(lines(2, 20))


@pytest.mark.parametrize("words", [(28, 45), (52, 80)])
@pytest.mark.parametrize("constraints", [(4, 4), (5, 6)])
def test_length_and_number_of_constraints_are_independent(
    words: tuple[int, int], constraints: tuple[int, int]
) -> None:
    for case in Generator(Shape((4, 4), constraints=constraints, words=words), seed=8).cases(15):
        assert constraints[0] <= case.size.constraints <= constraints[1]
        assert words[0] <= case.size.words == len(case.text.split()) <= words[1]


@pytest.mark.parametrize(
    ("shape", "activities", "message"),
    [
        (Shape((3, 21)), 20, "--n: 21 actions are more than the 20 activities"),
        (Shape((3, 3)), 2, "3 actions are more than the 2 activities"),
        (Shape((1, 3)), 20, "at least 2 actions"),
        (Shape((5, 3)), 20, "5 to 3 is not a range"),
        (Shape((3, 3), constraints=(7, 9)), 20, "3 actions have 2 to 3 constraints, not 7 to 9"),
        (Shape((4, 4), constraints=(1, 1)), 20, "4 actions have 2 to 6 constraints, not 1"),
        (Shape((3, 20), extended=True), 20, "a day has room for at most 18"),
        (Shape((3, 3), words=(1, 2)), 20, r"no text of 3 actions .* and 1 to 2 words was found"),
    ],
)
def test_shapes_that_no_case_can_have(shape: Shape, activities: int, message: str) -> None:
    topic = Topic(role="Poet", activities=tuple(f"rhyme {i}" for i in range(activities)))
    with pytest.raises(InputError, match=message):
        Generator(shape, seed=1, topics=[topic]).case(0)


@settings(max_examples=often(60, 120), deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 6), extended=st.booleans(), draw=st.integers(0, 99)
)
def test_other_sentences_have_the_same_plans(seed: int, n: int, extended: bool, draw: int) -> None:
    case = Generator(Shape((n, n), extended=extended and n < 5), seed=seed).case(0)
    old = paragraph_of(case)
    before = [entry.constraint for entry in case.stated]
    rng = np.random.default_rng(draw)
    new = resynthesize(Dice(rng), n, before, old)
    after = [entry.constraint for entry in constraints_of(new)]
    assert plans(n, after) == plans(n, before)
    assert limits(after) == limits(before)
    assert strip(new) != strip(old)
    assert render(fill(new, rng), [a.phrase for a in case.actions])


def test_no_constraints_and_contradictions_are_refused() -> None:
    dice = Dice(np.random.default_rng(1))
    with pytest.raises(ValueError, match="at least one constraint"):
        resynthesize(dice, 2, [])
    with pytest.raises(ValueError, match="contradict"):
        resynthesize(dice, 2, [Before(0, 1), Before(1, 0)])


def test_activities_that_end_in_a_phrase_come_last() -> None:
    """ "Lunch with a poet, which ..." and "lunch with a poet and a talk ..." have two readings."""

    def told(relative: Relative | None) -> Paragraph:
        part = SubSentence(Actions((0, 1), relative), Link("verb", "prec"), Actions((2,)))
        return Paragraph((RequestSentence((part,)),))

    activities = ["lunch with a poet", "talk on art", "tea break", "walk in a park", "nap", "run"]
    assert followed(told(None)) == {0}
    assert placed(activities, 3, told(None)) == ["tea break", "talk on art", "lunch with a poet"]
    clause = told(Relative(Link("verb", "prec"), Actions((2,))))
    assert followed(clause) == {0, 1}
    assert placed(activities, 3, clause) == ["tea break", "nap", "lunch with a poet"]
    assert placed(activities[:3:2], 2, told(None)) == ["tea break", "lunch with a poet"]
    assert placed(activities[:2], 2, clause) == activities[:2]  # there is no other
    cases = [(case, paragraph_of(case)) for case in Generator(Shape(), seed=5).cases(99)]
    two_readings = [
        case.id
        for case, tree in cases
        if any(ends_in_phrase(case.actions[i].phrase) for i in followed(tree))
    ]
    assert len(two_readings) <= 2
