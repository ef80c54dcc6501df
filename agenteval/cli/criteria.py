"""agenteval criteria: propose, merge, check, write, show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify
from agenteval.cli.outputs import refuse_input


@grouped
def criteria(
    task: Annotated[str, typer.Option("--task", help="Name of a task, or its folder.")],
    critic: options.ModelOptions,
    *,
    seeds: Annotated[
        int, typer.Option(help="How many critics, each with its own seed.", min=1)
    ] = 5,
    seed: options.Seed = 0,
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
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of task, for what comes from the bank; default: guessed, and told."
        ),
    ] = None,
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
    limits: options.LimitOptions,
    store: options.StorePath = None,
    retry_failed: options.RetryFailed = False,
    dry_run: options.DryRun = False,
    shown: options.OutputOptions,
) -> None:
    """Propose criteria, merge paraphrases, check the scales, write criteria/TASK.json."""
    from agenteval.api import utility
    from agenteval.readers.tasks import TASK_FILE, find_task

    folder = find_task(task)
    target = output or Path("criteria") / f"{folder.task.name}.json"
    task_file = folder.path / TASK_FILE
    refuse_input(target, [folder.runs, task_file], store=store)
    if not dry_run:
        note(f"{seeds} critics on task {folder.task.name}")
    report = utility.propose(
        task, model=critic.configured_model, base_url=critic.base_url, temperature=critic.sampling,
        seeds=seeds, seed=seed, tau=tau, embedder=embedder, examples=not no_examples,
        sub_criteria=sub_criteria, bank=bank, kinds=kind or (), consolidate=not no_consolidate,
        min_seeds=min_seeds, output=target, store=store, limits=limits.limits(),
        retry_failed=retry_failed, dry_run=dry_run, notify=notify,
    )  # fmt: skip
    if not dry_run:
        note(f"written to {target}; read it, edit it, then quantify")
    finish(report, shown)
