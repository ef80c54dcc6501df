"""ICC: the table of Shrout and Fleiss, covariances instead of mean squares, coverage, odd input."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import icc, icc_table
from agenteval.stats.reliability import IccForm

FOLDER = Path(__file__).resolve().parents[3] / "shared/reference/stats/prometheus"
FORMS: tuple[IccForm, ...] = get_args(IccForm)
# Shrout and Fleiss 1979, table 2: six targets, four judges
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
# coefficients as printed there; ends as the R package psych prints them for these data
PRINTED: dict[IccForm, tuple[str, str, str]] = {
    "ICC(1,1)": ("0.17", "-0.13", "0.72"),
    "ICC(A,1)": ("0.29", "0.02", "0.76"),
    "ICC(C,1)": ("0.71", "0.34", "0.95"),
    "ICC(1,k)": ("0.44", "-0.88", "0.91"),
    "ICC(A,k)": ("0.62", "0.07", "0.93"),
    "ICC(C,k)": ("0.91", "0.68", "0.99"),
}


@pytest.mark.parametrize("form", FORMS)
def test_shrout_and_fleiss(form: IccForm) -> None:
    got = icc(TARGETS, form)
    assert tuple(f"{v:.2f}" for v in (got.mean, got.low, got.high)) == PRINTED[form]
    assert (got.n, got.n_clusters, got.se, got.reason) == (24, 6, None, None)
    assert form in got.method


@pytest.mark.skipif(not FOLDER.exists(), reason="reference data not present")
@pytest.mark.parametrize("bench", ["mt_bench_eval", "vicuna_eval", "both"])
def test_recorded_repeats(bench: str) -> None:
    known = json.loads((FOLDER / "reference.json").read_text())[bench]
    with (FOLDER / "scores.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if bench in ("both", r["bench"])]
    table = icc_table([[float(r[s]) for s in ("s1", "s2", "s3")] for r in rows])
    assert {form: table[form].mean for form in FORMS} == pytest.approx(
        {form: known[form] for form in FORMS}, abs=2e-6
    )


ratings = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(1, 6), min_size=k, max_size=k), min_size=2, max_size=8)
)


@given(ratings)
def test_equals_covariances(table: list[list[int]]) -> None:
    """Consistency is mean covariance over mean variance of the raters; k of it Cronbach's alpha."""
    data = np.array(table, dtype=float)
    n, k = data.shape
    cov = np.cov(data, rowvar=False)
    mean_var = np.trace(cov) / k
    mean_cov = (cov.sum() - np.trace(cov)) / (k * (k - 1))
    shift = float(np.var(data.mean(axis=0), ddof=1)) - (mean_var - mean_cov) / n
    assume(mean_var - mean_cov > 1e-9)
    assume(mean_var + (k - 1) * mean_cov > 1e-9)  # units vary
    got = icc_table(data)
    assert got["ICC(C,1)"].mean == pytest.approx(mean_cov / mean_var, abs=1e-9)
    cronbach = k / (k - 1) * (1 - np.trace(cov) / cov.sum())
    assert got["ICC(C,k)"].mean == pytest.approx(cronbach, rel=1e-7, abs=1e-9)
    assert got["ICC(A,1)"].mean == pytest.approx(mean_cov / (mean_var + shift), rel=1e-7, abs=1e-9)
    ratio = stats.f_oneway(*data).statistic  # one-way analysis of variance, units as groups
    if math.isfinite(ratio):
        assert got["ICC(1,1)"].mean == pytest.approx((ratio - 1) / (ratio + k - 1), abs=1e-9)


@given(ratings, st.integers(0, 99))
def test_order_and_linear_scale_change_nothing(table: list[list[int]], seed: int) -> None:
    data = np.array(table, dtype=float)
    mix = np.random.default_rng(seed)
    other = 2.5 * data[mix.permutation(len(data))][:, mix.permutation(data.shape[1])] - 40
    for form, plain in icc_table(data).items():
        changed = icc(other, form)
        assert changed.reason == plain.reason
        if plain.mean is None:
            assert changed.mean is None
            continue
        assert changed.mean == pytest.approx(plain.mean, rel=1e-4, abs=1e-6)
        assert (changed.low is None) == (plain.low is None)
        if plain.low is None or plain.high is None:
            continue
        # mean forms have a pole: large negative ends are true to some digits only
        assert (changed.low, changed.high) == pytest.approx(
            (plain.low, plain.high), rel=1e-4, abs=1e-6
        )
        assert plain.low <= plain.mean + 1e-9
        assert plain.mean <= plain.high + 1e-9 <= 1 + 2e-9


def test_one_way_ignores_which_rater_and_consistency_a_shift() -> None:
    data = np.array(TARGETS, dtype=float)
    mixed = np.array([np.roll(row, i) for i, row in enumerate(data)])
    assert icc(mixed, "ICC(1,1)").mean == pytest.approx(icc(data, "ICC(1,1)").mean)
    shifted = data + np.array([0, 5, -3, 1])
    assert icc(shifted, "ICC(C,1)").mean == pytest.approx(icc(data, "ICC(C,1)").mean)
    assert icc(shifted, "ICC(A,1)").mean != pytest.approx(icc(data, "ICC(A,1)").mean, abs=0.05)


@pytest.mark.parametrize("form", ["ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(A,k)"])
def test_coverage(form: IccForm) -> None:
    """30 units sd 1, 4 raters, error sd .8, raters' shift sd .4 (0 for the one-way form)."""
    rng = np.random.default_rng(17)
    shift = 0.0 if form == "ICC(1,1)" else 0.4
    single = 1 / (1 + 0.64 + (0 if form == "ICC(C,1)" else shift**2))
    truth = 4 * single / (1 + 3 * single) if form.endswith("k)") else single
    hits = 0
    for _ in range(1000):
        data = (
            rng.normal(size=(30, 1)) + shift * rng.normal(size=4) + 0.8 * rng.normal(size=(30, 4))
        )
        got = icc(data, form)
        assert got.low is not None
        assert got.high is not None
        hits += got.low <= truth <= got.high
    assert 0.925 <= hits / 1000 <= 0.975


def test_undefined() -> None:
    for table, reason in (
        (np.empty((0, 2)), "no ratings"),
        ([[math.nan] * 2] * 3, "no ratings"),
        ([[1], [2]], "one rater"),
        ([[1, 2]], "one unit"),
        ([[1, 2], [3, math.nan], [3, 3]], "needs complete data: 1 of 3 units have missing ratings"),
        ([[0.1, 0.1], [0.1, 0.1]], "no variation"),
    ):
        for form in FORMS:
            got = icc(table, form)
            assert (got.mean, got.low, got.high, got.reason) == (None, None, None, reason)


def test_repeats_that_never_differ() -> None:
    for form in FORMS:
        got = icc([[1, 1, 1], [2, 2, 2], [4, 4, 4]], form)
        assert (got.mean, got.low, got.high) == (1, 1, 1)
        assert got.reason == "no variation within units"


def test_units_that_never_differ() -> None:
    # MSR 0, MSW 1/2: ICC(1,1) = -1/(k-1), its mean form -inf, consistency -1, absolute by hand:
    # MSC 0, MSE 1, so (0 - 1) / (0 + 1 + 2/2 (0 - 1)): no finite value
    got = icc_table([[1, 2], [2, 1]])
    assert (got["ICC(1,1)"].mean, got["ICC(C,1)"].mean) == pytest.approx((-1, -1))
    for form in ("ICC(1,k)", "ICC(C,k)", "ICC(A,1)", "ICC(A,k)"):
        assert got[form].mean is None  # type: ignore[index]
        assert "no finite value" in (got[form].reason or "")  # type: ignore[index]
    assert got["ICC(1,1)"].low is None
    assert got["ICC(1,1)"].reason == "no variation between units: no interval"


def test_two_units_say_little() -> None:
    got = icc([[1, 2], [5, 5]], "ICC(A,1)")
    assert got.mean is not None
    assert got.low is not None
    assert got.high is not None
    assert got.mean == pytest.approx(0.96)  # MSR 49/4, MSE 1/4, MSC 1/4: 12 / (12.5 + 0)
    assert got.high - got.low > 0.85


def test_raters_apart_by_a_constant() -> None:
    data = [[1, 3], [2, 4], [5, 7], [6, 8]]
    assert icc(data, "ICC(C,1)").mean == pytest.approx(1)
    absolute = icc(data, "ICC(A,1)")
    assert absolute.mean is not None
    assert absolute.mean < 0.8


def test_refusals() -> None:
    with pytest.raises(ValueError, match="not one of"):
        icc(TARGETS, "ICC(2,1)")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level"):
        icc(TARGETS, "ICC(1,1)", level=2)
    with pytest.raises(ValueError, match="units, raters"):
        icc([1.0, 2.0], "ICC(1,1)")
