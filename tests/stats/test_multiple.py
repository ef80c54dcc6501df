"""Adjusted p-values: definitions by brute force, scipy, properties."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.stats import adjust

METHODS: list[Literal["holm", "by"]] = ["holm", "by"]
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
    thousandths: list[int], method: Literal["holm", "by"]
) -> None:
    p = [t / 1000 for t in thousandths]
    got = adjust(p, method)
    for level in (0.0123457, 0.0501237, 0.1002347, 0.3333337, 0.9000001):  # no ties with k / 1000
        assert rejected(p, level, method) == {
            i for i, q in enumerate(got) if q is not None and q <= level
        }


@pytest.mark.parametrize(
    ("method", "p", "adjusted"),
    [
        ("holm", [0.01, None, 0.04, 0.03], (0.03, None, 0.06, 0.06)),
        ("by", [0.01, None, 0.04, 0.03], (0.055, None, 0.22 / 3, 0.22 / 3)),
        ("holm", [None, 0.037], (None, 0.037)),
        ("holm", [], ()),
    ],
)
def test_by_hand(
    method: Literal["holm", "by"], p: list[float | None], adjusted: tuple[float | None, ...]
) -> None:
    assert adjust(p, method) == pytest.approx(adjusted)


def test_no_share_is_no_p() -> None:
    for p in (1.2, float("nan")):
        with pytest.raises(ValueError, match="0, 1"):
            adjust([0.2, p])
