"""agenteval agree: does the judge say what people say, and which success labels does it doubt?"""

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
    help="Compare the judge with ratings by people.",
)


@app.callback(invoke_without_command=True)
@grouped
def agree(
    context: typer.Context,
    output: OutputOptions,
    labels: Annotated[
        Path | None, typer.Option(help="Ratings by people (a table or a log), to compare with.")
    ] = None,
    *,
    settings: AgreementOptions,
    page: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write everything as .html, .json or .csv as well."),
    ] = None,
) -> None:
    """Compare the judge with ratings by people.

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
    """How runs are drawn."""

    random = "random"
    value = "value"
    disagreement = "disagreement"


@app.command("sample")
@grouped
def sample(
    told: OutputOptions,
    n: Annotated[int, typer.Option("--n", help="How many runs to draw.", min=1)] = 100,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The sheet to fill in: .csv or .jsonl.")
    ] = Path("labels.csv"),
    by: Annotated[
        By,
        typer.Option(
            help="Every run with the same chance, or as many from each quarter of the judge's "
            "scale, or of how far its repeats differ."
        ),
    ] = By.random,
    store: options.StorePath = None,
    scores: Annotated[
        Path | None, typer.Option(help="The judge's ratings in a file instead of the store.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Judge: model or start of its hash. Default: the latest.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file: the levels that are allowed.")
    ] = None,
    runs: Annotated[
        str | None, typer.Option(help="The runs, so that the sheet holds problems and texts.")
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
    note(f"written to {output}: fill in label and rater, then `agenteval agree --labels {output}`")
    finish(report, told)
