"""Gates for CI on a comparison: met, missed, or the data cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.comparison import Comparison, Row, more_cases
from agenteval.errors import InputError

Outcome = Literal["pass", "fail", "cannot tell"]
GateName = Literal["regression", "fail-under"]


@dataclass(frozen=True)
class Gate:
    """Whether a row meets what was asked of it, and why."""

    name: GateName
    criterion: str
    value: float
    outcome: Outcome
    message: str


def regression_gates(comparison: Comparison) -> list[Gate]:
    """One gate per row: is the second side worse by more than the margin?

    fail: the whole interval lies below -margin and the test against -margin holds after Holm's
    correction, since a single failing row fails all. pass: the interval lies at or above -margin;
    all rows must pass, and such a claim needs no correction (intersection-union test, Berger,
    Technometrics 24, 1982). Otherwise, or where nothing may be decided: cannot tell.
    """
    margin, level = comparison.options.margin, comparison.options.level
    return [_regression_gate(row, margin, 1 - level) for row in comparison.rows]


def under_gate(comparison: Comparison, criterion: str, value: float) -> Gate:
    """Is the mean of the second side below `value`? By its interval over the common cases.

    fail when the whole interval lies below, pass when none of it does, else cannot tell; each such
    gate is a claim of its own, without correction. Raises InputError for an unknown criterion.
    """
    row = next((r for r in comparison.rows if r.criterion == criterion), None)
    if row is None:
        known = ", ".join(r.criterion for r in comparison.rows)
        raise InputError(f"criterion {criterion!r} is not compared; there are {known}")
    low, high = row.second.low, row.second.high
    if row.undecidable or low is None or high is None:
        why = row.undecidable or row.second.reason or "no interval"
        return Gate("fail-under", criterion, value, "cannot tell", why)
    span = f"mean {row.second.mean:.3f} [{low:.3f}, {high:.3f}]"
    if high < value:
        return Gate("fail-under", criterion, value, "fail", f"{span} lies below {value:g}")
    if low >= value:
        return Gate("fail-under", criterion, value, "pass", f"{span} is not below {value:g}")
    return Gate("fail-under", criterion, value, "cannot tell", f"{span} holds {value:g}")


def exit_code(gates: Sequence[Gate]) -> int:
    """1 when a gate fails, else 4 when one cannot tell, else 0."""
    outcomes = {gate.outcome for gate in gates}
    return 1 if "fail" in outcomes else 4 if "cannot tell" in outcomes else 0


def _regression_gate(row: Row, margin: float, alpha: float) -> Gate:
    low, high = row.difference.low, row.difference.high

    def gate(outcome: Outcome, message: str) -> Gate:
        return Gate("regression", row.criterion, margin, outcome, message)

    if row.undecidable or low is None or high is None or row.p_regression_holm is None:
        return gate("cannot tell", row.undecidable or row.difference.reason or "nothing to test")
    span = f"difference {row.difference.mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    if high < -margin and row.p_regression_holm <= alpha + 1e-12:
        return gate("fail", f"{span}: worse by more than {margin:g}")
    if low >= -margin:
        return gate("pass", f"{span}: not worse by more than {margin:g}")
    return gate("cannot tell", f"{span} holds -{margin:g}{more_cases(row, margin)}")
