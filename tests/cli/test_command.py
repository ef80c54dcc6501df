"""Groups of options become the options of a command, and come back filled in."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.testing import CliRunner

from agenteval.cli.arguments import LimitOptions, OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.records.table import Column, Table
from agenteval.reporting.report import Report

app = typer.Typer()


@app.command()
@grouped
def command(
    name: Annotated[str, typer.Argument()],
    limits: LimitOptions,
    output: OutputOptions,
    times: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    table = Table("t", "", (Column("name", "name"),), ({"name": name},) * times)
    finish(Report(title=f"{limits.max_calls}", tables=(table,), exit_code=4), output)


@app.command()
def other() -> None:
    """So that commands have names."""


def test_options_of_groups_and_own_ones() -> None:
    result = CliRunner().invoke(app, ["command", "x", "--max-calls", "7", "--times", "3", "--json"])
    assert result.exit_code == 4
    assert '"title": "7"' in result.stdout
    assert result.stdout.count('"name": "x"') == 3
    assert CliRunner().invoke(app, ["command", "x", "--concurrency", "0"]).exit_code == 2
