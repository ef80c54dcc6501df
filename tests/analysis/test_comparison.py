"""Paired comparison: hand-made tables, brute force, mirror image, what may not be decided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agenteval.analysis.comparison import CompareOptions, Comparison, ComparisonRow, compare
from agenteval.errors import InputError
from agenteval.stats.scores import ScoreTable, score_table

LOW = CompareOptions(min_cases=2)


def rows_of(system: str, values: Sequence[float | None], **more: Any) -> list[dict[str, Any]]:
    """One run per case, `c0`, `c1`, ...; None is a failure."""
    return [
        {
            "run": f"{system}-{i}",
            "case": f"c{i}",
            "system": system,
            "criterion": "clarity",
            "value": v,
            "status": "scored" if v is not None else "unscored:parse",
            **more,
        }
        for i, v in enumerate(values)
    ]


def table(system: str, values: Sequence[float | None], **more: Any) -> ScoreTable:
    return score_table(rows_of(system, values, **more))


def only(comparison: Comparison) -> ComparisonRow:
    (row,) = comparison.rows
    return row


A = [0.25, 0.5, 0.5, 0.75, 0.0, 0.25, 0.5, 1.0, 0.75, 0.25, 0.5, 0.0]
B = [0.5, 0.75, 0.25, 1.0, 0.25, 0.75, 0.5, 1.0, 1.0, 0.75, 0.25, 0.75]


def test_every_figure_by_another_way() -> None:
    row = only(compare(table("a", A), table("b", B), options=LOW))
    d = [b - a for a, b in zip(A, B, strict=True)]
    assert row.n == 12
    assert (row.first.mean, row.second.mean) == pytest.approx((sum(A) / 12, sum(B) / 12))
    assert (row.wins, row.ties, row.losses) == (8, 2, 2)
    expected = stats.ttest_rel(B, A).confidence_interval(0.95)
    assert row.difference.mean == pytest.approx(sum(d) / 12)
    assert (row.difference.low, row.difference.high) == pytest.approx((expected.low, expected.high))
    flips = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in itertools.product((-1, 1), repeat=12)
    ]
    assert row.p == pytest.approx(sum(f >= abs(sum(d)) - 1e-9 for f in flips) / 2**12)
    assert row.p_holm == row.p
    assert row.correlation == pytest.approx(stats.pearsonr(A, B).statistic)
    z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    sd = float(np.std(d, ddof=1))
    assert row.detectable == pytest.approx(z * sd / math.sqrt(12))
    assert row.cases_to_decide == math.ceil((z * sd / (sum(d) / 12)) ** 2)
    assert row.reason == (
        f"the interval [+0.019, +0.398] excludes 0, but the test is not significant: "
        f"p = {row.p:.3g}; "
        "about 17 similar cases would settle it"
    )
    shifted = [x + 0.05 for x in d]
    assert sum(shifted) > 0
    assert row.p_regression == 1.0


def test_the_test_against_the_margin_by_all_sign_flips() -> None:
    a, b = [1.0] * 10, [0.75, 0.5, 0.75, 0.5, 1.0, 0.25, 0.75, 0.5, 0.75, 0.5]
    options = CompareOptions(min_cases=2, margin=0.1)
    row = only(compare(table("a", a), table("b", b), options=options))
    d = [y - x + 0.1 for x, y in zip(a, b, strict=True)]
    flips = [
        sum(s * x for s, x in zip(signs, d, strict=True))
        for signs in itertools.product((-1, 1), repeat=10)
    ]
    assert row.p_regression == pytest.approx(sum(f <= sum(d) + 1e-9 for f in flips) / 2**10)


def test_repeats_and_runs_of_a_case_are_one_number() -> None:
    """Case c: runs .25 and .75 (three repeats 0, 1, 1 less one failure) against one run."""
    first = score_table(
        [
            {"run": "r1", "case": "c", "system": "a", "criterion": "x", "repeat": 0, "value": 0.25},
            {"run": "r2", "case": "c", "system": "a", "criterion": "x", "repeat": 0, "value": 0.5},
            {"run": "r2", "case": "c", "system": "a", "criterion": "x", "repeat": 1, "value": 1.0},
            {
                "run": "r2",
                "case": "c",
                "system": "a",
                "criterion": "x",
                "repeat": 2,
                "value": None,
                "status": "error:timeout",
            },
        ]
    )
    second = score_table([{"run": "s", "case": "c", "system": "b", "criterion": "x", "value": 1.0}])
    row = only(compare(first, second, options=LOW))
    assert (row.n, row.first.mean, row.second.mean) == (1, 0.5, 1.0)
    assert row.counts[0].failures == {"error:timeout": 1}
    assert row.counts[0].rated == 3
    assert row.verdict == "cannot tell"


def test_judges_are_paired_by_run_and_experiments_by_system() -> None:
    """Run r2 is rated by the first judge only: it must not move the first mean."""

    def ratings(values: dict[str, float]) -> ScoreTable:
        return score_table(
            {"run": r, "case": r[0], "system": f"s{r[1]}", "criterion": "x", "value": v}
            for r, v in values.items()
        )

    first = ratings({"a1": 0.5, "a2": 1.0, "b1": 0.25})
    second = ratings({"a1": 0.75, "b1": 0.25, "c1": 1.0})
    for pair_by in ("run", "system"):
        found = compare(first, second, pair_by=pair_by, options=LOW)
        row = only(found)
        assert (row.first.mean, row.second.mean) == ((0.5 + 0.25) / 2, (0.75 + 0.25) / 2)
        assert (found.common, found.only_first, found.only_second) == (("a", "b"), (), ("c",))
        assert found.unmatched == 1
    by_case = only(compare(first, second, options=LOW))
    assert by_case.first.mean == (0.75 + 0.25) / 2


def test_holm_over_criteria_by_hand() -> None:
    """Raw p of 6, 8 and 10 wins without a loss: 2/64, 2/256, 2/1024; Holm: x 1, x 2, x 3."""
    wins = {"six": 6, "eight": 8, "ten": 10}

    def side(system: str, high: bool) -> ScoreTable:
        return score_table(
            {
                "run": f"{system}{i}",
                "case": f"c{i}",
                "system": system,
                "criterion": name,
                "value": 0.75 if high and i < n else 0.5,
            }
            for name, n in wins.items()
            for i in range(10)
        )

    found = {r.criterion: r for r in compare(side("a", False), side("b", True), options=LOW).rows}
    assert [found[n].p for n in wins] == pytest.approx([2 / 64, 2 / 256, 2 / 1024])
    assert [found[n].p_holm for n in wins] == pytest.approx([2 / 64, 4 / 256, 6 / 1024])


def test_success_is_mcnemar() -> None:
    """Only A right: 2 cases, only B right: 9; exact p = 2 P(X <= 2), X binomial(11, 1/2)."""
    first = [True] * 2 + [False] * 9 + [True] * 10
    second = [False] * 2 + [True] * 9 + [True] * 10

    def side(system: str, outcomes: Iterable[bool]) -> ScoreTable:
        return score_table(
            {**row, "success": ok}
            for row, ok in zip(rows_of(system, [0.5] * 21), outcomes, strict=True)
        )

    rows = compare(side("a", first), side("b", second)).rows
    row = rows[-1]
    assert [r.criterion for r in rows] == ["clarity", "success"]
    assert row.p == pytest.approx(2 * sum(math.comb(11, k) for k in range(3)) / 2**11)
    assert row.test == "McNemar, exact"
    assert (row.wins, row.losses, row.ties) == (9, 2, 10)
    assert row.difference.mean == pytest.approx(7 / 21)


def test_the_same_runs_rated_twice_have_no_success_to_compare() -> None:
    same = table("a", A, success=True)
    assert [r.criterion for r in compare(same, same, pair_by="run", options=LOW).rows] == [
        "clarity"
    ]


def test_unknown_success_is_left_out() -> None:
    first = score_table(
        [{**r, "success": None if i < 3 else True} for i, r in enumerate(rows_of("a", A))]
    )
    row = compare(first, table("b", B, success=False), options=LOW).rows[-1]
    assert (row.n, row.lost, row.counts[0].failures) == (9, 3, {"unknown": 3})
    assert (row.first.mean, row.second.mean) == (1.0, 0.0)


VALUES = st.lists(
    st.tuples(*[st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.75, 1.0])] * 2), min_size=2, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_the_mirror_image_changes_signs_only(pairs: list[tuple[float, float]]) -> None:
    a, b = table("a", [x for x, _ in pairs]), table("b", [y for _, y in pairs])
    there, back = only(compare(a, b, options=LOW)), only(compare(b, a, options=LOW))
    assert (there.p, there.correlation, there.detectable) == (
        back.p,
        pytest.approx(back.correlation),
        pytest.approx(back.detectable),
    )
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.first == back.second
    for left, right in (
        (there.difference.mean, back.difference.mean),
        (there.difference.low, back.difference.high),
        (there.difference.high, back.difference.low),
    ):
        assert left is not None
        assert right is not None
        assert left == pytest.approx(-right, abs=1e-12)
    mirror = {"better": "worse", "worse": "better"}
    assert there.verdict == mirror.get(back.verdict, back.verdict)


# ---- verdicts ------------------------------------------------------------------------------------


def shifted(n: int, by: Sequence[float], start: float = 0.5) -> Comparison:
    """A is constant; B differs by the given amounts in turn."""
    moved = [start + by[i % len(by)] for i in range(n)]
    return compare(table("a", [start] * n), table("b", moved))


@pytest.mark.parametrize(
    ("by", "n", "verdict"),
    [
        ((0.25, 0.5), 20, "better"),
        ((-0.25, -0.5), 20, "worse"),
        ((0.01, -0.01), 40, "no difference"),
        ((0.5, -0.5), 40, "cannot tell"),
        ((0.0,), 20, "identical"),
        ((0.0,), 19, "cannot tell"),
        ((0.25, 0.5), 19, "cannot tell"),  # too few cases, however clear
    ],
)
def test_verdicts(by: tuple[float, ...], n: int, verdict: str) -> None:
    assert only(shifted(n, by)).verdict == verdict


@pytest.mark.parametrize(
    ("by", "n", "verdict", "reason"),
    [
        ((0.25, 0.5), 20, "better", "by 0.375 [+0.315, +0.435]"),
        ((-0.02, -0.01), 20, "worse", "by 0.015 [-0.017, -0.013], and by no more than 0.017"),
        (
            (0.01, -0.01),
            40,
            "no difference",
            "any beyond 0.003 is excluded [-0.003, +0.003], and up to 0.05 does not matter",
        ),
        # .025^(1/40) = .912, .025^(1/100) = .964: the share of cases that may differ still
        ((0.0,), 40, "identical", "all 40 pairs; a difference beyond 0.088 is excluded"),
        ((0.0,), 100, "identical", "all 100 pairs; a difference beyond 0.036 is excluded"),
        # mean .01, sd^2 .2304 x 40/39: (1.95996 + .84162)^2 sd^2 / .04^2 = 1,159.2
        (
            (0.49, -0.47),
            40,
            "cannot tell",
            "the difference can be anywhere in [-0.145, +0.165]; "
            "about 1,160 similar cases would settle it",
        ),
        ((0.25, 0.5), 19, "cannot tell", "19 cases: at least 20 are needed"),
    ],
)
def test_reasons(by: tuple[float, ...], n: int, verdict: str, reason: str) -> None:
    row = only(shifted(n, by))
    assert (row.verdict, row.reason) == (verdict, reason)


def test_failures_forbid_a_verdict() -> None:
    """B answers 24 of 32 cases, all of them better: what is missing may be the worst."""
    first = table("a", [0.5] * 32)
    second = table("b", [0.75, 1.0] * 12 + [None] * 8)
    row = only(compare(first, second))
    assert (row.n, row.lost, row.verdict) == (24, 8, "cannot tell")
    assert "24 of 32" in row.reason
    allowed = CompareOptions(min_paired=0.75)
    assert only(compare(first, second, options=allowed)).verdict == "better"


def test_not_applicable_is_no_failure() -> None:
    rows = rows_of("b", [0.75, 1.0] * 12) + [
        {**r, "run": f"x{i}", "case": f"c{24 + i}", "status": "not_applicable"}
        for i, r in enumerate(rows_of("b", [None] * 8))
    ]
    row = only(compare(table("a", [0.5] * 32), score_table(rows)))
    assert (row.n, row.lost, row.inapplicable, row.verdict) == (24, 0, 8, "better")


def test_a_correction_that_takes_a_verdict_back_says_so() -> None:
    """20 cases, 6 wins: p = 2/64, over 20 unrelated criteria 20/32: nothing."""

    def side(system: str, n_high: int) -> ScoreTable:
        return score_table(
            {
                "run": f"{system}{i}",
                "case": f"c{i}",
                "system": system,
                "criterion": f"k{k}",
                "value": 0.75
                if k == 0 and i < n_high
                else 0.5 + 0.25 * (k > 0 and i < n_high) * (-1) ** i,
            }
            for k in range(20)
            for i in range(20)
        )

    row = compare(side("a", 0), side("b", 6)).rows[0]
    assert (row.p, row.p_holm) == (pytest.approx(2 / 64), pytest.approx(20 * 2 / 64))
    assert row.verdict == "cannot tell"
    assert "after correction" in row.reason


def test_thousands_of_cases_are_tested_by_the_normal_law() -> None:
    rng = np.random.default_rng(3)
    b = np.round(rng.normal(0.503, 0.1, 4000).clip(0, 1), 3)
    row = only(compare(table("a", [0.5] * 4000), table("b", b.tolist())))
    expected = stats.ttest_1samp(b - 0.5, 0).pvalue
    assert row.p == pytest.approx(expected, rel=0.05)


# ---- bad input -----------------------------------------------------------------------------------


def test_an_empty_side() -> None:
    with pytest.raises(InputError, match="second side has no ratings"):
        compare(table("a", A), table("b", B, variant="pad"))


def test_an_unknown_criterion() -> None:
    with pytest.raises(InputError, match="'depth' is not rated; available: clarity"):
        compare(table("a", A), table("b", B), criteria=["depth"])


def test_levels_without_an_order_are_counted() -> None:
    labels = [
        {**r, "value": None, "label": "blue" if i else "red", "status": "scored"}
        for i, r in enumerate(rows_of("a", A))
    ]
    row = only(compare(score_table(labels), score_table(labels), options=LOW))
    assert (row.n, row.p, row.verdict, row.unordered) == (0, None, "cannot tell", True)
    assert row.reason == "levels without an order (nominal): counted, not averaged"
    for side in row.counts:
        assert (side.rated, side.labels) == (12, {"blue": 11, "red": 1})
