"""Options that `flow turn` and `flow session` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Roles = Annotated[
    list[str] | None,
    typer.Argument(help="Roles by name or folder. Default: all that are found.", metavar="ROLE..."),
]
Agent = Annotated[
    str,
    typer.Option(
        help="template, openai, responses, react or autogen (with --model), "
        "python:MODULE:FUNCTION, command:CMD, mcp:CMD, scripted:NAME."
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="How the procedure is told: text, code, flowchart, all, none or no_tools. May be "
        "given often; default flowchart.",
    ),
]
Scenarios = Annotated[
    list[str] | None, typer.Option("--scenario", help="Only these; `cross` for those across.")
]
Profiles = Annotated[list[str] | None, typer.Option("--profile", help="Only these users.")]
Kind = Annotated[str, typer.Option(help="all, single or cross.")]
Judge = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL that decides what no rule can. Without it, that stays undecided.",
        show_default=False,
    ),
]
JudgeUrl = Annotated[str | None, typer.Option(help="The judge's endpoint.")]
Judgements = Annotated[
    Path | None, typer.Option(help="Write every decision on a pair of values to this JSONL file.")
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        help="Stop before this many requests of agent, simulators and judges in all, earlier ones "
        "of the same campaign included. What a python, command or mcp agent asks itself is not "
        "seen.",
        min=1,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        help="Stop before this much is spent by agent, simulators and judges in all, at one price.",
        min=0.0,
    ),
]
MaxUnscored = Annotated[
    float, typer.Option(help="Exit with 3 above this share without verdict.", min=0, max=1)
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Also run again what failed for good.")
]
