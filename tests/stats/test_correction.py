"""Judge bias correction: hand-made counts, the bootstrap, coverage, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agenteval.stats import corrected_rate


def test_by_hand() -> None:
    # p = .5, q0 = .8, q1 = .9: theta = .3 / .7; variance over .7^2
    got = corrected_rate((100, 200), (40, 50), (36, 40))
    theta = 3 / 7
    spread = 0.25 / 200 + (1 - theta) ** 2 * 0.16 / 50 + theta**2 * 0.09 / 40
    assert got.rate.mean == pytest.approx(theta)
    assert got.rate.se == pytest.approx(math.sqrt(spread) / 0.7)
    assert (got.apparent, got.specificity, got.sensitivity) == (0.5, 0.8, 0.9)
    assert (got.n_bad, got.n_good, got.rate.n) == (50, 40, 200)


def test_adjusted_interval_by_hand() -> None:
    z2 = 1.959963984540054**2
    n, m0, m1 = 200 + z2, 52, 42
    p, q0, q1 = (100 + z2 / 2) / n, 41 / m0, 37 / m1
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    bad, good = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    centre = theta + 2 * z2 * (theta * good - (1 - theta) * bad)
    spread = p * (1 - p) / n + (1 - theta) ** 2 * bad + theta**2 * good
    half = math.sqrt(z2 * spread) / (q0 + q1 - 1)
    got = corrected_rate((100, 200), (40, 50), (36, 40)).rate
    assert (got.low, got.high) == pytest.approx((centre - half, centre + half), rel=1e-9)


@pytest.mark.parametrize(
    ("theta", "q0", "q1"), [(0.3, 0.9, 0.85), (0.7, 0.75, 0.95), (0.95, 0.8, 0.9), (0.5, 1.0, 0.9)]
)
def test_coverage(theta: float, q0: float, q1: float) -> None:
    rng = np.random.default_rng(11)
    p, hit = theta * q1 + (1 - theta) * (1 - q0), 0
    for _ in range(2000):
        counts = rng.binomial([300, 60, 60], [p, q0, q1]).tolist()
        rate = corrected_rate((counts[0], 300), (counts[1], 60), (counts[2], 60)).rate
        hit += rate.low is not None and rate.high is not None and rate.low <= theta <= rate.high
    assert hit / 2000 >= 0.93


def test_perfect_judge_leaves_the_rate() -> None:
    got = corrected_rate((30, 100), (50, 50), (50, 50)).rate
    assert got.mean == pytest.approx(0.3)
    assert got.se == pytest.approx(math.sqrt(0.21 / 100))
    assert got.low is not None
    assert got.high is not None
    assert got.high - got.low > 2 * 1.96 * math.sqrt(0.21 / 100)  # perfect on 100, not for sure


@pytest.mark.parametrize(
    ("judged", "bad", "good", "word"),
    [
        ((5, 10), (5, 10), (5, 10), "no better than chance"),
        ((5, 10), (1, 10), (3, 10), "no better than chance"),
        ((0, 0), (9, 10), (9, 10), "no judged cases"),
        ((5, 10), (0, 0), (9, 10), "no labelled bad cases"),
        ((5, 10), (9, 10), (0, 0), "no labelled good cases"),
    ],
)
def test_refusals(
    judged: tuple[int, int], bad: tuple[int, int], good: tuple[int, int], word: str
) -> None:
    rate = corrected_rate(judged, bad, good).rate
    assert (rate.mean, rate.low, rate.high, rate.se) == (None, None, None, None)
    assert rate.reason is not None
    assert word in rate.reason


def test_outside_the_unit_interval_is_clipped_and_said() -> None:
    rate = corrected_rate((1, 100), (40, 50), (45, 50)).rate
    assert (rate.mean, rate.low) == (0, 0)
    assert rate.reason is not None
    assert "clipped" in rate.reason
    with pytest.raises(ValueError, match="impossible"):
        corrected_rate((11, 10), (1, 1), (1, 1))
