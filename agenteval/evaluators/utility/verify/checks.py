"""The checks of one criterion: is it answered, do its levels differ, do repeats agree, does it tell
success from failure?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check
from agenteval.stats import Bootstrap, flip_rate, krippendorff_alpha
from agenteval.stats.discrimination import discrimination

_RARE = 0.1  # share of deviating repeats that alpha cannot weigh when nearly all else is equal


def coverage(evidence: Evidence, options: VerifyOptions) -> Check:
    """Share of ratings that were made (a level or `not applicable`); do they miss at random?

    Fails below `min_coverage`. Missing is not at random when a case lacks every rating, or when the
    shares of failures among successful and failed runs lie further apart than 10 points.
    """
    table = evidence.table
    made = 1 - float(table.failed.mean())
    statuses = {s: n for s, n in table.statuses().items() if ":" in s}
    kinds = ", ".join(f"{n} {s}" for s, n in statuses.items())
    reason = f"{made:.0%} of {len(table)} ratings were made" + (f" ({kinds})" if kinds else "")
    if set(statuses) == {"unscored:unsupported"} and made == 0:
        reason = "this judge cannot grade it: unsupported"
        return Check(name="coverage", outcome="unknown", reason=reason, estimate=0.0, n=len(table))
    if where := _not_at_random(evidence):
        reason += f"; missing not at random: {where}"
    outcome = "fail" if made < options.min_coverage else "pass"
    return Check(
        name="coverage", outcome=outcome, reason=reason, unit="share", estimate=made, n=len(table)
    )


def _not_at_random(evidence: Evidence) -> str:
    """Where failures gather, in words; empty when nowhere."""
    table = evidence.table
    failed = table.failed
    if not failed.any():
        return ""
    parts = []
    cases, inverse = np.unique(table.case.codes, return_inverse=True)
    bad = np.bincount(inverse, weights=failed)
    total = np.bincount(inverse)
    lost = cases[(bad == total) & (total > 1)]
    if len(lost):
        parts.append(f"every rating of {len(lost)} of {len(cases)} cases failed")
    sides = [failed[table.success == s] for s in (1, 0)]
    if all(len(side) >= 10 for side in sides):
        shares = [float(side.mean()) for side in sides]
        if abs(shares[0] - shares[1]) > 0.1:
            parts.append(
                f"{shares[0]:.0%} of successful and {shares[1]:.0%} of failed runs' ratings"
            )
    return "; ".join(parts)


def spread(evidence: Evidence, options: VerifyOptions) -> Check:
    """Whether the levels differ between runs, and whether they crowd at one end of the scale.

    Fails when every run has the same mean. More than `ceiling` of the ratings at one end passes
    with a warning in the reason: differences drown there.
    """
    means = evidence.originals.mean[evidence.rated]
    if not len(means):
        return Check(name="spread", outcome="unknown", reason="no run has a value", unit="share")
    values = evidence.table.value[~np.isnan(evidence.table.value)]
    counts = Counter(np.round(values, 9).tolist())
    level, most = counts.most_common(1)[0]
    share = most / len(values)
    if float(np.ptp(means)) < 1e-9:
        reason = f"every run has the same value, {float(means[0]):.3g}: it tells nothing apart"
        return Check(
            name="spread", outcome="fail", reason=reason, unit="share", estimate=share, n=len(means)
        )
    reason = f"{len(counts)} different values over {len(means)} runs"
    if share > options.ceiling and level in (0.0, 1.0):
        end = "top" if level == 1.0 else "bottom"
        reason += f"; warning: {share:.0%} of the ratings at the {end}, differences drown there"
    return Check(
        name="spread", outcome="pass", reason=reason, unit="share", estimate=share, n=len(means)
    )


def at_the_end(evidence: Evidence, options: VerifyOptions) -> str | None:
    """ "top" or "bottom" when more than `ceiling` of the ratings stand there, else None."""
    values = evidence.table.value[~np.isnan(evidence.table.value)]
    for name, level in (("top", 1.0), ("bottom", 0.0)):
        if len(values) and float((np.abs(values - level) < 1e-9).mean()) > options.ceiling:
            return name
    return None


def repeats_differ(evidence: Evidence) -> int:
    """How many original runs have repeats of different value."""
    values = evidence.originals.values
    several = values[(~np.isnan(values)).sum(axis=1) > 1]
    return int((np.nanmax(several, 1) > np.nanmin(several, 1)).sum()) if len(several) else 0


def _flips(evidence: Evidence) -> float | None:
    """Share of repeats that differ from their run's commonest label; by value without labels."""
    table = evidence.table
    if not (table.label.codes >= 0).any():
        return flip_rate(evidence.originals.values).rate.mean
    codes = np.where(table.label.codes >= 0, table.label.codes.astype(np.float64), np.nan)
    return flip_rate(replace(table, value=codes).matrix().values).rate.mean


def agreement(evidence: Evidence, options: VerifyOptions) -> Check:
    """Krippendorff's alpha over repeats, at the criterion's level of measurement.

    Ordinal for ordered levels, interval for numbers. Cases are resampled for the interval. Passes
    from `agreement` on when the interval reaches down no further than `agreement_floor`, fails
    when all of it lies below `agreement`; undefined (one repeat, or no variation) is unknown with
    the reason. A judge that is declared deterministic passes without repeats, unless it has some
    and they differ.
    """
    matrix = evidence.originals
    check = Check(name="agreement", outcome="unknown", reason="", unit="alpha")
    if options.deterministic and not repeats_differ(evidence):
        reason = "deterministic, as declared: repeats would be equal"
        return check.model_copy(update={"outcome": "pass", "reason": reason})
    if matrix.values.shape[1] < 2:
        reason = "one repeat: nothing shows whether the judge agrees with itself"
        return check.model_copy(update={"reason": reason})
    numeric = evidence.criterion.scale == "numeric"
    how = Bootstrap(np.random.default_rng(options.seed), resamples=options.resamples)
    found = krippendorff_alpha(
        matrix.values, "interval" if numeric else "ordinal", clusters=matrix.case, bootstrap=how
    )
    check = check.model_copy(
        update={
            "reason": found.reason or "", "estimate": found.mean, "low": found.low,
            "high": found.high, "n": found.n_clusters or 0,
        }
    )  # fmt: skip
    if found.mean is None:
        return check
    flips = None if numeric else _flips(evidence)
    limits = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    said = f"alpha {found.mean:.3f}{limits}"
    if flips is not None:
        said += f", {flips:.0%} of the repeats differ from their run's commonest level"
    crowded = at_the_end(evidence, options) and flips is not None and flips <= _RARE
    outcome = "unknown"
    if found.low is None or found.high is None:
        said += f"; {found.reason}"
    elif check.n < options.min_cases:
        said += f"; {check.n} cases are too few to decide"
    elif crowded:
        said += "; nearly all ratings stand at one end: too little variation for alpha"
    elif found.mean >= options.agreement and found.low >= options.agreement_floor:
        outcome = "pass"
    elif found.high < options.agreement:
        outcome, said = "fail", f"repeats disagree: {said}"
    return check.model_copy(update={"outcome": outcome, "reason": said})


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
    good = matrix.mean[known & (matrix.success == 1)]
    bad = matrix.mean[known & (matrix.success == 0)]
    found = discrimination(good, bad)
    area = found.auc
    check = Check(
        name="discrimination",
        outcome="unknown",
        reason=area.reason or "",
        unit="AUC",
        estimate=area.mean,
        low=area.low,
        high=area.high,
        p=found.test.p,
        n=len(good) + len(bad),
    )
    if area.mean is None or area.low is None or area.high is None:
        return check
    sides = f"{len(good)} successful, {len(bad)} failed runs"
    said = f"AUC {area.mean:.3f} [{area.low:.3f}, {area.high:.3f}], {found.magnitude}; {sides}"
    if len(np.unique(matrix.case[known])) < int(known.sum()):
        said += "; runs of one case counted as independent"
    few = min(len(good), len(bad))
    if evidence.cases < options.min_cases or few < 5:
        return check.model_copy(update={"reason": f"{said}; too few to decide"})
    if area.low > 0.5:
        outcome = "pass"
    elif area.high < options.auc:
        outcome = "fail"
        if area.high < 0.5:
            said = f"failed runs are rated higher: {said}"
    else:
        outcome = "unknown"
    return check.model_copy(update={"outcome": outcome, "reason": said})
