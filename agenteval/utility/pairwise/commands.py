"""agenteval prefer: which of two systems does better, judged pair by pair in both orders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.options import keywords
from agenteval.cli.progress import following
from agenteval.errors import InputError
from agenteval.utility.pairwise.options import PreferOptions


@grouped
def prefer(
    judge: PreferOptions,
    reply: options.ReplyOptions,
    copies: options.CopyOptions,
    sides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B ...",
            help="Files of runs, one for each system, or names of systems in --runs.",
            show_default=False,
        ),
    ] = None,
    *,
    runs: Annotated[
        str | None,
        typer.Option(help="One file, folder or glob with the runs of all systems."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Judge the pairs of a file of AlpacaEval, arena-hard or JudgeBench.",
            rich_help_panel="Runs",
        ),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help="Count the recorded verdicts of such a file; no judge is asked.",
            rich_help_panel="Runs",
        ),
    ] = None,
    criteria: Annotated[
        Path | None,
        typer.Option(
            help="Compare on each criterion of this file. Default: on the task as a whole."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Also verify the judge: identical, swapped and damaged pairs.",
        ),
    ] = False,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="With --verify: exit with 4 (not enough data) or 5 (not trustworthy).",
            rich_help_panel="Checks",
        ),
    ] = False,
    max_unscored: Annotated[
        float,
        typer.Option(
            help="Exit with 3 if a larger share of comparisons has no result.",
            min=0,
            max=1,
            rich_help_panel="Checks",
        ),
    ] = 0.1,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Judge which of two or more systems does better, each pair in both orders.

    \b
    prefer old.jsonl new.jsonl               two files, a system each
    prefer stepwise coder --runs runs.jsonl  two systems of one file
    prefer --runs runs.jsonl                 all systems of a file
    prefer --pairs annotations.json          pairs of a benchmark

    If both orders agree, it is a win, a loss or a tie; if not, a flip, which counts as half a win.
    A missing answer or judgment is never a loss.
    """
    from agenteval.utility.pairwise import api

    if gate and not verify:
        raise InputError("needs --verify", "--gate")
    with following("judging") as progress:
        report = api.prefer(
            *(sides or ()),
            runs=runs,
            pairs=pairs,
            verdicts=verdicts,
            criteria=criteria,
            verify=verify,
            perturbations=copies.perturb or (),
            share=copies.share,
            max_unscored=max_unscored,
            **keywords(judge, limits=limits.limits(), notify=notify, progress=progress),
        )
    finish(report.judge_gate() if gate and report.judge else report, shown)
