"""Variance components: textbook ANOVA, expectation over simulations, what cannot be separated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agenteval.stats import variance_components


def test_unbalanced_one_way_is_the_anova_estimator() -> None:
    rng = np.random.default_rng(3)
    sizes = [1, 2, 5, 3, 8, 2]
    values, cases = [], []
    for case, size in enumerate(sizes):
        values += (rng.normal() * 2 + rng.normal(size=size)).tolist()
        cases += [case] * size
    groups = [[v for v, c in zip(values, cases, strict=True) if c == k] for k in range(6)]
    n, a, mean = len(values), 6, np.mean(values)
    within = sum(((np.array(g) - np.mean(g)) ** 2).sum() for g in groups) / (n - a)
    between = sum(len(g) * (np.mean(g) - mean) ** 2 for g in groups) / (a - 1)
    n0 = (n - sum(s * s for s in sizes) / n) / (a - 1)
    got = variance_components(values, cases)
    assert got.repeat == pytest.approx(within)
    assert got.case == pytest.approx((between - within) / n0)


def test_two_way_balanced_is_the_textbook() -> None:
    rng = np.random.default_rng(1)
    c, s, r = 7, 3, 4
    y = rng.normal(size=(c, s, r)) + 2 * rng.normal(size=(c, 1, 1)) + rng.normal(size=(c, s, 1))
    y += 3 * rng.normal(size=(1, s, 1))
    cell, row, column, mean = y.mean(2), y.mean((1, 2)), y.mean((0, 2)), y.mean()
    ms_c = s * r * ((row - mean) ** 2).sum() / (c - 1)
    ms_s = c * r * ((column - mean) ** 2).sum() / (s - 1)
    crossed = cell - row[:, None] - column[None] + mean
    ms_cs = r * (crossed**2).sum() / ((c - 1) * (s - 1))
    ms_e = ((y - cell[..., None]) ** 2).sum() / (c * s * (r - 1))
    cases, systems = (index.ravel().tolist() for index in np.indices(y.shape)[:2])
    got = variance_components(y.ravel(), cases, systems)
    assert got.repeat == pytest.approx(ms_e)
    assert got.case_system == pytest.approx((ms_cs - ms_e) / r)
    assert got.case == pytest.approx((ms_c - ms_cs) / (s * r))
    assert got.system == pytest.approx((ms_s - ms_cs) / (c * r))


def test_unbiased_with_missing_cells() -> None:
    rng = np.random.default_rng(7)
    truth = {"case": 1.5, "system": 0.8, "case_system": 0.4, "repeat": 0.6}
    cells = [(c, s) for c in range(12) for s in range(6) if (c * s) % 5 != 1]
    rows = [(c, s) for i, (c, s) in enumerate(cells) for _ in range(1 + i % 3)]
    found = []
    for _ in range(300):
        case, system = rng.normal(size=12) * 1.5**0.5, rng.normal(size=6) * 0.8**0.5
        both = {cell: rng.normal() * 0.4**0.5 for cell in cells}
        y = [case[c] + system[s] + both[c, s] + rng.normal() * 0.6**0.5 for c, s in rows]
        got = variance_components(y, [c for c, _ in rows], [s for _, s in rows])
        found.append([getattr(got, name) for name in truth])
    error = np.std(found, axis=0) / math.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - list(truth.values())) < 4 * error).all()


def test_what_cannot_be_separated() -> None:
    single = variance_components([1, 2, 4], ["a", "b", "c"])
    assert (single.case, single.repeat) == pytest.approx((7 / 3, None))  # the sample variance
    assert single.reason is not None
    assert "includes the spread of repeats" in single.reason
    joined = variance_components([1, 2, 4, 3], ["a", "a", "b", "b"], ["x", "y", "x", "y"])
    assert joined.repeat is None
    assert joined.case_system is not None
    one_system = variance_components([1, 3, 5, 7], ["a", "a", "b", "b"], ["x"] * 4)
    assert (one_system.case, one_system.system) == pytest.approx((7, None))
    assert one_system.reason == "one system: nothing between systems"
    nested = variance_components([1, 3, 5, 7, 2, 2, 1, 3], list("aabbccdd"), list("xxxxyyyy"))
    assert (nested.case, nested.repeat) == (None, None)
    assert nested.reason is not None
    assert "not shared" in nested.reason
    lonely = variance_components([1, 2], ["a", "a"])
    assert lonely.case is None
    assert lonely.reason == "fewer than two cases: no variance between cases"
    assert variance_components([], []).case is None
    negative = variance_components([0, 10, 0, 10], ["a", "a", "b", "b"])
    assert negative.case == 0
    constant = variance_components([3] * 4, list("aabb"))
    assert (constant.case, constant.repeat) == (0, 0)
