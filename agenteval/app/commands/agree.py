"""agenteval agree: compare the judge with human labels, and audit success labels."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from agenteval.app.options import AgreementOptions
from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import note
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input

app = CommandApp(
    help="Compare the judge with human labels.",
)


@app.callback(invoke_without_command=True)
@grouped
def agree(
    context: typer.Context,
    output: OutputOptions,
    labels: Annotated[
        Path | None, typer.Option(help="Human labels to compare with (a table or a log).")
    ] = None,
    *,
    settings: AgreementOptions,
    page: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Also write the report to this file (.html, .json or .csv)."
        ),
    ] = None,
) -> None:
    """Compare the judge with human labels.

    \b
    agree sample --n 100 -o labels.csv     draw what people should label
    agree --labels labels.csv              how far the judge says the same; its
                                           mean, corrected by these labels
    """
    from agenteval.app.agreement import agree as agree_with

    if context.invoked_subcommand is not None:
        return
    ratings = cast("tuple[Path, ...]", settings.scores)
    inputs = [labels, settings.criteria, settings.sample, *ratings]
    refuse_input(page, inputs, store=settings.store)
    report = agree_with(labels, **keywords(settings))
    if page is not None:
        note(f"written to {report.save(page)}")
    finish(report, output)


class By(StrEnum):
    """Method of drawing runs."""

    random = "random"
    value = "value"
    disagreement = "disagreement"


@app.command("sample")
@grouped
def sample(
    told: OutputOptions,
    n: Annotated[int, typer.Option("--n", help="Number of runs to draw.", min=1)] = 100,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Sheet to fill in (.csv or .jsonl).")
    ] = Path("labels.csv"),
    by: Annotated[
        By,
        typer.Option(
            help="How to draw: random (each run equally likely), or the same number of runs from "
            "each quarter of the judge's scale or of the spread of its repeats."
        ),
    ] = By.random,
    store: options.StorePath = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Read the judge's ratings from this file instead of the store."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Judge: model or start of its hash. Default: the latest.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file with the allowed levels.")
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            help="Runs whose inputs and outputs the sheet shows. Default: those of the store."
        ),
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Draw runs for people to label, and write a sheet to fill in."""
    from agenteval.app.agreement import sample_to_label

    refuse_input(output, [scores, criteria, runs], store=store)
    report = sample_to_label(
        n,
        by=by.value,
        seed=seed,
        scores=scores,
        store=store,
        judge=source,
        task=task,
        criteria=criteria,
        runs=runs,
    )
    report.save(output)
    note(
        f"written to {output}: fill in label and rater, then run `agenteval agree --labels "
        f"{output}`"
    )
    finish(report, told)
