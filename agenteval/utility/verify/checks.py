"""The checks of one criterion: is it answered, do its levels differ, do repeats agree, does it tell
success from failure?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.records.verification import Check, Outcome
from agenteval.stats import Bootstrap, gwet_ac2, krippendorff_alpha
from agenteval.stats.discrimination import discrimination
from agenteval.stats.multiple import adjust
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions

UNSUPPORTED = "this judge cannot grade it: unsupported"
_GRID = 21  # levels that a scale of numbers is put on for the agreement of repeats


def coverage(evidence: Evidence, options: VerifyOptions) -> Check:
    """Share of ratings that were made (a level or `not applicable`); do they miss at random?

    Fails below `min_coverage`. Missing is not at random when a case lacks every rating, or when the
    shares of failures among successful and failed runs lie further apart than 10 points.
    """
    table, failed = evidence.table, evidence.table.failed
    made = 1 - float(failed.mean())
    statuses = {s: n for s, n in table.statuses().items() if ":" in s}
    check = Check(name="coverage", outcome="unknown", reason="", estimate=made, n=len(table))
    if set(statuses) == {"unscored:unsupported"} and made == 0:
        return check.model_copy(update={"reason": UNSUPPORTED})
    gathered = []  # where failures gather
    cases, inverse = np.unique(table.case.codes, return_inverse=True)
    total = np.bincount(inverse)
    lost = int(((np.bincount(inverse, weights=failed) == total) & (total > 1)).sum())
    if lost:
        gathered.append(f"every rating of {lost} of {len(cases)} cases failed")
    sides = [failed[table.success == s] for s in (1, 0)]
    if all(len(side) >= 10 for side in sides):
        good, bad = (float(side.mean()) for side in sides)
        if abs(good - bad) > 0.1:
            gathered.append(f"{good:.0%} of successful and {bad:.0%} of failed runs' ratings")
    reason = f"{made:.0%} of {len(table)} ratings were made"
    if statuses:
        reason += f" ({', '.join(f'{n} {s}' for s, n in statuses.items())})"
    if gathered:
        reason += f"; missing not at random: {'; '.join(gathered)}"
    outcome = "fail" if made < options.min_coverage else "pass"
    return check.model_copy(update={"outcome": outcome, "reason": reason, "unit": "share"})


def spread(evidence: Evidence, options: VerifyOptions) -> Check:
    """Whether the levels differ between runs, and whether they crowd at one end of the scale.

    `estimate` is the share of the commonest value. Fails when every run has the same mean. More
    than `ceiling` of the ratings at one end passes with a warning in the reason: differences drown
    there.
    """
    means = evidence.originals.mean[evidence.rated]
    if not len(means):
        return Check(name="spread", outcome="unknown", reason="no run has a value", unit="share")
    outcome: Outcome = "pass"
    _, counts = np.unique(evidence.known.round(9), return_counts=True)
    share = float(counts.max() / counts.sum())
    reason = f"{len(counts)} different values over {len(means)} runs"
    if float(np.ptp(means)) < 1e-9:
        outcome = "fail"
        reason = f"every run has the same value, {float(means[0]):.3g}: it tells nothing apart"
    elif end := evidence.crowded(options.ceiling):
        reason += f"; warning: {share:.0%} of the ratings at the {end}, differences drown there"
    return Check(
        name="spread", outcome=outcome, reason=reason, unit="share", estimate=share, n=len(means)
    )


def agreement(evidence: Evidence, options: VerifyOptions) -> Check:
    """Gwet's AC2 with linear weights over repeats, on the levels of the scale.

    Numbers are put on a scale of 21 levels. Cases are resampled for the interval. Passes from
    `agreement` on when the interval reaches down no further than `agreement_floor`, fails when all
    of it lies below `agreement`; one repeat is unknown. A judge that is declared deterministic
    passes without repeats, unless it has some and they differ.
    """
    matrix = evidence.originals
    check = Check(name="agreement", outcome="unknown", reason="", unit="AC2")
    if options.deterministic and not evidence.differing:
        reason = "deterministic, as declared: repeats would be equal"
        return check.model_copy(update={"outcome": "pass", "reason": reason})
    if matrix.values.shape[1] < 2:
        reason = "one repeat: nothing shows whether the judge agrees with itself"
        return check.model_copy(update={"reason": reason})
    how = Bootstrap(
        np.random.default_rng(options.seed), resamples=options.resamples, level=1 - options.alpha
    )
    levels = len(evidence.criterion.accepted_values) or _GRID
    found = gwet_ac2(
        np.round(matrix.values * (levels - 1)),
        categories=range(levels),
        clusters=matrix.case,
        bootstrap=how,
    )
    ac2, outcome = found.coefficient, check.outcome
    twice = (~np.isnan(matrix.values)).sum(axis=1) > 1
    reason, n = ac2.reason or "", len(np.unique(matrix.case[twice]))
    if ac2.mean is not None:
        limits = "" if ac2.low is None else f" [{ac2.low:.3f}, {ac2.high:.3f}]"
        reason = f"AC2 {ac2.mean:.3f}{limits}"
        if (equal := found.agreement.mean) is not None:
            reason += f", {equal:.0%} of the repeats are equal"
        if ac2.low is None or ac2.high is None:
            reason += f"; {ac2.reason}"
        elif n < options.min_cases:
            reason += f"; {n} cases are too few to decide"
        elif ac2.mean >= options.agreement and ac2.low >= options.agreement_floor:
            outcome = "pass"
        elif ac2.high < options.agreement:
            outcome, reason = "fail", f"repeats disagree: {reason}"
    return Check(
        name="agreement",
        outcome=outcome,
        reason=reason,
        unit="AC2",
        estimate=ac2.mean,
        low=ac2.low,
        high=ac2.high,
        n=n,
    )


def alpha(evidence: Evidence, options: VerifyOptions) -> Check:
    """Krippendorff's alpha over repeats, as a figure to compare with other reports.

    It decides nothing: where most ratings are at one end of the scale it is low for good judges.
    """
    values = evidence.originals.values
    numeric = evidence.criterion.scale == "numeric"
    found = krippendorff_alpha(values, "interval" if numeric else "ordinal")
    reason = "no repeats" if values.shape[1] < 2 else (found.reason or "")
    return Check(
        name="alpha",
        outcome="unknown",
        reason=reason,
        unit="alpha",
        estimate=found.mean,
        n=found.n_clusters or 0,
    )


def separation(evidence: Evidence, options: VerifyOptions) -> Check:
    """AUC of the runs' means, success against failure.

    Passes when the interval lies above 1/2, fails when it lies below `auc`. `p` is that of the
    one-sided test "failed runs are rated higher" (`upside_down`). Fewer than `min_cases` cases, or
    than five runs on a side, are unknown. The runs are taken as independent; several systems on
    one problem are not quite, which the reason says.
    """
    matrix = evidence.originals
    known = evidence.rated & (matrix.success >= 0)
    if not known.any():
        reason = "success is unknown: nothing to tell apart"
        return Check(name="discrimination", outcome="unknown", reason=reason, unit="AUC")
    good, bad = (matrix.mean[known & (matrix.success == s)] for s in (1, 0))
    separation = discrimination(good, bad, level=1 - options.alpha, alternative="less")
    p = separation.test.p
    area = separation.auc
    outcome: Outcome = "unknown"
    reason = area.reason or ""
    if area.mean is not None and area.low is not None and area.high is not None:
        sides = f"{len(good)} successful, {len(bad)} failed runs"
        span = f"[{area.low:.3f}, {area.high:.3f}]"
        reason = f"AUC {area.mean:.3f} {span}, {separation.magnitude}; {sides}"
        if len(np.unique(matrix.case[known])) < int(known.sum()):
            reason += "; runs of one case counted as independent"
        if evidence.cases < options.min_cases or min(len(good), len(bad)) < 5:
            reason += "; too few to decide"
            p = None
        elif area.low > 0.5:
            outcome = "pass"
        elif area.high < options.auc:
            outcome = "fail"
    return Check(
        name="discrimination",
        outcome=outcome,
        reason=reason,
        unit="AUC",
        estimate=area.mean,
        low=area.low,
        high=area.high,
        p=p,
        n=len(good) + len(bad),
    )


def upside_down(checks: Sequence[Check], options: VerifyOptions) -> list[Check]:
    """The checks of discrimination, one per criterion, with p corrected by Holm over the criteria:
    where it is below `alpha`, failed runs are rated higher and the check fails."""
    adjusted = adjust([check.p for check in checks]).adjusted
    result = []
    for check, p in zip(checks, adjusted, strict=True):
        update: dict[str, object] = {"p_adjusted": p}
        if p is not None and p < options.alpha:
            reason = f"failed runs are rated higher: {check.reason}"
            update |= {"outcome": "fail", "reason": reason}
        result.append(check.model_copy(update=update))
    return result


CHECKS = (coverage, spread, agreement, separation, alpha)
