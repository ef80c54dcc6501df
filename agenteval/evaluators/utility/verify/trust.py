"""The judge as a whole: trustworthy, not trustworthy, or not enough data."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.utility.verify.coverage import at_the_end
from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verdict import named
from agenteval.records.verification import Effect, JudgeVerdict, Trust, Verification

SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers"})


def judge_verdict(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> JudgeVerdict:
    """What these criteria together say of the judge. The rules, first match wins:

    1. not enough data: no rating, fewer than `min_cases` cases, or too many ratings missing.
    2. not trustworthy: most criteria are constant; or most repeats disagree; or a control moved a
       criterion; or most perturbations that should move one surely did not; or those that keep
       the length did not, while others did, so that length alone explains the scores.
    3. trustworthy: repeats agree on most criteria, most perturbations moved them as expected, and
       length alone is excluded, by a perturbation that keeps the length or by padding.
    4. not enough data, with what is missing.
    """
    warnings = _warnings(evidence, verified, options)
    rated = [v for v in verified if v.runs]
    missing = _too_little(verified, rated, options)
    if missing:
        return _verdict("not enough data", missing, warnings)
    against = _against(rated)
    if against:
        return _verdict("not trustworthy", against, warnings)
    lacking = _lacking(rated)
    if lacking:
        return _verdict("not enough data", lacking, warnings)
    directed = _directed(rated)
    moved = sum(e.outcome == "pass" for e in directed)
    return _verdict(
        "trustworthy",
        [
            f"repeats agree on {_count(rated, 'agreement', 'pass')} of {len(rated)} criteria",
            f"{moved} of {len(directed)} perturbations moved a score as was expected",
            f"{_unmoved(rated)} controls left the scores alone",
        ],
        warnings,
    )


def _verdict(verdict: Trust, reasons: Sequence[str], warnings: Sequence[str]) -> JudgeVerdict:
    return JudgeVerdict(verdict=verdict, reasons=tuple(reasons), warnings=tuple(warnings))


def _too_little(
    verified: Sequence[Verification], rated: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    if not rated:
        return ["no criterion has a rating"]
    cases = max(v.cases for v in rated)
    if cases < options.min_cases:
        return [f"{cases} cases; {options.min_cases} are needed"]
    made = [v.coverage for v in verified if v.coverage is not None and v.coverage > 0]
    share = sum(made) / len(made)
    if share < options.min_coverage:
        return [f"only {share:.0%} of the ratings were made; what is missing may be the hard part"]
    return []


def _against(rated: Sequence[Verification]) -> list[str]:
    """Reasons not to trust the judge."""
    reasons = []
    constant = _count(rated, "spread", "fail")
    if 2 * constant > len(rated):
        reasons.append(f"{constant} of {len(rated)} criteria get the same level everywhere")
    disagreeing = _count(rated, "agreement", "fail")
    if 2 * disagreeing > len(rated):
        reasons.append(f"repeats disagree on {disagreeing} of {len(rated)} criteria")
    for one in rated:
        reasons += [
            f"{one.criterion_id}: {named(e)} {e.reason}"
            for e in one.effects
            if e.expected == "none" and e.outcome == "fail"
        ]
    return reasons + _blind(rated)


def _blind(rated: Sequence[Verification]) -> list[str]:
    """Whether perturbations go unseen, all of them or those that keep the length."""
    directed = _directed(rated)
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


def _lacking(rated: Sequence[Verification]) -> list[str]:
    """What is missing for trust."""
    reasons = []
    agreeing = _count(rated, "agreement", "pass")
    if 2 * agreeing <= len(rated):
        reasons.append(f"repeats surely agree on {agreeing} of {len(rated)} criteria only")
    directed = _directed(rated)
    moved = sum(e.outcome == "pass" for e in directed)
    if not directed:
        reasons.append("no perturbation with an expected effect was judged")
    elif 2 * moved <= len(directed):
        reasons.append(f"{moved} of {len(directed)} perturbations surely moved a score")
    same = any(e.operator in SAME_LENGTH and e.outcome == "pass" for e in directed)
    padding = [e for v in rated for e in v.effects if e.operator == "pad" and e.expected == "none"]
    if not same and not (padding and all(e.outcome == "pass" for e in padding)):
        reasons.append("length alone may explain the scores: nothing of equal length was noticed")
    return reasons


def _directed(rated: Sequence[Verification]) -> list[Effect]:
    return [e for v in rated for e in v.effects if e.expected in ("lower", "higher")]


def _unmoved(rated: Sequence[Verification]) -> str:
    controls = [e for v in rated for e in v.effects if e.expected == "none"]
    return f"{sum(e.outcome == 'pass' for e in controls)} of {len(controls)}"


def _count(rated: Sequence[Verification], name: str, outcome: str) -> int:
    return sum((c := v.check(name)) is not None and c.outcome == outcome for v in rated)


def _warnings(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    warnings = []
    for one in evidence:
        if end := at_the_end(one, options):
            warnings.append(f"{one.criterion.id}: most ratings stand at the {end} of the scale")
    for v in verified:
        coverage = v.check("coverage")
        if coverage is not None and "not at random" in coverage.reason:
            warnings.append(f"{v.criterion_id}: {coverage.reason}")
    unchanged = {named(e): e.unchanged for v in verified for e in v.effects if e.unchanged}
    warnings += [f"{name}: {n} copies equal their original" for name, n in unchanged.items()]
    return warnings
