"""Flip rates by hand, recorded repeats, coverage, odd input."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.stats import flip_rate, mean_interval, proportion_interval

FOLDER = Path(__file__).resolve().parents[3] / "shared/reference/stats/prometheus"
nan = math.nan


def test_by_hand() -> None:
    got = flip_rate([[1, 1, 1], [1, 2, 1], [1, 2, 3], [4, 4, nan], [5, nan, nan]])
    assert got.left_out == 1
    # flips 0, 1, 2, 0 of 3, 3, 3, 2 repeats
    assert got.rate.mean == pytest.approx(3 / 11)
    assert (got.rate.n, got.rate.n_clusters) == (11, 4)
    # unlike pairs 0/3, 2/3, 3/3, 0/1
    assert got.pairs.mean == pytest.approx(5 / 12)
    assert got.pairs.n == 4
    assert (got.unstable.mean, got.unstable.n) == (0.5, 4)
    assert got.unstable == proportion_interval(2, 4)
    flips = [0.0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0]
    known = mean_interval(flips, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3], bounds=(0, 1))
    assert (got.rate.low, got.rate.high) == pytest.approx((known.low, known.high))


def test_two_repeats() -> None:
    # of two unlike repeats one differs from "the" most frequent label, whichever that is
    got = flip_rate([[0, 1], [1, 0], [1, 1], [0, 0]])
    assert (got.rate.mean, got.pairs.mean, got.unstable.mean) == (0.25, 0.5, 0.5)


@pytest.mark.skipif(not FOLDER.exists(), reason="reference data not present")
@pytest.mark.parametrize("bench", ["mt_bench_eval", "vicuna_eval", "both"])
def test_recorded_repeats(bench: str) -> None:
    known = json.loads((FOLDER / "reference.json").read_text())[bench]
    with (FOLDER / "scores.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if bench in ("both", r["bench"])]
    got = flip_rate([[float(r[s]) for s in ("s1", "s2", "s3")] for r in rows])
    assert got.unstable.mean == pytest.approx(1 - known["share_all_equal"], abs=2e-6)
    assert got.pairs.mean == pytest.approx(1 - known["pairwise_exact_agreement"], abs=2e-6)


cell = st.one_of(st.integers(0, 3).map(float), st.just(nan))
tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(cell, min_size=k, max_size=k), min_size=1, max_size=9)
)


@given(tables, st.randoms(use_true_random=False))
def test_definition_and_invariance(table: list[list[float]], rng: random.Random) -> None:
    got = flip_rate(table)
    cases = [[v for v in row if not math.isnan(v)] for row in table]
    cases = [case for case in cases if len(case) > 1]
    assert got.left_out == len(table) - len(cases)
    if not cases:
        assert got.rate.reason == "no case with two repeats"
        return
    flips = sum(len(c) - max(c.count(v) for v in c) for c in cases)
    assert got.rate.mean == pytest.approx(flips / sum(len(c) for c in cases))
    assert got.unstable.mean == pytest.approx(np.mean([len(set(c)) > 1 for c in cases]))
    mixed = [[{0: 7.0, 1: -1.0, 2: 0.0, 3: 3.5}.get(v, nan) for v in rng.sample(row, len(row))]
             for row in table]  # fmt: skip
    rng.shuffle(mixed)
    other = flip_rate(mixed)
    assert (other.rate, other.unstable) == (got.rate, got.unstable)
    assert other.pairs.mean == pytest.approx(got.pairs.mean)


def test_no_flip_is_not_certainty() -> None:
    got = flip_rate([[1, 1, 1]] * 10)
    assert (got.rate.mean, got.rate.low) == (0, 0)
    assert got.rate.high == got.pairs.high == got.unstable.high == proportion_interval(0, 10).high
    assert got.rate.reason == got.pairs.reason == "no flip seen"
    assert got.rate.se is None


@pytest.mark.parametrize("table", [[[nan, nan]] * 3, [[1], [2]], [[1, nan], [nan, 2]]])
def test_nothing_to_compare(table: list[list[float]]) -> None:
    got = flip_rate(table)
    assert got.left_out == len(table)
    for share in (got.rate, got.pairs, got.unstable):
        assert (share.mean, share.low, share.n) == (None, None, 0)
        assert share.reason == "no case with two repeats"


def test_one_case() -> None:
    got = flip_rate([[1, 2, 2]])
    assert (got.rate.mean, got.rate.low, got.rate.reason) == (
        pytest.approx(1 / 3), None, "one case: no interval"
    )  # fmt: skip
    assert (got.unstable.low, got.unstable.high) == pytest.approx((0.2065, 1), abs=1e-4)


def test_coverage_over_cases() -> None:
    """40 cases, 3 repeats of a yes/no label whose chance varies from case to case."""
    rng = np.random.default_rng(12)
    hits = 0
    for _ in range(600):
        chance = rng.beta(0.5, 0.5, size=(40, 1))
        got = flip_rate((rng.random((40, 3)) < chance).astype(float)).pairs
        assert got.low is not None
        assert got.high is not None
        # P(two repeats differ) = 2 E p (1 - p) = 2 (1/2 - (1/4 + 1/8)) = 1/4
        hits += got.low <= 0.25 <= got.high
    assert hits / 600 >= 0.92


def test_refusals() -> None:
    with pytest.raises(ValueError, match="units, raters"):
        flip_rate([1.0, 2.0])
    with pytest.raises(ValueError, match="level"):
        flip_rate([[1, 2], [1, 1]], level=3)
