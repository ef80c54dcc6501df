"""agenteval agree: does the judge say what people say, and which success labels does it doubt?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.options import OutputOptions


@grouped
def agree(
    output: OutputOptions,
    labels: Annotated[
        Path | None, typer.Option(help="Ratings by people (a table or a log), to compare with.")
    ] = None,
    rater: Annotated[
        list[str] | None,
        typer.Option(help="Only this rater of the labels; may be given often. Default: each."),
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file: the levels, worst to best.")
    ] = None,
    store: options.StorePath = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="Ratings to examine instead of the store's; may be given often."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge: model or start of its hash in the store, or rater in --scores; may be "
            "given often. Default: the latest, or every rater."
        ),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(help="Runs that give case and success. Default: runs.jsonl by the labels."),
    ] = None,
    cut: Annotated[
        float | None,
        typer.Option(help="A run is good from this value on (0 to 1), for the corrected rate."),
    ] = None,
    min_runs: Annotated[
        int, typer.Option(help="Warn below this many runs rated by both.", min=2)
    ] = 30,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="Print labels × judge levels per criterion.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="List runs whose success label the judge contradicts.")
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 4 when a criterion has fewer than --min-runs.")
    ] = False,
    seed: options.Seed = 0,
) -> None:
    """Compare the judge with ratings by people; audit the success labels."""
    from agenteval.api.agreement import agree as agree_with

    report = agree_with(
        labels, raters=rater or (), scores=scores or (), store=store, judges=source or (),
        task=task, criteria=criteria, runs=runs, cut=cut, min_runs=min_runs, audit=audit,
        confusion=confusion, gate=gate, seed=seed,
    )  # fmt: skip
    finish(report, output)
