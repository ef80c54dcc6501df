"""agenteval agree: does the judge say what people say, and which success labels does it doubt?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note
from agenteval.cli.outputs import refuse_input

app = typer.Typer(
    help="Compare the judge with ratings by people; audit the success labels; draw what to label.",
    rich_markup_mode=None,
)

_Source = Annotated[
    list[str] | None,
    typer.Option(
        help="Judge: model or start of its hash in the store, or rater in --scores; may be "
        "given often. Default: the latest, or every rater."
    ),
]


@app.callback(invoke_without_command=True)
@grouped
def agree(
    context: typer.Context,
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
    source: _Source = None,
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
    sample: Annotated[
        Path | None,
        typer.Option(
            help="File of `agree sample` that says what was drawn. Default: the labels' own.",
        ),
    ] = None,
    random_labels: Annotated[
        bool,
        typer.Option("--random-labels", help="The labels were drawn at random, by other means."),
    ] = False,
    alt_test: Annotated[
        bool,
        typer.Option("--alt-test", help="May the judge stand in for one of at least 3 raters?"),
    ] = False,
    epsilon: Annotated[
        float, typer.Option(help="With --alt-test: what a person costs more, .1 to .3.")
    ] = 0.2,
    page: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write everything as .html, .json or .csv as well."),
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 4 when a criterion has fewer than --min-runs.")
    ] = False,
    seed: options.Seed = 0,
) -> None:
    """Compare the judge with ratings by people; audit the success labels; draw what to label.

    \b
    agree sample --n 100 -o labels.csv     draw what people should label
    agree --labels labels.csv              how far the judge says the same; its
                                           mean, corrected by these labels
    """
    from agenteval.app.agreement import agree as agree_with

    if context.invoked_subcommand is not None:
        return
    refuse_input(page, [labels, criteria, sample, *(scores or ())], store=store)

    report = agree_with(
        labels,
        raters=rater or (),
        scores=scores or (),
        store=store,
        judges=source or (),
        task=task,
        criteria=criteria,
        runs=runs,
        cut=cut,
        min_runs=min_runs,
        audit=audit,
        confusion=confusion,
        sample=sample,
        random_labels=random_labels,
        alt_test=alt_test,
        epsilon=epsilon,
        gate=gate,
        seed=seed,
    )
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
    """Draw runs for people to label, with the weight of each, as a sheet to fill in."""
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
