"""Gates for CI: each of the three outcomes, and which exit code they make together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agenteval.comparison import CompareOptions, Comparison, compare
from agenteval.errors import InputError
from agenteval.gates import Gate, exit_code, regression_gates, under_gate
from agenteval.stats.scores import ScoreTable, score_table
from tests.test_comparison import shifted, table


def regression(by: Sequence[float], n: int = 40) -> Gate:
    (gate,) = regression_gates(shifted(n, by))
    return gate


@pytest.mark.parametrize(
    ("by", "outcome"),
    [
        ((-0.25, -0.125), "fail"),
        ((-0.04, -0.02), "pass"),  # surely worse, but within the margin of .05
        ((0.25, 0.125), "pass"),
        ((0.4, -0.4), "cannot tell"),
        ((-0.07, -0.03), "cannot tell"),  # about -.05 itself
    ],
)
def test_regression(by: tuple[float, ...], outcome: str) -> None:
    assert regression(by).outcome == outcome


def test_few_cases_are_no_pass() -> None:
    gate = regression((0.25, 0.125), 19)
    assert (gate.outcome, gate.message) == (
        "cannot tell", "19 cases: below 20 nothing is decided"
    )  # fmt: skip


def test_ties_are_no_certainty() -> None:
    """Where 20 cases tie, up to 16.8 % of all may not; of 100 cases 3.6 %."""
    assert regression((0.0,), 20).outcome == "cannot tell"
    assert regression((0.0,), 100).outcome == "pass"


def test_a_system_that_answers_only_what_it_can_is_no_pass() -> None:
    second = table("b", [1.0, 0.75] * 10 + [None] * 12)
    (gate,) = regression_gates(compare(table("a", [0.5] * 32), second))
    assert gate.outcome == "cannot tell"


@pytest.mark.parametrize(("n_criteria", "outcome"), [(1, "fail"), (2, "cannot tell")])
def test_a_failure_must_hold_after_holm(n_criteria: int, outcome: str) -> None:
    """Six losses of 20 give p = 2/64 < .05 against the margin 0; with a second criterion 4/64."""

    def side(system: str, losses: int) -> ScoreTable:
        return score_table(
            {"run": f"{system}{i}", "case": f"c{i}", "system": system, "criterion": f"k{k}",
             "value": 0.25 if k == 0 and i < losses else 0.5}
            for k in range(n_criteria) for i in range(20)
        )  # fmt: skip

    found = compare(side("a", 0), side("b", 6), options=CompareOptions(margin=0.0))
    assert regression_gates(found)[0].outcome == outcome


def rated(values: Sequence[float]) -> Comparison:
    return compare(table("a", [0.5] * len(values)), table("b", values))


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([0.5, 0.6, 0.7, 0.6] * 6, "fail"),
        ([0.9, 0.8, 0.85, 0.95] * 6, "pass"),
        ([1.0, 0.5, 0.75, 0.8] * 6, "cannot tell"),
        ([1.0] * 8, "cannot tell"),  # too few
        ([1.0] * 20, "pass"),  # 20 of 20: at least .832
    ],
)
def test_fail_under(values: list[float], outcome: str) -> None:
    assert under_gate(rated(values), "clarity", 0.75).outcome == outcome


def test_twenty_of_twenty_is_not_more_than_it_shows() -> None:
    """The exact lower end is .025^(1/20) = .8316."""
    perfect = rated([1.0] * 20)
    assert under_gate(perfect, "clarity", 0.83).outcome == "pass"
    assert under_gate(perfect, "clarity", 0.84).outcome == "cannot tell"


def test_an_unknown_criterion() -> None:
    with pytest.raises(InputError, match="'depth' is not compared; there are clarity"):
        under_gate(rated([1.0] * 20), "depth", 0.5)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0), (["pass", "pass"], 0), (["pass", "cannot tell"], 4),
        (["cannot tell", "fail", "pass"], 1),
    ],
)  # fmt: skip
def test_exit_codes(outcomes: list[str], code: int) -> None:
    gates = [Gate("regression", "x", 0.05, o, "why") for o in outcomes]  # type: ignore[arg-type]
    assert exit_code(gates) == code
