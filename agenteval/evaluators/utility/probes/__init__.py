"""Probes of a judge: does its score follow anything that is not the work it grades?

Place in the prompt, order of the scale, wording of the prompt and of each criterion, text in the
work that asks for a grade, length, use of the scale, and kinship with the systems it grades. They
examine the judge; no criterion gets a verdict from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.evaluators.utility.probes.habits import kinship, scale_use, verbosity
from agenteval.evaluators.utility.probes.injection import NAME as INJECTION
from agenteval.evaluators.utility.probes.injection import Injected, injection
from agenteval.evaluators.utility.probes.position import NAME as POSITION
from agenteval.evaluators.utility.probes.position import Placed, position
from agenteval.evaluators.utility.probes.reference import ABSENT, reference
from agenteval.evaluators.utility.probes.reference import NAME as REFERENCE
from agenteval.evaluators.utility.probes.result import Finding, Probe, ProbeOptions, settle
from agenteval.evaluators.utility.probes.ways import compare_ways, pair
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.records import Criterion, Run
from agenteval.stats.scores import ScoreTable

__all__ = ["INJECTION", "Injected", "Judged", "Placed", "Probe", "ProbeOptions", "examine"]

SCALE_ORDER, WORDING, REWORDING = "scale order", "wording", "rewording"
NO_SCALE = "does not apply: only a chat judge that writes labels is asked in other ways"
NO_LIST = "does not apply: this judge reads no list of criteria that is shuffled"
NO_COPIES = "no attacked copies were judged"


@dataclass(frozen=True)
class Judged:
    """What a judge said of some runs, the plain way and the other ways.

    `table` holds originals and copies. `reversed_scale`, `wording`, `rewording` and `placed` are
    None where the judge reads no scale, no instructions and no list of criteria; `injected` is
    None where nothing was attacked, `referred` where there are no references.
    """

    judges: tuple[str, ...]  # names of the models
    runs: tuple[Run, ...]
    criteria: tuple[Criterion, ...]
    table: ScoreTable
    lengths: Lengths
    placed: Placed | None = None
    reversed_scale: ScoreTable | None = None
    wording: ScoreTable | None = None
    rewording: ScoreTable | None = None
    injected: Injected | None = None
    referred: ScoreTable | None = None


def examine(judged: Judged, options: ProbeOptions | None = None) -> tuple[Probe, ...]:
    """Nine probes: position, scale order, wording, rewording, reference, injection, verbosity,
    scale use, kinship.

    p-values are corrected over all of them. Pure: the same input gives the same output.
    """
    chosen = options or ProbeOptions()

    def other_way(name: str, other: ScoreTable | None) -> Finding:
        if other is None:
            return Finding(name, absent=NO_SCALE)
        # a number on a scale has no list to turn round; in another wording it counts
        criteria = [
            c for c in judged.criteria if name != SCALE_ORDER or c.accepted_values or c.sub_criteria
        ]
        return compare_ways(name, pair(judged.table, other, criteria), chosen)

    placed, injected = judged.placed, judged.injected
    findings = [
        Finding(POSITION, absent=NO_LIST) if placed is None else position(placed, chosen),
        other_way(SCALE_ORDER, judged.reversed_scale),
        other_way(WORDING, judged.wording),
        other_way(REWORDING, judged.rewording),
        reference(judged.referred, judged.criteria, chosen)
        if judged.referred is not None
        else Finding(REFERENCE, absent=ABSENT),
        injection(injected, chosen) if injected else Finding(INJECTION, absent=NO_COPIES),
        verbosity(judged.table, judged.criteria, judged.lengths, chosen),
        scale_use(judged.table, judged.criteria, chosen),
        kinship(judged.judges, judged.runs),
    ]
    return settle(findings, chosen)
