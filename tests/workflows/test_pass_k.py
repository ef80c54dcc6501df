"""pass^k by hand and by enumeration of all draws."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.workflows.rates import Resampling, pass_powers

QUICK = Resampling(resamples=200)
TRIES = st.lists(st.booleans(), max_size=6)


def test_by_hand() -> None:
    found = pass_powers([(4, 4), (2, 4), (0, 4)], 9, QUICK)
    # C(2, 2) / C(4, 2) = 1 / 6
    by_hand = [(1 + 1 / 2 + 0) / 3, (1 + 1 / 6 + 0) / 3, 1 / 3, 1 / 3]
    assert [p.rate.mean for p in found] == pytest.approx(by_hand)


@given(st.lists(TRIES, max_size=5))
def test_as_the_share_of_draws_that_all_succeed(tasks: list[list[bool]]) -> None:
    found = pass_powers([(sum(tries), len(tries)) for tries in tasks], 4, QUICK)
    assert len(found) == min(4, max(map(len, tasks), default=0))
    for power in found:
        draws = [d for tries in tasks if (d := list(itertools.combinations(tries, power.k)))]
        shares = [sum(map(all, some)) / len(some) for some in draws]
        assert power.rate.mean == pytest.approx(sum(shares) / len(shares))
        assert power.left_out == len(tasks) - len(shares)


def test_intervals_resample_cases() -> None:
    rate = pass_powers([(8 * (i % 2), 8) for i in range(20)], 8)[-1].rate  # cases all or nothing
    assert rate.n == 20
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 0.32 < 0.68 < rate.high  # 20 coins, not 160


def test_all_k_up_to_the_most_there_is() -> None:
    found = pass_powers([(2, 3), (1, 1)], 5, QUICK)
    assert [(p.k, p.rate.mean, p.left_out) for p in found] == [
        (1, pytest.approx((2 / 3 + 1) / 2), 0),
        (2, pytest.approx(1 / 3), 1),
        (3, 0.0, 1),
    ]
    assert pass_powers([], 3) == ()
