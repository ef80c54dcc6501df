"""pass^k by hand and by enumeration of all draws."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.workflows.rates import Resampling, pass_power, pass_powers

QUICK = Resampling(resamples=200)
TRIES = st.lists(st.sampled_from([True, False, None]), max_size=6)


def test_by_hand() -> None:
    attempts = {"a": [True] * 4, "b": [True, True, False, False], "c": [False] * 4}
    assert pass_power(attempts, 1, QUICK).rate.mean == pytest.approx((1 + 1 / 2 + 0) / 3)
    # C(2, 2) / C(4, 2) = 1 / 6
    assert pass_power(attempts, 2, QUICK).rate.mean == pytest.approx((1 + 1 / 6 + 0) / 3)
    assert pass_power(attempts, 4, QUICK).rate.mean == pytest.approx(1 / 3)


@given(st.dictionaries(st.text(max_size=2), TRIES, max_size=5), st.integers(1, 4))
def test_as_the_share_of_draws_that_all_succeed(
    attempts: dict[str, list[bool | None]], k: int
) -> None:
    shares = []
    for tries in attempts.values():
        known = [t for t in tries if t is not None]
        draws = list(itertools.combinations(known, k))
        if draws:
            shares.append(sum(all(draw) for draw in draws) / len(draws))
    found = pass_power(attempts, k, QUICK)
    assert found.rate.mean == (pytest.approx(sum(shares) / len(shares)) if shares else None)
    assert found.few == len(attempts) - len(shares)
    assert found.unknown == sum(t is None for tries in attempts.values() for t in tries)


def test_too_few_attempts_are_no_rate() -> None:
    found = pass_power({"a": [True, None], "b": [None]}, 2, QUICK)
    assert (found.rate.mean, found.few, found.unknown) == (None, 2, 2)
    with pytest.raises(ValueError, match="at least 1"):
        pass_power({}, 0)


def test_intervals_resample_cases() -> None:
    attempts = {str(i): [i % 2 == 0] * 8 for i in range(20)}  # cases all or nothing
    rate = pass_power(attempts, 8).rate
    assert rate.n == 20
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 0.32 < 0.68 < rate.high  # 20 coins, not 160


def test_all_k_up_to_the_most_there_is() -> None:
    found = pass_powers({"a": [True, False, True], "b": [True, None]}, 5, QUICK)
    assert [(p.k, p.rate.mean, p.few) for p in found] == [
        (1, pytest.approx((2 / 3 + 1) / 2), 0),
        (2, pytest.approx(1 / 3), 1),
        (3, 0.0, 1),
    ]
    assert pass_powers({}, 3) == ()
