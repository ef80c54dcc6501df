"""agenteval verify: which criteria and which judge can be trusted, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agenteval.api.options import VerifiedJudge, keywords
from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following


@dataclass(frozen=True)
class ExaminationOptions:
    """What is examined besides the ratings of runs and copies, and what is demanded."""

    scores: Annotated[
        Path | None, typer.Option(help="Examine ratings made elsewhere instead: a table or a log.")
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of these runs by people, as for `agree`: do people agree?"),
    ] = None
    min_cases: Annotated[
        int, typer.Option(help="Below this many cases nothing is decided.", min=2)
    ] = 20
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="The judge of --scores is a function: it needs no repeats to agree with itself.",
        ),
    ] = False
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="Cases in random order, a look after 20, 40, 80, ...; stop when no verdict is "
            "open.",
        ),
    ] = False
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the criteria go, with what was found."),
    ] = None
    probes: Annotated[
        bool,
        typer.Option(
            "--probes",
            help="Also ask in other ways and with attacks in the text: what sways the judge?",
        ),
    ] = False
    attacked: Annotated[
        int | None,
        typer.Option(
            "--attacked", help="Most runs that --probes put an attack in. Default: 80.", min=1
        ),
    ] = None
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Exit 4 (not enough data) or 5 (not trustworthy, or a criterion is refuted).",
        ),
    ] = False
    allow_criterion: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-criterion", help="A refuted criterion that --gate lets pass. Repeatable."
        ),
    ] = None


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
    """Judge every run and perturbed copies of it; say which criteria and whether to trust."""
    from agenteval.api import verifying
    from agenteval.evaluators.utility.verify.options import VerifyOptions

    inputs = [criteria, how.scores, how.labels]
    refuse_input(how.output, [runs, *inputs], store=judge.store)
    thresholds = VerifyOptions(
        min_cases=how.min_cases, seed=judge.seed, deterministic=how.deterministic
    )
    output = how.output
    if how.scores is None and output is None:
        output = Path("criteria") / "{task}.verified.json"
    with following("judging") as progress:
        report = verifying.verify(
            runs,
            criteria,
            scores=how.scores,
            labels=how.labels,
            perturbations=copies.perturb or (),
            share=copies.drop,
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
