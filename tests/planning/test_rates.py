"""Rates, intervals, shares, effort, pairs and bounds, against hand calculations and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from agenteval.planning import rates
from agenteval.planning.capability import bounds, cases_for, last_and_below, reaches
from agenteval.planning.evaluator import Attempt
from agenteval.planning.rates import CaseLabel, SuccessRate, clustered_share
from agenteval.records import Usage
from agenteval.stats import Interval, proportion_interval
from tests.golden.files import published
from tests.planning.campaigns import attempt, case, failure

RIGHT, WRONG = "ab", "ba"


def wilson_ends(share: float, size: float) -> tuple[float, float]:
    """The p with (share - p)^2 = z^2 p (1 - p) / size: roots of a quadratic."""
    z2 = norm.ppf(0.975) ** 2
    low, high = sorted(np.roots([1 + z2 / size, -(2 * share + z2 / size), share**2]).real)
    return float(low), float(high)


@pytest.mark.parametrize(("passes", "n"), [(0, 1), (1, 1), (3, 7), (50, 50), (12, 300)])
def test_one_trial_per_case_is_wilson(passes: int, n: int) -> None:
    share = clustered_share([i < passes for i in range(n)], list(range(n)))
    expected = binomtest(passes, n).proportion_ci(method="wilson")
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high))
    assert (share.mean, share.n, share.n_clusters) == (passes / n, n, n)


def test_trials_of_a_case_count_less() -> None:
    """Cases 11, 10, 00, 11: deviations from 5/8 sum to .75, -.25, -1.25, .75, so se^2 is
    4/3 (2.75) / 64, and 3 degrees of freedom remain."""
    hits = [True, True, True, False, False, False, True, True]
    share = clustered_share(hits, list("aabbccdd"))
    variance = 4 / 3 * 2.75 / 64
    size = 0.625 * 0.375 / variance * (norm.ppf(0.975) / t.ppf(0.975, 3)) ** 2
    assert (share.mean, share.n_clusters) == (0.625, 4)
    assert share.se == pytest.approx(math.sqrt(variance))
    assert (share.low, share.high) == pytest.approx(wilson_ends(0.625, size))


def test_equal_cases_one_case_and_no_case() -> None:
    """18 passes in 6 cases say no more than 6 of 6: an interval never collapses."""
    share = clustered_share([True] * 18, [i // 3 for i in range(18)])
    expected = binomtest(6, 6).proportion_ci(method="wilson")
    assert (share.low, share.high) == pytest.approx((expected.low, 1.0))
    single = clustered_share([True, False], ["a", "a"])
    assert (single.mean, single.low, single.reason) == (0.5, None, "one case: no interval")
    assert clustered_share([], []).mean is None
    with pytest.raises(ValueError, match="1 trials but 2"):
        clustered_share([True], ["a", "b"])


@pytest.mark.parametrize("shape", [0.6, 3.0])
def test_the_interval_covers(shape: float) -> None:
    """Cases with beta-distributed chances around .7, 4 trials each: 95% must contain the mean."""
    rng = np.random.default_rng(7)
    labels = [i // 4 for i in range(100)]
    covered = 0
    for _ in range(300):
        chance = np.repeat(rng.beta(0.7 * shape, 0.3 * shape, 25), 4)
        share = clustered_share((rng.random(100) < chance).tolist(), labels)
        covered += share.low <= 0.7 <= share.high
    assert covered >= 0.92 * 300


def test_a_trial_without_a_verdict_is_in_no_rate() -> None:
    trials = [attempt(case("k"), RIGHT), attempt(case("l"), WRONG), failure(case("m"))]
    (row,) = rates.success_rates(trials)
    assert (row.right, row.trials, row.failures, row.success.mean) == (1, 2, 1, 0.5)
    (row,) = rates.success_rates([failure(case("k"))])
    assert (row.success.mean, row.trials, row.failures, row.guess) == (None, 0, 1, None)


def test_guessing_is_the_mean_of_valid_plans_over_all_orders() -> None:
    """1 of 2! and 2 of 3!: .5 and 1/3. A case without a count leaves it open."""
    counted = [attempt(case("k"), RIGHT), attempt(case("l", 3, ("ab", "cb"), valid=2), "acb")]
    uncounted = case("m", valid=None)
    assert rates.success_rates(counted)[0].guess == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert rates.success_rates([*counted, attempt(uncounted, RIGHT)])[0].guess is None
    assert rates.success_rates([*counted, failure(uncounted)])[0].guess is not None


def test_groups_are_in_the_order_of_numbers_and_unknown_ones_last() -> None:
    trials = [attempt(case(f"c{n}", n, ("ab",), valid=None), RIGHT) for n in (10, 9, 2)]
    assert [r.group for r in rates.by_actions(trials)] == ["2", "9", "10"]
    no_size = attempt(case("bare").model_copy(update={"size": None}), RIGHT)
    rows = rates.success_rates([no_size, *trials], rates.FEATURES["sub-sentences"])
    assert [(r.group, r.trials) for r in rows] == [("1", 3), ("not known", 1)]
    words = [attempt(case(f"c{w}", words=w), RIGHT) for w in (3, 20, 21, 40, 41, 99)]
    # width 20 gives 5 bins, width 10 would give 10
    assert [(r.group, r.trials) for r in rates.by_words(words)] == [
        ("1 to 20", 2),
        ("21 to 40", 2),
        ("41 to 60", 1),
        ("81 to 100", 1),
    ]


def test_types_of_errors_are_exclusive_and_complete() -> None:
    k = case("k", 3, ("ab", "bc"))
    calls = ("bac", "acb", "ab", "abX", "abc")
    trials = [attempt(k, order, trial=i) for i, order in enumerate(calls)]
    trials += [attempt(k, "", trial=5, ending="timeout"), failure(k, trial=6)]
    rows = rates.error_shares(trials)
    assert {r.label: (r.count, r.share.mean) for r in rows} == {
        "timeout": (1, 0.2),
        "act_error": (1, 0.2),
        "action_lost": (1, 0.2),
        "parameter_error": (0, 0.0),
        "order_error": (2, 0.4),
    }
    assert {r.total for r in rows} == {5}
    assert {r.share.mean for r in rates.error_shares([attempt(k, "abc")])} == {None}


def test_causes_keep_the_order_of_the_paper_and_other_labels_follow() -> None:
    labels = (("a", "s", "Topic"), ("b", "s", "undecided"), ("c", "s", "Topic"))
    rows = rates.cause_shares([CaseLabel(*label) for label in (*labels, ("a", "t", "Terminal"))])
    assert [r.label for r in rows] == [*rates.CAUSES, "undecided"] * 2
    assert [r.count for r in rows if r.system == "s"] == [0, 0, 2, 0, 0, 1]
    expected = binomtest(2, 3).proportion_ci(method="wilson")
    assert rows[2].share.low == pytest.approx(expected.low)
    assert rates.cause_shares([]) == []


def test_effort_counts_what_was_reported() -> None:
    k = case("k")
    usage = Usage(requests=2, prompt_tokens=100, completion_tokens=20, cost=0.5)
    trials = [
        attempt(k, RIGHT, seconds=2.0, usage=usage),
        attempt(k, WRONG, seconds=4.0, trial=1, usage=Usage(requests=1)),
        failure(k, trial=2),
    ]
    (row,) = rates.effort(trials)
    assert (row.seconds, row.turns, row.plans) == (3.0, 2.0, 1.0)
    assert (row.tokens, row.stated, row.trials) == (120.0, 1, 3)
    assert row.total_seconds == 7.0  # includes the failure, 1 s
    assert (row.cost, row.requests) == (0.5, 3)
    assert rates.effort([failure(k)])[0].seconds is None


def test_pass_hat_and_pass_at_k() -> None:
    """Cases with 2 of 3 and 3 of 3: of the 3 pairs 1 and 3 are all right, 3 and 3 contain one."""
    k, m = case("k"), case("m")
    trials = [attempt(k, RIGHT if i < 2 else WRONG, trial=i) for i in range(3)]
    trials += [attempt(m, RIGHT, trial=i) for i in range(3)]
    trials += [attempt(case("once"), WRONG), failure(case("gone"))]
    two, three = rates.repeated(trials)
    assert (two.k, two.one_right.mean) == (2, 1.0)
    assert two.all_right.mean == pytest.approx(2 / 3)
    assert (three.k, three.left_out, three.all_right.mean) == (3, 1, 0.5)
    assert rates.repeated([attempt(k, RIGHT)]) == []


def outcomes(hits: str, system: str = "s") -> list[Attempt]:
    """One case per character, 1 right and 0 wrong."""
    return [
        attempt(case(f"c{i}"), RIGHT if hit == "1" else WRONG, system=system)
        for i, hit in enumerate(hits)
    ]


def test_pairs_are_mcnemar_on_common_cases() -> None:
    """Only the first is right 5 times: p = 2 (1/2)^5. A failure loses one case."""
    first = outcomes("11111100")
    second = [*outcomes("00000100", "t"), failure(case("x"), system="t")]
    (pair,) = rates.system_pairs([*first, attempt(case("x"), RIGHT), *second])
    assert (pair.first, pair.second, pair.tasks, pair.left_out) == ("s", "t", 8, 1)
    assert (pair.only_first, pair.only_second) == (5, 0)
    assert pair.p == pair.corrected == pytest.approx(0.0625)
    assert pair.difference.mean == pytest.approx(5 / 8)
    assert pair.reason is not None  # five pairs cannot reach .05
    three = [*outcomes("1" * 8), *outcomes("0" * 8, "t"), *outcomes("0" * 8, "u")]
    assert [p.corrected for p in rates.system_pairs(three)] == pytest.approx(
        [6 * 0.5**8, 6 * 0.5**8, 1.0]
    )


def test_repeated_trials_are_one_pair_per_case() -> None:
    def trials(system: str, rows: dict[str, str]) -> list[Attempt]:
        return [
            attempt(case(k), RIGHT if hit == "1" else WRONG, system=system, trial=i)
            for k, hits in rows.items()
            for i, hit in enumerate(hits)
        ]

    first = trials("s", {"k": "110", "l": "11", "m": "0"})
    (pair,) = rates.system_pairs(first + trials("t", {"k": "1", "l": "10", "m": "0"}))
    assert (pair.tasks, pair.p) == (3, 1.0)
    assert (pair.only_first, pair.only_second) == (1, 1)  # l is better, k worse, m equal
    assert pair.difference.mean == pytest.approx((-1 / 3 + 1 / 2 + 0) / 3)
    assert "sign test" in pair.method


# The capability bound


def test_published_bounds_and_campaign_sizes() -> None:
    golden = published("planning_cases")
    for row in golden["campaign_cases_per_n"]:
        assert cases_for(row["n"]) == row["cases"]
    for row in golden["capability"]:
        expected = (row["last_at_or_above_20pct"], row["first_below"])
        assert last_and_below({int(n): rate for n, rate in row["rates"].items()}) == expected
    with pytest.raises(ValueError, match="at least 2"):
        cases_for(1)
    with pytest.raises(ValueError, match="not in"):
        reaches(20)


NOTHING = Interval(None, None, None, None, 0, None, "none", "no values")


def row(n: int, passes: int | None, cases: int = 100) -> SuccessRate:
    share = NOTHING if passes is None else proportion_interval(passes, cases)
    return SuccessRate("s", share, passes or 0, share.n, share.n, 0, None, str(n), float(n))


@pytest.mark.parametrize(
    ("rows", "bound", "certain", "sentence"),
    [
        # 60 of 100 lies in [.50, .69], 5 of 100 in [.02, .11]: both exclude 20%
        (
            [row(2, 90), row(3, 60), row(4, 5)],
            (3, 3, 3),
            True,
            "capability bound 3 actions (first below 20% at 4)",
        ),
        # 22 of 100 lies in [.15, .31], 18 of 100 in [.12, .27]: both contain 20%
        (
            [row(2, 90), row(3, 22), row(4, 18), row(5, 2)],
            (3, 2, 4),
            False,
            "first below 20% at 4); the 95% intervals allow 2 to 4",
        ),
        (
            [row(2, 99), row(3, 98)],
            (3, 3, 3),
            False,
            "capability bound at least 3 actions, the largest tested",
        ),
        (
            [row(2, 1), row(3, 0)],
            (None, None, None),
            True,
            "no bound: below 20% already at 2 actions",
        ),
        ([row(2, 3, 12)], (2, None, 2), False, "allow fewer than 2 to 2 or more"),
        ([row(2, 95), row(3, None), row(4, 2)], (2, 2, 2), False, "not tested: 3 actions"),
        ([row(2, 90), row(3, 10), row(4, 50)], (2, 2, 2), True, "or above 20% again at 4"),
    ],
)
def test_bounds(
    rows: list[SuccessRate],
    bound: tuple[int | None, int | None, int | None],
    certain: bool,
    sentence: str,
) -> None:
    (found,) = bounds(rows)
    assert (found.bound, found.least, found.most) == bound
    assert sentence in found.sentence
    assert found.certain == certain


def test_a_system_without_a_verdict_has_no_bound() -> None:
    assert bounds([row(3, None)]) == []
