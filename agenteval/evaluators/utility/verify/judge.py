"""The judge as a whole: trustworthy, not trustworthy, or not enough data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.verify.checks import at_the_end, repeats_differ
from agenteval.evaluators.utility.verify.effects import is_control, is_directed, named
from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verdict import (
    MORE_CASES,
    MORE_REPEATS,
    moved_as_expected,
    short_of_cases,
)
from agenteval.records.verification import Effect, JudgeVerdict, Trust, Verification

SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers"})
_MORE_COPIES = "rate more copies (docs/verify.md says how they are made)"

Reason = tuple[str, str]  # what holds, and what to do about it


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
       one of them of equal length, most controls left them alone, and most criteria stayed where
       no effect of another perturbation was expected.
    4. not enough data, with what is missing.

    Criteria that the judge says it cannot grade are left out and named.
    """
    graded = [v for v in verified if not _unsupported(v)]
    rules: tuple[tuple[Trust, list[Reason]], ...] = (
        ("not enough data", _too_little(evidence, graded, options)),
        ("not trustworthy", _against(graded)),
        ("not enough data", _lacking(graded)),
        ("trustworthy", _in_favour(graded, options)),
    )
    verdict, reasons = next((verdict, reasons) for verdict, reasons in rules if reasons)
    return JudgeVerdict(
        verdict=verdict,
        reasons=tuple(text for text, _ in reasons),
        next_step=reasons[0][1],
        warnings=tuple(_warnings(evidence, verified, options)),
    )


def _unsupported(one: Verification) -> bool:
    """Whether the judge itself says that it cannot grade this criterion."""
    coverage = one.check("coverage")
    return coverage is not None and coverage.outcome == "unknown"


def _too_little(
    evidence: Sequence[Evidence], graded: Sequence[Verification], options: VerifyOptions
) -> list[Reason]:
    """Why nothing can be said of the judge."""
    rated = {v.criterion_id for v in graded if v.runs}
    if not rated:
        return [("no criterion has a rating", "find out why ratings are missing")]
    best = max((e for e in evidence if e.criterion.id in rated), key=lambda e: e.cases)
    if short := short_of_cases(best, options):
        return [short]
    share = sum(v.coverage or 0.0 for v in graded) / len(graded)
    if share < options.min_coverage:
        text = f"only {share:.0%} of the ratings were made; what is missing may be the hard part"
        return [(text, "find out why ratings are missing")]
    pairs = sum(e.pairs for v in graded for e in v.effects)
    missing = sum(e.missing for v in graded for e in v.effects)
    if pairs < options.min_coverage * (pairs + missing):
        text = f"{missing} copies have no rating: a judge may refuse what is damaged"
        return [(text, "find out why copies have no rating")]
    return []


def _against(graded: Sequence[Verification]) -> list[Reason]:
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
    reasons += [
        f"{v.criterion_id}: {named(e)} {e.reason}"
        for v in graded
        for e in v.effects
        if is_control(e) and e.outcome == "fail"
    ]
    step = "do not use its scores; try another judge, or reword the criteria and verify again"
    return [(text, step) for text in reasons + _blind(graded)]


def _blind(graded: Sequence[Verification]) -> list[str]:
    """Whether perturbations go unseen, all of them or those that keep the length."""
    directed = _directed(graded)
    unseen = [e for e in directed if e.outcome == "fail"]
    if directed and 2 * len(unseen) > len(directed):
        return [f"{len(unseen)} of {len(directed)} perturbations did not move a score as expected"]
    same = [e for e in directed if e.operator in SAME_LENGTH]
    other = [e for e in directed if e.operator not in SAME_LENGTH]
    seen = any(e.outcome == "pass" for e in other)
    if seen and same and all(e.outcome == "fail" for e in same):
        names = ", ".join(sorted({e.operator for e in same}))
        return [f"scores fall with the length only: {names} went unnoticed"]
    return []


def _lacking(graded: Sequence[Verification]) -> list[Reason]:
    """What is missing for trust."""
    reasons = []
    agreeing = _count(graded, "agreement", "pass")
    if 2 * agreeing <= len(graded):
        if all(v.repeats < 2 for v in graded):
            step = f"{MORE_REPEATS}; --deterministic where the judge is a function"
            reasons.append(("one repeat: nothing shows whether the judge agrees with itself", step))
        else:
            text = f"repeats surely agree on {agreeing} of {len(graded)} criteria only"
            reasons.append((text, MORE_CASES))
    directed = _directed(graded)
    moved = _passing(directed)
    if not directed:
        reasons.append(("no perturbation with an expected effect was judged", _MORE_COPIES))
    elif 2 * moved <= len(directed):
        text = f"{moved} of {len(directed)} perturbations surely moved a score as expected"
        reasons.append((text, MORE_CASES))
    if not any(e.operator in SAME_LENGTH and e.outcome == "pass" for e in directed):
        text = "length alone may explain the scores: nothing of equal length was noticed"
        reasons.append((text, _MORE_COPIES))
    controls = _controls(graded)
    unmoved = _passing(controls)
    if not controls:
        text = "no control was judged: copies by whitespace, formatting or paraphrase"
        reasons.append((text, _MORE_COPIES))
    elif 2 * unmoved <= len(controls):
        text = f"{unmoved} of {len(controls)} controls surely left the scores alone"
        reasons.append((text, MORE_CASES))
    return reasons + _swayed(graded)


def _swayed(graded: Sequence[Verification]) -> list[Reason]:
    """Whether most criteria surely moved where no effect was expected: a few may be mistaken."""
    moved = {
        v.criterion_id: e.operator
        for v in graded
        for e in v.effects
        if e.expected == "none" and e.outcome == "fail"
    }
    if 2 * len(moved) <= len(graded):
        return []
    names = ", ".join(sorted(set(moved.values())))
    text = f"{names} moved {len(moved)} of {len(graded)} criteria although no effect was expected"
    return [(text, "see whether `expect` is mistaken; if not, the judge is swayed")]


def _in_favour(graded: Sequence[Verification], options: VerifyOptions) -> list[Reason]:
    """Why the judge is trusted, when nothing speaks against it and nothing is missing."""
    directed, controls = _directed(graded), _controls(graded)
    agree = "declared deterministic" if options.deterministic else "repeats agree"
    texts = (
        f"{agree} on {_count(graded, 'agreement', 'pass')} of {len(graded)} criteria",
        f"{_passing(directed)} of {len(directed)} perturbations moved a score as was expected",
        f"{_passing(controls)} of {len(controls)} controls left the scores alone",
    )
    step = "use it on runs like these; `agenteval agree` compares it with people"
    return [(text, step) for text in texts]


def _directed(graded: Sequence[Verification]) -> list[Effect]:
    return [e for v in graded for e in v.effects if is_directed(e)]


def _controls(graded: Sequence[Verification]) -> list[Effect]:
    return [e for v in graded for e in v.effects if is_control(e)]


def _passing(effects: Sequence[Effect]) -> int:
    return sum(e.outcome == "pass" for e in effects)


def _count(graded: Sequence[Verification], name: str, outcome: str) -> int:
    return sum((c := v.check(name)) is not None and c.outcome == outcome for v in graded)


def _warnings(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    """What must be known beside the verdict; what holds of several criteria is said once."""
    warnings = []
    cannot = [v.criterion_id for v in verified if _unsupported(v)]
    if cannot:
        share = f"{len(cannot)} of {len(verified)}"
        warnings.append(f"{share} criteria this judge cannot grade: {', '.join(cannot)}")
    about: dict[str, list[str]] = {}  # criteria by what is said of them
    for one in evidence:
        if end := at_the_end(one, options):
            said = f"most ratings stand at the {end} of the scale"
            about.setdefault(said, []).append(one.criterion.id)
    for v in verified:
        coverage = v.check("coverage")
        if coverage is not None and "not at random" in coverage.reason:
            about.setdefault(coverage.reason, []).append(v.criterion_id)
        for e in v.effects:
            if e.missing > 0.1 * (e.missing + e.pairs):
                said = f"{e.missing} of {e.missing + e.pairs} copies by {named(e)} have no rating"
                about.setdefault(said, []).append(v.criterion_id)
    warnings += [f"{', '.join(criteria)}: {said}" for said, criteria in about.items()]
    differing = max((repeats_differ(one) for one in evidence), default=0)
    if options.deterministic and differing:
        warnings.append(f"declared deterministic, but repeats of {differing} runs differ")
    elif (
        not options.deterministic
        and evidence
        and all(_identical(one) for one in evidence if one.rated.any())
    ):
        warnings.append(
            "all repeats are identical: the judge is deterministic or they are copies, and "
            "agreement shows nothing"
        )
    unchanged = {named(e): e.unchanged for v in verified for e in v.effects if e.unchanged}
    warnings += [f"{name}: {n} copies equal their original" for name, n in unchanged.items()]
    return warnings


def _identical(one: Evidence) -> bool:
    """Whether there are repeats, and they are equal."""
    several = (~np.isnan(one.originals.values)).sum(axis=1) > 1
    return bool(several.any()) and not repeats_differ(one)
