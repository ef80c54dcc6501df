"""The checks of one criterion: coverage, spread, agreement of repeats, discrimination of success.

Each check takes the evidence on a criterion and the thresholds, and returns a `Check`.
"""

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
_GRID = 21  # levels of a numeric scale for the agreement of repeats


def coverage(evidence: Evidence, options: VerifyOptions) -> Check:
    """Share of ratings that were made (a level or `not applicable`); fails below `min_coverage`.

    Ratings are reported as missing not at random when a case lacks every rating, or when the
    shares of failures among successful and failed runs differ by more than 10 points.
    """
    table, failed = evidence.table, evidence.table.failed
    scored_share = 1 - float(failed.mean())
    statuses = {s: n for s, n in table.statuses().items() if ":" in s}
    if set(statuses) == {"unscored:unsupported"} and scored_share == 0:
        return Check(
            name="coverage",
            outcome="unknown",
            reason=UNSUPPORTED,
            estimate=scored_share,
            n=len(table),
        )
    not_random = []
    cases, inverse = np.unique(table.case.codes, return_inverse=True)
    total = np.bincount(inverse)
    lost = int(((np.bincount(inverse, weights=failed) == total) & (total > 1)).sum())
    if lost:
        not_random.append(f"every rating of {lost} of {len(cases)} cases failed")
    sides = [failed[table.success == s] for s in (1, 0)]
    if all(len(side) >= 10 for side in sides):
        good, bad = (float(side.mean()) for side in sides)
        if abs(good - bad) > 0.1:
            not_random.append(f"{good:.0%} of successful and {bad:.0%} of failed runs' ratings")
    reason = f"{scored_share:.0%} of {len(table)} ratings were made"
    if statuses:
        reason += f" ({', '.join(f'{n} {s}' for s, n in statuses.items())})"
    if not_random:
        reason += f"; missing not at random: {'; '.join(not_random)}"
    return Check(
        name="coverage",
        outcome="fail" if scored_share < options.min_coverage else "pass",
        reason=reason,
        unit="share",
        estimate=scored_share,
        n=len(table),
    )


def spread(evidence: Evidence, options: VerifyOptions) -> Check:
    """Whether runs get different values; `estimate` is the share of the most common value.

    Fails when every run has the same mean. When more than `ceiling` of the ratings are at one end
    of the scale the check passes with a warning in the reason.
    """
    means = evidence.originals.mean[evidence.rated]
    if not len(means):
        return Check(name="spread", outcome="unknown", reason="no run has a value", unit="share")
    outcome: Outcome = "pass"
    _, counts = np.unique(evidence.values.round(9), return_counts=True)
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
    """Gwet's AC2 with linear weights over repeats; the interval resamples cases.

    Numeric scales are put on 21 levels. Passes at `agreement` or above when the lower limit is at
    least `agreement_floor`; fails when the upper limit is below `agreement`. A judge declared
    deterministic passes unless it has repeats that differ.
    """
    matrix = evidence.originals
    if options.deterministic and not evidence.differing:
        reason = "deterministic, as declared: repeats would be equal"
        return Check(name="agreement", outcome="pass", reason=reason, unit="AC2")
    if matrix.values.shape[1] < 2:
        reason = "one repeat: nothing shows whether the judge agrees with itself"
        return Check(name="agreement", outcome="unknown", reason=reason, unit="AC2")
    levels = len(evidence.criterion.accepted_values) or _GRID
    result = gwet_ac2(
        np.round(matrix.values * (levels - 1)),
        categories=range(levels),
        clusters=matrix.case,
        bootstrap=Bootstrap(
            np.random.default_rng(options.seed),
            resamples=options.resamples,
            level=1 - options.alpha,
        ),
    )
    ac2 = result.coefficient
    outcome: Outcome = "unknown"
    twice = (~np.isnan(matrix.values)).sum(axis=1) > 1
    reason, n = ac2.reason or "", len(np.unique(matrix.case[twice]))
    if ac2.mean is not None:
        limits = "" if ac2.low is None else f" [{ac2.low:.3f}, {ac2.high:.3f}]"
        reason = f"AC2 {ac2.mean:.3f}{limits}"
        if (equal := result.agreement.mean) is not None:
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
    """Krippendorff's alpha over repeats, for comparison with other reports.

    It decides nothing: it is low for good judges when most ratings are at one end of the scale.
    """
    values = evidence.originals.values
    numeric = evidence.criterion.scale == "numeric"
    result = krippendorff_alpha(values, "interval" if numeric else "ordinal")
    return Check(
        name="alpha",
        outcome="unknown",
        reason="no repeats" if values.shape[1] < 2 else (result.reason or ""),
        unit="alpha",
        estimate=result.mean,
        n=result.n_clusters or 0,
    )


def separation(evidence: Evidence, options: VerifyOptions) -> Check:
    """AUC of the runs' means, success against failure.

    Passes when the interval is above 1/2, fails when it is below `auc`; unknown with fewer than
    `min_cases` cases or five runs on a side. `p` is one-sided, for "failed runs are rated higher"
    (see `upside_down`). Runs count as independent; the reason says so when cases have several.
    """
    matrix = evidence.originals
    labelled = evidence.rated & (matrix.success >= 0)
    if not labelled.any():
        reason = "success is unknown: nothing to tell apart"
        return Check(name="discrimination", outcome="unknown", reason=reason, unit="AUC")
    good, bad = (matrix.mean[labelled & (matrix.success == s)] for s in (1, 0))
    result = discrimination(good, bad, level=1 - options.alpha, alternative="less")
    p, auc = result.test.p, result.auc
    outcome: Outcome = "unknown"
    reason = auc.reason or ""
    if auc.mean is not None and auc.low is not None and auc.high is not None:
        reason = (
            f"AUC {auc.mean:.3f} [{auc.low:.3f}, {auc.high:.3f}], {result.magnitude}; "
            f"{len(good)} successful, {len(bad)} failed runs"
        )
        if len(np.unique(matrix.case[labelled])) < int(labelled.sum()):
            reason += "; runs of one case counted as independent"
        if evidence.cases < options.min_cases or min(len(good), len(bad)) < 5:
            reason += "; too few to decide"
            p = None
        elif auc.low > 0.5:
            outcome = "pass"
        elif auc.high < options.auc:
            outcome = "fail"
    return Check(
        name="discrimination",
        outcome=outcome,
        reason=reason,
        unit="AUC",
        estimate=auc.mean,
        low=auc.low,
        high=auc.high,
        p=p,
        n=len(good) + len(bad),
    )


def upside_down(checks: Sequence[Check], options: VerifyOptions) -> list[Check]:
    """Return the checks of discrimination, one per criterion, with p corrected by Holm.

    A check whose corrected p is below `alpha` fails: failed runs are rated higher.
    """
    adjusted = adjust([check.p for check in checks])
    result = []
    for check, p in zip(checks, adjusted, strict=True):
        update: dict[str, object] = {"p_adjusted": p}
        if p is not None and p < options.alpha:
            reason = f"failed runs are rated higher: {check.reason}"
            update |= {"outcome": "fail", "reason": reason}
        result.append(check.model_copy(update=update))
    return result


CHECKS = (coverage, spread, agreement, separation, alpha)
