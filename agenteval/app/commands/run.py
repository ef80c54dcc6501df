"""agenteval run: run an evaluation file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify, print_json
from agenteval.cli.progress import following


@grouped
def run(
    file: Annotated[
        Path | None, typer.Argument(help="Evaluation file (YAML).", show_default=False)
    ] = None,
    *,
    dry_run: options.DryRun = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this step: criteria, quantify, verify, compare, plan, trace, flow or "
            "report."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override a value in the file, e.g. judge.repeats=3."
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of evaluation files.")
    ] = False,
    store: options.StorePath = None,
    output: options.OutputOptions,
) -> None:
    """Run an evaluation file: criteria, scores, verdict, report.

    The exit code is that of its gates. Interrupt it at any time; the same command continues.
    """
    from agenteval.app import evaluation
    from agenteval.app.evaluation_file import json_schema, read_evaluation
    from agenteval.app.stored import view_command
    from agenteval.errors import InputError

    if schema:
        print_json(json_schema())
        raise typer.Exit
    if file is None:
        raise InputError("give an evaluation file, for example eval.yaml", "FILE")
    with following("judging") as progress:
        report = evaluation.run(
            file,
            dry_run=dry_run,
            only=only or (),
            overrides=set_ or (),
            store=store,
            notify=notify,
            progress=progress,
        )
    if not dry_run:
        place = store or read_evaluation(file, set_ or ()).store
        note(f"to look at it in the browser: {view_command(place)}")
    finish(report, output)
