"""Convert agent traces to Runs: span trees, OTLP/JSON and lines of spans, in several conventions.

`spans` finds spans in files and reads their parts, `conventions` interprets their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.assignment import of_spans
from agenteval.readers.conventions import Pool, SpanReader
from agenteval.readers.fields import Context
from agenteval.readers.gold import WITHHELD, GoldFilter, note_withheld
from agenteval.readers.problems import first_problem
from agenteval.readers.sessions import session_format, session_runs
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
from agenteval.readers.span_usage import models_inside_are_agents
from agenteval.readers.spans import WANTED, RawSpan, Walker, is_trace, keeps_spans
from agenteval.readers.strict_json import Item, LooseDecoder, Notes, read_items
from agenteval.records import Message, Run, Span

LARGEST = 256 * 2**20  # bytes of a document, or of a line, which may be a complete trace


def read_traces(
    source: str | Path, *, task: str = "", with_gold: bool = False, notes: Notes | None = None
) -> ReadResult:
    """Read all traces of a file, a folder (recursively) or a glob pattern, one Run each.

    Files contain JSON or JSON lines in UTF-8: span trees, OTLP/JSON, or spans. The id of a run is
    its trace id, or the name of the file if it has none. Spans are in trace order; `warnings` lists
    corrections. Unreadable files of a folder and files without traces are in `skipped` with the
    reason. Gold answers are withheld from spans (see `gold`) unless `with_gold`. `notes` collects
    the warnings of several readings.

    Raises InputError, with file and location, if a single file cannot be read, if two files have
    traces with the same id, and if there are no traces.
    """
    notes, files = notes or Notes(), find(source)
    runs: dict[str, Run] = {}
    for file in files.files:
        for run in read_file(file, files, notes, task=task, with_gold=with_gold):
            run = of_system(run, runs.get(run.id))
            if run.id in runs:
                raise InputError(f"the trace id {run.id!r} was already used", str(file.path))
            runs[run.id] = run
    if not runs:
        raise InputError(f"no trace found; {WANTED}", str(source))
    skipped = sorted(files.skipped, key=lambda s: s.path)
    return ReadResult(list(runs.values()), skipped, notes.lines())


def of_system(run: Run, earlier: Run | None) -> Run:
    """Return the run, with its system in the id if a run of another system has the same id.

    Benchmarks name recorded sessions after the case, and every system runs on the same cases.
    """
    if earlier is None or earlier.system == run.system or "recorded_as" not in run.metadata:
        return run
    return run.model_copy(update={"id": f"{run.system}:{run.id}"})


def read_file(
    file: SourceFile, files: SourceFiles, notes: Notes, *, task: str = "", with_gold: bool = False
) -> list[Run]:
    """Read the runs of one of `files`.

    Returns None, with the reason in `files.skipped`, if the file has no trace, or if it cannot be
    read and is not the only file. Raises InputError as `read_traces` does.
    """
    try:
        with collector_paused():
            runs = trace_runs(file, task, notes, sure=files.single, with_gold=with_gold)
    except InputError as error:
        if files.single:
            raise
        runs = str(error).removeprefix(f"{file.path}: ")
    if isinstance(runs, list):
        return runs
    files.skipped.append(Skipped(str(file.path), runs))
    return []


def trace_runs(
    file: SourceFile, task: str, notes: Notes, *, sure: bool, with_gold: bool = False
) -> list[Run] | str:
    """Return the runs of a trace file, or the reason why it has none.

    Unless `sure`, a file that does not begin with a span has none. Broken JSON is read as far as it
    is complete, with a warning. Raises InputError, with the location, if no span is complete or a
    limit is exceeded.
    """
    name, system = str(file.path), "" if sure else PurePath(file.name).name
    defaults = RunDefaults(file.name, task, system)
    decoder = LooseDecoder(keeps_spans)
    lines = file.path.suffix.lower() in (".jsonl", ".ndjson")
    with opened(file.path, name) as stream:
        rows = read_items(stream, name, notes, lines=lines, by=decoder.decode, most_line=LARGEST)
        items = (item for item in rows if item.value != [])
        head = list(islice(items, 2))  # decides the format
        first = head[0] if head else None
        all_items = chain(head, items)
        runs: list[Run] = []
        is_spans = first is not None and is_trace(first.value)
        form = None if is_spans else session_format([item.value for item in head])
        if form is not None:
            by_id: dict[str, Run] = {}
            for run, place in session_runs(form, all_items, defaults, notes, with_gold=with_gold):
                if by_id.setdefault(run.id, run) is not run:
                    raise InputError(f"the id {run.id!r} is used twice", place)
            runs = list(by_id.values())
        elif first is not None and (sure or is_spans):
            runs = list(runs_of(all_items, name, defaults, notes, with_gold=with_gold))
        if not runs and decoder.broken is not None:
            raise decoder.broken
        reason = f"no spans but {'nothing' if first is None else described(first.value)}; {WANTED}"
        if not runs and sure:
            raise InputError(reason, name)
        return runs or reason


@dataclass
class _Trace:
    spans: list[Span] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)


def runs_of(
    items: Iterable[Item],
    display: str,
    defaults: RunDefaults,
    notes: Notes,
    *,
    with_gold: bool = False,
) -> Iterator[Run]:
    """Yield runs of the traces in a file, in the order of their first spans.

    The id of a run is the trace id. Spans without one belong to the only trace of their file, else
    to a separate trace. `display` is the file for messages. Raises InputError for an invalid span.
    """
    traces: dict[str | None, _Trace] = {}
    walker, pool = Walker(), Pool()
    for item in items:
        context = Context(item.place, notes)
        for raw in walker.spans(item.value, context):
            trace = traces.setdefault(raw.trace, _Trace())
            trace.spans.append(_span(raw, pool, context))
            trace.resource |= {k: v for k, v in raw.resource.items() if k not in trace.resource}
    if None in traces and len(traces) == 2:
        nameless = traces.pop(None)
        next(iter(traces.values())).spans.extend(nameless.spans)
        notes.add("spans without trace id were assigned to the only trace", display)
    elif None in traces:
        notes.add("spans without trace id: the trace is named after the file", display)
    for trace_id, trace in traces.items():
        context, gold = Context(display, notes), GoldFilter()
        spans = models_inside_are_agents(in_order(trace.spans, context))
        if not with_gold:
            spans = gold.clean_spans(spans)
            note_withheld(gold.withheld, context)
        assigned = of_spans(spans)
        metadata = {"resource": trace.resource, WITHHELD: gold.withheld}
        yield Run(
            id=trace_id or defaults.id,
            task=defaults.task,
            system=_system(spans, trace.resource),
            input=assigned.task.text,
            output=assigned.ending.text,
            messages=tuple(_each_once(spans)),
            spans=tuple(spans),
            metadata={key: value for key, value in metadata.items() if value},
        )


def _span(raw: RawSpan, pool: Pool, context: Context) -> Span:
    fields = SpanReader(raw, pool, context).fields()
    try:
        return Span(
            id=raw.id or "",
            parent_id=raw.parent,
            name=raw.name,
            start=raw.start,
            end=raw.end,
            status=raw.status,
            status_message=raw.message,
            **fields,
        )
    except ValidationError as error:
        raise InputError(f"span {raw.id}: {first_problem(error)}", context.place) from None


def _each_once(spans: Iterable[Span]) -> Iterator[Message]:
    """Yield the messages of LLM spans without repetitions, in the order of the spans.

    Every span repeats the previous conversation. A message is yielded again only if a span contains
    it more often than any earlier span, so that a user's second "go on" is kept. Equal messages
    must be the same object.
    """
    most: dict[int, int] = {}
    for span in spans:
        here: dict[int, int] = {}
        for message in (*span.messages, *span.reply):
            key = id(message)
            here[key] = here.get(key, 0) + 1
            if here[key] > most.get(key, 0):
                most[key] = here[key]
                yield message


def _system(spans: list[Span], resource: dict[str, Any]) -> str:
    service = resource.get("service.name")
    names = [service] if not str(service).startswith("unknown_service") else []
    keys = ("agent.name", "gen_ai.agent.name")
    names += [span.attributes.get(key) for span in spans for key in keys]
    return next((n for n in names if isinstance(n, str) and n), "unnamed")


# ---- the order of a trace ------------------------------------------------------------------------


def in_order(spans: list[Span], context: Context) -> list[Span]:
    """Return each span after its parent, branch by branch.

    Siblings and roots are sorted by start time if all have one, otherwise they keep the order of
    the file. Of two spans with the same id, the first is kept. A link to a missing parent or in a
    cycle is cut with a warning. Takes linear time, except for sorting.
    """

    def note(text: str, span_id: str) -> None:
        context.notes.add(text, f"{context.place} (span {span_id})")

    first: dict[str, Span] = {}
    for span in spans:
        if first.setdefault(span.id, span) is not span:
            note("a span id occurs twice; the first span is kept", span.id)
    parents: dict[str, str | None] = {}
    for span in first.values():
        parents[span.id] = span.parent_id if span.parent_id in first else None
        if span.parent_id is not None and span.parent_id not in first:
            note("the parent of a span is not in the trace; the span is a root", span.id)
    for span_id in _circles(parents):
        note("spans are their own ancestors; the first of them is a root", span_id)
        parents[span_id] = None
    children: dict[str | None, list[Span]] = {}
    for span_id, span in first.items():
        if parents[span_id] != span.parent_id:
            span = span.model_copy(update={"parent_id": parents[span_id]})
        children.setdefault(parents[span_id], []).append(span)
    ordered: list[Span] = []
    stack = _by_start(children.get(None, []))[::-1]
    while stack:
        ordered.append(stack.pop())
        stack.extend(reversed(_by_start(children.get(ordered[-1].id, []))))
    return ordered


def _circles(parents: dict[str, str | None]) -> list[str]:
    """Return the first span (in file order) of every cycle of parents."""
    done: set[str] = set()
    cuts = []
    order = {key: i for i, key in enumerate(parents)}
    for start in parents:
        path: dict[str, None] = {}
        name: str | None = start
        while name is not None and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name is not None and name in path:
            steps = list(path)
            cuts.append(min(steps[steps.index(name) :], key=order.__getitem__))
        done.update(path)
    return cuts


def _by_start(spans: list[Span]) -> list[Span]:
    if len(spans) < 2 or any(span.start is None for span in spans):
        return spans
    return sorted(spans, key=lambda span: span.start or 0.0)
