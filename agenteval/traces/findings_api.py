"""Show stored findings of all finders together with findings and gold from folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from agenteval.analysis.flagged import Flags
from agenteval.cli.running import Notify, Watch, opened
from agenteval.errors import InputError
from agenteval.records import Span
from agenteval.records.table import Table
from agenteval.store import Store, default_path, is_there
from agenteval.store.experiments import Unfinished, unfinished_trials
from agenteval.traces.annotations import Annotation, official_text, read_annotation
from agenteval.traces.api import (
    EXCERPTS,
    FindingsReport,
    StorePath,
    as_json,
    by_finder,
    findings_of,
)
from agenteval.traces.evaluation import evaluate
from agenteval.traces.evaluator import EVALUATOR, StoredFindings, load_findings, load_outlines
from agenteval.traces.input import (
    TaxonomyLike,
    Traces,
    combined,
    flags_of,
    flags_of_outlines,
    name_of,
    read_each,
    read_findings,
    read_taxonomy,
)
from agenteval.traces.outline import Outline, outline, trace_key
from agenteval.traces.score import Scoring
from agenteval.traces.score_api import score_tables
from agenteval.traces.tables import FinderFindings
from agenteval.traces.taxonomy import Taxonomy


def findings_report(
    traces: Traces | None = None,
    *,
    findings: Sequence[str | Path] = (),
    gold: str | Path | None = None,
    taxonomy: TaxonomyLike = None,
    store: StorePath = None,
    notify: Notify | None = None,
) -> FindingsReport:
    """Report all finders' stored findings on `traces` (default: all), and those in `findings`
    folders.

    With `gold` (human annotations), the finders are scored against it. Raises InputError if there
    are no findings.
    """
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    keys: set[str] | None = set() if traces else None
    outlines: dict[str, Outline] = {}
    read: list[Flags] = []
    if traces and keys is not None:
        for run, _ in read_each(traces, watch):
            keys.add(trace_key(run))
            outlines[run.id] = outline(run)
            read.append(flags_of([run]))
    stored: list[StoredFindings] = []
    unfinished: list[Unfinished] = []
    path, needed = default_path() if store is None else store, not (findings or gold)
    if isinstance(path, Store) or is_there(path) or needed:
        with opened(path, create=False) as opened_store, opened_store.snapshot():
            unfinished = unfinished_trials(opened_store, [EVALUATOR], keys)
            stored = load_findings(opened_store, traces=keys)
            in_store = load_outlines(opened_store, {row.trace_key for row in stored})
        if not stored and needed:
            lines = "".join(f"; {experiment.line}" for experiment in unfinished)
            raise InputError(
                "the store has no findings on these traces; run `agenteval trace locate` "
                f"first{lines}"
            )
        outlines = _by_id(in_store.values()) | outlines
    finders = by_finder(stored)
    for folder in findings:
        predicted = read_findings(folder, labels, watch, f"findings {folder}")
        by_trace = {annotation.trace: annotation.findings for annotation in predicted}
        finders.append(FinderFindings(name_of(folder), by_trace))
    scores: list[Table] = []
    if gold is not None:
        truth = read_findings(gold, labels, watch, "gold")
        for finder in finders:
            scores += _scores(finder, truth, outlines.values(), labels)
        by_trace = {annotation.trace: annotation.findings for annotation in truth}
        finders.append(FinderFindings(name_of(gold), by_trace, gold=True))
    if keys is not None:
        finders = [
            replace(f, findings={t: of_t for t, of_t in f.findings.items() if t in outlines})
            for f in finders
        ]
    flags = combined(read) if keys is not None else flags_of_outlines(outlines.values())
    report = findings_of(
        finders, labels, watch, flags, outlines=list(outlines.values()), scores=scores
    )
    excerpts = keys is None and flags.examined > 0
    note = (f"text addressed to the judge: {EXCERPTS}",) if excerpts else ()
    rows = [
        {
            "finder": finder.name,
            "gold": finder.gold,
            "findings": [as_json(f, flags) for f in finder.findings.values()],
        }
        for finder in finders
    ]
    return replace(
        report,
        notes=(*report.notes, *note),
        excerpts=excerpts,
        unfinished=tuple(experiment.line for experiment in unfinished),
        data={"findings": rows, "unfinished": [experiment.json() for experiment in unfinished]},
    )


def _by_id(outlines: Iterable[Outline]) -> dict[str, Outline]:
    by_id: dict[str, Outline] = {}
    for stored in outlines:
        if by_id.setdefault(stored.trace, stored) is not stored:
            what = "the store has different traces with this id; pass the trace files"
            raise InputError(what, stored.trace)
    return by_id


def _scores(
    finder: FinderFindings,
    truth: Sequence[Annotation],
    outlines: Iterable[Outline],
    labels: Taxonomy,
) -> list[Table]:
    """Return a finder's first tables against gold, with its name in their titles."""
    predicted = [
        read_annotation(official_text(f, extra=True), t, labels) for t, f in finder.findings.items()
    ]
    spans = {
        o.trace: tuple(Span(id=s.id, parent_id=s.parent_id, kind=s.kind) for s in o.spans)
        for o in outlines
        if o.total == len(o.spans)
    }
    try:
        result = evaluate(truth, predicted, Scoring(taxonomy=labels), spans)
    except ValueError as error:
        raise InputError(str(error), "--gold") from error
    return [
        replace(t, key=f"{t.key} {finder.name}", title=f"{finder.name}: {t.title}")
        for t in score_tables(result)[:2]
    ]
