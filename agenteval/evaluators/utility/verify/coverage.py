"""Is the criterion answered at all, and do its levels differ?"""

from __future__ import annotations

from collections import Counter

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check


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
