"""Does the criterion tell success from failure?"""

from __future__ import annotations

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check
from agenteval.stats.discrimination import discrimination


def separation(evidence: Evidence, options: VerifyOptions) -> Check:
    """AUC of the runs' means, success against failure.

    Passes when the interval lies above 1/2, fails when it lies below `auc`. The runs are taken as
    independent; several systems on one problem are not quite, which the reason says.
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
    else:
        outcome = "unknown"
    return check.model_copy(update={"outcome": outcome, "reason": said})
