"""agenteval verify: which criteria and which judge can be trusted, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import notify
from agenteval.cli.outputs import check_record, refuse_input
from agenteval.cli.progress import following


@dataclass(frozen=True)
class VerifiedJudge(options.JudgeOptions):
    """As for `quantify`; each text is judged twice, so that the judge can disagree with itself."""

    repeats: options.Repeats = 2


@grouped
def verify(
    judge: VerifiedJudge,
    copies: options.CopyOptions,
    runs: Annotated[
        str | None, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")
    ] = None,
    *,
    scores: Annotated[
        Path | None, typer.Option(help="Examine ratings made elsewhere (CSV or JSONL) instead.")
    ] = None,
    min_cases: Annotated[
        int, typer.Option(help="Below this many cases nothing is decided.", min=2)
    ] = 20,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="The judge of --scores is a function: it needs no repeats to agree with itself.",
        ),
    ] = False,
    rounds: Annotated[
        int,
        typer.Option(help="Then drop, ask the critic for more criteria, and verify again.", min=1),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the criteria go, with what was found."),
    ] = None,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes",
            help="Also ask in other ways and with attacks in the text: what sways the judge?",
        ),
    ] = False,
    attacked: Annotated[
        int | None,
        typer.Option(
            "--attacked", help="Most runs that --probes put an attack in. Default: 80.", min=1
        ),
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 4 (not enough data) or 5 (not trustworthy).")
    ] = False,
    limits: options.LimitOptions,
    kept: options.RunOptions,
    shown: options.OutputOptions,
) -> None:
    """Judge every run and perturbed copies of it; say which criteria and whether to trust."""
    from agenteval.api import verifying
    from agenteval.evaluators.utility.verify.options import VerifyOptions

    bounds = limits.limits()
    inputs = [judge.criteria, scores]
    check_record(kept.record, [*inputs, output], [runs], judge.model, store=kept.store)
    refuse_input(output, [runs, *inputs], store=kept.store)
    thresholds = VerifyOptions(min_cases=min_cases, seed=judge.seed, deterministic=deterministic)
    asked = judge.asked() | {
        "retry_failed": kept.retry_failed, "limits": bounds, "record": kept.record,
    }  # fmt: skip
    if kept.dry_run and runs is not None and scores is None:
        from agenteval.api.judging import read_judging
        from agenteval.api.running import Watch
        from agenteval.cli import bills, dry
        from agenteval.evaluators.utility.probes.result import ProbeOptions

        judging = read_judging(runs, watch=Watch(notify), need_key=False, **asked)
        material = verifying.verification_material(
            judging, judging.criteria, copies.perturb or (), copies.drop
        )
        probing = ProbeOptions.like(thresholds, attacked=attacked) if probes else None
        bill = bills.verify(judging, material, kept.store, probing, rounds)
        dry.show(bill, as_json=shown.as_json)
        return
    if scores is None and output is None:
        output = Path("criteria") / "{task}.verified.json"
    with following("judging") as progress:
        report = verifying.verify(
            runs, scores=scores, store=kept.store, perturbations=copies.perturb or (),
            share=copies.drop, options=thresholds, probes=probes, attacked=attacked, rounds=rounds,
            output=output, notify=notify, progress=progress, **asked,
        )  # fmt: skip
    finish(report.gate() if gate else report, shown)
