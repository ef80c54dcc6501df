"""Paired tests against all sign flips, scipy, and arithmetic."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.stats import PairedTest, sign_flip_test, sign_test
from agenteval.stats.vectors import Alternative

SIDES: list[Alternative] = ["two-sided", "greater", "less"]
few = st.lists(st.integers(-3, 3), min_size=1, max_size=8)


def all_flips(values: list[int]) -> list[tuple[int, ...]]:
    untied = [v for v in values if v]
    return [
        tuple(s * abs(v) for s, v in zip(signs, untied, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(untied))
    ]


def brute(values: list[int], statistic: Any) -> dict[str, float]:
    """p by the share of all sign flips whose statistic is as extreme."""
    seen = statistic([v for v in values if v])
    drawn = [statistic(list(f)) for f in all_flips(values)]
    less = sum(d <= seen for d in drawn) / len(drawn)
    greater = sum(d >= seen for d in drawn) / len(drawn)
    return {"less": less, "greater": greater, "two-sided": min(1, 2 * min(less, greater))}


@given(few)
def test_both_equal_all_flips(values: list[int]) -> None:
    tests: list[tuple[Any, Any]] = [
        (sign_test, lambda v: sum(x > 0 for x in v)),
        (sign_flip_test, sum),
    ]
    for test, statistic in tests:
        expected = brute(values, statistic)
        for side in SIDES:
            assert test(values, alternative=side).p == pytest.approx(expected[side], abs=1e-12)


@given(few)
def test_swapping_the_pairs_swaps_the_sides(values: list[int]) -> None:
    for test in (sign_test, sign_flip_test):
        one: PairedTest = test(values, alternative="greater")
        other: PairedTest = test([-v for v in values], alternative="less")
        assert one.p == other.p
        assert (one.positive, one.negative, one.ties) == (other.negative, other.positive, one.ties)
        assert test(values).p == test(values[::-1]).p


def test_random_flips_come_near_the_exact_value() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0.35, 1, 17)
    sums = np.array([np.dot(s, np.abs(values)) for s in itertools.product((-1, 1), repeat=17)])
    exact = float((np.abs(sums) >= abs(values.sum()) - 1e-12).mean())
    got = sign_flip_test(values, draws=40_000, rng=np.random.default_rng(0))
    assert got.p == pytest.approx(exact, abs=4 * math.sqrt(exact / 40_000))
    assert "40000 random" in got.method
    assert sign_flip_test(values, draws=40_000, rng=np.random.default_rng(0)) == got
    certain = sign_flip_test(np.ones(40), draws=99, rng=rng, alternative="greater")
    assert certain.p == pytest.approx(0.01)  # (0 + 1) / (99 + 1): never zero


@pytest.mark.parametrize("test", [sign_test, sign_flip_test])
def test_too_few_is_not_the_same_as_not_significant(test: Any) -> None:
    assert "4 " not in (test([1] * 5, alternative="greater").reason or "")
    one_sided = test([1] * 4 + [0] * 90, alternative="greater")
    assert one_sided.p == 0.0625
    assert "too few untied pairs (4)" in one_sided.reason
    assert test([1] * 5, alternative="greater").reason is None  # .5^5 = .031
    assert "too few untied pairs (5)" in test([1] * 5).reason  # 2 * .5^5 = .0625
    assert test([1] * 6).reason is None
    assert test([1] * 6).p == pytest.approx(0.03125)


@pytest.mark.parametrize("test", [sign_test, sign_flip_test])
def test_nothing_to_test(test: Any) -> None:
    assert (test([]).p, test([]).reason) == (None, "no pairs")
    tied = test([0.0] * 7)
    assert (tied.p, tied.ties) == (1.0, 7)
    assert "all 7 pairs are tied" in tied.reason
    with pytest.raises(ValueError, match="finite"):
        test([math.nan, 1])


def test_rounding_makes_no_difference() -> None:
    noisy = [1 / 3, 5 - 14 / 3, 4 / 3 - 1, 1 - 2 / 3, 2 / 3 - 1, 0.1 + 0.2 - 0.3, 2.0]
    clean = [1.0, 1, 1, 1, -1, 0, 6]
    assert len({abs(v) for v in noisy[:5]}) > 1
    for test in (sign_test, sign_flip_test):
        one: PairedTest = test(noisy)
        other: PairedTest = test(clean)
        assert (one.p, one.ties) == (other.p, 1)
