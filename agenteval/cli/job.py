"""What `quantify` and `verify` share: from the options to runs, a judge and a plan that is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import note, warn, warn_list
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.utility.plan import CellPlan
    from agenteval.experiment import Ended
    from agenteval.models.client import Client
    from agenteval.models.limits import Limits
    from agenteval.records import Criterion, Run, Task, View
    from agenteval.store import Store


@dataclass(frozen=True)
class Job:
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
    findings: Path | None = None  # of errors in the runs' traces, shown to the judge
    datamark: bool = False  # a sign for every space of what is graded
    system: str | None = None  # the name of the system of runs that name none


def relabel(store: Store, criteria: Iterable[Criterion]) -> None:
    """Stored ratings follow the order that the criteria have now; one line for each of them."""
    for told in store.relabel(criteria):
        warn(told.line)


def make_limits(
    concurrency: int,
    max_calls: int | None,
    max_cost: float | None,
    price_in: float | None,
    price_out: float | None,
    timeout: float,
) -> Limits:
    """The bounds of a command. Raises InputError for one price without the other: a cost of which
    half is unknown would be told, and capped, too low."""
    from agenteval.models.limits import Limits, Price

    if (price_in is None) != (price_out is None):
        missing = "--price-out" if price_out is None else "--price-in"
        raise InputError("one price without the other gives no cost; say both", missing)
    price = None if price_in is None or price_out is None else Price(price_in, price_out)
    return Limits(concurrency, max_calls, max_cost, price, timeout)


def read_items(job: Job) -> tuple[list[tuple[Run, View]], Task]:
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
    if job.findings is not None:
        items = _with_findings(items, job.findings)
    if job.system is not None:
        items = _of_system(items, job.system)
    leaks = [
        f"{run.id}: {leak.kind} in {leak.where}: {leak.excerpt}"
        for run, view in items
        for leak in find_leaks(run, view)
    ]
    if leaks and not job.with_reference:
        warn_list("the judge may see the answer or the verdict:", leaks, most=5)
    return items, task


def _of_system(items: list[tuple[Run, View]], name: str) -> list[tuple[Run, View]]:
    """The runs that name no system become those of this one. Its name stands in their ids as well,
    so that versions of a system may use the same ids, or give the same answers."""
    from agenteval.readers.systems import check_name
    from agenteval.records import View

    check_name(name, "--system")
    nameless = sum(run.system == "unnamed" for run, _ in items)
    if not nameless:
        raise InputError("every run names its system already", "--system")
    note(f"{nameless} of {len(items)} runs name no system: they are those of {name} now")
    return [
        (run, view)
        if run.system != "unnamed"
        else (
            run.model_copy(update={"system": name, "id": f"{name}/{run.id}"}),
            View.model_validate({**view.model_dump(), "run_id": f"{name}/{run.id}"}),
        )
        for run, view in items
    ]


def warn_of_versions(store: Store, items: list[tuple[Run, View]]) -> None:
    """A line where these runs would be taken for others of the store, or together with them."""
    from agenteval.store.rows import case_key
    from agenteval.text import plural
    from agenteval.trust.means import cases_answered_twice

    own = {view.sha256: run for run, view in items}
    tasks = {run.task for run, _ in items}
    stored, moved = [], []
    for key, row in store.runs().items():
        if key in own and row["system"] != own[key].system:
            moved.append(f"{row['run_id']} of {row['system']}")
        elif key not in own and row["origin"] is None and row["task"] in tasks:
            stored.append(row)
    if moved:
        warn(
            f"{plural(len(moved), 'run')} stood in the store with this id and text as those of "
            f"another system (first: {min(moved)}) and change their system: give ids of their own"
        )
    ids = {run.id for run, _ in items}
    replaced = {row["run_id"] for row in stored if row["run_id"] in ids}
    if replaced:
        first = next(run.id for run, _ in items if run.id in replaced)
        warn(
            f"{plural(len(replaced), 'run')} stood in the store with another text (first: {first});"
            " tables show the newest text alone: name each version of a system with --system"
        )
    systems = {run.system for run, _ in items}
    answers = [
        (row["system"], row["case_key"], row["run_id"])
        for row in stored
        if row["system"] in systems
    ]
    answers += [(run.system, case_key(run), run.id) for run, _ in items]
    for line in cases_answered_twice(answers):
        warn(line)


def _with_findings(items: list[tuple[Run, View]], folder: Path) -> list[tuple[Run, View]]:
    from agenteval.evaluators.traces.annotation_files import read_folder
    from agenteval.evaluators.traces.as_evidence import with_findings

    said = {one.trace: one.findings for one in read_folder(folder)}
    missing = [run.id for run, _ in items if run.id not in said or said[run.id].status is not None]
    if len(missing) == len(items):
        raise InputError("no run has findings here; they go by the id of the trace", str(folder))
    if missing:
        note(f"{len(missing)} of {len(items)} runs have no findings in {folder}: the judge is "
             "told that they were not examined")  # fmt: skip
    name = folder.resolve().name
    return [
        (run, with_findings(view, said.get(run.id), name, {s.id: s for s in run.spans}))
        for run, view in items
    ]


def _task(job: Job, runs: list[Run]) -> Task:
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


def make_judge(job: Job, task: Task, store: Store) -> tuple[Evaluator, Client | None]:
    """The judge; its client is None when it computes on this machine."""
    from agenteval.evaluators.utility.quantifier import QuantifierOptions, chat_judge
    from agenteval.models.factory import choose_model, make_client

    choice = choose_model(job.model, job.base_url)
    if choice.kind == "embedded" and job.datamark:
        raise InputError("the embedded judge reads no instructions to be marked off", "--datamark")
    if choice.kind == "embedded":
        note("judge: embedded" + (", since no other is configured" if job.model is None else "")
             + ": it grades conciseness, by length, and nothing else")  # fmt: skip
        from agenteval.evaluators.utility.embedded import EmbeddedJudge
        from agenteval.evaluators.utility.guard import Guarded

        return Guarded(EmbeddedJudge(seed=job.seed)), None
    client = make_client(choice, job.limits, store, record=job.record)
    judge_options = QuantifierOptions(
        job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark
    )
    evaluator = chat_judge(client, task, judge_options)
    client.budget = job.limits.budget(store.usage(evaluator.source.sha256))
    return evaluator, client


def say_plan(plan: CellPlan) -> None:
    kept = f", {plan.done} already scored" if plan.done else ""
    failed = (
        f", {plan.failed} without a score and left so (--retry-failed asks again)"
        if plan.failed
        else ""
    )
    note(f"{plan.cells} cells{kept}{failed}; {plan.open} to judge in {len(plan.units)} calls")


def run_plan(plan: CellPlan, client: Client | None, store: Store, job: Job) -> Ended | None:
    """Run the plan; None when it was interrupted."""
    import asyncio

    from agenteval.cli.progress import live
    from agenteval.errors import Unauthorized
    from agenteval.experiment import Experiment
    from agenteval.models.factory import choose_model

    # Twice as many workers as requests in flight: while some wait for their commit, others keep
    # every connection busy (an idle one is polled by the HTTP pool at each request).
    workers = 2 * job.limits.concurrency if client else 1

    async def work(update: Any) -> Ended:
        try:
            experiment = Experiment(plan, store, workers=workers, client=client, on_interrupt=note)
            return await experiment.run(update)
        finally:
            if client is not None:
                await client.close()

    try:
        with live(len(plan.units), "judging") as update:
            return asyncio.run(work(update))
    except KeyboardInterrupt:
        return None
    except Unauthorized as error:
        names = choose_model(job.model, job.base_url).key_variables
        raise Unauthorized(f"{error}; the key is read from {names}") from error
