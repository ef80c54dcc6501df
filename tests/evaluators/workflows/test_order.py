"""Order-aware scores against brute force and scipy."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.workflows.order import OrderScore, longest_common, order_score


def test_by_hand() -> None:
    found = order_score(["check", "search", "reserve"], ["search", "check", "reserve", "pay"])
    assert (found.common, found.matched) == (2, 3)
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 4)
    assert found.f1 == pytest.approx(4 / 7)
    assert found.tau == pytest.approx(1 / 3)  # two of three pairs in order


def test_gold_against_itself_and_reversed() -> None:
    gold = ["a", "b", "c"]
    same, back = order_score(gold, gold), order_score(gold[::-1], gold)
    assert (same.precision, same.recall, same.f1, same.tau) == (1, 1, 1, 1)
    assert (back.common, back.tau) == (1, -1)


def test_nothing_to_compare_is_undefined() -> None:
    assert order_score([], []) == OrderScore(common=0, matched=0)
    none_made = order_score([], ["a"])
    assert (none_made.precision, none_made.recall, none_made.f1) == (None, 0, 0)
    none_due = order_score(["a"], [])
    assert (none_due.precision, none_due.recall, none_due.f1) == (0, None, 0)
    assert order_score(["a"], ["a"]).tau is None


NAMES = st.lists(st.sampled_from("abc"), max_size=6)


@given(left=NAMES, right=NAMES)
def test_common_is_the_longest_of_all_subsequences(left: list[str], right: list[str]) -> None:
    def subsequences(names: list[str]) -> set[tuple[str, ...]]:
        return {c for size in range(len(names) + 1) for c in combinations(names, size)}

    expected = max(map(len, subsequences(left) & subsequences(right)))
    assert longest_common(left, right) == expected


@given(order=st.permutations(range(6)))
def test_tau_is_that_of_scipy(order: list[int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = order_score([str(i) for i in order], [str(i) for i in range(6)])
    where = [order.index(i) for i in range(6)]
    assert found.tau == pytest.approx(stats.kendalltau(range(6), where).statistic)
