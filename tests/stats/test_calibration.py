"""The expected calibration error: by hand, against its own definition, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import foldnorm

from agenteval.stats.calibration import calibration_error
from benchmarks.calibration import FIGURES, TARGET, coverage


def test_without_noise_it_is_the_definition() -> None:
    # half the runs .2 too high, the other half .1 too low: .5 * .2 + .5 * .1
    got = calibration_error(
        np.repeat([0.2, -0.1], 4000), np.repeat([0, 3], 4000), rng=np.random.default_rng(0)
    )
    assert got.mean == pytest.approx(0.15, abs=1e-3)
    assert got.low is not None
    assert got.high is not None
    assert got.low < 0.15 < got.high < 0.16


def test_the_mean_takes_off_what_a_normal_adds() -> None:
    rng = np.random.default_rng(3)
    gaps, bins = rng.normal(0.05, 0.4, 60), rng.integers(0, 3, 60)
    parts = np.zeros((60, 3))
    parts[np.arange(60), bins] = gaps
    d, s = parts.mean(axis=0), parts.std(axis=0, ddof=1) / np.sqrt(60)
    added = [foldnorm.mean(abs(m) / e, scale=e) - abs(m) for m, e in zip(d, s, strict=True)]
    expected = sum(max(0.0, abs(m) - a) for m, a in zip(d, added, strict=True))
    got = calibration_error(gaps, bins, rng=np.random.default_rng(0))
    assert got.mean == pytest.approx(expected, rel=1e-6)


def test_a_case_counts_once_however_often_it_is_rated() -> None:
    rng = np.random.default_rng(4)
    gaps, bins = rng.normal(0.1, 0.4, 40), rng.integers(0, 3, 40)
    once = calibration_error(gaps, bins, rng=np.random.default_rng(0))
    cases = np.repeat(np.arange(40), 5)
    five = calibration_error(
        np.repeat(gaps, 5), np.repeat(bins, 5), cases, rng=np.random.default_rng(0)
    )
    assert (five.mean, five.low, five.high) == pytest.approx((once.mean, once.low, once.high))
    assert five.n_clusters == 40


def test_few_cases_have_no_interval() -> None:
    rng = np.random.default_rng(0)
    few = calibration_error(np.full(19, 0.1), np.zeros(19, dtype=np.intp), rng=rng)
    assert (few.low, few.high) == (None, None)
    assert few.reason == "19 cases; 20 are needed"
    none = calibration_error(np.zeros(0), np.zeros(0, dtype=np.intp), rng=rng)
    assert none.mean is None


@pytest.mark.slow
@pytest.mark.parametrize("heat", [0.5, 1.0, 2.0])
def test_the_intervals_cover_the_population(heat: float) -> None:
    got = coverage(200, 60, 1, heat)
    # three standard errors of 200 draws at the target, which 1,000 draws meet (the benchmark)
    assert {name for name in FIGURES if got[name][0] < TARGET - 3 * 0.018} == set()
