"""agenteval anchor: freeze a judge's scores, and check later whether it still gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following
from agenteval.utility.anchoring import AnchorOptions

app = CommandApp(help="Freeze the scores of a judge, and check later for drift.")


@app.command("create")
@grouped
def create(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    judge: AnchorOptions,
    output: Annotated[Path, typer.Option("-o", "--output", help="Anchor file to write.")],
    reply: options.ReplyOptions,
    criteria: options.CriteriaFile = None,
    *,
    n: Annotated[int, typer.Option("--n", help="Number of runs to freeze.", min=2)] = 60,
    looks: Annotated[int, typer.Option(help="Planned number of checks a year.", min=1)] = 52,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Score runs several times and freeze the scores in a file."""
    from agenteval.utility import anchoring

    refuse_input(output, [runs, criteria], store=judge.store)
    with following("judging") as progress:
        more = {"limits": limits.limits(), "notify": notify, "progress": progress}
        report = anchoring.anchor(
            runs, criteria, output=output, n=n, looks=looks, **keywords(judge, **more)
        )
    finish(report, shown)


@app.command("check")
@grouped
def check(
    anchor: Annotated[Path, typer.Argument(help="Anchor file.")],
    reply: options.ReplyOptions,
    *,
    sample: Annotated[int, typer.Option(help="Number of runs to ask about.", min=1)] = 20,
    runs: Annotated[str | None, typer.Option(help="Runs. Default: those of the file.")] = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria. Default: those of the file.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Judge. Default: that of the file.")] = None,
    base_url: options.BaseUrl = None,
    store: Annotated[
        str | None, typer.Option(help="Store of the looks. Default: beside the file (.db).")
    ] = None,
    dry_run: options.DryRun = False,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Ask the judge again about a sample. Exit with 5 if drift is shown."""
    from agenteval.utility import anchoring

    judge = {"judge": model, "base_url": base_url}
    changes: dict[str, Any] = {name: value for name, value in judge.items() if value is not None}
    with following("judging") as progress:
        report = anchoring.check_anchor(
            anchor,
            runs,
            criteria,
            sample=sample,
            store=store,
            dry_run=dry_run,
            limits=limits.limits(),
            notify=notify,
            progress=progress,
            **changes,
        )
    finish(report, shown)
