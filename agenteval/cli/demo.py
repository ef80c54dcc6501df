"""agenteval demo: the main job from end to end without a key."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.console import clean, notify, out

# Without an outcome of the runs: length, which is all that the embedded judge grades, says nothing
# about success, and a table that compares the two would suggest that it does.
TASK = "support"


def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where to work; default: a new temporary folder.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Critics that propose criteria.", min=1)] = 5,
    repeats: Annotated[int, typer.Option(help="How often each run is judged.", min=1)] = 2,
    limit: Annotated[int | None, typer.Option(help="Only the first N runs.", min=1)] = None,
) -> None:
    """Propose criteria for answers to customers, score 30 runs, print the tables. Needs no key."""
    from agenteval.api import utility
    from agenteval.files import refused
    from agenteval.readers.tasks import find_task

    task = find_task(TASK)
    runs = task.runs
    if runs is None:
        raise typer.BadParameter(f"the task {TASK} has no runs.jsonl")
    source = runs.resolve()
    target = folder or Path(tempfile.mkdtemp(prefix="agenteval-demo-"))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, target) from error
    began = Path.cwd()
    os.chdir(target)
    _step(
        1, f"criteria: {seeds} seeds propose, paraphrases merge",
        f"agenteval criteria --task {TASK}",
    )  # fmt: skip
    utility.propose(
        TASK, seeds=seeds, model="embedded", output=f"criteria/{TASK}.json", notify=notify
    ).print(console=out())
    _step(2, "scores: the reviewed criteria, judged on this machine",
          f"agenteval quantify tasks/{TASK}/runs.jsonl --repeats {repeats}")  # fmt: skip
    report = utility.quantify(
        source, _reviewed(), judge="embedded", task=TASK, repeats=repeats, limit=limit,
        notify=notify,
    )  # fmt: skip
    report.print(console=out())
    out().print(f"everything is in {clean(target)}: criteria/{TASK}.json, agenteval.db")
    for line in next_steps(target if target.is_absolute() else began / target):
        out().print(clean(line), soft_wrap=True)


def next_steps(folder: Path) -> list[str]:
    """What to try next, as lines of a shell that work from wherever they are pasted."""
    return [
        "next:",
        f"  cd {shlex.quote(str(folder))}",
        "  agenteval show --run support-01-brief",
        "  agenteval export scores.csv",
    ]


def _reviewed() -> Path:
    from agenteval.readers.tasks import data_folders

    for folder in data_folders("criteria"):
        if (folder / f"{TASK}.reviewed.json").is_file():
            return (folder / f"{TASK}.reviewed.json").resolve()
    raise typer.BadParameter(f"criteria/{TASK}.reviewed.json is missing from the installation")


def _step(number: int, title: str, command: str) -> None:
    out().rule(f"[bold]{number}. {clean(title)}[/bold]", align="left")
    out().print(f"[dim]$ {clean(command)}[/dim]")
