"""A trace as the rules see it (each span once, its place in the tree, what may be quoted); the
rules and their register. `detect` applies them to a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Finding, Impact, Message, Run, Span

QUOTE = 300  # characters of evidence, at most
MessageKey = tuple[object, ...]
T = TypeVar("T")
_SORTED = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


class TraceView:
    """A run's spans with their places. Made once for all rules; costs one pass over the spans.

    Of several spans with one id the first counts. A parent that does not stand before its child is
    taken as missing, so that broken or circular links cannot mislead.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.spans: list[Span] = []
        self.position: dict[str, int] = {}
        self.parents: list[int | None] = []
        self.agents: list[int | None] = []  # the nearest agent span at or above each span
        self.doers: list[int | None] = []  # the nearest llm, tool or agent span above each span
        self._keys: dict[int, MessageKey] = {}
        self._made: dict[Any, Any] = {}
        for span in run.spans:
            if span.id not in self.position:
                self._add(span)

    def _add(self, span: Span) -> None:
        at = len(self.spans)
        above = None if span.parent_id is None else self.position.get(span.parent_id)
        self.position[span.id] = at
        self.spans.append(span)
        self.parents.append(above)
        inherited = None if above is None else self.agents[above]
        self.agents.append(at if span.kind == "agent" else inherited)
        if above is None:
            self.doers.append(None)
        else:
            does = self.spans[above].kind in ("llm", "tool", "agent")
            self.doers.append(above if does else self.doers[above])

    def once(self, make: Callable[[TraceView], T]) -> T:
        """What `make` returns for this view, worked out once for all rules."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @cached_property
    def llms(self) -> list[Span]:
        """Requests to a model of which the trace tells something. A request traced twice (a client
        inside a wrapper) counts once, as the outer span."""
        return [s for i, s in enumerate(self.spans) if _told(s) and self._outermost(i, "llm")]

    @cached_property
    def tools(self) -> list[Span]:
        """Executions of tools. One traced twice, inside itself, counts once, as the outer span."""
        return [span for i, span in enumerate(self.spans) if self._outermost(i, "tool")]

    def _outermost(self, i: int, kind: str) -> bool:
        span, doer = self.spans[i], self.doers[i]
        if span.kind != kind:
            return False
        outer = None if doer is None else self.spans[doer]
        if outer is None or outer.kind != kind:
            return True
        return outer.tool != span.tool or (kind == "llm" and not _told(outer))

    def agent_of(self, span: Span) -> int | None:
        """Position of the nearest agent span at or above a span; None without one."""
        return self.agents[self.position[span.id]]

    def key(self, message: Message) -> MessageKey:
        """What makes two messages the same one; worked out once for each Message object."""
        known = self._keys.get(id(message))
        if known is None:
            calls = tuple((c.name, c.id, canonical(c.arguments)) for c in message.tool_calls)
            known = (message.role, message.content, message.name, message.tool_call_id, calls)
            self._keys[id(message)] = known
        return known

    @cached_property
    def fresh(self) -> list[tuple[Span, Message]]:
        """Every message that a model was sent, once, with the first span that holds it."""
        seen_objects: set[int] = set()
        seen: set[MessageKey] = set()
        first_sent = []
        for span in self.llms:
            for message in span.messages:
                if id(message) in seen_objects:
                    continue
                seen_objects.add(id(message))
                key = self.key(message)
                if key not in seen:
                    seen.add(key)
                    first_sent.append((span, message))
        return first_sent


def _told(request: Span) -> bool:
    return bool(request.messages or request.reply or request.finish)


def canonical(value: JsonValue) -> str:
    """One text per value, whatever the order of keys."""
    return _SORTED.encode(value)


def arguments_text(value: JsonValue) -> str:
    """Arguments of a call as text: as they came when they were no JSON, else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def texts(span: Span) -> Iterator[str]:
    """Every text of a span that a finding may quote; its messages come last."""
    yield from (span.status_message, span.output, span.input, span.name, span.finish or "")
    yield span.tool or ""
    for message in span.reply:
        yield from _message_texts(message)
    for event in span.events:
        yield from _strings(event.attributes)
    yield from _strings(span.attributes)
    for tool in span.tools:
        yield tool.name
        yield tool.description
        yield json.dumps(tool.parameters, ensure_ascii=False)
    for message in span.messages:
        yield from _message_texts(message)


def _message_texts(message: Message) -> Iterator[str]:
    yield message.content
    for call in message.tool_calls:
        yield call.name
        yield arguments_text(call.arguments)


def _strings(value: JsonValue) -> Iterator[str]:
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif item is not None:
            yield item if isinstance(item, str) else json.dumps(item)


def quote(span: Span, *candidates: str) -> str:
    """The first candidate, cut to 300 characters, that stands in the span; "" if none does."""
    for candidate in candidates:
        cut = candidate.strip()[:QUOTE].strip()
        if cut and any(cut in text for text in texts(span)):
            return cut
    return ""


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found: the span, words of it, what is wrong. `impact` None: that of the rule."""

    span: Span
    evidence: str
    description: str
    impact: Impact | None = None


Check = Callable[[TraceView], Iterator[Hit]]


@cache
def measured() -> Mapping[str, float]:
    """Precision of rules by name, as `python -m benchmarks.detectors` measured it on traces that
    people annotated, each trace left out in its turn (data/traces/detectors.json).

    A rule is here if it made ten flags or more and was surely better than chance."""
    text = files("agenteval.data").joinpath("traces/detectors.json").read_text("utf-8")
    rules: dict[str, float] = json.loads(text)["precision"]
    return rules


@dataclass(frozen=True, slots=True)
class Rule:
    """One detector. `certain` says what it goes by and what it does not cover."""

    name: str
    category: str
    impact: Impact
    certain: str
    check: Check

    @property
    def confidence(self) -> float | None:
        """The measured share of its findings that are right; None where too few were seen."""
        return measured().get(self.name)

    def __call__(self, view: TraceView) -> Iterator[Finding]:
        """Findings of one trace, in no particular order."""
        for hit in self.check(view):
            yield Finding(
                span=hit.span.id,
                category=self.category,
                evidence=hit.evidence,
                description=hit.description,
                impact=hit.impact or self.impact,
                confidence=self.confidence,
                source=f"detector:{self.name}",
            )


RULES: dict[str, Rule] = {}


def rule(name: str, category: str, impact: Impact, certain: str) -> Callable[[Check], Check]:
    """Register a function as the rule `name`; ValueError when the name is taken."""

    def register(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"two detectors are named {name!r}")
        RULES[name] = Rule(name, category, impact, certain, check)
        return check

    return register


def detect(
    run: Run,
    taxonomy: Taxonomy | None = None,
    only: Collection[str] | None = None,
    undecided: bool = False,
) -> tuple[Finding, ...]:
    """Findings of the rules that are measured (with `undecided` of all, with `only` of those
    named), in the order of the spans, then rules.

    With a taxonomy, a rule whose category it does not know is left out, and findings carry the
    name of the leaf. Raises InputError for a name in `only` that no rule has.
    """
    unknown = sorted(set(only or ()) - RULES.keys())
    if unknown:
        raise InputError(f"no detector {unknown[0]!r} (there are: {', '.join(sorted(RULES))})")
    view = TraceView(run)
    rows: list[tuple[int, int, int, Finding]] = []
    for order, each in enumerate(RULES.values()):
        if (
            not (undecided or each.confidence is not None)
            if only is None
            else (each.name not in only)
        ):
            continue
        leaf = None if taxonomy is None else taxonomy.find(each.category)
        if taxonomy is not None and (leaf is None or not leaf.assigned):
            continue
        for number, finding in enumerate(each(view)):
            if leaf is not None and leaf.name != finding.category:
                finding = finding.model_copy(update={"category": leaf.name})
            rows.append((view.position[finding.span], order, number, finding))
    rows.sort(key=lambda row: row[:3])
    return tuple(row[3] for row in rows)
