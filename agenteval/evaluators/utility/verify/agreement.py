"""Do repeated judgements of the same run agree?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agenteval.evaluators.utility.verify.coverage import at_the_end
from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check
from agenteval.stats import Bootstrap, flip_rate, krippendorff_alpha

_RARE = 0.1  # share of deviating repeats that alpha cannot weigh when nearly all else is equal


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
    the reason.
    """
    matrix = evidence.originals
    repeats = matrix.values.shape[1]
    if repeats < 2:
        reason = "one repeat: ask for --repeats 3 to learn whether the judge agrees with itself"
        return Check(name="agreement", outcome="unknown", reason=reason, unit="alpha")
    numeric = evidence.criterion.scale == "numeric"
    how = Bootstrap(np.random.default_rng(options.seed), resamples=options.resamples)
    found = krippendorff_alpha(
        matrix.values, "interval" if numeric else "ordinal", clusters=matrix.case, bootstrap=how
    )
    check = Check(
        name="agreement",
        outcome="unknown",
        reason=found.reason or "",
        unit="alpha",
        estimate=found.mean,
        low=found.low,
        high=found.high,
        n=found.n_clusters or 0,
    )
    if found.mean is None:
        return check
    flips = None if numeric else _flips(evidence)
    said = f"alpha {found.mean:.3f}"
    if found.low is not None and found.high is not None:
        said += f" [{found.low:.3f}, {found.high:.3f}]"
    if flips is not None:
        said += f", {flips:.0%} of the repeats differ from their run's commonest level"
    if found.low is None or found.high is None:
        return check.model_copy(update={"reason": f"{said}; {found.reason}"})
    if evidence.cases < options.min_cases:
        return check.model_copy(update={"reason": f"{said}; too few cases to decide"})
    outcome = "unknown"
    if at_the_end(evidence, options) and flips is not None and flips <= _RARE:
        said += "; nearly all ratings stand at one end: too little variation for alpha"
        return check.model_copy(update={"reason": said})
    if found.mean >= options.agreement and found.low >= options.agreement_floor:
        outcome = "pass"
    elif found.high < options.agreement:
        outcome = "fail"
        said = f"repeats disagree: {said}"
    return check.model_copy(update={"outcome": outcome, "reason": said})
