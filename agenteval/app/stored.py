"""Stored results: the scores of a judge, everything about one run, the sources, rows in a file."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from agenteval.analysis.flagged import stored_flags
from agenteval.analysis.means import Rating, load_ratings
from agenteval.analysis.rating_sources import PAIRWISE, latest_source
from agenteval.analysis.rubrics import items_of
from agenteval.app.agreement import known_criteria
from agenteval.cli.running import opened
from agenteval.errors import InputError
from agenteval.files import write_atomically
from agenteval.readers import make_view, read_runs
from agenteval.readers.scores import read_scores
from agenteval.records import RUBRIC, Source
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.store import Store, default_path
from agenteval.store.experiments import unfinished_of
from agenteval.store.export import counts, export_cells, is_probe, results_on_copies, way_of
from agenteval.store.export import export_replies as replies_of
from agenteval.text import did_you_mean, plural
from agenteval.utility.page import MOST_RUNS, utility_page
from agenteval.utility.page_data import ReportScope, from_ratings, from_store
from agenteval.utility.pairwise.api import preferences
from agenteval.utility.pairwise.pairs import SEPARATOR
from agenteval.utility.reports import ScoreReport, score_report
from agenteval.utility.verify.options import VerifyOptions

_SHOWN = 4000  # characters of a run's text that `results` shows


@dataclass(frozen=True)
class _SourceRow:
    key: str = column("source")
    source: str = column("hash", hidden=True)
    model: str = column("model")
    evaluator: str = column("evaluator")
    seed: int | None = column("seed", "count")
    requests: int = column("requests", "count")
    way: str = column("asked in this way")


@dataclass(frozen=True)
class _TableRow:
    table: str = column("table")
    rows: int = column("rows", "count")


@dataclass(frozen=True)
class _ResultRow:
    criterion_id: str = column("criterion")
    repeat: int = column("repeat", "count")
    value: float | None = column("value", "number")
    shown: str = column("level")
    level: str | None = column("level", hidden=True)
    status: str = column("status", hidden=True)
    explanation: str = column("explanation")


@dataclass(frozen=True)
class _RubricAnswerRow:
    item: str = column("item")
    repeat: int = column("repeat", "count")
    weight: float = column("weight", "number")
    answer: str = column("answer", "text", "the level, or the status without one")
    statement: str = column("statement")


@dataclass(frozen=True)
class _TextRow:
    part: str = column("run")
    text: str = column("text")


def scores(
    store: str | Path | Store | None = None, *, source: str | None = None, levels: bool = False
) -> ScoreReport:
    """Return the stored scores of one source (a judge, an agent under test or a finder, by the
    start of its hash; default: the latest) as `quantify` does. With `levels`, means are levels from
    0 instead of values from 0 to 1.

    Raises InputError for an unknown source and one that compared pairs, and StoreError when a store
    cannot be read.
    """
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        key, record = latest_source(opened_store, source)
        if record.evaluator == PAIRWISE:
            what = f"{record.model} compared pairs; `agenteval show` prints the preferences"
            raise InputError(what, "source")
        ratings = load_ratings(opened_store, key)
        rated = {r.criterion_id for r in ratings}
        unfinished = unfinished_of(opened_store, [key])
        way = way_of(record)
        notes = [f"asked in this way: {way}"] if way else []
        if not ratings:
            notes.append(_no_originals(opened_store, key, record))
        report = score_report(
            record,
            [c for c in opened_store.newest_criteria(key).values() if c.id in rated],
            ratings,
            opened_store.usage(key),
            opened_store.address,
            stored_flags(opened_store, {r.run_id for r in ratings}, key),
            notes=notes,
            unfinished=[open_.line for open_ in unfinished],
            levels=levels,
        )
        if all(key != judge for judge, _ in opened_store.sources()):
            report = replace(report, notes=tuple(notes))  # a trial has only its own outcome
    more = {"way": way, "unfinished": [open_.json() for open_ in unfinished]}
    return replace(report, data={**report.data, **more})


def shown(
    store: str | Path | Store | None = None, *, source: str | None = None, levels: bool = False
) -> Report:
    """Return the same as `scores`, or as `preferences` where the source compared pairs of runs.
    Raises InputError and StoreError."""
    with opened(store, create=False) as opened_store:
        key, record = latest_source(opened_store, source)
        if record.evaluator == PAIRWISE:
            return preferences(opened_store, source=key)
        return scores(opened_store, source=source, levels=levels)


def _no_originals(store: Store, key: str, record: Source) -> str:
    """Return a line about the results of a source that judged only copies."""
    variants = Counter(r.key.variant.partition(":")[0] for r in store.results(key))
    held = ", ".join(f"{n} of {name!r} copies" for name, n in sorted(variants.items()))
    what = "a source of `verify --probes`" if is_probe(record) else "this source"
    return (
        f"{what} ({record.model}): only copies were judged, so there is no table; results: "
        f"{held or 'none'}. `agenteval export FILE --source {key[:12]} --with-copies` "
        "writes them"
    )


def sources(store: str | Path | Store | None = None) -> Report:
    """Return the sources of results (judges, agents and finders), one row each, oldest first.

    Raises StoreError when the store cannot be read.
    """
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        everyone = opened_store.sources(trials=True)
        rows = [
            _SourceRow(
                key=key[:12],
                source=key,
                model=source.model,
                evaluator=source.evaluator,
                seed=source.seed,
                requests=opened_store.usage(key).requests,
                way=way_of(source),
            )
            for key, source in everyone
        ]
        unfinished = [
            (f"{source.model} ({key[:12]}): {open_.line}", open_.json())
            for key, source in everyone
            for open_ in unfinished_of(opened_store, [key])
        ]
    return Report(
        title="",
        tables=(table_of(_SourceRow, "sources", "", rows),),
        unfinished=tuple(line for line, _ in unfinished),
        data={"unfinished": [values for _, values in unfinished]},
    )


def store_info(store: str | Path | Store | None = None) -> Report:
    """Return the rows of every table, the sources of results, and unfinished work. Raises
    StoreError for one that is not there or cannot be read."""
    with opened(store, create=False) as opened_store:
        with opened_store.snapshot():
            rows = [_TableRow(name, count) for name, count in counts(opened_store).items()]
        whose = sources(opened_store)
        tables = (table_of(_TableRow, "tables", "", rows), *whose.tables)
        return replace(whose, title=opened_store.shown, tables=tables)


def results(
    run: str,
    store: str | Path | Store | None = None,
    *,
    source: str | None = None,
    system: str | None = None,
) -> Report:
    """Return everything that one source (default: the latest) recorded about one run: levels,
    explanations, and the text that the judge saw.

    If several systems, or several texts, have the id `run`, it is the one stored last; `system`
    chooses. Raises InputError for an unknown run or source, and StoreError when a store cannot be
    read.
    """
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        key, _ = latest_source(opened_store, source)
        every = [r for r in load_ratings(opened_store, key) if system in (None, r.system)]
        ratings = [r for r in every if run in (r.run_id, r.run_id.removeprefix(f"{r.system}/"))]
        if not ratings:
            raise _no_scores(run, system, every)
        order = {run_key: number for number, run_key in enumerate(opened_store.runs())}
        newest = max(ratings, key=lambda r: order[r.run_key])
        systems = sorted({r.system or "unnamed" for r in ratings})
        ratings = [r for r in ratings if r.run_key == newest.run_key]
        stored = {
            (r.criterion_id, r.key.repeat): r
            for r in opened_store.results(key, variant="original")
            if r.key.run == newest.run_key
        }
        flags = stored_flags(opened_store, {newest.run_id}, key)
        unfinished = [open_.line for open_ in unfinished_of(opened_store, [key])]
        ((_, body),) = opened_store.bodies([newest.run_key])
        criteria = opened_store.criteria_of(key)
    notes = [f"its text seems to address the judge: {', '.join(f.signs)}" for f in flags.found]
    if len(systems) > 1:
        several = f"{len(systems)} systems, {', '.join(systems)}"
        notes.append(f"run {newest.run_id!r} of {several}: --system chooses")
    texts = [
        _TextRow(name, text if len(text) <= _SHOWN else text[:_SHOWN] + " …")
        for name, text in (("input", body.get("problem")), ("done", body.get("trajectory")))
        if text
    ]
    rows = [
        _ResultRow(
            criterion_id=r.criterion_id,
            repeat=r.repeat,
            value=r.value,
            shown=r.label or r.status,
            level=r.label,
            status=r.status,
            explanation=r.message
            or getattr(stored[r.criterion_id, r.repeat], "explanation", None)
            or "",
        )
        for r in sorted(ratings, key=lambda r: (r.criterion_id, r.repeat))
    ]
    answers = [
        _RubricAnswerRow(
            item=rated.item.id,
            repeat=r.repeat,
            weight=1.0 if rated.item.weight is None else rated.item.weight,
            answer=rated.label or rated.status,
            statement=rated.item.description,
        )
        for r in ratings
        if r.criterion_id == RUBRIC
        for rated in items_of(criteria[r.criterion_key], r.status, r.value, r.evidence)
    ]
    tables = [table_of(_TextRow, "texts", "", texts), table_of(_ResultRow, "results", "", rows)]
    if answers:
        title = "items of the run's rubric"
        tables.append(table_of(_RubricAnswerRow, "rubric_items", title, answers))
    ended = {True: "success", False: "failed", None: "success unknown"}[newest.success]
    return Report(
        title=f"{newest.run_id}  system {newest.system}  {ended}",
        tables=tuple(tables),
        notes=tuple(notes),
        unfinished=tuple(unfinished),
        data={"run": newest.run_id, "system": newest.system, "success": newest.success},
    )


def _no_scores(run: str, system: str | None, ratings: Sequence[Rating]) -> InputError:
    names = sorted({r.run_id for r in ratings})
    plain_names = sorted({r.run_id.removeprefix(f"{r.system}/") for r in ratings})
    hint = did_you_mean(run, names) or f"there are: {', '.join(names[:10])}"
    if compared := [name for name in plain_names if run in name.split(SEPARATOR)]:
        hint = f"it was compared in {', '.join(map(repr, compared[:10]))}"
    by = f" of {system!r}" if system else ""
    return InputError(f"no scores of run {run!r}{by} by this judge; {hint}", "--run")


def view_command(store: str | Path | None) -> str:
    """Return the command that shows a store (default: that of `Store`) in the browser."""
    return f"agenteval view {shlex.quote(str(store or default_path()))}"


def export(
    path: str | Path,
    store: str | Path | Store | None = None,
    *,
    source: str | None = None,
    all_ways: bool = False,
    with_copies: bool = False,
    otlp: bool = False,
    traces: str | Path | None = None,
    explanations: bool = True,
) -> Report:
    """Write every stored result to a .jsonl, .csv or .parquet file, one row per result.

    Results on perturbed copies are omitted unless `with_copies`, and without a `source` those of
    probes unless `all_ways`. With `otlp` each result becomes an OpenTelemetry event, written to a
    file or sent to a URL; `traces` (the source of the runs) links events to their spans, see
    docs/opentelemetry.md.

    Returns a report whose notes list what was omitted. Raises InputError, StoreError, and
    ModelError when the endpoint refuses events.
    """
    if otlp:
        from agenteval.app.telemetry import send_events

        with TemporaryDirectory() as folder:  # do not keep the store open while an endpoint answers
            cells = Path(folder) / "cells.jsonl"
            report = export(cells, store, source=source, all_ways=all_ways, with_copies=with_copies)
            where = send_events(cells, path, report.data["rows"], traces, explanations)
        title = f"{report.data['rows']} results sent as events to {where}"
        return replace(report, title=title, data={**report.data, "file": where})
    if traces is not None or not explanations:
        raise InputError("needs --otlp", "--traces, --no-explanations")
    path = Path(path)
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        everyone = opened_store.sources(trials=True)
        key = None if source is None else latest_source(opened_store, source)[0]
        chosen = [
            k for k, s in everyone if key in (None, k) and (key or all_ways or not is_probe(s))
        ]
        unfinished = [open_.line for open_ in unfinished_of(opened_store, chosen)]
        rows = export_cells(opened_store, path, source_key=key, probes=all_ways, copies=with_copies)
        copies = 0 if with_copies else results_on_copies(opened_store, chosen)
    notes = []
    if copies:
        notes.append(f"left out: {copies} results on perturbed copies; --with-copies adds them")
    ways = [way_of(s) for _, s in everyone if is_probe(s)]
    if ways and key is None and not all_ways:
        notes.append(
            f"left out: {plural(len(ways), 'source')} that `verify --probes` asked in other ways "
            f"({', '.join(dict.fromkeys(ways))}); --all-ways adds them"
        )
    return Report(
        title=f"{rows} results written to {path}",
        tables=(),
        notes=tuple(notes),
        unfinished=tuple(unfinished),
        data={"rows": rows, "file": str(path)},
    )


def export_replies(
    path: str | Path, store: str | Path | Store | None = None, *, model: str | None = None
) -> Report:
    """Write the stored replies of all models, or of `model`, to a file that `replay:FILE` reads.

    Raises InputError when none is stored, when two models replied differently to the same request,
    and for a file that cannot be written; StoreError for a store that cannot be read.
    """
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        exported = replies_of(opened_store, Path(path), model)
    notes = []
    if exported.without_request:
        number = plural(exported.without_request, "reply")
        notes.append(f"omitted: {number} stored by an earlier version without their requests")
    return Report(
        title=f"{plural(exported.written, 'reply')} written to {path}",
        tables=(),
        notes=tuple(notes),
        data={"replies": exported.written, "file": str(path)},
    )


def page(
    output: str | Path = "report.html",
    runs: str | None = None,
    *,
    store: str | Path | Store | None = None,
    source: str | None = None,
    task: str | None = None,
    criteria: str | Path | None = None,
    scores: str | Path | None = None,
    rater: str | None = None,
    most_runs: int | None = None,
    min_cases: int = 20,
    deterministic: bool = False,
) -> Report:
    """Write one self-contained HTML page: the verdict, the measurements, missing results, and every
    run.

    The page covers one source (default: the latest) and one task, restricted to `runs` (a file,
    folder or glob) and to the criteria of a file. Alternatively it covers a file of ratings,
    `scores` (of one `rater`; `deterministic` ones need no repeats). At most `most_runs` runs (500)
    can be opened on the page. If the source is an agent under test or a finder, the page is that of
    `plan report`, `flow report` or `trace report` with all systems.

    Returns a report with the path and size of the page. Raises InputError and StoreError.
    """
    if scores is None and deterministic:
        raise InputError("needs --scores", "--deterministic")
    if scores is None and rater is not None:
        raise InputError("needs --scores: only a file of ratings has raters", "--rater")
    if scores is not None and (runs is not None or source is not None):
        raise InputError(
            "remove RUNS and --source: they select in the store, and --scores reads a file",
            "--scores",
        )
    criteria_list, notes = known_criteria(criteria, None)
    most = MOST_RUNS if most_runs is None else most_runs
    thresholds = VerifyOptions(min_cases=min_cases, deterministic=deterministic)
    if scores is not None:
        path = Path(scores)
        table = read_scores(path, criteria_list, rater=rater)
        name = path.name if rater is None else f"{path.name}, rater {rater}"
        material = from_ratings(path, table, criteria_list, name, thresholds)
        return _written(output, utility_page(material, most_runs=most), notes)
    of_judges = {"RUNS": runs, "--task": task, "--criteria": criteria, "--most-runs": most_runs}
    chosen = next((option for option, value in of_judges.items() if value is not None), None)
    file = Path(criteria).name if criteria is not None else ""
    with opened(store, create=False) as opened_store:
        views = None if runs is None else _views(runs, opened_store, notes)
        scope = ReportScope(task, criteria_list if criteria is not None else None, file, views)
        notes += [changed.line for changed in opened_store.relabel(criteria_list)]
        with opened_store.snapshot():
            trials = source is not None or chosen is None
            key, record = latest_source(opened_store, source, trials=trials)
            judges = {judge for judge, _ in opened_store.sources()}
            if record.evaluator == PAIRWISE:
                if chosen:
                    problem = f"selects ratings of runs, and {record.model} compared pairs"
                    raise InputError(problem, chosen)
                return _page_of(output, preferences(opened_store, source=key))
            if key in judges:
                material = from_store(opened_store, key, record, scope, thresholds)
                html = utility_page(material, most_runs=most)  # reads the texts of runs
                return _written(output, html, notes, material.unfinished)
            if chosen:
                problem = f"selects runs rated by a judge, not trials of {record.model}"
                raise InputError(problem, chosen)
            if source is None:
                notes += _other_experiments(opened_store, record, judges)
            report = _trials(opened_store, record.evaluator.partition(".")[0])
            return _page_of(output, report, notes)


def _page_of(output: str | Path, report: Report, notes: Sequence[str] = ()) -> Report:
    return _written(output, report.page(), [*notes, *report.notes], report.unfinished)


def _written(
    output: str | Path, html: str, notes: Sequence[str], unfinished: Sequence[str] = ()
) -> Report:
    write_atomically(Path(output), html)
    size = len(html.encode()) / 1e6
    return Report(
        title=f"{output}: {size:.1f} MB, opens in any browser, offline",
        tables=(),
        notes=tuple(notes),
        unfinished=tuple(unfinished),
        data={"file": str(output)},
    )


def trials_page(
    output: str | Path, step: str, *, store: str | Path | Store | None = None
) -> Report:
    """Write the page of all stored trials of a step: plan, trace or flow. Raises StoreError."""
    family = {"plan": "planning", "trace": "traces", "flow": "workflows"}[step]
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        return _page_of(output, _trials(opened_store, family))


def _trials(store: Store, family: str) -> Report:
    """Return all trials of a family of evaluators. Raises InputError for one without a page."""
    # Each loads the evaluators of its family.
    if family == "planning":
        from agenteval.planning.api import plan_report

        return plan_report(store)
    if family == "workflows":
        from agenteval.workflows.api import flow_results

        return flow_results(store)
    if family == "traces":
        from agenteval.traces.findings_api import findings_report

        return findings_report(store=store)
    raise InputError(f"there is no page for {family}; `agenteval show` prints its table")


def _other_experiments(store: Store, shown: Source, judges: Collection[str]) -> list[str]:
    """Return a line on other experiments in the store: one source per judge, and the latest of each
    other evaluator."""

    def family(source: Source) -> str:
        return source.evaluator.partition(".")[0]

    experiments = {
        key if key in judges else family(source): f"{key[:12]} ({source.evaluator}, {source.model})"
        for key, source in store.sources(trials=True)
        if key in judges or family(source) != family(shown)
    }
    listed = ", ".join(experiments.values())
    line = f"the page is about {family(shown)}; choose others with --source: {listed}"
    return [line] if experiments else []


def _views(runs: str, store: Store, notes: list[str]) -> frozenset[str]:
    """Keys of runs in any task of the store, with and without their reference."""
    read = read_runs(runs, task="")
    notes += [f"skipped {skipped.path}: {skipped.reason}" for skipped in read.skipped]
    notes += [f"while reading: {line}" for line in read.warnings]
    views = [(r, make_view(r, with_reference=shown)) for r in read.runs for shown in (False, True)]
    worst = {"failed_as": "worst"}
    views += [(run, v.model_copy(update=worst)) for run, v in views if v.failed_as]
    owned = {
        view.model_copy(update={"owner": (task, run.system)}).sha256
        for task in {row["task"] for row in store.runs().values()}
        for run, view in views
    }
    return frozenset(owned.union(view.text_sha256 for _, view in views))
