"""agenteval criteria: propose, merge, check, write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.api.options import ProposeOptions, keywords
from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify
from agenteval.cli.outputs import refuse_input


@grouped
def criteria(
    task: Annotated[str, typer.Option("--task", help="Name of a task, or its folder.")],
    settings: ProposeOptions,
    reply: options.ReplyOptions,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Propose criteria, merge paraphrases, check the scales, write criteria/TASK.json."""
    from agenteval.api import utility
    from agenteval.readers.tasks import TASK_FILE, find_task

    folder = find_task(task)
    target = settings.output or Path("criteria") / f"{folder.task.name}.json"
    refuse_input(target, [folder.runs, folder.path / TASK_FILE], store=settings.store)
    if not settings.dry_run:
        note(f"{settings.seeds} critics on task {folder.task.name}")
    report = utility.propose(
        task, **keywords(settings, output=target, limits=limits.limits(), notify=notify)
    )
    if not settings.dry_run:
        note(f"written to {target}; read it, edit it, then quantify")
    finish(report, shown)
