"""Bradley-Terry strengths: equal to choix, finite where they can be, and honest intervals."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.stats.bradley_terry import bradley_terry, strength_intervals

# Expected: choix 0.4.1, ilsr_pairwise_dense(wins, alpha=0, tol=1e-12), mean 0.
GOLDEN = [
    ([[0, 7, 9.5], [3, 0, 6], [2.5, 4, 0]], [0.72700048, -0.14847787, -0.57852261]),
    (
        [[0, 3, 0, 1], [2, 0, 5, 0], [0, 1, 0, 4.5], [2, 0, 2.5, 0]],
        [0.17046424, 0.48342198, -0.29494226, -0.35894397],
    ),
]


@pytest.mark.parametrize(("wins", "strengths"), GOLDEN)
def test_strengths_equal_those_of_choix(wins: list[list[float]], strengths: list[float]) -> None:
    assert bradley_terry(np.array(wins)) == pytest.approx(strengths, abs=1e-7)


def test_two_systems_give_the_log_odds() -> None:
    strengths = bradley_terry(np.array([[0, 3.0], [1.0, 0]]))
    assert strengths[0] - strengths[1] == pytest.approx(np.log(3))


def test_a_system_that_won_everything_has_no_strength() -> None:
    wins = np.array([[0, 10, 10], [0, 0, 6.5], [0, 3.5, 0]])
    assert np.isnan(bradley_terry(wins)).all()
    intervals = strength_intervals(np.repeat(wins[None] / 10, 10, axis=0))
    assert {(i.mean, i.low, i.high) for i in intervals} == {(None, None, None)}
    assert "won or lost every comparison" in (intervals[0].reason or "")


def test_no_interval_where_a_single_case_keeps_a_strength_finite() -> None:
    cases = np.tile([[0.0, 1], [0, 0]], (9, 1, 1))
    cases[0] = cases[0].T
    interval = strength_intervals(cases)[0]
    assert (interval.mean, interval.low) == (pytest.approx(np.log(8) / 2), None)
    assert "single case" in (interval.reason or "")


def test_intervals_cover_the_truth_with_few_cases_and_ties() -> None:
    rng, truth = np.random.default_rng(3), np.array([0.8, 0.1, -0.9])
    chance = 1 / (1 + np.exp(truth[None, :] - truth[:, None]))
    covered = intervals = 0
    for _ in range(400):
        wins = np.zeros((12, 3, 3))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            # a tie, counted as half, with chance .3 of the less likely result each
            tie = 0.3 * min(chance[i, j], chance[j, i])
            draws = rng.random(12)
            wins[:, i, j] = np.select(
                [draws < chance[i, j] - tie, draws < chance[i, j] + tie], [1.0, 0.5], 0.0
            )
            wins[:, j, i] = 1 - wins[:, i, j]
        for interval, strength in zip(strength_intervals(wins), truth, strict=True):
            if interval.low is not None and interval.high is not None:
                intervals += 1
                covered += interval.low <= strength <= interval.high
    assert intervals > 1000
    assert covered / intervals >= 0.94
