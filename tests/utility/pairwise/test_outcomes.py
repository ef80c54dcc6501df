"""Win rate and position bias: the formulas, and intervals that hold with few cases and ties."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from agenteval.stats.interval import Interval
from agenteval.utility.pairwise.pairs import PairOutcome, mirrored, position_bias, win_rate

# The preferences for A as the first and as the second response.
WIN, LOSS, TIE, FIRST, LEANING = (1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (1.0, 0.0), (1.0, 0.5)


def outcomes(*answers: tuple[float | None, float | None]) -> list[PairOutcome]:
    return [PairOutcome(f"c{i}", f"r{i}", "a", "b", "c", *pair) for i, pair in enumerate(answers)]


@pytest.mark.parametrize(
    ("answers", "name", "score"),
    [
        (WIN, "win", 1.0),
        (LOSS, "loss", 0.0),
        (TIE, "tie", 0.5),
        (FIRST, "flip", 0.5),
        (LEANING, "flip", 0.5),  # any two answers that differ
        ((0.9, 0.8), "win", 0.85),
        ((1.0, None), "missing", None),
    ],
)
def test_an_outcome_needs_the_same_answer_in_both_orders(
    answers: tuple[float | None, float | None], name: str, score: float | None
) -> None:
    (outcome,) = outcomes(answers)
    assert outcome.outcome == name
    assert outcome.score == (None if score is None else pytest.approx(score))


def test_figures_of_a_few_cases_by_hand() -> None:
    found = outcomes(WIN, TIE, FIRST, LEANING, LOSS, (None, 0.0))
    assert win_rate(found).mean == pytest.approx(2.5 / 5)
    assert win_rate(found, flips=False).mean == pytest.approx(1.5 / 3)
    assert mirrored(found).mean == pytest.approx(3 / 5)
    # firsts: one each of a win and a loss, halves of ties, both of a flip, one and a half
    assert position_bias(found).mean == pytest.approx((1 + 1 + 2 + 1.5 + 1) / 10 - 0.5)


@pytest.mark.parametrize(
    "chances", [(0.9, 0.05, 0.05, 0.0), (0.3, 0.3, 0.2, 0.2), (0.1, 0.05, 0.8, 0.05)]
)
@pytest.mark.parametrize("n", [6, 12, 30])
def test_intervals_cover_with_few_cases_and_ties(chances: tuple[float, ...], n: int) -> None:
    kinds = (WIN, LOSS, TIE, FIRST)

    @cache
    def rate(counts: tuple[int, ...]) -> Interval:
        return win_rate(
            outcomes(*(k for k, m in zip(kinds, counts, strict=True) for _ in range(m)))
        )

    truth = chances[0] + (chances[2] + chances[3]) / 2
    drawn = np.random.default_rng(n).multinomial(n, chances, size=600).tolist()
    intervals = [rate(tuple(counts)) for counts in drawn]
    covered = [i.low is not None and i.low <= truth <= (i.high or 0.0) for i in intervals]
    assert np.mean(covered) >= 0.94
