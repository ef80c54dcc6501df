"""The verdict on one criterion: keep, repair, drop or undecided, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.records.verification import Check, Effect, Verdict, Verification
from agenteval.stats import mean_interval
from agenteval.utility.verify.checks import UNSUPPORTED
from agenteval.utility.verify.effects import is_control, moved_as_expected, named
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.rules import (
    MORE_CASES,
    MORE_REPEATS,
    WHY_MISSING,
    VerdictRule,
    first_match,
)

_LEAVE_OUT = "leave it out"


def decide(
    evidence: Evidence, checks: Sequence[Check], effects: Sequence[Effect], options: VerifyOptions
) -> Verification:
    """Return the verdict on one criterion by itself; the rules below, first match wins.

    `redundancy` afterwards drops a criterion that duplicates another. The criterion is `refuted`
    where repeats disagree, failed runs are rated higher, or a perturbation had another effect than
    expected.
    """
    coverage, spread, agreement, separation = checks[:4]
    moved = moved_as_expected(effects)
    wrong = [e for e in effects if e.outcome == "fail"]
    few_cases, more_cases = short_of_cases(evidence, options) or ("", "")
    separates, mixes_up = separation.outcome == "pass", separation.outcome == "fail"
    upside_down = mixes_up and (separation.p_adjusted or 1.0) < options.alpha
    disagree = agreement.outcome == "fail"
    constant = spread.outcome == "fail"
    repeats = evidence.originals.values.shape[1]
    single = repeats < 2 and agreement.outcome != "pass"
    lacking = [agreement.reason] if agreement.outcome != "pass" else []
    if not moved and not separates:
        lacking += [separation.reason, "no perturbation moved it beyond doubt as expected"]
    rules: tuple[VerdictRule[Verdict], ...] = (
        VerdictRule(
            not evidence.rated.any(),
            "undecided",
            [coverage.reason],
            "choose a judge that can grade it (--model)"
            if coverage.reason == UNSUPPORTED
            else "find out why it has no rating",
        ),
        VerdictRule(few_cases, "undecided", [few_cases], more_cases),
        VerdictRule(coverage.outcome == "fail", "repair", [coverage.reason], WHY_MISSING),
        VerdictRule(
            constant and moved,
            "undecided",
            ["these runs do not differ on it", *_reasons(moved)],
            "rate runs that differ on it",
        ),
        VerdictRule(constant, "drop", [spread.reason], _LEAVE_OUT),
        VerdictRule(
            upside_down,
            "repair",
            [separation.reason, *([agreement.reason] if disagree else [])],
            "see whether its levels run from worst to best, else reword it",
        ),
        VerdictRule(
            disagree and mixes_up, "drop", [agreement.reason, separation.reason], _LEAVE_OUT
        ),
        VerdictRule(
            disagree,
            "repair",
            [agreement.reason, separation.reason],
            "word its levels so that two readers agree",
        ),
        VerdictRule(
            mixes_up and not moved, "drop", [separation.reason, *_reasons(wrong)], _LEAVE_OUT
        ),
        VerdictRule(
            wrong,
            "repair",
            _reasons(wrong),
            "reword it: layout must not count"
            if all(map(is_control, wrong))
            else "see whether its `expect` is mistaken, else reword it",
        ),
        VerdictRule(
            agreement.outcome == "pass" and (moved or separates),
            "keep",
            [
                agreement.reason,
                *([separation.reason] if separation.outcome != "unknown" else []),
                *_reasons(moved),
            ],
            "use it",
        ),
        VerdictRule(True, "undecided", lacking, MORE_REPEATS if single else MORE_CASES),
    )
    rule = first_match(rules)
    refuted = [
        *([separation.reason] if upside_down else []),
        *([agreement.reason] if disagree else []),
        *_reasons(wrong),
    ]
    runs = evidence.rated
    mean = mean_interval(
        evidence.originals.mean[runs].tolist(),
        evidence.originals.case[runs].tolist(),
        bounds=(0.0, 1.0),
    )
    return Verification(
        criterion_id=evidence.criterion.id,
        verdict=rule.verdict,
        reasons=tuple(rule.reasons),
        next_step=rule.next_step,
        runs=int(runs.sum()),
        cases=evidence.cases,
        repeats=repeats,
        coverage=coverage.estimate,
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        checks=tuple(checks),
        effects=tuple(effects),
        refuted=() if few_cases else tuple(refuted),
    )


def short_of_cases(evidence: Evidence, options: VerifyOptions) -> tuple[str, str] | None:
    """Return the problem and the next step where fewer than `min_cases` cases are rated."""
    if evidence.cases >= options.min_cases:
        return None
    unrated = evidence.all_cases - evidence.cases
    counts = evidence.table.where(np.isnan(evidence.table.value)).statuses()
    kinds = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
    why, step = f"{unrated} of {evidence.all_cases} cases could not be rated ({kinds})", WHY_MISSING
    if set(counts) == {"not_applicable"}:
        why = f"it does not apply to {unrated} of {evidence.all_cases} cases"
        step = MORE_CASES
    if evidence.all_cases >= options.min_cases:
        return f"{why}; {options.min_cases} rated ones are needed", step
    missing = options.min_cases - evidence.cases
    text = f"{evidence.cases} cases: {missing} more are needed to decide anything"
    return (f"{text}; {why}" if unrated else text), MORE_CASES


def _reasons(effects: Sequence[Effect]) -> list[str]:
    return [f"{named(e)}: {e.reason}" for e in effects]
