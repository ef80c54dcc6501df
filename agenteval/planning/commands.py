"""agenteval plan: planning tests, from their synthesis to the report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import (
    AgentModelOptions,
    LimitOptions,
    OutputOptions,
)
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import clean, clean_lines, json_text, note, notify, out, warn
from agenteval.cli.options import (
    EndpointOptions,
    ExecutorOptions,
    RunOptions,
    keywords,
    with_default,
)
from agenteval.cli.outputs import refuse_input, write_runs
from agenteval.cli.progress import following
from agenteval.planning.options import SuiteOptions

if TYPE_CHECKING:
    from agenteval.planning.agent_setup import How
    from agenteval.planning.api import PlanReport
    from agenteval.planning.case import Case

app = typer.Typer(
    help="Test whether an agent can plan: requests with known constraints, mock tools, exact "
    "verdicts without a judge.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Suite = Annotated[Path, typer.Argument(help="Suite of `plan synth`, or written by hand.")]
Lexicon = Annotated[Path | None, typer.Option(help="Word lists the suite was made with.")]
Trials = Annotated[int, typer.Option(help="Attempts at each case.", min=1)]
AtOnce = Annotated[
    int, typer.Option("-j", "--concurrency", help="Cases run at once.", min=1, max=512)
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Tokens of one reply of the agent's model.", min=1)
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Any call that could not be carried out fails the case, and attempts "
        "before a restart count as well.",
    ),
]
LogOrder = Annotated[
    bool,
    typer.Option(
        "--log-order",
        help="Calls made at once count in the order of the log, as in the paper; else there is no "
        "order between them.",
    ),
]
RunsFile = Annotated[
    Path | None, typer.Option("--runs", help="Write the trials as runs, which quantify reads.")
]
Extended = Annotated[bool, options.flag(SuiteOptions, "extended")]
Topics = Annotated[list[str] | None, options.flag(SuiteOptions, "topics")]


@dataclass(frozen=True)
class TrialOptions:
    """Where trials are kept."""

    store: options.StorePath = None
    dry_run: options.DryRun = False


@dataclass(frozen=True, kw_only=True)
class AgentOptions(AgentModelOptions):
    """The agent under test."""

    agent: Annotated[
        str,
        typer.Option(
            help="openai, responses, react or autogen (with --model), python:MODULE:FUNCTION, "
            "command:CMD, mcp:CMD, scripted:NAME."
        ),
    ]
    temperature: float | None = with_default(EndpointOptions, "temperature", 0.0)
    max_tokens: MaxTokens = None
    turns: Annotated[int, typer.Option(help="Turns of the agent for one case.", min=1)] = 50
    strict: Strict = False
    log_order: LogOrder = False

    def how(self, limits: LimitOptions, run: TrialOptions | RunOptions) -> How:
        """What an experiment is told of it. Raises InputError for bounds that cannot hold."""
        return {
            "model": self.model,
            "base_url": self.base_url,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seconds": limits.timeout,
            "turns": self.turns,
            "strict": self.strict,
            "log_order": self.log_order,
            "limits": limits.limits(),
            "dry_run": run.dry_run,
        }


@dataclass(frozen=True)
class CaseLimits(LimitOptions):
    """Bounds of a command that runs agents."""

    concurrency: AtOnce = 4
    timeout: Annotated[float, typer.Option(help="Seconds for one case.", min=0.01)] = 180.0


@dataclass(frozen=True)
class InventLimits(LimitOptions):
    """Bounds of `--invent`: a long reply of a model on this machine takes its time."""

    timeout: options.Timeout = 600.0


@app.command("synth")
@grouped
def synth(
    settings: SuiteOptions,
    limits: InventLimits,
    count: Annotated[int, typer.Option(help="Number of cases.", min=1)] = 100,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Suite to write. Default: the terminal.")
    ] = None,
    show: Annotated[
        int, typer.Option(help="With -o: print this many requests to look at.", min=0)
    ] = 3,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Synthesize planning tests. The same seed and shape give the same suite, byte by byte."""
    from agenteval.planning.suite import case_line
    from agenteval.planning.suite_api import plan_suite

    lexicon = settings.lexicon
    refuse_input(output, [lexicon], store=settings.store)
    if settings.invent is not None and lexicon is not None and not Path(lexicon).exists():
        refuse_input(lexicon, store=settings.store)
    if dry_run:
        _show_asked(count, settings)
        return
    with following("writing", "cases") as progress:
        report = plan_suite(
            count, **keywords(settings, limits=limits.limits(), notify=notify, progress=progress)
        )
    if output is None or not report.cases:
        for line in (*report.unfinished, *report.notes):
            warn(line)
        for case in report.cases:
            sys.stdout.write(json_text(case_line(case)))
        raise typer.Exit(report.exit_code)
    report.write(output)
    note(f"{count} cases written to {output}")
    report.print(console=out())
    for case in report.cases[:show]:
        _print_case(case)


def _show_asked(count: int, settings: SuiteOptions) -> None:
    """Print what `--invent` would ask."""
    from agenteval.engine.dry_run import LOCAL
    from agenteval.planning.suite_api import invention_estimate, inventor
    from agenteval.reporting.estimate import print_estimate

    if settings.invent is None:
        out().print(f"{count} cases; {LOCAL}")
        return
    _, choice = inventor(settings.lexicon, settings.model, settings.base_url, need_key=False)
    print_estimate(invention_estimate(choice, settings.invent), out())


def _print_case(case: Case) -> None:
    plans = "not counted" if case.valid_plans is None else str(case.valid_plans)
    out().print(f"[bold]{clean(case.id)}[/bold] {clean(case.topic)}, valid plans: {plans}")
    out().print(clean_lines(case.text))
    if case.durations:
        hours = ", ".join(f"{k} {v} h" for k, v in case.durations.items())
        out().print(f"[dim]hidden durations: {clean(hours)}[/dim]")
    out().print()


@app.command("test")
@grouped
def run_agent(
    suite: Suite,
    agent: AgentOptions,
    limits: CaseLimits,
    run: RunOptions,
    executor: ExecutorOptions,
    output: OutputOptions,
    trials: Trials = 1,
    limit: Annotated[int | None, typer.Option(help="Only the first cases.", min=1)] = None,
    lexicon: Lexicon = None,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when a smaller share passes.", min=0.0, max=1.0),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share without verdict.", min=0, max=1)
    ] = 0.1,
    runs: RunsFile = None,
) -> None:
    """Run an agent on every case. Stop it at any time; the same command goes on."""
    from agenteval.planning.api import plan_test

    refuse_input(runs, [suite, lexicon], store=run.store)
    with following("planning", "trials") as progress:
        report = plan_test(
            suite,
            agent.agent,
            **agent.how(limits, run),
            **keywords(executor),
            trials=trials,
            limit=limit,
            lexicon=lexicon,
            gate=gate,
            max_unscored=max_unscored,
            store=run.store,
            retry_failed=run.retry_failed,
            notify=notify,
            progress=progress,
        )
    if report.estimate is None:
        _write(runs, report)
    finish(report, output)


@app.command("dissect")
@grouped
def dissect(
    suite: Suite,
    agent: AgentOptions,
    limits: CaseLimits,
    run: TrialOptions,
    output: OutputOptions,
    tries: Annotated[int, typer.Option("-k", "--tries", help="Tries of a stage.", min=1)] = 3,
    full: Annotated[
        bool, typer.Option("--full", help="Run all stages, also after a success.")
    ] = False,
    literal: Annotated[
        bool, typer.Option("--paper-literal", help="The algorithm as printed.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Only so many of the failed cases.", min=1)
    ] = 100,
    seed: options.Seed = 0,
    lexicon: Lexicon = None,
) -> None:
    """Find the causes of the failures that `plan test` has stored for this agent and suite."""
    from agenteval.planning.dissect_api import dissect as planning_dissect

    with following("dissecting", "cases") as progress:
        report = planning_dissect(
            suite,
            agent.agent,
            **agent.how(limits, run),
            tries=tries,
            full=full,
            literal=literal,
            limit=limit,
            seed=seed,
            lexicon=lexicon,
            store=run.store,
            notify=notify,
            progress=progress,
        )
    finish(report, output)


@app.command("capability")
@grouped
def capability(
    agent: AgentOptions,
    limits: CaseLimits,
    run: RunOptions,
    output: OutputOptions,
    n: Annotated[
        str, typer.Option("--n", help="Actions, FROM-TO; it stops where the agent does.")
    ] = "2-9",
    seed: options.Seed = 0,
    cases: Annotated[
        int | None,
        typer.Option(
            help="Cases at each number of actions. Default: min(300, 20·n(n-1)/2), as published.",
            min=1,
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Success rate below which it ends.", min=0.0, max=1.0)
    ] = 0.2,
    extended: Extended = False,
    topic: Topics = None,
    trials: Trials = 1,
) -> None:
    """Raise the number of actions until success falls below the threshold."""
    from agenteval.planning.api import plan_capability

    with following("planning", "trials") as progress:
        report = plan_capability(
            agent.agent,
            **agent.how(limits, run),
            n=n,
            cases=cases,
            threshold=threshold,
            seed=seed,
            extended=extended,
            topics=topic or (),
            trials=trials,
            store=run.store,
            retry_failed=run.retry_failed,
            notify=notify,
            progress=progress,
        )
    finish(report, output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    suite: Annotated[
        Path | None, typer.Argument(help="Only the cases of this suite. Default: all stored.")
    ] = None,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="HTML page to write.")] = None,
    runs: RunsFile = None,
    strict: Strict = False,
    log_order: LogOrder = False,
    lexicon: Lexicon = None,
    store: options.StorePath = None,
) -> None:
    """Tables of all systems tried; with -o a self-contained page with figures and failures."""
    from agenteval.files import write_atomically
    from agenteval.planning.api import plan_report

    for path in (page, runs):
        refuse_input(path, [suite, lexicon], store=store)
    report = plan_report(store, suite, strict=strict, log_order=log_order, lexicon=lexicon)
    _write(runs, report)
    if page is not None:
        write_atomically(page, report.page())
        note(f"written: {page}")
    finish(report, output)


def _write(path: Path | None, report: PlanReport) -> None:
    if path is not None:
        runs = report.runs()
        write_runs(path, runs, len(runs) + len(report.failures), "trial")
