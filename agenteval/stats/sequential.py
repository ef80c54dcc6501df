"""When to stop asking a judge the same yes/no question; rules that are fixed before the run.

A rule looks at (yes, draws) after each draw. Looking at a p-value after each draw would stop too
early by chance; these rules have a known cost and error, which `stopping_profile` gives exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.vectors import Floats, check_level, finite_vector


@dataclass(frozen=True)
class Decision:
    """Whether to stop, and the answer: True, False, or None for a draw that ends level."""

    stop: bool
    answer: bool | None
    reason: str


class StoppingRule(Protocol):
    """A rule that stops after at most `most` draws."""

    @property
    def most(self) -> int:
        """Largest number of draws."""

    def decide(self, yes: int, draws: int) -> Decision:
        """What to do after `draws` draws of which `yes` said yes; pure."""


@dataclass(frozen=True)
class FixedRule:
    """Always `most` draws, then the majority."""

    most: int

    def __post_init__(self) -> None:
        _check_most(self.most, 1)

    def decide(self, yes: int, draws: int) -> Decision:
        """Stops at `most` draws. Raises ValueError for impossible counts."""
        _check_counts(yes, draws)
        return _at_end(yes, draws, self.most)


@dataclass(frozen=True)
class LeadRule:
    """Stops when one answer leads by `lead`, else with the majority of `most` draws.

    Wald's sequential probability ratio test for p against 1 - p (Sequential Analysis, 1947,
    chapter 5): with independent draws and no end, the error is 1 / (1 + (p / (1 - p))^lead).
    """

    lead: int = 3
    most: int = 25

    def __post_init__(self) -> None:
        _check_most(self.most, self.lead)

    def decide(self, yes: int, draws: int) -> Decision:
        """Stops at the lead or the end. Raises ValueError for impossible counts."""
        _check_counts(yes, draws)
        ahead = 2 * yes - draws
        if abs(ahead) >= self.lead:
            return Decision(True, ahead > 0, f"leads by {abs(ahead)} after {draws} draws")
        return _at_end(yes, draws, self.most)


@dataclass(frozen=True)
class BetaRule:
    """Stops when the central `level` credible interval of p leaves 1/2 out, else at `most`.

    The posterior is Beta(1 + yes, 1 + no) from a flat prior, so the rule is P(p > 1/2) at or
    beyond (1 + level) / 2 on either side; .95 needs at least 5 equal draws.
    """

    level: float = 0.95
    most: int = 25

    def __post_init__(self) -> None:
        check_level(self.level)
        _check_most(self.most, 1)

    def decide(self, yes: int, draws: int) -> Decision:
        """Stops when sure or at the end. Raises ValueError for impossible counts."""
        from scipy.special import betainc

        _check_counts(yes, draws)
        below = float(betainc(1 + yes, 1 + draws - yes, 0.5))
        sure = max(below, 1 - below)
        if sure >= (1 + self.level) / 2:
            return Decision(True, below < 0.5, f"posterior {sure:.4f} after {draws} draws")
        return _at_end(yes, draws, self.most)


@dataclass(frozen=True)
class StoppingProfile:
    """What a rule costs and gives for one p: mean draws, shares that sum to 1."""

    mean_draws: float
    share_yes: float
    share_no: float
    share_level: float


def stopping_profile(rule: StoppingRule, p: float) -> StoppingProfile:
    """Exact behaviour of a rule when each draw says yes with probability p, independently.

    Every state (yes, draws) is visited with its probability. Raises ValueError for p outside
    [0, 1].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p {p} is not in [0, 1]")
    alive = np.zeros(rule.most + 2)
    alive[0] = 1.0
    mean = 0.0
    shares: dict[bool | None, float] = {True: 0.0, False: 0.0, None: 0.0}
    for draws in range(1, rule.most + 1):
        moved = alive * (1 - p)
        moved[1:] += alive[:-1] * p
        alive = moved
        for yes in range(draws + 1):
            decision = rule.decide(yes, draws)
            if decision.stop:
                shares[decision.answer] += alive[yes]
                mean += draws * alive[yes]
                alive[yes] = 0.0
    return StoppingProfile(float(mean), *(float(shares[key]) for key in (True, False, None)))


@dataclass(frozen=True)
class StoppingResult:
    """A simulation over items: draws and answer per item (1 yes, 0 no, -1 level)."""

    draws: NDArray[np.intp]
    answers: NDArray[np.int8]
    mean_draws: float
    share_right: float | None
    n_undecidable: int


def simulate_stopping(
    rule: StoppingRule, probabilities: Floats, *, rng: np.random.Generator
) -> StoppingResult:
    """Run the rule once per item whose judge says yes with the item's probability.

    Right is the answer that infinitely many draws would give (p > 1/2); a level end is wrong.
    Items with p = 1/2 have no right answer and are left out of `share_right` and counted;
    `share_right` is None when no item is left. Raises ValueError for probabilities outside [0, 1].
    """
    chance = finite_vector(probabilities, "probabilities")
    if ((chance < 0) | (chance > 1)).any():
        raise ValueError("probabilities must lie in [0, 1]")
    draws = np.zeros(len(chance), dtype=np.intp)
    answers = np.full(len(chance), -1, dtype=np.int8)
    for item, p in enumerate(chance):
        yes = 0
        for drawn, said in enumerate(rng.random(rule.most) < p, start=1):
            yes += int(said)
            decision = rule.decide(yes, drawn)
            if decision.stop:
                draws[item] = drawn
                answers[item] = -1 if decision.answer is None else int(decision.answer)
                break
    clear = chance != 0.5
    right = answers[clear] == (chance[clear] > 0.5)
    share = float(right.mean()) if len(right) else None
    mean = float(draws.mean()) if len(draws) else 0.0
    return StoppingResult(draws, answers, mean, share, int((~clear).sum()))


def _at_end(yes: int, draws: int, most: int) -> Decision:
    if draws < most:
        return Decision(False, None, "go on")
    answer = None if 2 * yes == draws else 2 * yes > draws
    word = "level" if answer is None else "majority"
    return Decision(True, answer, f"{word} after {draws} draws")


def _check_counts(yes: int, draws: int) -> None:
    if not 0 <= yes <= draws or draws < 1:
        raise ValueError(f"{yes} yes of {draws} draws")


def _check_most(most: int, least: int) -> None:
    if not 1 <= least <= most:
        raise ValueError(f"at most {most} draws with a lead of {least} is no rule")
