"""What the trace commands share: reading traces, findings and annotations; options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli.console import note, warn, warn_list
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.annotations import Annotation
    from agenteval.evaluators.traces.taxonomy import Taxonomy
    from agenteval.evaluators.traces.trials import TraceCase
    from agenteval.records import Findings, Run

Paths = Annotated[
    list[str], typer.Argument(help="Traces: files, folders, or globs in quotes.", metavar="PATHS")
]
TaxonomyFile = Annotated[
    Path | None, typer.Option("--taxonomy", help="Your own kinds of errors (JSON or YAML).")
]
FindingsDirs = Annotated[
    list[Path] | None,
    typer.Option("--findings", help="Folder of findings, one JSON file per trace; repeatable."),
]
_MANY = 1000  # spans from which a trace is read anew rather than kept


def each_trace(paths: Sequence[str]) -> Iterator[tuple[Run, Callable[[], Run]]]:
    """Every trace of the paths, one file in memory at a time, with a way to read it again.

    Says on standard error what was passed over and put right. Raises InputError for what cannot be
    read, for an id used twice, and when there is no trace at all.
    """
    from agenteval.readers.sources import find
    from agenteval.readers.tracing import read_traces

    seen: dict[str, str] = {}
    for source in paths:
        found = find(source)
        for file in found.files:
            if not found.single and not _is_trace(file.path):
                note(f"skipped {file.path}: no trace")
                continue
            result = read_traces(file.path)
            warn_list("warnings while reading:", result.warnings, most=5)
            for run in result.runs:
                if run.id in seen:
                    raise InputError(
                        f"the trace id {run.id!r} was already used in {seen[run.id]}",
                        str(file.path),
                    )
                seen[run.id] = str(file.path)
                yield run, _reader(file.path, run)
    if not seen:
        raise InputError("no trace found", ", ".join(paths))


def _is_trace(path: Path) -> bool:
    from agenteval.readers.tracing.files import looks_like_traces

    return looks_like_traces(path)


def _reader(path: Path, run: Run) -> Callable[[], Run]:
    if len(run.spans) < _MANY and path.stat().st_size < 1 << 20:
        return lambda: run
    name = run.id

    def again() -> Run:
        from agenteval.readers.tracing import read_traces

        for one in read_traces(path).runs:
            if one.id == name:
                return one
        raise InputError(f"trace {name!r} is gone; start again", str(path))

    return again


def read_cases(paths: Sequence[str], limit: int | None = None) -> list[TraceCase]:
    """The traces as cases of a campaign; only small ones stay in memory."""
    from agenteval.evaluators.traces.trials import case_of

    cases = []
    for run, again in each_trace(paths):
        cases.append(case_of(run, again))
        if len(cases) == limit:
            break
    return cases


def one_trace(path: str) -> Run:
    """The only trace of a file. Raises InputError when there are several."""
    runs = [run for run, _ in each_trace([path])]
    if len(runs) > 1:
        names = ", ".join(run.id for run in runs[:5])
        raise InputError(f"{len(runs)} traces are here ({names}...); name one with --trace", path)
    return runs[0]


def read_taxonomy(path: Path | None) -> Taxonomy:
    """The taxonomy of a file, or the built-in one."""
    from agenteval.evaluators.traces.taxonomy import built_in, load_taxonomy

    return built_in() if path is None else load_taxonomy(path)


def read_annotations(folder: Path, taxonomy: Taxonomy, what: str) -> list[Annotation]:
    """Annotations of a folder or file; what was put right or unreadable is said."""
    from agenteval.evaluators.traces.annotation_files import read_folder

    found = read_folder(folder, taxonomy)
    lines = [f"{one.name}: {text}" for one in found for text in one.warnings]
    warn_list(f"{what}, read with changes:", lines, most=5)
    return found


def findings_of(folder: Path, taxonomy: Taxonomy) -> dict[str, Findings]:
    """Findings of a folder by trace id."""
    return {
        one.trace: one.findings for one in read_annotations(folder, taxonomy, f"findings {folder}")
    }


def name_of(folder: Path) -> str:
    """What a folder of findings is called in tables."""
    return folder.resolve().name or str(folder)


def warn_unknown_spans(run: Run, findings: Findings) -> None:
    """Says which findings stand at no span of the trace."""
    known = {span.id for span in run.spans}
    lost = [f"{one.category} at {one.span!r}" for one in findings.findings if one.span not in known]
    if lost:
        warn(f"{len(lost)} findings stand at no span of this trace: {'; '.join(lost[:3])}")
