"""agenteval quantify: score runs on criteria, resumable, within a budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, print_json, warn, warn_list
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.assemble import Limits
    from agenteval.evaluators.base import Evaluator
    from agenteval.models.client import Client
    from agenteval.pipeline import Ended, Plan
    from agenteval.records import Criterion, Run, Task, View
    from agenteval.store import Store


@dataclass(frozen=True)
class _Job:
    """Everything the command line asked for."""

    runs: str
    task: str | None
    criteria: Path | None
    model: str | None
    base_url: str | None
    store: Path | None
    repeats: int
    seed: int
    one_per_call: bool
    temperature: float | None
    with_reference: bool
    limit: int | None
    retry_failed: bool
    max_unscored: float
    limits: Limits
    record: Path | None


def quantify(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file. Default: criteria/TASK.json, else the reviewed set."),
    ] = None,
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
    from agenteval.assemble import Limits
    from agenteval.models.limits import Price

    Verbosity.level = -1 if quiet else Verbosity.level
    price = None if price_in is None and price_out is None else Price(price_in or 0, price_out or 0)
    job = _Job(
        runs, task, criteria, model, base_url, store, repeats, seed, one_per_call,
        None if temperature is None or temperature < 0 else temperature, with_reference, limit,
        retry_failed, max_unscored,
        Limits(concurrency, max_calls, max_cost, price, timeout), record,
    )  # fmt: skip
    code = run_job(job, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(code)


def run_job(job: _Job, *, dry_run: bool, as_json: bool) -> int:
    """Plan, run and show; returns the exit code."""
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria

    items, task = _read_items(job)
    path = job.criteria or find_criteria(task.name)
    loaded = load_criteria(path)
    note(f"criteria: {path} ({len(loaded.criteria.criteria)})")
    warn_list("criteria read with changes:", loaded.notes)
    if dry_run:
        return _dry(job, items, task, loaded.criteria.criteria)
    from agenteval.pipeline import experiment_of, make_plan
    from agenteval.store import Store, default_path

    with Store(job.store or default_path()) as store:
        evaluator, client = _judge(job, task, store)
        with store.lock(experiment_of(evaluator, task.name)):
            plan = make_plan(
                evaluator, items, loaded.criteria.criteria, store,
                repeats=job.repeats, retry_failed=job.retry_failed,
            )  # fmt: skip
            _say_plan(plan)
            ended = _run(plan, evaluator, client, store, job)
        return _finish(job, plan, ended, store, evaluator, as_json)


def _read_items(job: _Job) -> tuple[list[tuple[Run, View]], Task]:
    from agenteval.readers import find_leaks, make_view, read_runs

    result = read_runs(job.runs, task=job.task or "")
    for skipped in result.skipped:
        note(f"skipped {skipped.path}: {skipped.reason}")
    warn_list("warnings while reading:", result.warnings)
    runs = result.runs[: job.limit]
    note(f"{len(result.runs)} runs read" + (f", the first {len(runs)} used" if job.limit else ""))
    task = _task(job, runs)
    items = [
        (
            run.model_copy(update={"task": task.name}),
            make_view(run, with_reference=job.with_reference),
        )
        for run in runs
    ]
    leaks = [
        f"{run.id}: {leak.kind} in {leak.where}: {leak.excerpt}"
        for run, view in items
        for leak in find_leaks(run, view)
    ]
    if leaks and not job.with_reference:
        warn_list("the judge may see the answer or the verdict:", leaks, most=5)
    return items, task


def _task(job: _Job, runs: list[Run]) -> Task:
    from agenteval.readers.tasks import find_task

    names = {r.task for r in runs if r.task}
    name = job.task or (names.pop() if len(names) == 1 else None)
    if name is None:
        beside = Path(job.runs).parent
        if (beside / "task.yaml").is_file():
            name = str(beside)
    if name is None:
        raise InputError("the runs name no task, or several; say which one", "--task")
    return find_task(name).task


def _judge(job: _Job, task: Task, store: Store) -> tuple[Evaluator, Client | None]:
    """The judge; its client is None when it computes on this machine."""
    from agenteval.assemble import JudgeOptions, chat_judge, embedded_judge, make_client
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url)
    if choice.kind == "embedded":
        note("judge: the embedded model, since no other is configured" if job.model is None
             else "judge: the embedded model")  # fmt: skip
        return embedded_judge(choice, job.seed), None
    client = make_client(choice, job.limits, store, record=job.record)
    judge_options = JudgeOptions(job.one_per_call, job.temperature, seed=job.seed)
    evaluator = chat_judge(client, task, judge_options)
    client.budget = job.limits.budget(store.usage(evaluator.source.sha256))
    return evaluator, client


def _say_plan(plan: Plan) -> None:
    kept = f", {plan.done} already scored" if plan.done else ""
    failed = (
        f", {plan.failed} not in form and left so (--retry-failed asks again)"
        if plan.failed
        else ""
    )
    note(f"{plan.cells} cells{kept}{failed}; {plan.open} to judge in {len(plan.units)} calls")


def _run(
    plan: Plan, evaluator: Evaluator, client: Client | None, store: Store, job: _Job
) -> Ended | None:
    """Run the plan; None when it was interrupted."""
    import asyncio

    from agenteval.cli.progress import live
    from agenteval.pipeline import execute

    # Twice as many workers as requests in flight: while some wait for their commit, others keep
    # every connection busy (an idle one is polled by the HTTP pool at each request).
    workers = 2 * job.limits.concurrency if client else 1

    async def work(update: Any) -> Ended:
        try:
            return await execute(plan, evaluator, store, workers=workers, on_progress=update)
        finally:
            if client is not None:
                await client.close()

    try:
        with live(plan, "judging") as update:
            return asyncio.run(work(update))
    except KeyboardInterrupt:
        return None


def _finish(
    job: _Job, plan: Plan, ended: Ended | None, store: Store, evaluator: Evaluator, as_json: bool
) -> int:
    from agenteval.analysis import load_ratings
    from agenteval.cli.table import Report, print_table, table_json

    ratings = load_ratings(
        store,
        evaluator.source.sha256,
        run_keys=[view.sha256 for _, view in plan.items],
        criterion_keys=[c.sha256 for c in plan.criteria],
        repeats=plan.repeats,
    )
    report = Report(
        evaluator.source, plan.criteria, tuple(ratings), store.usage(evaluator.source.sha256),
        str(store.path),
    )  # fmt: skip
    if ratings:
        print_json(table_json(report)) if as_json else print_table(report)
    if ended is None:
        warn("interrupted: what is done is stored; the same command goes on from here")
        return 130
    if ended.stopped:
        warn(f"stopped, {ended.left_out} calls not made: {ended.stopped}")
        return 3
    return _gate(job, plan, report.failures)


def _gate(job: _Job, plan: Plan, failures: Any) -> int:
    """3 when too large a share is unscored; what a judge cannot see is not held against it."""
    bad = sum(n for status, n in failures.items() if status != "unscored:unsupported")
    if plan.cells and bad / plan.cells > job.max_unscored:
        warn(
            f"{bad} of {plan.cells} cells are unscored, more than --max-unscored "
            f"{job.max_unscored:g} allows"
        )
        return 3
    return 0


def _dry(
    job: _Job, items: list[tuple[Run, View]], task: Task, criteria: tuple[Criterion, ...]
) -> int:
    """Say what would be done, from what is stored; no model is loaded or asked."""
    from agenteval.cli.dry import describe

    for line in describe(job, items, task, criteria):
        out().print(clean(line))
    return 0
