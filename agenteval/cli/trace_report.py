"""agenteval trace report: what was found in the stored traces, as tables and one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note
from agenteval.cli.flags import outline_flags, run_flags, say
from agenteval.cli.outputs import refuse_input
from agenteval.cli.trace_files import (
    FindingsDirs,
    TaxonomyFile,
    each_trace,
    findings_of,
    name_of,
    read_annotations,
    read_taxonomy,
)
from agenteval.errors import InputError
from agenteval.trust.flagged import Flag, Flags

if TYPE_CHECKING:
    from agenteval.evaluators.traces.annotations import Annotation
    from agenteval.evaluators.traces.outline import Outline
    from agenteval.evaluators.traces.taxonomy import Taxonomy
    from agenteval.records import Findings, Span
    from agenteval.report.sheet import Sheet
    from agenteval.report.traces_material import Finder, Material
    from agenteval.store.experiments import Unfinished

_EXCERPTS = ("signs of talk to the judge", "looked for in the stored excerpts; name the files of "
             "the traces to have all of their text looked through")  # fmt: skip


def report(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Only these traces. Default: all stored.", metavar="PATHS"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="HTML page to write.")
    ] = None,
    findings: FindingsDirs = None,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of annotations: shown beside, and scored against.")
    ] = None,
    spans: Annotated[int, typer.Option(help="Spans drawn of a trace at most.", min=1)] = 200,
    most: Annotated[int, typer.Option("--traces", help="Traces on the page at most.", min=1)] = 100,
    taxonomy: TaxonomyFile = None,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Errors by category and finder; with -o a page that shows them on the spans."""
    from agenteval.cli import begun
    from agenteval.cli.console import print_json

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [*(paths or ()), gold, taxonomy], store=store)
    labels = read_taxonomy(taxonomy)
    material, unfinished = _material(paths or [], findings or [], gold, labels, store)
    begun.say(unfinished, aside=as_json)
    if as_json:
        open_ = begun.as_json(unfinished)
        print_json([{**one, "unfinished": open_} for one in _as_json(material)])
    else:
        from agenteval.cli.plan_table import print_table
        from agenteval.report.traces_tables import plain_tables

        for table in plain_tables(material):
            print_table(table)
        say(material.flags)
        if material.flags.examined and not paths:
            note(": ".join(_EXCERPTS))
    if output is not None:
        from agenteval.evaluators.traces.forest import Bounds
        from agenteval.files import write_atomically
        from agenteval.report.traces import traces_page

        facts = [("taxonomy", f"{labels.name}, version {labels.version}")]
        if material.flags.examined and not paths:
            facts.append(_EXCERPTS)
        page = traces_page(
            material, facts=facts, most_traces=most, bounds=Bounds(spans=spans),
            unfinished=[one.line for one in unfinished],
        )  # fmt: skip
        write_atomically(output, page)
        note(f"written: {output}")


def _material(
    paths: Sequence[str],
    folders: Sequence[Path],
    gold: Path | None,
    labels: Taxonomy,
    store: Path | None,
) -> tuple[Material, list[Unfinished]]:
    """What is shown, and which finders have not come to the end of these traces."""
    from agenteval.report.traces_material import Finder, Material

    given, outlines, flags = _given(paths)
    needed = not (folders or gold)
    stored, more, unfinished = _stored(store, given if paths else None, needed=needed)
    outlines = {**more, **outlines}
    finders = list(stored)
    finders += [Finder(name_of(folder), findings_of(folder, labels)) for folder in folders]
    truth = read_annotations(gold, labels, "gold") if gold else []
    if gold is not None:
        people = {one.trace: one.findings for one in truth}
        scores = [sheet for f in finders for sheet in _scores(f, truth, outlines, labels)]
        finders.append(Finder(name_of(gold), people, gold=True))
    else:
        scores = []
    if paths:
        finders = [_only(finder, outlines) for finder in finders]
    if not paths:
        flags = outline_flags(outlines.values())
    return Material(outlines, finders, labels, scores, flags), unfinished


def _given(paths: Sequence[str]) -> tuple[set[str], dict[str, Outline], Flags]:
    """Keys, outlines and flags of the traces that were named."""
    from agenteval.evaluators.traces.outline import outline, trace_key

    keys: set[str] = set()
    outlines = {}
    found: list[Flag] = []
    for run, _ in each_trace(paths) if paths else ():
        keys.add(trace_key(run))
        outlines[run.id] = outline(run)
        found += [Flag(f.run, None, f.signs) for f in run_flags([run]).found]
    return keys, outlines, Flags(tuple(found), len(outlines))


def _stored(
    store: Path | None, keys: set[str] | None, *, needed: bool
) -> tuple[list[Finder], dict[str, Outline], list[Unfinished]]:
    from agenteval.cli import begun
    from agenteval.evaluators.traces.trials import EVALUATOR, load_findings, load_outlines
    from agenteval.report.traces_material import Finder
    from agenteval.store import Store, default_path
    from agenteval.store.experiments import unfinished_trials

    path = store or default_path()
    if not Path(str(path)).is_file() and not needed:
        return [], {}, []
    with Store(path, create=False) as opened, opened.snapshot():
        unfinished = unfinished_trials(opened, [EVALUATOR], keys)
        found = load_findings(opened, traces=keys)
        outlines = load_outlines(opened, {one.trace_key for one in found})
    if not found and needed:
        begun.say(unfinished, aside=True)
        raise InputError("nothing is stored of these traces; run `agenteval trace locate` first")
    _check_ids({key: one.trace for key, one in outlines.items()})
    by_finder: dict[str, dict[str, Findings]] = {}
    for one in found:
        by_finder.setdefault(one.finder, {})[one.findings.trace] = one.findings
    finders = [Finder(name, said) for name, said in by_finder.items()]
    return finders, {one.trace: one for one in outlines.values()}, unfinished


def _check_ids(names: dict[str, str]) -> None:
    seen: set[str] = set()
    for name in names.values():
        if name in seen:
            raise InputError(
                "the store holds different traces of this id; name the files you mean", name
            )
        seen.add(name)


def _only(finder: Finder, outlines: dict[str, Outline]) -> Finder:
    from dataclasses import replace

    return replace(finder, findings={t: f for t, f in finder.findings.items() if t in outlines})


def _scores(
    finder: Finder, truth: Sequence[Annotation], outlines: dict[str, Outline], labels: Taxonomy
) -> list[Sheet]:
    """The tables of a finder against gold, its name in their titles."""
    from dataclasses import replace

    from agenteval.evaluators.traces.annotations import official_text, read_annotation
    from agenteval.evaluators.traces.score_tables import score_tables
    from agenteval.evaluators.traces.scorer import Scoring
    from agenteval.evaluators.traces.scoring import evaluate
    from agenteval.report.traces_tables import sheet_of

    said = [read_annotation(official_text(f, extra=True), t, labels)
            for t, f in finder.findings.items()]  # fmt: skip
    try:
        result = evaluate(truth, said, Scoring(taxonomy=labels), _spans(outlines))
    except ValueError as error:
        raise InputError(str(error), "--gold") from error
    tables = score_tables(result)[:2]
    return [sheet_of(replace(t, title=f"{finder.name}: {t.title}")) for t in tables]


def _spans(outlines: dict[str, Outline]) -> dict[str, tuple[Span, ...]]:
    """Spans of the traces whose outline is whole, without their text."""
    from agenteval.records import Span

    return {
        trace: tuple(Span(id=s.id, parent_id=s.parent_id, kind=s.kind) for s in one.spans)
        for trace, one in outlines.items()
        if one.total == len(one.spans)
    }


def _as_json(material: Material) -> list[dict[str, object]]:
    signs = {flag.run: list(flag.signs) for flag in material.flags.found}
    return [
        {
            "finder": finder.name,
            "gold": finder.gold,
            "findings": [
                {"signs": signs.get(f.trace, []), **f.model_dump(mode="json")}
                for f in finder.findings.values()
            ],
        }
        for finder in material.finders
    ]
