"""`verify --probes`: the same judge asked in two other ways, and the table of what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from agenteval.cli.console import clean, note, out, warn
from agenteval.cli.job import Job, run_plan, say_plan

if TYPE_CHECKING:
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.utility.probes.result import Probe
    from agenteval.evaluators.utility.verify.options import VerifyOptions
    from agenteval.models.client import Client
    from agenteval.records import Task, Usage
    from agenteval.records.verification import Check
    from agenteval.stats.scores import ScoreTable
    from agenteval.store import Store
    from agenteval.verification import Material

OTHER_WAYS: dict[str, dict[str, Any]] = {
    "scale order": {"reversed_scale": True},
    "wording": {"wording": "b"},
}
_MARKS = {
    "pass": "[green]pass[/green]", "fail": "[red]fail[/red]", "unknown": "[dim]unknown[/dim]",
}  # fmt: skip


def dry_line(job: Job, originals: int, criteria: int) -> str:
    """What the probes add to the calls of a verification, in one line."""
    from agenteval.models.factory import choose_model

    if choose_model(job.model, job.base_url).kind == "embedded":
        return "probes: no further calls; scale order and wording do not apply to this judge"
    calls = len(OTHER_WAYS) * originals * job.repeats * (criteria if job.one_per_call else 1)
    return (
        f"probes: {calls} calls more at most ({originals} originals × {job.repeats} repeats × "
        f"{len(OTHER_WAYS)} other ways to ask)"
    )


def run_probes(
    job: Job, task: Task, store: Store, evaluator: Evaluator, material: Material,
    options: VerifyOptions,
) -> tuple[Probe, ...]:  # fmt: skip
    """All probes of a judge whose plain ratings are stored; asks what is missing of the others.

    Ends the command with exit code 130 when interrupted and 3 when stopped, as the verification
    does; what was judged is stored, and the same command goes on from there.
    """
    from agenteval.evaluators.utility.probes.examine import Judged, examine
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.evaluators.utility.probes.shown import placed_ratings
    from agenteval.verification import lengths_of

    source = evaluator.source
    listed = source.evaluator == "utility.quantifier"  # others read no list and no scale
    others = _ask(job, task, store, evaluator, material) if listed else {}
    criteria = {c.sha256 for c in material.criteria}
    runs = {view.sha256 for _, view in material.items}
    placed = None
    if listed:
        placed = placed_ratings(
            store, source.sha256, criteria=criteria, runs=runs, repeats=job.repeats
        )
    judged = Judged(
        judges=(source.model, *store.models(source.sha256)),
        runs=tuple(run for run, _ in material.items),
        criteria=material.criteria,
        table=_table(store, source.sha256, material, copies=True),
        lengths=lengths_of(material),
        placed=placed,
        reversed_scale=others.get("scale order"),
        wording=others.get("wording"),
    )
    return examine(judged, ProbeOptions.like(options))


def _ask(
    job: Job, task: Task, store: Store, plain: Evaluator, material: Material
) -> dict[str, ScoreTable]:
    """Ratings of the originals in every other way, by the name of the probe."""
    from agenteval.pipeline import experiment_of, make_plan

    judges = {name: _judge(job, task, store, change) for name, change in OTHER_WAYS.items()}
    keys = [plain.source.sha256, *(judge.source.sha256 for judge, _ in judges.values())]
    tables = {}
    for name, (judge, client) in judges.items():
        client.budget = job.limits.budget(_spent(store, keys))
        with store.lock(experiment_of(judge, task.name)):
            plan = make_plan(
                judge, material.items, material.criteria, store,
                repeats=job.repeats, retry_failed=job.retry_failed,
            )  # fmt: skip
            note(f"probe of {name}:")
            say_plan(plan)
            ended = run_plan(plan, judge, client, store, job)
        if ended is None:
            warn("interrupted: what is done is stored; the same command goes on from here")
            raise typer.Exit(130)
        if ended.stopped:
            warn(f"stopped, {ended.left_out} calls of the probe not made: {ended.stopped}")
            raise typer.Exit(3)
        tables[name] = _table(store, judge.source.sha256, material, copies=False)
    return tables


def _judge(job: Job, task: Task, store: Store, change: dict[str, Any]) -> tuple[Evaluator, Client]:
    """The judge asked in another way: another source, so its scores never mix with the plain."""
    from agenteval.assemble import JudgeOptions, chat_judge, make_client
    from agenteval.models.factory import choose_model

    client = make_client(
        choose_model(job.model, job.base_url), job.limits, store, record=job.record
    )
    options = JudgeOptions(job.one_per_call, job.temperature, seed=job.seed, **change)
    return chat_judge(client, task, options), client


def _spent(store: Store, keys: Sequence[str]) -> Usage:
    """Of the plain way and all others together: a cap holds for the whole command."""
    from agenteval.records import Usage

    return sum((store.usage(key) for key in keys), start=Usage())


def _table(store: Store, key: str, material: Material, *, copies: bool) -> ScoreTable:
    from agenteval.loading import scores_from_store
    from agenteval.stats.scores import ORIGINAL

    variants = {c.variant for c in material.copies} if copies else set()
    return scores_from_store(
        store,
        key,
        criteria={c.sha256 for c in material.criteria},
        runs={view.sha256 for _, view in material.items},
        repeats=material.repeats,
        variants={ORIGINAL, *variants},
    )


def print_probes(probes: Sequence[Probe]) -> None:
    """A line per measure, then what every probe says in words."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold",
        title="probes of the judge (95 % over cases; p by Holm over all probes)",
        title_justify="left", title_style="",
    )  # fmt: skip
    for head in ("probe", "measure", "unit"):
        table.add_column(head)
    for head in ("estimate", "cases", "p"):
        table.add_column(head, justify="right")
    table.add_column("outcome")
    for probe in probes:
        for row in _rows(probe):
            table.add_row(*row)
    out().print()
    out().print(table)
    for probe in probes:
        out().print(f"{_MARKS[probe.outcome]} [bold]{probe.name}[/bold]: {clean(probe.reason)}")


def _rows(probe: Probe) -> Iterator[tuple[str, ...]]:
    if not probe.checks:
        yield probe.name, "-", "", "-", "-", "-", _MARKS[probe.outcome]
    for i, check in enumerate(probe.checks):
        named = probe.name if i == 0 else ""
        p = "-" if check.p_adjusted is None else f"{check.p_adjusted:.3g}"
        yield (
            named, check.name, check.unit, _estimate(check), str(check.n or "-"), p,
            _MARKS[check.outcome],
        )  # fmt: skip


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
