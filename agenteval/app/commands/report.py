"""agenteval report: one self-contained HTML page of what is stored, or of ratings in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note
from agenteval.cli.outputs import refuse_input


@grouped
def report(
    told: OutputOptions,
    runs: Annotated[
        str | None,
        typer.Argument(help="Report only on these runs of the store: file, folder or glob."),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Output page.")] = Path(
        "report.html"
    ),
    store: options.StorePath = None,
    source: Annotated[
        str | None, typer.Option(help="Source, by the start of its hash. Default: the latest.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file, e.g. TASK.verified.json. Default: all rated criteria."),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Report on these ratings (a table or a log) instead of the store."),
    ] = None,
    rater: Annotated[
        str | None, typer.Option(help="With --scores: use only rows of this rater.")
    ] = None,
    most_runs: Annotated[
        int | None,
        typer.Option(
            "--most-runs",
            help="Number of runs that can be opened on the page.",
            min=0,
            show_default="500",
        ),
    ] = None,
    min_cases: Annotated[
        int, typer.Option(help="Minimum number of cases for a verdict.", min=2)
    ] = 20,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="The judge in --scores is deterministic: it needs no repeats."
        ),
    ] = False,
) -> None:
    """Write one HTML page with all stored results of a judge.

    It shows what can be trusted, what was measured, what is missing, and every run. For agents and
    finders it is the page of `plan`, `flow` or `trace report`.
    """
    from agenteval.app.stored import page, view_command

    refuse_input(output, [runs, criteria, scores], store=store)
    written = page(
        output,
        runs,
        store=store,
        source=source,
        task=task,
        criteria=criteria,
        scores=scores,
        rater=rater,
        most_runs=most_runs,
        min_cases=min_cases,
        deterministic=deterministic,
    )
    if scores is None:
        note(f"to look at single runs and compare: {view_command(store)}")
    finish(written, told)
