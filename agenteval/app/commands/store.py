"""agenteval store: show the contents of a store, and copy it."""

from __future__ import annotations

from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import note

app = CommandApp(
    help="Show what a store contains, or copy it.",
    no_args_is_help=True,
)


@app.command("info")
@grouped
def info(output: OutputOptions, store: options.StorePath = None) -> None:
    """Show the rows of every table, the sources, and what is unfinished."""
    from agenteval.app.stored import store_info

    finish(store_info(store), output)


@app.command("copy")
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
