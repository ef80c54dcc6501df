"""agenteval plan test: run an agent on a suite of planning tests and check what it did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options, plan_job
from agenteval.cli.console import Verbosity, err, note, out, print_json, warn
from agenteval.cli.outputs import refuse_input
from agenteval.cli.plan_job import PlanJob

if TYPE_CHECKING:
    from rich.console import Console

    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dsl.lexicon import Lexicon as Words
    from agenteval.evaluators.planning.run import Attempt
    from agenteval.evaluators.planning.tallies import Cause
    from agenteval.experiment import Ended

Suite = Annotated[Path, typer.Argument(help="Suite of `plan synth`, or written by hand.")]
Lexicon = Annotated[Path | None, typer.Option(help="Word lists the suite was made with.")]


def run_agent(
    suite: Suite,
    agent: plan_job.Agent,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    max_tokens: plan_job.MaxTokens = None,
    trials: plan_job.Trials = 1,
    limit: Annotated[int | None, typer.Option(help="Only the first cases.", min=1)] = None,
    seconds: plan_job.Seconds = 180.0,
    turns: plan_job.Turns = 50,
    strict: plan_job.Strict = False,
    lexicon: Lexicon = None,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when a smaller share passes.", min=0.0, max=1.0),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share without verdict.", min=0, max=1)
    ] = 0.1,
    runs: plan_job.RunsFile = None,
    store: options.StorePath = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what failed for good.")
    ] = False,
    concurrency: plan_job.Concurrency = 4,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an agent on every case. Stop it at any time; the same command goes on."""
    from agenteval.cli.plan_synth import read_lexicon
    from agenteval.evaluators.planning.suite import read_suite

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(runs, [suite, lexicon], store=store)
    job = PlanJob(
        agent, model, base_url, None if temperature is None or temperature < 0 else temperature,
        options.LimitOptions(
            concurrency, max_calls, max_cost, price_in, price_out, seconds
        ).limits(),
        plan_job.make_rules(seconds, turns, strict=strict), store, trials, retry_failed,
        max_tokens, dry_run,
    )  # fmt: skip
    words = read_lexicon(lexicon)[0]
    cases = list(read_suite(suite, words))[:limit]
    different: dict[str, Case] = {}
    for case in cases:
        different.setdefault(case.sha256, case)
    if same := len(cases) - len(different):
        warn(f"{same} of {len(cases)} cases are another one again but for the id: left out")
        cases = list(different.values())
    if dry_run:
        from agenteval.cli import bills_plan, dry

        dry.show(bills_plan.plan_test(job, cases), as_json=as_json)
        return
    attempts, ended = run_suite(job, cases)
    show(attempts, lexicon=words, as_json=as_json)
    if runs is not None:
        write_runs(runs, attempts)
    to = err() if as_json else out()
    raise typer.Exit(plan_job.ended_code(ended) or _gate(attempts, gate, max_unscored, to))


def run_suite(job: PlanJob, cases: Sequence[Case]) -> tuple[list[Attempt], Ended | None]:
    """The system's trials at these cases, after running what was missing; None: interrupted."""
    import asyncio

    from agenteval.evaluators.planning.trials import EVALUATOR, load_attempts
    from agenteval.store import Store, Trials, default_path

    system = plan_job.make_system(job)
    with Store(job.store or default_path()) as store:
        with Trials(store).lock(EVALUATOR, system.sha256):
            try:
                ended = asyncio.run(plan_job.run_open(job, store, cases, "planning"))
            except KeyboardInterrupt:
                ended = None
        keys = [case.sha256 for case in cases]
        with store.snapshot():
            found = load_attempts(store, job.rules.check, cases=keys, systems=[system.sha256])
        attempts = [a for a in found if a.trial < job.trials]
    return attempts, ended


def show(
    attempts: Sequence[Attempt],
    causes: Sequence[Cause] = (),
    lexicon: Words | None = None,
    *,
    as_json: bool,
    brief: bool = True,
    threshold: float | None = None,
) -> None:
    """The tables of a campaign, or the trials as JSON; `threshold` of the capability bound."""
    from agenteval.cli.plan_table import attempts_json, print_tables

    if as_json:
        print_json(attempts_json(attempts))
    elif attempts:
        print_tables(attempts, causes, lexicon, brief=brief, threshold=threshold)
    else:
        warn("no trial has been run")


def write_runs(path: Path, attempts: Sequence[Attempt]) -> None:
    """The trials with a verdict as JSON lines of runs."""
    from agenteval.evaluators.planning.run import as_run
    from agenteval.files import write_atomically

    known = [a for a in attempts if a.verdict is not None]
    text = "".join(as_run(a).model_dump_json(exclude_none=True) + "\n" for a in known)
    write_atomically(path, text)
    left = len(attempts) - len(known)
    note(
        f"{len(known)} runs written to {path}"
        + (f", {left} without verdict left out" if left else "")
    )


def _gate(attempts: Sequence[Attempt], gate: float | None, max_unscored: float, to: Console) -> int:
    judged = [a.verdict for a in attempts if a.verdict is not None]
    failed = len(attempts) - len(judged)
    if attempts and failed / len(attempts) > max_unscored:
        warn(f"{failed} of {len(attempts)} trials have no verdict, more than --max-unscored allows")
        return 3
    if gate is None:
        return 0
    if not judged:
        warn("no trial has a verdict: the gate cannot be decided")
        return 4
    rate = sum(v.passed for v in judged) / len(judged)
    to.print(
        f"gate success at least {gate:g}: {rate:.3f} of {len(judged)} trials, "
        f"{failed} without verdict"
    )
    return 0 if rate >= gate else 1
