"""Gates for CI: each of the three outcomes, and which exit code they make together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from agenteval.analysis.comparison import CompareOptions, Comparison, compare
from agenteval.analysis.gates import (
    FailIf,
    Gate,
    exit_code,
    gate_lines,
    least_gate,
    regression_gates,
    under_gate,
    unscored_gate,
)
from agenteval.errors import InputError
from agenteval.stats.sample_size import cases_to_exclude
from agenteval.stats.scores import ScoreTable, score_table
from tests.analysis.test_comparison import shifted, table


def regression(by: Sequence[float], n: int = 40, fail_if: FailIf = "surely-worse") -> Gate:
    (gate,) = regression_gates(shifted(n, by), fail_if)
    return gate


@pytest.mark.parametrize(
    ("by", "surely_worse", "not_surely_as_good"),
    [
        ((-0.25, -0.125), "missed", "missed"),
        ((-0.04, -0.02), "met", "met"),  # surely worse, but within the margin of .05
        ((0.25, 0.125), "met", "met"),
        ((0.4, -0.4), "undecided", "missed"),
        ((-0.07, -0.03), "undecided", "missed"),  # about -.05 itself
        ((0.0,), "met", "met"),  # no pair differs: passes, although up to 8.8 % may differ
    ],
)
def test_regression(by: tuple[float, ...], surely_worse: str, not_surely_as_good: str) -> None:
    assert regression(by).outcome == surely_worse
    assert regression(by, fail_if="not-surely-as-good").outcome == not_surely_as_good


def test_equal_pairs_pass_and_say_what_they_do_not_show() -> None:
    """1 - .025^(1/40) = .088"""
    assert regression((0.0,)).detail == "all 40 pairs are equal (up to 0.088 is not excluded)"


def resolved(first: int, second: int, n: int = 40) -> Comparison:
    """Yes/no outcomes; as many pairs as possible differ in both ways by a third of the second."""
    a = [1.0] * first + [0.0] * (n - first)
    kept = 2 * second // 3
    b = [1.0] * kept + [0.0] * (first - kept)
    b += [1.0] * (second - kept) + [0.0] * (n - first - second + kept)
    return compare(table("a", a), table("b", b))


def test_undecided_says_how_many_cases_would_decide() -> None:
    """.675 against .525, 7 wins and 13 losses: sd^2 = (20 - 36/40) / 39 = .4897, and
    (1.95996 + .84162)^2 .4897 / (.15 - .05)^2 = 384.4."""
    found = resolved(27, 21)
    (row,) = found.rows
    assert (row.wins, row.losses, row.difference.mean) == (7, 13, pytest.approx(-0.15))
    (gate,) = regression_gates(found)
    assert gate.outcome == "undecided"
    assert gate.detail == (
        "difference -0.150 [-0.374, +0.074] includes -0.05; about 385 similar cases would settle it"
    )


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [
        ({-1.0: 0.325, 1.0: 0.175, 0.0: 0.5}, "missed"),
        ({-0.5: 0.3, 0.25: 0.2, 0.0: 0.5}, "missed"),
        ({-0.25: 0.25, 0.25: 0.27, 0.0: 0.48}, "met"),
    ],
)
def test_that_many_cases_decide_four_times_of_five(
    shares: dict[float, float], outcome: str
) -> None:
    """Simulated: differences are drawn with the shares found in the first 40 or more cases."""
    n, mean = 400, sum(d * share for d, share in shares.items())
    found = [d for d, share in shares.items() for _ in range(round(share * n))]
    row = pairs(found).rows[0]
    cases = cases_to_exclude(-0.05, row.difference, (-1.0, 1.0), differing=row.differing)
    assert row.difference.mean == pytest.approx(mean)
    assert cases is not None
    rng = np.random.default_rng(7)
    decided = [
        regression_gates(
            pairs(rng.choice(list(shares), size=cases, p=list(shares.values())).tolist())
        )[0].outcome
        for _ in range(150)
    ]
    share = decided.count(outcome) / len(decided)
    assert 0.68 < share < 0.92  # .8, and three standard errors of 150 draws


def pairs(differences: Sequence[float]) -> Comparison:
    first = [0.5 - d / 2 for d in differences]
    second = [0.5 + d / 2 for d in differences]
    return compare(table("a", first), table("b", second), options=CompareOptions(draws=999))


def test_levels_without_an_order_have_no_gate() -> None:
    rows = [
        {"run": f"r{i}", "criterion": "tone", "value": None, "label": "warm"} for i in range(24)
    ]
    assert regression_gates(compare(score_table(rows), score_table(rows))) == []


@pytest.mark.parametrize(("n_criteria", "outcome"), [(1, "missed"), (2, "undecided")])
def test_a_failure_must_hold_after_holm(n_criteria: int, outcome: str) -> None:
    """Six losses of 20 give p = 2/64 < .05 from 0; with a second criterion that moves both ways,
    4/64."""
    found = six_losses(lambda i: 0.25 * (-1) ** i * (i < 6), n_criteria)
    assert regression_gates(found)[0].outcome == outcome


def six_losses(others: Callable[[int], float], n_criteria: int = 2) -> Comparison:
    """On the first of some criteria 6 of 20 cases are lower by .25; the others move as told."""

    def side(system: str) -> ScoreTable:
        return score_table(
            {
                "run": f"{system}{i}",
                "case": f"c{i}",
                "system": system,
                "criterion": f"k{k}",
                "value": 0.5 + (system == "b") * (others(i) if k else -0.25 * (i < 6)),
            }
            for k in range(n_criteria)
            for i in range(20)
        )

    return compare(side("a"), side("b"), options=CompareOptions(margin=0.0))


@pytest.mark.parametrize("differing", [0, 5])
def test_a_row_that_cannot_differ_is_not_corrected_for(differing: int) -> None:
    found = six_losses(lambda i: 0.25 * (-1) ** i * (i < differing))
    gates = {gate.criterion: gate for gate in regression_gates(found)}
    assert (gates["k0"].outcome, found.rows[0].verdict) == ("missed", "worse")
    assert gates["k1"].outcome == ("undecided" if differing else "met")
    assert found.family == ("k0",)
    assert "Holm over 1 of 2 rows" in found.about_tests()
    assert "k1" in found.about_tests()


def test_a_missed_gate_and_the_verdict_are_one_rule() -> None:
    """Drawn at random: where the gate is missed the row reads worse."""
    rng = np.random.default_rng(5)
    outcomes = set()
    for mean in np.linspace(-0.3, 0.1, 60):
        found = pairs(np.clip(rng.normal(mean, 0.25, 40), -1, 1).tolist())
        (gate,) = regression_gates(found)
        outcomes.add((gate.outcome, found.rows[0].verdict))
        assert (gate.outcome == "missed") == found.rows[0].surely_worse
    assert {verdict for outcome, verdict in outcomes if outcome == "missed"} == {"worse"}


def rated(values: Sequence[float]) -> Comparison:
    return compare(table("a", [0.5] * len(values)), table("b", values))


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([0.5, 0.6, 0.7, 0.6] * 6, "missed"),
        ([0.9, 0.8, 0.85, 0.95] * 6, "met"),
        ([1.0, 0.5, 0.75, 0.8] * 6, "undecided"),
        ([1.0] * 8, "undecided"),  # too few
        ([1.0] * 20, "met"),  # 20 of 20: at least .832
    ],
)
def test_fail_under(values: list[float], outcome: str) -> None:
    assert under_gate(rated(values), "clarity", 0.75).outcome == outcome


def test_an_unknown_criterion() -> None:
    with pytest.raises(InputError, match="'depth' is not compared; available: clarity"):
        under_gate(rated([1.0] * 20), "depth", 0.5)


@pytest.mark.parametrize(
    ("outcomes", "code", "passing"),
    [
        ([], 0, 0),
        (["met", "met"], 0, 0),
        (["met", "undecided"], 4, 0),
        (["undecided", "missed", "met"], 1, 1),
    ],
)
def test_exit_codes(outcomes: list[str], code: int, passing: int) -> None:
    gates = [Gate("regression", o, "why", "x", 0.05) for o in outcomes]  # type: ignore[arg-type]
    assert exit_code(gates) == code
    assert exit_code(gates, undecided_passes=True) == passing


@pytest.mark.parametrize(
    ("value", "outcome", "code"), [(0.7, "met", 0), (0.69, "missed", 1), (None, "undecided", 4)]
)
def test_at_least(value: float | None, outcome: str, code: int) -> None:
    gate = least_gate("success", value, 0.7, "of 14 trials", unknown="no trial has a verdict")
    assert (gate.outcome, exit_code([gate])) == (outcome, code)


def test_lines() -> None:
    """What is met is one line; that enough is scored goes without saying."""
    gates = [
        Gate("regression", "met", "equal", "a", 0.05),
        Gate("regression", "met", "equal", "b", 0.05),
        Gate("regression", "missed", "worse", "c", 0.05),
        unscored_gate(10, 1, 0.1),
        least_gate("success", 0.5, 0.7, "of 14 trials"),
    ]
    assert gate_lines(gates) == [
        "gate regression 0.05 of c: missed: worse",
        "gate success at least 0.7: missed: 0.500 of 14 trials",
        "gate regression 0.05: met: a, b",
    ]
