"""Condense a trace: show each text once, omit wrappers, excerpt long texts.

Agents send their history with every request, so most of a trace is repetition. Each message is
shown only in the span where it first occurs; later spans refer to it by number (M1-M12). The rest
is cut to fit a budget, but no span, error or call is ever dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agenteval.readers.assignment import assignment
from agenteval.records.run import Run, Span, SpanKind
from agenteval.traces.condense_render import SpanDraft, TextSection, Writer, one_line
from agenteval.traces.condense_repeats import plain, wrappers
from agenteval.traces.excerpt import estimate_tokens, excerpt, size

_MAX_PATH = 3  # names of omitted wrappers above a span
_MIN_PIECE = 64  # tokens of a piece
# Part of the key of stored findings; raise it when the output of `condense` changes.
CONDENSE_VERSION = 2

LEGEND = """\
S1, S2 ... are the spans of the trace in its order; "in S2 > Step 3" says below which spans one
stands, names without a number being wrappers that are not shown themselves.
M1, M2 ... are messages. Each is shown once, in the span that was sent or gave it first; later spans
were sent it again where they say "M1-M9 as before". "no longer sent" names messages that an earlier
call was sent and this one was not.
[cut: N characters], [the task: N characters], [same as ...], [stands within ...], [begins with the
same ...], [and so on ...] and [output of S5: N characters] stand in place of text, [withheld] of
gold answers. They are marks of this view, no part of the trace and no error of the agent."""


@dataclass(frozen=True, slots=True)
class TracePiece:
    """The text of one span for a judge. `tokens` is an estimate (see `estimate_tokens`)."""

    index: str  # S1 ... Sn, in trace order
    span: str  # id of the span
    kind: SpanKind
    text: str
    tokens: int


@dataclass(frozen=True)
class Condensed:
    """The pieces of a trace, in order.

    `source_tokens` estimates the size of the whole trace. `dropped` counts omitted spans by reason.
    Each cut is marked in the text.
    """

    trace: str
    pieces: tuple[TracePiece, ...]
    source_tokens: int
    dropped: dict[str, int] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of all pieces."""
        return sum(piece.tokens for piece in self.pieces)


@dataclass(frozen=True)
class Options:
    """Size limits in estimated tokens: `budget` for the whole trace (None: no limit), `piece` for
    each span. They are exceeded only where a span, an error or a call would be hidden."""

    budget: int | None = 200_000
    piece: int = 3_000

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ValueError(f"budget must be at least 1 token or None: {self.budget}")
        if self.piece < _MIN_PIECE:
            raise ValueError(f"piece must be at least {_MIN_PIECE} tokens: {self.piece}")


def condense(run: Run, options: Options | None = None) -> Condensed:
    """Return the run's spans as pieces of text; none for a run without spans.

    Time and memory are linear in the size of the trace. Texts are unchanged except for the marks
    that LEGEND explains. They are untrusted: fence them before showing them to a model.
    """
    options = options or Options()
    parents = _parents(run.spans)
    reasons = wrappers(run.spans, parents)
    drafts = _drafts(run, parents, reasons)
    rooms = _rooms(drafts, options)
    pieces = []
    for draft in drafts:
        lines = list(draft.head)
        for section in draft.sections:
            text = excerpt(section.text, next(rooms))
            between = "\n" if "\n" in text and section.label else " " if section.label else ""
            lines.append(f"{section.label}{between}{text}".rstrip("\n"))
        text = "\n".join(lines)
        span = draft.span
        pieces.append(TracePiece(draft.index, span.id, span.kind, text, estimate_tokens(text)))
    dropped = Counter(filter(None, reasons))
    return Condensed(run.id, tuple(pieces), source_tokens(run), dict(dropped))


def source_tokens(run: Run) -> int:
    """Estimate the tokens of everything in the spans, including repetitions."""
    sizes: dict[int, int] = {}
    total = 0
    for span in run.spans:
        for message in (*span.messages, *span.reply):
            if id(message) not in sizes:  # spans share messages
                calls = "".join(c.name + plain(c.arguments) for c in message.tool_calls)
                sizes[id(message)] = estimate_tokens(message.content + calls)
            total += sizes[id(message)]
        texts = [span.input, span.output, span.status_message]
        texts += [t.description + plain(t.parameters) for t in span.tools]
        texts += [k + plain(v) for k, v in span.attributes.items()]
        texts += [plain(dict(event.attributes)) for event in span.events]
        total += sum(map(size, texts)) // 4 + 1
    return total


def _parents(spans: Sequence[Span]) -> list[int | None]:
    """Return the position of each span's parent; None for roots and parents that come later."""
    first: dict[str, int] = {}
    parents: list[int | None] = []
    for i, span in enumerate(spans):
        parents.append(first.get(span.parent_id) if span.parent_id is not None else None)
        first.setdefault(span.id, i)
    return parents


def _drafts(
    run: Run, parents: Sequence[int | None], reasons: Sequence[str | None]
) -> list[SpanDraft]:
    writer = Writer(assignment(run).task.text.strip())
    drafts: list[SpanDraft] = []
    indices: list[str] = []  # of each span, or of the nearest span above it that is kept
    names: list[tuple[str, ...]] = []  # of the omitted wrappers in between
    for i, span in enumerate(run.spans):
        parent = parents[i]
        above, path = ("", ()) if parent is None else (indices[parent], names[parent])
        if reasons[i]:
            indices.append(above)
            names.append((*path, one_line(span.name, 60))[-_MAX_PATH:])
            continue
        place = " > ".join(filter(None, (above, *path)))
        index = f"S{len(drafts) + 1}"
        drafts.append(writer.draft(index, span, f"in {place}" if place else ""))
        indices.append(index)
        names.append(())
    return drafts


def _rooms(drafts: Sequence[SpanDraft], options: Options) -> Iterator[int]:
    """Yield the bytes for each section: limited by its piece, then by the budget."""
    for draft in drafts:
        room = 4 * options.piece - draft.fixed - 4
        for section, most in zip(draft.sections, _share(draft.sections, room), strict=True):
            section.wanted, section.fair = most, min(section.fair, most)
    sections = [section for draft in drafts for section in draft.sections]
    if options.budget is None:
        yield from (section.wanted for section in sections)
    else:
        yield from _share(sections, 4 * options.budget - sum(draft.fixed + 4 for draft in drafts))


def _share(sections: Sequence[TextSection], room: int) -> list[int]:
    """Share room between `least` and `fair`, or `fair` and `wanted` if there is enough."""
    weights = [s.weight for s in sections]
    least, fair = [s.least for s in sections], [s.fair for s in sections]
    if sum(fair) >= room:
        return shares(least, fair, weights, room)
    return shares(fair, [s.wanted for s in sections], weights, room)


def shares(
    least: Sequence[int], wanted: Sequence[int], weights: Sequence[float], room: int
) -> list[int]:
    """Divide `room` by weighted max-min fairness.

    Share i is min(wanted, max(least, level * weight)), at the highest level at which the sum stays
    within `room`. If the sum of `least` exceeds the room, every share is its `least`. All arguments
    have the same unit; weights are above 0, and least <= wanted.
    """
    if sum(wanted) <= room:
        return list(wanted)
    total = sum(least)
    if total >= room:
        return list(least)
    changes = [(low / w, w) for low, w in zip(least, weights, strict=True)]
    changes += [(high / w, -w) for high, w in zip(wanted, weights, strict=True)]
    level, slope, used = 0.0, 0.0, float(total)
    for at, change in sorted(changes):
        if slope > 0 and used + slope * (at - level) >= room:
            break
        used += slope * (at - level)
        level, slope = at, slope + change
    if slope > 0:
        level += (room - used) / slope
    return [
        min(high, max(low, int(level * w)))
        for low, high, w in zip(least, wanted, weights, strict=True)
    ]
