"""agenteval export: results as a table or as OpenTelemetry events; replies for replay:FILE."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.console import Verbosity, note, warn
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError


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

    Results on perturbed copies and of probes are left out, because their mean says nothing.
    """
    from agenteval.app.stored import export as export_results
    from agenteval.app.stored import export_replies

    Verbosity.level = -1 if quiet else Verbosity.level
    if not target.startswith(("http://", "https://")):
        refuse_input(Path(target), [traces], store=store)
    if replies:
        if source or otlp or traces or all_ways or with_copies or no_explanations:
            raise InputError("can be combined only with --model, --store and --quiet", "--replies")
        report = export_replies(target, store, model=model)
    elif model is not None:
        raise InputError("needs --replies", "--model")
    else:
        report = export_results(
            target,
            store,
            source=source,
            all_ways=all_ways,
            with_copies=with_copies,
            otlp=otlp,
            traces=traces,
            explanations=not no_explanations,
        )
    for line in report.unfinished:
        warn(line)
    for line in (report.title, *report.notes):
        note(line)
