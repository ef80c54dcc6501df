"""Read traces, taxonomies and findings from user input, and flag text that addresses the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from agenteval.analysis.flagged import Flag, Flags
from agenteval.analysis.flagged import flags_of as flags_of_views
from agenteval.cli.running import Watch
from agenteval.errors import InputError
from agenteval.readers import make_view
from agenteval.readers.gold import without_gold
from agenteval.readers.injection import texts_signs
from agenteval.readers.source_files import find
from agenteval.readers.span_usage import without_models
from agenteval.readers.strict_json import Notes
from agenteval.readers.traces import of_system, read_file, read_traces
from agenteval.records import Run
from agenteval.traces.annotations import Annotation, read_folder
from agenteval.traces.outline import Outline
from agenteval.traces.taxonomy import Taxonomy, built_in, load_taxonomy

Traces = str | Path | Sequence[str | Path | Run]
TaxonomyLike = str | Path | Taxonomy | None
_MANY = 1000  # spans above which a trace is read again instead of kept in memory


def read_each(
    traces: Traces, watch: Watch, *, with_gold: bool = False
) -> Iterator[tuple[Run, Callable[[], Run]]]:
    """Yield each trace with a function that reads it again; holds one file in memory at a time.

    `traces` are files, folders, globs or runs. `watch` receives skipped files and corrections. Gold
    answers in spans are withheld unless `with_gold` is set. Raises InputError for unreadable
    traces, for an id used twice, and if there are no traces.
    """
    sources = [traces] if isinstance(traces, str | Path) else traces
    seen: dict[str, tuple[Run, str]] = {}

    def unique(run: Run, where: str) -> Run:
        run = of_system(run, seen[run.id][0] if run.id in seen else None)
        if run.id in seen:
            first = seen[run.id][1]
            raise InputError(f"the trace id {run.id!r} was already used in {first}", where)
        seen[run.id] = run.model_copy(update={"spans": (), "messages": ()}), where
        return run

    notes = Notes()
    try:
        for source in sources:
            if isinstance(source, Run):
                run = unique(source if with_gold else without_gold(source), "the runs given")
                yield run, lambda run=run: run  # type: ignore[misc]
                continue
            files = find(str(source))
            for file in files.files:
                for run in read_file(file, files, notes, with_gold=with_gold):
                    _note_unknown(run, file.path, notes)
                    yield _again(unique(run, str(file.path)), run.id, file.path, with_gold)
            for skipped in files.skipped:
                watch.note(f"skipped {skipped.path}: {skipped.reason}")
    except InputError:
        notes = Notes()  # an error is one line
        raise
    finally:
        watch.warn_list("warnings while reading:", notes.lines(), most=10)
    if not seen:
        raise InputError("no trace found", ", ".join(map(str, sources)))


def _note_unknown(run: Run, path: Path, notes: Notes) -> None:
    if warning := without_models(run):
        notes.add(warning, f"{path} (trace {run.id})")


def _again(run: Run, id_in_file: str, path: Path, with_gold: bool) -> tuple[Run, Callable[[], Run]]:
    """Return the run and a function that reads it again, or returns it if it is small."""
    if len(run.spans) < _MANY and path.stat().st_size < 1 << 20:
        return run, lambda: run
    id = run.id

    def read_again() -> Run:
        runs = read_traces(path, with_gold=with_gold).runs
        if (run := next((run for run in runs if run.id == id_in_file), None)) is None:
            raise InputError(
                f"trace {id!r} was removed while the command ran; run it again", str(path)
            )
        return run.model_copy(update={"id": id})

    return run, read_again


def read_taxonomy(taxonomy: TaxonomyLike) -> Taxonomy:
    """Read a taxonomy from a file, or return the built-in one."""
    if isinstance(taxonomy, Taxonomy):
        return taxonomy
    return built_in() if taxonomy is None else load_taxonomy(Path(taxonomy))


def read_findings(
    folder: str | Path, taxonomy: Taxonomy, watch: Watch, what: str
) -> list[Annotation]:
    """Read annotations from a folder or file; `watch` receives corrections, titled `what`."""
    annotations = read_folder(Path(folder), taxonomy)
    lines = [f"{a.name}: {text}" for a in annotations for text in a.warnings]
    watch.warn_list(f"{what}, read with corrections:", lines, most=5)
    return annotations


def name_of(folder: str | Path) -> str:
    """Return the name shown in tables for a folder of findings."""
    return Path(folder).resolve().name or str(folder)


def flags_of(runs: Iterable[Run]) -> Flags:
    """Flag traces, searching everything that a judge would see of them."""
    return flags_of_views((run, make_view(run)) for run in runs)


def flags_of_outlines(outlines: Iterable[Outline]) -> Flags:
    """Flag stored traces, searching their excerpts (inputs only of tools)."""
    flags, examined = [], 0
    for outline in outlines:
        examined += 1
        texts = [outline.task]
        for span in outline.spans:
            texts += [span.input if span.kind == "tool" else "", span.output, span.note]
        if signs := texts_signs(dict.fromkeys(filter(None, texts))):
            flags.append(Flag(outline.trace, None, tuple(sign.name for sign in signs)))
    return Flags(tuple(flags), examined)


def combined(flags: Sequence[Flags]) -> Flags:
    """Merge the flags of several groups of traces."""
    every = tuple(flag for group in flags for flag in group.found)
    return Flags(every, sum(group.examined for group in flags))
