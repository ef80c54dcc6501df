"""agenteval flow check: are roles sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify


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
    """Check charts, their tools and conditions, users, recorded calls and the backend for defects
    that make sessions meaningless. Exit code 1 for errors, 2 for files that cannot be read."""
    from agenteval.workflows.procedure_api import flow_check

    finish(flow_check(roles, scenarios=scenario or (), tools=tools, notify=notify), output)
