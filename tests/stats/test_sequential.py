"""Stopping rules: all sequences of draws, Wald's formula, the simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from agenteval.stats import BetaRule, FixedRule, LeadRule, simulate_stopping, stopping_profile

RULES = [FixedRule(6), FixedRule(7), LeadRule(2, 8), LeadRule(3, 9), BetaRule(0.8, 9)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("p", [0.5, 0.7, 0.05])
def test_profile_equals_all_sequences(rule: FixedRule | LeadRule | BetaRule, p: float) -> None:
    mean, shares = 0.0, {True: 0.0, False: 0.0, None: 0.0}
    for sequence in itertools.product([True, False], repeat=rule.most):
        chance = p ** sum(sequence) * (1 - p) ** (rule.most - sum(sequence))
        for draws in range(1, rule.most + 1):
            decision = rule.decide(sum(sequence[:draws]), draws)
            if decision.stop:
                mean += draws * chance
                shares[decision.answer] += chance
                break
        else:
            pytest.fail("the rule never stopped")
    got = stopping_profile(rule, p)
    assert got.mean_draws == pytest.approx(mean)
    assert (got.share_yes, got.share_no, got.share_level) == pytest.approx(
        (shares[True], shares[False], shares[None]), abs=1e-12
    )


def test_a_long_lead_rule_has_walds_error() -> None:
    got = stopping_profile(LeadRule(3, 600), 0.7)
    assert got.share_no == pytest.approx(1 / (1 + (0.7 / 0.3) ** 3), abs=1e-9)
    # Wald's identity: mean lead at the end = draws * (2 p - 1)
    assert got.mean_draws == pytest.approx(3 * (got.share_yes - got.share_no) / 0.4, abs=1e-6)


def test_fixed_rule_is_the_binomial() -> None:
    got = stopping_profile(FixedRule(11), 0.6)
    assert got.mean_draws == pytest.approx(11)
    assert got.share_yes == pytest.approx(stats.binom.sf(5, 11, 0.6))
    assert stopping_profile(FixedRule(2), 0.5).share_level == pytest.approx(0.5)


def test_beta_rule_needs_five_equal_draws() -> None:
    # P(p > 1/2 | n of n) = 1 - .5^(n + 1): .969 at 4, .984 at 5, and .975 is asked for
    rule = BetaRule(0.95, 25)
    assert not rule.decide(4, 4).stop
    assert rule.decide(5, 5).answer is True
    assert rule.decide(0, 5).answer is False
    assert stopping_profile(rule, 1.0).mean_draws == 5


def test_level_end_is_no_answer() -> None:
    end = LeadRule(3, 4).decide(2, 4)
    assert (end.stop, end.answer) == (True, None)
    assert LeadRule(3, 5).decide(3, 5).answer is True
    assert not FixedRule(4).decide(3, 3).stop


def test_simulator_meets_the_exact_profile() -> None:
    rule = LeadRule(3, 25)
    chances = np.repeat([0.9, 0.4, 0.65], 3000)
    got = simulate_stopping(rule, chances, rng=np.random.default_rng(0))
    exact = [stopping_profile(rule, p) for p in (0.9, 0.4, 0.65)]
    assert got.mean_draws == pytest.approx(np.mean([e.mean_draws for e in exact]), abs=0.15)
    right = np.mean([exact[0].share_yes, exact[1].share_no, exact[2].share_yes])
    assert got.share_right == pytest.approx(right, abs=0.015)
    again = simulate_stopping(rule, chances, rng=np.random.default_rng(0))
    assert (again.draws == got.draws).all()


def test_simulator_counts_what_has_no_right_answer() -> None:
    rng = np.random.default_rng(0)
    got = simulate_stopping(FixedRule(3), np.array([0.5, 1.0]), rng=rng)
    assert (got.n_undecidable, got.share_right) == (1, 1.0)
    none = simulate_stopping(FixedRule(3), np.array([0.5]), rng=rng)
    assert none.share_right is None
    with pytest.raises(ValueError, match="0, 1"):
        simulate_stopping(FixedRule(3), np.array([1.5]), rng=rng)


def test_bad_rules() -> None:
    with pytest.raises(ValueError, match="no rule"):
        LeadRule(5, 4)
    with pytest.raises(ValueError, match="no rule"):
        FixedRule(0)
    with pytest.raises(ValueError, match="level"):
        BetaRule(1.0)
    with pytest.raises(ValueError, match="yes of"):
        FixedRule(3).decide(2, 1)
    with pytest.raises(ValueError, match="not in"):
        stopping_profile(FixedRule(3), -0.1)
