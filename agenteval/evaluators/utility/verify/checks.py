"""The checks of one criterion: is it answered, do its levels differ, do repeats agree, does it tell
success from failure?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check, Outcome
from agenteval.stats import Bootstrap, flip_rate, krippendorff_alpha
from agenteval.stats.discrimination import discrimination

UNSUPPORTED = "this judge cannot grade it: unsupported"
_RARE = 0.1  # share of deviating repeats that alpha cannot weigh when nearly all else is equal


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
    """Krippendorff's alpha over repeats, at the criterion's level of measurement.

    Ordinal for ordered levels, interval for numbers. Cases are resampled for the interval. Passes
    from `agreement` on when the interval reaches down no further than `agreement_floor`, fails
    when all of it lies below `agreement`; undefined (one repeat, or no variation) is unknown with
    the reason. A judge that is declared deterministic passes without repeats, unless it has some
    and they differ.
    """
    matrix = evidence.originals
    if options.deterministic and not evidence.differing:
        reason = "deterministic, as declared: repeats would be equal"
        return Check(name="agreement", outcome="pass", reason=reason, unit="alpha")
    if matrix.values.shape[1] < 2:
        reason = "one repeat: nothing shows whether the judge agrees with itself"
        return Check(name="agreement", outcome="unknown", reason=reason, unit="alpha")
    numeric = evidence.criterion.scale == "numeric"
    how = Bootstrap(
        np.random.default_rng(options.seed), resamples=options.resamples, level=1 - options.alpha
    )
    alpha = krippendorff_alpha(
        matrix.values, "interval" if numeric else "ordinal", clusters=matrix.case, bootstrap=how
    )
    outcome: Outcome = "unknown"
    reason, n = alpha.reason or "", alpha.n_clusters or 0
    if alpha.mean is not None:
        flips = None if numeric else _flips(evidence)
        limits = "" if alpha.low is None else f" [{alpha.low:.3f}, {alpha.high:.3f}]"
        text = f"alpha {alpha.mean:.3f}{limits}"
        if flips is not None:
            text += f", {flips:.0%} of the repeats differ from their run's commonest level"
        crowded = evidence.crowded(options.ceiling) and flips is not None and flips <= _RARE
        if alpha.low is None or alpha.high is None:
            reason = f"{text}; {alpha.reason}"
        elif n < options.min_cases:
            reason = f"{text}; {n} cases are too few to decide"
        elif crowded:
            reason = f"{text}; nearly all ratings stand at one end: too little variation for alpha"
        elif alpha.mean >= options.agreement and alpha.low >= options.agreement_floor:
            outcome, reason = "pass", text
        elif alpha.high < options.agreement:
            outcome, reason = "fail", f"repeats disagree: {text}"
        else:
            reason = text
    return Check(
        name="agreement", outcome=outcome, reason=reason, unit="alpha", estimate=alpha.mean,
        low=alpha.low, high=alpha.high, n=n,
    )  # fmt: skip


def _flips(evidence: Evidence) -> float | None:
    """Share of repeats that differ from their run's commonest label; by value without labels."""
    codes = evidence.table.label.codes
    if not (codes >= 0).any():
        return flip_rate(evidence.originals.values).rate.mean
    labels = np.where(codes >= 0, codes.astype(np.float64), np.nan)
    return flip_rate(replace(evidence.table, value=labels).matrix().values).rate.mean


def separation(evidence: Evidence, options: VerifyOptions) -> Check:
    """AUC of the runs' means, success against failure.

    Passes when the interval lies above 1/2, fails when it lies below `auc`; below 1/2 as a whole
    the reason says that failed runs are rated higher. Fewer than `min_cases` cases, or than five
    runs on a side, are unknown. The runs are taken as independent; several systems on one problem
    are not quite, which the reason says.
    """
    matrix = evidence.originals
    known = evidence.rated & (matrix.success >= 0)
    if not known.any():
        reason = "success is unknown: nothing to tell apart"
        return Check(name="discrimination", outcome="unknown", reason=reason, unit="AUC")
    good, bad = (matrix.mean[known & (matrix.success == s)] for s in (1, 0))
    separation = discrimination(good, bad, level=1 - options.alpha)
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
        elif area.low > 0.5:
            outcome = "pass"
        elif area.high < options.auc:
            outcome = "fail"
            reason = f"failed runs are rated higher: {reason}" if area.high < 0.5 else reason
    return Check(
        name="discrimination", outcome=outcome, reason=reason, unit="AUC", estimate=area.mean,
        low=area.low, high=area.high, p=separation.test.p, n=len(good) + len(bad),
    )  # fmt: skip


CHECKS = (coverage, spread, agreement, separation)
