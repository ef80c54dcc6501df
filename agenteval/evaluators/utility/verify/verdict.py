"""From checks to a verdict on one criterion: keep, repair, drop or undecided, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check, Effect, Verdict, Verification


def decide(
    evidence: Evidence,
    checks: Sequence[Check],
    effects: Sequence[Effect],
    partner: str | None,
    options: VerifyOptions,
) -> Verification:
    """The verdict on one criterion. The rules, first match wins:

    1. drop: every run has the same value, or another criterion that is told better says the same.
    2. undecided: fewer than `min_cases` cases, or no rating.
    3. repair: too many ratings are missing.
    4. repeats disagree: drop when it does not tell success from failure either, else repair.
    5. drop: it surely does not tell success from failure, and no perturbation moved it as expected.
    6. repair: a control moved it, or it did not move where it surely should have.
    7. keep: repeats agree, and it tells success from failure or moved as expected.
    8. undecided, with what is missing.
    """
    by_name = {check.name: check for check in checks}
    verdict, reasons = _rules(evidence, by_name, effects, partner, options)
    coverage = by_name["coverage"].estimate
    means = evidence.originals.mean[evidence.rated]
    return Verification(
        criterion_id=evidence.criterion.id,
        verdict=verdict,
        reasons=tuple(reasons),
        runs=int(evidence.rated.sum()),
        cases=evidence.cases,
        repeats=evidence.originals.values.shape[1],
        coverage=coverage,
        mean=float(np.mean(means)) if len(means) else None,
        checks=tuple(checks),
        effects=tuple(effects),
        partner=partner,
    )


def _rules(
    evidence: Evidence,
    checks: dict[str, Check],
    effects: Sequence[Effect],
    partner: str | None,
    options: VerifyOptions,
) -> tuple[Verdict, list[str]]:
    coverage, spread, agreement, separation = (
        checks[n] for n in ("coverage", "spread", "agreement", "discrimination")
    )
    if not evidence.rated.any():
        return "undecided", [coverage.reason]
    if spread.outcome == "fail":
        return "drop", [spread.reason]
    if partner is not None:
        return "drop", [checks["redundancy"].reason]
    if evidence.cases < options.min_cases:
        short = options.min_cases - evidence.cases
        return "undecided", [f"{evidence.cases} cases: {short} more are needed to decide anything"]
    if coverage.outcome == "fail":
        return "repair", [coverage.reason]
    if agreement.outcome == "fail":
        verdict: Verdict = "repair" if separation.outcome == "pass" else "drop"
        return verdict, [agreement.reason, separation.reason]
    return _weighed(agreement, separation, effects)


def _weighed(
    agreement: Check, separation: Check, effects: Sequence[Effect]
) -> tuple[Verdict, list[str]]:
    """Rules 5 to 8: what the criterion tells apart."""
    moved = [e for e in effects if e.expected in ("lower", "higher") and e.outcome == "pass"]
    wrong = [e for e in effects if e.outcome == "fail"]
    if separation.outcome == "fail" and not moved:
        return "drop", [separation.reason, *_said(wrong)]
    if wrong:
        return "repair", _said(wrong)
    reasons = [agreement.reason]
    if separation.outcome == "pass":
        reasons.append(separation.reason)
    reasons += _said(moved)
    if agreement.outcome == "pass" and (moved or separation.outcome == "pass"):
        return "keep", reasons
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
