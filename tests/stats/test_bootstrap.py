"""Cluster bootstrap: all resamples enumerated, scipy, the cluster-robust error, odd input."""

from __future__ import annotations

import itertools
import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import (
    Bootstrap,
    bootstrap_interval,
    bootstrap_mean,
    bootstrap_sums,
    mean_interval,
)


def how(seed: int = 1, **options: object) -> Bootstrap:
    return Bootstrap(np.random.default_rng(seed), **options)  # type: ignore[arg-type]


def expanded_tail(cases: int, level: float) -> float:
    """Hesterberg 2015, section 4.3, with scipy's distributions."""
    tail = (1 - level) / 2
    z = math.sqrt(cases / (cases - 1)) * stats.t.ppf(tail, cases - 1)
    return float(stats.norm.cdf(z))


def nested() -> tuple[np.ndarray, np.ndarray]:
    """30 cases of 1 to 5 repeats; between cases sd 1, within .5."""
    rng = np.random.default_rng(7)
    label = np.repeat(np.arange(30), rng.integers(1, 6, size=30))
    return rng.normal(size=30)[label] + 0.5 * rng.normal(size=len(label)), label


@pytest.mark.parametrize("generic", [False, True])
def test_against_all_resamples(generic: bool) -> None:
    values, label = np.array([1.0, 5, 2, 2, 9, 4, 4, 0]), np.array(list("aabbbcde"))
    groups = [values[label == name] for name in "abcde"]
    draws = [
        float(np.mean(np.concatenate(chosen))) for chosen in itertools.product(groups, repeat=5)
    ]
    assert len(draws) == 3125
    options = how(resamples=10_000, level=0.8)
    if generic:
        got = bootstrap_interval(np.mean, [values], label, how=options)
    else:
        got = bootstrap_mean(values, label, how=options)
    tail = expanded_tail(5, 0.8)
    assert got.mean == pytest.approx(values.mean())
    assert got.se == pytest.approx(np.std(draws) * math.sqrt(5 / 4), rel=0.02)
    assert (got.low, got.high) == pytest.approx(np.quantile(draws, (tail, 1 - tail)), abs=0.08)
    assert (got.n, got.n_clusters, got.reason) == (8, 5, None)
    assert "10000 resamples" in got.method


@pytest.mark.parametrize("statistic", [np.mean, np.median, np.var])
def test_against_scipy(statistic: object) -> None:
    values = np.random.default_rng(3).exponential(size=60)
    known = stats.bootstrap(
        (values,),
        statistic,
        n_resamples=10_000,
        method="percentile",  # type: ignore[arg-type]
        confidence_level=1 - 2 * expanded_tail(60, 0.95),
        rng=np.random.default_rng(2),
        vectorized=False,
    ).confidence_interval
    got = bootstrap_interval(statistic, [values], how=how(resamples=10_000))  # type: ignore[arg-type]
    width = known.high - known.low
    assert (got.low, got.high) == pytest.approx((known.low, known.high), abs=0.05 * width)
    assert got.n_clusters is None


scores = st.lists(
    st.tuples(st.integers(-20, 20).map(lambda v: v / 7), st.integers(0, 8)), min_size=1, max_size=25
)


@settings(max_examples=40, deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_order_and_names_change_no_digit(
    pairs: list[tuple[float, int]], rng: random.Random
) -> None:
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    plain = bootstrap_mean([v for v, _ in pairs], [c for _, c in pairs], how=how(resamples=200))
    other = bootstrap_mean(
        [v for v, _ in shuffled], [("case", 9 - c) for _, c in shuffled], how=how(resamples=200)
    )
    assert plain == other


def test_sums_of_a_ratio() -> None:
    # ratio of means; delta method: se^2 = var(x - r y) / (n mean(y)^2)
    rng = np.random.default_rng(4)
    y = rng.uniform(1, 2, size=400)
    x = 0.3 * y + rng.normal(scale=0.1, size=400)
    got = bootstrap_sums(np.column_stack([x, y]), lambda t: t[:, 0] / t[:, 1], how=how())
    ratio = x.sum() / y.sum()
    assert got.mean == pytest.approx(ratio)
    known = np.std(x - ratio * y, ddof=1) / (math.sqrt(400) * y.mean())
    assert got.se == pytest.approx(known, rel=0.05)


def test_few_cases() -> None:
    assert bootstrap_mean([], how=how()).reason == "no values"
    one = bootstrap_mean([1, 2, 3], ["a"] * 3, how=how())
    assert (one.mean, one.low, one.reason) == (2, None, "one case: no interval")
    for cases in (2, 3):  # a single case drawn every time has probability 1/4 and 1/27
        few = bootstrap_mean(list(range(cases)), how=how())
        assert (few.low, few.high, few.se) == (None, None, None)
        assert few.reason == f"{cases} cases: too few for a bootstrap"
    # at 80% the tail of 4 cases is .029, above 4^-4
    assert bootstrap_mean([1, 2, 3, 4], how=how(level=0.8)).low is not None
    assert bootstrap_mean([1, 2, 3, 4], how=how()).reason == "4 cases: too few for a bootstrap"
    assert bootstrap_mean([1, 2, 3, 4, 9], how=how()).low is not None


def test_undefined_resamples_are_counted() -> None:
    def share_of_one(x: np.ndarray) -> float | None:
        return None if not x.any() else float(x.mean())

    rare = np.array([1.0] + [0.0] * 9)  # all zero in (9/10)^10 = 35 % of resamples
    got = bootstrap_interval(share_of_one, [rare], how=how())
    assert (got.mean, got.low) == (0.1, None)
    assert got.reason is not None
    lost = int(got.reason.split()[2])
    assert lost / 2000 == pytest.approx(0.9**10, abs=0.04)
    common = np.array([1.0] * 4 + [0.0] * 6)  # .6^10 = .6 %
    got = bootstrap_interval(share_of_one, [common], how=how())
    assert got.low is not None
    assert "undefined left out" in got.method


@pytest.mark.slow
def test_a_million_values_are_fast() -> None:
    values = np.random.default_rng(1).normal(size=1_000_000)
    label = np.repeat(np.arange(1000), 1000)
    start = time.process_time()
    got = bootstrap_mean(values, label, how=how(resamples=1000))
    assert time.process_time() - start < 5  # .4 s on an idle core
    assert got.n_clusters == 1000
    assert got.se == pytest.approx(mean_interval(values.tolist(), label.tolist()).se, rel=0.1)
