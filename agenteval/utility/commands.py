"""Commands of AgentEval: criteria, quantify, verify, perturb."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import Verbosity, note, notify
from agenteval.cli.options import keywords, option, read_columns
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following
from agenteval.text import plural
from agenteval.utility.options import (
    SEVERAL,
    Escalation,
    JudgeOptions,
    ProposeOptions,
    VerifiedJudge,
)

if TYPE_CHECKING:
    from agenteval.reporting.report import Report


@grouped
def criteria(
    task: Annotated[str, typer.Option("--task", help="Name of a task, or its folder.")],
    settings: ProposeOptions,
    reply: options.ReplyOptions,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
    per_case: Annotated[
        str | None,
        typer.Option(
            metavar="RUNS",
            help="Write a rubric for each input of these runs instead (criteria/TASK.rubrics.jsonl "
            "for --rubrics of quantify).",
            rich_help_panel="Critic",
        ),
    ] = None,
) -> None:
    """Propose criteria for a task, and merge paraphrases.

    Their scales are checked; they are written to criteria/TASK.json.
    """
    from agenteval.readers.tasks import TASK_FILE, find_task
    from agenteval.utility import api, rubric_api

    folder = find_task(task)
    ending = "json" if per_case is None else "rubrics.jsonl"
    target = settings.output or Path("criteria") / f"{folder.task.name}.{ending}"
    inputs = [folder.runs, folder.path / TASK_FILE, per_case]
    refuse_input(target, inputs, store=settings.store)
    if not settings.dry_run:
        note(f"{plural(settings.seeds, 'critic')} on task {folder.task.name}")
    how = keywords(settings, output=target, limits=limits.limits(), notify=notify)
    if per_case is None:
        report: Report = api.propose(task, **how)
    else:
        report = rubric_api.propose_rubrics(task, per_case, **how)
    if not settings.dry_run:
        note(f"written to {target}; read it, edit it, then quantify")
    finish(report, shown)


@grouped
def quantify(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    judge: JudgeOptions,
    reply: options.ReplyOptions,
    escalation: Escalation,
    criteria: options.CriteriaFile = None,
    *,
    max_unscored: Annotated[
        float,
        typer.Option(help="Exit with 3 if a larger share of cells is unscored.", min=0, max=1),
    ] = 0.1,
    score_failed_runs: Annotated[
        str | None,
        typer.Option(
            metavar="worst",
            help="Count runs whose system failed as the worst level. Default: report them "
            "separately and exclude them from means.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTH",
            help="Judge cases in random order until every always-valid interval is at most this "
            "wide (e.g. 0.1), or until it is settled which of two systems is better (decided).",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Human labels of some of the runs, as for `agree`.", rich_help_panel=SEVERAL
        ),
    ] = None,
    limits: options.LimitOptions,
    output: options.OutputOptions,
) -> None:
    """Score every run on every criterion. If interrupted, run the same command to continue."""
    from agenteval.utility import api

    with following("judging") as progress:
        report = api.quantify(
            runs,
            criteria,
            max_unscored=max_unscored,
            score_failed_runs=score_failed_runs,
            until=until,
            labels=labels,
            escalation=None if escalation.to is None else escalation,
            **keywords(judge, limits=limits.limits(), notify=notify, progress=progress),
        )
    finish(report, output)


check = partial(option, rich_help_panel="Checks")


@dataclass(frozen=True)
class ExaminationOptions:
    """Further examinations besides ratings of runs and copies, and the gate."""

    scores: Path | None = option(
        None,
        help="Examine these ratings (a table or a log) instead of judging runs.",
        rich_help_panel="Checks",
    )
    labels: Path | None = option(None, help="Human labels of these runs, as for `agree`.")
    min_cases: int = check(20, help="Minimum number of cases for a verdict.", min=2)
    deterministic: bool = check(
        False,
        "--deterministic",
        help="The judge in --scores is deterministic: it needs no repeats.",
    )
    sequential: bool = check(
        False,
        "--sequential",
        help=(
            "Judge cases in random order, check after 20, 40, 80, ... and stop when every "
            "verdict is settled."
        ),
    )
    output: Path | None = option(
        None,
        "-o",
        "--output",
        help="Output file of the criteria with their verdicts. Default: criteria/"
        "TASK.verified.json, or NAME.verified.json beside --criteria NAME.json.",
    )
    probes: bool = check(
        False,
        "--probes",
        help="Also probe the judge with other prompts and with attacks in the text.",
    )
    attacked: int | None = check(
        None, help="With --probes: attack at most this many runs. Default: 80.", min=1
    )
    gate: bool = option(
        False,
        "--gate",
        help="Exit with 4 (not enough data) or 5 (not trustworthy, or a criterion is refuted).",
    )
    allow_criterion: list[str] | None = option(
        None,
        help="Refuted criterion that --gate ignores. Repeatable.",
        rich_help_panel="Checks",
    )


@grouped
def verify(
    judge: VerifiedJudge,
    reply: options.ReplyOptions,
    copies: options.CopyOptions,
    how: ExaminationOptions,
    runs: Annotated[
        str | None, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")
    ] = None,
    *,
    criteria: options.CriteriaFile = None,
    limits: options.LimitOptions,
    shown: options.OutputOptions,
) -> None:
    """Decide which criteria to keep and whether to trust the judge.

    Every run and perturbed copies of it are judged.
    """
    from agenteval.utility import verifying
    from agenteval.utility.verify.options import VerifyOptions

    inputs = [criteria, how.scores, how.labels]
    refuse_input(how.output, [runs, *inputs], store=judge.store)
    thresholds = VerifyOptions(
        min_cases=how.min_cases, seed=judge.seed, deterministic=how.deterministic
    )
    output = how.output
    if how.scores is None and output is None:
        output = Path("criteria") / "{task}.verified.json"
        if criteria is not None:  # of the same task, another file keeps its verdicts
            name = criteria.stem.removesuffix(".verified")
            output = criteria.with_name(f"{name}.verified.json")
    with following("judging") as progress:
        report = verifying.verify(
            runs,
            criteria,
            scores=how.scores,
            labels=how.labels,
            perturbations=copies.perturb or (),
            share=copies.share,
            options=thresholds,
            probes=how.probes,
            attacked=how.attacked,
            sequential=how.sequential,
            output=output,
            **keywords(judge, limits=limits.limits(), notify=notify, progress=progress),
        )
    if how.gate and report.estimate is None:
        report = report.gate(how.allow_criterion or ())
    finish(report, shown)


@grouped
def perturb(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Output file (JSON Lines).")],
    copies: options.CopyOptions,
    *,
    columns: options.Columns = None,
    seed: options.Seed = 0,
    limit: options.FirstRuns = None,
    quiet: options.Quiet = False,
) -> None:
    """Write runs and perturbed copies for rating elsewhere.

    `agenteval verify --scores` then reads the ratings.
    """
    from agenteval.utility import api

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [runs])
    report = api.perturb(
        runs,
        copies.perturb or (),
        share=copies.share,
        seed=seed,
        limit=limit,
        mapping=read_columns(columns),
        notify=notify,
    )
    report.write(output)
    note(f"{report.title} written to {output}")
