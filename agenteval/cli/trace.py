"""agenteval trace: errors in traces of agents, from reading them to the report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from agenteval.cli import options, trace_show
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify
from agenteval.cli.options import ChatOptions, LimitOptions, OutputOptions, RunOptions
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following

app = typer.Typer(
    help="Find, locate and grade errors in traces of agents, and measure whoever finds them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("show")(trace_show.show)

Paths = Annotated[
    list[str], typer.Argument(help="Traces: files, folders, or globs in quotes.", metavar="PATHS")
]


class Mode(StrEnum):
    """How the kinds of errors are asked for."""

    areas = "areas"
    broad = "broad"


class WithoutErrors(StrEnum):
    """What a trace without errors in gold is worth."""

    correct = "correct"
    zero = "zero"
    leave_out = "leave-out"


@dataclass(frozen=True)
class LocatorOptions:
    """How the judge of traces is asked."""

    detectors_only: Annotated[
        bool, typer.Option("--detectors-only", help="Rules alone, without a model.")
    ] = False
    taxonomy: trace_show.TaxonomyFile = None
    mode: Annotated[
        Mode, typer.Option(help="One question for each area of errors, or one for all.")
    ] = Mode.broad
    context: Annotated[
        int | None,
        typer.Option(
            help="Tokens that the model takes, prompt and reply together. Default: the window of "
            "a well-known model, else 8192.",
            min=512,
        ),
    ] = None
    reply_tokens: Annotated[int, typer.Option(help="Tokens kept for a reply.", min=64)] = 1536
    repeats: Annotated[int, typer.Option(help="How often each part is judged.", min=1)] = 1
    budget: Annotated[
        int, typer.Option(help="Tokens of a condensed trace; longer texts are cut.", min=256)
    ] = 100_000
    quotes: Annotated[
        Literal["span", "step", "off"],
        typer.Option(help="Where quoted words must stand: in the span, in its step, anywhere."),
    ] = "step"
    no_hints: Annotated[
        bool, typer.Option("--no-hints", help="Do not tell the judge what rules have found.")
    ] = False
    with_reference: Annotated[
        bool,
        typer.Option("--with-reference", help="Show the judge gold answers that stand in spans."),
    ] = False
    seed: options.Seed = 0


@app.command("locate")
@grouped
def locate(
    paths: Paths,
    model: ChatOptions,
    how: LocatorOptions,
    limits: LimitOptions,
    run: RunOptions,
    output: OutputOptions,
    limit: Annotated[int | None, typer.Option(help="Only the first N traces.", min=1)] = None,
    folder: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for findings in the official layout."),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share not examined.", min=0, max=1)
    ] = 0.1,
) -> None:
    """Find errors in traces. Stop it at any time; the same command goes on."""
    from agenteval.api.traces import locate as find_errors

    refuse_input(folder, store=run.store)
    experiment = partial(
        find_errors, paths, model=model.configured_model, base_url=model.base_url,
        detectors_only=how.detectors_only, taxonomy=how.taxonomy,
        mode="areas" if how.mode is Mode.areas else "broad", context=how.context,
        reply_tokens=how.reply_tokens, repeats=how.repeats, budget=how.budget,
        hints=not how.no_hints, quotes=how.quotes, with_reference=how.with_reference,
        temperature=model.sampling, seed=how.seed, limit=limit,
        output=folder, store=run.store, retry_failed=run.retry_failed,
        max_unscored=max_unscored, limits=limits.limits(), dry_run=run.dry_run,
    )  # fmt: skip
    with following("locating", "traces") as progress:
        report = experiment(notify=notify, progress=progress)
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
        typer.Option(help="The traces themselves: files, folders, globs; repeatable."),
    ] = None,
    official: Annotated[
        bool, typer.Option("--official", help="The scores of TRAIL exactly, with their quirks.")
    ] = False,
    without_errors: Annotated[
        WithoutErrors,
        typer.Option(
            help="A trace without gold errors is worth 1 if nothing is "
            "said of it, always 0 (as officially), or nothing."
        ),
    ] = WithoutErrors.correct,
    leave_out_missing: Annotated[
        bool,
        typer.Option(
            "--leave-out-missing",
            help="Traces without a readable prediction are "
            "left out (as officially) instead of counting as empty.",
        ),
    ] = False,
    taxonomy: trace_show.TaxonomyFile = None,
    seed: options.Seed = 0,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when joint F1 (officially: joint) is less.", min=0, max=1),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share without prediction.", min=0, max=1)
    ] = 0.1,
) -> None:
    """Score a folder of findings against a folder of annotations."""
    from agenteval.api.trace_scores import score_findings

    worth: dict[WithoutErrors, Literal["correct", "zero", "leave_out"]] = {
        WithoutErrors.correct: "correct",
        WithoutErrors.zero: "zero",
        WithoutErrors.leave_out: "leave_out",
    }
    report = score_findings(
        gold, pred, traces=traces, official=official,
        without_errors=worth[without_errors], leave_out_missing=leave_out_missing,
        taxonomy=taxonomy, seed=seed, gate=gate, max_unscored=max_unscored, notify=notify,
    )  # fmt: skip
    finish(report, output)


@app.command("stats")
@grouped
def stats(
    paths: Paths,
    output: OutputOptions,
    budget: Annotated[
        int | None, typer.Option(help="Tokens of a condensed trace; default: no limit.", min=256)
    ] = None,
) -> None:
    """Spans by kind, depth, errors, tokens, and the ratio of condensing."""
    from agenteval.api.traces import stats as stats_of

    finish(stats_of(paths, budget=budget, notify=notify), output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Only these traces. Default: all stored.", metavar="PATHS"),
    ] = None,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="HTML page to write.")] = None,
    findings: trace_show.FindingsDirs = None,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of annotations: shown beside, and scored against.")
    ] = None,
    spans: Annotated[int, typer.Option(help="Spans drawn of a trace at most.", min=1)] = 200,
    most: Annotated[int, typer.Option("--traces", help="Traces on the page at most.", min=1)] = 100,
    taxonomy: trace_show.TaxonomyFile = None,
    store: options.StorePath = None,
) -> None:
    """Errors by category and finder; with -o a page that shows them on the spans."""
    from agenteval.api.traces import findings_report

    refuse_input(page, [*(paths or ()), gold, taxonomy], store=store)
    report = findings_report(
        paths, findings=findings or (), gold=gold, taxonomy=taxonomy, store=store, notify=notify
    )
    if page is not None:
        from agenteval.files import write_atomically

        write_atomically(page, report.page(most_traces=most, spans=spans))
        note(f"written: {page}")
    finish(report, output)
