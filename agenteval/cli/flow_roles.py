"""agenteval flow check and convert: are roles sound, and in which formats are they told."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify, warn
from agenteval.cli.options import OutputOptions
from agenteval.cli.outputs import check_record, refuse_input


class Level(StrEnum):
    """What a row of `flow score` is."""

    turn = "turn"
    session = "session"


@grouped
def check(
    output: OutputOptions,
    roles: Annotated[
        list[str] | None,
        typer.Argument(
            help="Roles by name or folder, or files with Mermaid flowcharts (.mmd, .md). "
            "Default: all roles found."
        ),
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", help="Only this one; several allowed.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="For charts: a tools.json to check against.")
    ] = None,
) -> None:
    """Check charts, their tools and conditions, users and recorded calls, the backend, and that
    text, code and flowchart agree. Exit code 1 for errors, 2 for what cannot be read."""
    from agenteval.api.procedures import flow_check

    finish(flow_check(roles, scenarios=scenario or (), tools=tools, notify=notify), output)


@grouped
def convert(
    output: OutputOptions,
    role: Annotated[str, typer.Argument(help="Name of a role, or its folder.")],
    scenario: Annotated[str, typer.Argument(help="Id of one of its scenarios.")],
    to: Annotated[str, typer.Option("--to", help="text, code or flowchart.")],
    source: Annotated[
        str | None,
        typer.Option("--from", help="Default: flowchart; for --to flowchart: code."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write. Default: the terminal.")
    ] = None,
    model: options.ChatModel = None,
    base_url: options.BaseUrl = None,
    store: options.StorePath = None,
    record: options.Record = None,
    timeout: options.Timeout = 600.0,
    dry_run: options.DryRun = False,
) -> None:
    """Convert a procedure with a model; exit code 1 and no file if it then tells another one."""
    from agenteval.api.procedures import flow_convert
    from agenteval.files import write_atomically
    from agenteval.models.limits import Limits
    from agenteval.text import visible

    refuse_input(file, store=store)
    check_record(record, [file], [], model, store=store)
    report = flow_convert(
        role, scenario, to, source=source, model=model,
        base_url=options.one_text(base_url), store=store,
        record=record, limits=Limits(timeout=timeout), dry_run=dry_run, notify=notify,
    )  # fmt: skip
    if report.bill is not None:
        finish(report, output)
    made = report.converted
    if made is not None and made.accepted:
        if file is not None:
            write_atomically(file, made.text)
            note(f"written to {file}")
        elif not output.as_json:
            # a model wrote it: shown as text to a person, unchanged to a file
            sys.stdout.write(visible(made.text) if sys.stdout.isatty() else made.text)
            return
    for line in report.notes:
        warn(line)
    if output.as_json:
        finish(report, output)
    raise typer.Exit(report.exit_code)
