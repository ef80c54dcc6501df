"""From checks to a verdict on one criterion: keep, repair, drop or undecided, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check, Effect, Verdict, Verification
from agenteval.stats import mean_interval


def decide(
    evidence: Evidence,
    checks: Sequence[Check],
    effects: Sequence[Effect],
    options: VerifyOptions,
) -> Verification:
    """The verdict on one criterion by itself. The rules, first match wins:

    1. undecided: no rating, or fewer than `min_cases` cases.
    2. repair: too many ratings are missing.
    3. every run has the same value: undecided when a perturbation moved it (these runs do not
       differ on it), else drop.
    4. repeats disagree: drop when it surely does not tell success from failure either, else repair.
    5. repair: failed runs are surely rated higher than successful ones.
    6. drop: it surely does not tell success from failure, and no perturbation moved it as expected.
    7. repair: a control moved it, or it did not move where it surely should have.
    8. keep: repeats agree, and it tells success from failure or moved as expected.
    9. undecided, with what is missing.

    What another criterion says as well is dropped afterwards (`redundancy`).
    """
    by_name = {check.name: check for check in checks}
    verdict, reasons = _rules(evidence, by_name, effects, options)
    means = evidence.originals.mean[evidence.rated].tolist()
    cases = evidence.originals.case[evidence.rated].tolist()
    mean = mean_interval(means, cases, bounds=(0.0, 1.0))
    return Verification(
        criterion_id=evidence.criterion.id,
        verdict=verdict,
        reasons=tuple(reasons),
        runs=int(evidence.rated.sum()),
        cases=evidence.cases,
        repeats=evidence.originals.values.shape[1],
        coverage=by_name["coverage"].estimate,
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        checks=tuple(checks),
        effects=tuple(effects),
    )


def _rules(
    evidence: Evidence,
    checks: dict[str, Check],
    effects: Sequence[Effect],
    options: VerifyOptions,
) -> tuple[Verdict, list[str]]:
    coverage, spread, agreement, separation = (
        checks[n] for n in ("coverage", "spread", "agreement", "discrimination")
    )
    if not evidence.rated.any():
        return "undecided", [coverage.reason]
    if evidence.cases < options.min_cases:
        short = options.min_cases - evidence.cases
        return "undecided", [f"{evidence.cases} cases: {short} more are needed to decide anything"]
    if coverage.outcome == "fail":
        return "repair", [coverage.reason]
    if spread.outcome == "fail":
        moved = _said(moved_as_expected(effects))
        if moved:
            return "undecided", ["these runs do not differ on it", *moved]
        return "drop", [spread.reason]
    if agreement.outcome == "fail":
        verdict: Verdict = "drop" if separation.outcome == "fail" else "repair"
        return verdict, [agreement.reason, separation.reason]
    if separation.high is not None and separation.high < 0.5:
        return "repair", [f"failed runs are rated higher: {separation.reason}"]
    return _weighed(agreement, separation, effects)


def moved_as_expected(effects: Sequence[Effect]) -> list[Effect]:
    """Effects in the direction that was expected, beyond doubt."""
    return [e for e in effects if e.expected in ("lower", "higher") and e.outcome == "pass"]


def _weighed(
    agreement: Check, separation: Check, effects: Sequence[Effect]
) -> tuple[Verdict, list[str]]:
    """Rules 6 to 9: what the criterion tells apart."""
    moved = moved_as_expected(effects)
    wrong = [e for e in effects if e.outcome == "fail"]
    if separation.outcome == "fail" and not moved:
        return "drop", [separation.reason, *_said(wrong)]
    if wrong:
        return "repair", _said(wrong)
    if agreement.outcome == "pass" and (moved or separation.outcome == "pass"):
        told = [separation.reason] if separation.outcome != "unknown" else []
        return "keep", [agreement.reason, *told, *_said(moved)]
    return "undecided", _missing(agreement, separation, moved)


def _said(effects: Sequence[Effect]) -> list[str]:
    return [f"{named(e)}: {e.reason}" for e in effects]


def named(effect: Effect) -> str:
    """Operator with its share, as tables show it."""
    return effect.operator if effect.share is None else f"{effect.operator} {effect.share:.0%}"


def _missing(agreement: Check, separation: Check, moved: Sequence[Effect]) -> list[str]:
    reasons = [agreement.reason] if agreement.outcome != "pass" else []
    if not moved and separation.outcome != "pass":
        reasons += [separation.reason, "no perturbation moved it beyond doubt as expected"]
    return reasons
