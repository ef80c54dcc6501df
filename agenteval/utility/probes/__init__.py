"""Probes of a judge: does its score follow anything other than the work it grades?

They vary the order of the scale and the wording of the prompt and of each criterion, and add text
to the work that asks for a grade. They examine the judge and do not change any verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.records import Criterion
from agenteval.stats.scores import ScoreTable
from agenteval.utility.probes.injection import NAME as INJECTION
from agenteval.utility.probes.injection import Injected, injection
from agenteval.utility.probes.result import Probe, ProbeFinding, ProbeOptions, settle
from agenteval.utility.probes.ways import compare_ways, pair

__all__ = ["INJECTION", "Injected", "Judged", "Probe", "ProbeOptions", "examine"]

SCALE_ORDER, WORDING, REWORDING = "scale order", "wording", "rewording"
NO_SCALE = "does not apply: only a chat judge that writes labels is asked in other ways"
NO_COPIES = "no attacked copies were judged"


@dataclass(frozen=True)
class ProbeRatings:
    """Ratings of some runs by one judge, asked the plain way and the other ways.

    `table` holds the plain ratings. `reversed_scale`, `wording` and `rewording` are None if the
    judge does not read a prompt; `injected` is None if nothing was attacked.
    """

    criteria: tuple[Criterion, ...]
    table: ScoreTable
    reversed_scale: ScoreTable | None = None
    wording: ScoreTable | None = None
    rewording: ScoreTable | None = None
    injected: Injected | None = None


def examine(judged: ProbeRatings, options: ProbeOptions | None = None) -> tuple[Probe, ...]:
    """Return the four probes: scale order, wording, rewording and injection.

    p-values are corrected over all of them. Pure: the same input gives the same output.
    """
    chosen = options or ProbeOptions()

    def other_way(name: str, other: ScoreTable | None) -> ProbeFinding:
        if other is None:
            return ProbeFinding(name, absent=NO_SCALE)
        # a number on a scale has no list to turn round; in another wording it counts
        criteria = [
            c for c in judged.criteria if name != SCALE_ORDER or c.accepted_values or c.sub_criteria
        ]
        return compare_ways(name, pair(judged.table, other, criteria), chosen)

    injected = judged.injected
    findings = [
        other_way(SCALE_ORDER, judged.reversed_scale),
        other_way(WORDING, judged.wording),
        other_way(REWORDING, judged.rewording),
        injection(injected, chosen) if injected else ProbeFinding(INJECTION, absent=NO_COPIES),
    ]
    return settle(findings, chosen)
