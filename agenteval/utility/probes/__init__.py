"""Probes of a judge: test whether its scores depend on anything but the work it grades.

They vary the order of the scale and the wording of the prompt and of each criterion, and add text
to the work that asks for a grade. They do not change any verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.records import Criterion
from agenteval.stats.scores import ScoreTable
from agenteval.utility.probes.injection import NAME as INJECTION
from agenteval.utility.probes.injection import Injected, injection
from agenteval.utility.probes.result import Probe, ProbeFinding, ProbeOptions, settle
from agenteval.utility.probes.ways import compare_ways, pair

__all__ = ["INJECTION", "Injected", "Probe", "ProbeOptions", "ProbeRatings", "examine"]

SCALE_ORDER, WORDING, REWORDING = "scale order", "wording", "rewording"
NO_SCALE = "not applicable: only chat judges that write labels can be prompted in other ways"
NO_COPIES = "no attacked copies were judged"


@dataclass(frozen=True)
class ProbeRatings:
    """Ratings of some runs by one judge: with the plain prompt and with varied prompts.

    `other_ways` is empty if the judge does not read a prompt; `injected` is None if nothing was
    attacked.
    """

    criteria: tuple[Criterion, ...]
    table: ScoreTable
    other_ways: Mapping[str, ScoreTable] = field(default_factory=dict)
    injected: Injected | None = None


def examine(ratings: ProbeRatings, options: ProbeOptions | None = None) -> tuple[Probe, ...]:
    """Return the four probes: scale order, wording, rewording and injection.

    p-values are corrected over all of them. Pure: the same input gives the same output.
    """
    chosen = options or ProbeOptions()
    findings = []
    for name in (SCALE_ORDER, WORDING, REWORDING):
        if name not in ratings.other_ways:
            findings.append(ProbeFinding(name, absent=NO_SCALE))
            continue
        # A numeric scale has no list of levels to reverse.
        criteria = [
            c
            for c in ratings.criteria
            if name != SCALE_ORDER or c.accepted_values or c.sub_criteria
        ]
        pairs = pair(ratings.table, ratings.other_ways[name], criteria)
        findings.append(compare_ways(name, pairs, chosen))
    injected = ratings.injected
    findings.append(
        injection(injected, chosen) if injected else ProbeFinding(INJECTION, absent=NO_COPIES)
    )
    return settle(findings, chosen)
