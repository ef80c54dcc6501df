"""Intervals of a share: reference numbers, scipy, the defining tests, odd input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import proportion_interval
from agenteval.stats.proportion import ProportionMethod
from tests.golden.files import published

METHODS: list[ProportionMethod] = ["wilson", "clopper-pearson"]
counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_reference_intervals() -> None:
    table = published("statistics")["binomial_CI95"]
    assert len(table) == 5
    for name, ends in table.items():
        successes, n = (int(part) for part in name.split("/"))
        wilson = proportion_interval(successes, n)
        exact = proportion_interval(successes, n, method="clopper-pearson")
        assert (wilson.low, wilson.high) == pytest.approx(ends["wilson"], abs=2e-6), name
        assert (exact.low, exact.high) == pytest.approx(ends["beta"], abs=2e-6), name
        assert wilson.mean == exact.mean == successes / n


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_equals_scipy(pair: tuple[int, int], level: float) -> None:
    for method, name in (("wilson", "wilson"), ("clopper-pearson", "exact")):
        got = proportion_interval(*pair, method=method, level=level)  # type: ignore[arg-type]
        known = stats.binomtest(*pair).proportion_ci(level, method=name)  # type: ignore[arg-type]
        assert (got.low, got.high) == pytest.approx((known.low, known.high), abs=1e-10)


def test_wilson_ends_solve_the_score_equation() -> None:
    # |p_hat - p| = z sqrt(p (1 - p) / n) at both ends
    got = proportion_interval(7, 20)
    for end in (got.low, got.high):
        assert end is not None
        assert abs(0.35 - end) == pytest.approx(
            1.959964 * math.sqrt(end * (1 - end) / 20), abs=1e-6
        )


def test_clopper_pearson_ends_have_exact_tails() -> None:
    got = proportion_interval(7, 20, method="clopper-pearson")
    assert stats.binom.sf(6, 20, got.low) == pytest.approx(0.025, abs=1e-9)
    assert stats.binom.cdf(7, 20, got.high) == pytest.approx(0.025, abs=1e-9)


@given(counts)
def test_symmetric_and_exact_is_wider(pair: tuple[int, int]) -> None:
    successes, n = pair
    widths = []
    for method in METHODS:
        yes = proportion_interval(successes, n, method=method)
        no = proportion_interval(n - successes, n, method=method)
        assert yes.low is not None
        assert yes.high is not None
        assert yes.mean is not None
        assert no.high == pytest.approx(1 - yes.low, abs=1e-12)
        assert 0 <= yes.low <= yes.mean <= yes.high <= 1
        widths.append(yes.high - yes.low)
    assert widths[1] >= widths[0] - 0.03  # Wilson may be wider at the very ends, never by much


@pytest.mark.parametrize("method", METHODS)
def test_no_answer_has_no_share(method: ProportionMethod) -> None:
    got = proportion_interval(0, 0, method=method)
    assert (got.mean, got.low, got.high, got.se, got.n) == (None, None, None, None, 0)
    assert got.reason == "no values"


def test_one_answer() -> None:
    # Wilson at 1/1: 1 / (1 + z^2); Clopper-Pearson: p^1 = .025
    wilson, exact = (proportion_interval(1, 1, method=m) for m in METHODS)
    assert (wilson.low, wilson.high) == pytest.approx((1 / (1 + 1.959964**2), 1), abs=1e-6)
    assert (exact.low, exact.high) == pytest.approx((0.025, 1), abs=1e-12)


@pytest.mark.parametrize("successes", [0, 12])
def test_all_alike_has_an_interval_but_no_standard_error(successes: int) -> None:
    got = proportion_interval(successes, 12)
    assert got.se is None
    assert got.reason == "all alike: no standard error"
    assert got.low != got.high
    assert {got.low, got.high} & {0.0, 1.0} == {successes / 12}


def test_standard_error_and_method() -> None:
    got = proportion_interval(3, 12)
    assert got.se == pytest.approx(0.125)  # sqrt(.25 * .75 / 12)
    assert (got.method, got.reason, got.n, got.n_clusters) == ("Wilson", None, 12, None)


def test_refusals() -> None:
    for successes, n in ((5, 4), (-1, 4), (0, -1)):
        with pytest.raises(ValueError, match="between 0 and n"):
            proportion_interval(successes, n)
    with pytest.raises(ValueError, match="level"):
        proportion_interval(1, 2, level=95)
    with pytest.raises(ValueError, match="not one of"):
        proportion_interval(1, 2, method="wald")  # type: ignore[arg-type]
