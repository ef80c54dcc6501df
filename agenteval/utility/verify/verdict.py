"""From checks to a verdict on one criterion: keep, repair, drop or undecided, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.records.verification import Check, Effect, Verdict, Verification
from agenteval.stats import mean_interval
from agenteval.utility.verify.checks import UNSUPPORTED
from agenteval.utility.verify.effects import is_control, is_directed, named
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions

_LEAVE_OUT = "leave it out"
OTHER_JUDGE = "choose a judge that can grade it (--model)"
WHY_MISSING = "find out why ratings are missing"
MORE_CASES = "rate more cases"
MORE_REPEATS = "rate every text three times (--repeats 3)"


def decide(
    evidence: Evidence,
    checks: Sequence[Check],
    effects: Sequence[Effect],
    options: VerifyOptions,
) -> Verification:
    """The verdict on one criterion by itself, from coverage, spread, agreement, discrimination and
    the effects of perturbations. The rules, first match wins:

    1. undecided: no rating, or fewer than `min_cases` cases.
    2. repair: too many ratings are missing.
    3. every run has the same value: undecided when a perturbation moved it (these runs do not
       differ on it), else drop.
    4. repair: failed runs are rated higher than successful ones (Holm over the criteria).
    5. repeats disagree: drop when it surely does not tell success from failure either, else repair.
    6. drop: it surely does not tell success from failure, and no perturbation moved it as expected.
    7. repair: a perturbation, control or not, surely did other than expected.
    8. keep: repeats agree, and it tells success from failure or moved as expected.
    9. undecided, with what is missing.

    What another criterion says as well is dropped afterwards (`redundancy`). The criterion is
    `refuted` where repeats disagree, failed runs are rated higher, or a perturbation surely did
    other than expected.
    """
    coverage, spread, agreement, separation = checks[:4]
    moved = moved_as_expected(effects)
    wrong = [e for e in effects if e.outcome == "fail"]
    few_cases, mend = short_of_cases(evidence, options) or ("", "")
    tells, blurred = separation.outcome == "pass", separation.outcome == "fail"
    upside_down = blurred and (separation.p_adjusted or 1.0) < options.alpha
    disagree = agreement.outcome == "fail"
    constant = spread.outcome == "fail"
    layout = all(map(is_control, wrong))
    lacking = [agreement.reason] if agreement.outcome != "pass" else []
    if not moved and not tells:
        lacking += [separation.reason, "no perturbation moved it beyond doubt as expected"]
    known = [separation.reason] if separation.outcome != "unknown" else []
    repeats = evidence.originals.values.shape[1]
    single = repeats < 2 and agreement.outcome != "pass"
    rules: tuple[tuple[object, Verdict, list[str], str], ...] = (
        (
            not evidence.rated.any(),
            "undecided",
            [coverage.reason],
            OTHER_JUDGE if coverage.reason == UNSUPPORTED else "find out why it has no rating",
        ),
        (few_cases, "undecided", [few_cases], mend),
        (coverage.outcome == "fail", "repair", [coverage.reason], WHY_MISSING),
        (
            constant and moved,
            "undecided",
            ["these runs do not differ on it", *_said(moved)],
            "rate runs that differ on it",
        ),
        (constant, "drop", [spread.reason], _LEAVE_OUT),
        (
            upside_down,
            "repair",
            [separation.reason, *([agreement.reason] if disagree else [])],
            "see whether its levels run from worst to best, else reword it",
        ),
        (disagree and blurred, "drop", [agreement.reason, separation.reason], _LEAVE_OUT),
        (
            disagree,
            "repair",
            [agreement.reason, separation.reason],
            "word its levels so that two readers agree",
        ),
        (blurred and not moved, "drop", [separation.reason, *_said(wrong)], _LEAVE_OUT),
        (
            wrong,
            "repair",
            _said(wrong),
            "reword it: layout must not count"
            if layout
            else "see whether its `expect` is mistaken, else reword it",
        ),
        (
            agreement.outcome == "pass" and (moved or tells),
            "keep",
            [agreement.reason, *known, *_said(moved)],
            "use it",
        ),
        (True, "undecided", lacking, MORE_REPEATS if single else MORE_CASES),
    )
    _, verdict, reasons, step = next(rule for rule in rules if rule[0])
    refuted = [
        *([separation.reason] if upside_down else []),
        *([agreement.reason] if disagree else []),
        *_said(wrong),
    ]
    runs = evidence.rated
    mean = mean_interval(
        evidence.originals.mean[runs].tolist(),
        evidence.originals.case[runs].tolist(),
        bounds=(0.0, 1.0),
    )
    return Verification(
        criterion_id=evidence.criterion.id,
        verdict=verdict,
        reasons=tuple(reasons),
        next_step=step,
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
    """What is wrong and what to do where fewer than `min_cases` cases have a value, else None."""
    if evidence.cases >= options.min_cases:
        return None
    unrated = evidence.asked - evidence.cases
    counts = evidence.table.where(np.isnan(evidence.table.value)).statuses()
    kinds = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
    why, step = f"{unrated} of {evidence.asked} cases could not be rated ({kinds})", WHY_MISSING
    if set(counts) == {"not_applicable"}:
        why, step = f"it does not apply to {unrated} of {evidence.asked} cases", MORE_CASES
    if evidence.asked >= options.min_cases:
        return f"{why}; {options.min_cases} rated ones are needed", step
    short = options.min_cases - evidence.cases
    text = f"{evidence.cases} cases: {short} more are needed to decide anything"
    return (f"{text}; {why}" if unrated else text), MORE_CASES


def moved_as_expected(effects: Sequence[Effect]) -> list[Effect]:
    """Effects in the direction that was expected, beyond doubt."""
    return [e for e in effects if is_directed(e) and e.outcome == "pass"]


def _said(effects: Sequence[Effect]) -> list[str]:
    return [f"{named(e)}: {e.reason}" for e in effects]
