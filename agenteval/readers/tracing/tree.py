"""The spans of one trace in its order: parents first, children by time, every span once."""

from __future__ import annotations

from agenteval.readers.draft import Context
from agenteval.records import Span

REPEATED = "a span id stands twice; the first span is kept"
ORPHAN = "the parent of a span is not in the trace; the span is a root"
CYCLE = "spans are their own ancestors; the first of them is a root"


def in_order(spans: list[Span], context: Context) -> list[Span]:
    """Each span after its parent, whole branches together.

    Children of one parent stand by their start where all of them have one, else as in the file; so
    do roots. Of two spans with one id the first stays. A parent that is not there, or lies in a
    circle, is cut off with a warning. Takes time in proportion to the spans, save for sorting.
    """
    first: dict[str, Span] = {}
    for span in spans:
        if span.id in first:
            _note(context, REPEATED, span)
        else:
            first[span.id] = span
    parents = {span.id: _parent(span, first, context) for span in first.values()}
    for name in _circles(parents):
        _note(context, CYCLE, first[name])
        parents[name] = None
    children: dict[str | None, list[Span]] = {}
    for name, span in first.items():
        parent = parents[name]
        if parent != span.parent_id:
            span = span.model_copy(update={"parent_id": parent})
        children.setdefault(parent, []).append(span)
    return _branches(children)


def _parent(span: Span, known: dict[str, Span], context: Context) -> str | None:
    if span.parent_id is None or span.parent_id in known:
        return span.parent_id
    _note(context, ORPHAN, span)
    return None


def _circles(parents: dict[str, str | None]) -> list[str]:
    """Of every circle of parents the span that stands first in the file."""
    done: set[str] = set()
    cuts = []
    order: dict[str, int] | None = None
    for start in parents:
        path: dict[str, None] = {}
        name: str | None = start
        while name is not None and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name is not None and name in path:
            steps = list(path)
            order = order or {key: i for i, key in enumerate(parents)}
            cuts.append(min(steps[steps.index(name) :], key=order.__getitem__))
        done.update(path)
    return cuts


def _branches(children: dict[str | None, list[Span]]) -> list[Span]:
    ordered: list[Span] = []
    stack = _by_start(children.get(None, []))[::-1]
    while stack:
        span = stack.pop()
        ordered.append(span)
        stack.extend(reversed(_by_start(children.get(span.id, []))))
    return ordered


def _by_start(spans: list[Span]) -> list[Span]:
    if len(spans) < 2 or any(span.start is None for span in spans):
        return spans
    return sorted(spans, key=lambda span: span.start or 0.0)


def _note(context: Context, text: str, span: Span) -> None:
    context.notes.add(text, f"{context.place} (span {span.id})")
