"""Material for the page of a judge, from a store or from a file of ratings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from agenteval.analysis.means import load_ratings
from agenteval.analysis.rubric_tables import rubric_tables
from agenteval.analysis.rubrics import ITEMS, pooled
from agenteval.analysis.scores import run_names, scores_from_store
from agenteval.errors import InputError
from agenteval.records import RUBRIC, Criterion, Source
from agenteval.records.table import Table
from agenteval.records.verification import JudgeVerdict, Verification, VerifiedSet
from agenteval.stats.scores import NAMED, ORIGINAL, CodedColumn, ScoreTable
from agenteval.store import Store, of_one_state
from agenteval.store.browse import JudgedText, StoredWords, judged_texts, stored_words
from agenteval.store.experiments import remark_of, short, unfinished_of, verified_runs
from agenteval.utility.perturbed_runs import with_drift_warning
from agenteval.utility.verify import CopyFacts, VerifyOptions, verify_table
from agenteval.utility.verify.outside import number_criteria, verify_ratings

CellName = tuple[str, str, int]  # variant, criterion id, repeat


@dataclass(frozen=True)
class RunTexts:
    """The long texts of a run: problem, trajectory, copies by variant, words of the judge."""

    problem: str
    trajectory: str
    reference_shown: bool
    copies: Mapping[str, str]
    words: Mapping[CellName, StoredWords]


@dataclass(frozen=True)
class ReportScope:
    """The part of a source that goes into the report; None means everything, the newest version.

    `criteria` are those of a file with its name, `runs` the hashes of the views.
    """

    task: str | None = None
    criteria: tuple[Criterion, ...] | None = None
    criteria_file: str = ""
    runs: frozenset[str] | None = None


@dataclass(frozen=True)
class JudgedRuns:
    """The runs of one task that a source judged, their copies, and the criteria by key, each in its
    newest version. Long texts are read from the store when asked for."""

    store: Store
    source_key: str
    task: str
    originals: Sequence[JudgedText]
    copies: Sequence[JudgedText]
    criteria: Mapping[str, Criterion]

    @classmethod
    def of(cls, store: Store, source_key: str, scope: ReportScope) -> JudgedRuns:
        """Return what is in the scope. Raises InputError when there are no runs or criteria, and
        when the runs are of several tasks of which none is chosen."""

        def fits(text: JudgedText) -> bool:
            return scope.runs is None or text.run_key in scope.runs

        texts = judged_texts(store, source_key)
        if not any(map(fits, texts)):
            raise InputError("this judge has not judged any of these runs", "RUNS")
        tasks = sorted({t.task for t in texts if fits(t) and t.origin is None})
        if scope.task is not None and scope.task not in tasks:
            raise InputError(f"this judge has no runs of it; it has {', '.join(tasks)}", "--task")
        if scope.task is None and len(tasks) != 1:
            raise InputError(
                f"this judge rated runs of several tasks: {', '.join(tasks)}", "--task"
            )
        task = scope.task or tasks[0]
        newest = {
            (t.run_id, t.system): t
            for t in texts
            if t.task == task and t.origin is None and fits(t)
        }
        keys = {t.run_key for t in newest.values()}
        names = run_names(store.items(), keys)
        originals = [replace(t, run_id=names[t.run_key]) for _, t in sorted(newest.items())]
        renamed = [replace(t, run_id=names[t.origin]) for t in texts if t.origin in keys]
        by_name = {(t.run_id, t.variant): t for t in renamed}
        copies = [t for _, t in sorted(by_name.items())]
        criteria = store.newest_criteria(source_key)
        if scope.criteria is not None:
            stored = store.criteria_of(source_key)
            criteria = {c.sha256: c for c in scope.criteria if c.sha256 in stored}
            if not criteria:
                raise InputError(
                    "this judge has not rated any of these criteria with this wording",
                    scope.criteria_file,
                )
        return cls(store, source_key, task, originals, copies, criteria)

    def ratings(
        self, criteria: Iterable[str], runs: Collection[str], repeats: int | None = None
    ) -> ScoreTable:
        """Return the ratings of these runs, by their keys, and of their copies."""
        return scores_from_store(
            self.store,
            self.source_key,
            criteria=set(criteria),
            runs=set(runs),
            repeats=repeats,
            copies={(t.run_key, t.variant) for t in self.copies if t.origin in runs},
        )

    @property
    def keys(self) -> set[str]:
        """The keys of the originals."""
        return {text.run_key for text in self.originals}

    def texts(self, runs: Sequence[str]) -> dict[str, RunTexts]:
        """Return texts by run id. Raises StoreError for a damaged store."""
        names = set(runs)
        originals = {t.run_id: t.run_key for t in self.originals if t.run_id in names}
        copies = [t for t in self.copies if t.run_id in originals]
        run_of = {key: run for run, key in originals.items()} | {
            t.run_key: t.run_id for t in copies
        }
        bodies = dict(self.store.bodies(run_of))
        words: dict[str, dict[CellName, StoredWords]] = {run: {} for run in originals}
        for row in stored_words(self.store, self.source_key, list(run_of), self.criteria):
            name = row.variant, self.criteria[row.criterion_key].id, row.repeat
            words[run_of[row.run_key]][name] = row
        texts = {}
        for run, key in originals.items():
            body = bodies[key]
            texts[run] = RunTexts(
                body["problem"],
                body["trajectory"],
                body["reference_shown"],
                {t.variant: bodies[t.run_key]["trajectory"] for t in copies if t.run_id == run},
                words[run],
            )
        return texts

    def bodies(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield run id, problem and trajectory of every original. Raises StoreError as `texts`."""
        runs = {t.run_key: t.run_id for t in self.originals}
        for key, body in self.store.bodies(runs):
            yield runs[key], (body["problem"], body["trajectory"])


@dataclass(frozen=True)
class StoredVerdicts:
    """Verdicts on criteria and their origin in words; `verified` is None where a file has only
    the criteria."""

    criteria: tuple[Verification, ...]
    origin: str
    verified: VerifiedSet | None = None

    @property
    def judge(self) -> JudgeVerdict | None:
        """The verdict on the judge, if there is one."""
        return self.verified.judge if self.verified else None

    def of(self, criterion: str) -> Verification | None:
        """Return the verdict on a criterion, None when there is none."""
        return next((v for v in self.criteria if v.criterion_id == criterion), None)


@dataclass(frozen=True)
class JudgeMaterial:
    """Ratings with everything that the page shows around them.

    `facts` are pairs of a name and a text for the head. `findings` is None while nothing was
    verified, and `unverified` says why. `judged` is None for ratings from a file. `show` is the
    command that prints a run that is not on the page; `{run}` in it stands for its id. `notes` are
    part of the summary, `rubrics` the tables of rubrics and their items. `unfinished` (a sentence
    for each unfinished experiment) comes before everything.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    criteria: tuple[Criterion, ...]
    table: ScoreTable
    findings: StoredVerdicts | None = None
    unverified: str = ""
    judged: JudgedRuns | None = None
    show: str = ""
    notes: tuple[str, ...] = ()
    rubrics: tuple[Table, ...] = ()
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
    """Return the ratings in an order that does not depend on how they were stored.

    Criteria are in the order given, the original precedes the perturbations, all else is by name.
    """
    first: dict[str, Sequence[str]] = {"criterion": criteria, "variant": (ORIGINAL,)}
    columns: dict[str, CodedColumn] = {}
    for name in NAMED:
        part: CodedColumn = getattr(table, name)
        names = [n for n in first.get(name, ()) if n in part.names]
        names += sorted(set(part.names) - set(names))
        position = {n: i for i, n in enumerate(names)}
        codes = np.array([*(position[n] for n in part.names), -1], dtype=np.int32)  # -1: none
        columns[name] = CodedColumn(codes[part.codes], tuple(names))
    order = np.lexsort(
        (table.repeat, columns["run"].codes, columns["variant"].codes, columns["criterion"].codes)
    )
    return ScoreTable(
        **{name: CodedColumn(c.codes[order], c.names) for name, c in columns.items()},
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
    """Return the material for `table`, ratings read from `path` and called `name`.

    Verdicts are those of `agenteval verify --scores`. There are no texts.
    """
    rated = criteria or number_criteria(table)
    ratings = arranged(table, [c.id for c in rated])
    used = tuple(c for c in rated if c.id in set(ratings.present("criterion")))
    result = verify_ratings(path, ratings, used, options)
    return JudgeMaterial(
        title=name,
        facts=(("ratings", f"read from {name}"),),
        criteria=used,
        table=ratings,
        findings=StoredVerdicts(result.criteria, "computed from the ratings", result),
        notes=("ratings from a file: texts and explanations are not available",),
    )


@of_one_state
def from_store(
    store: Store, source_key: str, source: Source, scope: ReportScope, options: VerifyOptions
) -> JudgeMaterial:
    """Return everything that a judge has judged of one task.

    Verdicts are computed where the store holds perturbed copies, else taken from the criteria file
    where it has them. Raises InputError when nothing fits, or when the judge knows several tasks
    and none is chosen.
    """
    unfinished = unfinished_of(store, [source_key], scope.runs)
    remark = remark_of(store, source_key)
    judged = JudgedRuns.of(store, source_key, scope)
    ratings = judged.ratings(judged.criteria, judged.keys)
    ratings = ratings.where(ratings.criterion.codes != ratings.criterion.code(ITEMS))
    shown = pooled(judged.criteria.values(), items=False)
    table = arranged(ratings, [c.id for c in shown])
    if not len(table):
        raise InputError("the judge has not rated these runs on these criteria", "--source")
    criteria = tuple(c for c in shown if c.id in set(table.present("criterion")))
    rubrics = [key for key, c in judged.criteria.items() if c.id == RUBRIC]
    if rubrics:
        of_rubrics = load_ratings(store, source_key, run_keys=judged.keys, criterion_keys=rubrics)
    written = _written(criteria, scope.criteria_file)
    verified = _verified(judged, table, options)
    place = store.place.name if isinstance(store.place, Path) else store.shown
    return JudgeMaterial(
        title=judged.task or "runs",
        facts=_facts(source, judged, place),
        criteria=criteria,
        table=table,
        findings=verified or written,
        unverified="no perturbed copy of these runs was judged: run `agenteval verify`",
        judged=judged,
        show=f"agenteval show --store {place} --source {source_key[:12]} --run {{run}}",
        notes=(*_differences(written, verified), *([remark] if remark else [])),
        rubrics=tuple(rubric_tables(of_rubrics, (*judged.criteria.values(),))) if rubrics else (),
        unfinished=tuple(experiment.line for experiment in unfinished),
    )


def _written(criteria: Sequence[Criterion], file: str) -> StoredVerdicts | None:
    """Return the verdicts that a criteria file carries, None when it has none."""
    written = [c.verification for c in criteria if c.verification is not None]
    try:
        verdicts = tuple(map(Verification.model_validate, written))
    except ValueError as error:
        raise InputError("the verification in this file is malformed", file) from error
    return StoredVerdicts(verdicts, f"read from {file}") if verdicts else None


def _verified(
    judged: JudgedRuns,
    table: ScoreTable,
    options: VerifyOptions,
) -> StoredVerdicts | None:
    """Return the verdicts of `agenteval verify`, None where no copy was judged.

    The runs are those of its latest plan. Where no plan is known, they are the runs with a copy,
    and empty replies, which no perturbation changes, of the same systems. Of originals as many
    repeats count as there are of copies, and only criteria on which copies were rated.
    """
    of_copies = table.where(table.variant.codes != table.variant.code(ORIGINAL))
    if not len(of_copies):
        return None
    store, originals = judged.store, judged.originals
    planned = verified_runs(store, judged.source_key)
    runs = {t.run_key for t in originals if short([t.run_key])[0] in planned}
    if not runs:
        copied = {copy.origin for copy in judged.copies}
        systems = {text.system for text in originals if text.run_key in copied}
        answered = table.of(variant=ORIGINAL)
        none = ("degenerate", "failed_run", "no_answer:")
        codes = [i for i, name in enumerate(answered.status.names) if name.startswith(none)]
        answering = set(answered.where(~np.isin(answered.status.codes, codes)).present("run"))
        runs = {
            text.run_key
            for text in originals
            if text.run_key in copied or (text.system in systems and text.run_id not in answering)
        }
    rated = set(of_copies.present("criterion"))
    criteria = {key: c for key, c in judged.criteria.items() if c.id in rated}
    ratings = judged.ratings(criteria, runs, int(of_copies.repeat.max()) + 1)
    texts = (*originals, *judged.copies)
    facts = CopyFacts({(t.run_id, t.variant): t.length for t in texts})
    result = verify_table(ratings, pooled(criteria.values()), options, copies=facts)
    result = with_drift_warning(result, store.models(judged.source_key))
    origin = "computed from the store"
    if len(runs) < len(originals):
        origin += f", from the {len(runs)} of {len(originals)} runs that `agenteval verify` judged"
    latest = store.verdict_on(judged.source_key, originals[0].task)

    def variants(verified: VerifiedSet) -> set[str]:
        return {effect.variant for v in verified.criteria for effect in v.effects}

    if latest is not None and variants(result) > variants(latest.result):
        origin += ", with the copies of all its calls; the latest alone "
        origin += f"gave: {latest.result.judge.verdict}"
    return StoredVerdicts(result.criteria, origin, result)


def _differences(written: StoredVerdicts | None, verified: StoredVerdicts | None) -> Iterator[str]:
    """Yield a line where the file gives another verdict than the store does now."""
    for old in written.criteria if written and verified else ():
        new = verified.of(old.criterion_id) if verified else None
        if new is not None and new.verdict != old.verdict:
            yield (
                f"{old.criterion_id}: the criteria file says {old.verdict}, "
                f"the store now gives {new.verdict}"
            )


def _facts(source: Source, judged: JudgedRuns, place: str) -> tuple[tuple[str, str], ...]:
    usage = judged.store.usage(judged.source_key)
    used = [t.used for t in (*judged.originals, *judged.copies)]
    days = dict.fromkeys(
        datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
        for seconds in (min(used), max(used))
    )
    tokens = f"{usage.prompt_tokens or 0:,} read, {usage.completion_tokens or 0:,} written"
    return (
        ("judge", f"{source.model} ({source.evaluator}, version {source.version})"),
        ("seed", str(source.seed)),
        ("parameters", json.dumps(source.parameters, ensure_ascii=False, sort_keys=True)),
        ("source", judged.source_key[:16]),
        ("store", place),
        ("runs last registered", " to ".join(days)),
        ("requests", f"{usage.requests:,}"),
        ("tokens", "unknown" if usage.prompt_tokens is None else tokens),
        ("cost", "unknown" if usage.cost is None else f"{usage.cost:,.4f}"),
    )
