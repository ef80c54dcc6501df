"""agenteval label: write the labels of a store, or a page that is mailed to a rater."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.app.commands.agree import By
from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note
from agenteval.cli.outputs import refuse_input


@grouped
def label(
    told: OutputOptions,
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
    by: Annotated[By, typer.Option(help="How to draw them (--n), see `agree sample`.")] = By.random,
    store: options.StorePath = None,
    source: Annotated[
        str | None, typer.Option(help="Judge: model or start of its hash. Default: the latest.")
    ] = None,
    task: options.TaskName = None,
    seed: options.Seed = 0,
) -> None:
    """Export human labels, or a labelling page that needs no server.

    `agenteval view --label` shows the same queues in the browser.
    """
    from agenteval.app.labels import QueueDraw, export_labels

    refuse_input(export, [], store=store)
    draw = None if n is None else QueueDraw(n, by.value, seed, source, task)
    report = export_labels(export, store, queue=queue, draw=draw)
    note(f"written to {export}")
    finish(report, told)
