"""Labels that people give in the viewer, and the queues that they work on.

Every label is one transaction that adds a row. Rows are never changed or removed, so two raters or
windows cannot lose each other's work.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import Connection, Select, and_, delete, func, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError
from agenteval.records.base import Record
from agenteval.store import schema
from agenteval.store.connect import dialect_of, reading, store_error, writing
from agenteval.store.rows import encode, valid
from agenteval.store.store import Store
from agenteval.text import encodable

# "skipped": later; "declined": the rater cannot label it; "withdrawn": undone.
LabelStatus = Literal["scored", "not_applicable", "skipped", "declined", "withdrawn"]

DONE = ("scored", "not_applicable", "declined")  # the rater is not asked again
CLAIMED = 900.0  # seconds for which an item is kept for the rater to whom it is shown


class HumanLabel(Record):
    """A rater's label of an item on a criterion.

    `criterion_key` is "" for findings on a whole trace. `value` is 0 (worst) to 1 (best), or None
    without an order or a label. `seconds` is the time from showing the item to saving, and `saved`
    is in seconds since 1970. `findings` are in TRAIL's layout.
    """

    rater: str
    item_key: str
    criterion_key: str = ""
    status: LabelStatus = "scored"
    label: str | None = None
    value: float | None = None
    seconds: float | None = None
    saved: float = 0.0
    evidence: str = ""
    findings: tuple[dict[str, JsonValue], ...] = ()


class LabelQueue(Record):
    """Items to be labelled, in the order in which they are shown.

    `weights` holds for every item one over its probability of being drawn; they are None for a
    queue that a person chose, whose labels say nothing about other runs. `sample` names the draw
    (`analysis.sampling.Sample.name`). `per_item` raters label an item, None for all of them.
    """

    name: str
    task: str
    source_key: str
    items: tuple[str, ...]
    criteria: tuple[str, ...]  # content hashes; empty: findings on traces
    weights: tuple[float, ...] | None = None
    sample: str | None = None
    per_item: int | None = None
    made: float = 0.0


class Labels:
    """The labels and queues of a store. Raises StoreError where it cannot be read or written."""

    def __init__(self, store: Store) -> None:
        self._engine = store.engine

    def check_writable(self) -> None:
        """Remove expired claims. Raises StoreError if nothing can be written."""
        expired = schema.claims.c.claimed < time.time() - CLAIMED
        with self._writing() as connection:
            connection.execute(delete(schema.claims).where(expired))

    # -- labels ------------------------------------------------------------------------------------

    def add(self, labels: Sequence[HumanLabel]) -> None:
        """Save labels in one transaction; they are durable on return, all of them or none."""
        now = time.time()
        rows = [
            {
                "rater": encodable(label.rater),
                "item_key": label.item_key,
                "criterion_key": label.criterion_key,
                "status": label.status,
                "label": None if label.label is None else encodable(label.label),
                "value": label.value,
                "seconds": label.seconds,
                "saved": now,
                "detail": encode({"evidence": label.evidence, "findings": list(label.findings)}),
            }
            for label in labels
        ]
        if rows:
            with self._writing() as connection:
                connection.execute(insert(schema.labels), rows)

    def newest(
        self, *, rater: str | None = None, items: Collection[str] | None = None
    ) -> list[HumanLabel]:
        """Return the current label of each rater, item and criterion, oldest first, without
        withdrawn ones."""
        c, counting = schema.labels.c, self._counting(items)
        if rater is not None:
            counting = counting.where(c.rater == encodable(rater))
        query = select(schema.labels).where(c.label_id.in_(counting), c.status != "withdrawn")
        return self._read(query.order_by(c.label_id))

    def history(self, item_key: str) -> list[HumanLabel]:
        """Return all labels of an item, including replaced ones, oldest first."""
        c = schema.labels.c
        return self._read(select(schema.labels).where(c.item_key == item_key).order_by(c.label_id))

    # -- queues ------------------------------------------------------------------------------------

    def add_queue(self, queue: LabelQueue) -> None:
        """Store a new queue. Raises InputError for an existing name and for an empty queue."""
        if not queue.items:
            raise InputError("no run matches: there is nothing to label", queue.name)
        now = time.time()
        row = {
            "name": encodable(queue.name),
            "made": now,
            "record": encode(queue.model_copy(update={"made": now}).model_dump(mode="json")),
        }
        q = schema.queues.c
        with self._writing() as connection:
            if connection.execute(select(q.name).where(q.name == row["name"])).first():
                raise InputError("a queue with this name exists; choose another", queue.name)
            connection.execute(insert(schema.queues), row)

    def queues(self) -> dict[str, LabelQueue]:
        """Return the queues by name, the newest last."""
        with reading(self._engine) as connection:
            if not _has_labels(connection):
                return {}
            rows = connection.execute(select(schema.queues).order_by(schema.queues.c.made)).all()
        return {row.name: valid(LabelQueue, row.record, f"the queue {row.name}") for row in rows}

    def next_item(self, queue: LabelQueue, rater: str, after: str | None = None) -> str | None:
        """Return the key of the next item that this rater should label, None when none is left.

        The search starts after `after` and wraps around. Skipped items come last, items that are no
        longer in the store are left out. Where `per_item` raters label an item, it is claimed for
        15 minutes, so that other raters are not shown it needlessly.
        """
        c, q = schema.claims.c, schema.queues.c
        rater = encodable(rater)
        with self._writing() as connection:
            # of two servers on one database the second waits here
            connection.execute(select(q.name).where(q.name == queue.name).with_for_update())
            done = self._done(connection, queue)
            stored = select(schema.items.c.item_key)
            among = dialect_of(self._engine).among(schema.items.c.item_key, queue.items)
            present = set(connection.execute(stored.where(among)).scalars())
            claims: dict[str, set[str]] = defaultdict(set)
            fresh = and_(c.queue == queue.name, c.claimed > time.time() - CLAIMED)
            for item, other in connection.execute(select(c.item_key, c.rater).where(fresh)):
                claims[item].add(other)
            waiting = _open_items(queue, rater, done, claims, after)
            item_key = next((item for item in waiting if item in present), None)
            if item_key is not None and queue.per_item is not None:
                mine = and_(c.queue == queue.name, c.rater == rater)
                connection.execute(delete(schema.claims).where(mine))
                row = {"queue": queue.name, "item_key": item_key, "rater": rater}
                connection.execute(insert(schema.claims), {**row, "claimed": time.time()})
        return item_key

    def _done(self, connection: Connection, queue: LabelQueue) -> dict[str, dict[str, str]]:
        """State of every item by rater: "done" with all criteria, else "skipped" or "part"."""
        c, counting = schema.labels.c, self._counting(queue.items)
        columns = c.item_key, c.rater, c.criterion_key, c.status
        query = select(*columns).where(c.label_id.in_(counting))
        by_item: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
        for item, rater, criterion, status in connection.execute(query):
            by_item[item][rater][criterion] = status
        return {
            item: {
                rater: _progress(statuses, queue.criteria or ("",))
                for rater, statuses in by_rater.items()
            }
            for item, by_rater in by_item.items()
        }

    def progress(self, queue: LabelQueue) -> dict[str, dict[str, str]]:
        """Return the state of every item that somebody opened, by item and rater: "done",
        "skipped" or "part" (some criteria are labelled)."""
        with reading(self._engine) as connection:
            return self._done(connection, queue) if _has_labels(connection) else {}

    # -- rows --------------------------------------------------------------------------------------

    def _counting(self, items: Collection[str] | None) -> Select[int]:
        """Return the ids of the current labels: the newest of each rater, item and criterion."""
        c = schema.labels.c
        query = select(func.max(c.label_id)).group_by(c.rater, c.item_key, c.criterion_key)
        if items is not None:
            query = query.where(dialect_of(self._engine).among(c.item_key, items))
        return query

    def _read(self, query: object) -> list[HumanLabel]:
        with reading(self._engine) as connection:
            if not _has_labels(connection):
                return []
            rows = connection.execute(query).all()  # type: ignore[call-overload]
        labels = []
        for row in rows:
            fields = {k: v for k, v in row._mapping.items() if k not in ("label_id", "detail")}
            detail = valid(_Detail, row.detail, f"the label {row.label_id}")
            labels.append(HumanLabel(**fields, **detail.model_dump()))
        return labels

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with writing(self._engine) as connection:
                if not _has_labels(connection):
                    tables = [schema.labels, schema.queues, schema.claims]
                    schema.metadata.create_all(connection, tables=tables)
                yield connection
        except SQLAlchemyError as error:
            raise store_error(error, self._engine) from error


class _Detail(Record):
    evidence: str = ""
    findings: tuple[dict[str, JsonValue], ...] = ()


def _has_labels(connection: Connection) -> bool:
    return inspect(connection).has_table(schema.labels.name)


def _progress(statuses: Mapping[str, str], criteria: Sequence[str]) -> str:
    item_statuses = [statuses.get(criterion, "withdrawn") for criterion in criteria]
    if all(status in DONE for status in item_statuses):
        return "done"
    return "skipped" if "skipped" in item_statuses else "part"


def _open_items(
    queue: LabelQueue,
    rater: str,
    done: Mapping[str, Mapping[str, str]],
    claims: Mapping[str, set[str]],
    after: str | None,
) -> Iterator[str]:
    """Items that wait for this rater, in order from `after` on; skipped ones come last."""
    start = queue.items.index(after) + 1 if after in queue.items else 0
    ordered = [*queue.items[start:], *queue.items[:start]]
    skipped = []
    for item in ordered:
        mine = done.get(item, {}).get(rater)
        finished = {other for other, state in done.get(item, {}).items() if state == "done"}
        busy = (finished | claims.get(item, set())) - {rater}
        if mine == "done" or (queue.per_item is not None and len(busy) >= queue.per_item):
            continue
        if mine == "skipped":
            skipped.append(item)
        else:
            yield item
    yield from skipped
