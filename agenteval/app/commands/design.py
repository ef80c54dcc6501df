"""agenteval design: how many cases and repeats, before the first call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.errors import InputError


@grouped
def design(
    output: OutputOptions,
    cases: Annotated[str, typer.Option(help="Numbers of cases, e.g. 50,100.")] = "25,50,100,200",
    repeats: Annotated[str, typer.Option(help="Numbers of repeats, e.g. 1,2,3.")] = "1,2,3",
    width: Annotated[
        float | None, typer.Option(help="Print how many cases an interval of this width needs.")
    ] = None,
    systems: Annotated[
        int, typer.Option(help="Number of systems that answer every case.", min=1)
    ] = 1,
    price: Annotated[
        float | None,
        typer.Option(help="Price of one call, which judges one run on all criteria.", min=0),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Estimate the spread from these ratings instead of the store."),
    ] = None,
    store: options.StorePath = None,
    source: Annotated[
        str | None, typer.Option(help="Judge: model or start of its hash. Default: the latest.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[Path | None, typer.Option(help="Criteria file with the levels.")] = None,
) -> None:
    """Plan cases and repeats: calls, cost and precision.

    The spread is that of ratings like those to come, or the widest that there can be.
    """
    from agenteval.app.design import design as design_for

    report = design_for(
        _numbers(cases, "--cases"),
        _numbers(repeats, "--repeats"),
        width=width,
        systems=systems,
        price=price,
        scores=scores,
        store=store,
        judge=source,
        task=task,
        criteria=criteria,
    )
    finish(report, output)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers such as 50,100", option) from None
