"""Queries of the viewer and of pages: small parts of a large store, by an index or in one pass."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, func, literal_column, select

from agenteval.records import Criterion
from agenteval.store import rows, schema
from agenteval.store.connect import dialect_of, reading
from agenteval.store.store import Store

_calls, _results, _items = schema.calls.c, schema.results.c, schema.items.c
_experiments, _sources = schema.experiments.c, schema.sources.c


@dataclass(frozen=True, slots=True)
class OriginalRun:
    """A run as it is judged, without its text; `length` counts characters of its trajectory."""

    key: str
    id: str
    task: str
    system: str
    case: str
    success: bool | None
    length: int


@dataclass(frozen=True, slots=True)
class RunCopy:
    """Another item of the same run: a perturbed copy, or the run as another judge saw it."""

    key: str
    origin: str | None


@dataclass(frozen=True, slots=True)
class BegunExperiment:
    """A row of the table experiments; times are seconds since 1970. `planned` counts cells or
    trials, `rows` are the starts of the keys of originals or cases."""

    source_key: str
    evaluator: str
    name: str
    begun: float
    finished: float | None
    planned: int
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One call of a judge on an item; `record` is its CallRecord as a JSON value."""

    call_id: str
    source_key: str
    variant: str
    repeat: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One trial without its log; `started` is in seconds since 1970."""

    call_id: str
    evaluator: str
    system: str
    system_key: str
    case: str
    case_key: str
    trial: int
    status: str
    outcome: str | None
    started: float | None


def original_runs(store: Store, keys: Sequence[str] | None = None) -> Iterator[OriginalRun]:
    """Yield all original runs, or those with these keys, by system and id."""
    length = func.length(dialect_of(store.engine).json_text(_items.body, "trajectory"))
    query = select(
        _items.item_key,
        _items.id,
        _items.task,
        _items.system,
        _items.case_key,
        _items.success,
        length.label("length"),
    ).where(_items.kind == "run", _items.origin.is_(None))
    if keys is not None:
        query = query.where(dialect_of(store.engine).among(_items.item_key, keys))
    with reading(store.engine) as connection:
        large = connection.execution_options(yield_per=2_000)
        for row in large.execute(query.order_by(_items.system, _items.id, _items.used)):
            success = None if row.success is None else bool(row.success)
            yield OriginalRun(
                row.item_key,
                row.id,
                row.task or "",
                row.system or "",
                row.case_key or row.item_key,
                success,
                int(row.length or 0),
            )


def runs_with_text(store: Store, text: str) -> set[str]:
    """Return the keys of runs whose id, input or trajectory holds a text, whatever its case."""
    pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in text.lower()) + "%"
    json_text = dialect_of(store.engine).json_text
    columns: list[Any] = [
        _items.id,
        *(json_text(_items.body, k) for k in ("problem", "trajectory")),
    ]
    matches = [func.lower(column).like(pattern, escape="\\") for column in columns]
    query = select(_items.item_key).where(
        _items.kind == "run", _items.origin.is_(None), matches[0] | matches[1] | matches[2]
    )
    return {key for (key,) in store.fetch(query)}


def criteria_by_key(store: Store, keys: Iterable[str]) -> dict[str, Criterion]:
    """Return criteria by content hash, the ones used last at the end."""
    query = select(_items.item_key, _items.body).where(
        dialect_of(store.engine).among(_items.item_key, keys)
    )
    return {
        row.item_key: rows.valid(Criterion, row.body, f"the criterion {row.item_key[:12]}")
        for row in store.fetch(query.order_by(_items.used, literal_column("items.rowid")))
    }


def others_of_run(store: Store, run: OriginalRun) -> list[RunCopy]:
    """Return the perturbed copies of a run, and its other versions (same id, task and system)."""
    same = (_items.id == run.id) & (_items.task == run.task) & (_items.system == run.system)
    query = select(_items.item_key, _items.origin).where(
        _items.kind == "run",
        _items.item_key != run.key,
        (_items.origin == run.key) | (same & _items.origin.is_(None)),
    )
    return [RunCopy(*row) for row in store.fetch(query.order_by(_items.used))]


def every_cell(store: Store, source_key: str) -> Iterator[Any]:
    """Yield item_key, criterion_key, status, label, value of all results of a source on original
    runs, in no order."""
    query = select(
        _results.item_key, _results.criterion_key, _results.status, _results.label, _results.value
    ).where(_results.source_key == source_key, _results.variant == "original")
    with reading(store.engine) as connection:
        yield from connection.execution_options(yield_per=2_000).execute(query)


def calls_on(store: Store, source_key: str, item_key: str) -> list[JudgeCall]:
    """Return the calls of a judge that gave its results on an item, by variant and repeat."""
    ids = (
        select(_results.call_id)
        .where(_results.source_key == source_key, _results.item_key == item_key)
        .distinct()
    )
    query = select(schema.calls).where(_calls.call_id.in_(ids))
    judge_calls = []
    for row in store.fetch(query.order_by(_calls.variant, _calls.repeat)):
        record = rows.decode(row.record, f"the call {row.call_id[:12]}")
        call = JudgeCall(row.call_id, row.source_key, row.variant, row.repeat, record)
        judge_calls.append(call)
    return judge_calls


def calls_of(store: Store, source_key: str) -> int:
    """Return how many calls of a source are stored; it changes with every result that is added."""
    ((count,),) = store.fetch(select(func.count()).where(_calls.source_key == source_key))
    return int(count)


def begun_experiments(store: Store) -> list[BegunExperiment]:
    """Return all experiments, the one begun last first. Raises StoreError for a damaged plan."""
    begun = []
    for row in store.fetch(select(schema.experiments).order_by(_experiments.begun.desc())):
        plan = rows.decode(row.plan, f"the experiment {row.experiment_key[:12]}")
        grids = plan.get("grids", [])
        planned = sum(len(g["rows"]) * g["repeats"] * (len(g["criteria"]) or 1) for g in grids)
        originals = [g["rows"] for g in grids if g["variant"] in ("", "original")]
        keys = tuple(dict.fromkeys(key for keys in originals for key in keys))
        times = row.begun, row.finished
        begun.append(
            BegunExperiment(row.source_key, row.evaluator, row.name, *times, planned, keys)
        )
    return begun


_TRIAL = (
    _calls.call_id,
    _sources.evaluator,
    _sources.name,
    _sources.system_key,
    _items.id,
    _calls.item_key,
    _calls.repeat,
    _calls.status,
    _calls.outcome,
    _calls.started,
)


def trial_lines(
    store: Store,
    *,
    evaluator: str | None = None,
    outcome: str | None = None,
    source: str | None = None,
    start: int,
    most: int,
) -> tuple[list[TrialLine], int]:
    """Return a page of trials, the latest first, and how many there are in all.

    They are those of an evaluator, with an outcome or status, and of a source (start of its key),
    if given.
    """
    chosen, count = _trials(select(*_TRIAL)), _trials(select(func.count()))
    wheres = []
    if evaluator is not None:
        wheres.append(_sources.evaluator == evaluator)
    if outcome is not None:
        wheres.append((_calls.outcome == outcome) | (_calls.status == outcome))
    if source is not None:
        wheres.append(_calls.source_key.startswith(source, autoescape=True))
    chosen, count = chosen.where(*wheres), count.where(*wheres)
    order = _calls.started.desc(), _calls.call_id
    page = store.fetch(chosen.order_by(*order).offset(start).limit(most))
    ((total,),) = store.fetch(count)
    return [TrialLine(*row) for row in page], int(total)


def trial_line(store: Store, call_id: str) -> TrialLine | None:
    """Return one trial, or None if it is not (or no longer) stored."""
    lines = store.fetch(_trials(select(*_TRIAL)).where(_calls.call_id == call_id))
    return TrialLine(*lines[0]) if lines else None


def _trials(query: Select[Any]) -> Select[Any]:
    return (
        query.select_from(schema.calls)
        .join(schema.sources, _sources.source_key == _calls.source_key)
        .join(schema.items, _items.item_key == _calls.item_key)
        .where(_calls.status.is_not(None), _sources.system_key.is_not(None))
    )


def outcomes_of(store: Store, source_key: str) -> dict[str, int]:
    """Return the number of trials of a source by outcome, without those that have none."""
    query = (
        select(_calls.outcome, func.count())
        .where(_calls.source_key == source_key, _calls.outcome.is_not(None))
        .group_by(_calls.outcome)
    )
    return dict(store.fetch(query))


def labelled_successes(store: Store) -> dict[str, tuple[str, bool | None]]:
    """Return task and success of every original run by its key."""
    query = select(_items.item_key, _items.task, _items.success).where(
        _items.kind == "run", _items.origin.is_(None)
    )
    return {
        key: (task or "", None if success is None else bool(success))
        for key, task, success in store.fetch(query)
    }


# ---- the texts that a judge has judged, and its comments -----------------------------------------

_KEYS = 400  # keys in one query
_RAW = 4_000  # characters of an unusable reply


@dataclass(frozen=True)
class JudgedText:
    """A text that a judge has judged: an original (`origin` None) or a perturbed copy.

    `length` counts the characters of its trajectory, `used` is when it was last registered.
    """

    run_key: str
    run_id: str
    task: str
    variant: str
    origin: str | None
    system: str
    length: int
    used: float


@dataclass(frozen=True)
class StoredWords:
    """The words stored with a result; `raw` is the reply of a failure."""

    run_key: str
    variant: str
    criterion_key: str
    repeat: int
    explanation: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    raw: str = ""


def judged_texts(store: Store, source_key: str) -> list[JudgedText]:
    """Return every text that a source has judged, the one registered last at the end."""
    r, c = schema.items.c, schema.results.c
    pairs = select(c.item_key, c.variant).where(c.source_key == source_key).distinct().subquery()
    text = dialect_of(store.engine).json_text(r.body, "trajectory")
    query = (
        select(
            r.item_key, r.id, r.task, pairs.c.variant, r.origin, r.system, func.length(text), r.used
        )
        .join(pairs, pairs.c.item_key == r.item_key)
        .order_by(r.used, r.item_key, pairs.c.variant)
    )
    return [JudgedText(*row) for row in store.fetch(query)]


def judged_cells(store: Store, source_key: str) -> dict[str, int]:
    """Return how many results a source has on each criterion, by content hash."""
    c = schema.results.c
    query = select(c.criterion_key, func.count()).where(c.source_key == source_key)
    return {key: int(count) for key, count in store.fetch(query.group_by(c.criterion_key))}


def stored_words(
    store: Store, source_key: str, run_keys: Sequence[str], criteria: Collection[str]
) -> Iterator[StoredWords]:
    """Yield the comments of a source on these texts and criteria (content hashes)."""
    c, calls = schema.results.c, schema.calls.c
    query = (
        select(c.item_key, c.variant, c.criterion_key, c.repeat, c.status, c.detail, calls.record)
        .join(schema.calls, calls.call_id == c.call_id)
        .where(c.source_key == source_key)
    )
    with reading(store.engine) as connection:
        for start in range(0, len(run_keys), _KEYS):
            part = query.where(c.item_key.in_(run_keys[start : start + _KEYS]))
            for row in connection.execute(part):
                if row.criterion_key not in criteria:
                    continue
                detail = rows.decode(row.detail, f"the result of run {row.item_key[:12]}")
                evidence = detail.get("evidence") or {}
                if detail.get("probabilities"):
                    evidence = {"probabilities": detail["probabilities"], **evidence}
                raw = json.loads(row.record).get("raw") if ":" in row.status else None
                yield StoredWords(
                    row.item_key,
                    row.variant,
                    row.criterion_key,
                    row.repeat,
                    str(detail.get("explanation") or detail.get("message") or ""),
                    evidence,
                    (raw or "")[: _RAW + 1],
                )
