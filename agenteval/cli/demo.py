"""agenteval demo: the main job from end to end on the embedded model."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.console import clean, note, out


def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where to work; default: a new temporary folder.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Critics that propose criteria.", min=1)] = 5,
    repeats: Annotated[int, typer.Option(help="How often each run is judged.", min=1)] = 2,
    limit: Annotated[int | None, typer.Option(help="Only the first N runs.", min=1)] = None,
) -> None:
    """Propose criteria for mathematics, score 60 runs, print the tables. Needs no key."""
    from agenteval.cli.criteria import criteria
    from agenteval.cli.quantify import quantify
    from agenteval.files import refused
    from agenteval.readers.tasks import find_task

    task = find_task("math")
    runs = task.runs
    if runs is None:
        raise typer.BadParameter("the task math has no runs.jsonl")
    source = runs.resolve()
    target = folder or Path(tempfile.mkdtemp(prefix="agenteval-demo-"))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, target) from error
    began = Path.cwd()
    os.chdir(target)
    _step(
        1, f"criteria: {seeds} seeds propose, paraphrases merge", "agenteval criteria --task math"
    )
    criteria(task="math", seeds=seeds, model="embedded")
    _step(2, "scores: the reviewed criteria, judged on this machine",
          f"agenteval quantify tasks/math/runs.jsonl --repeats {repeats}")  # fmt: skip
    reviewed = _reviewed()
    note("the embedded judge grades structure and flow only: of a criterion it cannot see it says "
         "unscored:unsupported, which is no failure")  # fmt: skip
    try:
        quantify(str(source), task="math", criteria=reviewed, model="embedded", repeats=repeats,
                 limit=limit)  # fmt: skip
    except typer.Exit as end:
        if end.exit_code:
            raise
    out().print(f"everything is in {clean(target)}: criteria/math.json, agenteval.db")
    for line in next_steps(target if target.is_absolute() else began / target):
        out().print(clean(line), soft_wrap=True)


def next_steps(folder: Path) -> list[str]:
    """What to try next, as lines of a shell that work from wherever they are pasted."""
    return [
        "next:",
        f"  cd {shlex.quote(str(folder))}",
        "  agenteval show --run math-01-stepwise",
        "  agenteval export scores.csv",
    ]


def _reviewed() -> Path:
    from agenteval.readers.tasks import data_folders

    for folder in data_folders("criteria"):
        if (folder / "math.reviewed.json").is_file():
            return (folder / "math.reviewed.json").resolve()
    raise typer.BadParameter("criteria/math.reviewed.json is missing from the installation")


def _step(number: int, title: str, command: str) -> None:
    out().rule(f"[bold]{number}. {clean(title)}[/bold]", align="left")
    out().print(f"[dim]$ {clean(command)}[/dim]")
