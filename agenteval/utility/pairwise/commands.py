"""agenteval prefer: which of two systems does better, judged pair by pair in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.options import keywords, option, to_tuple
from agenteval.cli.progress import following
from agenteval.errors import InputError
from agenteval.utility.pairwise.options import PreferOptions


@dataclass(frozen=True)
class PairSources:
    """Runs, pairs or verdicts to compare, and whether the judge is verified."""

    runs: str | None = option(None, help="File, folder or glob with the runs of all systems.")
    pairs: Path | None = option(
        None, help="Judge the pairs of a file of AlpacaEval, arena-hard or JudgeBench."
    )
    verdicts: Path | None = option(
        None, help="Count the recorded verdicts of such a file; no judge is asked."
    )
    criteria: Path | None = option(None, help="Compare on each of these criteria, not overall.")
    verify: bool = option(
        False, "--verify", help="Verify the judge as well, on pairs with a known answer."
    )
    perturbations: Sequence[str] = option(
        (),
        "--perturb",
        type=list[str] | None,
        convert=to_tuple,
        help="Perturbation for --verify. Repeatable. Default: drop_sentences, pad, whitespace, "
        "formatting.",
        show_default=False,
        rich_help_panel="Perturbations",
    )
    share: float = option(
        0.25,
        help="Share of a text that a perturbation changes.",
        min=0.01,
        max=0.9,
        rich_help_panel="Perturbations",
    )
    max_unscored: float = option(
        0.1,
        help="Exit with 3 if more comparisons have no result.",
        min=0,
        max=1,
        rich_help_panel="Checks",
    )


@grouped
def prefer(
    judge: PreferOptions,
    reply: options.ReplyOptions,
    source: PairSources,
    sides: Annotated[
        list[str] | None,
        typer.Argument(metavar="A B ...", help="Files of runs, or systems in --runs."),
    ] = None,
    *,
    gate: Annotated[
        bool, typer.Option("--gate", help="With --verify: exit with 4 or 5 as `verify`.")
    ] = False,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Judge which of two or more systems does better.

    Each pair of responses is judged in both orders.

    \b
    prefer old.jsonl new.jsonl               two files, a system each
    prefer stepwise coder --runs runs.jsonl  two systems of one file
    prefer --runs runs.jsonl                 all systems of a file
    prefer --pairs annotations.json          the pairs of a benchmark

    If both orders agree, it is a win, a loss or a tie; if not, a flip, which counts as half a win.
    A missing answer or judgment is never a loss.
    """
    from agenteval.utility.pairwise import api

    if gate and not source.verify:
        raise InputError("needs --verify", "--gate")
    with following("judging") as progress:
        more = {"limits": limits.limits(), "notify": notify, "progress": progress}
        report = api.prefer(*(sides or ()), **keywords(judge, source, **more))
    finish(report.judge_gate() if gate and report.judge else report, shown)
