"""`verify --probes`: what is asked, and the table of what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, out
from agenteval.cli.job import Job
from agenteval.cli.probe_asking import Asking

if TYPE_CHECKING:
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.utility.probes.result import Probe, ProbeOptions
    from agenteval.records import Task
    from agenteval.records.verification import Check
    from agenteval.store import Store
    from agenteval.trust.verification import Material

_COLOURS = {"pass": "green", "fail": "red", "unknown": "dim"}
_MARKS = {word: f"[{colour}]{word}[/{colour}]" for word, colour in _COLOURS.items()}


def run_probes(
    job: Job, task: Task, store: Store, evaluator: Evaluator, material: Material,
    options: ProbeOptions,
) -> tuple[Probe, ...]:  # fmt: skip
    """All probes of a judge whose plain ratings are stored; asks what is missing of the others.

    Ends the command with exit code 130 when interrupted and 3 when stopped, as the verification
    does; what was judged is stored, and the same command goes on from there. The plain judge is
    the one used last in any case, so that `report` and `show` take it.
    """
    from agenteval.evaluators.utility.probes.examine import Judged, examine
    from agenteval.evaluators.utility.probes.shown import placed_ratings
    from agenteval.trust.verification import lengths_of

    source = evaluator.source
    asking = Asking(job, task, store, evaluator, material)
    plain = asking.table(source.sha256, copies=True)
    try:
        others = asking.other_ways()
        injected = asking.attacked(plain, options)
    finally:
        store.register((), material.criteria, source)
    placed = None
    if asking.listed:  # others read no list
        placed = placed_ratings(
            store,
            source.sha256,
            criteria={c.sha256 for c in material.criteria},
            runs={view.sha256 for _, view in material.items},
            repeats=job.repeats,
        )
    judged = Judged(
        judges=(source.model, *store.models(source.sha256)),
        runs=tuple(run for run, _ in material.items),
        criteria=material.criteria,
        table=plain,
        lengths=lengths_of(material),
        placed=placed,
        reversed_scale=others.get("scale order"),
        wording=others.get("wording"),
        injected=injected,
    )
    return examine(judged, options)


def print_probes(probes: Sequence[Probe]) -> None:
    """A line per measure, then what every probe says in words."""
    from rich.padding import Padding

    from agenteval.cli.grid import Column, Grid, Group, Row, print_grids

    lines: list[Group | Row] = []
    for probe in probes:
        lines.append(Group(probe.name))
        lines += [Row(cells, styles={5: _COLOURS[cells[5]]}) for cells in _rows(probe)]
    columns = (
        Column("probe\n  measure", number=False),
        Column("unit", number=False),
        *map(Column, ("estimate", "cases", "p")),
        Column("outcome", number=False),
    )
    title = "probes of the judge (95 % over cases; p by Holm over all probes)"
    print_grids(Grid(columns, tuple(lines), title))
    for probe in probes:
        out().print(f"{_MARKS[probe.outcome]} [bold]{probe.name}[/bold]: {clean(probe.reason)}")
        for line in _splits(probe):
            out().print(Padding(f"[dim]{clean(line)}[/dim]", (0, 0, 0, 2)))


def _splits(probe: Probe) -> Iterator[str]:
    """What a probe counted beside its measures: best levels reached, estimates by part."""
    up, down = (probe.detail.get(f"best level under {s} only") for s in ("attack", "control"))
    if isinstance(up, int) and isinstance(down, int):
        pairs = probe.detail["pairs"]
        yield f"best level with the attack only: {up} of {pairs}, with the control only: {down}"
    for head, groups in probe.detail.items():
        if not head.startswith("by ") or not isinstance(groups, dict):
            continue
        known = {
            name: (estimate, own["cases"])
            for name, own in groups.items()
            if isinstance(own, dict) and isinstance(estimate := own.get("estimate"), float)
        }
        parts = sorted(known.items(), key=lambda part: (-part[1][0], part[0]))
        if parts:
            listed = ", ".join(f"{name} {value:+.2f} ({n})" for name, (value, n) in parts)
            yield f"{head} (cases): {listed}"


def _rows(probe: Probe) -> Iterator[tuple[str, ...]]:
    if not probe.checks:
        yield "-", "", "-", "-", "-", probe.outcome
    for check in probe.checks:
        p = "-" if check.p_adjusted is None else f"{check.p_adjusted:.3g}"
        yield check.name, check.unit, _estimate(check), str(check.n or "-"), p, check.outcome


def _estimate(check: Check) -> str:
    if check.estimate is None:
        return "-"
    if check.unit == "levels":
        return f"{check.estimate:.0f}"
    text = f"{check.estimate:+.2f}"
    if check.low is not None and check.high is not None:
        text += f" [{check.low:+.2f}, {check.high:+.2f}]"
    return text


def probes_json(probes: Sequence[Probe]) -> list[dict[str, Any]]:
    """The same as a JSON value."""
    return [probe.model_dump(mode="json") for probe in probes]
