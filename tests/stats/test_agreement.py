"""Krippendorff's alpha: his example, the definition over pairs, reference numbers, odd input."""

from __future__ import annotations

import csv
import functools
import itertools
import math
import random
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata, t

from agenteval.stats import Bootstrap, krippendorff_alpha
from agenteval.stats.agreement import Measure

FOLDER = Path(__file__).resolve().parents[3] / "shared/reference"
reference = pytest.mark.skipif(not FOLDER.exists(), reason="reference data not present")
MEASURES: tuple[Measure, ...] = get_args(Measure)
nan = math.nan
# Krippendorff 2011, four observers, twelve units
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
).T


def how(seed: int = 1, **options: Any) -> Bootstrap:
    return Bootstrap(np.random.default_rng(seed), **options)


def pairwise_alpha(ratings: list[list[float]], measure: Measure) -> float | None:
    """The definition: mean distance of pairs within units over that of all pairs of values."""
    units = [[v for v in unit if not math.isnan(v)] for unit in ratings]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]

    @functools.cache
    def distance(a: float, b: float) -> float:
        if measure == "nominal":
            return float(a != b)
        if measure == "interval":
            return (a - b) ** 2
        between = sum(min(a, b) <= v <= max(a, b) for v in values)
        return (between - (values.count(a) + values.count(b)) / 2) ** 2 if a != b else 0.0

    expected = sum(distance(a, b) for a, b in itertools.permutations(values, 2))
    if len(units) < 2 or not expected:
        return None
    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in units
        for a, b in itertools.permutations(unit, 2)
    )
    return 1 - (observed / len(values)) / (expected / (len(values) * (len(values) - 1)))


@pytest.mark.parametrize(
    ("measure", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_example(measure: Measure, alpha: float) -> None:
    got = krippendorff_alpha(EXAMPLE, measure)
    assert got.mean == pytest.approx(alpha, abs=5e-4)
    assert (got.n, got.n_clusters) == (40, 11)  # the unit with a single rating is left out
    assert got.reason == "no interval asked for"
    assert measure in got.method


def load(bench: str) -> tuple[np.ndarray, list[str]]:
    with (FOLDER / "stats/prometheus/scores.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if bench in ("both", r["bench"])]
    return np.array([[float(r[s]) for s in ("s1", "s2", "s3")] for r in rows]), [
        r["idx"] for r in rows
    ]


cell = st.one_of(st.integers(0, 4).map(float), st.just(nan))
tables = st.integers(1, 4).flatmap(
    lambda raters: st.lists(
        st.lists(cell, min_size=raters, max_size=raters), min_size=1, max_size=9
    )
)


@given(tables, st.sampled_from(MEASURES))
def test_equals_the_definition(ratings: list[list[float]], measure: Measure) -> None:
    got = krippendorff_alpha(ratings, measure)
    known = pairwise_alpha(ratings, measure)
    if known is None:
        assert got.mean is None
        assert got.reason in (
            "no variation",
            "no unit with two ratings",
            "one unit with two ratings",
        )
    else:
        assert got.mean == pytest.approx(known, abs=1e-9)
        assert got.mean is not None
        assert got.mean <= 1


@settings(deadline=None, max_examples=50)
@given(tables, st.sampled_from(MEASURES), st.randoms(use_true_random=False))
def test_order_of_units_and_raters_changes_nothing(
    ratings: list[list[float]], measure: Measure, rng: random.Random
) -> None:
    shuffled = [rng.sample(unit, len(unit)) for unit in ratings]  # raters, anew in every unit
    rng.shuffle(shuffled)
    plain = krippendorff_alpha(ratings, measure, bootstrap=how(resamples=200))
    other = krippendorff_alpha(shuffled, measure, bootstrap=how(resamples=200))
    assert other.reason == plain.reason
    assert (other.mean, other.low, other.high) == pytest.approx(
        (plain.mean, plain.low, plain.high), abs=1e-9
    )


def test_ordinal_is_interval_on_midranks() -> None:
    # with many different values too, and then by another way of resampling
    rng = np.random.default_rng(5)
    data = rng.normal(size=(60, 1)) + rng.normal(size=(60, 3))
    ranks = rankdata(data).reshape(60, 3)
    got = krippendorff_alpha(data, "ordinal", bootstrap=how(resamples=1000))
    known = krippendorff_alpha(ranks, "interval", bootstrap=how(resamples=1000))
    assert got.mean == pytest.approx(known.mean, abs=1e-12)
    # ranks are not made anew in the resamples of the latter: nearly the same interval
    assert (got.low, got.high) == pytest.approx((known.low, known.high), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES)
def test_interval_equals_a_plain_bootstrap(measure: Measure) -> None:
    rng = np.random.default_rng(9)
    data = np.clip(np.round(3 + rng.normal(size=(25, 1)) + 0.6 * rng.normal(size=(25, 3))), 1, 5)
    data[3, 1] = data[7, 0] = nan
    draws = [pairwise_alpha(data[rng.integers(25, size=25)].tolist(), measure) for _ in range(400)]
    got = krippendorff_alpha(data, measure, bootstrap=how(level=0.8))
    tail = norm.cdf(math.sqrt(25 / 24) * t.ppf(0.1, 24))  # expanded, Hesterberg 2015
    known = np.quantile([d for d in draws if d is not None], (tail, 1 - tail))
    assert (got.low, got.high) == pytest.approx(known, abs=0.03)


def test_clusters_widen_what_they_share() -> None:
    # every case ten times under its own name: ten times fewer independent units
    rng = np.random.default_rng(2)
    cases = rng.normal(size=(20, 1)) + rng.normal(size=(20, 3))
    data, label = np.repeat(cases, 10, axis=0), np.repeat(np.arange(20), 10)
    wide = krippendorff_alpha(data, "interval", clusters=label, bootstrap=how())
    narrow = krippendorff_alpha(data, "interval", bootstrap=how())
    once = krippendorff_alpha(cases, "interval", bootstrap=how())
    assert wide.se == pytest.approx(once.se, rel=0.1)
    assert narrow.se is not None
    assert wide.se is not None
    assert narrow.se < 0.4 * wide.se
    assert (wide.n_clusters, narrow.n_clusters, wide.n) == (20, 200, 600)


def test_perfect_and_reversed() -> None:
    perfect = krippendorff_alpha(
        [[1, 1], [2, 2], [5, 5], [1, 1], [2, 2], [4, 4]], "ordinal", bootstrap=how()
    )
    assert (perfect.mean, perfect.low, perfect.high) == (1, 1, 1)
    assert perfect.reason == "no variation between cases"
    # two raters who always say the opposite: D_o = 1, D_e = 4 * 4 * 2 / (8 * 7)
    got = krippendorff_alpha([[0, 1], [1, 0], [0, 1], [1, 0]], "nominal")
    assert got.mean == pytest.approx(1 - 56 / 32)


@pytest.mark.parametrize("measure", MEASURES)
def test_undefined(measure: Measure) -> None:
    for ratings, reason in (
        ([[3, 3], [3, 3], [3, nan]], "no variation"),
        ([[0.1, 0.1, 0.1]] * 5, "no variation"),
        ([[1], [2], [3]], "no unit with two ratings"),
        ([[nan, nan], [nan, nan]], "no unit with two ratings"),
        ([[1, nan], [nan, 2]], "no unit with two ratings"),
        ([[1, 2], [nan, 2]], "one unit with two ratings"),
        (np.empty((0, 3)), "no unit with two ratings"),
    ):
        got = krippendorff_alpha(ratings, measure, bootstrap=how())
        assert (got.mean, got.low, got.high, got.se, got.reason) == (None,) * 4 + (reason,)


def test_resamples_without_variation_are_said() -> None:
    # one case of ten differs: 35 % of resamples miss it
    got = krippendorff_alpha([[4, 4]] * 9 + [[4, 3]], "ordinal", bootstrap=how())
    assert got.mean is not None
    assert got.low is None
    assert got.reason is not None
    assert got.reason.startswith("undefined in")
