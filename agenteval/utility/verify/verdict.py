"""The verdict on one criterion: keep, repair, drop or undecided, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from agenteval.records.verification import Check, Effect, Verdict, Verification
from agenteval.stats import mean_interval
from agenteval.utility.verify.checks import UNSUPPORTED
from agenteval.utility.verify.effects import is_control, moved_as_expected, named
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions

V = TypeVar("V", bound=str)

OTHER_JUDGE = "do not use its scores; try another judge, or reword the criteria and verify again"
WHY_MISSING = "find out why ratings are missing"
MORE_CASES = "rate more cases"
MORE_REPEATS = "rate every text three times (--repeats 3)"
_LEAVE_OUT = "leave it out"


@dataclass(frozen=True)
class VerdictRule(Generic[V]):
    """When `applies` is true, the verdict follows, with its reasons and what to do next."""

    applies: object
    verdict: V
    reasons: Sequence[str]
    next_step: str


def first_match(rules: Iterable[VerdictRule[V]]) -> VerdictRule[V]:
    """Return the first rule that applies. The last rule of a table must always apply."""
    return next(rule for rule in rules if rule.applies)


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
    agrees, disagree = agreement.outcome == "pass", agreement.outcome == "fail"
    separates, mixes_up = separation.outcome == "pass", separation.outcome == "fail"
    upside_down = mixes_up and (separation.p_adjusted or 1.0) < options.alpha
    constant = spread.outcome == "fail"
    repeats = evidence.originals.values.shape[1]
    # next steps and reasons that depend on more than their rule
    unrated = "find out why it has no rating"
    if coverage.reason == UNSUPPORTED:
        unrated = "choose a judge that can grade it (--model)"
    reword = "see whether its `expect` is mistaken, else reword it"
    if all(map(is_control, wrong)):
        reword = "reword it: layout must not count"
    told_apart = [] if separation.outcome == "unknown" else [separation.reason]
    for_it = [agreement.reason, *told_apart, *_reasons(moved)]
    lacking = [] if agrees else [agreement.reason]
    if not moved and not separates:
        lacking += [separation.reason, "no perturbation moved it beyond doubt as expected"]
    more = MORE_REPEATS if repeats < 2 and not agrees else MORE_CASES
    both = [agreement.reason, separation.reason]
    rules: tuple[VerdictRule[Verdict], ...] = (
        VerdictRule(not evidence.rated.any(), "undecided", [coverage.reason], unrated),
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
            both[::-1] if disagree else [separation.reason],
            "see whether its levels run from worst to best, else reword it",
        ),
        VerdictRule(disagree and mixes_up, "drop", both, _LEAVE_OUT),
        VerdictRule(disagree, "repair", both, "word its levels so that two readers agree"),
        VerdictRule(
            mixes_up and not moved, "drop", [separation.reason, *_reasons(wrong)], _LEAVE_OUT
        ),
        VerdictRule(wrong, "repair", _reasons(wrong), reword),
        VerdictRule(agrees and (moved or separates), "keep", for_it, "use it"),
        VerdictRule(True, "undecided", lacking, more),
    )
    rule = first_match(rules)
    refuted = [
        *([separation.reason] if upside_down else []),
        *([agreement.reason] if disagree else []),
        *_reasons(wrong),
    ]
    runs = evidence.rated
    means, cases = evidence.originals.mean[runs], evidence.originals.case[runs]
    mean = mean_interval(means.tolist(), cases.tolist(), bounds=(0.0, 1.0))
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
    everything = len(np.unique(evidence.originals.case))
    unrated = everything - evidence.cases
    counts = evidence.table.where(np.isnan(evidence.table.value)).statuses()
    kinds = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
    why, step = f"{unrated} of {everything} cases could not be rated ({kinds})", WHY_MISSING
    if set(counts) == {"not_applicable"}:
        why, step = f"it does not apply to {unrated} of {everything} cases", MORE_CASES
    if everything >= options.min_cases:
        return f"{why}; {options.min_cases} rated ones are needed", step
    missing = options.min_cases - evidence.cases
    text = f"{evidence.cases} cases: {missing} more are needed to decide anything"
    return (f"{text}; {why}" if unrated else text), MORE_CASES


def _reasons(effects: Sequence[Effect]) -> list[str]:
    return [f"{named(e)}: {e.reason}" for e in effects]
