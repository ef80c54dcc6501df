"""Find the request, the instructions and the final answer of the agent in a trace.

The outermost span of a trace is often a wrapper around the agent, with settings, a row of a data
set, or nothing as input. So the request is searched for where a convention marks one: OpenInference
and OpenTelemetry's GenAI both mark agents and model calls.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agenteval.readers.attributes import text_of
from agenteval.readers.fields import INPUT, MESSAGES, OUTPUT, snake
from agenteval.readers.messages import ROLES, Parts, is_answer, role_of
from agenteval.readers.strict_json import json_or_none
from agenteval.records import Run, Span

_NOTHING = frozenset({"", "null", "<null>", "none", "{}", "[]", '""', "undefined"})
_REQUEST = ("task", "request", *INPUT)
_AROUND = ("kwargs", "args", "arguments", *INPUT)  # keys that may enclose the request
_MOST_LITERAL = 1 << 17  # maximum characters of a Python literal to parse
_DEEPEST = 5


@dataclass(frozen=True, slots=True)
class Passage:
    """A text in a trace and the id of its span, or None if it comes from the run itself."""

    text: str = ""
    span: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The request to an agent, its instructions (system message), and its final answer, or ""."""

    task: Passage = Passage()
    instructions: Passage = Passage()
    ending: Passage = Passage()


def assignment(run: Run) -> Assignment:
    """Return the assignment of a run; `input` and `output` take precedence over the spans.

    The task is the earliest request from the first of these sources: the user message or task
    argument of an outermost agent, the text of a user span, the request to a chain before the first
    model call, the first user message to a model, the request to a nested agent, the input of the
    outermost span. The instructions are the first system message to that agent. The ending is the
    agent's output (in its last turn, if there are several), else the last text of its own model
    calls or answer tool, else of the agents below it.
    """
    by_spans = of_spans(run.spans)
    first_request = next((m.content for m in run.messages if m.role == "user" and m.content), "")
    rules = next((m.content for m in run.messages if m.role == "system"), "")
    return Assignment(
        _preferred(run.input, by_spans.task, first_request),
        by_spans.instructions if by_spans.instructions.text else Passage(rules),
        _preferred(run.output, by_spans.ending, ""),
    )


def _preferred(of_run: str, of_span: Passage, default: str) -> Passage:
    """Return the run's text (with a span, if it has the same text), else the text of a span."""
    if says_something(of_run) and of_run != of_span.text:
        return Passage(of_run)
    return of_span if of_span.text else Passage(default)


def of_spans(spans: Sequence[Span]) -> Assignment:
    """Return the assignment in the spans of a run (see `assignment`)."""
    timed = all(span.start is not None for span in spans)
    ordered = sorted(spans, key=lambda s: s.start or 0.0) if timed else list(spans)
    tree = Tree(ordered)
    giver, text = next(_requests(ordered, tree), (None, ""))
    if giver is None:
        return Assignment()
    owner, above = giver, tree.above(giver)
    if giver.kind in ("llm", "user") and above:
        owner = next((s for s in reversed(above) if s.kind == "agent"), above[-1])
    if owner.kind in ("llm", "user"):  # no span encloses the calls
        return Assignment(Passage(text, giver.id), _rules(ordered), _last_words(ordered))
    last = [s for s in ordered if s is owner or _goes_on(s, owner)][-1]
    endings = (
        Passage(next(_answers(last), ""), last.id),
        _last_words(tree.below(last, agents=False)),
        _last_words(tree.below(last, agents=True)),
    )
    return Assignment(
        Passage(text, giver.id),
        _rules(tree.below(owner, agents=True)),
        next((ending for ending in endings if ending.text), Passage()),
    )


def _goes_on(span: Span, owner: Span) -> bool:
    """Return whether a span is another turn: the same caller called the agent again, or another
    outermost step has an output."""
    alike = (span.kind, span.parent_id) == (owner.kind, owner.parent_id)
    step = owner.kind == "chain" and owner.parent_id is None and any(_answers(span))
    return alike and (span.name == owner.name or step)


class Tree:
    """The tree of spans, with cycles cut."""

    def __init__(self, ordered: Sequence[Span]) -> None:
        self._ordered = ordered
        self._by_id = {span.id: span for span in ordered}
        self._children: dict[str | None, list[Span]] = {}
        for span in ordered:
            self._children.setdefault(span.parent_id, []).append(span)

    def above(self, span: Span) -> list[Span]:
        """Return the spans above, nearest first."""
        path: dict[str, Span] = {}
        while (parent := self._by_id.get(span.parent_id or "")) and parent.id not in path:
            path[parent.id] = span = parent
        return list(path.values())

    def below(self, top: Span, *, agents: bool) -> list[Span]:
        """Return a span and all below it, in order; without `agents`, excludes nested agents."""
        inside = self.under([top], agents=agents)
        return [span for span in self._ordered if span is top or span.id in inside]

    def under(self, tops: Iterable[Span], *, agents: bool) -> set[str]:
        """Return the ids of all spans below the given ones."""
        inside, stack = set[str](), [top.id for top in tops]
        while stack:
            for span in self._children.get(stack.pop(), ()):
                if span.id not in inside and (agents or span.kind != "agent"):
                    inside.add(span.id)
                    stack.append(span.id)
        return inside


def _requests(ordered: Sequence[Span], tree: Tree) -> Iterator[tuple[Span, str]]:
    """Yield spans with their requests, most trusted first."""
    first = next((i for i, s in enumerate(ordered) if s.kind == "llm"), len(ordered))
    agents = [s for s in ordered if s.kind == "agent"]
    nested = tree.under(agents, agents=True)
    tries = chain(
        ((s, _asked(s)) for s in agents if s.id not in nested),
        ((s, s.input or s.output) for s in ordered if s.kind == "user"),
        (
            (s, request_in(s.input, plain=s.parent_id is None))
            for s in ordered[:first]
            if s.kind == "chain"
        ),
        ((s, _asked(s)) for s in ordered if s.kind == "llm"),
        ((s, _asked(s)) for s in agents),
        ((s, s.input) for s in ordered if s.kind != "tool"),
    )
    return ((span, text) for span, text in tries if says_something(text))


def _asked(span: Span) -> str:
    users = (m.content for m in span.messages if m.role == "user")
    held = (v for k, v in span.attributes.items() if k.rpartition(".")[2] == "task")
    texts = chain(users, [request_in(span.input)], (v for v in held if isinstance(v, str)))
    return next(filter(says_something, texts), "")


def _rules(spans: Iterable[Span]) -> Passage:
    systems = (Passage(m.content, s.id) for s in spans for m in s.messages if m.role == "system")
    return next((rules for rules in systems if rules.text.strip()), Passage())


def _answers(span: Span) -> Iterator[str]:
    """Yield the answers of a span: its replies, last first, or else its output."""
    texts = [m.content for m in reversed(span.reply)] or [answer_in(span.output)]
    return (text for text in texts if is_answer(text))


def _last_words(spans: Sequence[Span]) -> Passage:
    """Return the last answer of a model, or the last result of a tool for answers."""
    speaking = (
        s
        for s in reversed(spans)
        if s.kind == "llm" or (s.kind == "tool" and snake(s.tool or s.name) in OUTPUT)
    )
    return next((Passage(text, s.id) for s in speaking for text in _answers(s)), Passage())


# ---- requests and answers inside of values ------------------------------------------------------


def says_something(text: str) -> bool:
    """Return whether a text is not just a program's notation for a missing value."""
    return text.strip().lower() not in _NOTHING


def value_in(text: str) -> Any:
    """Parse an object or list from JSON or a Python literal; None for other texts."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value = json_or_none(text)
    if value is None and len(text) < _MOST_LITERAL:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about invalid escapes
                literal = ast.literal_eval(text.strip())
            value = json.loads(json.dumps(literal, allow_nan=False))  # raises for sets and bytes
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
    return value if isinstance(value, (dict, list)) else None


def request_in(text: str, *, plain: bool = True) -> str:
    """Return the request in the input of a span, or "".

    It is a named argument, the first user message in a list, or (if `plain`) a text that is not an
    object.
    """
    if not says_something(text):
        return ""
    value = value_in(text)
    if value is None:
        return text if plain else ""
    return _request(value, 0)


def _request(value: Any, depth: int) -> str:
    if isinstance(value, list):
        alone = value[0] if len(value) == 1 and isinstance(value[0], str) else ""
        return next(_texts(value, "user"), alone)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return ""
    names = {snake(key): item for key, item in value.items() if isinstance(key, str)}
    texts = [names[key] for key in _REQUEST if isinstance(names.get(key), str)]
    texts += [next(_texts(names[key], "user"), "") for key in MESSAGES if key in names]
    inner = (_request(names[key], depth + 1) for key in _AROUND if key in names)
    return next(filter(says_something, texts), "") or next(filter(None, inner), "")


def answer_in(text: str) -> str:
    """Return the answer in the output of a span: the last assistant message in a list, the text of
    an object with no other content, or the whole output."""
    value = value_in(text)
    rows = value
    if isinstance(value, dict):
        filled = [(k, v) for k, v in value.items() if v not in (None, "", [], {})]
        if len(filled) == 1 and snake(str(filled[0][0])) in OUTPUT:
            return answer_in(text_of(filled[0][1]))
        rows = next((value[key] for key in MESSAGES if key in value), None)
        rows = [value] if rows is None and role_of(value) == "assistant" else rows
    *_, last = "", *filter(is_answer, _texts(rows, "assistant"))
    return last or (text if says_something(text) and is_answer(text) else "")


def _texts(rows: Any, role: str) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else ():
        pair = isinstance(row, (list, tuple)) and len(row) == 2 and isinstance(row[0], str)
        item = {"role": row[0], "content": row[1]} if pair else row
        if isinstance(item, dict) and isinstance(item.get("kwargs"), dict):
            item = item["kwargs"]  # LangChain's serialized messages
        if not isinstance(item, dict):
            continue
        speaker, source = role_of(item), item.get("source")
        if speaker is None and isinstance(source, str):  # AutoGen's speaker
            speaker = ROLES.get(source, "assistant")
        parts = Parts()
        parts.add(item.get("content"))
        parts.add(item.get("parts"))
        if speaker == role and parts.text.strip():
            yield parts.text
