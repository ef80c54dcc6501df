"""Gates: requirements on results, their outcomes, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agenteval.analysis.comparison import Comparison, ComparisonRow, would_decide
from agenteval.errors import InputError
from agenteval.stats.interval import Interval
from agenteval.stats.sample_size import cases_to_exclude

Outcome = Literal["met", "missed", "undecided"]
FailIf = Literal["surely-worse", "not-surely-as-good"]

UNSCORED = "max-unscored"
REGRESSION = "regression"
FAIL_UNDER = "fail-under"


@dataclass(frozen=True, slots=True)
class Gate:
    """A requirement (`name`, its `criterion` and `bound`), its outcome, and a description."""

    name: str
    outcome: Outcome
    detail: str
    criterion: str = ""
    bound: float | None = None

    @property
    def line(self) -> str:
        """Return a one-line description."""
        of = f" of {self.criterion}" if self.criterion else ""
        bound = "" if self.bound is None else f" {self.bound:g}"
        return f"gate {self.name}{bound}{of}: {self.outcome}: {self.detail}"


def gate_lines(gates: Iterable[Gate]) -> list[str]:
    """Return lines about gates. Met gates with the same requirement share a line, and a met limit
    on unscored results is omitted."""
    met: dict[tuple[str, float | None], list[Gate]] = {}
    lines = []
    for gate in gates:
        if gate.outcome == "met" and gate.criterion:
            met.setdefault((gate.name, gate.bound), []).append(gate)
        elif gate.outcome != "met" or gate.name != UNSCORED:
            lines.append(gate.line)
    for (name, bound), those in met.items():
        if len(those) == 1:
            lines.append(those[0].line)
        else:
            lines.append(f"gate {name} {bound:g}: met: {', '.join(g.criterion for g in those)}")
    return lines


def exit_code(gates: Iterable[Gate], *, undecided_passes: bool = False) -> int:
    """Return 3 if too many cells are unscored, else 1 if a gate is missed, else 4 if one is
    undecided (unless `undecided_passes`), else 0."""
    outcomes = {(gate.outcome, gate.name == UNSCORED) for gate in gates}
    if ("missed", True) in outcomes:
        return 3
    if ("missed", False) in outcomes:
        return 1
    return 4 if ("undecided", False) in outcomes and not undecided_passes else 0


def unscored_gate(total: int, failed: int, limit: float, what: str = "cells are unscored") -> Gate:
    """Return the gate that at most the share `limit` of `total` has no result; met if `total` is 0.
    `what` continues "3 of 40 ", for example "trials have no verdict"."""
    if not total or failed / total <= limit:
        return Gate(UNSCORED, "met", f"{failed} of {total} {what}", bound=limit)
    detail = f"{failed} of {total} {what}, more than --max-unscored {limit:g} allows"
    return Gate(UNSCORED, "missed", detail, bound=limit)


def least_gate(
    what: str,
    value: float | None,
    least: float,
    of: str = "",
    *,
    unknown: str = "there are no scores",
) -> Gate:
    """Return the gate that `value` is at least `least`; undecided with reason `unknown` if None.

    `of` is printed after the value, for example "of 14 trials, 2 without verdict".
    """
    name = f"{what} at least"
    if value is None:
        return Gate(name, "undecided", f"{unknown}: the gate cannot be decided", bound=least)
    outcome: Outcome = "met" if value >= least else "missed"
    return Gate(name, outcome, f"{value:.3f} {of}".rstrip(), bound=least)


def regression_gates(comparison: Comparison, fail_if: FailIf = "surely-worse") -> list[Gate]:
    """Return a gate per row: is the second side worse by more than the margin?

    surely worse: the one-sided test against -margin rejects after Holm's correction, because one
    failing row fails the whole gate (`ComparisonRow.surely_worse`). surely as good: the interval is
    at or above -margin; all rows must pass, so no correction is needed (intersection-union test,
    Berger, Technometrics 24, 1982). Rows without differing pairs pass even if few cases (at least
    `min_cases`) leave the interval wide.

    missed: surely worse; with "not-surely-as-good", everything that is not surely as good. met:
    surely as good. undecided: everything else, and rows without a verdict (too few cases, too many
    failures). Unordered criteria have no gate.
    """
    return [
        _regression_gate(row, comparison, fail_if) for row in comparison.rows if not row.unordered
    ]


def under_gate(comparison: Comparison, criterion: str, value: float) -> Gate:
    """Return the gate that the second side's mean over the common cases is not below `value`.

    missed if the whole interval is below, met if none of it is, else undecided. Gates are not
    corrected for each other. Raises InputError for an unknown criterion.
    """
    row = next((r for r in comparison.rows if r.criterion == criterion), None)
    if row is None:
        compared = ", ".join(r.criterion for r in comparison.rows)
        raise InputError(f"criterion {criterion!r} is not compared; available: {compared}")

    if row.undecidable:
        return Gate(FAIL_UNDER, "undecided", row.undecidable, criterion, value)
    cases = cases_to_exclude(value, row.second, (0.0, 1.0), level=row.level)
    message = f"includes {value:g}{would_decide(cases)}"
    return mean_gate(FAIL_UNDER, criterion, row.second, value, message)


def mean_gate(name: str, criterion: str, mean: Interval, least: float, undecided: str) -> Gate:
    """Return a gate on a mean: missed if its whole interval is below `least`, met if none of it is,
    else undecided, with the given reason."""
    if mean.low is None or mean.high is None:
        return Gate(name, "undecided", mean.reason or "no interval", criterion, least)
    span = f"mean {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
    if mean.high < least:
        return Gate(name, "missed", f"{span} is below {least:g}", criterion, least)
    if mean.low >= least:
        return Gate(name, "met", f"{span} is not below {least:g}", criterion, least)
    return Gate(name, "undecided", f"{span} {undecided}", criterion, least)


def _regression_gate(row: ComparisonRow, comparison: Comparison, fail_if: FailIf) -> Gate:
    margin = comparison.options.margin
    low, high = row.difference.low, row.difference.high

    def gate(outcome: Outcome, detail: str) -> Gate:
        return Gate(REGRESSION, outcome, detail, row.criterion, margin)

    if row.undecidable or low is None or high is None:
        return gate("undecided", row.undecidable or row.difference.reason or "nothing to test")
    if not row.differing:
        return gate("met", f"all {row.n} pairs are equal (up to {-low:.3f} is not excluded)")
    span = f"difference {row.difference.mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    if row.surely_worse:
        p = f"p {row.p_regression_holm:.3g}, Holm over {len(comparison.family)}"
        return gate("missed", f"{span}: worse by more than {margin:g} ({p})")
    if low >= -margin:
        return gate("met", f"{span}: not worse by more than {margin:g}")
    if high < -margin:
        if row.p_regression_holm is None:
            more = f": only {row.differing} pairs differ"
        else:
            more = f": p {row.p_regression_holm:.3g} after correction for several criteria"
    else:
        cases = cases_to_exclude(
            -margin, row.difference, (-1.0, 1.0), differing=row.differing, level=row.level
        )
        more = f" includes {-margin or 0:g}{would_decide(cases)}"
    if fail_if == "not-surely-as-good":
        return gate("missed", f"not shown to be as good: {span}{more}")
    return gate("undecided", f"{span}{more}")
