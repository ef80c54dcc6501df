"""Page 1 of the viewer: experiments with verdict, cost and pass rate, and running ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agenteval.errors import InputError
from agenteval.records import Source
from agenteval.records.table import Estimate, column, table_of
from agenteval.reporting.page import Listing, Page, PageSection, Text
from agenteval.stats.proportion import proportion_interval
from agenteval.store import Store
from agenteval.store.browse import (
    BegunExperiment,
    begun_experiments,
    labelled_successes,
    outcomes_of,
)
from agenteval.store.experiments import StoredExperiment, open_experiments, short, unfinished_of
from agenteval.text import plural
from agenteval.view.server import Viewer, page_path, respond, viewer_of

MOST_COUNTED = 50_000  # planned cells up to which progress is counted before the page is sent
_EVERY = 2.0  # seconds between two messages about progress
# Outcomes of trials that passed, and that did not; others are undecided. None: all others failed.
_DECIDED: dict[str, tuple[str, str | None]] = {
    "planning": ("pass", None),
    "workflows": ("success", "failure"),
}
_GATES = {0: "passed", 4: "undecided", 5: "failed"}


@dataclass(frozen=True)
class _ExperimentRow:
    name: str = column("judge, agent or finder")
    task: str | None = column("task", default=None)
    begun: str | None = column("begun", default=None)
    runs: int | None = column("runs or cases", "count", default=None)
    planned: int | None = column("results planned", "count", default=None)
    state: str = column("state", default="unknown")
    verdict: str | None = column("verdict", default=None)
    gate: str | None = column(
        "gate", hint="passes if the judge is trustworthy, as in `verify`", default=None
    )
    cost: float | None = column("cost of all calls", "money", default=None)
    passed: Estimate | None = column(
        "pass rate",
        "share",
        "95% (Wilson) over runs or trials, taken as independent",
        default=None,
    )
    decided: int | None = column(
        "of", "count", "runs or trials whose success is known", default=None
    )


@dataclass(frozen=True)
class RunningExperiment:
    """An experiment that is not finished; `stored` is None where it was not counted yet."""

    source_key: str
    name: str
    planned: int
    stored: int | None
    line: str


def experiments_page(viewer: Viewer, request: Request) -> Response:
    """All experiments, the latest first, and the progress of those that are not finished."""
    store = viewer.store
    sources = dict(store.sources(trials=True))
    judges = dict(store.sources())
    experiments = begun_experiments(store)
    begun = {experiment.source_key for experiment in experiments}
    labels = {short([k])[0]: label for k, label in labelled_successes(store).items()}
    rows, links = [], {}
    for experiment in experiments:
        key = experiment.source_key
        name = f"{experiment.name} {key[:8]}"
        links[name] = source_link(key, experiment.evaluator, judge=key in judges)
        rows.append(_row(store, name, experiment, labels))
    for key, source in reversed(sources.items()):
        if key not in begun:  # older than the table of experiments
            name = f"{source.model} {key[:8]}"
            links[name] = source_link(key, source.evaluator, judge=key in judges)
            verdict, gate = _verdict(store, key)
            cost = store.usage(key).cost
            rows.append(_ExperimentRow(name=name, verdict=verdict, gate=gate, cost=cost))
    empty = ["task", "verdict", "gate", "cost", "passed", "decided"]
    table = table_of(_ExperimentRow, "experiments", "Experiments", rows, drop_empty=empty)
    nothing = Text(
        "Nothing is stored yet. Score some runs with `agenteval quantify`, or try `demo`."
    )
    blocks = [Listing(table, links, titled=False)] if rows else [nothing]
    as_of = minute(time.time())
    lead = f"{plural(len(rows), 'experiment')}, as of {as_of}. Choose one to see its runs."
    page = Page("view", "Experiments", lead, [PageSection("experiments", "", blocks)])
    return respond(request, "experiments.html", page=page, running=running(store))


def source_link(key: str, evaluator: str, *, judge: bool) -> str:
    """Return the page of a source's results: the grid of a judge, or the trials of an agent."""
    if judge:
        return page_path("/grid", judge=key[:16])
    return page_path("/trials", evaluator=evaluator, system=key[:16])


def running(store: Store, most: int | None = MOST_COUNTED) -> list[RunningExperiment]:
    """Return unfinished experiments. Above `most` planned results they are not counted."""
    begun = open_experiments(store)
    counted = [e for e in begun if most is None or e.planned <= most]
    lines = [
        RunningExperiment(e.source, _name(e), e.planned, None, f"{e.planned:,} results are planned")
        for e in begun
        if e not in counted
    ]
    return lines + [
        RunningExperiment(o.experiment.source, _name(o.experiment), o.planned, o.stored, o.line)
        for o in unfinished_of(store, dict.fromkeys(e.source for e in counted))
        if o.experiment in counted
    ]


def _name(experiment: StoredExperiment) -> str:
    return f"{experiment.name} {experiment.source[:8]}"


async def progress(request: Request) -> Response:
    """Send the progress of running experiments as server-sent events until all are finished.

    WHATWG, HTML Living Standard, section 9.2.
    """
    store = viewer_of(request).store

    async def events() -> AsyncIterator[str]:
        while not await request.is_disconnected():
            lines = await run_in_threadpool(running, store, None)
            fields = [
                {"key": x.source_key, "stored": x.stored, "planned": x.planned, "line": x.line}
                for x in lines
            ]
            yield f"data: {json.dumps(fields)}\n\n"
            if not lines:
                return
            await asyncio.sleep(_EVERY)

    return StreamingResponse(events(), media_type="text/event-stream")


def _row(
    store: Store,
    name: str,
    experiment: BegunExperiment,
    labels: Mapping[str, tuple[str, bool | None]],
) -> _ExperimentRow:
    """Return the row of an experiment. Trials that failed, or whose verdict is undecided, are not
    in its pass rate."""
    key, task = experiment.source_key, None
    judged = [labels[row] for row in experiment.rows if row in labels]
    if judged:
        labelled = [success for _, success in judged if success is not None]
        task = Counter(task for task, _ in judged).most_common(1)[0][0]
        passed, decided = sum(labelled), len(labelled)
    else:
        success, failure = _DECIDED.get(experiment.evaluator.partition(".")[0], ("", ""))
        outcomes = outcomes_of(store, key)
        passed = outcomes.get(success, 0)
        decided = passed + outcomes.get(failure or "", 0)
        if failure is None:
            decided = sum(outcomes.values())
    verdict, gate = _verdict(store, key)
    return _ExperimentRow(
        name=name,
        task=task,
        begun=minute(experiment.begun),
        runs=len(experiment.rows),
        planned=experiment.planned,
        state="not finished" if experiment.finished is None else "finished",
        verdict=verdict,
        gate=gate,
        cost=store.usage(key).cost,
        passed=Estimate.of(proportion_interval(passed, decided)) if decided else None,
        decided=decided,
    )


def _verdict(store: Store, key: str) -> tuple[str | None, str | None]:
    stored = store.verdict_on(key)
    if stored is None:
        return None, None
    judge = stored.result.judge
    return judge.verdict, _GATES[judge.exit_code()]


def minute(seconds: float) -> str:
    """Return a time (seconds since 1970) as local date and minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def judge_of(store: Store, start: str | None) -> tuple[str, Source] | None:
    """Return the judge with this start of its key (default: the last used), or None."""
    judges = store.sources()
    chosen = [judge for judge in judges if start is None or judge[0].startswith(start)]
    return chosen[-1] if chosen else None


def chosen_judge(store: Store, start: str | None) -> tuple[str, Source]:
    """Return the judge as `judge_of`. Raises InputError without any."""
    judge = judge_of(store, start)
    if judge is None:
        raise InputError("no judge of this store has results yet", start or "judge")
    return judge


def judge_choices(store: Store) -> list[tuple[str, str]]:
    """Return the start of the key and the name of every judge, the one used last first."""
    return [(key[:16], judge_name(key, source)) for key, source in reversed(store.sources())]


def judge_name(key: str, source: Source) -> str:
    """Return the model with the start of its hash: a judge is more than its model."""
    return f"{source.model} {key[:8]}"
