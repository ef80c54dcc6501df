"""agenteval criteria: propose, merge, check, write, show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, print_json, warn, warn_list
from agenteval.cli.critics import ask_critics
from agenteval.cli.ending import REPLIES, say_interrupted
from agenteval.cli.job import make_limits
from agenteval.cli.outputs import check_record, refuse_input
from agenteval.errors import ModelError
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.proposals import Proposals

_LISTED = 5  # near misses that are printed


def criteria(
    task: Annotated[str, typer.Option("--task", help="Name of a task, or its folder.")],
    seeds: Annotated[
        int, typer.Option(help="How many critics, each with its own seed.", min=1)
    ] = 5,
    seed: options.Seed = 0,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Cosine from which two criteria merge; 1: only equal names.", min=0, max=1
        ),
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="sentence-transformers name or path, or endpoint:NAME.")
    ] = None,
    no_examples: Annotated[
        bool, typer.Option("--no-examples", help="Task-based: show the description only.")
    ] = False,
    sub_criteria: Annotated[
        bool, typer.Option("--sub-criteria", help="Have a second agent divide the criteria.")
    ] = False,
    bank: Annotated[
        bool, typer.Option("--bank", help="Show the critic the nearest entries of the bank.")
    ] = False,
    no_consolidate: Annotated[
        bool,
        typer.Option(
            "--no-consolidate",
            help="Merge by embedding alone; do not ask the critic which names are the same.",
        ),
    ] = False,
    min_seeds: Annotated[
        int, typer.Option(help="Keep what at least so many seeds proposed.", min=1)
    ] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: criteria/TASK.json.")
    ] = None,
    temperature: options.Temperature = 1.0,
    concurrency: options.Concurrency = 8,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 120.0,
    store: options.StorePath = None,
    record: options.Record = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Propose criteria, merge paraphrases, check the scales, write criteria/TASK.json."""
    from agenteval.models.factory import choose_model
    from agenteval.proposals import CriticOptions
    from agenteval.readers.tasks import TASK_FILE, find_task
    from agenteval.store import default_path

    Verbosity.level = -1 if quiet else Verbosity.level
    folder = find_task(task)
    target = output or Path("criteria") / f"{folder.task.name}.json"
    task_file = folder.path / TASK_FILE
    check_record(record, [target, folder.runs], [task_file], model, store=store)
    refuse_input(target, [folder.runs, task_file], store=store)
    choice = choose_model(model, base_url, need_key=not dry_run)
    wanted = CriticOptions(
        seeds=tuple(range(seed, seed + seeds)),
        tau=tau,
        embedder=embedder,
        base_url=base_url,
        use_examples=bool(folder.task.examples) and not no_examples,
        sub_criteria=sub_criteria,
        bank=bank,
        min_seeds=min_seeds,
        temperature=None if temperature is None or temperature < 0 else temperature,
        consolidate=not no_consolidate,
    )
    limits = make_limits(concurrency, max_calls, max_cost, price_in, price_out, timeout)
    kept = store or default_path()
    if dry_run:
        from agenteval.cli import bills, dry

        dry.show(bills.criteria(choice, wanted, folder.task, limits, kept), as_json=as_json)
        return
    try:
        found = _with_title(
            f"{len(wanted.seeds)} critics on task {folder.task.name}",
            lambda: ask_critics(choice, wanted, folder.task, limits, kept, record),
        )
    except KeyboardInterrupt:
        if choice.kind == "embedded":  # nobody was asked
            raise
        raise typer.Exit(say_interrupted(REPLIES)) from None
    _show(found, target, as_json)


def _with_title(title: str, ask: Callable[[], Proposals]) -> Proposals:
    from rich.status import Status

    from agenteval.cli.console import err

    if Verbosity.level < 0 or not err().is_terminal:
        note(title)
        return ask()
    with Status(title, console=err()):
        return ask()


def _show(found: Proposals, target: Path, as_json: bool) -> None:
    from agenteval.evaluators.utility.criteria_file import save_criteria

    for failure in found.failures:
        warn(f"seed {failure.seed}: {failure.status}: {failure.message}")
    if not found.criteria.criteria:
        raise ModelError("no seed gave a readable criterion; nothing was written")
    save_criteria(target, found.criteria)
    if as_json:
        print_json(found.to_json())
        return
    _table(found)
    _sameness(found)
    _curve(found)
    _notes(found)
    warn_list("check these before spending on scores:", [
        f"{i.criterion_id}: {i.message}" for i in found.issues
    ])  # fmt: skip
    out().print(f"written to [bold]{clean(target)}[/bold]; read it, edit it, then quantify")


def _table(found: Proposals) -> None:
    from rich import box
    from rich.table import Table

    out().print(
        f"[bold]{clean(found.model)}[/bold]  {clean(found.criteria.task)}, {found.mode}, "
        f"{found.seeds_answered} of {found.seeds_asked} seeds answered; "
        f"{found.proposed} proposals merged to {len(found.criteria.criteria)} criteria "
        f"at τ = {found.tau:g} ({clean(found.embedder)})"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("criterion", ratio=2)
    table.add_column("description", ratio=4)
    table.add_column("accepted values, worst to best", ratio=4)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column("also called", ratio=2)
    for c in found.criteria.criteria:
        names = sorted({str(a.get("name")) for a in c.provenance.aliases} - {c.name})
        values = "by its parts" if c.sub_criteria else " < ".join(c.accepted_values)
        table.add_row(
            clean(c.name),
            clean(c.description),
            clean(values),
            f"{len(c.provenance.seeds)}",
            clean(", ".join(names)),
        )
        for sub in c.sub_criteria:
            table.add_row(
                clean(f"  · {sub.name}"),
                clean(sub.description),
                clean(" < ".join(sub.accepted_values)),
                "",
                "",
            )
    out().print(table)


def _sameness(found: Proposals) -> None:
    """What consolidation did and could not do, parts and wholes, and what is perhaps the same."""
    if (asked := found.consolidation) is not None:
        out().print(
            f"consolidation: {clean(asked.model)} was asked in {plural(asked.requests, 'request')} "
            f"which of {plural(len(asked.labels), 'name')} are the same: "
            f"{plural(len(set(asked.labels)), 'idea')}, by embedding alone {len(set(asked.before))}"
        )
        for problem in asked.problems:
            warn(f"consolidation: {problem}")
    parts = [c for c in found.criteria.criteria if c.provenance.part_of]
    if parts:
        out().print("parts of others, kept by themselves:")
    for c in parts:
        out().print(f"  {clean(c.name)} → {clean(', '.join(c.provenance.part_of))}")
    if found.near_misses:
        out().print("perhaps the same, and kept apart (cosine):")
        for miss in found.near_misses[:_LISTED]:
            out().print(f"  {clean(miss.left)} ~ {clean(miss.right)} ({miss.cosine:.2f})")
        if len(found.near_misses) > _LISTED:
            out().print(f"  ... and {len(found.near_misses) - _LISTED} more, see --json")


def _notes(found: Proposals) -> None:
    """What was changed or left out in reading, each kind of change once with its criteria."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for line in found.notes:  # seed N: criterion: what was done
        seed, _, rest = line.removeprefix("seed ").partition(": ")
        criterion, _, done = rest.partition(": ")
        where = kinds.setdefault(done or criterion, {})
        where.setdefault(criterion if done else "", []).append(seed)
    if kinds:
        out().print("what the critics wrote was changed in reading (criterion, seeds):")
    for done, where in kinds.items():
        names = (f"{name} ({', '.join(seeds)})".strip() for name, seeds in where.items())
        out().print(f"  {clean(done)}: {clean(', '.join(names))}")


def _curve(found: Proposals) -> None:
    """Unique criteria against the number of seeds: does another seed still bring something new?"""
    if found.seeds_answered < 2:
        return
    wanted = sorted({1, 2, 3, 5, 10, 20, 50, found.seeds_answered})
    picks = [m for m in wanted if m <= found.seeds_answered]
    out().print("unique criteria by number of seeds  " + "  ".join(f"M={m}" for m in picks))
    curves = {f"τ = {tau:g}": curve for tau, curve in found.curves.items()}
    for name, curve in {**curves, "as merged": found.merged_curve}.items():
        if curve is not None:
            parts = [f"{curve.mean[m - 1]:.1f}" for m in picks]
            out().print(f"  {name:<10} " + "  ".join(parts))
