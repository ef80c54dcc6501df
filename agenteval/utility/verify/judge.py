"""The verdict on a judge: what is claimed of it, and whether the data show it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from agenteval.records.verification import (
    Check,
    Effect,
    JudgeEvidence,
    JudgeVerdict,
    Standing,
    Verification,
)
from agenteval.stats import Interval, mean_interval
from agenteval.stats.correlation import first_component
from agenteval.stats.discrimination import discrimination
from agenteval.stats.scores import ScoreTable
from agenteval.utility.verify.effects import (
    is_control,
    is_directed,
    named,
    undecidable,
)
from agenteval.utility.verify.evidence import Evidence, claim
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.people import PEOPLE_AGREE, people_agree
from agenteval.utility.verify.redundancy import means_of, overall_means
from agenteval.utility.verify.systems import systems_alike
from agenteval.utility.verify.verdict import (
    MORE_CASES,
    MORE_REPEATS,
    WHY_MISSING,
    moved_as_expected,
    short_of_cases,
)

REPEATS_AGREE = "repeats agree"
DAMAGE_LOWERS = "damage lowers scores"
CONTROLS_STILL = "controls change nothing"
SUCCESS_ABOVE = "success is rated above failure"
_SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers"})
_MORE_COPIES = "rate more copies (docs/verify.md says how they are made)"
_OTHER_JUDGE = "do not use its scores; try another judge, or reword the criteria and verify again"
_LABEL = "nothing is known about success: label 20 runs with `agenteval agree sample`"
_MOST_MORE = 10  # times the cases there are: more are not proposed


def judge_verdict(
    evidence: Sequence[Evidence],
    verified: Sequence[Verification],
    options: VerifyOptions,
    labels: Sequence[ScoreTable] = (),
) -> JudgeVerdict:
    """Return the verdict on the judge, from evidence of which each is shown, refuted, not shown, or
    could not be checked. The rules, first match wins:

    1. not enough data: no rating, fewer than `min_cases` cases, or too many ratings missing.
    2. not trustworthy: some evidence is refuted, or most criteria are by more than an expectation
       that may be mistaken.
    3. not enough data: repeats, damage, controls or success are not shown, or most criteria
       contradict their expectations.
    4. trustworthy, with its limits: "except" for refuted criteria; "as one score" where one
       component holds more than `one_score` of the variance of three or more criteria; "for
       differences within a case" where success is unknown and no `labels` of people agree.

    Criteria that the judge says it cannot grade are left out and named.
    """
    graded = [v for v in verified if not _unsupported(v)]
    ids = {v.criterion_id for v in graded if v.runs}
    rated = [e for e in evidence if e.criterion.id in ids]
    refuted = tuple(v.criterion_id for v in graded if v.refuted)
    warnings = _warnings(evidence, verified, options)
    if few := _too_little(rated, graded, options):
        return JudgeVerdict(
            verdict="not enough data",
            reasons=few[:1],
            next_step=few[1],
            warnings=tuple(warnings),
            refuted=refuted,
        )
    shown = [
        _repeats_agree(graded, options),
        _damage_lowers(graded, options),
        _controls_still(graded, rated, options),
        _success_above(graded, rated, options),
        *([people_agree(rated, labels, options)] if labels else []),
        _systems(rated, graded, options),
    ]
    standing = {e.name: e.standing for e in shown}
    within_case = standing[SUCCESS_ABOVE] == "not checked" and standing.get(PEOPLE_AGREE) != "shown"
    one_score = _one_score([e for e in rated if e.criterion.id not in refuted], options)
    verdict, reasons, step = _verdict(graded, shown, refuted, within_case)
    if verdict == "trustworthy":
        limits = [
            *(["as one score"] if one_score else []),
            *(["for differences within a case"] if within_case else []),
            *([f"except {', '.join(refuted)}"] if refuted else []),
        ]
        verdict = " ".join([verdict, *([", ".join(limits)] if limits else [])])
    if one_score:
        names = ", ".join(one_score)
        warnings = [f"{names} cannot be told apart: they are one score", *warnings]
    return JudgeVerdict(
        verdict=verdict,
        reasons=tuple(reasons),
        next_step=step,
        warnings=tuple(warnings),
        evidence=tuple(shown),
        refuted=refuted,
        one_score=one_score,
        within_case=within_case,
    )


def _verdict(
    graded: Sequence[Verification],
    shown: Sequence[JudgeEvidence],
    refuted: Sequence[str],
    within_case: bool,
) -> tuple[str, list[str], str]:
    """Verdict without its limits, reasons, and what to do next."""
    why = [f"{v.criterion_id}: {v.refuted[0]}" for v in graded if v.refuted]
    against = [e for e in shown if e.standing == "refuted"]
    hard = [v for v in graded if v.refuted and not _expectations_alone(v)]
    if against:
        return "not trustworthy", [*(e.reason for e in against), *why], against[0].next_step
    if 2 * len(hard) > len(graded):
        text = f"{len(hard)} of {len(graded)} criteria are refuted"
        return "not trustworthy", [text, *why], _OTHER_JUDGE
    required = {REPEATS_AGREE, DAMAGE_LOWERS, CONTROLS_STILL, SUCCESS_ABOVE}
    lacking = [e for e in shown if e.standing == "not shown" and e.name in required]
    if 2 * len(refuted) > len(graded):
        text = f"{len(refuted)} of {len(graded)} criteria did other than expected"
        step = "see whether `expect` is mistaken; if not, the judge is swayed"
        return "not enough data", [text, *why, *(e.reason for e in lacking)], step
    if lacking:
        return "not enough data", [*(e.reason for e in lacking), *why], lacking[0].next_step
    step = "use it on runs like these; `agenteval agree` compares it with people"
    if refuted:
        step = f"do not use {', '.join(refuted)}; `--allow-criterion` lets a gate pass all the same"
    elif within_case:
        step = _LABEL
    unseen = [
        v.criterion_id
        for v in graded
        if not v.refuted
        and not moved_as_expected(v.effects)
        and any(is_directed(e) and e.n for e in v.effects)
    ]
    open_ = [f"no expected effect is shown on {', '.join(unseen)}"] if unseen else []
    return "trustworthy", [*why, *(e.reason for e in shown), *open_], step


def _unsupported(verification: Verification) -> bool:
    """Whether the judge itself says that it cannot grade this criterion."""
    return any(
        check.name == "coverage" and check.outcome == "unknown" for check in verification.checks
    )


def _expectations_alone(verification: Verification) -> bool:
    """Whether only perturbations that are no controls speak against it: `expect` may be wrong."""
    agreement = verification.check("agreement")
    disagree = agreement is not None and agreement.outcome == "fail"
    controls = [e for e in verification.effects if is_control(e) and e.outcome == "fail"]
    return not (controls or disagree or _upside_down(verification))


def _too_little(
    rated: Sequence[Evidence], graded: Sequence[Verification], options: VerifyOptions
) -> tuple[str, str] | None:
    """Why nothing can be said of the judge, and what to do; None where something can."""
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


def _repeats_agree(graded: Sequence[Verification], options: VerifyOptions) -> JudgeEvidence:
    """AC2 over repeats, on the majority of the criteria and on average: at noise of a quarter of
    the scale it is high on coarse criteria whose ratings are mostly at one end."""
    checks = [c for v in graded if (c := v.check("agreement")) is not None]
    varying = [v for v in graded if (c := v.check("spread")) is not None and c.outcome != "fail"]
    known = [
        c.estimate
        for v in varying
        if (c := v.check("agreement")) is not None and c.estimate is not None
    ]
    mean = float(np.mean(known)) if known else None
    low_mean = mean is not None and mean < options.mean_agreement
    agreeing = [c for c in checks if c.outcome == "pass"]
    disagreeing = sum(c.outcome == "fail" for c in checks)
    if 2 * disagreeing > len(graded):
        reason = f"repeats disagree on {disagreeing} of {len(graded)} criteria"
        return claim(REPEATS_AGREE, "refuted", reason, _OTHER_JUDGE)
    if 2 * len(agreeing) > len(graded) and not low_mean:
        how = "declared deterministic" if options.deterministic else "repeats agree"
        average = "" if mean is None else f" (mean AC2 {mean:.2f})"
        reason = f"{how} on {len(agreeing)} of {len(graded)} criteria{average}"
        return claim(REPEATS_AGREE, "shown", reason, "", "AC2, mean", _alone(mean))
    if all(v.repeats < 2 for v in graded):
        reason = "one repeat: nothing shows whether the judge agrees with itself"
        step = f"{MORE_REPEATS}; --deterministic where the judge is a function"
        return claim(REPEATS_AGREE, "not shown", reason, step)
    needed = [
        _more(c, options.agreement_floor, c.n)
        for c in checks
        if c.outcome == "unknown" and (c.estimate or 0) >= options.agreement
    ]
    reason = f"repeats surely agree on {len(agreeing)} of {len(graded)} criteria only"
    short = len(graded) // 2 + 1 - len(agreeing)
    if low_mean:
        reason += f", and AC2 is {mean:.2f} on average, not {options.mean_agreement:g}"
        needed = []
    step = _decide(needed, short, "the noise of this judge is too large; try another")
    return claim(REPEATS_AGREE, "not shown", reason, step)


def _damage_lowers(graded: Sequence[Verification], options: VerifyOptions) -> JudgeEvidence:
    """Most perturbations moved scores as expected, one that keeps the length among them."""
    unmoved = [v for v in graded if not moved_as_expected(v.effects)]
    constant = sum((c := v.check("spread")) is not None and c.outcome == "fail" for v in unmoved)
    if 2 * constant > len(graded):
        reason = f"{constant} of {len(graded)} criteria get the same level everywhere"
        return claim(DAMAGE_LOWERS, "refuted", reason, _OTHER_JUDGE)
    every = [e for v in graded for e in v.effects if is_directed(e)]
    directed = [e for e in every if e.n]
    moved = [e for e in directed if e.outcome == "pass"]
    unseen = sum(e.outcome == "fail" for e in directed)
    same = [e for e in directed if e.operator in _SAME_LENGTH]
    if 2 * unseen > len(directed):
        reason = f"{unseen} of {len(directed)} perturbations did not move a score as expected"
        return claim(DAMAGE_LOWERS, "refuted", reason, _OTHER_JUDGE)
    if same and moved and all(e.outcome == "fail" for e in same):
        names = ", ".join(sorted({e.operator for e in same}))
        reason = f"scores fall with the length only: {names} went unnoticed"
        return claim(DAMAGE_LOWERS, "refuted", reason, _OTHER_JUDGE)
    if not directed:
        reason = "no perturbation with an expected effect was judged"
        if equal := sum(e.unchanged for e in every):
            reason += f": {equal} copies equal their original"
        return claim(DAMAGE_LOWERS, "not shown", reason, _MORE_COPIES)
    if 2 * len(moved) <= len(directed):
        reason = f"{len(moved)} of {len(directed)} perturbations surely moved a score as expected"
        needed = [
            _more(e, 0.0, e.n)
            for e in directed
            if e.outcome == "unknown" and e.n and _towards(e) > options.margin
        ]
        short = len(directed) // 2 + 1 - len(moved)
        step = _decide(needed, short, "the judge hardly notices damage; try another")
        return claim(DAMAGE_LOWERS, "not shown", reason, step)
    if not any(e.operator in _SAME_LENGTH for e in moved):
        reason = "length alone may explain the scores: nothing of equal length was noticed"
        return claim(DAMAGE_LOWERS, "not shown", reason, _MORE_COPIES)
    reason = f"{len(moved)} of {len(directed)} perturbations moved a score as expected"
    share = _alone(len(moved) / len(directed))
    return claim(DAMAGE_LOWERS, "shown", reason, "", "perturbations noticed", share)


def _controls_still(
    graded: Sequence[Verification], rated: Sequence[Evidence], options: VerifyOptions
) -> JudgeEvidence:
    """The mean change by controls over all criteria: its interval lies within the margin."""
    controls = [(v.criterion_id, e) for v in graded for e in v.effects if is_control(e)]
    by_id = {item.criterion.id: item for item in rated}
    change, case = list[float](), list[int]()
    for criterion, effect in controls:
        if criterion in by_id and not undecidable(effect, options):
            pairs = by_id[criterion].pairs[effect.variant]
            change += (pairs.before - pairs.after)[pairs.both].tolist()
            case += pairs.case[pairs.both].tolist()
    pooled = mean_interval(change, case, level=1 - options.alpha, bounds=(-1.0, 1.0))
    moved = sorted({criterion for criterion, e in controls if e.outcome == "fail"})
    mean, low, high, margin = pooled.mean, pooled.low, pooled.high, options.margin
    standing: Standing = "not shown"
    if mean is None or low is None or high is None:
        reason, step = "no control was judged: copies by whitespace or formatting", ""
        if controls:
            reason = f"controls: {undecidable(controls[0][1], options) or pooled.reason}"
        step = _MORE_COPIES
    elif 2 * len(moved) > len(graded) or low > margin or high < -margin:
        standing, step = "refuted", _OTHER_JUDGE
        reason = f"controls move scores by {mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        reason += f" ({', '.join(moved)})" if moved else ""
    else:
        reason, step = f"controls change scores by {mean:+.3f} [{low:+.3f}, {high:+.3f}]", ""
        if -margin <= low and high <= margin:
            standing = "shown"
        else:
            reason += f", not within {margin:g}"
            nearest = margin if mean > 0 else -margin
            needed = [_more(pooled, nearest, pooled.n_clusters or 0)] if abs(mean) < margin else []
            step = _decide(needed, 1, "see which criteria they move; layout may sway the judge")
    return claim(CONTROLS_STILL, standing, reason, step, "share of the scale", pooled)


def _success_above(
    graded: Sequence[Verification], rated: Sequence[Evidence], options: VerifyOptions
) -> JudgeEvidence:
    """AUC of the mean over the criteria, success against failure. Where it is not shown, and some
    criteria rate failed runs higher (they are excepted by name), that of the others counts."""
    found = _area_of_mean(rated, options)
    wrong = [v.criterion_id for v in graded if _upside_down(v)]
    rest = [e for e in rated if e.criterion.id not in wrong]
    if found.standing != "not shown" or not wrong or not rest:
        return found
    others = _area_of_mean(rest, options)
    reason = f"{others.reason} (without {', '.join(wrong)})"
    return others.model_copy(update={"reason": reason}) if others.standing == "shown" else found


def _upside_down(verification: Verification) -> bool:
    """Whether failed runs are rated higher on this criterion."""
    check = verification.check("discrimination")
    return check is not None and check.outcome == "fail" and check.reason.startswith("failed runs")


def _area_of_mean(rated: Sequence[Evidence], options: VerifyOptions) -> JudgeEvidence:
    runs, overall = overall_means(rated)
    success = np.full(len(runs), -1, dtype=np.int8)
    for item in rated:
        success[np.searchsorted(runs, item.originals.run)] = item.originals.success
    good, bad = (overall[~np.isnan(overall) & (success == s)] for s in (1, 0))
    if not len(good) and not len(bad):
        return claim(SUCCESS_ABOVE, "not checked", _LABEL, _LABEL)
    if min(len(good), len(bad)) < 5:
        side = "failed" if len(bad) < len(good) else "successful"
        counts = f"{len(good)} successful and {len(bad)} failed runs are labelled"
        reason = f"{counts}; five of each needed"
        return claim(SUCCESS_ABOVE, "not shown", reason, f"label {side} runs")
    area = discrimination(good, bad, level=1 - options.alpha).auc
    standing: Standing = "not shown"
    reason, step = f"success and failure: {area.reason}", MORE_CASES
    if area.mean is not None and area.low is not None and area.high is not None:
        span = f"AUC {area.mean:.3f} [{area.low:.3f}, {area.high:.3f}]"
        reason, step = f"success is not surely rated above failure: {span}", ""
        if area.high < 0.5:
            standing, reason = "refuted", f"failed runs are rated higher: {span}"
        elif area.high < options.auc:
            standing, reason = "refuted", f"success is not told from failure: {span}"
        elif area.low > options.auc:
            standing, reason = "shown", f"success is rated above failure: {span}"
        if standing == "refuted":
            step = _OTHER_JUDGE
        elif standing == "not shown":
            needed = [_more(area, options.auc, area.n)] if area.mean > options.auc else []
            step = _decide(needed, 1, "the criteria say nothing of success; try others", "runs")
    return claim(SUCCESS_ABOVE, standing, reason, step, "AUC", area)


def _systems(
    rated: Sequence[Evidence], graded: Sequence[Verification], options: VerifyOptions
) -> JudgeEvidence:
    by_id = {v.criterion_id: v for v in graded}
    directed = [
        (item, effect.variant, effect.expected)
        for item in rated
        for effect in by_id[item.criterion.id].effects
        if is_directed(effect) and effect.n
    ]
    runs, means = overall_means(rated)
    overall = np.full(int(runs.max(initial=-1)) + 1, np.nan)
    overall[runs] = means
    return systems_alike(rated, directed, overall, options)


def _one_score(rated: Sequence[Evidence], options: VerifyOptions) -> tuple[str, ...]:
    """Criteria that cannot be told apart; empty where they can, or where fewer than three vary."""
    if not rated:
        return ()
    component = first_component(means_of(rated))
    if (component.share or 0.0) <= options.one_score or len(component.columns) < 3:
        return ()
    return tuple(rated[i].criterion.id for i in component.columns)


def _towards(effect: Effect) -> float:
    """The change in the direction that was expected."""
    return (effect.estimate or 0.0) * (-1 if effect.expected == "higher" else 1)


def _alone(value: float | None) -> Interval:
    """A figure without an interval."""
    return Interval(value, None, None, None, 0, None, "none")


def _more(figure: Check | Effect | Interval, limit: float, n: int) -> int:
    """How many cases more would move the nearer end of the interval beyond `limit`, if the estimate
    stays: its width shrinks with the root of their number."""
    estimate = figure.mean if isinstance(figure, Interval) else figure.estimate
    low, high = figure.low, figure.high
    if estimate is None or low is None or high is None or estimate == limit:
        return _MOST_MORE * n + 1
    half = estimate - low if estimate > limit else high - estimate
    return max(1, math.ceil(n * (half / (estimate - limit)) ** 2) - n)


def _decide(needed: Sequence[int], short: int, otherwise: str, what: str = "cases") -> str:
    """What to do where `short` more figures must pass: so many more cases, or, where too few of the
    estimates pass, something else."""
    enough = sorted(needed)[short - 1 : short]
    return f"about {enough[0]:,} more {what} would decide" if enough else otherwise


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
            warning = f"most ratings are at the {end} of the scale"
            about.setdefault(warning, []).append(item.criterion.id)
    for v in verified:
        reasons = [c.reason for c in v.checks if "not at random" in c.reason]
        reasons += [
            f"{e.missing} of {e.missing + e.pairs} copies by {named(e)} have no rating"
            for e in v.effects
            if e.missing > 0.1 * (e.missing + e.pairs)
        ]
        for warning in reasons:
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
