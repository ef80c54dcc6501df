"""pass@k and pass^k against all subsets of attempts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.stats import pass_at_k, pass_hat_k, pass_rate


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8))
def test_equals_all_subsets(outcomes: list[bool], k: int) -> None:
    c, n = sum(outcomes), len(outcomes)
    subsets = list(itertools.combinations(outcomes, k))
    if not subsets:
        assert pass_at_k(c, n, k) is None
        assert pass_hat_k(c, n, k) is None
        return
    assert pass_at_k(c, n, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(c, n, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("k", "every", "one"),
    [(1, 0.42, 0.42), (2, 0.273333, 0.566667), (3, 0.22, 0.66), (4, 0.20, 0.72)],
)
def test_four_trials_of_fifty_tasks(k: int, every: float, one: float) -> None:
    # tasks by number of successes: 14 with none, 12 with 1, 10 with 2, 4 with 3, 10 with 4
    tasks = [(c, 4) for c, count in enumerate([14, 12, 10, 4, 10]) for _ in range(count)]
    assert pass_rate(tasks, k, kind="hat").rate.mean == pytest.approx(every, abs=2e-6)
    assert pass_rate(tasks, k, kind="at").rate.mean == pytest.approx(one, abs=2e-6)


def test_tasks_with_too_few_attempts_are_left_out() -> None:
    got = pass_rate([(2, 2), (0, 1), (3, 4)], 2, kind="hat")
    assert got.left_out == 1
    assert got.rate.mean == pytest.approx((1 + 0.5) / 2)
    assert got.rate.n == 2
    nothing = pass_rate([(1, 1)], 2, kind="at")
    assert (nothing.rate.mean, nothing.rate.reason) == (None, "no task has 2 scored attempts")
