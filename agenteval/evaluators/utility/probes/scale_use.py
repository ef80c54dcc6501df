"""How many of the accepted values does the judge use?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from agenteval.evaluators.utility.probes.result import Finding, ProbeOptions
from agenteval.records import Criterion
from agenteval.records.verification import Check, Outcome
from agenteval.stats.scores import ORIGINAL, ScoreTable

NAME = "scale use"


def scale_use(table: ScoreTable, criteria: Sequence[Criterion], options: ProbeOptions) -> Finding:
    """Distinct values over originals and the share of the commonest, per criterion with levels.

    The check is on the criterion that uses the fewest: of `options.levels` levels or more, at most
    `options.few` used is a warning (outcome fail). It is a count over these runs, so it has no
    interval and no test; runs that are all alike cannot be told from a judge that sees them so.
    A criterion with values between its levels (ranks, means of parts) is left out.
    """
    used: dict[str, JsonValue] = {}
    rows: list[tuple[int, float, int, int, str]] = []
    for criterion in criteria:
        levels = len(criterion.accepted_values)
        own = table.of(criterion=criterion.id, variant=ORIGINAL, status="scored")
        values = own.value[~np.isnan(own.value)]
        if not criterion.ordered or not levels or not len(values):
            continue
        steps = values * (levels - 1)
        if not np.allclose(steps, steps.round(), atol=1e-6):
            used[criterion.id] = {"used": None, "levels": levels, "commonest": None}
            continue  # graded between the levels: there is nothing to count
        _, counts = np.unique(steps.round(), return_counts=True)
        share = float(counts.max() / counts.sum())
        cases = len(np.unique(own.case.codes))
        used[criterion.id] = {"used": len(counts), "levels": levels, "commonest": share}
        if levels >= options.levels:
            rows.append((len(counts), share, cases, levels, criterion.id))
    if not rows:
        why = f"no criterion of {options.levels} levels or more is graded in its levels"
        return Finding(NAME, absent=why, detail=used)
    least, share, cases, levels, name = min(rows, key=lambda row: (row[0], -row[1]))
    said = f"{name}: {least} of {levels} levels are used, {share:.0%} of the ratings at one of them"
    outcome: Outcome = "fail" if least <= options.few else "pass"
    if cases < options.min_cases:
        outcome, said = "unknown", f"{said}; {cases} cases, {options.min_cases} are needed"
    check = Check(
        name="fewest used", outcome=outcome, reason=said, unit="levels", estimate=least, n=cases
    )
    return Finding(NAME, settled=(check,), detail=used)
