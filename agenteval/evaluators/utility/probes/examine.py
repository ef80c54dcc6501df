"""All probes of one judge, their p-values corrected together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.evaluators.utility.probes.injection import NAME as INJECTION
from agenteval.evaluators.utility.probes.injection import Injected, injection
from agenteval.evaluators.utility.probes.kinship import kinship
from agenteval.evaluators.utility.probes.position import NAME as POSITION
from agenteval.evaluators.utility.probes.position import position
from agenteval.evaluators.utility.probes.result import Finding, Probe, ProbeOptions, settle
from agenteval.evaluators.utility.probes.scale_use import scale_use
from agenteval.evaluators.utility.probes.shown import Placed
from agenteval.evaluators.utility.probes.variants import compare_ways, pair
from agenteval.evaluators.utility.probes.verbosity import verbosity
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.records import Criterion, Run
from agenteval.stats.scores import ScoreTable

SCALE_ORDER, WORDING = "scale order", "wording"
NO_SCALE = "does not apply: this judge reads neither a scale nor instructions"
NO_LIST = "does not apply: this judge reads one criterion at a time, in no list"
NO_COPIES = "no attacked copies were judged"


@dataclass(frozen=True)
class Judged:
    """What a judge said of some runs, the plain way and the other ways.

    `table` holds originals and copies. `reversed_scale`, `wording` and `placed` are None where the
    judge reads no scale, no instructions and no list of criteria; `injected` is None where nothing
    was attacked.
    """

    judges: tuple[str, ...]  # names of the models
    runs: tuple[Run, ...]
    criteria: tuple[Criterion, ...]
    table: ScoreTable
    lengths: Lengths
    placed: Placed | None = None
    reversed_scale: ScoreTable | None = None
    wording: ScoreTable | None = None
    injected: Injected | None = None


def examine(judged: Judged, options: ProbeOptions | None = None) -> tuple[Probe, ...]:
    """Seven probes: position, scale order, wording, injection, verbosity, scale use, kinship.

    Pure: the same input gives the same output.
    """
    chosen = options or ProbeOptions()
    placed, injected = judged.placed, judged.injected
    findings = [
        Finding(POSITION, absent=NO_LIST) if placed is None else position(placed, chosen),
        _other_way(SCALE_ORDER, judged, judged.reversed_scale, chosen),
        _other_way(WORDING, judged, judged.wording, chosen),
        injection(injected, chosen) if injected else Finding(INJECTION, absent=NO_COPIES),
        verbosity(judged.table, judged.criteria, judged.lengths, chosen),
        scale_use(judged.table, judged.criteria, chosen),
        kinship(judged.judges, judged.runs),
    ]
    return settle(findings, chosen)


def _other_way(
    name: str, judged: Judged, other: ScoreTable | None, options: ProbeOptions
) -> Finding:
    if other is None:
        return Finding(name, absent=NO_SCALE)
    return compare_ways(name, pair(judged.table, other, _levelled(name, judged.criteria)), options)


def _levelled(name: str, criteria: Sequence[Criterion]) -> Sequence[Criterion]:
    """A number on a scale has no list to turn round; in another wording it counts."""
    return [c for c in criteria if name != SCALE_ORDER or c.accepted_values or c.sub_criteria]
