"""read_runs: from a source to Runs with unique ids."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.documents import Item, Reader
from agenteval.readers.draft import Context, Draft
from agenteval.readers.formats import FORMATS, Format, recognise
from agenteval.readers.formats.native import NEEDS
from agenteval.readers.limits import DEFAULT_LIMITS, Limits, Notes
from agenteval.readers.problems import first_problem
from agenteval.readers.recording import RECORDING, is_recording
from agenteval.readers.sources import Found, Skipped, SourceFile, find
from agenteval.readers.tracing.files import looks_like_traces, trace_runs
from agenteval.readers.tracing.traces import runs_of
from agenteval.readers.tracing.walk import is_trace
from agenteval.records import Run


@dataclass(frozen=True)
class ReadResult:
    """Runs in the order of the files, files that were passed over, and warnings, one line each."""

    runs: list[Run]
    skipped: list[Skipped]
    warnings: list[str]


def read_runs(source: str | Path, *, task: str = "", limits: Limits = DEFAULT_LIMITS) -> ReadResult:
    """All runs of a file, a folder (with its folders), a glob pattern, or "-" (standard input).

    Files hold JSON or JSON lines in UTF-8; the form of each record is told by its content (see
    `formats`); a file of traces gives one run for each trace (see `tracing`). `task` is given to
    runs that name none.

    The id of a run is its own (`id`, `run_id`, ...). Else it is made from the place: the path
    relative to the folder, without suffix (the stem for a single file), with ":" and the number of
    the line or array element where the file holds several runs. A case id (`task_id`, ...) stands
    in for that number where all runs of the file have one and no two are equal.

    Runs of one input are one case. Inputs that differ in the white space around them are two, as
    they stand, and a warning says so.

    Raises InputError, naming file and line, for what cannot be read, for two runs of one id, for
    a line of a recording of replies, and when there is no run at all. In a folder or pattern,
    files of other kinds are listed in `skipped` instead, and so are files whose first value is no
    run; broken files and recordings are errors.
    """
    notes = Notes()
    found = _standard_input() if str(source) == "-" else find(source)
    runs: list[Run] = []
    places: dict[str, str] = {}
    with collector_paused():
        for file in found.files:
            reason = _read_file(file, found.single, _Sink(task, limits, notes, runs, places))
            if reason:
                found.skipped.append(Skipped(str(file.path), reason))
    if not runs:
        passed = f" ({len(found.skipped)} file(s) skipped)" if found.skipped else ""
        raise InputError(f"no runs found{passed}", str(source))
    _tell_almost_equal(runs, places, notes)
    found.skipped.sort(key=lambda s: s.path)
    return ReadResult(runs, found.skipped, notes.lines())


def _tell_almost_equal(runs: list[Run], places: dict[str, str], notes: Notes) -> None:
    """One warning for all inputs that are another's but for the white space around them."""
    first: dict[str, Run] = {}
    told: set[str] = set()
    text = ""
    for run in runs:
        bare = run.input.strip()
        other = first.setdefault(bare, run)
        if bare and run.input != other.input and run.input not in told:
            told.add(run.input)
            text = text or (
                f"the input differs from that of run {other.id!r} in white space around it only; "
                "they count as two cases"
            )
            notes.add(text, places[run.id])


@dataclass(frozen=True)
class _Sink:
    """What one reading collects."""

    task: str
    limits: Limits
    notes: Notes
    runs: list[Run]
    places: dict[str, str]  # id -> where it was read

    def add(self, run: Run, place: str) -> None:
        if run.id in self.places:
            first = self.places[run.id]
            raise InputError(f"the id {run.id!r} was already used at {first}", place)
        self.places[run.id] = place
        if len(self.runs) >= self.limits.max_runs:
            raise InputError(f"more than {self.limits.max_runs:,} runs", place)
        self.runs.append(run)

    def add_all(self, runs: list[Run], place: str) -> None:
        for run in runs:
            self.add(run, place)


@dataclass(frozen=True)
class _Read:
    """A run with the id its place gives, and the case id that may replace the number in it."""

    run: Run
    place: str
    weak_id: str | None


@contextmanager
def collector_paused() -> Iterator[None]:
    """Runs hold no cycles; looking for them again and again costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _standard_input() -> Found:
    return Found([SourceFile(Path("-"), "stdin")], single=True)


def _read_file(file: SourceFile, single: bool, sink: _Sink) -> str | None:
    """Read one file into the sink; the reason when it turns out to hold no runs."""
    display = "standard input" if str(file.path) == "-" else str(file.path)
    if str(file.path) != "-" and looks_like_traces(file.path):
        traces = trace_runs(file, sink.task, sink.limits, sink.notes, sure=False)
        if traces is not None:
            sink.add_all(traces, display)
            return None
    with _open(file.path, display, sink.limits) as stream:
        lines = file.path.suffix.lower() in (".jsonl", ".ndjson")
        items = Reader(stream, display, sink.limits, sink.notes, lines=lines).items()
        try:
            first = next(items, None)
            if first is None:
                return "empty"
            items = chain([first], items)
            if not is_trace(first.value):
                return _read_records(_records(items), file, single, sink)
            # A trace of which the beginning of the file, or standard input, could not tell.
            traces = list(runs_of(items, file.name, display, sink.task, sink.notes))
            sink.add_all(traces, display)
            return None if traces else "no spans"
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", display) from None


def _read_records(
    records: Iterator[tuple[int | None, Item]], file: SourceFile, single: bool, sink: _Sink
) -> str | None:
    """Read records that are runs of their own; the reason when the first is none."""
    batch: list[_Read] = []
    for number, item in records:
        if is_recording(item.value):
            raise InputError(RECORDING, item.place)
        form = recognise(item.value)
        if form is None:
            problem = f"no known form of a run: {_describe(item.value)}"
            if single or batch:
                raise InputError(problem, item.place)
            return problem
        batch.append(_to_run(form, item, _name(file, number), sink))
        if len(batch) > sink.limits.max_runs:
            raise InputError(f"more than {sink.limits.max_runs:,} runs", item.place)
    if not batch:
        return "empty"
    for read in _settle_ids(batch, file, single, sink.notes):
        sink.add(read.run, read.place)
    return None


def _open(path: Path, display: str, limits: Limits) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return opened(path, display, limits.max_file_bytes)


def _records(items: Iterator[Item]) -> Iterator[tuple[int | None, Item]]:
    """Values that should be runs, with their number in the file; None when the file is one run."""
    for item in items:
        if item.line is not None:
            yield item.line, item
        elif isinstance(item.value, list) and recognise(item.value) is None:
            for i, value in enumerate(item.value):
                yield i + 1, Item(value, f"{item.place}[{i}]", None)
        else:
            yield None, item


def _name(file: SourceFile, number: int | None) -> str:
    return file.name if number is None else f"{file.name}:{number}"


def _to_run(form: Format, item: Item, name: str, sink: _Sink) -> _Read:
    """`name` is the id where the record has none."""
    try:
        draft = form.to_draft(item.value, Context(item.place, sink.notes))
        run = _build(draft, draft.id or name, sink.task)
    except ValidationError as error:
        raise InputError(first_problem(error), item.place) from None
    return _Read(run, item.place, None if draft.id else draft.weak_id)


def _build(draft: Draft, run_id: str, task: str) -> Run:
    return Run.model_validate(
        {
            "id": run_id,
            "task": draft.task or task,
            "system": draft.system,
            "input": draft.input,
            "output": draft.output,
            "messages": draft.messages,
            "success": draft.success,
            "reference": draft.reference,
            "spans": draft.spans,
            "metadata": draft.metadata,
        }
    )


def _settle_ids(batch: list[_Read], file: SourceFile, single: bool, notes: Notes) -> list[_Read]:
    """The runs of one file, named by their case ids where these are all there and all different."""
    weak = [read.weak_id for read in batch]
    if len(batch) < 2 or not any(weak):
        return batch
    if None in weak or len(set(weak)) < len(weak):
        notes.add("case ids repeat or are missing, so runs are named by their line", str(file.path))
        return batch
    prefix = "" if single else f"{file.name}:"
    return [
        replace(read, run=read.run.model_copy(update={"id": f"{prefix}{read.weak_id}"}))
        for read in batch
    ]


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(k[:40]) for k in list(value)[:8])
        return f"an object with the keys {keys or '(none)'}; {NEEDS}"
    names = {list: "an array", str: "a text", bool: "a boolean", type(None): "null"}
    kind = names.get(type(value), "a number")
    return f"{kind}; known forms: {', '.join(f.name for f in FORMATS)}"
