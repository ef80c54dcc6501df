"""Adjusted p-values: definitions by brute force, scipy, properties."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import adjust

METHODS: list[Literal["holm", "bh", "by"]] = ["holm", "bh", "by"]
some = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


def rejected(p: list[float], level: float, method: str) -> set[int]:
    """The procedures as published: which hypotheses fall at this level."""
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    if method == "holm":
        out = set()
        for step, i in enumerate(order):
            if p[i] > level / (m - step):
                break
            out.add(i)
        return out
    share = sum(1 / i for i in range(1, m + 1)) if method == "by" else 1
    last = max(
        (k for k in range(1, m + 1) if p[order[k - 1]] <= k * level / (m * share)), default=0
    )
    return set(order[:last])


@given(st.lists(st.integers(1, 999), min_size=1, max_size=8), st.sampled_from(METHODS))
def test_adjusted_values_reject_what_the_procedure_rejects(
    thousandths: list[int], method: Literal["holm", "bh", "by"]
) -> None:
    p = [t / 1000 for t in thousandths]
    got = adjust(p, method).adjusted
    for level in (0.0123457, 0.0501237, 0.1002347, 0.3333337, 0.9000001):  # no ties with k / 1000
        assert rejected(p, level, method) == {
            i for i, q in enumerate(got) if q is not None and q <= level
        }


@given(some, st.sampled_from(METHODS))
def test_properties(p: list[float | None], method: Literal["holm", "bh", "by"]) -> None:
    got = adjust(p, method)
    assert got.raw == tuple(p)
    assert got.n_tests == sum(v is not None for v in p)
    for raw, new in zip(p, got.adjusted, strict=True):
        assert (raw is None) == (new is None)
        if raw is not None and new is not None:
            assert raw <= new <= 1
    known = [
        (r, a) for r, a in zip(p, got.adjusted, strict=True) if r is not None and a is not None
    ]
    known.sort()
    assert [a for _, a in known] == sorted(a for _, a in known)  # order kept
    order = np.random.default_rng(len(p)).permutation(len(p))
    shuffled = adjust([p[i] for i in order], method).adjusted
    assert list(shuffled) == [got.adjusted[i] for i in order]


@pytest.mark.parametrize("method", ["bh", "by"])
def test_equals_scipy(method: Literal["bh", "by"]) -> None:
    p = np.random.default_rng(0).random(25) ** 3
    truth = stats.false_discovery_control(p, method=method)
    assert adjust(p.tolist(), method).adjusted == pytest.approx(truth.tolist(), rel=1e-12)


def test_by_hand() -> None:
    p = [0.01, None, 0.04, 0.03]
    assert adjust(p, "holm").adjusted == pytest.approx((0.03, None, 0.06, 0.06))
    assert adjust(p, "bh").adjusted == pytest.approx((0.03, None, 0.04, 0.04))
    assert adjust(p, "by").adjusted == pytest.approx((0.055, None, 0.22 / 3, 0.22 / 3))


@pytest.mark.parametrize("method", METHODS)
def test_none_and_one(method: Literal["holm", "bh", "by"]) -> None:
    assert adjust([], method).adjusted == ()
    assert adjust([None, None], method).adjusted == (None, None)
    assert adjust([0.037], method).adjusted == (0.037,)
    assert adjust([None, 0.037], method).adjusted == (None, 0.037)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="0, 1"):
        adjust([0.2, 1.2])
    with pytest.raises(ValueError, match="0, 1"):
        adjust([float("nan")])
    with pytest.raises(ValueError, match="method"):
        adjust([0.2], "bonferroni")  # type: ignore[arg-type]
