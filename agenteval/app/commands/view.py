"""agenteval view: look at a store in the browser, and label its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import grouped


@grouped
def view(
    path: Annotated[
        str | None, typer.Argument(metavar="STORE", help="The store. Default: that of --store.")
    ] = None,
    label: Annotated[bool, typer.Option("--label", help="Runs can be labelled.")] = False,
    rater: Annotated[
        str | None, typer.Option(help="With --label: your name, for your labels.")
    ] = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file to show; with --label it can be edited.")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(help="Traces (file or folder), to be shown whole; the store has excerpts."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address and open no browser.")
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

    It shows experiments, runs and judges; only with --label can anything be changed.

    The address that is printed opens the viewer once. Ctrl-C stops it.
    """
    from agenteval.view.serving import ViewerSettings, serve

    settings = ViewerSettings(label, rater, criteria, traces, port, not no_open, allow_remote)
    serve(path if path is not None else store, settings)
