"""agenteval flow: agents that must follow a procedure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import flow_init, flow_roles, options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import clean, note, notify, out
from agenteval.cli.options import (
    AgentModelOptions,
    LimitOptions,
    OutputOptions,
    RunOptions,
)
from agenteval.cli.outputs import refuse_input, write_runs
from agenteval.cli.progress import following

if TYPE_CHECKING:
    from agenteval.api.workflow_report import WorkflowReport
    from agenteval.evaluators.workflows.results import SessionResult

app = typer.Typer(
    help="Evaluate agents that serve users by a procedure: turn by turn against recorded "
    "sessions, or in whole sessions with simulated users and tools.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("init")(flow_init.init)
app.command("check")(flow_roles.check)

_Roles = Annotated[
    list[str] | None,
    typer.Argument(help="Roles by name or folder. Default: all that are found.", metavar="ROLE..."),
]
_SUCCESS = typer.Option(
    help="What success asks for: state (the final state), or state+reads (with all results that "
    "gold obtained).",
    show_default="as the role says, else state",
)
_MOST_UNSCORED = typer.Option(help="Exit with 3 above this share without verdict.", min=0, max=1)


@dataclass(frozen=True)
class AgentOptions(AgentModelOptions):
    """The agent under test, and how it is told the procedure."""

    agent: Annotated[
        str,
        typer.Option(
            help="template, openai, responses, react or autogen (with --model), "
            "python:MODULE:FUNCTION, command:CMD, mcp:CMD, recorded:NAME."
        ),
    ] = "template"
    temperature: options.Temperature = 0.0
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of one reply of the agent's model.", min=1)
    ] = None
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="How the procedure is told: text, code, flowchart, all, none or no_tools. May be "
            "given often. Default: the first of flowchart, text and code that there is.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """As the experiments take them."""
        return {
            "agent": self.agent, "model": self.configured_model, "base_url": self.base_url,
            "temperature": self.sampling, "max_tokens": self.max_tokens,
            "formats": self.formats or (),
        }  # fmt: skip


@dataclass(frozen=True)
class CaseOptions:
    """Which cases of the roles."""

    kind: Annotated[str, typer.Option(help="all, single or cross.")] = "all"
    scenarios: Annotated[
        list[str] | None, typer.Option("--scenario", help="Only these; `cross` for those across.")
    ] = None
    profiles: Annotated[list[str] | None, typer.Option("--profile", help="Only these users.")] = (
        None
    )
    limit: Annotated[int | None, typer.Option(help="Only the first cases.", min=1)] = None


@dataclass(frozen=True)
class VerdictOptions:
    """Who decides what no rule can, how often, and what is demanded."""

    judge: Annotated[
        str | None,
        typer.Option(
            help="PROVIDER:MODEL that decides what no rule can. Without it, that stays undecided.",
            show_default=False,
        ),
    ] = None
    judge_url: Annotated[str | None, typer.Option(help="The judge's endpoint.")] = None
    trials: Annotated[int, typer.Option(help="Trials of each case.", min=1)] = 1
    gate: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 below this share of successes (sessions) or right due calls (turns).",
            min=0,
            max=1,
        ),
    ] = None
    max_unscored: Annotated[float, _MOST_UNSCORED] = 0.1
    judgements: Annotated[
        Path | None,
        typer.Option(help="Write every decision on a pair of values to this JSONL file."),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """As the experiments take them."""
        return dict(vars(self))


@dataclass(frozen=True)
class FlowLimits(LimitOptions):
    """The bounds of agent, simulators and judges in all."""

    concurrency: Annotated[
        int, typer.Option("-j", "--concurrency", help="Cases run at once.", min=1, max=512)
    ] = 4
    max_calls: Annotated[
        int | None,
        typer.Option(
            help="Stop before this many requests of agent, simulators and judges in all, earlier "
            "ones of the same campaign included. What a python, command or mcp agent asks itself "
            "is not seen.",
            min=1,
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Stop before this much is spent by agent, simulators and judges in all, at one "
            "price.",
            min=0.0,
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            help="Seconds for one turn of the agent, and for one request of a simulator or judge.",
            min=0.01,
        ),
    ] = 180.0

    def arguments(self) -> dict[str, Any]:
        """As the experiments take them."""
        return {"seconds": self.timeout, "limits": self.limits()}


@dataclass(frozen=True)
class SimulatorOptions:
    """Who plays the user and the tools, and how long a session is."""

    user: Annotated[
        str, typer.Option(help="Who plays the user: model (with --simulator) or scripted.")
    ] = "model"
    tools: Annotated[
        str, typer.Option(help="Who answers calls: auto, backend, recorded or model.")
    ] = "auto"
    simulator: Annotated[
        str | None,
        typer.Option(help="PROVIDER:MODEL of simulated users and tools.", show_default=False),
    ] = None
    simulator_url: Annotated[str | None, typer.Option(help="Its endpoint.")] = None
    turns: Annotated[
        int | None,
        typer.Option(help="Replies of the agent at most.", min=1, show_default="15, cross 20"),
    ] = None
    calls: Annotated[
        int | None, typer.Option(help="Calls of a session at most.", min=1, show_default="60")
    ] = None
    calls_per_turn: Annotated[
        int | None,
        typer.Option(help="Calls between two replies at most.", min=1, show_default="20"),
    ] = None
    flowbench: Annotated[
        bool,
        typer.Option(
            "--flowbench", help="Limits of the published code: 40 messages, 10 calls, 5 in a turn."
        ),
    ] = False


@app.command("turn")
@grouped
def turn(
    agent: AgentOptions,
    cases: CaseOptions,
    verdicts: VerdictOptions,
    limits: FlowLimits,
    run: RunOptions,
    output: OutputOptions,
    roles: _Roles = None,
) -> None:
    """Predict every turn from the recorded talk before it, and compare with what was done.

    ROLE may be files of turn rows in FlowBench's format: then the agent gets their own prompts."""
    from agenteval.api.workflows import flow_turns

    _experiment(
        flow_turns, "turn", run, output, roles=roles,
        **agent.arguments(), **vars(cases), **verdicts.arguments(), **limits.arguments(),
    )  # fmt: skip


@app.command("session")
@grouped
def session(
    agent: AgentOptions,
    cases: CaseOptions,
    players: SimulatorOptions,
    verdicts: VerdictOptions,
    limits: FlowLimits,
    run: RunOptions,
    output: OutputOptions,
    roles: _Roles = None,
    success: Annotated[str | None, _SUCCESS] = None,
    seed: options.Seed = 0,
    show: Annotated[
        int, typer.Option("--show", help="Print the talk of this many failed sessions.", min=0)
    ] = 0,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Write the sessions as runs for quantify."),
    ] = None,
) -> None:
    """Let an agent serve every user of the roles. Stop it at any time; the same command goes on.

    The roles' backend.py is run: it is code. What a judge could not be asked is asked next time."""
    from agenteval.api.workflows import flow_sessions

    _experiment(
        flow_sessions, "session", run, output, show, runs, roles=roles, seed=seed, success=success,
        **agent.arguments(), **vars(cases), **vars(players), **verdicts.arguments(),
        **limits.arguments(),
    )  # fmt: skip


@app.command("import")
@grouped
def import_(
    output: OutputOptions,
    role: Annotated[str, typer.Argument(help="Name of a role, or its folder.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Trajectories as JSON or JSON Lines: tau-bench's results, messages."),
    ],
    agent: Annotated[str, typer.Option(help="Whose sessions they are.")] = "recorded",
    success: Annotated[str | None, _SUCCESS] = None,
    gate: Annotated[
        float | None, typer.Option(help="Exit with 1 below this share of successes.", min=0, max=1)
    ] = None,
    max_unscored: Annotated[float, _MOST_UNSCORED] = 0.1,
    store: options.StorePath = None,
) -> None:
    """Store recorded sessions of an agent, with success by the state that their calls leave when
    they are replayed.

    The role's backend.py is run: it is code. Recorded rewards are kept beside the verdicts."""
    from agenteval.api.flow_import import flow_import

    with following("import", "sessions") as progress:
        report = flow_import(
            role, files, agent=agent, success=success, gate=gate, max_unscored=max_unscored,
            store=store, notify=notify, progress=progress,
        )  # fmt: skip
    finish(report, output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="HTML page to write.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Comparison of formats by domain, as PNG, SVG or PDF by its ending."),
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="Only these roles.")] = None,
    most: Annotated[
        int, typer.Option("--sessions", help="Sessions on the page at most.", min=0)
    ] = 100,
    store: options.StorePath = None,
) -> None:
    """Tables of all systems tried; with -o a self-contained page with figures and sessions."""
    from agenteval.api.workflows import flow_results

    if figure is not None:
        from agenteval.report.style import check_ending

        check_ending(figure)
    for path in (page, figure):
        refuse_input(path, store=store)
    results = flow_results(store, roles=role)
    if figure is not None:
        from agenteval.evaluators.workflows.tallies import Tallies
        from agenteval.report.style import save
        from agenteval.report.trial_plots import format_points

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
    limits: LimitOptions,
    output: OutputOptions,
    files: Annotated[
        list[Path],
        typer.Argument(help="Rows as a JSON list or JSON Lines; one file per scenario."),
    ],
    level: Annotated[
        flow_roles.Level | None,
        typer.Option(help="What the rows are.", show_default="as the first row says"),
    ] = None,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Count as the published scripts do, quirks included."),
    ] = False,
    workflow: Annotated[
        Path | None,
        typer.Option(
            help="The workflow as text, for the judge of replies and goals; rows may "
            "hold it as workflow_text."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="PROVIDER:MODEL that decides whether two values mean the same, and grades. "
            "Without it, what it would have to decide stays undecided.",
            show_default=False,
        ),
    ] = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = 0,
    resamples: Annotated[int, typer.Option(help="Resamples of each interval.", min=100)] = 2000,
    max_unscored: Annotated[
        float,
        typer.Option(help="Exit with 3 above this share undecided or failed.", min=0, max=1),
    ] = 0.1,
    store: options.StorePath = None,
) -> None:
    """Score predictions against gold: tools, parameters, nodes, replies; or whole sessions."""
    from agenteval.api.flowbench import flow_score
    from agenteval.files import read_text

    sampling = None if temperature is None or temperature < 0 else temperature
    report = flow_score(
        files, level=None if level is None else level.value, reference=reference,
        workflow="" if workflow is None else read_text(workflow),
        judge=model, judge_url=options.one_text(base_url), temperature=sampling, seed=seed,
        resamples=resamples, max_unscored=max_unscored, store=store,
        limits=limits.limits(), notify=notify,
    )  # fmt: skip
    finish(report, output)


def _experiment(
    function: Callable[..., WorkflowReport],
    level: str,
    run: RunOptions,
    output: OutputOptions,
    show: int = 0,
    runs: Path | None = None,
    **arguments: Any,
) -> None:
    """Run sessions or turns and show what came of them, or what they would ask."""
    judgements = arguments["judgements"]
    refuse_input(judgements, store=run.store)
    refuse_input(runs, [judgements], store=run.store)
    with following(level, f"{level}s") as progress:
        report = function(
            store=run.store, retry_failed=run.retry_failed,
            dry_run=run.dry_run, notify=notify, progress=progress, **arguments,
        )  # fmt: skip
    if not output.as_json:
        _print_failed(report.sessions, show)
    if runs is not None and report.estimate is None:
        write_runs(runs, report.runs(), len(report.sessions), "session")
    finish(report, output)


def _print_failed(sessions: Sequence[SessionResult], most: int) -> None:
    """The talk of the first sessions that failed or broke off, with the calls in their places."""
    from agenteval.evaluators.workflows.session import SessionLog
    from agenteval.readers.fields import json_text

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
