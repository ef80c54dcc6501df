"""Outline a trace: every span with excerpts, small enough to store, and draw it as a tree."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.readers.assignment import assignment
from agenteval.readers.gold import withheld_from, without_gold
from agenteval.readers.span_usage import (
    cost_stated,
    counted_once,
    tokens_stated,
    why_not_understood,
)
from agenteval.records import Message, Record, Run, Span, canonical_json
from agenteval.records.finding import Findings
from agenteval.records.run import SpanKind

MAX_SPANS = 3000  # per trace
EXCERPT = 400  # characters of an input or output
_MAX_NAME = 200
_NOT_UNDERSTOOD = b"not understood 1"  # version 1 of the check


class OutlineSpan(Record):
    """One span, shortened.

    `seconds`, `tokens` and `cost` are None if the trace does not state them. Tokens and cost that
    an inner span also states count there and are None here.

    `note` is the message of an error: the status message, else the first exception's.
    """

    id: str
    parent_id: str | None = None
    kind: SpanKind = "chain"
    name: str = ""
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    status: str = "unset"
    note: str = ""
    input: str = ""
    output: str = ""


class Outline(Record):
    """Spans in trace order, each parent before its children.

    `kinds` counts all spans, including those omitted from a large trace; `errors` counts those with
    status error. `tokens` and `cost` are sums of the values in spans, each counted once (None
    without values). `task` and `ending` are the agent's request and last answer, with the ids of
    their spans, if any. `withheld` are the paths of gold that the reader removed from the spans.
    """

    trace: str
    task: str = ""
    task_span: str | None = None
    ending: str = ""
    ending_span: str | None = None
    withheld: tuple[str, ...] = ()
    spans: tuple[OutlineSpan, ...] = ()
    kinds: dict[str, int]
    errors: int = 0
    tokens: int | None = None
    cost: float | None = None

    @property
    def total(self) -> int:
        """Number of spans of the trace."""
        return sum(self.kinds.values())


def outline(run: Run, *, most: int = MAX_SPANS, excerpt: int = EXCERPT) -> Outline:
    """Return the first `most` spans, with texts cut to `excerpt` characters.

    Task and ending may be eight times as long. The input of an LLM span is the last message sent to
    it, its output the reply.
    """
    tokens, costs = counted_once(run.spans, tokens_stated), counted_once(run.spans, cost_stated)
    assigned = assignment(run)
    return Outline(
        trace=run.id,
        task=cut_short(assigned.task.text, 8 * excerpt),
        task_span=assigned.task.span,
        ending=cut_short(assigned.ending.text, 8 * excerpt),
        ending_span=assigned.ending.span,
        withheld=withheld_from(run),
        spans=tuple(
            _span(span, excerpt, tokens.get(span.id), costs.get(span.id))
            for span in run.spans[:most]
        ),
        kinds=dict(Counter(span.kind for span in run.spans)),
        errors=sum(span.status == "error" for span in run.spans),
        tokens=sum(tokens.values()) if tokens else None,
        cost=sum(costs.values()) if costs else None,
    )


def trace_key(run: Run) -> str:
    """Return the content hash (hex) of id, input, output and spans, all without gold.

    A trace that the readers do not understand gets a key that versions without this check never
    used, so an earlier "clean" result does not count. A message shared by many spans is hashed
    once, so the time is linear in the distinct text.
    """
    run = without_gold(run)
    total = hashlib.sha256(_bytes([run.id, run.input, run.output]))
    digests: dict[int, bytes] = {}
    for span in run.spans:
        total.update(_bytes(span.model_dump(mode="json", exclude={"messages"})))
        for message in span.messages:
            if id(message) not in digests:
                data = _bytes(message.model_dump(mode="json"))
                digests[id(message)] = hashlib.sha256(data).digest()
            total.update(digests[id(message)])
    if why_not_understood(run):
        total.update(_NOT_UNDERSTOOD)
    return total.hexdigest()


def _bytes(value: object) -> bytes:
    return canonical_json(value).encode("utf-8", "surrogatepass")


def cut_short(text: str, most: int) -> str:
    """Shorten a long text to its two ends, with the number of characters between them."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]} [... {len(text) - most:,} characters ...] {text[len(text) - tail :]}"


def _span(span: Span, excerpt: int, tokens: int | None, cost: float | None) -> OutlineSpan:
    keys = ("exception.message", "exception.type")
    stated = (event.attributes.get(key) for event in span.events for key in keys)
    raised = (str(value) for value in stated if value)
    return OutlineSpan(
        id=span.id,
        parent_id=span.parent_id,
        kind=span.kind,
        name=(span.name or span.tool or "")[:_MAX_NAME],
        seconds=None if span.start is None or span.end is None else span.end - span.start,
        tokens=tokens,
        cost=cost,
        status=span.status,
        note=cut_short(span.status_message or next(raised, ""), excerpt),
        input=cut_short(_text(span.messages[-1:]) or span.input, excerpt),
        output=cut_short(_text(span.reply) or span.output, excerpt),
    )


def _text(messages: Iterable[Message]) -> str:
    parts = []
    for message in messages:
        if message.content:
            parts.append(message.content)
        for call in message.tool_calls:
            arguments = call.arguments
            text = arguments if isinstance(arguments, str) else canonical_json(arguments)
            parts.append(f"{call.name}({text})")
    return "\n".join(parts)


def unexplained(spans: Sequence[OutlineSpan], findings: Findings) -> list[str]:
    """Return the ids of spans with status error that have no finding at them or below them."""
    parents = {span.id: span.parent_id for span in spans}
    explained: set[str] = set()
    for finding in findings.findings:
        span: str | None = finding.span
        while span is not None and span not in explained:
            explained.add(span)
            span = parents.get(span)
    return [s.id for s in spans if s.status == "error" and s.id not in explained]


# -- drawing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A span to draw, its drawn children, and the number of omitted children by kind."""

    span: OutlineSpan
    depth: int
    children: list[Drawn] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Forest:
    """The roots to show, and the number of omitted spans by kind."""

    roots: list[Drawn] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Bounds:
    """Display limits: total spans, children per span, levels below a root."""

    spans: int = 200
    children: int = 25
    depth: int = 24


def nodes(roots: Iterable[Drawn]) -> Iterator[Drawn]:
    """Yield these nodes and all below them."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def forest(
    spans: Sequence[OutlineSpan], marked: Collection[str] = (), bounds: Bounds = Bounds()
) -> Forest:
    """Return the spans as trees within `bounds`; omitted spans are counted at their place.

    Spans in `marked`, then spans with an error, are chosen first, with the spans above them, so
    that they are visible in a trace of any size. A span is a root if its parent does not precede it
    or it is more than `bounds.depth` below its root, so broken or circular links draw no loop.
    """
    parents, depths = _places(spans, bounds.depth)
    chosen = _chosen(spans, parents, marked, bounds)
    drawn: dict[int, Drawn] = {}
    anchors: list[int | None] = []  # the nearest drawn span at or above each span
    result = Forest()
    for i, span in enumerate(spans):
        parent = parents[i]
        anchor = None if parent is None else anchors[parent]
        above = None if anchor is None else drawn[anchor]
        if i in chosen:
            drawn[i] = Drawn(span, depths[i])
            (above.children if above else result.roots).append(drawn[i])
            anchor = i
        else:
            (above or result).hidden[span.kind] += 1
        anchors.append(anchor)
    return result


def _places(spans: Sequence[OutlineSpan], deepest: int) -> tuple[list[int | None], list[int]]:
    """Return each span's parent index and depth; of spans with the same id, the first counts."""
    seen: dict[str, int] = {}
    parents: list[int | None] = []
    depths: list[int] = []
    for i, span in enumerate(spans):
        above = None if span.parent_id is None else seen.get(span.parent_id)
        if above is not None and depths[above] >= deepest:
            above = None
        parents.append(above)
        depths.append(0 if above is None else depths[above] + 1)
        seen.setdefault(span.id, i)
    return parents, depths


def _chosen(
    spans: Sequence[OutlineSpan],
    parents: Sequence[int | None],
    marked: Collection[str],
    bounds: Bounds,
) -> set[int]:
    """Choose the positions of spans to draw: marked ones, errors, then from the start."""
    chosen: set[int] = set()
    first = [i for i, span in enumerate(spans) if span.id in marked]
    for i in [*first, *(i for i, span in enumerate(spans) if span.status == "error")]:
        path, above = [i], parents[i]
        while above is not None and above not in chosen:
            path.append(above)
            above = parents[above]
        if i not in chosen and len(chosen) + len(path) <= bounds.spans:
            chosen.update(path)
    siblings: Counter[int | None] = Counter(parents[i] for i in chosen)
    for i, above in enumerate(parents):
        fits = siblings[above] < bounds.children and (above is None or above in chosen)
        if i not in chosen and fits and len(chosen) < bounds.spans:
            chosen.add(i)
            siblings[above] += 1
    return chosen
