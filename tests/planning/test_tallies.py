"""Rates, intervals, shares and effort of planning campaigns, against hand and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, t

from agenteval.planning import tallies
from agenteval.records import Usage
from tests.planning.campaigns import attempt, case, failure

RIGHT, WRONG = "ab", "ba"


def wilson_ends(share: float, size: float) -> tuple[float, float]:
    """The p with (share - p)^2 = z^2 p (1 - p) / size: roots of a quadratic."""
    z2 = norm.ppf(0.975) ** 2
    low, high = sorted(np.roots([1 + z2 / size, -(2 * share + z2 / size), share**2]).real)
    return float(low), float(high)


@pytest.mark.parametrize(("passes", "n"), [(0, 1), (1, 1), (3, 7), (50, 50), (12, 300)])
def test_one_trial_per_case_is_wilson(passes: int, n: int) -> None:
    found = tallies.clustered_share([i < passes for i in range(n)], list(range(n)))
    known = binomtest(passes, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert (found.mean, found.n, found.n_clusters) == (passes / n, n, n)


def test_trials_of_a_case_count_less() -> None:
    """Cases 11, 10, 00, 11: deviations from 5/8 sum to .75, -.25, -1.25, .75, so se^2 is
    4/3 (2.75) / 64, and 3 degrees of freedom remain."""
    hits = [True, True, True, False, False, False, True, True]
    found = tallies.clustered_share(hits, list("aabbccdd"))
    variance = 4 / 3 * 2.75 / 64
    size = 0.625 * 0.375 / variance * (norm.ppf(0.975) / t.ppf(0.975, 3)) ** 2
    assert found.mean == 0.625
    assert found.se == pytest.approx(math.sqrt(variance))
    assert (found.low, found.high) == pytest.approx(wilson_ends(0.625, size))
    assert found.n_clusters == 4


def test_cases_that_do_not_differ_are_one_trial_each() -> None:
    """18 passes in 6 cases say no more than 6 of 6: an interval never collapses."""
    found = tallies.clustered_share([True] * 18, [i // 3 for i in range(18)])
    known = binomtest(6, 6).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((known.low, 1.0))
    half = tallies.clustered_share([True, False] * 5, [i // 2 for i in range(10)])
    assert (half.low, half.high) == pytest.approx(wilson_ends(0.5, 5))


def test_a_single_case_has_no_interval_and_no_trial_no_rate() -> None:
    one = tallies.clustered_share([True, False], ["a", "a"])
    assert (one.mean, one.low, one.reason) == (0.5, None, "one case: no interval")
    assert tallies.clustered_share([], []).mean is None
    with pytest.raises(ValueError, match="1 trials but 2"):
        tallies.clustered_share([True], ["a", "b"])


@pytest.mark.parametrize("shape", [0.6, 3.0])
def test_the_interval_covers(shape: float) -> None:
    """Cases with beta-distributed chances around .7, 4 trials each: 95 % must hold the mean."""
    rng = np.random.default_rng(7)
    labels = [i // 4 for i in range(100)]
    held = 0
    for _ in range(300):
        chance = np.repeat(rng.beta(0.7 * shape, 0.3 * shape, 25), 4)
        found = tallies.clustered_share((rng.random(100) < chance).tolist(), labels)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.7 <= found.high
    assert held >= 0.92 * 300


def test_a_trial_without_a_verdict_is_in_no_rate() -> None:
    k = case("k")
    trials = [attempt(k, RIGHT), attempt(case("l"), WRONG), failure(case("m")), failure(case("o"))]
    (found,) = tallies.tallies(trials)
    assert (found.passes, found.rate.n, found.failures, found.rate.mean) == (1, 2, 2, 0.5)
    (none,) = tallies.tallies([failure(k)])
    assert (none.rate.mean, none.rate.n, none.failures, none.guess) == (None, 0, 1, None)


def test_guessing_is_the_mean_of_valid_plans_over_all_orders() -> None:
    """1 of 2! and 2 of 3!: .5 and 1/3. A case that nobody counted leaves it open."""
    known = [attempt(case("k"), RIGHT), attempt(case("l", 3, ("ab", "cb"), valid=2), "acb")]
    assert tallies.tally(known, "s").guess == pytest.approx((1 / 2 + 1 / 3) / 2)
    unknown = [*known, attempt(case("m", valid=None), RIGHT)]
    assert tallies.tally(unknown, "s").guess is None
    assert tallies.tally([*known, failure(case("m", valid=None))], "s").guess is not None


def test_groups_stand_in_the_order_of_numbers_and_unknown_ones_last() -> None:
    sizes = [10, 9, 2]
    trials = [attempt(case(f"c{n}", n, ("ab",), valid=None), RIGHT) for n in sizes]
    assert [x.group for x in tallies.tallies(trials, tallies.actions)] == ["2", "9", "10"]
    bare = case("bare").model_copy(update={"size": None})
    found = tallies.tallies([attempt(bare, RIGHT), *trials], tallies.sub_sentences)
    assert [(x.group, x.rate.n) for x in found] == [("1", 3), ("not known", 1)]
    nameless = [attempt(case("k", topic=""), RIGHT)]
    assert [x.group for x in tallies.tallies(nameless, tallies.topic)] == ["(no topic)"]


def test_bins_of_words_have_one_width() -> None:
    trials = [attempt(case(f"c{w}", words=w), RIGHT) for w in (3, 20, 21, 40, 41, 99)]
    found = tallies.tallies(trials, tallies.word_bins(trials))
    # width 20 gives 5 bins, width 10 would give 10
    assert [(x.group, x.rate.n) for x in found] == [
        ("1 to 20", 2), ("21 to 40", 2), ("41 to 60", 1), ("81 to 100", 1)
    ]  # fmt: skip


def test_types_of_errors_are_exclusive_and_whole() -> None:
    k = case("k", 3, ("ab", "bc"))
    trials = [
        attempt(k, "bac"), attempt(k, "acb", trial=1), attempt(k, "ab", trial=2),
        attempt(k, "abX", trial=3), attempt(k, "abc", trial=4), attempt(k, "", trial=5,
        ending="timeout"), failure(k, trial=6),
    ]  # fmt: skip
    (found,) = tallies.errors(trials)
    counts = {p.label: p.count for p in found.parts}
    assert counts == {"timeout": 1, "act_error": 1, "action_lost": 1, "parameter_error": 0,
                      "order_error": 2}  # fmt: skip
    assert found.total == 5
    assert [p.share.mean for p in found.parts] == [0.2, 0.2, 0.2, 0.0, 0.4]
    (perfect,) = tallies.errors([attempt(k, "abc")])
    assert perfect.total == 0
    assert {p.share.mean for p in perfect.parts} == {None}


def test_causes_keep_the_papers_order_and_foreign_labels_follow() -> None:
    found = tallies.causes(
        [
            tallies.CaseLabel("a", "s", "Topic"),
            tallies.CaseLabel("b", "s", "undecided"),
            tallies.CaseLabel("c", "s", "Topic"),
            tallies.CaseLabel("a", "t", "Terminal"),
        ]
    )
    assert [s.system for s in found] == ["s", "t"]
    assert [p.label for p in found[0].parts] == [*tallies.CAUSES, "undecided"]
    assert [p.count for p in found[0].parts] == [0, 0, 2, 0, 0, 1]
    known = binomtest(2, 3).proportion_ci(method="wilson")
    assert found[0].parts[2].share.low == pytest.approx(known.low)
    assert tallies.causes([]) == []


def test_effort_counts_what_was_told() -> None:
    k = case("k")
    told = Usage(requests=2, prompt_tokens=100, completion_tokens=20, cost=0.5)
    trials = [
        attempt(k, RIGHT, seconds=2.0, usage=told),
        attempt(k, WRONG, seconds=4.0, trial=1, usage=Usage(requests=1)),
        failure(k, trial=2),
    ]
    (row,) = tallies.effort(trials)
    assert (row["seconds"], row["turns"], row["plans"]) == (3.0, 2.0, 1.0)
    assert (row["tokens"], row["stated"], row["trials"]) == (120.0, 1, 3)
    assert row["total_seconds"] == 7.0  # that of the failure, 1 s, is spent too
    assert (row["cost"], row["requests"]) == (0.5, 3)
    assert tallies.effort([failure(k)])[0]["seconds"] is None


def test_pass_hat_and_pass_at_k() -> None:
    """Cases with 2 of 3 and 3 of 3: of the 3 pairs 1 and 3 are all right, 3 and 3 hold one."""
    k, m = case("k"), case("m")
    trials = [attempt(k, RIGHT if i < 2 else WRONG, trial=i) for i in range(3)]
    trials += [attempt(m, RIGHT, trial=i) for i in range(3)]
    trials += [attempt(case("once"), WRONG), failure(case("gone"))]
    two, three = tallies.repeated(trials)
    assert two["k"] == 2
    assert two["all_right"].value == pytest.approx(2 / 3)  # type: ignore[union-attr]
    assert two["one_right"].value == 1.0  # type: ignore[union-attr]
    assert (three["k"], three["left_out"]) == (3, 1)
    assert three["all_right"].value == 0.5  # type: ignore[union-attr]
    assert tallies.repeated([attempt(k, RIGHT)]) == []


@given(
    st.lists(st.tuples(st.integers(2, 5), st.sampled_from(["ab", "ba", "a", None])), max_size=25)
)
def test_every_trial_is_counted_once(drawn: list[tuple[int, str | None]]) -> None:
    trials = [
        failure(case(str(i), n)) if calls is None else attempt(case(str(i), n), calls)
        for i, (n, calls) in enumerate(drawn)
    ]
    whole = tallies.tallies(trials)
    parts = tallies.tallies(trials, tallies.actions)
    for name in ("passes", "failures"):
        assert sum(getattr(p, name) for p in parts) == sum(getattr(w, name) for w in whole)
    assert sum(p.rate.n + p.failures for p in parts) == len(trials)
    wrong = sum(s.total for s in tallies.errors(trials))
    assert wrong + sum(w.passes for w in whole) + sum(w.failures for w in whole) == len(trials)
