"""Pages of the viewer on which people label runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast, get_args

import numpy as np
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agenteval.analysis.human_labels import (
    ADJUDICATED,
    QueuePlan,
    chosen_queue,
    drawn_queue,
    sampled_queue,
)
from agenteval.analysis.rating_sources import StoredJudge, resolve_source
from agenteval.analysis.sampling import By, Sample, draw_among
from agenteval.analysis.scores import run_names
from agenteval.errors import InputError
from agenteval.records.table import column, table_of
from agenteval.reporting.page import Block, Listing, Page, PageSection, Text
from agenteval.store.labels import LabelQueue, Labels
from agenteval.view.experiments import judge_choices
from agenteval.view.grid import across, filtered_runs, ready_index
from agenteval.view.judge_index import JudgeIndex
from agenteval.view.labelling import (
    agree_command,
    differences,
    is_large,
    label_results,
    revealed,
    save_form,
    screen,
    undo,
)
from agenteval.view.server import FormFunction, PageFunction, Viewer, page_path, respond

_LONGEST_NAME = 200
_MOST_CHOSEN = 1000  # runs of a queue that a person chose


@dataclass(frozen=True)
class _QueueCard:
    queue: LabelQueue
    raters: Sequence[str]  # the progress of each rater as text
    seconds: float | None  # median time for an item, of all raters
    results: str


@dataclass(frozen=True)
class _DifferenceRow:
    run: str = column("run")
    criterion: str = column("criterion")
    levels: str = column("corrected by labels")


def queues_page(viewer: Viewer, request: Request) -> Response:
    """The queues with the progress of each rater, and a form for a new one."""
    labels = Labels(viewer.store)
    cards = []
    for queue in reversed(labels.queues().values()):
        states = labels.progress(queue)
        newest = labels.newest(items=queue.items)
        aside = Counter(
            (rater, status)
            for rater, _, status in {(x.rater, x.item_key, x.status) for x in newest}
        )
        raters = [
            f"{rater}: {sum(s.get(rater) == 'done' for s in states.values())} of {len(queue.items)}"
            + "".join(f", {n} {s}" for s in ("declined", "skipped") if (n := aside[rater, s]))
            for rater in sorted({name for by_rater in states.values() for name in by_rater})
        ]
        seconds_of = {(x.rater, x.item_key): x.seconds for x in newest if x.seconds is not None}
        seconds = median(seconds_of.values()) if seconds_of else None
        results = page_path("/label/results", queue=queue.name)
        cards.append(_QueueCard(queue, raters, seconds, results))
    return respond(
        request,
        "queues.html",
        queues=cards,
        judges=judge_choices(viewer.store),
        proposal=f"queue {len(cards) + 1}",
    )


def item_page(viewer: Viewer, request: Request) -> Page | Response:
    """The next item for a rater, or a named one, with the labels of the previous item."""
    if not viewer.labelling:
        raise InputError("this viewer is read-only; start it with --label", "label")
    queue, rater = _queue(viewer, request.query_params), rater_in(request.query_params)
    after = request.query_params.get("after")
    key = request.query_params.get("item") or Labels(viewer.store).next_item(queue, rater, after)
    if key is None:
        where = page_path("/label/results", queue=queue.name, rater=rater)
        return RedirectResponse(where, 303)
    return _item(viewer, request, queue, rater, key)


def _item(
    viewer: Viewer,
    request: Request,
    queue: LabelQueue,
    rater: str,
    key: str,
    refused: tuple[InputError, Mapping[str, str]] | None = None,
) -> Response:
    """Return the page of an item, with a refused form and the reason."""
    store, after = viewer.store, request.query_params.get("after")
    differing = differences(store, queue) if rater == ADJUDICATED else []
    return respond(
        request,
        "label.html",
        422 if refused else 200,
        queue=queue,
        rater=rater,
        screen=screen(store, queue, rater, key, refused[1] if refused else None),
        before=revealed(store, queue, rater, after) if after else [],
        others=[d for d in differing if d.item_key == key],
        problem=str(refused[0]) if refused else "",
        results=page_path("/label/results", queue=queue.name, rater=rater),
    )


def results_page(viewer: Viewer, request: Request) -> Page:
    """Return the page with the results of a queue's labels."""
    queue = _queue(viewer, request.query_params)
    tables, notes = label_results(viewer.store, queue)
    first = [table for table in tables if not table.detail or table.key == "raters"]
    details = [table for table in tables if table not in first and (table.rows or table.notes)]
    rows, links = [], {}
    for d in differences(viewer.store, queue):
        levels = "; ".join(f"{name}: {level}" for name, level in d.levels.items())
        rows.append(_DifferenceRow(d.run, d.criterion, levels))
        links[d.run] = _item_path(queue, ADJUDICATED, item=d.item_key)
    table = table_of(_DifferenceRow, "differences", "Differences", rows)
    shown = Listing(table, links if viewer.labelling else {}, titled=False)
    nothing = [] if tables else [Text("No run of this queue has a label yet.")]
    summary: list[Block] = [*nothing, *(Text(n, "warning") for n in notes), *first]
    return Page(
        "view",
        f"Labels of {queue.name}",
        "Agreement of the judge with every rater, and its means corrected by the labels.",
        [
            PageSection("summary", "Agreement and means", summary),
            PageSection(
                "differences",
                "Raters differ",
                [shown] if rows else [],
                f"Open a run to decide; the decision is saved under the name {ADJUDICATED!r}.",
            ),
            PageSection("details", "Details", details),
        ],
        facts=[("The same in the terminal", agree_command(queue))],
    )


def _item_path(queue: LabelQueue, rater: str, **more: str | None) -> str:
    return page_path("/label/item", queue=queue.name, rater=rater, **more)


def save(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Save the labels of an item, and go on to the next."""
    queue, rater, key = _queue(viewer, form), rater_in(form), form.get("item", "")
    try:
        save_form(viewer.store, queue, rater, key, form)
    except InputError as error:
        if key not in queue.items:
            raise
        return _item(viewer, request, queue, rater, key, (error, form))
    return RedirectResponse(_item_path(queue, rater, after=key), 303)


def take_back(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Undo the rater's last save, and show the item again."""
    queue, rater = _queue(viewer, form), rater_in(form)
    key = undo(viewer.store, queue, rater)
    return RedirectResponse(_item_path(queue, rater, item=key), 303)


def make_queue(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Draw a new queue, and show all of them."""
    name, by = _queue_name(form), form.get("by", "random")
    if by not in get_args(By):
        raise InputError(f"{by!r} is none of: {', '.join(get_args(By))}", "by")
    n, seed = _number(form, "n", 1), _number(form, "seed", 0)
    per_item = _number(form, "per_item", 1) if form.get("per_item") else None
    plan, task = QueuePlan(name, (), per_item), form.get("task", "").strip() or None
    key, _ = resolve_source(viewer.store, form.get("judge") or None)
    if is_large(viewer.store, key):
        index = ready_index(viewer, key)
        sample, keys = _drawn_by_index(index, task, n, cast("By", by), seed)
        among = [keys[run] for run in sample.weights]
        judge = StoredJudge.find(viewer.store, key, task, among=among)
        queue = sampled_queue(judge, plan, sample, keys)
    else:
        judge = StoredJudge.find(viewer.store, key, task)
        queue = drawn_queue(judge, plan, n, by=cast("By", by), seed=seed)
    Labels(viewer.store).add_queue(queue)
    return RedirectResponse("/label", 303)


def _drawn_by_index(
    index: JudgeIndex, task: str | None, n: int, by: By, seed: int
) -> tuple[Sample, dict[str, str]]:
    """Draw as `drawn_queue` from the figures of a large judge; return the draw, and the keys of all
    runs by name. Raises InputError."""
    tasks = sorted({run.task for run in index.runs})
    if task is None and len(tasks) > 1:
        raise InputError(f"choose one of the tasks: {', '.join(tasks)}", "task")
    rows = [i for i, run in enumerate(index.runs) if task in (None, run.task)]
    runs = [index.runs[i] for i in rows]
    items = {run.key: {"task": run.task, "system": run.system, "run_id": run.id} for run in runs}
    names = run_names(items, items)
    once = np.isnan(index.spreads) & ~np.isnan(index.means)  # all repeats agree
    means = across(index.means, mean=True)
    spreads = across(np.where(once, 0, index.spreads), mean=True)
    rated = {names[index.runs[i].key]: i for i in rows if not np.isnan(means[i])}
    repeated = not np.isnan(index.spreads).all()
    sample = draw_among(
        {run: float(means[i]) for run, i in rated.items()},
        {run: float(spreads[i]) for run, i in rated.items()} if repeated else None,
        n,
        by=by,
        seed=seed,
    )
    return sample, {name: key for key, name in names.items()}


def choose_queue(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Create a queue of the first runs of the grid in its current filter and order."""
    name = _queue_name(form)
    n = min(_number(form, "n", 1), _MOST_CHOSEN)
    key, items = filtered_runs(viewer, QueryParams(form.get("filter", "")))
    judge = StoredJudge.find(viewer.store, key, None, among=items[:n])
    Labels(viewer.store).add_queue(chosen_queue(judge, QueuePlan(name), items[:n]))
    return RedirectResponse("/label", 303)


def _queue_name(form: Mapping[str, str]) -> str:
    name = form.get("name", "").strip()[:_LONGEST_NAME]
    if not name:
        raise InputError("a queue needs a name", "name")
    return name


def _number(form: Mapping[str, str], name: str, least: int) -> int:
    try:
        number = int(form.get(name, ""))
    except ValueError:
        number = least - 1
    if not least <= number < 2**31:
        raise InputError(f"{form.get(name, '')!r} is not a whole number from {least}", name)
    return number


def _queue(viewer: Viewer, values: Mapping[str, str]) -> LabelQueue:
    queues = Labels(viewer.store).queues()
    name = values.get("queue", "")
    if name not in queues:
        raise InputError(f"there is no queue {name!r}", "queue")
    return queues[name]


def rater_in(values: Mapping[str, str]) -> str:
    """Return the name of the rater in a query or form. Raises InputError without one."""
    name = values.get("rater", "").strip()[:_LONGEST_NAME]
    if not name:
        raise InputError("enter your name, so that your labels can be identified", "rater")
    return name


PAGES: dict[str, PageFunction] = {
    "/label": queues_page,
    "/label/item": item_page,
    "/label/results": results_page,
}
FORMS: dict[str, FormFunction] = {
    "/label/save": save,
    "/label/undo": take_back,
    "/label/queue": make_queue,
    "/label/chosen": choose_queue,
}
