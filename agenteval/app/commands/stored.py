"""agenteval show, report, export, store, view and label: commands for stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.analysis.sampling import By
from agenteval.cli import arguments as options
from agenteval.cli.arguments import JudgeInStore, OutputOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import Verbosity, note, warn
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

SourceInStore = Annotated[
    str | None, typer.Option(help="Source, by the start of its hash. Default: the latest.")
]


@grouped
def show(
    output: OutputOptions,
    run: Annotated[str | None, typer.Option(help="Show one run: levels and explanations.")] = None,
    system: Annotated[
        str | None, typer.Option(help="With --run: the run of this system. Default: the newest.")
    ] = None,
    source: SourceInStore = None,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="List the sources of results: judges, agents, finders."),
    ] = False,
    levels: Annotated[
        bool, typer.Option("--levels", help="Print means in levels (0 = worst) instead of 0 to 1.")
    ] = False,
    store: options.StorePath = None,
) -> None:
    """Print the stored results of a judge, agent or finder.

    `--all` prints all tables, `--run ID` one run with its levels and explanations.
    """
    from agenteval.app import stored

    if sources:
        finish(stored.sources(store), output)
    if run is not None:
        finish(stored.results(run, store, source=source, system=system), output)
    levels = levels and not output.as_json  # values in JSON are always those of 0 to 1
    finish(stored.shown(store, source=source, levels=levels), output)


@grouped
def report(
    shown: OutputOptions,
    runs: Annotated[
        str | None,
        typer.Argument(help="Report only on these runs of the store: file, folder or glob."),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Output page.")] = Path(
        "report.html"
    ),
    store: options.StorePath = None,
    source: SourceInStore = None,
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
            help="Number of runs that can be opened on the page.", min=0, show_default="500"
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
    finish(written, shown)


def export(
    target: Annotated[
        str, typer.Argument(metavar="FILE|URL", help="Output file: .jsonl, .csv or .parquet.")
    ],
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Write OpenTelemetry events instead, to a file or a URL.")
    ] = False,
    traces: Annotated[
        str | None, typer.Option(help="The judged traces, to link events (--otlp) to their spans.")
    ] = None,
    no_explanations: Annotated[
        bool, typer.Option("--no-explanations", help="Omit the judge's explanations (--otlp).")
    ] = False,
    replies: Annotated[
        bool,
        typer.Option(
            "--replies", help="Write the models' replies instead, for --model replay:FILE."
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Export only replies of this model (--replies).")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Source, by the start of its hash. Default: all.")
    ] = None,
    all_ways: Annotated[
        bool,
        typer.Option(
            "--all-ways", help="Include results of `verify --probes`; see the column `way`."
        ),
    ] = False,
    with_copies: Annotated[
        bool,
        typer.Option(
            "--with-copies", help="Include results on perturbed copies; see the column `variant`."
        ),
    ] = False,
    store: options.StorePath = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the stored results to a file, one row per result.

    With --replies, write the replies of all models instead, which replay:FILE reads.

    Results on perturbed copies and of probes are left out: their mean is not meaningful.
    """
    from agenteval.app import stored

    Verbosity.level = -1 if quiet else Verbosity.level
    if not target.startswith(("http://", "https://")):
        refuse_input(Path(target), [traces], store=store)
    if replies:
        if source or otlp or traces or all_ways or with_copies or no_explanations:
            raise InputError("can be combined only with --model, --store and --quiet", "--replies")
        written = stored.export_replies(target, store, model=model)
    elif model is not None:
        raise InputError("needs --replies", "--model")
    else:
        written = stored.export(
            target,
            store,
            source=source,
            all_ways=all_ways,
            with_copies=with_copies,
            otlp=otlp,
            traces=traces,
            explanations=not no_explanations,
        )
    for line in written.unfinished:
        warn(line)
    for line in (written.title, *written.notes):
        note(line)


store_app = CommandApp(help="Show what a store contains, or copy it.", no_args_is_help=True)


@store_app.command("info")
@grouped
def info(output: OutputOptions, store: options.StorePath = None) -> None:
    """Show the rows of every table, the sources, and what is unfinished."""
    from agenteval.app.stored import store_info

    finish(store_info(store), output)


@store_app.command("copy")
@grouped
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Existing store: path or URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="New store: path or URL.")],
    quiet: options.Quiet = False,
) -> None:
    """Copy everything into a new store, results and replies alike."""
    from agenteval.store import Store
    from agenteval.store.export import copy_store

    with Store(source, create=False) as old, Store(target) as new:
        copied = copy_store(old, new, lambda table, rows: note(f"{table}: {rows:,} rows"))
        note(f"{sum(copied.values()):,} rows copied from {old.shown} to {new.shown}")


@grouped
def view(
    path: Annotated[
        str | None, typer.Argument(metavar="STORE", help="The store. Default: that of --store.")
    ] = None,
    label: Annotated[bool, typer.Option("--label", help="Allow labelling of runs.")] = False,
    rater: Annotated[
        str | None, typer.Option(help="With --label: your name, for your labels.")
    ] = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file to show; with --label it can be edited.")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(help="Traces (file or folder) to show in full; the store has excerpts."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.", min=0, max=65535)] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address without opening a browser.")
    ] = False,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            help="Also serve other machines. Anyone with the address can see everything.",
        ),
    ] = False,
    store: options.StorePath = None,
) -> None:
    """Look at a store in the browser, and label its runs.

    It shows experiments, runs and judges; changes need --label. The printed address opens the
    viewer once. Ctrl-C stops it.
    """
    from agenteval.view.serving import ViewerSettings, serve

    settings = ViewerSettings(label, rater, criteria, traces, port, not no_open, allow_remote)
    serve(path if path is not None else store, settings)


@grouped
def label(
    shown: OutputOptions,
    export: Annotated[
        Path,
        typer.Option(
            help=".html: a page for a rater, who returns a file for `agree "
            "--labels`. .jsonl or .csv: the labels in the store. A folder: "
            "findings in traces."
        ),
    ],
    queue: Annotated[str | None, typer.Option(help="Labelling queue. Default: the newest.")] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", help="Create a new queue of this many runs.", min=1, show_default=False
        ),
    ] = None,
    by: Annotated[By, typer.Option(help="How to draw them (--n), see `agree sample`.")] = "random",
    store: options.StorePath = None,
    source: JudgeInStore = None,
    task: options.TaskName = None,
    seed: options.Seed = 0,
) -> None:
    """Export human labels, or a labelling page that needs no server.

    `agenteval view --label` shows the same queues in the browser.
    """
    from agenteval.app.labels import QueueDraw, export_labels

    refuse_input(export, [], store=store)
    draw = None if n is None else QueueDraw(n, by, seed, source, task)
    written = export_labels(export, store, queue=queue, draw=draw)
    note(f"written to {export}")
    finish(written, shown)
