"""The outline of a trace: every span with its place and excerpts, small enough to be stored."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from agenteval.readers.assignment import assignment
from agenteval.readers.gold import withheld_from, without_gold
from agenteval.records import Message, Record, Run, Span, canonical_json
from agenteval.records.run import SpanKind

MOST_SPANS = 3000  # kept of one trace
EXCERPT = 400  # characters of an input or output
_MOST_NAME = 200


class OutlineSpan(Record):
    """One span, cut short. `seconds` and `tokens` are None where the trace does not tell them.

    `note` is what an error said: the status message, else the first exception's.
    """

    id: str
    parent_id: str | None = None
    kind: SpanKind = "chain"
    name: str = ""
    seconds: float | None = None
    tokens: int | None = None
    status: str = "unset"
    note: str = ""
    input: str = ""
    output: str = ""


class Outline(Record):
    """Spans in the order of the trace, a parent before its children.

    `kinds` counts all spans of the trace, also those left out of a large one; `errors` those with
    status error, `tokens` sums what LLM spans report (None when none does). `task` and `ending` are
    what the agent was asked and its last answer, with the ids of their spans where spans tell them;
    `withheld` are the paths of gold that the reader took out of the spans.
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

    @property
    def total(self) -> int:
        """Number of spans of the trace."""
        return sum(self.kinds.values())


def outline(run: Run, *, most: int = MOST_SPANS, excerpt: int = EXCERPT) -> Outline:
    """The outline of a trace: its first `most` spans, texts cut to `excerpt` characters (task and
    ending to eight times as many).

    The input of an LLM span is the last message it was sent, its output the reply.
    """
    used = [n for n in map(tokens_of, run.spans) if n is not None]
    assigned = assignment(run)
    return Outline(
        trace=run.id,
        task=cut_short(assigned.task.text, 8 * excerpt),
        task_span=assigned.task.span,
        ending=cut_short(assigned.ending.text, 8 * excerpt),
        ending_span=assigned.ending.span,
        withheld=withheld_from(run),
        spans=tuple(_span(span, excerpt) for span in run.spans[:most]),
        kinds=dict(Counter(span.kind for span in run.spans)),
        errors=sum(span.status == "error" for span in run.spans),
        tokens=sum(used) if used else None,
    )


def trace_key(run: Run) -> str:
    """Content hash (hex) of what a finder can see: id, input, output and spans without gold.

    A message that many spans share is hashed once, so the time is linear in the distinct text.
    """
    run = without_gold(run)
    whole = hashlib.sha256(canonical_json([run.id, run.input, run.output]).encode(*_BYTES))
    digests: dict[int, bytes] = {}
    for span in run.spans:
        plain = span.model_dump(mode="json", exclude={"messages"})
        whole.update(canonical_json(plain).encode(*_BYTES))
        for message in span.messages:
            whole.update(digests.get(id(message)) or _remember(digests, message))
    return whole.hexdigest()


_BYTES = ("utf-8", "surrogatepass")


def _remember(digests: dict[int, bytes], message: Message) -> bytes:
    text = canonical_json(message.model_dump(mode="json"))
    digests[id(message)] = hashlib.sha256(text.encode(*_BYTES)).digest()
    return digests[id(message)]


def tokens_of(span: Span) -> int | None:
    """Prompt and completion tokens that an LLM span reports; None when it reports neither."""
    if span.usage is None or span.kind != "llm":
        return None
    counts = (span.usage.prompt_tokens, span.usage.completion_tokens)
    return None if counts == (None, None) else sum(n or 0 for n in counts)


def seconds_of(span: Span) -> float | None:
    """Duration in seconds; None where start or end is unknown."""
    return None if span.start is None or span.end is None else span.end - span.start


def cut_short(text: str, most: int) -> str:
    """Beginning and end of a long text, with the number of characters between them."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]} [... {len(text) - most:,} characters ...] {text[len(text) - tail :]}"


def _span(span: Span, excerpt: int) -> OutlineSpan:
    return OutlineSpan(
        id=span.id,
        parent_id=span.parent_id,
        kind=span.kind,
        name=(span.name or span.tool or "")[:_MOST_NAME],
        seconds=seconds_of(span),
        tokens=tokens_of(span),
        status=span.status,
        note=cut_short(_note(span), excerpt),
        input=cut_short(_said(span.messages[-1:]) or span.input, excerpt),
        output=cut_short(_said(span.reply) or span.output, excerpt),
    )


def _note(span: Span) -> str:
    if span.status_message:
        return span.status_message
    for event in span.events:
        raised = event.attributes.get("exception.message") or event.attributes.get("exception.type")
        if raised:
            return str(raised)
    return ""


def _said(messages: Iterable[Message]) -> str:
    parts = []
    for message in messages:
        if message.content:
            parts.append(message.content)
        for call in message.tool_calls:
            arguments = call.arguments
            text = arguments if isinstance(arguments, str) else canonical_json(arguments)
            parts.append(f"{call.name}({text})")
    return "\n".join(parts)
