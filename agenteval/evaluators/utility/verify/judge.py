"""The judge as a whole: trustworthy, not trustworthy, or not enough data."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.utility.verify.effects import is_control, is_directed, named
from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verdict import (
    MORE_CASES,
    MORE_REPEATS,
    WHY_MISSING,
    moved_as_expected,
    short_of_cases,
)
from agenteval.records.verification import Effect, JudgeVerdict, Trust, Verification

_SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers"})
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


def _unsupported(verification: Verification) -> bool:
    """Whether the judge itself says that it cannot grade this criterion."""
    return any(
        check.name == "coverage" and check.outcome == "unknown" for check in verification.checks
    )


def _too_little(
    evidence: Sequence[Evidence], graded: Sequence[Verification], options: VerifyOptions
) -> list[Reason]:
    """Why nothing can be said of the judge."""
    rated = {v.criterion_id for v in graded if v.runs}
    if not rated:
        return [("no criterion has a rating", WHY_MISSING)]
    best = max((e for e in evidence if e.criterion.id in rated), key=lambda e: e.cases)
    if short := short_of_cases(best, options):
        return [short]
    share = sum(v.coverage or 0.0 for v in graded) / len(graded)
    if share < options.min_coverage:
        text = f"only {share:.0%} of the ratings were made; what is missing may be the hard part"
        return [(text, WHY_MISSING)]
    pairs = sum(e.pairs for v in graded for e in v.effects)
    missing = sum(e.missing for v in graded for e in v.effects)
    if pairs < options.min_coverage * (pairs + missing):
        text = f"{missing} copies have no rating: a judge may refuse what is damaged"
        return [(text, "find out why copies have no rating")]
    return []


def _against(graded: Sequence[Verification]) -> list[Reason]:
    """Reasons not to trust the judge."""
    texts = []
    unmoved = [v for v in graded if not moved_as_expected(v.effects)]
    constant = _count(unmoved, "spread", "fail")
    if 2 * constant > len(graded):
        texts.append(f"{constant} of {len(graded)} criteria get the same level everywhere")
    disagreeing = _count(graded, "agreement", "fail")
    if 2 * disagreeing > len(graded):
        texts.append(f"repeats disagree on {disagreeing} of {len(graded)} criteria")
    texts += [
        f"{v.criterion_id}: {named(e)} {e.reason}"
        for v in graded
        for e in v.effects
        if is_control(e) and e.outcome == "fail"
    ]
    directed = [e for v in graded for e in v.effects if is_directed(e)]
    unseen = sum(e.outcome == "fail" for e in directed)
    same = [e for e in directed if e.operator in _SAME_LENGTH]
    if 2 * unseen > len(directed):
        texts.append(f"{unseen} of {len(directed)} perturbations did not move a score as expected")
    elif same and all(e.outcome == "fail" for e in same) and _passing(directed):
        names = ", ".join(sorted({e.operator for e in same}))
        texts.append(f"scores fall with the length only: {names} went unnoticed")
    step = "do not use its scores; try another judge, or reword the criteria and verify again"
    return [(text, step) for text in texts]


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
    directed = [e for v in graded for e in v.effects if is_directed(e)]
    moved = _passing(directed)
    if not directed:
        reasons.append(("no perturbation with an expected effect was judged", _MORE_COPIES))
    elif 2 * moved <= len(directed):
        text = f"{moved} of {len(directed)} perturbations surely moved a score as expected"
        reasons.append((text, MORE_CASES))
    if not any(e.operator in _SAME_LENGTH and e.outcome == "pass" for e in directed):
        text = "length alone may explain the scores: nothing of equal length was noticed"
        reasons.append((text, _MORE_COPIES))
    controls = [e for v in graded for e in v.effects if is_control(e)]
    unmoved = _passing(controls)
    if not controls:
        text = "no control was judged: copies by whitespace, formatting or paraphrase"
        reasons.append((text, _MORE_COPIES))
    elif 2 * unmoved <= len(controls):
        text = f"{unmoved} of {len(controls)} controls surely left the scores alone"
        reasons.append((text, MORE_CASES))
    swayed = {  # a few expectations may be mistaken, not most
        v.criterion_id: e.operator
        for v in graded
        for e in v.effects
        if e.expected == "none" and e.outcome == "fail"
    }
    if 2 * len(swayed) > len(graded):
        text = (
            f"{', '.join(sorted(set(swayed.values())))} moved {len(swayed)} of {len(graded)} "
            "criteria although no effect was expected"
        )
        reasons.append((text, "see whether `expect` is mistaken; if not, the judge is swayed"))
    return reasons


def _in_favour(graded: Sequence[Verification], options: VerifyOptions) -> list[Reason]:
    """Why the judge is trusted, when nothing speaks against it and nothing is missing."""
    directed = [e for v in graded for e in v.effects if is_directed(e)]
    controls = [e for v in graded for e in v.effects if is_control(e)]
    agree = "declared deterministic" if options.deterministic else "repeats agree"
    step = "use it on runs like these; `agenteval agree` compares it with people"
    return [
        (f"{agree} on {_count(graded, 'agreement', 'pass')} of {len(graded)} criteria", step),
        (f"{_passing(directed)} of {len(directed)} perturbations moved a score as was expected",
         step),
        (f"{_passing(controls)} of {len(controls)} controls left the scores alone", step),
    ]  # fmt: skip


def _passing(effects: Sequence[Effect]) -> int:
    return sum(e.outcome == "pass" for e in effects)


def _count(graded: Sequence[Verification], name: str, outcome: str) -> int:
    """Criteria whose check of this name has this outcome."""
    return sum((c.name, c.outcome) == (name, outcome) for v in graded for c in v.checks)


def _warnings(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    """What must be known beside the verdict; what holds of several criteria is said once."""
    warnings = []
    if cannot := [v.criterion_id for v in verified if _unsupported(v)]:
        share = f"{len(cannot)} of {len(verified)}"
        warnings.append(f"{share} criteria this judge cannot grade: {', '.join(cannot)}")
    about: dict[str, list[str]] = {}  # criteria by what is said of them
    for item in evidence:
        if end := item.crowded(options.ceiling):
            warning = f"most ratings stand at the {end} of the scale"
            about.setdefault(warning, []).append(item.criterion.id)
    for v in verified:
        said_of_it = [c.reason for c in v.checks if "not at random" in c.reason]
        said_of_it += [
            f"{e.missing} of {e.missing + e.pairs} copies by {named(e)} have no rating"
            for e in v.effects
            if e.missing > 0.1 * (e.missing + e.pairs)
        ]
        for warning in said_of_it:
            about.setdefault(warning, []).append(v.criterion_id)
    warnings += [f"{', '.join(criteria)}: {warning}" for warning, criteria in about.items()]
    differing = max((item.differing for item in evidence), default=0)
    rated = [item for item in evidence if item.rated.any()]
    if options.deterministic and differing:
        warnings.append(f"declared deterministic, but repeats of {differing} runs differ")
    elif (
        not options.deterministic
        and evidence
        and all(len(item.repeated) and not item.differing for item in rated)
    ):
        warnings.append(
            "all repeats are identical: the judge is deterministic or they are copies, and "
            "agreement shows nothing"
        )
    unchanged = {named(e): e.unchanged for v in verified for e in v.effects if e.unchanged}
    warnings += [f"{name}: {n} copies equal their original" for name, n in unchanged.items()]
    return warnings
