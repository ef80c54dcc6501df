"""AUC and Cliff's delta: brute force, scikit-learn, coverage, odd groups."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import Discrimination, discrimination, magnitude

levels = st.lists(st.integers(0, 4), min_size=1, max_size=9)


def pairs(success: list[int], failed: list[int]) -> float:
    wins = [(s > f) + 0.5 * (s == f) for s in success for f in failed]
    return sum(wins) / len(wins)


@given(levels, levels)
def test_auc_counts_pairs(success: list[int], failed: list[int]) -> None:
    got = discrimination(success, failed)
    assert got.auc.mean == pytest.approx(pairs(success, failed), abs=1e-14)


def test_equals_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(5)
    good, bad = rng.integers(1, 6, 83) / 3, rng.integers(0, 5, 41) / 3
    truth = roc_auc_score([1] * 83 + [0] * 41, np.concatenate([good, bad]))
    assert discrimination(good, bad).auc.mean == pytest.approx(truth, abs=1e-12)


def test_interval_is_the_hull_of_two_formulas() -> None:
    good, bad = [4.0, 3.5, 3, 4, 2.5, 4, 3, 3.5], [3.0, 1, 2, 2.5, 4, 0.5, 3]
    got = discrimination(good, bad).auc
    wins = np.array([[(s > f) + 0.5 * (s == f) for f in bad] for s in good])
    area, m, n = wins.mean(), 8, 7
    own, other = wins.mean(1).var(ddof=1) / m, wins.mean(0).var(ddof=1) / n
    df = (own + other) ** 2 / (own**2 / (m - 1) + other**2 / (n - 1))
    half = stats.t.ppf(0.975, df) * math.sqrt(own + other) / (area * (1 - area))
    centre = math.log(area / (1 - area))
    delong = [1 / (1 + math.exp(-centre - sign * half)) for sign in (-1, 1)]

    def outside(theta: float) -> float:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return float((area - theta) ** 2 - 1.959964**2 * theta * (1 - theta) / (m * n) * spread)

    from scipy.optimize import brentq

    newcombe = [brentq(outside, 1e-9, area), brentq(outside, area, 1 - 1e-9)]
    assert got.low == pytest.approx(min(delong[0], newcombe[0]), abs=1e-6)
    assert got.high == pytest.approx(max(delong[1], newcombe[1]), abs=1e-6)


@pytest.mark.parametrize(("good", "bad", "mean"), [([4, 4], [1, 2], 1), ([0, 1], [2, 3], 0)])
def test_groups_apart_keep_their_width(good: list[int], bad: list[int], mean: int) -> None:
    got = discrimination(good * 15, bad * 15).auc
    assert (got.mean, got.se) == (mean, 0)
    assert got.low is not None
    assert got.high is not None
    # 1 - low = 1.96^2 low / 900 (1 + 29 ((1 - low) / (2 - low) + low / (1 + low))): low = .9330
    assert got.high - got.low == pytest.approx(0.0670, abs=1e-4)
    assert got.reason is not None
    assert "do not overlap" in got.reason
    small = discrimination(good, bad).auc
    assert small.low is not None
    assert small.high is not None
    assert small.high - small.low > 0.5


@pytest.mark.parametrize(
    ("good", "bad", "mean", "word"),
    [
        ([], [1.0, 2], None, "no successful case"),
        ([1.0], [], None, "no failed case"),
        ([], [], None, "no cases"),
        ([3.0], [1.0, 2, 4], 2 / 3, "one case"),
        ([2.0] * 5, [2.0] * 6, 0.5, "no variation"),
    ],
)
def test_what_cannot_be_known(
    good: list[float], bad: list[float], mean: float | None, word: str
) -> None:
    got = discrimination(good, bad)
    assert got.auc.mean == pytest.approx(mean)
    assert (got.auc.low, got.auc.high, got.auc.se) == (None, None, None)
    assert got.auc.reason is not None
    assert word in got.auc.reason
    assert (mean is None) == (got.magnitude is None)


def test_rounding_makes_ties() -> None:
    got = discrimination([1 / 3, 4 / 3 - 1], [5 - 14 / 3, 1 - 2 / 3])
    assert (got.auc.mean, got.auc.reason) == (0.5, "no variation: all values are equal")


@pytest.mark.parametrize(
    ("delta", "name"),
    [
        (0.1469, "negligible"),
        (0.147, "small"),
        (-0.3299, "small"),
        (0.33, "medium"),
        (0.474, "large"),
        (-1, "large"),
        (0, "negligible"),
    ],
)
def test_bands(delta: float, name: str) -> None:
    assert magnitude(delta) == name


def normal(area: float, spread: float) -> Callable[[np.random.Generator], Discrimination]:
    shift = stats.norm.ppf(area) * math.sqrt(1 + spread**2)

    def draw(rng: np.random.Generator) -> Discrimination:
        return discrimination(rng.normal(shift, 1, 30), rng.normal(0, spread, 30))

    return draw


@pytest.mark.parametrize("area", [0.5, 0.7, 0.9, 0.98])
@pytest.mark.parametrize("spread", [1, 3])
def test_coverage_at_30_and_30(area: float, spread: float) -> None:
    rng = np.random.default_rng(int(area * 100))
    draw = normal(area, spread)
    found = [draw(rng).auc for _ in range(400)]
    hit = sum(a.low is not None and a.high is not None and a.low <= area <= a.high for a in found)
    assert hit / 400 >= 0.93
