"""Traces of one file, and whether a file is one of traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.limits import Limits, Notes
from agenteval.readers.sources import SourceFile
from agenteval.readers.tracing.decode import TraceReader
from agenteval.readers.tracing.traces import runs_of
from agenteval.readers.tracing.walk import WANTED, is_trace
from agenteval.records import Run

_HEAD = 65536
_MARKS = re.compile(
    rb'"(?:resource_?[sS]pans|scope_?[sS]pans|child_?[sS]pans|(?:context\.|parent_?)?[sS]pan_?[iI][dD])"'
    rb"\s*:"
)
LINES = (".jsonl", ".ndjson")


def looks_like_traces(path: Path) -> bool:
    """Whether the beginning of a file holds a key that only traces have. False if unreadable."""
    try:
        with opened(path) as stream:
            return _MARKS.search(stream.read(_HEAD)) is not None
    except InputError:  # whoever reads it says so
        return False


def trace_runs(
    file: SourceFile, task: str, limits: Limits, notes: Notes, *, sure: bool
) -> list[Run] | None:
    """The runs of a file of traces; None when it holds no span, or begins with none, unless `sure`.

    Broken JSON is read as far as it is complete, with a warning. Raises InputError, naming the
    place, when no span is complete and above the limits.
    """
    display = str(file.path)
    with opened(file.path, display, limits.max_file_bytes) as stream:
        lines = file.path.suffix.lower() in LINES
        reader = TraceReader(stream, display, limits, notes, lines=lines)
        items = (item for item in reader.items() if item.value != [])
        first = next(items, None)
        runs: list[Run] = []
        if first is not None and (sure or is_trace(first.value)):
            found = runs_of(chain([first], items), file.name, display, task, notes)
            runs = list(_bounded(found, limits, display))
        if not runs and reader.broken is not None:
            raise reader.broken
        if not runs and sure:
            raise InputError(f"no spans; {WANTED}", display)
        return runs or None


def _bounded(runs: Iterator[Run], limits: Limits, display: str) -> Iterator[Run]:
    for number, run in enumerate(runs):
        if number >= limits.max_runs:
            raise InputError(f"more than {limits.max_runs:,} runs", display)
        yield run
