"""Read Runs with unique ids from a file, a folder, a pattern or standard input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers import traces
from agenteval.readers.fields import Context
from agenteval.readers.formats import FORMATS, NEEDS, Format, is_part, recognise
from agenteval.readers.gold import note_withheld, withheld_from, without_gold
from agenteval.readers.logs import logged_records
from agenteval.readers.problems import first_problem
from agenteval.readers.public_logs import Rows, public_records
from agenteval.readers.sessions import SessionFormat, session_format, session_runs
from agenteval.readers.source_files import (
    ReadResult,
    RunDefaults,
    Skipped,
    SourceFile,
    SourceFiles,
    collector_paused,
    described,
    find,
)
from agenteval.readers.span_usage import without_models
from agenteval.readers.spans import is_trace
from agenteval.readers.strict_json import Item, Notes
from agenteval.readers.table_files import ColumnMap, file_items, mapped
from agenteval.readers.tasks import mapping_of
from agenteval.records import Run, RunFailure

_HEAD = 65536  # bytes searched for signs of traces
_TRACE_KEYS = re.compile(
    rb'"(?:resource_?[sS]pans|scope_?[sS]pans|child_?[sS]pans|(?:context\.|parent_?)?[sS]pan_?[iI][dD])"'
    rb"\s*:"
)
_OF_RECORDINGS = frozenset({"key", "run", "repeat", "attempt", "role", "reply", "text"})
_PIPE = Path("-")


def read_runs(
    source: str | Path, *, task: str = "", mapping: Mapping[str, str] | None = None
) -> ReadResult:
    """Return all runs in a file, a folder (recursively), a pattern, or "-" (standard input).

    Files contain JSON or JSON Lines in UTF-8, or a table (CSV, TSV, Parquet, Arrow); their content
    determines the format (see `formats`, `traces`, `sessions` and `logs`). `task` is assigned to
    runs that do not name one. `mapping` assigns columns (or keys) to fields, in addition to the
    `map` in task.yaml, which may also be in the folder of the file.

    The id of a run is its own (`id`, `run_id`, ...), if it has one. Otherwise it is the path
    relative to the folder without suffix (the stem for a single file), followed by ":" and the
    number of the line or array element if the file has several runs. A case id (`task_id`, ...)
    replaces that number if it is unique for all runs of the file.

    Runs with the same input are one case. Inputs that differ only in surrounding whitespace are two
    cases, with a warning.

    Raises InputError, with file and line, for unreadable files, two runs of a system with the same
    id, a line from a recording of replies, and input without runs. In a folder or pattern, files of
    other kinds are listed in `skipped` instead, as are files whose first value is not a run and
    logs without a readable sample; broken files and recordings are errors.
    """
    piped = SourceFiles([SourceFile(_PIPE, "stdin")], [], single=True)
    sources = piped if str(source) == "-" else find(source)
    columns = ColumnMap(dict(mapping or {}), mapping_of(task, Path(source)))
    reader = _RunReader(task, sources.single, columns)
    with collector_paused():
        for file in sources.files:
            if reason := reader.read(file):
                sources.skipped.append(Skipped(str(file.path), reason))
    if not reader.runs:
        skipped = f" ({len(sources.skipped)} file(s) skipped)" if sources.skipped else ""
        raise InputError(f"no runs found{skipped}", str(source))
    reader.note_similar_inputs()
    skipped_files = sorted(sources.skipped, key=lambda s: s.path)
    return ReadResult(reader.runs, skipped_files, reader.notes.lines())


@dataclass(frozen=True)
class _PlacedRun:
    """A run named by its location, and the case id that may replace the number in its id."""

    run: Run
    place: str
    case_id: str | None = None


@dataclass
class _RunReader:
    """Collects the runs of several files. `single` means that the user named one file."""

    task: str
    single: bool
    columns: ColumnMap
    notes: Notes = field(default_factory=Notes)
    runs: list[Run] = field(default_factory=list)
    places: dict[tuple[str, str], str] = field(default_factory=dict)  # (system, id) -> file:line

    def read(self, file: SourceFile) -> str | None:
        """Read one file; return a reason if it has no runs."""
        if file.path != _PIPE:
            if (logged := logged_records(file.path, self.notes)) is not None:
                try:
                    start = list(islice(logged, 1))
                except InputError as error:  # an empty log, a wrong version, a broken archive
                    return self._reason(error)
                return self._records(chain(start, logged), file, self.columns.by_user)
            if looks_like_traces(file.path):
                runs = traces.trace_runs(file, self.task, self.notes, sure=False)
                if isinstance(runs, list):
                    return self._add(_PlacedRun(run, str(file.path)) for run in runs)
        items = file_items(file.path, self.notes)
        head = list(islice(items, 2))  # decides the format
        if not head:
            return "empty"
        items, first = chain(head, items), head[0]
        if (form := session_format([item.value for item in head], of_runs=True)) is not None:
            return self._sessions(form, items, file)
        mapping = self.columns.of(first.value, first.place, self.notes)
        if not is_trace(first.value):
            return self._records(items, file, mapping)
        # A trace that could not be detected on standard input or at the start of the file
        display = "standard input" if file.path == _PIPE else str(file.path)
        spans = traces.runs_of(items, display, RunDefaults(file.name, self.task), self.notes)
        return self._add([_PlacedRun(run, display) for run in spans], "no spans")

    def _sessions(self, form: SessionFormat, items: Iterator[Item], file: SourceFile) -> str | None:
        try:
            system = "" if self.single else PurePath(file.name).name
            defaults = RunDefaults(file.name, self.task, system)
            read = session_runs(form, items, defaults, self.notes)
            if self._add([_PlacedRun(run, place) for run, place in read], "none") is None:
                return None
            raise InputError(f"no session in this file of {form.name}", str(file.path))
        except InputError as error:
            return self._reason(error)

    def _reason(self, error: InputError) -> str:
        """Return why a file is skipped; raises the error if the user named the file."""
        if self.single:
            raise error
        return str(error).removeprefix(f"{error.where}: ")

    def _add(self, runs: Iterable[_PlacedRun], reason: str = "") -> str | None:
        """Add runs; return `reason` if there are none."""
        added = False
        for item in runs:
            if item.run.spans and not item.run.output and (warning := without_models(item.run)):
                self.notes.add(warning, item.place)
            key = item.run.system, item.run.id
            if key in self.places:
                first = self.places[key]
                raise InputError(f"the id {item.run.id!r} was already used at {first}", item.place)
            self.places[key] = item.place
            self.runs.append(item.run)
            added = True
        return None if added else reason

    def _records(
        self, items: Iterator[Item], file: SourceFile, mapping: Mapping[str, str]
    ) -> str | None:
        batch: list[_PlacedRun] = []
        rows = _numbered(items)
        try:
            rows = rows if mapping else public_records(rows, file.path, self.notes)
        except InputError as error:
            return self._reason(error)
        for number, item in rows:
            if is_part(item.value):
                self.notes.add("steps inside other runs are omitted", str(file.path))
                continue
            item = replace(item, value=mapped(item.value, mapping))
            if is_recording(item.value):
                raise InputError("these are recorded replies (replay:FILE), not runs", item.place)
            form = recognise(item.value)
            if form is None:
                forms = f"known forms: {', '.join(f.name for f in FORMATS)}"
                expected = NEEDS if isinstance(item.value, dict) else forms
                problem = f"no known form of a run: {described(item.value)}; {expected}"
                if self.single or batch:
                    raise InputError(problem, item.place)
                return problem
            name = file.name if number is None else f"{file.name}:{number}"
            batch.append(self._run(form, item, name))
        return self._add(self._named_by_case(batch, file), "empty")

    def _named_by_case(self, batch: list[_PlacedRun], file: SourceFile) -> list[_PlacedRun]:
        case_ids = [item.case_id for item in batch]
        if len(batch) < 2 or not any(case_ids):
            return batch
        if None in case_ids or len(set(case_ids)) < len(batch):
            note = "case ids repeat or are missing, so runs are named by their line"
            self.notes.add(note, str(file.path))
            return batch
        prefix = "" if self.single else f"{file.name}:"
        return [
            replace(item, run=item.run.model_copy(update={"id": f"{prefix}{item.case_id}"}))
            for item in batch
        ]

    def _run(self, form: Format, item: Item, name: str) -> _PlacedRun:
        context = Context(item.place, self.notes)
        try:
            draft = form.to_draft(item.value, context)
            values = {key: value for key, value in vars(draft).items() if key != "weak_id"}
            values |= {"id": draft.id or name, "task": draft.task or self.task}
            run = Run.model_validate(values)
        except ValidationError as error:
            raise InputError(first_problem(error), item.place) from None
        if item.cut_off:
            failure = RunFailure(kind="cut_off", message="cells are missing at the row's end")
            run = run.model_copy(update={"failure": failure})
        run = without_gold(run)
        note_withheld(withheld_from(run), context)
        return _PlacedRun(run, item.place, None if draft.id else draft.weak_id)

    def note_similar_inputs(self) -> None:
        """Warn once about inputs that differ from others only in surrounding whitespace."""
        first: dict[str, Run] = {}
        differing: dict[str, Run] = {}
        for run in self.runs:
            stripped = run.input.strip()
            if stripped and run.input != first.setdefault(stripped, run).input:
                differing.setdefault(run.input, run)
        if differing:
            other = first[next(iter(differing)).strip()]
            text = f"the input differs from that of run {other.id!r} only in surrounding whitespace"
        for run in differing.values():
            place = self.places[run.system, run.id]
            self.notes.add(f"{text}; they count as two cases", place)


def _numbered(items: Iterator[Item]) -> Rows:
    """Yield values that should be runs, with their numbers; None if the file is one run."""
    for item in items:
        if isinstance(item.value, list) and recognise(item.value) is None:
            before = f"{item.line}:" if (item.line or 1) > 1 else ""
            for i, value in enumerate(item.value):
                yield f"{before}{i + 1}", Item(value, f"{item.place}[{i}]", None)
        else:
            yield None if item.line is None else str(item.line), item


def first_records(file: SourceFile, most: int = 200) -> list[dict[str, Any]]:
    """Return the first records of a file unchanged; empty if it has no objects. Raises
    InputError."""
    notes = Notes()
    items = logged_records(file.path, notes) or file_items(file.path, notes)
    rows = public_records(_numbered(items), file.path, notes)
    values = [item.value for _, item in islice(rows, most)]
    return [value for value in values if isinstance(value, dict)]


def is_recording(value: Any) -> bool:
    """Return whether `value` is a line of a recording of replies (`models.replay`).

    `reply` is a name of an output, so these lines would otherwise be read as runs of an unnamed
    system. In our recordings, `key` is the hash of a request; in others, an object has only the
    fields of a recording, including a complete reply or its text.
    """
    if not isinstance(value, dict) or not ("key" in value or "run" in value):
        return False
    reply, key = value.get("reply"), value.get("key")
    complete = isinstance(reply, dict) and isinstance(reply.get("text"), str)
    hashed = isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key) is not None
    if hashed and (complete or value.keys() >= {"run", "repeat", "attempt"}):
        return True
    has_text = complete or ("reply" not in value and isinstance(value.get("text"), str))
    return has_text and value.keys() <= _OF_RECORDINGS


def looks_like_traces(path: Path) -> bool:
    """Return whether the start of a file has a key that only traces have."""
    try:
        with opened(path) as stream:
            return _TRACE_KEYS.search(stream.read(_HEAD)) is not None
    except InputError:  # the reader of the file reports it
        return False
