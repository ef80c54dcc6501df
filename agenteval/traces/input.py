"""Traces, taxonomies and findings as people hand them over, and what in them talks to a judge."""

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
from agenteval.readers.strict_json import Notes
from agenteval.readers.traces import read_file, read_traces
from agenteval.records import Run
from agenteval.traces.annotation_files import read_folder
from agenteval.traces.annotations import Annotation
from agenteval.traces.outline import Outline
from agenteval.traces.taxonomy import Taxonomy, built_in, load_taxonomy

Traces = str | Path | Sequence[str | Path | Run]
TaxonomyLike = str | Path | Taxonomy | None
_MANY = 1000  # spans from which a trace is read anew rather than kept


def read_each(
    traces: Traces, watch: Watch, *, with_gold: bool = False
) -> Iterator[tuple[Run, Callable[[], Run]]]:
    """Every trace, one file in memory at a time, with a way to read it again.

    `traces` are files, folders, globs or runs. `watch` hears what was passed over and put right.
    Gold answers in spans are withheld unless `with_gold`.
    Raises InputError for what cannot be read, for an id used twice, and when there is none at all.
    """
    given = [traces] if isinstance(traces, str | Path) else traces
    seen: dict[str, str] = {}

    def once(run: Run, where: str) -> Run:
        if run.id in seen:
            raise InputError(f"the trace id {run.id!r} was already used in {seen[run.id]}", where)
        seen[run.id] = where
        return run

    notes = Notes()
    try:
        for source in given:
            if isinstance(source, Run):
                run = once(source if with_gold else without_gold(source), "the runs given")
                yield run, lambda run=run: run  # type: ignore[misc]
                continue
            files = find(str(source))
            for file in files.files:
                for run in read_file(file, files, notes, with_gold=with_gold):
                    yield once(run, str(file.path)), _reader(file.path, run, with_gold)
            for skipped in files.skipped:
                watch.note(f"skipped {skipped.path}: {skipped.reason}")
    except InputError:
        notes = Notes()  # what is wrong is one line
        raise
    finally:
        watch.warn_list("warnings while reading:", notes.lines(), most=10)
    if not seen:
        raise InputError("no trace found", ", ".join(map(str, given)))


def _reader(path: Path, run: Run, with_gold: bool) -> Callable[[], Run]:
    if len(run.spans) < _MANY and path.stat().st_size < 1 << 20:
        return lambda: run
    name = run.id

    def again() -> Run:
        for one in read_traces(path, with_gold=with_gold).runs:
            if one.id == name:
                return one
        raise InputError(f"trace {name!r} is gone; start again", str(path))

    return again


def read_taxonomy(taxonomy: TaxonomyLike) -> Taxonomy:
    """The taxonomy of a file, or the built-in one."""
    if isinstance(taxonomy, Taxonomy):
        return taxonomy
    return built_in() if taxonomy is None else load_taxonomy(Path(taxonomy))


def read_findings(
    folder: str | Path, taxonomy: Taxonomy, watch: Watch, what: str = ""
) -> list[Annotation]:
    """Annotations of a folder or file; `watch` hears what was put right, named as `what`."""
    annotations = read_folder(Path(folder), taxonomy)
    lines = [f"{one.name}: {text}" for one in annotations for text in one.warnings]
    watch.warn_list(f"{what or folder}, read with changes:", lines, most=5)
    return annotations


def name_of(folder: str | Path) -> str:
    """What a folder of findings is called in tables."""
    return Path(folder).resolve().name or str(folder)


def flags_of(runs: Iterable[Run]) -> Flags:
    """The flags of traces, from all that a judge would see of them."""
    return flags_of_views((run, make_view(run)) for run in runs)


def flags_of_outlines(outlines: Iterable[Outline]) -> Flags:
    """The flags of stored traces, as far as their excerpts tell: of inputs those of tools."""
    flags, examined = [], 0
    for one in outlines:
        examined += 1
        texts = [one.task]
        for span in one.spans:
            texts += [span.input if span.kind == "tool" else "", span.output, span.note]
        if signs := texts_signs(dict.fromkeys(filter(None, texts))):
            flags.append(Flag(one.trace, None, tuple(s.name for s in signs)))
    return Flags(tuple(flags), examined)


def together(several: Iterable[Flags]) -> Flags:
    every = list(several)
    return Flags(tuple(f for one in every for f in one.found), sum(one.examined for one in every))
