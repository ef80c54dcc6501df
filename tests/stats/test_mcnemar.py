"""McNemar: binomial sums in fractions, scipy, hand-made tables."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import discordant, mcnemar

counts = st.integers(0, 40)


def tail(k: int, n: int) -> Fraction:
    """P(X <= k) of a fair binomial, exactly."""
    return Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n)


@given(counts, counts)
def test_equals_exact_fractions(b: int, c: int) -> None:
    got = mcnemar(b, c)
    n, low = b + c, min(b, c)
    point = Fraction(math.comb(n, low), 2**n)
    assert got.p == pytest.approx(min(1.0, float(2 * tail(low, n))), rel=1e-9)
    mid = 1 if b == c else 2 * tail(low, n) - point
    assert got.mid_p == pytest.approx(float(mid), rel=1e-9)
    assert got.mid_p <= got.p
    assert mcnemar(c, b).p == got.p
    assert mcnemar(b, c, alternative="greater").p == mcnemar(c, b, alternative="less").p


def test_far_tail_equals_scipy() -> None:
    assert mcnemar(360, 76).p == pytest.approx(stats.binomtest(76, 436).pvalue, rel=1e-9)
    assert mcnemar(360, 76).mid_p > 0


def test_small_tables() -> None:
    nothing = mcnemar(0, 0)
    assert (nothing.p, nothing.mid_p) == (1, 1)
    assert nothing.reason == "no discordant pairs: nothing to test"
    assert "too few discordant pairs (5)" in (mcnemar(5, 0).reason or "")
    assert mcnemar(6, 0).reason is None
    assert mcnemar(5, 0, alternative="greater").reason is None
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


def test_discordant_counts() -> None:
    first = [True, True, False, False, True]
    second = [True, False, True, False, False]
    assert discordant(first, second) == (2, 1)
    assert discordant([], []) == (0, 0)
    with pytest.raises(ValueError, match="do not match"):
        discordant([True], [])
    with pytest.raises(ValueError, match="true or false"):
        discordant([1, 0], [0, 1])  # type: ignore[list-item]
