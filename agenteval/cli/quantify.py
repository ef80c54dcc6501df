"""agenteval quantify: score runs on criteria, resumable, within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.outputs import check_record
from agenteval.cli.progress import following


@grouped
def quantify(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    judge: options.JudgeOptions,
    *,
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show the judge the reference answer.")
    ] = False,
    findings: Annotated[
        Path | None,
        typer.Option(help="Show the judge errors found in the traces (a folder of findings)."),
    ] = None,
    datamark: Annotated[
        bool,
        typer.Option("--datamark", help="Mark what is graded word by word, against injection."),
    ] = False,
    max_unscored: Annotated[
        float, typer.Option(help="Exit 3 when a larger share of cells is unscored.", min=0, max=1)
    ] = 0.1,
    limits: options.LimitOptions,
    kept: options.RunOptions,
    output: options.OutputOptions,
) -> None:
    """Score every run on every criterion. Stop it at any time; the same command goes on."""
    from agenteval.api import utility

    bounds = limits.limits()
    check_record(kept.record, [judge.criteria], [runs, findings], judge.model, store=kept.store)
    asked = judge.asked() | {
        "retry_failed": kept.retry_failed, "limits": bounds, "record": kept.record,
        "with_reference": with_reference, "findings": findings, "datamark": datamark,
    }  # fmt: skip
    if kept.dry_run:
        from agenteval.api.judging import read_judging
        from agenteval.api.running import Watch
        from agenteval.cli import bills, dry

        judging = read_judging(runs, watch=Watch(notify), need_key=False, **asked)
        bill = bills.quantify(judging, kept.store, with_reference=with_reference)
        dry.show(bill, as_json=output.as_json)
        return
    with following("judging") as progress:
        report = utility.quantify(runs, store=kept.store, notify=notify, progress=progress, **asked)
    finish(report.gate(max_unscored=max_unscored), output)
