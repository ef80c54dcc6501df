"""Export human labels as ratings, or a labelling page that needs no server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.analysis.human_labels import QueuePlan, drawn_queue, labelled_queue
from agenteval.analysis.rating_sources import StoredJudge
from agenteval.analysis.sampling import By
from agenteval.cli.running import opened
from agenteval.errors import InputError
from agenteval.files import file_in, write_atomically
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.store import Store
from agenteval.store.labels import LabelQueue, Labels
from agenteval.text import plural
from agenteval.traces.annotations import write_folder
from agenteval.view.labelling import findings_of_raters
from agenteval.view.offline import label_page, label_rows


@dataclass(frozen=True)
class QueueDraw:
    """A new queue: number of runs, judge and task, and how runs are drawn."""

    n: int
    by: By = "random"
    seed: int = 0
    judge: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class _QueueLine:
    queue: str = column("queue")
    task: str = column("task")
    runs: int = column("runs", "count")
    criteria: int = column("criteria", "count")
    labels: int = column("labels", "count")
    raters: str = column("raters")


@dataclass(frozen=True, kw_only=True)
class LabelReport(Report):
    """The queue that was exported; `rows` are its labels (empty for a page)."""

    rows: tuple[dict[str, Any], ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """The labels, a row for each rater, run and criterion."""
        return [dict(row) for row in self.rows]


def export_labels(
    path: str | Path,
    store: str | Path | Store | None = None,
    *,
    queue: str | None = None,
    draw: QueueDraw | None = None,
) -> LabelReport:
    """Write a queue's labels (.jsonl, .csv, .json) or, as .html, a page to label it on; to a path
    without suffix, a folder of findings in traces for each rater, in TRAIL's layout.

    The page loads and sends nothing; the file that a rater downloads from it is read by `agree`.
    With `draw` a new queue is drawn first and kept in the store. Raises InputError for a queue that
    does not exist or has no labels, StoreError for a store that cannot be read.
    """
    path = Path(path)
    if not path.suffix:
        return _export_findings(path, store)
    if queue is not None and draw is not None:
        raise InputError("choose a queue, or draw a new one with --n", "--queue")
    with opened(store, create=False) as opened_store:
        name = queue if draw is None else _drawn(opened_store, draw).name
        labelled = labelled_queue(opened_store, name)
        rows: list[dict[str, Any]] = []
        if path.suffix == ".html":
            write_atomically(path, label_page(opened_store, labelled))
        else:
            rows = label_rows(labelled)
            if not rows:
                raise InputError(f"the queue {labelled.queue.name!r} has no labels yet", "--queue")
    line = _QueueLine(
        queue=labelled.queue.name,
        task=labelled.queue.task,
        runs=len(labelled.queue.items),
        criteria=len(labelled.criteria),
        labels=sum(len(table) for table in labelled.people.values()),
        raters=", ".join(labelled.people),
    )
    report = LabelReport(
        title=f"labels of {labelled.queue.name}",
        tables=(table_of(_QueueLine, "queue", "Queue", [line]),),
        notes=labelled.notes,
        rows=tuple(rows),
    )
    if rows:
        report.save(path)
    return report


@dataclass(frozen=True)
class _RaterLine:
    rater: str = column("rater")
    traces: int = column("traces", "count")
    findings: int = column("findings", "count")


def _export_findings(folder: Path, store: str | Path | Store | None) -> LabelReport:
    with opened(store, create=False) as opened_store:
        by_rater = findings_of_raters(opened_store)
    if not by_rater:
        raise InputError("this store has no errors marked in traces", "--export")
    used_names: set[str] = set()
    for rater, findings in by_rater.items():
        place = file_in(folder, rater, "", used_names)
        place.mkdir(parents=True, exist_ok=True)
        write_folder(place, findings)
    lines = [
        _RaterLine(rater, len(findings), sum(len(f.findings) for f in findings))
        for rater, findings in by_rater.items()
    ]
    table = table_of(_RaterLine, "raters", "Findings in traces", lines)
    return LabelReport(title="findings of people in traces", tables=(table,))


def _drawn(store: Store, draw: QueueDraw) -> LabelQueue:
    judge = StoredJudge.find(store, draw.judge, draw.task)
    labels = Labels(store)
    name = plain = f"{plural(draw.n, 'run')}, {draw.by}, seed {draw.seed}"
    number = 1
    while name in labels.queues():
        number += 1
        name = f"{plain} ({number})"
    queue = drawn_queue(judge, QueuePlan(name), draw.n, by=draw.by, seed=draw.seed)
    labels.add_queue(queue)
    return queue
