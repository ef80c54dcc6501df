"""What the page of a judge is made of, from a store or from a file of ratings made elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sqlalchemy import func, select

from agenteval.analysis.scores import run_names, scores_from_store
from agenteval.errors import InputError
from agenteval.records import Criterion, Source, Usage
from agenteval.records.verification import JudgeVerdict, Verification, VerifiedSet
from agenteval.stats.scores import NAMED, ORIGINAL, Column, ScoreTable
from agenteval.store import Store, of_one_state, schema
from agenteval.store.connect import dialect_of, reading
from agenteval.store.experiments import remark_of, short, unfinished_of, verified_runs
from agenteval.store.rows import decode
from agenteval.utility.perturbed_runs import verify_keys
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.outside import verify_ratings

CellName = tuple[str, str, int]  # variant, criterion id, repeat
_CHUNK = 400  # keys in one query
_RAW = 4_000  # characters of a reply that could not be used


@dataclass(frozen=True)
class Said:
    """What the judge said with a rating, as far as it was kept; `raw` only for failures."""

    explanation: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    raw: str = ""


@dataclass(frozen=True)
class RunTexts:
    """The long texts of a run: problem, trajectory, copies by variant, words of the judge."""

    problem: str
    trajectory: str
    reference_shown: bool
    copies: Mapping[str, str]
    said: Mapping[CellName, Said]


@dataclass(frozen=True)
class StoredTexts:
    """Texts of the runs of one source. `originals` and `copies` are those that count."""

    store: Store
    source_key: str
    originals: Mapping[str, str]  # run id → run key
    copies: Mapping[str, Mapping[str, str]]  # run id → variant → run key
    criteria: Mapping[str, str]  # criterion key → id

    def of(self, runs: Sequence[str]) -> dict[str, RunTexts]:
        """Texts by run id. Raises StoreError for a damaged store."""
        wanted = [r for r in runs if r in self.originals]
        keys = {self.originals[r]: r for r in wanted}
        keys |= {key: r for r in wanted for key in self.copies.get(r, {}).values()}
        texts = dict(self.store.bodies(keys))
        said: dict[str, dict[CellName, Said]] = {r: {} for r in wanted}
        for run_key, name, words in self._said(list(keys)):
            said[keys[run_key]][name] = words
        return {
            run: RunTexts(
                own["problem"],
                own["trajectory"],
                own["reference_shown"],
                {v: texts[k]["trajectory"] for v, k in self.copies.get(run, {}).items()},
                said[run],
            )
            for run in wanted
            for own in [texts[self.originals[run]]]
        }

    def judged(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Run id, problem and trajectory of every original. Raises StoreError as `of`."""
        runs = {key: run for run, key in self.originals.items()}
        for key, body in self.store.bodies(runs):
            yield runs[key], (body["problem"], body["trajectory"])

    def _said(self, keys: Sequence[str]) -> Iterator[tuple[str, CellName, Said]]:
        c, calls = schema.results.c, schema.calls.c
        query = select(
            c.item_key, c.variant, c.criterion_key, c.repeat, c.status, c.detail, calls.record
        ).join(schema.calls, calls.call_id == c.call_id)
        with reading(self.store.engine) as connection:
            for start in range(0, len(keys), _CHUNK):
                part = keys[start : start + _CHUNK]
                rows = query.where(c.source_key == self.source_key, c.item_key.in_(part))
                for row in connection.execute(rows):
                    if row.criterion_key not in self.criteria:
                        continue
                    detail = decode(row.detail, f"the result of run {row.item_key[:12]}")
                    evidence = detail.get("evidence") or {}
                    if detail.get("probabilities"):
                        evidence = {"probabilities": detail["probabilities"], **evidence}
                    raw = json.loads(row.record).get("raw") if ":" in row.status else None
                    words = detail.get("explanation") or detail.get("message") or ""
                    name = (row.variant, self.criteria[row.criterion_key], row.repeat)
                    yield row.item_key, name, Said(str(words), evidence, (raw or "")[: _RAW + 1])


@dataclass(frozen=True)
class StoredVerdicts:
    """Verdicts, and how they are known. `judge` is None where only criteria were recorded."""

    judge: JudgeVerdict | None
    criteria: tuple[Verification, ...]
    origin: str
    subset: tuple[str, ...] = ()
    first_component: float | None = None
    options: Mapping[str, float | int] = field(default_factory=dict)

    @classmethod
    def verified(cls, result: VerifiedSet, origin: str) -> StoredVerdicts:
        """Those of a verification."""
        return cls(
            result.judge,
            result.criteria,
            origin,
            result.subset,
            result.first_component,
            result.options,
        )

    def of(self, criterion: str) -> Verification | None:
        """The verdict on a criterion, None when there is none."""
        return next((v for v in self.criteria if v.criterion_id == criterion), None)


@dataclass(frozen=True)
class JudgeMaterial:
    """Ratings with everything around them.

    `facts` are pairs of a name and a text for the head. `findings` is None while nothing was
    verified, and `unverified` says why. `texts` is None for ratings made elsewhere, which come
    without. `show` is the command that prints a run that is not on the page, `{run}` in it standing
    for its id. `notes` must be said in the summary, `unfinished` (a sentence for each experiment
    that is not all there) before it.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    criteria: tuple[Criterion, ...]
    table: ScoreTable
    findings: StoredVerdicts | None = None
    unverified: str = ""
    texts: StoredTexts | None = None
    show: str = ""
    notes: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """Names of the criteria by id."""
        return {c.id: c.name for c in self.criteria}

    @property
    def originals(self) -> ScoreTable:
        """Ratings of the original runs."""
        return self.table.of(variant=ORIGINAL)


def arranged(table: ScoreTable, criteria: Sequence[str]) -> ScoreTable:
    """The same ratings in an order that does not depend on how they were stored.

    Criteria stand in the order given, the original before the perturbations, all else by name.
    """
    first: dict[str, Sequence[str]] = {"criterion": criteria, "variant": (ORIGINAL,)}
    columns: dict[str, Column] = {}
    for name in NAMED:
        part: Column = getattr(table, name)
        names = [n for n in first.get(name, ()) if n in part.names]
        names += sorted(set(part.names) - set(names))
        new = {n: i for i, n in enumerate(names)}
        codes = np.array([*(new[n] for n in part.names), -1], dtype=np.int32)  # -1: none
        columns[name] = Column(codes[part.codes], tuple(names))
    order = np.lexsort(
        (table.repeat, columns["run"].codes, columns["variant"].codes, columns["criterion"].codes)
    )
    return ScoreTable(
        **{name: Column(c.codes[order], c.names) for name, c in columns.items()},
        repeat=table.repeat[order],
        success=table.success[order],
        value=table.value[order],
    )


def from_ratings(
    path: Path,
    table: ScoreTable,
    criteria: tuple[Criterion, ...],
    name: str,
    options: VerifyOptions,
) -> JudgeMaterial:
    """The ratings of `table`, made elsewhere, read from the file at `path` and called `name`.

    Without criteria the values alone say how good. Verdicts are computed as by
    `agenteval verify --scores`; texts there are none.
    """
    known = criteria or tuple(
        Criterion(id=i, name=i, scale="numeric", numeric_range=(0.0, 1.0))
        for i in table.present("criterion")
    )
    own = arranged(table, [c.id for c in known])
    used = tuple(c for c in known if c.id in set(own.present("criterion")))
    verified = verify_ratings(path, own, used, options)
    return JudgeMaterial(
        title=name,
        facts=(("ratings", f"made elsewhere, read from {name}"),),
        criteria=used,
        table=own,
        findings=StoredVerdicts.verified(verified, "computed from the ratings"),
        notes=("ratings made elsewhere: neither texts nor explanations are known here",),
    )


# ---- from a store --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReportScope:
    """What of a source goes into the report; None means everything, the newest version.

    `criteria` are those of a file with its name, `runs` the hashes of the views.
    """

    task: str | None = None
    criteria: tuple[Criterion, ...] | None = None
    criteria_file: str = ""
    runs: frozenset[str] | None = None


@dataclass(frozen=True)
class _Judged:
    """A text that the judge has judged: an original (`origin` None) or a perturbed copy."""

    run_key: str
    run_id: str
    task: str
    variant: str
    origin: str | None
    system: str
    length: int
    used: float


@of_one_state
def from_store(
    store: Store, source_key: str, source: Source, wanted: ReportScope, options: VerifyOptions
) -> JudgeMaterial:
    """Everything that a judge has judged of one task. Verdicts are computed where the store holds
    perturbed copies, else taken from the criteria file where it has them.

    Raises InputError when nothing fits, or when the judge knows several tasks and none is chosen.
    """
    unfinished = unfinished_of(store, [source_key], wanted.runs)
    said = remark_of(store, source_key)
    texts = _judged_texts(store, source_key)
    task = _task(texts, wanted)
    # The version used last of every original, and of every copy of these.
    newest = {
        (t.run_id, t.system): t
        for t in texts
        if t.task == task and t.origin is None and (wanted.runs is None or t.run_key in wanted.runs)
    }
    keys = {t.run_key for t in newest.values()}
    names = run_names(store.items(), keys)
    originals = [replace(newest[run], run_id=names[newest[run].run_key]) for run in sorted(newest)]
    named = [replace(t, run_id=names[t.origin]) for t in texts if t.origin and t.origin in keys]
    newest_copies = {(t.run_id, t.variant): t for t in named}
    copies = [newest_copies[name] for name in sorted(newest_copies)]
    stored = store.criteria_of(source_key)
    chosen = store.newest_criteria(source_key)
    if wanted.criteria is not None:
        chosen = {c.sha256: c for c in wanted.criteria if c.sha256 in stored}
        if not chosen:
            raise InputError(
                "this judge has rated none of these criteria in this wording", wanted.criteria_file
            )
    table = arranged(
        scores_from_store(
            store,
            source_key,
            criteria=set(chosen),
            runs=keys,
            copies={(t.run_key, t.variant) for t in copies},
        ),
        [c.id for c in chosen.values()],
    )
    if not len(table):
        raise InputError("the judge has not rated these runs on these criteria", "--source")
    criteria = tuple(c for c in chosen.values() if c.id in set(table.present("criterion")))
    written = _recorded(criteria, wanted.criteria_file)
    verified = _verified(store, source_key, table, criteria, (originals, copies), options)
    by_run: dict[str, dict[str, str]] = {}
    for copy in copies:
        by_run.setdefault(copy.run_id, {})[copy.variant] = copy.run_key
    return JudgeMaterial(
        title=task or "runs",
        facts=_facts(source, source_key, store, [t.used for t in (*originals, *copies)]),
        criteria=criteria,
        table=table,
        findings=verified or written,
        unverified="no perturbed copy of these runs was judged: run `agenteval verify`",
        texts=StoredTexts(
            store,
            source_key,
            {t.run_id: t.run_key for t in originals},
            by_run,
            {key: c.id for key, c in chosen.items()},
        ),
        show=f"agenteval show --store {_name(store)} --source {source_key[:12]} --run {{run}}",
        notes=(*_differences(written, verified), *([said] if said else [])),
        unfinished=tuple(experiment.line for experiment in unfinished),
    )


def _judged_texts(store: Store, source_key: str) -> list[_Judged]:
    """Every text of a source, the one registered last at the end."""
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
    with reading(store.engine) as connection:
        return [_Judged(*row) for row in connection.execute(query)]


def _task(texts: Sequence[_Judged], wanted: ReportScope) -> str:
    """The task asked for, or the only one."""
    fitting = [t for t in texts if wanted.runs is None or t.run_key in wanted.runs]
    if not fitting:
        raise InputError("none of these runs was judged by this judge", "RUNS")
    tasks = sorted({t.task for t in fitting if t.origin is None})
    if wanted.task is not None:
        if wanted.task not in tasks:
            raise InputError(f"this judge has no runs of it; it has {', '.join(tasks)}", "--task")
        return wanted.task
    if len(tasks) != 1:
        raise InputError(f"this judge has runs of several tasks: {', '.join(tasks)}", "--task")
    return tasks[0]


def _recorded(criteria: Sequence[Criterion], file: str) -> StoredVerdicts | None:
    """The verdicts that a criteria file carries, None when it has none."""
    try:
        verdicts = tuple(
            Verification.model_validate(c.verification)
            for c in criteria
            if c.verification is not None
        )
    except ValueError as error:
        raise InputError("the verification in this file is not in form", file) from error
    return StoredVerdicts(None, verdicts, f"read from {file}") if verdicts else None


def _verified(
    store: Store,
    source_key: str,
    table: ScoreTable,
    criteria: tuple[Criterion, ...],
    texts: tuple[list[_Judged], list[_Judged]],
    options: VerifyOptions,
) -> StoredVerdicts | None:
    """The verdicts of `agenteval verify` on what it judged, None where no copy was judged.

    In its evidence are the runs that its latest plan names. Where no plan is known, runs without a
    copy are not, but for empty replies, which no perturbation changes, where other runs of their
    system have copies. Of originals as many repeats count as there are of copies, and only criteria
    that copies were rated on.
    """
    originals, copies = texts
    of_copies = table.where(table.variant.codes != table.variant.code(ORIGINAL))
    if not len(of_copies):
        return None
    rated = set(of_copies.present("criterion"))
    copied = {copy.origin for copy in copies}
    systems = {text.system for text in originals if text.run_key in copied}
    answered = table.of(variant=ORIGINAL)
    unanswered = [n for n in answered.status.names if n.startswith(("degenerate", "no_answer:"))]
    codes = [answered.status.code(name) for name in (*unanswered, "failed_run")]
    answered = answered.where(~np.isin(answered.status.codes, codes))
    answering = set(answered.present("run"))
    runs = {
        text.run_key
        for text in originals
        if text.run_key in copied or (text.system in systems and text.run_id not in answering)
    }
    planned = verified_runs(store, source_key)
    runs = {t.run_key for t in originals if short([t.run_key])[0] in planned} or runs
    result = verify_keys(
        store,
        source_key,
        tuple(c for c in criteria if c.id in rated),
        options,
        runs=runs,
        copies={(copy.run_key, copy.variant) for copy in copies if copy.origin in runs},
        repeats=int(of_copies.repeat.max()) + 1,
        lengths={(t.run_id, t.variant): t.length for t in (*originals, *copies)},
    )
    some = f", from the {len(runs)} of {len(originals)} runs that `agenteval verify` judged"
    origin = "computed from the store" + (some if len(runs) < len(originals) else "")
    return StoredVerdicts.verified(result, origin)


def _differences(written: StoredVerdicts | None, verified: StoredVerdicts | None) -> Iterator[str]:
    """Where the file says something else than the store gives now."""
    for old in written.criteria if written and verified else ():
        new = verified.of(old.criterion_id) if verified else None
        if new is not None and new.verdict != old.verdict:
            yield (
                f"{old.criterion_id}: the criteria file says {old.verdict}, "
                f"the store now gives {new.verdict}"
            )


def _facts(
    source: Source, key: str, store: Store, used: Sequence[float]
) -> tuple[tuple[str, str], ...]:
    usage: Usage = store.usage(key)
    days = dict.fromkeys(
        datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
        for seconds in (min(used), max(used))
    )
    tokens = f"{usage.prompt_tokens or 0:,} read, {usage.completion_tokens or 0:,} written"
    return (
        ("judge", f"{source.model} ({source.evaluator}, version {source.version})"),
        ("seed", str(source.seed)),
        ("parameters", json.dumps(source.parameters, ensure_ascii=False, sort_keys=True)),
        ("source", key[:16]),
        ("store", _name(store)),
        ("runs last registered", " to ".join(days)),
        ("requests", f"{usage.requests:,}"),
        ("tokens", "unknown" if usage.prompt_tokens is None else tokens),
        ("cost", "unknown" if usage.cost is None else f"{usage.cost:,.4f}"),
    )


def _name(store: Store) -> str:
    """What a page calls a store: its file's name, or its URL without password."""
    return store.place.name if isinstance(store.place, Path) else store.shown
