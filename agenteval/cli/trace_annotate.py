"""agenteval trace annotate: sheets for people to mark errors in, their import, their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, notify, warn_list
from agenteval.cli.options import OutputOptions
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.records import Findings

Paths = Annotated[
    list[str], typer.Argument(help="Traces: files, folders, or globs in quotes.", metavar="PATHS")
]
TaxonomyFile = Annotated[
    Path | None, typer.Option("--taxonomy", help="Your own kinds of errors (JSON or YAML).")
]

app = typer.Typer(
    help="Mark errors by hand: export sheets, import what was filled in, compare two annotators.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("export")
@grouped
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
    from agenteval.api.running import Watch
    from agenteval.api.trace_input import read_each, read_findings, read_taxonomy
    from agenteval.evaluators.traces.annotation_files import sheet
    from agenteval.evaluators.traces.outline import outline
    from agenteval.files import file_in, write_atomically

    refuse_input(output)
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    begin = (
        {result.trace: result.findings for result in read_findings(start, labels, watch)}
        if start
        else {}
    )
    texts: dict[Path, str] = {}
    taken: set[str] = set()
    for run, _ in read_each(paths, watch):
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
@grouped
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
    from agenteval.api.running import Watch
    from agenteval.api.trace_input import read_each, read_taxonomy
    from agenteval.evaluators.traces.annotation_files import read_sheet, write_folder

    refuse_input(output)
    labels = read_taxonomy(taxonomy)
    spans = {run.id: {span.id for span in run.spans} for run, _ in read_each(traces, Watch(notify))}
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
    errors = sum(len(result.findings) for result in done.values())
    note(f"{len(done)} annotations with {errors} errors written to {output}")


def _sheets(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(p for p in path.iterdir() if p.suffix.lower() == ".json")
        elif path.is_file():
            files.append(path)
        else:
            raise InputError("no such file or folder", str(path))
    if not files:
        raise InputError("no sheet (.json) is here", ", ".join(map(str, paths)))
    return files


@app.command("agree")
@grouped
def agree(
    first: Annotated[Path, typer.Argument(help="Annotations of one person (folder).")],
    second: Annotated[Path, typer.Argument(help="Annotations of another (folder).")],
    output: OutputOptions,
    traces: Annotated[
        list[str] | None,
        typer.Option(help="The traces: with them kappa of spans is known; repeatable."),
    ] = None,
    taxonomy: TaxonomyFile = None,
    seed: options.Seed = 0,
) -> None:
    """Agreement of two annotators: on spans, on kinds of errors, and on both together."""
    from agenteval.api.trace_scores import annotators

    finish(annotators(first, second, traces=traces, taxonomy=taxonomy, seed=seed, notify=notify),
           output)  # fmt: skip
