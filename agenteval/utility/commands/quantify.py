"""agenteval quantify: score runs on criteria, resumable, within a budget."""

from __future__ import annotations

from typing import Annotated

import typer

from agenteval.api.options import JudgeOptions, keywords
from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.progress import following


@grouped
def quantify(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    judge: JudgeOptions,
    reply: options.ReplyOptions,
    criteria: options.CriteriaFile = None,
    *,
    max_unscored: Annotated[
        float, typer.Option(help="Exit 3 when a larger share of cells is unscored.", min=0, max=1)
    ] = 0.1,
    score_failed_runs: Annotated[
        str | None,
        typer.Option(
            metavar="worst",
            help="Count runs whose system failed as the worst level. Default: they are left out of "
            "means and reported.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTH",
            help="Judge cases in random order until no always-valid interval is wider (0.1), or, "
            "of two systems, until it is decided which is better (decided).",
            show_default=False,
        ),
    ] = None,
    limits: options.LimitOptions,
    output: options.OutputOptions,
) -> None:
    """Score every run on every criterion. Stop it at any time; the same command goes on."""
    from agenteval.api import utility

    with following("judging") as progress:
        report = utility.quantify(
            runs,
            criteria,
            max_unscored=max_unscored,
            score_failed_runs=score_failed_runs,
            until=until,
            **keywords(judge, limits=limits.limits(), notify=notify, progress=progress),
        )
    finish(report, output)
