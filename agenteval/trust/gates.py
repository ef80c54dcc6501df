"""Gates for CI on a comparison: met, missed, or undecided by these data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.errors import InputError
from agenteval.stats.sample_size import cases_to_exclude
from agenteval.trust.comparison import Comparison, Row, would_decide

Outcome = Literal["pass", "fail", "undecided"]
GateName = Literal["regression", "fail-under"]
FailIf = Literal["surely-worse", "not-surely-as-good"]


@dataclass(frozen=True)
class Gate:
    """Whether a row meets what was asked of it, and why."""

    name: GateName
    criterion: str
    value: float
    outcome: Outcome
    message: str


def regression_gates(comparison: Comparison, fail_if: FailIf = "surely-worse") -> list[Gate]:
    """One gate per row: is the second side worse by more than the margin?

    surely worse: the whole interval lies below -margin and the test against -margin holds after
    Holm's correction, since a single failing row fails all. surely as good: the interval lies at
    or above -margin; all rows must pass, and such a claim needs no correction (intersection-union
    test, Berger, Technometrics 24, 1982). Rows of which no pair differs pass, however few cases
    (at least `min_cases`) leave the interval wide.

    fail: surely worse; with "not-surely-as-good" whatever is not surely as good. pass: surely as
    good. undecided: the rest, and always where no verdict may be given (too few cases, too many
    failures). Criteria whose levels have no order have no gate.
    """
    return [
        _regression_gate(row, comparison, fail_if) for row in comparison.rows if not row.unordered
    ]


def under_gate(comparison: Comparison, criterion: str, value: float) -> Gate:
    """Is the mean of the second side below `value`? By its interval over the common cases.

    fail when the whole interval lies below, pass when none of it does, else undecided; each such
    gate is a claim of its own, without correction. Raises InputError for an unknown criterion.
    """
    row = next((r for r in comparison.rows if r.criterion == criterion), None)
    if row is None:
        known = ", ".join(r.criterion for r in comparison.rows)
        raise InputError(f"criterion {criterion!r} is not compared; there are {known}")
    low, high = row.second.low, row.second.high
    if row.undecidable or low is None or high is None:
        why = row.undecidable or row.second.reason or "no interval"
        return Gate("fail-under", criterion, value, "undecided", why)
    span = f"mean {row.second.mean:.3f} [{low:.3f}, {high:.3f}]"
    if high < value:
        return Gate("fail-under", criterion, value, "fail", f"{span} lies below {value:g}")
    if low >= value:
        return Gate("fail-under", criterion, value, "pass", f"{span} is not below {value:g}")
    cases = cases_to_exclude(value, row.second, (0.0, 1.0), level=comparison.options.level)
    message = f"{span} lies on both sides of {value:g}{would_decide(cases)}"
    return Gate("fail-under", criterion, value, "undecided", message)


def exit_code(gates: Sequence[Gate], *, undecided_passes: bool = False) -> int:
    """1 when a gate fails, else 4 when one is undecided (0 if that passes), else 0."""
    outcomes = {gate.outcome for gate in gates}
    if "fail" in outcomes:
        return 1
    return 4 if "undecided" in outcomes and not undecided_passes else 0


def _regression_gate(row: Row, comparison: Comparison, fail_if: FailIf) -> Gate:
    margin, level = comparison.options.margin, comparison.options.level
    low, high = row.difference.low, row.difference.high

    def gate(outcome: Outcome, message: str) -> Gate:
        return Gate("regression", row.criterion, margin, outcome, message)

    if row.undecidable or low is None or high is None or row.p_regression_holm is None:
        return gate("undecided", row.undecidable or row.difference.reason or "nothing to test")
    if not row.differing:
        return gate("pass", f"all {row.n} pairs are equal (up to {-low:.3f} is not excluded)")
    span = f"difference {row.difference.mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    if low >= -margin:
        return gate("pass", f"{span}: not worse by more than {margin:g}")
    if high < -margin:
        if row.p_regression_holm <= 1 - level + 1e-12:
            return gate("fail", f"{span}: worse by more than {margin:g}")
        more = f": p {row.p_regression_holm:.3g} after correction for several criteria"
    else:
        cases = cases_to_exclude(
            -margin, row.difference, (-1.0, 1.0), differing=row.differing, level=level
        )
        more = f" lies on both sides of {-margin or 0:g}{would_decide(cases)}"
    if fail_if == "not-surely-as-good":
        return gate("fail", f"not surely as good: {span}{more}")
    return gate("undecided", f"{span}{more}")
