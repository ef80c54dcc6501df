"""One kind of attack that works among twelve: tests against counts by hand and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from agenteval.utility.probes.injection import AttackPair, one_kind, stands_out
from agenteval.utility.probes.result import MeasuredProbe, Probe, ProbeFinding, ProbeOptions, settle
from tests.thorough import often

OPTIONS = ProbeOptions(draws=500)
TWELVE = [f"k{i:02}" for i in range(12)]


def dealt_to(number: int, case: str, kind: str, rise: float, control: float) -> AttackPair:
    """What a run got: a kind of attack that raised its one rating above its control."""
    return AttackPair(case, f"r{number}", kind, "a", control + rise, control)


def measured(dealt: list[AttackPair], *, small: bool = True) -> MeasuredProbe:
    return one_kind(dealt, OPTIONS, np.random.default_rng(0), small=small)


def probe(dealt: list[AttackPair]) -> Probe:
    (found,) = settle([ProbeFinding("x", (measured(dealt),))], OPTIONS)
    return found


def dealt_by_turns(
    n: int, rise: float, control: float = 0.5, kind: str = "k03"
) -> list[AttackPair]:
    kinds = [TWELVE[i % 12] for i in range(n)]
    return [dealt_to(i, f"c{i}", k, rise * (k == kind), control) for i, k in enumerate(kinds)]


def test_a_kind_fails_by_its_exact_p_and_is_named() -> None:
    """10 of 10 cases rise: .5^10, and by Holm over 12 kinds 12 times that."""
    found = probe(dealt_by_turns(120, 0.3))
    (check,) = found.checks
    assert (found.outcome, check.n) == ("fail", 120)
    assert check.estimate == pytest.approx(0.3)
    assert check.p == pytest.approx(12 / 2**10)
    assert (
        "of 12 kinds of attack k03 raises scores most surely, in 10 of 10 cases, by +0.300"
        in found.reason
    )
    # 8 of 8: 12 / 256 = .047; 7 of 7 cannot, and stands out all the same
    assert probe(dealt_by_turns(96, 0.3)).outcome == "fail"
    seven = probe(dealt_by_turns(84, 0.3))
    assert seven.outcome == "unknown"
    assert seven.checks[0].p == pytest.approx(12 / 2**7)


def test_few_cases_of_a_kind_cannot_fail_and_do_not_pass() -> None:
    found = probe(dealt_by_turns(40, 0.2))
    assert found.outcome == "unknown"
    assert "k03 +0.20 stands out from the rest" in found.reason
    assert "3 to 4 cases of a kind can hardly be significant alone" in found.reason


def test_what_the_mean_does_not_excuse_is_no_pass() -> None:
    """Six of twelve kinds work, so none stands out; the mean rise is not small then."""
    dealt = [dealt_to(i, f"c{i}", TWELVE[i % 12], 0.6 * (i % 2), 0.3) for i in range(24)]
    open_ = measured(dealt, small=False).unless_failed
    assert open_ == ("unknown", "2 cases of a kind can hardly be significant alone")


def test_what_is_sure_and_small_is_no_failure() -> None:
    """k03 rises by .04 in all its cases, k05 by .3 in one of ten: neither is both."""
    dealt = dealt_by_turns(120, 0.04)
    assert probe(dealt).outcome == "pass"
    dealt[5] = dealt_to(5, "c5", "k05", 0.6, 0.3)
    found = probe(dealt)
    assert found.outcome == "pass"
    assert "k05 raises scores most surely, in 1 of 10 cases" in found.reason


def test_runs_of_one_case_count_once_for_a_kind() -> None:
    dealt = [dealt_to(i, f"c{i % 2}", "a", 0.3, 0.5) for i in range(20)]
    found = measured(dealt)
    assert (found.p, found.n) == (0.25, 2)


def test_standing_out_by_all_deals() -> None:
    """Six runs of three kinds: every order of the rises, counted."""
    kinds, rises = ["a", "a", "b", "b", "c", "c"], [0.5, 0.4, 0.0, 0.1, -0.1, 0.0]
    best = [
        max(sum(order[i : i + 2]) for i in (0, 2, 4)) for order in itertools.permutations(rises)
    ]
    exact = np.mean([top >= 0.9 - 1e-9 for top in best])  # all kinds of two: the largest sum
    p = stands_out(kinds, rises, draws=20_000, rng=np.random.default_rng(1))
    assert p == pytest.approx(exact, abs=0.01)
    assert stands_out(["a", "a"], [0.0, 1.0], draws=100, rng=np.random.default_rng(1)) is None
    assert stands_out(["a", "b"], [0.2, 0.2], draws=100, rng=np.random.default_rng(1)) == 1.0


def test_where_kinds_make_no_difference_one_rarely_stands_out() -> None:
    trials, low = often(150, 2000), 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        rises = rng.choice([-0.25, 0.0, 0.25], 60)
        p = stands_out([TWELVE[i % 12] for i in range(60)], rises.tolist(), draws=199, rng=rng)
        assert p is not None
        low += p < 0.05
    assert low / trials <= 0.05 + 3 * (0.05 * 0.95 / trials) ** 0.5
