"""From the values of a file to its spans: nested trees, OTLP, lists and single spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.draft import Context
from agenteval.readers.fields import MESSAGES, OUTPUT, snake
from agenteval.readers.tracing.raw import (
    CHILDREN,
    RawSpan,
    id_of,
    pick,
    plain,
    plain_keys,
    raw_span,
    resource_of,
)

_GROUPS = ("resourcespans", "scopespans", "instrumentationlibraryspans", "batches")
_LISTS = (*_GROUPS, "traces", "data")
_SPAN = frozenset({"spanid", "parentspanid", "childspans", "starttimeunixnano"})
# A trace id is also the name of a run in some logs, so it needs one of these beside it.
_BESIDE_TRACE = frozenset({"attributes", "spanattributes", "parentid", "spanname", "spankind"})
_ATTRIBUTES = frozenset({"attributes", "spanattributes"})
_BESIDE_ATTRIBUTES = frozenset({"parentid", "starttime"})
_EVIDENCE = frozenset({*OUTPUT, *MESSAGES})
SPAN_LISTS = frozenset({*_LISTS, *CHILDREN, "spans"})
WANTED = (
    "a trace is a JSON object with `spans` or `resourceSpans`, or JSON lines of spans with "
    "`trace_id` and `span_id`"
)


def is_trace(value: Any) -> bool:
    """Whether a JSON value is a trace or a span of one, and no run of another form."""
    if isinstance(value, list):
        return bool(value) and is_trace(value[0])
    if not isinstance(value, dict):
        return False
    names = plain_keys(value)
    if any(isinstance(names.get(key), list) for key in _GROUPS) or is_span(names):
        return True
    spans = names.get("spans")
    if isinstance(spans, list):
        own = any(snake(key) in _EVIDENCE for key in value if len(key) <= 40)
        return not own and any(isinstance(s, dict) and is_span(plain_keys(s)) for s in spans[:20])
    return isinstance(names.get("trace"), dict) and is_trace(names["trace"])


def is_span(names: Mapping[str, Any]) -> bool:
    """Whether an object with these plain keys is a span."""
    return (
        not _SPAN.isdisjoint(names)
        or ("traceid" in names and not _BESIDE_TRACE.isdisjoint(names))
        or (not _ATTRIBUTES.isdisjoint(names) and not _BESIDE_ATTRIBUTES.isdisjoint(names))
    )


def keeps_spans(key: str) -> bool:
    """Whether a list under this key holds spans, or groups of them."""
    return plain(key) in SPAN_LISTS


@dataclass(frozen=True, slots=True)
class _Around:
    """What the objects around a span say of it."""

    trace: str | None = None
    parent: str | None = None
    resource: dict[str, Any] = field(default_factory=dict)
    scope: str | None = None
    spans: bool = False  # in a list of spans every object is one


@dataclass
class Walker:
    """Finds the spans of values; spans without an id are numbered over the whole file."""

    unnamed: int = 0

    def spans(self, value: Any, context: Context) -> Iterator[RawSpan]:
        """Spans in the order of the file, parents first, however deep they are nested."""
        stack: list[tuple[Any, _Around]] = [(value, _Around())]
        while stack:
            item, around = stack.pop()
            if isinstance(item, list):
                stack.extend((inner, around) for inner in reversed(item))
            elif isinstance(item, dict) and item:
                names = plain_keys(item)
                inside = _inside(names, around)
                if inside is not None:
                    stack.extend(reversed(inside))
                elif around.spans or is_span(names):
                    span = self._span(item, names, around, context)
                    yield span
                    inner = _Around(span.trace, span.id, span.resource, around.scope, True)
                    stack.extend(
                        (names[key], inner) for key in reversed(CHILDREN) if names.get(key)
                    )
                else:
                    context.notes.add("an object that is no span was passed over", context.place)
            else:
                context.notes.add("a value that is no span was passed over", context.place)

    def _span(
        self, item: dict[str, Any], names: dict[str, Any], around: _Around, context: Context
    ) -> RawSpan:
        span = raw_span(item, names)
        if span.id is None:
            self.unnamed += 1
            span.id = f"unnamed-{self.unnamed}"
            context.notes.add("a span without id got a number as its name", context.place)
        span.trace = span.trace or around.trace
        span.parent = around.parent or span.parent
        span.resource = span.resource or around.resource
        if around.scope:
            span.attributes.setdefault("scope_name", around.scope)
        return span


def _inside(names: dict[str, Any], around: _Around) -> list[tuple[Any, _Around]] | None:
    """The parts of an object that holds spans; None when it is none but perhaps a span itself."""
    if is_span(names) and not any(isinstance(names.get(key), list) for key in _GROUPS):
        return None
    found: list[tuple[Any, _Around]] = []
    group = _Around(
        trace=id_of(names.get("traceid")) or around.trace,
        resource=resource_of(names) or around.resource,
        scope=_scope(names) or around.scope,
    )
    for key in _LISTS:
        if isinstance(names.get(key), list):
            found.append((names[key], group))
    if isinstance(names.get("trace"), dict):
        found.append((names["trace"], group))
    if isinstance(names.get("spans"), list):
        spans = _Around(group.trace, around.parent, group.resource, group.scope, True)
        found.append((names["spans"], spans))
    return found or None


def _scope(names: Mapping[str, Any]) -> str | None:
    scope = pick(names, ("scope", "instrumentationlibrary"))
    name = scope.get("name") if isinstance(scope, dict) else None
    return name if isinstance(name, str) and name else None
