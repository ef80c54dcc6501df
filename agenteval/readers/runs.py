"""read_runs: from a file, a folder, a pattern or standard input to Runs with unique ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
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
from agenteval.readers.source_files import (
    MOST_RUNS,
    ReadResult,
    Skipped,
    SourceFile,
    SourceFiles,
    collector_paused,
    described,
    find,
)
from agenteval.readers.strict_json import Item, Notes
from agenteval.readers.table_files import check_mapping, file_items, mapped
from agenteval.readers.tasks import mapping_of
from agenteval.records import Run, RunFailure

_HEAD = 65536  # bytes that are looked through for a sign of traces
_TRACE_KEYS = re.compile(
    rb'"(?:resource_?[sS]pans|scope_?[sS]pans|child_?[sS]pans|(?:context\.|parent_?)?[sS]pan_?[iI][dD])"'
    rb"\s*:"
)
# Words in the keys of every trace; what has none of them need not be looked at further.
_OF_TRACES = ("span", "trace", "attributes", "batches", "context", "unixnano")
_OF_RECORDINGS = frozenset({"key", "run", "repeat", "attempt", "role", "reply", "text"})


def read_runs(
    source: str | Path, *, task: str = "", mapping: Mapping[str, str] | None = None
) -> ReadResult:
    """All runs of a file, a folder (with its folders), a glob pattern, or "-" (standard input).

    Files hold JSON or JSON lines in UTF-8, or a table (CSV, TSV, Parquet, Arrow); the form of each
    record is told by its content (see `formats`). A file of traces gives one run for each trace
    (see `traces`), a log of another tool one for each sample (see `logs`).
    `task` is given to runs that name none. `mapping` says which column (or key) is which field;
    None: what the task says (`map` in its task.yaml, also beside the file).

    The id of a run is its own (`id`, `run_id`, ...). Else it is made from the place: the path
    relative to the folder, without suffix (the stem for a single file), with ":" and the number of
    the line or array element where the file holds several runs. A case id (`task_id`, ...) stands
    in for that number where all runs of the file have one and no two are equal.

    Runs of one input are one case. Inputs that differ in the white space around them are two, as
    they stand, and a warning says so.

    Raises InputError, naming file and line, for what cannot be read, for two runs of one id, for
    a line of a recording of replies, and when there is no run at all. In a folder or pattern,
    files of other kinds are listed in `skipped` instead, and so are files whose first value is no
    run and logs of which no sample can be read; broken files and recordings are errors.
    """
    piped = SourceFiles([SourceFile(Path("-"), "stdin")], [], single=True)
    sources = piped if str(source) == "-" else find(source)
    columns = mapping_of(task, Path(source)) if mapping is None else mapping
    reading = _Reading(task, sources.single, columns, given=mapping is not None)
    with collector_paused():
        for file in sources.files:
            reason = reading.read(file)
            if reason:
                sources.skipped.append(Skipped(str(file.path), reason))
    if not reading.runs:
        passed = f" ({len(sources.skipped)} file(s) skipped)" if sources.skipped else ""
        raise InputError(f"no runs found{passed}", str(source))
    reading.tell_almost_equal()
    return ReadResult(
        reading.runs, sorted(sources.skipped, key=lambda s: s.path), reading.notes.lines()
    )


@dataclass(frozen=True)
class _Numbered:
    """A run with the id its place gives, and the case id that may replace the number in it."""

    run: Run
    place: str
    case_id: str | None


@dataclass
class _Reading:
    """What one reading collects; `single` says that the user named one file."""

    task: str
    single: bool
    mapping: Mapping[str, str]
    given: bool  # the mapping is of these runs, not of the task
    notes: Notes = field(default_factory=Notes)
    runs: list[Run] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)  # id -> where it was read

    def read(self, file: SourceFile) -> str | None:
        """Read one file; the reason when it turns out to hold no runs."""

        piped = str(file.path) == "-"
        if not piped and (logged := logged_records(file.path, self.notes)) is not None:
            try:
                first = next(logged, None)
            except InputError as error:  # a log of nothing, of another version, no whole archive
                if self.single:
                    raise
                return str(error).removeprefix(f"{error.where}: ")
            logged = chain([] if first is None else [first], logged)
            return self._records(logged, file, self.mapping if self.given else {})
        if not piped and looks_like_traces(file.path):
            runs = traces.trace_runs(file, self.task, self.notes, sure=False)
            if isinstance(runs, list):
                self._add((run, str(file.path)) for run in runs)
                return None
        items = file_items(file.path, self.notes)
        first = next(items, None)
        if first is None:
            return "empty"
        items = chain([first], items)
        check_mapping(first.value, self.mapping, first.place, None if self.given else self.notes)
        if not (_may_be_trace(first.value) and traces.is_trace(first.value)):
            return self._records(items, file, self.mapping)
        # A trace of which the beginning of the file, or standard input, could not tell.
        display = "standard input" if piped else str(file.path)
        runs = list(traces.runs_of(items, file.name, display, self.task, self.notes))
        self._add((run, display) for run in runs)
        return None if runs else "no spans"

    def _add(self, runs: Iterator[tuple[Run, str]]) -> None:
        for run, place in runs:
            if run.id in self.places:
                first = self.places[run.id]
                raise InputError(f"the id {run.id!r} was already used at {first}", place)
            self.places[run.id] = place
            if len(self.runs) >= MOST_RUNS:
                raise InputError(f"more than {MOST_RUNS:,} runs", place)
            self.runs.append(run)

    def _records(
        self, items: Iterator[Item], file: SourceFile, mapping: Mapping[str, str]
    ) -> str | None:
        """Read records that are runs of their own; the reason when the first is none."""
        batch: list[_Numbered] = []
        rows = self._rows(items, file, raw=bool(mapping))
        if isinstance(rows, str):
            return rows
        for number, item in rows:
            if is_part(item.value):
                self.notes.add("steps inside other runs are left out", str(file.path))
                continue
            item = replace(item, value=mapped(item.value, mapping))
            if is_recording(item.value):
                raise InputError("these are recorded replies (replay:FILE), not runs", item.place)
            form = recognise(item.value)
            if form is None:
                known = f"known forms: {', '.join(f.name for f in FORMATS)}"
                wanted = NEEDS if isinstance(item.value, dict) else known
                problem = f"no known form of a run: {described(item.value)}; {wanted}"
                if self.single or batch:
                    raise InputError(problem, item.place)
                return problem
            name = file.name if number is None else f"{file.name}:{number}"
            batch.append(self._run(form, item, name))
            if len(batch) > MOST_RUNS:
                raise InputError(f"more than {MOST_RUNS:,} runs", item.place)
        case_ids = [read.case_id for read in batch]
        if len(batch) > 1 and any(case_ids):
            if None not in case_ids and len(set(case_ids)) == len(batch):
                prefix = "" if self.single else f"{file.name}:"
                batch = [
                    replace(read, run=read.run.model_copy(update={"id": f"{prefix}{read.case_id}"}))
                    for read in batch
                ]
            else:
                note = "case ids repeat or are missing, so runs are named by their line"
                self.notes.add(note, str(file.path))
        self._add((read.run, read.place) for read in batch)
        return None if batch else "empty"

    def _rows(self, items: Iterator[Item], file: SourceFile, *, raw: bool) -> Rows | str:
        """The rows of a file, of a public log as records; the reason when it holds no answers."""
        rows = _numbered(items)
        try:
            return rows if raw else public_records(rows, file.path, self.notes)
        except InputError as error:
            if self.single:
                raise
            return str(error).removeprefix(f"{error.where}: ")

    def _run(self, form: Format, item: Item, name: str) -> _Numbered:
        """`name` is the id where the record has none."""
        try:
            draft = form.to_draft(item.value, Context(item.place, self.notes))
            values = {key: value for key, value in vars(draft).items() if key != "weak_id"}
            run = Run.model_validate(
                {**values, "id": draft.id or name, "task": draft.task or self.task}
            )
            if item.cut_off:
                cut_off = RunFailure(kind="cut_off", message="cells are missing at the row's end")
                run = run.model_copy(update={"failure": cut_off})
        except ValidationError as error:
            raise InputError(first_problem(error), item.place) from None
        clean = without_gold(run)
        note_withheld(withheld_from(clean), Context(item.place, self.notes))
        return _Numbered(clean, item.place, None if draft.id else draft.weak_id)

    def tell_almost_equal(self) -> None:
        """One warning for all inputs that are another's but for the white space around them."""
        first: dict[str, Run] = {}
        reported: set[str] = set()
        text = ""
        for run in self.runs:
            bare = run.input.strip()
            other = first.setdefault(bare, run)
            if bare and run.input != other.input and run.input not in reported:
                reported.add(run.input)
                text = text or (
                    f"the input differs from that of run {other.id!r} in white space around it "
                    "only; they count as two cases"
                )
                self.notes.add(text, self.places[run.id])


def _may_be_trace(value: Any) -> bool:
    """False for what surely is no trace: no key of the (first) object is one of traces."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict) and any(
        word in key.lower() for key in value for word in _OF_TRACES
    )


def _numbered(items: Iterator[Item]) -> Iterator[tuple[str | None, Item]]:
    """Values that should be runs, with their number in the file; None when the file is one run."""
    for item in items:
        if isinstance(item.value, list) and recognise(item.value) is None:
            before = f"{item.line}:" if (item.line or 1) > 1 else ""
            for i, value in enumerate(item.value):
                yield f"{before}{i + 1}", Item(value, f"{item.place}[{i}]", None)
        else:
            yield None if item.line is None else str(item.line), item


def first_records(file: SourceFile, most: int = 200) -> list[dict[str, Any]]:
    """The first records of a file as they stand, to look at; none where it holds no objects.
    Raises InputError."""
    notes = Notes()
    items = logged_records(file.path, notes) or file_items(file.path, notes)
    rows = public_records(_numbered(items), file.path, notes)
    values = [item.value for _, item in islice(rows, most)]
    return [value for value in values if isinstance(value, dict)]


def is_recording(value: Any) -> bool:
    """Whether `value` is a line of a recording of replies (`models.replay`).

    `reply` is a name of an output, so such lines would else be read as runs of an unnamed system.
    With the hash of a request under `key`: a line that holds a whole reply, or that refers to an
    earlier one by run and attempt. Recorded elsewhere (any key, or a run): an object with fields
    of a recording only, among them a whole reply or its text.
    """
    if not isinstance(value, dict) or not ("key" in value or "run" in value):
        return False
    reply, key = value.get("reply"), value.get("key")
    whole = isinstance(reply, dict) and isinstance(reply.get("text"), str)
    hashed = isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key) is not None
    if hashed and (whole or value.keys() >= {"run", "repeat", "attempt"}):
        return True
    plain = whole or ("reply" not in value and isinstance(value.get("text"), str))
    return plain and value.keys() <= _OF_RECORDINGS


def looks_like_traces(path: Path) -> bool:
    """Whether the beginning of a file holds a key that only traces have. False if unreadable."""
    try:
        with opened(path) as stream:
            return _TRACE_KEYS.search(stream.read(_HEAD)) is not None
    except InputError:  # whoever reads it says so
        return False
