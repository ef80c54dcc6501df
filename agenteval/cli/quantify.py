"""agenteval quantify: score runs on criteria, resumable, within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, out, print_json, warn, warn_list
from agenteval.cli.job import (
    Job,
    make_judge,
    make_limits,
    read_items,
    relabel,
    run_plan,
    say_plan,
    warn_of_versions,
)
from agenteval.cli.outputs import check_record

if TYPE_CHECKING:
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.utility.plan import CellPlan
    from agenteval.experiment import Ended
    from agenteval.store import Store


def quantify(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file. Default: criteria/TASK.json, else the reviewed set."),
    ] = None,
    system: options.SystemName = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    store: options.StorePath = None,
    repeats: Annotated[int, typer.Option(help="How often each run is judged.", min=1)] = 1,
    seed: options.Seed = 0,
    one_per_call: Annotated[
        bool, typer.Option("--one-per-call", help="One criterion per request: less halo, n × cost.")
    ] = False,
    temperature: options.Temperature = 1.0,
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Show the judge the reference answer.")
    ] = False,
    findings: Annotated[
        Path | None,
        typer.Option(help="Show the judge errors found in the traces (a folder of findings)."),
    ] = None,
    datamark: Annotated[
        bool,
        typer.Option("--datamark", help="Mark what is graded word by word, against injection."),
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first N runs.", min=1)] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again where a reply was not in form.")
    ] = False,
    max_unscored: Annotated[
        float, typer.Option(help="Exit 3 when a larger share of cells is unscored.", min=0, max=1)
    ] = 0.1,
    concurrency: options.Concurrency = 8,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 120.0,
    record: options.Record = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Score every run on every criterion. Stop it at any time; the same command goes on."""

    Verbosity.level = -1 if quiet else Verbosity.level
    job = Job(
        runs, task, criteria, model, base_url, store, repeats, seed, one_per_call,
        None if temperature is None or temperature < 0 else temperature, with_reference, limit,
        retry_failed, max_unscored,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, timeout), record,
        findings, datamark, system,
    )  # fmt: skip
    check_record(record, [criteria], [runs, findings], model, store=store)
    code = run_job(job, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(code)


def run_job(job: Job, *, dry_run: bool, as_json: bool) -> int:
    """Plan, run and show; returns the exit code."""
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria

    items, task = read_items(job)
    path = job.criteria or find_criteria(task.name)
    loaded = load_criteria(path, task=task.name)
    note(f"criteria: {path} ({len(loaded.criteria.criteria)})")
    warn_list("about the criteria:", loaded.notes)
    if dry_run:
        from agenteval.cli import bills, dry

        dry.show(bills.quantify(job, items, task, loaded.criteria.criteria), as_json=as_json)
        return 0
    from agenteval.evaluators.utility.plan import experiment_of, make_plan
    from agenteval.store import Store, default_path

    with Store(job.store or default_path()) as store:
        warn_of_versions(store, items)
        evaluator, client = make_judge(job, task, store)
        with store.lock(experiment_of(evaluator, task.name)):
            relabel(store, loaded.criteria.criteria)
            plan = make_plan(
                evaluator, items, loaded.criteria.criteria, store,
                repeats=job.repeats, retry_failed=job.retry_failed,
            )  # fmt: skip
            say_plan(plan)
            ended = run_plan(plan, client, store, job)
        return _finish(job, plan, ended, store, evaluator, as_json)


def _finish(
    job: Job, plan: CellPlan, ended: Ended | None, store: Store, evaluator: Evaluator, as_json: bool
) -> int:
    from agenteval.cli.ending import how_far, say_early
    from agenteval.cli.flags import flags_of
    from agenteval.cli.table import Report, print_table, table_json
    from agenteval.trust.means import load_ratings

    with store.snapshot():
        ratings = load_ratings(
            store,
            evaluator.source.sha256,
            run_keys=[view.sha256 for _, view in plan.items],
            criterion_keys=[c.sha256 for c in plan.criteria],
            repeats=plan.repeats,
        )
        usage = store.usage(evaluator.source.sha256)
    report = Report(
        evaluator.source, plan.criteria, tuple(ratings), usage, str(store.path),
        flags_of(plan.items),
    )  # fmt: skip
    far = how_far(ended, plan, ratings)
    if ratings and far and not as_json:
        out().print(f"[yellow]not complete: {far}[/yellow]")
    if ratings:
        print_json(table_json(report)) if as_json else print_table(report)
    if far is not None:
        return say_early(ended, far)
    return _gate(job, plan, report.failures)


def _gate(job: Job, plan: CellPlan, failures: Any) -> int:
    """3 when too large a share is unscored; what a judge cannot see is not held against it."""
    bad = sum(n for status, n in failures.items() if status != "unscored:unsupported")
    if plan.cells and bad / plan.cells > job.max_unscored:
        warn(
            f"{bad} of {plan.cells} cells are unscored, more than --max-unscored "
            f"{job.max_unscored:g} allows"
        )
        return 3
    return 0
