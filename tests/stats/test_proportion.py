"""Intervals of a share: reference numbers, scipy, the defining tests, odd input."""

from __future__ import annotations

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


@pytest.mark.parametrize("successes", [0, 12])
def test_all_alike_has_an_interval_but_no_standard_error(successes: int) -> None:
    got = proportion_interval(successes, 12)
    assert got.se is None
    assert got.reason == "all alike: no standard error"
    assert got.low != got.high
    assert {got.low, got.high} & {0.0, 1.0} == {successes / 12}
