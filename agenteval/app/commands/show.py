"""agenteval show: the table again, or everything about one run."""

from __future__ import annotations

from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped


@grouped
def show(
    output: OutputOptions,
    run: Annotated[str | None, typer.Option(help="Show one run: levels and explanations.")] = None,
    system: Annotated[
        str | None, typer.Option(help="With --run: the run of this system. Default: the newest.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Source, by the start of its hash. Default: the latest.")
    ] = None,
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
