"""agenteval perturb: runs and perturbed copies as texts, to be rated by any judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.api.options import read_columns
from agenteval.cli import options
from agenteval.cli.command import grouped
from agenteval.cli.console import Verbosity, note, notify
from agenteval.cli.outputs import refuse_input


@grouped
def perturb(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the texts go, as JSONL.")],
    copies: options.CopyOptions,
    *,
    columns: options.Columns = None,
    seed: options.Seed = 0,
    limit: options.FirstRuns = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the text of every run and of perturbed copies; rate them, then verify --scores."""
    from agenteval.api import utility

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [runs])
    report = utility.perturb(
        runs,
        copies.perturb or (),
        share=copies.drop,
        seed=seed,
        limit=limit,
        mapping=read_columns(columns),
        notify=notify,
    )
    report.write(output)
    note(f"{report.title} written to {output}")
