"""agenteval trace annotate: sheets for people to mark errors in, their import, their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, out, print_json, warn_list
from agenteval.cli.outputs import refuse_input
from agenteval.cli.trace_files import (
    Paths,
    TaxonomyFile,
    each_trace,
    read_annotations,
    read_taxonomy,
)
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.taxonomy import Taxonomy
    from agenteval.evaluators.traces.two_annotators import Overlap, TwoAnnotators
    from agenteval.records import Findings
    from agenteval.records.table import Cell

app = typer.Typer(
    help="Mark errors by hand: export sheets, import what was filled in, compare two annotators.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("export")
def export(
    paths: Paths,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the sheets.")],
    start: Annotated[
        Path | None, typer.Option("--findings", help="Begin with these findings, to be reviewed.")
    ] = None,
    chars: Annotated[
        int, typer.Option(help="Characters of an input or output of a span.", min=20)
    ] = 160,
    taxonomy: TaxonomyFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write one sheet (JSON) per trace: a place to fill in, the kinds of errors, its spans."""
    from agenteval.evaluators.traces.annotation_files import sheet
    from agenteval.evaluators.traces.outline import outline
    from agenteval.files import file_in, write_atomically

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output)
    labels = read_taxonomy(taxonomy)
    begin = _by_trace(start, labels) if start else {}
    texts: dict[Path, str] = {}
    taken: set[str] = set()
    for run, _ in each_trace(paths):
        seen = outline(run, most=len(run.spans), excerpt=chars)
        texts[file_in(output, run.id, ".json", taken)] = sheet(seen, labels, begin.get(run.id))
    for path in texts:
        if path.exists():
            raise InputError("this sheet is there already, perhaps filled in; name another folder",
                             str(path))  # fmt: skip
    for path, text in texts.items():
        write_atomically(path, text)
    note(f"{len(texts)} sheets written to {output}")


@app.command("import")
def import_(
    sheets: Annotated[
        list[Path], typer.Argument(help="Sheets, or folders of them.", metavar="SHEETS")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for annotations, official layout.")
    ],
    traces: Annotated[
        list[str], typer.Option(help="The traces, to check span ids: files, folders, globs.")
    ],
    taxonomy: TaxonomyFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Check filled sheets, and write them as annotations; nothing is written if one is wrong."""
    from agenteval.evaluators.traces.annotation_files import read_sheet, write_folder

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output)
    labels = read_taxonomy(taxonomy)
    spans = {run.id: {span.id for span in run.spans} for run, _ in each_trace(traces)}
    done: dict[str, Findings] = {}
    problems: list[str] = []
    for path in _sheets(sheets):
        filled = read_sheet(path, labels, spans)
        problems += filled.problems
        if filled.findings is None:
            note(f"{path}: {'has errors' if filled.problems else 'not filled in yet'}")
        elif filled.trace in done:
            problems.append(f"{path}: a second sheet of trace {filled.trace!r}")
        else:
            done[filled.trace] = filled.findings
    if problems:
        warn_list("what is wrong:", problems, most=50)
        raise InputError(f"{len(problems)} problems, the first: {problems[0]}; nothing was written")
    if not done:
        raise InputError("no sheet is filled in (`errors: []` says that there is none)")
    write_folder(output, done.values())
    found = sum(len(one.findings) for one in done.values())
    note(f"{len(done)} annotations with {found} errors written to {output}")


@app.command("agree")
def agree(
    first: Annotated[Path, typer.Argument(help="Annotations of one person (folder).")],
    second: Annotated[Path, typer.Argument(help="Annotations of another (folder).")],
    traces: Annotated[
        list[str] | None,
        typer.Option(help="The traces: with them kappa of spans is known; repeatable."),
    ] = None,
    taxonomy: TaxonomyFile = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Agreement of two annotators: on spans, on kinds of errors, and on both together."""
    from agenteval.evaluators.traces.two_annotators import two_annotators

    Verbosity.level = -1 if quiet else Verbosity.level
    labels = read_taxonomy(taxonomy)
    sides = [
        [one.findings for one in read_annotations(folder, labels, str(folder))]
        for folder in (first, second)
    ]
    # errors stand at what models and tools do; wrappers around them would only raise kappa
    spans = {
        run.id: [span.id for span in run.spans if span.kind in ("llm", "tool")]
        for run, _ in each_trace(traces or [])
    } if traces else None  # fmt: skip
    found = two_annotators(*sides, taxonomy=labels, spans=spans, seed=seed)
    if as_json:
        print_json(asdict(found))
        return
    _print(found, (first.name, second.name))


def _print(found: TwoAnnotators, names: tuple[str, str]) -> None:
    from agenteval.records.table import Column, Table
    from agenteval.report.terminal import print_table

    columns = (
        Column("what", "what"), Column("both", "both", "count"),
        Column("first", f"only {names[0]}", "count"), Column("second", f"only {names[1]}", "count"),
        Column("neither", "neither", "count"),
        Column("positive", "positive agreement [95 %]", "number"),
        Column("kappa", "kappa", "number"),
    )  # fmt: skip
    rows = [_row("spans", found.spans), _row("spans with category", found.pairs)]
    rows += [_row(f"trace holds {name}", one) for name, one in found.categories.items()]
    notes = [f"{found.traces} traces that both did"]
    notes += [f"{n} by {who} alone" for n, who in
              ((found.only_first, names[0]), (found.only_second, names[1])) if n]  # fmt: skip
    if found.failed:
        notes.append(f"{found.failed} unreadable on one side")
    labels = found.labels
    if labels.spans:
        kappa = "" if labels.kappa is None else f", kappa {labels.kappa:.2f}"
        notes.append(
            f"of {labels.spans} spans to which both gave one category, {labels.same} have the same"
            + kappa
        )
    notes += [f"{a} / {b} {n} times" for a, b, n in labels.mixed[:3]]
    title = f"{names[0]} and {names[1]}"
    print_table(Table("agree", title, columns, tuple(rows), ("; ".join(notes),)), out())
    if found.unknown_spans:
        warn_list("places that are no LLM or tool span of their trace:", found.unknown_spans)
    if found.spans.kappa is None:
        note("kappa of spans needs the spans that could have been marked: --traces")


def _row(name: str, one: Overlap) -> dict[str, Cell]:
    from agenteval.records.table import Estimate

    return {
        "what": name, "both": one.both, "first": one.only_first, "second": one.only_second,
        "neither": one.neither, "positive": Estimate.of(one.positive), "kappa": one.kappa,
    }  # fmt: skip


def _by_trace(folder: Path, labels: Taxonomy) -> dict[str, Findings]:
    return {one.trace: one.findings for one in read_annotations(folder, labels, str(folder))}


def _sheets(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix.lower() == ".json")
        elif path.is_file():
            found.append(path)
        else:
            raise InputError("no such file or folder", str(path))
    if not found:
        raise InputError("no sheet (.json) is here", ", ".join(map(str, paths)))
    return found
