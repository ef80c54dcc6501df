"""The verdict on a judge, from the claims about it and the verdicts on its criteria."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.records.verification import JudgeEvidence, JudgeVerdict, Verification
from agenteval.stats.correlation import first_component
from agenteval.stats.scores import ScoreTable
from agenteval.text import plural
from agenteval.utility.verify.claims import (
    CONTROLS_STILL,
    DAMAGE_LOWERS,
    NO_LABELS,
    PEOPLE_AGREE,
    REPEATS_AGREE,
    SUCCESS_ABOVE,
    controls_still,
    damage_lowers,
    failed,
    is_upside_down,
    liking,
    people_agree,
    repeats_agree,
    success_above,
    systems_alike,
)
from agenteval.utility.verify.effects import is_control, is_directed, moved_as_expected, named
from agenteval.utility.verify.evidence import Evidence, RunMeans
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.verdict import (
    OTHER_JUDGE,
    WHY_MISSING,
    VerdictRule,
    first_match,
    short_of_cases,
)

_REQUIRED = (REPEATS_AGREE, DAMAGE_LOWERS, CONTROLS_STILL, SUCCESS_ABOVE)


def judge_verdict(
    evidence: Sequence[Evidence],
    verified: Sequence[Verification],
    options: VerifyOptions,
    labels: Sequence[ScoreTable] = (),
) -> JudgeVerdict:
    """Return the verdict on the judge.

    Without enough ratings nothing is examined. Otherwise the rules of `_rule` give the verdict. A
    trustworthy judge has limits: "except" for refuted criteria; "as one score" where one component
    holds more than `one_score` of the variance of three or more criteria; "for differences within a
    case" where success is unknown and no `labels` of people agree. Criteria that the judge says it
    cannot grade are left out and named.
    """
    graded = [v for v in verified if not _unsupported(v)]
    with_runs = {v.criterion_id for v in graded if v.runs}
    rated = [e for e in evidence if e.criterion.id in with_runs]
    refuted = tuple(v.criterion_id for v in graded if v.refuted)
    warnings = _warnings(evidence, verified, options)
    if too_few := _too_few_ratings(rated, graded, options):
        return JudgeVerdict(
            verdict="not enough data",
            reasons=too_few[:1],
            next_step=too_few[1],
            warnings=tuple(warnings),
            refuted=refuted,
        )
    by_id = {item.criterion.id: item for item in rated}
    directed = [
        (by_id[v.criterion_id], effect.variant, effect.expected)
        for v in graded
        for effect in v.effects
        if v.runs and is_directed(effect) and effect.n
    ]
    claims = [
        repeats_agree(graded, options),
        damage_lowers(graded, options),
        controls_still(graded, rated, options),
        success_above(graded, rated, options),
        *([people_agree(rated, labels, options)] if labels else []),
        systems_alike(rated, directed, options),
    ]
    standing = {c.name: c.standing for c in claims}
    within_case = standing[SUCCESS_ABOVE] == "not checked" and standing.get(PEOPLE_AGREE) != "shown"
    one_score = _one_score([e for e in rated if e.criterion.id not in refuted], options)
    rule = _rule(graded, claims, refuted, within_case=within_case)
    verdict = rule.verdict
    limits = [
        *(["as one score"] if one_score else []),
        *(["for differences within a case"] if within_case else []),
        *([f"except {', '.join(refuted)}"] if refuted else []),
    ]
    if verdict == "trustworthy" and limits:
        verdict = f"{verdict} {', '.join(limits)}"
    if one_score:
        warnings.insert(0, f"{', '.join(one_score)} cannot be told apart: they are one score")
    return JudgeVerdict(
        verdict=verdict,
        reasons=tuple(rule.reasons),
        next_step=rule.next_step,
        warnings=tuple(warnings),
        evidence=(*claims, liking()),
        refuted=refuted,
        one_score=one_score,
        within_case=within_case,
    )


def _rule(
    graded: Sequence[Verification],
    claims: Sequence[JudgeEvidence],
    refuted: Sequence[str],
    *,
    within_case: bool,
) -> VerdictRule[str]:
    """Return the rule that decides, which says "trustworthy" without its limits."""
    why = [f"{v.criterion_id}: {v.refuted[0]}" for v in graded if v.refuted]
    against = [c for c in claims if c.standing == "refuted"]
    lacking = [c for c in claims if c.standing == "not shown" and c.name in _REQUIRED]
    missing = [c.reason for c in lacking]
    # Criteria against which more speaks than an expectation, which may be mistaken.
    hard = sum(
        bool(v.refuted)
        and (
            failed(v, "agreement")
            or is_upside_down(v)
            or any(is_control(e) and e.outcome == "fail" for e in v.effects)
        )
        for v in graded
    )
    unseen = [
        v.criterion_id
        for v in graded
        if not v.refuted
        and not moved_as_expected(v.effects)
        and any(is_directed(e) and e.n for e in v.effects)
    ]
    step = "use it on runs like these; `agenteval agree` compares it with people"
    if refuted:
        step = f"do not use {', '.join(refuted)}; `--allow-criterion` lets a gate pass all the same"
    elif within_case:
        step = NO_LABELS
    shown = [*why, *(c.reason for c in claims)]
    if unseen:
        shown.append(f"no expected effect is shown on {', '.join(unseen)}")
    many_hard = f"{hard} of {len(graded)} criteria are refuted"
    unexpected = f"{len(refuted)} of {len(graded)} criteria did other than expected"
    return first_match(
        (
            VerdictRule(
                against,
                "not trustworthy",
                [*(c.reason for c in against), *why],
                "".join(c.next_step for c in against[:1]),
            ),
            VerdictRule(2 * hard > len(graded), "not trustworthy", [many_hard, *why], OTHER_JUDGE),
            VerdictRule(
                2 * len(refuted) > len(graded),
                "not enough data",
                [unexpected, *why, *missing],
                "see whether `expect` is mistaken; if not, the judge is swayed",
            ),
            VerdictRule(
                lacking,
                "not enough data",
                [*missing, *why],
                "".join(c.next_step for c in lacking[:1]),
            ),
            VerdictRule(True, "trustworthy", shown, step),
        )
    )


def _unsupported(verification: Verification) -> bool:
    """Whether the judge itself says that it cannot grade this criterion."""
    coverage = verification.check("coverage")
    return coverage is not None and coverage.outcome == "unknown"


def _too_few_ratings(
    rated: Sequence[Evidence], graded: Sequence[Verification], options: VerifyOptions
) -> tuple[str, str] | None:
    """Return why the judge cannot be examined, and what to do; else None."""
    if not rated:
        return "no criterion has a rating", WHY_MISSING
    if short := short_of_cases(max(rated, key=lambda e: e.cases), options):
        return short
    share = sum(v.coverage or 0.0 for v in graded) / len(graded)
    if share < options.min_coverage:
        text = f"only {share:.0%} of the ratings were made; what is missing may be the hard part"
        return text, WHY_MISSING
    pairs = sum(e.pairs for v in graded for e in v.effects)
    missing = sum(e.missing for v in graded for e in v.effects)
    if pairs < options.min_coverage * (pairs + missing):
        text = f"{missing} copies have no rating: a judge may refuse what is damaged"
        return text, "find out why copies have no rating"
    return None


def _one_score(rated: Sequence[Evidence], options: VerifyOptions) -> tuple[str, ...]:
    """Return criteria that cannot be distinguished, or nothing, also for fewer than three."""
    if not rated:
        return ()
    component = first_component(RunMeans.of(rated).means)
    if (component.share or 0.0) <= options.one_score or len(component.columns) < 3:
        return ()
    return tuple(rated[i].criterion.id for i in component.columns)


def _warnings(
    evidence: Sequence[Evidence], verified: Sequence[Verification], options: VerifyOptions
) -> list[str]:
    """Return warnings about the verdict; one for several criteria is given once."""
    warnings = []
    if cannot := [v.criterion_id for v in verified if _unsupported(v)]:
        share = f"{len(cannot)} of {len(verified)}"
        warnings.append(f"{share} criteria this judge cannot grade: {', '.join(cannot)}")
    criteria_by_warning: dict[str, list[str]] = {}
    for item in evidence:
        if end := item.crowded(options.ceiling):
            warning = f"most ratings are at the {end} of the scale"
            criteria_by_warning.setdefault(warning, []).append(item.criterion.id)
    for v in verified:
        reasons = [c.reason for c in v.checks if "not at random" in c.reason]
        reasons += [
            f"{e.missing} of {e.missing + e.pairs} copies by {named(e)} have no rating"
            for e in v.effects
            if e.missing > 0.1 * (e.missing + e.pairs)
        ]
        for warning in reasons:
            criteria_by_warning.setdefault(warning, []).append(v.criterion_id)
    warnings += [f"{', '.join(ids)}: {warning}" for warning, ids in criteria_by_warning.items()]
    differing = max((item.differing for item in evidence), default=0)
    rated = [item for item in evidence if item.rated.any()]
    if options.deterministic and differing:
        warnings.append(f"declared deterministic, but repeats of {differing} runs differ")
    identical = all(len(item.repeated) and not item.differing for item in rated)
    if evidence and identical and not options.deterministic:
        warnings.append(
            "all repeats are identical: a deterministic judge agrees with itself whatever it rates"
        )
    unchanged = {named(e): e.unchanged for v in verified for e in v.effects if e.unchanged}
    warnings += [
        f"{name}: equal to the original: {plural(n, 'copy')}" for name, n in unchanged.items()
    ]
    return warnings
