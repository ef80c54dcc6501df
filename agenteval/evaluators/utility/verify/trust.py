"""The judge as a whole: trustworthy, not trustworthy, or not enough data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.verify.coverage import at_the_end
from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verdict import moved_as_expected, named
from agenteval.records.verification import Effect, JudgeVerdict, Trust, Verification

SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers"})


def judge_verdict(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> JudgeVerdict:
    """What these criteria together say of the judge. The rules, first match wins:

    1. not enough data: no rating, fewer than `min_cases` cases, or too many ratings missing, of
       originals or of copies.
    2. not trustworthy: most criteria are constant; or most repeats disagree; or a control moved a
       criterion; or most perturbations that should move one surely did not; or those that keep
       the length did not, while others did, so that length alone explains the scores.
    3. trustworthy: repeats agree on most criteria, most perturbations moved them as expected,
       one of them of equal length, and most controls left them alone.
    4. not enough data, with what is missing.

    Criteria that the judge says it cannot grade are left out and named.
    """
    warnings = _warnings(evidence, verified, options)
    graded = [v for v in verified if not _unsupported(v)]
    for rule, verdict in (
        (_too_little(graded, options), "not enough data"),
        (_against(evidence, graded), "not trustworthy"),
        (_lacking(graded), "not enough data"),
    ):
        if rule:
            return _verdict(verdict, rule, warnings)  # type: ignore[arg-type]
    directed = _directed(graded)
    moved = sum(e.outcome == "pass" for e in directed)
    controls = _controls(graded)
    unmoved = sum(e.outcome == "pass" for e in controls)
    return _verdict(
        "trustworthy",
        [
            f"repeats agree on {_count(graded, 'agreement', 'pass')} of {len(graded)} criteria",
            f"{moved} of {len(directed)} perturbations moved a score as was expected",
            f"{unmoved} of {len(controls)} controls left the scores alone",
        ],
        warnings,
    )


def _unsupported(one: Verification) -> bool:
    """Whether the judge itself says that it cannot grade this criterion."""
    coverage = one.check("coverage")
    return coverage is not None and coverage.outcome == "unknown"


def _verdict(verdict: Trust, reasons: Sequence[str], warnings: Sequence[str]) -> JudgeVerdict:
    return JudgeVerdict(verdict=verdict, reasons=tuple(reasons), warnings=tuple(warnings))


def _too_little(graded: Sequence[Verification], options: VerifyOptions) -> list[str]:
    rated = [v for v in graded if v.runs]
    if not rated:
        return ["no criterion has a rating"]
    cases = max(v.cases for v in rated)
    if cases < options.min_cases:
        return [f"{cases} cases; {options.min_cases} are needed"]
    share = sum(v.coverage or 0.0 for v in graded) / len(graded)
    if share < options.min_coverage:
        return [f"only {share:.0%} of the ratings were made; what is missing may be the hard part"]
    pairs = sum(e.pairs for v in graded for e in v.effects)
    missing = sum(e.missing for v in graded for e in v.effects)
    if missing > (1 - options.min_coverage) * (pairs + missing):
        return [f"{missing} copies have no rating: a judge may refuse what is damaged"]
    return []


def _against(evidence: Sequence[Evidence], graded: Sequence[Verification]) -> list[str]:
    """Reasons not to trust the judge."""
    reasons = []
    constant = sum(
        (c := v.check("spread")) is not None
        and c.outcome == "fail"
        and not moved_as_expected(v.effects)
        for v in graded
    )
    if 2 * constant > len(graded):
        reasons.append(f"{constant} of {len(graded)} criteria get the same level everywhere")
    disagreeing = _count(graded, "agreement", "fail")
    if 2 * disagreeing > len(graded):
        reasons.append(f"repeats disagree on {disagreeing} of {len(graded)} criteria")
    for one in graded:
        reasons += [
            f"{one.criterion_id}: {named(e)} {e.reason}"
            for e in one.effects
            if e.expected == "none" and e.outcome == "fail"
        ]
    return reasons + _blind(graded)


def _blind(graded: Sequence[Verification]) -> list[str]:
    """Whether perturbations go unseen, all of them or those that keep the length."""
    directed = _directed(graded)
    unseen = [e for e in directed if e.outcome == "fail"]
    if directed and 2 * len(unseen) > len(directed):
        return [f"{len(unseen)} of {len(directed)} perturbations went unnoticed"]
    same = [e for e in directed if e.operator in SAME_LENGTH]
    other = [e for e in directed if e.operator not in SAME_LENGTH]
    seen = any(e.outcome == "pass" for e in other)
    if seen and same and all(e.outcome == "fail" for e in same):
        names = ", ".join(sorted({e.operator for e in same}))
        return [f"scores fall with the length only: {names} went unnoticed"]
    return []


def _lacking(graded: Sequence[Verification]) -> list[str]:
    """What is missing for trust."""
    reasons = []
    agreeing = _count(graded, "agreement", "pass")
    if 2 * agreeing <= len(graded):
        reasons.append(f"repeats surely agree on {agreeing} of {len(graded)} criteria only")
    directed = _directed(graded)
    moved = sum(e.outcome == "pass" for e in directed)
    if not directed:
        reasons.append("no perturbation with an expected effect was judged")
    elif 2 * moved <= len(directed):
        reasons.append(f"{moved} of {len(directed)} perturbations surely moved a score")
    if not any(e.operator in SAME_LENGTH and e.outcome == "pass" for e in directed):
        reasons.append("length alone may explain the scores: nothing of equal length was noticed")
    controls = _controls(graded)
    unmoved = sum(e.outcome == "pass" for e in controls)
    if not controls:
        reasons.append("no control was judged")
    elif 2 * unmoved <= len(controls):
        reasons.append(f"{unmoved} of {len(controls)} controls surely left the scores alone")
    return reasons


def _directed(graded: Sequence[Verification]) -> list[Effect]:
    return [e for v in graded for e in v.effects if e.expected in ("lower", "higher")]


def _controls(graded: Sequence[Verification]) -> list[Effect]:
    return [e for v in graded for e in v.effects if e.expected == "none"]


def _count(graded: Sequence[Verification], name: str, outcome: str) -> int:
    return sum((c := v.check(name)) is not None and c.outcome == outcome for v in graded)


def _warnings(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    warnings = []
    cannot = [v.criterion_id for v in verified if _unsupported(v)]
    if cannot:
        share = f"{len(cannot)} of {len(verified)}"
        warnings.append(f"{share} criteria this judge cannot grade: {', '.join(cannot)}")
    for one in evidence:
        if end := at_the_end(one, options):
            warnings.append(f"{one.criterion.id}: most ratings stand at the {end} of the scale")
    if evidence and all(_identical(one) for one in evidence if one.rated.any()):
        warnings.append(
            "all repeats are identical: the judge is deterministic or they are copies, and "
            "agreement shows nothing"
        )
    for v in verified:
        coverage = v.check("coverage")
        if coverage is not None and "not at random" in coverage.reason:
            warnings.append(f"{v.criterion_id}: {coverage.reason}")
        warnings += [
            f"{v.criterion_id}: {e.missing} of {e.missing + e.pairs} copies by {named(e)} have no "
            "rating"
            for e in v.effects
            if e.missing > 0.1 * (e.missing + e.pairs)
        ]
    unchanged = {named(e): e.unchanged for v in verified for e in v.effects if e.unchanged}
    warnings += [f"{name}: {n} copies equal their original" for name, n in unchanged.items()]
    return warnings


def _identical(one: Evidence) -> bool:
    values = one.originals.values
    if values.shape[1] < 2:
        return False
    several = values[(~np.isnan(values)).sum(axis=1) > 1]
    return bool(len(several)) and bool((np.nanmax(several, 1) == np.nanmin(several, 1)).all())
