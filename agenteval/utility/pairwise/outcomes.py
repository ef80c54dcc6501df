"""Outcomes of comparisons in both orders, and their figures over cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agenteval.analysis.means import Rating
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats
from agenteval.utility.pairwise.pairs import SEPARATOR

OutcomeName = Literal["win", "loss", "tie", "flip", "missing"]


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """One comparison of systems A and B on a case.

    `shown_first` is the preference for A when A was the first response, `shown_second` when it was
    the second: 1 if A is preferred, 0.5 for a tie, 0 if B is; None if the judgment is missing. With
    `one_order` it was asked once, in an unknown order, which is `shown_first`.
    """

    case: str
    run: str
    a: str
    b: str
    criterion: str
    shown_first: float | None
    shown_second: float | None
    repeat: int = 0
    one_order: bool = False

    @property
    def preferences(self) -> list[float]:
        """The preferences for A in the orders that were asked; fewer if one is missing."""
        both = (self.shown_first,) if self.one_order else (self.shown_first, self.shown_second)
        return [value for value in both if value is not None]

    @property
    def outcome(self) -> OutcomeName:
        """Return what the orders agree on for A, "flip" if they differ, "missing" without one."""
        if len(self.preferences) < 2 - self.one_order:
            return "missing"
        signs = {float(np.sign(value - 0.5)) for value in self.preferences}
        if len(signs) > 1:
            return "flip"
        return {1.0: "win", 0.0: "tie", -1.0: "loss"}[signs.pop()]  # type: ignore[return-value]

    @property
    def score(self) -> float | None:
        """Return 1 for a win of A, 0.5 for a tie or a flip, 0 for a loss (of numbers the mean)."""
        outcome = self.outcome
        if outcome in ("missing", "flip"):
            return None if outcome == "missing" else 0.5
        return sum(self.preferences) / len(self.preferences)


def pair_outcomes(ratings: Sequence[Rating], systems: Sequence[str] = ()) -> list[PairOutcome]:
    """Return the comparisons of stored results; A comes before B in `systems`, else by name."""
    order = {name: place for place, name in enumerate(systems)}
    answers: defaultdict[tuple[str, str, str, int, frozenset[str]], dict[str, float | None]]
    answers = defaultdict(dict)
    for rating in ratings:
        names = rating.system.split(SEPARATOR)
        run = rating.run_id.removeprefix(f"{rating.system}/")  # named so where systems share ids
        key = rating.case, run, rating.criterion_id, rating.repeat, frozenset(names)
        answers[key][names[0]] = rating.value
    outcomes = []
    for (case, run, criterion, repeat, both), value in answers.items():
        a, b = sorted(both, key=lambda name: (order.get(name, len(order)), name))
        other = value.get(b)
        swapped = None if other is None else 1 - other
        outcomes.append(PairOutcome(case, run, a, b, criterion, value.get(a), swapped, repeat))
    return outcomes


def by_case(outcomes: Sequence[PairOutcome], values: Sequence[float | None]) -> Floats:
    """Return the mean value of each case; comparisons without a value do not count."""
    grouped: defaultdict[str, list[float]] = defaultdict(list)
    for outcome, value in zip(outcomes, values, strict=True):
        if value is not None:
            grouped[outcome.case].append(value)
    return np.array([sum(group) / len(group) for group in grouped.values()])


def win_rate(outcomes: Sequence[PairOutcome], *, flips: bool = True) -> Interval:
    """Return the mean score of A over cases with its interval; without `flips` they are left out
    instead of counted as half."""
    used = [o for o in outcomes if flips or o.outcome != "flip"]
    return bounded_interval(by_case(used, [o.score for o in used]), (0.0, 1.0))


def mirrored(outcomes: Sequence[PairOutcome]) -> Interval:
    """Return the share of comparisons in which both orders agree."""
    values = [None if o.score is None else float(o.outcome != "flip") for o in outcomes]
    return bounded_interval(by_case(outcomes, values), (0.0, 1.0))


def position_bias(outcomes: Sequence[PairOutcome]) -> Interval:
    """Return the share of the first position minus 1/2, ties as halves, over cases.

    Only comparisons in both orders count: then each response was first once, and quality cancels.
    """
    values = [
        None
        if o.one_order or o.shown_first is None or o.shown_second is None
        else (o.shown_first - o.shown_second) / 2
        for o in outcomes
    ]
    return bounded_interval(by_case(outcomes, values), (-0.5, 0.5))


def wins_by_case(outcomes: Sequence[PairOutcome], systems: Sequence[str]) -> Floats:
    """Return the wins (cases, k, k) of each system against each; each pair of systems counts once
    in a case, whatever the number of repeats."""
    grouped: defaultdict[str, defaultdict[tuple[int, int], list[float]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for o in outcomes:
        if o.score is not None:
            grouped[o.case][systems.index(o.a), systems.index(o.b)].append(o.score)
    wins = np.zeros((len(grouped), len(systems), len(systems)))
    for case, pairs in enumerate(grouped.values()):
        for (i, j), scores in pairs.items():
            wins[case, i, j] = sum(scores) / len(scores)
            wins[case, j, i] = 1 - wins[case, i, j]
    return wins
