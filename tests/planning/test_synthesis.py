"""Synthesis: what every generated case must satisfy, over thousands of seeds."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.planning.case import Before, Case, Constraint, TimeLimit
from agenteval.planning.grammar import constraints_of, demands, fill, render, strip
from agenteval.planning.suite import case_line, paragraph_of
from agenteval.planning.synthesis import Dice, Generator, Shape, resynthesize
from agenteval.planning.words import Topic, built_in
from tests.thorough import often


def holds(constraint: Constraint, place: dict[int, int]) -> bool:
    assert isinstance(constraint, Before)
    return place[constraint.first] < place[constraint.second]


def valid(case: Case) -> list[tuple[int, ...]]:
    """All valid plans, by trying every permutation."""
    found = [entry.constraint for entry in case.stated]
    plans = []
    for order in permutations(range(case.n)):
        place = {a: i for i, a in enumerate(order)}
        if all(holds(c, place) for c in found):
            plans.append(order)
    return plans


@settings(max_examples=often(60, 150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 10**6), n=st.integers(2, 6))
def test_every_case_is_satisfiable_mentions_all_and_means_its_text(
    seed: int, number: int, n: int
) -> None:
    case = Generator(Shape((n, n)), seed=seed).case(number)
    paragraph = paragraph_of(case, built_in())
    assert render(paragraph, [a.phrase for a in case.actions], built_in()) == case.text
    assert constraints_of(paragraph) == case.stated
    mentioned = {i for e in case.stated for i in (e.constraint.first, e.constraint.second)}  # type: ignore[union-attr]
    assert mentioned == set(range(n))
    plans = valid(case)
    assert len(plans) == case.valid_plans
    assert plans
    assert case.text in case.request
    assert [t.name for t in case.tools] == [a.tool for a in case.actions]


def test_thousands_of_seeds() -> None:
    generator = Generator(Shape((3, 5)), seed=20)
    sizes = set()
    for number in range(often(500, 2000)):
        case = generator.case(number)
        paragraph = paragraph_of(case, built_in())
        assert constraints_of(paragraph) == case.stated
        assert case.valid_plans
        assert case.size is not None
        assert 1 <= case.size.sub_sentences <= 7
        assert 2 <= case.size.constraints <= 10
        sizes.add((case.n, case.size.constraints))
    assert {n for n, _ in sizes} == {3, 4, 5}


def test_no_sub_sentence_is_implied_by_those_before_it() -> None:
    for case in Generator(Shape((3, 6)), seed=3).cases(150):
        before: list[Constraint] = []
        for part in paragraph_of(case, built_in()).parts():
            new = demands(part)
            now = {p for p in permutations(range(case.n)) if fits(p, before)}
            after = {p for p in now if fits(p, new)}
            assert after < now, case.text
            before += new


def fits(order: tuple[int, ...], constraints: list[Constraint]) -> bool:
    place = {a: i for i, a in enumerate(order)}
    return all(holds(c, place) for c in constraints)


def schedules(case: Case) -> int:
    """Orders of the actions for which start hours exist, by trying every start in turn."""
    assert case.hours is not None
    limits = [e.constraint for e in case.stated if isinstance(e.constraint, TimeLimit)]
    orders = [e.constraint for e in case.stated if isinstance(e.constraint, Before)]

    def reach(order: tuple[int, ...], at: int) -> bool:
        if not order:
            return True
        action, *rest = order
        assert case.hours is not None
        for start in range(at, 24 - case.hours[action] + 1):
            end = start + case.hours[action]
            kept = all(
                end <= c.hour if c.side == "before" else start >= c.hour
                for c in limits
                if c.action == action
            )
            if kept and reach(tuple(rest), end):
                return True
        return False

    return sum(
        1 for order in permutations(range(case.n)) if fits(order, list(orders)) and reach(order, 0)
    )


def test_extended_cases_are_feasible_with_their_durations() -> None:
    timed = 0
    for case in Generator(Shape((2, 4), extended=True), seed=5).cases(60):
        assert case.durations is not None
        assert schedules(case) == case.valid_plans
        assert case.valid_plans
        timed += any(isinstance(e.constraint, TimeLimit) for e in case.stated)
        assert constraints_of(paragraph_of(case, built_in())) == case.stated
        assert case.tools[-1].name == "restart_plan"
    assert timed == 60


def test_a_seed_gives_the_same_bytes_and_another_does_not() -> None:
    def lines(seed: int, count: int) -> list[str]:
        return [case_line(c) for c in Generator(Shape(), seed=seed).cases(count)]

    assert lines(1, 20) == lines(1, 40)[:20]
    assert not set(lines(1, 20)) & set(lines(2, 20))


def test_length_and_number_of_constraints_are_set_apart() -> None:
    for words in ((28, 45), (52, 80)):
        shape = Shape((4, 4), constraints=(5, 5), words=words)
        cases = list(Generator(shape, seed=8).cases(40))
        for case in cases:
            assert case.size is not None
            assert case.size.constraints == 5
            assert words[0] <= case.size.words <= words[1]
            assert case.size.words == len(case.text.split())
    few, many = (
        [
            c.size.constraints
            for c in Generator(Shape((5, 5), constraints=r), seed=8).cases(40)
            if c.size
        ]
        for r in ((3, 4), (9, 10))
    )
    assert max(few) == 4
    assert min(many) == 9


@pytest.mark.parametrize(
    ("shape", "topics", "message"),
    [
        (Shape((3, 21)), None, "--n: 21 actions are more than the 20 activities"),
        (Shape((3, 3)), [("Poet", ["rhyme", "verse"])], "3 actions are more than the 2 activities"),
        (Shape((1, 3)), None, "at least 2 actions"),
        (Shape((5, 3)), None, "5 to 3 is no range"),
        (Shape((3, 3), constraints=(7, 9)), None, "3 actions have 2 to 3 constraints, not 7 to 9"),
        (Shape((4, 4), constraints=(1, 1)), None, "4 actions have 2 to 6 constraints, not 1"),
        (Shape((3, 20), extended=True), None, "a day holds at most 18"),
    ],
)
def test_shapes_that_no_case_can_have(shape: Shape, topics: Any, message: str) -> None:
    known = topics and [Topic(role=r, activities=tuple(a)) for r, a in topics]
    with pytest.raises(InputError, match=message):
        Generator(shape, seed=1, topics=known)


def test_a_length_that_cannot_be_had_is_said() -> None:
    with pytest.raises(InputError, match=r"no text of 3 actions .* and 1 to 2 words was found"):
        Generator(Shape((3, 3), words=(1, 2)), seed=1).case(0)


# -- other sentences with equivalent demands


def plans(n: int, constraints: list[Constraint]) -> set[tuple[int, ...]]:
    orders = [c for c in constraints if isinstance(c, Before)]
    return {
        p
        for p in permutations(range(n))
        if all(p.index(c.first) < p.index(c.second) for c in orders)
    }


def limits(constraints: list[Constraint]) -> set[TimeLimit]:
    return {c for c in constraints if isinstance(c, TimeLimit)}


@settings(max_examples=often(60, 120), deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 6), extended=st.booleans(), draw=st.integers(0, 99)
)
def test_same_plans_other_skeleton(seed: int, n: int, extended: bool, draw: int) -> None:
    case = Generator(Shape((n, n), extended=extended and n < 5), seed=seed).case(0)
    old = paragraph_of(case, built_in())
    given_ = [e.constraint for e in case.stated]
    rng = np.random.default_rng(draw)
    new = resynthesize(Dice(rng), n, given_, old)
    said = [e.constraint for e in constraints_of(new)]
    assert plans(n, said) == plans(n, given_)
    assert limits(said) == limits(given_)
    assert strip(new) != strip(old)
    text = render(fill(new, built_in(), rng), [a.phrase for a in case.actions], built_in())
    assert text


def test_every_form_is_used() -> None:
    dice = Dice(np.random.default_rng(1))
    constraints = [Before(0, 1), Before(0, 2), Before(1, 3), Before(2, 3)]
    seen = {repr(strip(resynthesize(dice, 4, constraints))) for _ in range(300)}
    assert len(seen) > 250
    everything = "".join(seen)
    for word in ("'pair'", "fronted=True", "Relative(", "'verb'", "'preposition'", "ids=(1, 2)"):
        assert word in everything


def test_nothing_to_say_and_contradictions_are_refused() -> None:
    dice = Dice(np.random.default_rng(1))
    with pytest.raises(ValueError, match="nothing to say"):
        resynthesize(dice, 2, [])
    with pytest.raises(ValueError, match="contradict"):
        resynthesize(dice, 2, [Before(0, 1), Before(1, 0)])
