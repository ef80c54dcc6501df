"""agenteval flow: agents that must follow a procedure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import LimitOptions, OutputOptions, RequestOptions, flag
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import clean, note, notify, out
from agenteval.cli.options import keywords, option, with_default
from agenteval.cli.outputs import refuse_input, write_runs
from agenteval.cli.progress import following
from agenteval.errors import InputError
from agenteval.workflows.options import FlowScoreOptions, SessionOptions, TurnOptions

if TYPE_CHECKING:
    from agenteval.cli.running import Progress
    from agenteval.workflows.results import SessionResult

app = CommandApp(
    help=(
        "Evaluate agents that serve users by following a procedure.\n\n"
        "Turn by turn against recorded sessions, or in sessions with simulated users and tools."
    ),
    no_args_is_help=True,
)

_Roles = Annotated[
    list[str] | None,
    typer.Argument(help="Roles by name or folder. Default: all roles found.", metavar="ROLE..."),
]


@dataclass(frozen=True)
class FlowLimits(LimitOptions):
    """The shared budget of agent, simulators and judges."""

    concurrency: int = with_default(LimitOptions, "concurrency", 4)
    timeout: float = option(
        180.0,
        rich_help_panel="Limits",
        help="Timeout in seconds of an agent turn and of a request by a simulator or judge.",
        min=0.01,
    )


@app.command("init")
def init(folder: Annotated[Path, typer.Argument(help="Folder of the new role.")]) -> None:
    """Make a small role that runs: policy, tools, two users."""
    from agenteval.files import write_atomically

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", folder.name):
        raise InputError("use letters, digits, hyphens and underscores, at most 64", str(folder))
    if folder.exists():
        raise InputError("this exists already; nothing was changed", str(folder))
    for file in resources.files("agenteval.workflows").joinpath("data/starter_role").iterdir():
        write_atomically(folder / file.name.removesuffix(".template"), file.read_text("utf-8"))
    out().print(
        f"{clean(folder)}: the agent's instructions (policy.md), its tools (backend.py), two users "
        f"(profiles.yaml)\n  agenteval flow check {clean(folder)}\n"
        f"  agenteval flow session {clean(folder)} --agent openai --model openai:gpt-4o "
        "--simulator openai:gpt-4o --dry-run",
        soft_wrap=True,
    )


@app.command("check")
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
        list[str] | None, typer.Option("--scenario", help="Check only this scenario. Repeatable.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="tools.json to check charts against.")
    ] = None,
) -> None:
    """Check roles for defects that make sessions meaningless.

    Checked are charts, their tools and conditions, users, recorded calls and the backend. Exit
    code 1 for errors, 2 for files that cannot be read.
    """
    from agenteval.workflows.check import flow_check

    finish(flow_check(roles, scenarios=scenario or (), tools=tools, notify=notify), output)


@app.command("turn")
@grouped
def turn(
    settings: TurnOptions,
    request: RequestOptions,
    limits: FlowLimits,
    output: OutputOptions,
    roles: _Roles = None,
) -> None:
    """Let an agent continue recorded sessions, and compare each turn.

    ROLE may be files of turn rows in FlowBench's format: then the agent gets their own prompts."""
    from agenteval.workflows.api import flow_turns

    refuse_input(settings.judgements, store=settings.store)
    with following("turn", "turns") as progress:
        report = flow_turns(roles, **_keywords(settings, limits, progress))
    finish(report, output)


@app.command("session")
@grouped
def session(
    settings: SessionOptions,
    request: RequestOptions,
    limits: FlowLimits,
    output: OutputOptions,
    roles: _Roles = None,
    show: Annotated[
        int,
        typer.Option("--show", help="Print the conversation of this many failed sessions.", min=0),
    ] = 0,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Write the sessions as runs for quantify.")
    ] = None,
) -> None:
    """Let an agent serve every user of the roles. If interrupted, run the same command to continue.

    The roles' backend.py is run: it is code. Questions that could not be sent to a judge are sent
    next time.
    """
    from agenteval.workflows.api import flow_sessions

    judgements = settings.judgements
    refuse_input(judgements, store=settings.store)
    refuse_input(runs, [judgements], store=settings.store)
    with following("session", "sessions") as progress:
        report = flow_sessions(roles, **_keywords(settings, limits, progress))
    if not output.as_json:
        _print_failed(report.sessions, show)
    if runs is not None and report.estimate is None:
        write_runs(runs, report.runs(), len(report.sessions), "session")
    finish(report, output)


@app.command("import")
@grouped
def import_(
    output: OutputOptions,
    role: Annotated[str, typer.Argument(help="Name of a role, or its folder.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Trajectories as JSON or JSON Lines: tau-bench's results, messages."),
    ],
    agent: Annotated[str, typer.Option(help="Name of the agent in these sessions.")] = "recorded",
    success: Annotated[str | None, flag(SessionOptions, "success")] = None,
    gate: Annotated[
        float | None, typer.Option(help="Exit with 1 if a smaller share succeeds.", min=0, max=1)
    ] = None,
    max_unscored: Annotated[float, flag(TurnOptions, "max_unscored")] = 0.1,
    store: options.StorePath = None,
) -> None:
    """Store recorded sessions of an agent, and check their success.

    Success is decided by the state that the calls leave when they are replayed. The role's
    backend.py is run: it is code. Recorded rewards are kept next to the verdicts.
    """
    from agenteval.workflows.import_api import flow_import

    with following("import", "sessions") as progress:
        report = flow_import(
            role,
            files,
            agent=agent,
            success=success,
            gate=gate,
            max_unscored=max_unscored,
            store=store,
            notify=notify,
            progress=progress,
        )
    finish(report, output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="Output page (HTML).")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Also write a chart comparing formats by domain (.png, .svg or .pdf)."),
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="Only these roles.")] = None,
    most: Annotated[
        int, typer.Option("--sessions", help="Maximum number of sessions on the page.", min=0)
    ] = 100,
    store: options.StorePath = None,
) -> None:
    """Show tables of all agents tried; -o writes a page with sessions."""
    from agenteval.workflows.api import flow_results

    if figure is not None:
        from agenteval.reporting.style import check_ending

        check_ending(figure)
    for path in (page, figure):
        refuse_input(path, store=store)
    results = flow_results(store, roles=role)
    if figure is not None:
        from agenteval.reporting.style import save
        from agenteval.workflows.page import format_points
        from agenteval.workflows.tallies import Tallies

        save(format_points(Tallies(results.sessions, results.turns)), figure)
        note(f"written: {figure}")
    if page is not None:
        from agenteval.files import write_atomically

        write_atomically(page, results.page(most))
        note(f"written: {page}")
    finish(results, output)


@app.command("score")
@grouped
def score(
    settings: FlowScoreOptions,
    limits: LimitOptions,
    output: OutputOptions,
    files: Annotated[
        list[Path], typer.Argument(help="Rows as a JSON list or JSON Lines; one file per scenario.")
    ],
    workflow: Annotated[
        Path | None,
        typer.Option(
            help="Text of the workflow, for judging replies and goals. Rows can also provide it "
            "as workflow_text."
        ),
    ] = None,
) -> None:
    """Score predictions or whole sessions against gold.

    For predictions: tools, parameters, nodes and replies.
    """
    from agenteval.files import read_text
    from agenteval.workflows.flowbench_score import flow_score

    report = flow_score(
        files,
        workflow="" if workflow is None else read_text(workflow),
        **keywords(settings, limits=limits.limits(), notify=notify),
    )
    finish(report, output)


def _keywords(settings: TurnOptions, limits: FlowLimits, progress: Progress) -> dict[str, Any]:
    """Return the keywords of an experiment."""
    changes = {"limits": limits.limits(), "notify": notify, "progress": progress}
    return keywords(settings, seconds=limits.timeout, **changes)


def _print_failed(sessions: Sequence[SessionResult], most: int) -> None:
    """Print the conversation of the first sessions that failed or were interrupted."""
    from agenteval.readers.fields import json_text
    from agenteval.workflows.session import SessionLog

    failed = [s for s in sessions if s.verdict is None or s.verdict.success is False]
    for session in failed[:most]:
        log = session.log if isinstance(session.log, SessionLog) else session.log.log
        why = session.verdict.cause if session.verdict else getattr(session.log, "message", "")
        name = f"{session.case.id}, {session.system}, trial {session.trial}"
        out().print(f"[bold]{clean(name)}[/bold]  [red]{clean(why or 'failed')}[/red]")
        for message in log.messages if log else ():
            calls = [f"{c.name}({json_text(c.arguments)})" for c in message.tool_calls]
            text = "; ".join(filter(None, (" ".join(message.content.split()), *calls)))
            out().print(f"  [dim]{message.role:9}[/dim] {clean(text)}", soft_wrap=True)
