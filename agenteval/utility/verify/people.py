"""Do people say what the judge says, where labels of people are at hand?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agenteval.records.verification import JudgeEvidence, Standing
from agenteval.stats.correlation import spearman
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.utility.verify.evidence import Evidence, claim
from agenteval.utility.verify.options import VerifyOptions

PEOPLE_AGREE = "people agree"


def people_agree(
    rated: Sequence[Evidence], labels: Sequence[ScoreTable], options: VerifyOptions
) -> JudgeEvidence:
    """Return whether the judge orders runs as people do: Spearman's rho of the means over the
    criteria that both rated, one entry per run, each rater of `labels` counting alike.

    Shown where the whole interval is above `people` (.3, a medium correlation: Cohen, Statistical
    Power Analysis, 2nd ed. 1988, section 3.2), refuted where it is below. `agree` says more.
    """
    judge: dict[str, list[float]] = {}
    people: dict[str, list[float]] = {}
    for item in rated:
        by_judge = _means(item.table)
        for table in labels:
            by_person = _means(table.of(criterion=item.criterion.id, variant=ORIGINAL))
            for run in by_judge.keys() & by_person.keys():
                judge.setdefault(run, []).append(by_judge[run])
                people.setdefault(run, []).append(by_person[run])
    pairs = np.array([(np.mean(judge[run]), np.mean(people[run])) for run in sorted(judge)])
    if len(pairs) < options.min_cases:
        reason = f"people labelled {len(pairs)} of the runs; {options.min_cases} are needed"
        step = "label more runs: `agenteval agree sample` draws them"
        return claim(PEOPLE_AGREE, "not shown", reason, step)
    rho = spearman(pairs[:, 0], pairs[:, 1], level=1 - options.alpha)
    standing: Standing = "not shown"
    step = "see `agenteval agree` for what they differ in"
    reason = f"people and the judge: {rho.reason}"
    low, high = rho.low, rho.high
    if rho.mean is not None and abs(rho.mean) >= 1:  # the same order: there is no interval
        low = high = rho.mean
    if rho.mean is not None and low is not None and high is not None:
        reason = f"people agree: rho {rho.mean:.3f} [{low:.3f}, {high:.3f}]"
        if low > options.people:
            standing, step = "shown", ""
        elif high < options.people:
            standing, reason = "refuted", f"people disagree: {reason.partition(': ')[2]}"
    shown = replace(rho, low=low, high=high)
    return claim(PEOPLE_AGREE, standing, reason, step, "Spearman's rho", shown)


def _means(table: ScoreTable) -> dict[str, float]:
    """Mean value of every run that has one."""
    matrix = table.matrix()
    return {
        table.run.names[run]: float(mean)
        for run, mean in zip(matrix.run, matrix.mean, strict=True)
        if not np.isnan(mean)
    }
