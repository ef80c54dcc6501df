"""From spans to Runs: one run for each trace of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.readers.documents import Item
from agenteval.readers.draft import Context
from agenteval.readers.limits import Notes
from agenteval.readers.messages import is_answer
from agenteval.readers.problems import first_problem
from agenteval.readers.tracing.conventions import read_attributes
from agenteval.readers.tracing.raw import RawSpan
from agenteval.readers.tracing.talk import Pool
from agenteval.readers.tracing.tree import in_order
from agenteval.readers.tracing.walk import Walker
from agenteval.records import Message, Run, Span, SpanEvent

_NAMES = ("agent.name", "gen_ai.agent.name")
_UNKNOWN = "unknown_service"


@dataclass
class _Trace:
    """Spans of one trace as they come, and what was said of all of them."""

    spans: list[Span] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)


def runs_of(
    items: Iterable[Item], name: str, display: str, task: str, notes: Notes
) -> Iterator[Run]:
    """Runs of the traces in a file, in the order of their first spans.

    The id of a run is the trace id. Spans without one belong to the only trace of their file, else
    to a trace of their own that is called `name`. Raises InputError for a span out of bounds.
    """
    traces = _collect(items, notes)
    if None in traces and len(traces) == 2:
        nameless = traces.pop(None)
        (only,) = traces.values()
        only.spans += nameless.spans
        notes.add("spans without trace id were taken for those of the only trace", display)
    elif None in traces:
        notes.add("spans without trace id: the trace goes by the name of the file", display)
    for number, trace in traces.items():
        spans = in_order(trace.spans, Context(display, notes))
        yield _run(number or name, task, spans, trace.resource)


def _collect(items: Iterable[Item], notes: Notes) -> dict[str | None, _Trace]:
    traces: dict[str | None, _Trace] = {}
    walker, pool = Walker(), Pool()
    for item in items:
        context = Context(item.place, notes)
        for raw in walker.spans(item.value, context):
            trace = traces.setdefault(raw.trace, _Trace())
            trace.spans.append(_span(raw, pool, context))
            for key, value in raw.resource.items():
                trace.resource.setdefault(key, value)
    return traces


def _span(raw: RawSpan, pool: Pool, context: Context) -> Span:
    meaning = read_attributes(raw, pool, context)
    try:
        return Span(
            id=raw.id or "",
            parent_id=raw.parent,
            name=raw.name,
            start=raw.start,
            end=raw.end,
            status=raw.status,
            status_message=raw.message,
            events=tuple(
                SpanEvent(name=event.name, at=event.at, attributes=event.attributes)
                for event in meaning.events
            ),
            **meaning.fields,
        )
    except ValidationError as error:
        raise InputError(f"span {raw.id}: {first_problem(error)}", context.place) from None


def _run(number: str, task: str, spans: list[Span], resource: dict[str, Any]) -> Run:
    return Run(
        id=number,
        task=task,
        system=_system(spans, resource),
        input=_input(spans),
        output=_output(spans),
        messages=tuple(each_once(spans)),
        spans=tuple(spans),
        metadata={"resource": resource} if resource else {},
    )


def each_once(spans: Iterable[Span]) -> Iterator[Message]:
    """The messages of LLM spans without their repetitions, in the order of the spans.

    Every span repeats the conversation before it. A message is given again only where one span
    holds it more often than any before, so a user who says "go on" twice is heard twice. Equal
    messages have to be one object.
    """
    heard: dict[int, int] = {}
    for span in spans:
        here: dict[int, int] = {}
        for message in (*span.messages, *span.reply):
            key = id(message)
            here[key] = here.get(key, 0) + 1
            if here[key] > heard.get(key, 0):
                heard[key] = here[key]
                yield message


def _system(spans: list[Span], resource: dict[str, Any]) -> str:
    service = resource.get("service.name")
    names = [service] if not str(service).startswith(_UNKNOWN) else []
    names += [span.attributes.get(key) for span in spans for key in _NAMES]
    return next((n for n in names if isinstance(n, str) and n), "unnamed")


def _input(spans: list[Span]) -> str:
    """What the root was given, else the first agent, else what the user said first."""
    for span in spans:
        if span.input and (span.kind == "agent" or _is_root(span)):
            return span.input
    said = (m.content for span in spans for m in span.messages if m.role == "user")
    return next(filter(None, said), "")


def _is_root(span: Span) -> bool:
    """Whether a span may speak for the whole; a request to a model speaks in its messages."""
    return span.parent_id is None and span.kind != "llm"


def _output(spans: list[Span]) -> str:
    """What the last root gave back, else the first agent, else the last words of a model."""
    roots = [span.output for span in spans if _is_root(span)]
    agents = [span.output for span in spans if span.kind == "agent"]
    for text in (*reversed(roots), *agents):
        if text:
            return text
    said = (m.content for span in reversed(spans) for m in reversed(span.reply))
    return next(filter(is_answer, said), "")
