"""The `agenteval plan` commands: planning tests, from synthesis to report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import LimitOptions, OutputOptions, RequestOptions, flag
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import clean, clean_lines, json_text, note, notify, out, warn
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input, write_runs
from agenteval.cli.progress import following
from agenteval.planning.options import (
    AgentOptions,
    CapabilityOptions,
    DissectionOptions,
    PlanTestOptions,
    SuiteOptions,
)
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.cli.running import Progress
    from agenteval.planning.api import PlanReport
    from agenteval.planning.case import Case

app = CommandApp(
    help=(
        "Test whether an agent can plan: exact verdicts without a judge.\n\n"
        "Requests have known constraints, and the agent gets mock tools."
    ),
    no_args_is_help=True,
)

Suite = Annotated[Path, typer.Argument(help="Suite from `plan synth`, or your own.")]
RunsFile = Annotated[
    Path | None, typer.Option("--runs", help="Write the trials as runs for quantify.")
]


@dataclass(frozen=True)
class CaseLimits(LimitOptions):
    """Limits of commands that run agents."""

    concurrency: Annotated[
        int,
        typer.Option(
            "-j", "--concurrency", help="Number of cases run concurrently.", min=1, max=512
        ),
    ] = 4
    timeout: Annotated[float, typer.Option(help="Timeout of one case, in seconds.", min=0.01)] = (
        180.0
    )


@dataclass(frozen=True)
class InventLimits(LimitOptions):
    """Limits of `--invent`: a local model needs minutes for a long reply."""

    timeout: options.Timeout = 600.0


@app.command("synth")
@grouped
def synth(
    settings: SuiteOptions,
    limits: InventLimits,
    count: Annotated[int, typer.Option(help="Number of cases.", min=1)] = 100,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Output file of the suite. Default: standard output."),
    ] = None,
    show: Annotated[
        int, typer.Option(help="With -o: print this many requests as examples.", min=0)
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
        _print_estimate(count, settings)
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
    note(f"{plural(count, 'case')} written to {output}")
    report.print(console=out())
    for case in report.cases[:show]:
        _print_case(case)


def _print_estimate(count: int, settings: SuiteOptions) -> None:
    """Print the requests of `--invent`."""
    from agenteval.engine.dry_run import LOCAL
    from agenteval.planning.suite_api import invention_estimate
    from agenteval.reporting.estimate import print_estimate

    if settings.invent is None:
        out().print(f"{plural(count, 'case')}; {LOCAL}")
    else:
        print_estimate(invention_estimate(settings, settings.invent), out())


def _print_case(case: Case) -> None:
    plans = "not counted" if case.valid_plans is None else str(case.valid_plans)
    out().print(f"[bold]{clean(case.id)}[/bold] {clean(case.topic)}, valid plans: {plans}")
    out().print(clean_lines(case.text))
    if case.durations:
        hours = ", ".join(f"{k} {v} h" for k, v in case.durations.items())
        out().print(f"[dim]hidden durations: {clean(hours)}[/dim]")
    out().print()


def _agent_keywords(
    settings: AgentOptions, limits: CaseLimits, progress: Progress
) -> dict[str, Any]:
    return keywords(
        settings,
        seconds=limits.timeout,
        limits=limits.limits(),
        notify=notify,
        progress=progress,
    )


@app.command("test")
@grouped
def run_agent(
    suite: Suite,
    settings: PlanTestOptions,
    request: RequestOptions,
    limits: CaseLimits,
    output: OutputOptions,
    runs: RunsFile = None,
) -> None:
    """Run an agent on every case. If interrupted, run the same command to continue."""
    from agenteval.planning.api import plan_test

    refuse_input(runs, [suite], store=settings.store)
    with following("planning", "trials") as progress:
        report = plan_test(
            suite,
            **_agent_keywords(settings, limits, progress),
        )
    if report.estimate is None:
        _write(runs, report)
    finish(report, output)


@app.command("dissect")
@grouped
def dissect(
    suite: Suite,
    settings: DissectionOptions,
    request: RequestOptions,
    limits: CaseLimits,
    output: OutputOptions,
) -> None:
    """Find the causes of the failures that `plan test` stored."""
    from agenteval.planning.dissect_api import dissect as find_causes

    with following("dissecting", "cases") as progress:
        report = find_causes(
            suite,
            **_agent_keywords(settings, limits, progress),
        )
    finish(report, output)


@app.command("capability")
@grouped
def capability(
    settings: CapabilityOptions, request: RequestOptions, limits: CaseLimits, output: OutputOptions
) -> None:
    """Find the number of actions up to which an agent can plan.

    Adds actions until the success rate falls below the threshold.
    """
    from agenteval.planning.api import plan_capability

    with following("planning", "trials") as progress:
        report = plan_capability(**_agent_keywords(settings, limits, progress))
    finish(report, output)


@app.command("check")
@grouped
def check(
    plans: Annotated[
        Path,
        typer.Argument(help="A plan in PDDL, one step per line, or PlanBench's results (JSON)."),
    ],
    output: OutputOptions,
    domain: Annotated[Path, typer.Option(help="The domain in PDDL.")],
    problem: Annotated[
        Path,
        typer.Option(help="The problem in PDDL; for PlanBench, the folder of instance-N.pddl."),
    ],
) -> None:
    """Check plans in PDDL by execution, without a judge. Exits with 1 if a plan is invalid."""
    from agenteval.planning.pddl import check_plans

    finish(check_plans(plans, domain=domain, problem=problem), output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    suite: Annotated[
        Path | None, typer.Argument(help="Use only the cases of this suite. Default: all stored.")
    ] = None,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="Output page (HTML).")] = None,
    runs: RunsFile = None,
    strict: Annotated[bool, flag(AgentOptions, "strict")] = False,
    log_order: Annotated[bool, flag(AgentOptions, "log_order")] = False,
    store: options.StorePath = None,
) -> None:
    """Show tables of all tested agents; -o writes a page."""
    from agenteval.files import write_atomically
    from agenteval.planning.api import plan_report

    for path in (page, runs):
        refuse_input(path, [suite], store=store)
    report = plan_report(store, suite, strict=strict, log_order=log_order)
    _write(runs, report)
    if page is not None:
        write_atomically(page, report.page())
        note(f"written: {page}")
    finish(report, output)


def _write(path: Path | None, report: PlanReport) -> None:
    if path is not None:
        runs = report.runs()
        write_runs(path, runs, len(runs) + len(report.failures), "trial")
