"""Traces of agents to Runs: span trees, OTLP/JSON and lines of spans, in several conventions.

`raw` knows the spellings of a span's parts, `walk` the ways in which files hold spans,
`conventions` what attributes mean, `tree` the order of a trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.readers.limits import DEFAULT_LIMITS, Limits, Notes
from agenteval.readers.sources import Skipped, find
from agenteval.readers.tracing.files import trace_runs
from agenteval.readers.tracing.walk import WANTED, is_trace
from agenteval.records import Run

if TYPE_CHECKING:
    from agenteval.readers.read import ReadResult

__all__ = ["is_trace", "read_traces"]


def read_traces(
    source: str | Path, *, task: str = "", limits: Limits = DEFAULT_LIMITS
) -> ReadResult:
    """All traces of a file, a folder (with its folders) or a glob pattern, one Run each.

    Files hold JSON or JSON lines in UTF-8: span trees, OTLP/JSON, or spans. The id of a run is its
    trace id, or the name of the file where it has none. Spans stand in the order of the trace;
    what was put right on the way is in `warnings`. Files of a folder that are no traces are in
    `skipped`.

    Raises InputError, naming file and place, for what cannot be read at all, for two traces of one
    id in several files, and when there is no trace.
    """
    from agenteval.readers.read import ReadResult, collector_paused  # it imports this package

    notes, found = Notes(), find(source)
    runs: dict[str, Run] = {}
    with collector_paused():
        for file in found.files:
            read = trace_runs(file, task, limits, notes, sure=found.single)
            if read is None:
                found.skipped.append(Skipped(str(file.path), "no trace"))
            for run in read or ():
                if run.id in runs:
                    raise InputError(f"the trace id {run.id!r} was already used", str(file.path))
                runs[run.id] = run
    if not runs:
        raise InputError(f"no trace found; {WANTED}", str(source))
    found.skipped.sort(key=lambda s: s.path)
    return ReadResult(list(runs.values()), found.skipped, notes.lines())
