"""Re-synthesis: another skeleton, the same plans."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.planning.case import Before, Constraint, TimeLimit
from agenteval.evaluators.planning.dsl.fill import fill, strip
from agenteval.evaluators.planning.dsl.lexicon import built_in
from agenteval.evaluators.planning.dsl.render import render
from agenteval.evaluators.planning.dsl.tree import constraints_of
from agenteval.evaluators.planning.suite import paragraph_of
from agenteval.evaluators.planning.synthesis.generate import Generator, Shape
from agenteval.evaluators.planning.synthesis.grammar import Dice, resynthesize
from tests.thorough import often


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
    for word in ("Pair(", "fronted=True", "Relative(", "Verb(", "Preposition(", "ids=(1, 2)"):
        assert word in everything


def test_nothing_to_say_and_contradictions_are_refused() -> None:
    dice = Dice(np.random.default_rng(1))
    with pytest.raises(ValueError, match="nothing to say"):
        resynthesize(dice, 2, [])
    with pytest.raises(ValueError, match="contradict"):
        resynthesize(dice, 2, [Before(0, 1), Before(1, 0)])
