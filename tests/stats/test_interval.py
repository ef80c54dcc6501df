"""Intervals of means: reference numbers, a brute force of the formula, coverage, odd input."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import mean_interval

SCORES = Path(__file__).resolve().parents[3] / "shared/reference/stats/prometheus/scores.csv"
reference = pytest.mark.skipif(not SCORES.exists(), reason="reference data not present")


def load(bench: str) -> tuple[list[float], list[str]]:
    """Mean of the three ratings per item, and the item's question."""
    with SCORES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["bench"] == bench]
    means = [(int(r["s1"]) + int(r["s2"]) + int(r["s3"])) / 3 for r in rows]
    return means, [row["idx"] for row in rows]


def miller_se(values: list[float], clusters: list[object]) -> float:
    """Brute force of appendix A: the double sum over pairs in one cluster, times C / (C - 1)."""
    n, mean = len(values), math.fsum(values) / len(values)
    pairs = math.fsum(
        (values[i] - mean) * (values[j] - mean)
        for i in range(n)
        for j in range(n)
        if clusters[i] == clusters[j]
    )
    count = len(set(clusters))
    return math.sqrt(pairs / n**2 * count / (count - 1))


def test_t_interval_equals_scipy() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.95, 0.5, 0.55]
    got = mean_interval(values, level=0.9)
    low, high = stats.t.interval(0.9, 6, loc=np.mean(values), scale=stats.sem(values))
    assert (got.low, got.high) == pytest.approx((low, high), rel=1e-12)
    assert (got.mean, got.se) == pytest.approx((np.mean(values), stats.sem(values)), rel=1e-12)
    assert (got.n, got.n_clusters, got.reason) == (7, None, None)
    assert "6 df" in got.method


finite = st.floats(-100, 100).map(lambda v: round(v, 3))
labelled = st.lists(st.tuples(finite, st.integers(0, 4)), min_size=2, max_size=25).filter(
    lambda pairs: len({c for _, c in pairs}) > 1
)


@given(labelled)
def test_equals_the_double_sum(pairs: list[tuple[float, int]]) -> None:
    values, clusters = [v for v, _ in pairs], [c for _, c in pairs]
    got = mean_interval(values, clusters)
    scale = max(1.0, *(abs(v) for v in values))
    # the double sum cancels, so its own error is about sqrt(eps) where the truth is zero
    assert got.se == pytest.approx(miller_se_or_zero(values, clusters), abs=1e-6 * scale)
    if len(set(values)) > 1 and got.se:
        half = stats.t.ppf(0.975, len(set(clusters)) - 1) * got.se
        assert got.mean is not None
        assert (got.low, got.high) == pytest.approx((got.mean - half, got.mean + half))


def miller_se_or_zero(values: list[float], clusters: list[int]) -> float:
    try:
        return miller_se(values, list(clusters))
    except ValueError:  # a sum that should be zero came out as -1e-17
        return 0.0


@given(labelled, st.randoms(use_true_random=False))
def test_order_changes_no_digit(pairs: list[tuple[float, int]], rng: random.Random) -> None:
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    assert mean_interval([v for v, _ in pairs], [c for _, c in pairs]) == mean_interval(
        [v for v, _ in shuffled], [c for _, c in shuffled]
    )


@pytest.mark.parametrize(
    ("values", "clusters", "mean", "reason"),
    [
        ([], None, None, "no values"),
        ([], [], None, "no values"),
        ([0.7], None, 0.7, "one value: no interval"),
        ([0.2, 0.8, 0.5], ["only"] * 3, 0.5, "one case: no interval"),
        ([0.5, 0.5, 0.5], ["only"] * 3, 0.5, "one case: no interval"),
    ],
)
def test_too_little_for_an_interval(
    values: list[float], clusters: list[str] | None, mean: float | None, reason: str
) -> None:
    got = mean_interval(values, clusters)
    assert got.mean == pytest.approx(mean)
    assert (got.low, got.high, got.se, got.n) == (None, None, None, len(values))
    assert got.reason == reason


@pytest.mark.parametrize("clusters", [None, ["a", "a", "b"]])
def test_equal_values_collapse_and_say_so(clusters: list[str] | None) -> None:
    got = mean_interval([0.1, 0.1, 0.1], clusters)
    assert (got.mean, got.low, got.high, got.se) == (0.1, 0.1, 0.1, 0.0)
    assert got.reason == "no variation"


def test_equal_cases_collapse_and_say_so() -> None:
    # .1 + .3 and .2 + .2 differ by rounding only
    got = mean_interval([0.1, 0.3, 0.2, 0.2], [1, 1, 2, 2])
    assert got.se == 0.0
    assert got.low == got.high == got.mean
    assert got.reason == "no variation between cases"


def test_bounds_clip_and_say_so() -> None:
    values = [0.0, 1.0, 1.0, 1.0]
    free, clipped = mean_interval(values), mean_interval(values, bounds=(0, 1))
    assert free.high is not None
    assert free.high > 1
    assert "clipped" not in free.method
    assert (clipped.high, clipped.low) == (1, max(free.low or 0, 0))
    assert "clipped to [0, 1]" in clipped.method
    assert (clipped.mean, clipped.se) == (free.mean, free.se)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval([0.1, math.nan])
    with pytest.raises(ValueError, match="2 values but 1 cluster"):
        mean_interval([0.1, 0.2], ["a"])
    with pytest.raises(ValueError, match="level"):
        mean_interval([0.1, 0.2], level=95)
    with pytest.raises(ValueError, match="outside the bounds"):
        mean_interval([0.1, 1.2], bounds=(0, 1))


@pytest.mark.parametrize("cases", [10, 30])
@pytest.mark.parametrize("repeats", [(3, 3), (1, 5)])
def test_coverage_with_cases(cases: int, repeats: tuple[int, int]) -> None:
    """Between-case sd 1, within-case sd .5; the naive interval must fail where this one holds."""
    rng = np.random.default_rng(20240611)
    trials, hits, naive_hits = 1500, 0, 0
    for _ in range(trials):
        sizes = rng.integers(repeats[0], repeats[1] + 1, size=cases)
        label = np.repeat(np.arange(cases), sizes)
        values = (rng.normal(size=cases)[label] + rng.normal(scale=0.5, size=len(label))).tolist()
        got, naive = mean_interval(values, label.tolist()), mean_interval(values)
        assert got.low is not None
        assert got.high is not None
        assert naive.low is not None
        assert naive.high is not None
        hits += got.low <= 0 <= got.high
        naive_hits += naive.low <= 0 <= naive.high
    print(f"coverage at {cases} cases, repeats {repeats}: {hits / trials:.4f}")
    assert hits / trials >= 0.93
    assert naive_hits / trials < 0.85
