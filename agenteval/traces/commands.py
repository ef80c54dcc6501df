"""agenteval trace: errors in traces of agents, from reading them to the report."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import LimitOptions, OutputOptions, ReplyOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import note, notify
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following
from agenteval.traces import show_commands as trace_show
from agenteval.traces.options import LocateOptions

app = CommandApp(
    help="Find errors in agent traces, and score error finders.",
    no_args_is_help=True,
)
app.command("show")(trace_show.show)

Paths = Annotated[
    list[str], typer.Argument(help="Traces: files, folders, or globs in quotes.", metavar="PATHS")
]


class WithoutErrors(StrEnum):
    """The worth of a trace without gold errors."""

    correct = "correct"
    zero = "zero"
    leave_out = "leave-out"


@app.command("locate")
@grouped
def locate(
    paths: Paths,
    settings: LocateOptions,
    reply: ReplyOptions,
    limits: LimitOptions,
    output: OutputOptions,
) -> None:
    """Find errors in traces. If interrupted, run the same command to continue."""
    from agenteval.traces.api import locate as find_errors

    folder = settings.output
    refuse_input(folder, store=settings.store)
    with following("locating", "traces") as progress:
        report = find_errors(
            paths,
            **keywords(settings, limits=limits.limits(), notify=notify, progress=progress),
        )
    if folder is not None and report.estimate is None:
        note(f"{len(report.write(folder))} files written to {folder}")
    finish(report, output)


@app.command("score")
@grouped
def score(
    gold: Annotated[Path, typer.Option(help="Folder of annotations, one JSON file per trace.")],
    pred: Annotated[Path, typer.Option(help="Folder of findings to score.")],
    output: OutputOptions,
    traces: Annotated[
        list[str] | None,
        typer.Option(help="The traces: files, folders or globs. Repeatable."),
    ] = None,
    official: Annotated[
        bool,
        typer.Option(
            "--official", help="Reproduce TRAIL's official scores exactly, with their quirks."
        ),
    ] = False,
    without_errors: Annotated[
        WithoutErrors,
        typer.Option(
            help="Score of a trace without gold errors: 1 if nothing is predicted, always 0 "
            "(official), or excluded."
        ),
    ] = WithoutErrors.correct,
    leave_out_missing: Annotated[
        bool,
        typer.Option(
            "--leave-out-missing",
            help="Exclude traces without a readable prediction (official) instead of counting "
            "them as empty.",
        ),
    ] = False,
    taxonomy: trace_show.TaxonomyFile = None,
    seed: options.Seed = 0,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if joint F1 (official: joint) is lower.", min=0, max=1),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 if a larger share has no prediction.", min=0, max=1)
    ] = 0.1,
) -> None:
    """Score a folder of findings against a folder of annotations."""
    from agenteval.traces.score_api import score_findings

    report = score_findings(
        gold,
        pred,
        traces=traces,
        official=official,
        without_errors=cast(Literal["correct", "zero", "leave_out"], without_errors.name),
        leave_out_missing=leave_out_missing,
        taxonomy=taxonomy,
        seed=seed,
        gate=gate,
        max_unscored=max_unscored,
        notify=notify,
    )
    finish(report, output)


@app.command("stats")
@grouped
def stats(
    paths: Paths,
    output: OutputOptions,
    budget: Annotated[
        int | None,
        typer.Option(help="Maximum tokens of a condensed trace. Default: no limit.", min=256),
    ] = None,
) -> None:
    """Count spans by kind, errors, tokens, and what condensing saves."""
    from agenteval.traces.api import stats as stats_of

    finish(stats_of(paths, budget=budget, notify=notify), output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Only these traces. Default: all stored.", metavar="PATHS"),
    ] = None,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="Output page (HTML).")] = None,
    findings: trace_show.FindingsDirs = None,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of annotations, to show and to score against.")
    ] = None,
    spans: Annotated[
        int, typer.Option(help="Maximum number of spans shown per trace.", min=1)
    ] = 200,
    most: Annotated[
        int, typer.Option("--traces", help="Maximum number of traces on the page.", min=1)
    ] = 100,
    taxonomy: trace_show.TaxonomyFile = None,
    store: options.StorePath = None,
) -> None:
    """Count errors by category and finder; -o writes a page with spans."""
    from agenteval.files import write_atomically
    from agenteval.traces.findings_api import findings_report

    refuse_input(page, [*(paths or ()), gold, taxonomy], store=store)
    report = findings_report(
        paths, findings=findings or (), gold=gold, taxonomy=taxonomy, store=store, notify=notify
    )
    if page is not None:
        write_atomically(page, report.page(most_traces=most, spans=spans))
        note(f"written: {page}")
    finish(report, output)
