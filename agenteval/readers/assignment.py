"""What the agent of a trace was asked, what instructed it, and how it ended, each with its span.

The outermost span of a trace is often a wrapper of the program around the agent: what went into it
is settings, a row of a data set, or nothing. So the request is looked for where a convention says
that somebody asks: OpenInference and OpenTelemetry's GenAI both mark agents and model calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.readers.fields import INPUT, MESSAGES, OUTPUT, snake
from agenteval.readers.messages import ROLES, Parts, is_answer, role_of
from agenteval.readers.spans import json_or_none
from agenteval.records import Run, Span

_NOTHING = frozenset({"", "null", "<null>", "none", "{}", "[]", '""', "undefined"})
_REQUEST = ("task", "request", *INPUT)
_AROUND = ("kwargs", "args", "arguments", *INPUT)  # what may hold the request one level further in
_MOST_LITERAL = 1 << 20  # characters of a Python literal that is worth reading
_DEEPEST = 5


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of a trace and the id of the span it stands in; None where the run itself says it."""

    text: str = ""
    span: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an agent was asked, its instructions (system message), and its last answer.

    A text is "" where the trace does not tell it.
    """

    task: Passage = Passage()
    instructions: Passage = Passage()
    ending: Passage = Passage()


def assignment(run: Run) -> Assignment:
    """The assignment of a run; `input` and `output` count where they differ from what spans say.

    The task is the first request in time, in this order of trust: of an agent span its task
    argument or user message, else the text of a user span, else what a chain around the first model
    call was asked, else the first user message to a model, else whatever went into the outermost
    span. The instructions are the first system message to that agent. The ending is what that
    agent gave back, in the last of its turns where it has several, else the last words of its
    own model calls or its tool for final answers, else those of agents below it.
    """
    told = of_spans(run.spans)
    asked = next((m.content for m in run.messages if m.role == "user" and m.content), "")
    rules = next((m.content for m in run.messages if m.role == "system"), "")
    return Assignment(
        _preferred(run.input, told.task, asked),
        told.instructions if told.instructions.text else Passage(rules),
        _preferred(run.output, told.ending, ""),
    )


def _preferred(own: str, told: Passage, last: str) -> Passage:
    """What the run says, with its span where a span says the same; else what a span says."""
    if says_something(own) and own != told.text:
        return Passage(own)
    return told if told.text else Passage(last)


def of_spans(spans: Sequence[Span]) -> Assignment:
    """The assignment that the spans of a run tell (see `assignment`)."""
    timed = all(span.start is not None for span in spans)
    ordered = sorted(spans, key=lambda s: s.start or 0.0) if timed else list(spans)
    by_id = {span.id: span for span in ordered}
    asked = next(_requests(ordered), None)
    if asked is None:
        return Assignment()
    giver, text = asked
    owner = giver
    while owner.kind == "llm" and owner.parent_id in by_id:
        owner = by_id[owner.parent_id]
    if owner.kind == "llm":
        return Assignment(Passage(text, giver.id), _rules(ordered), _last_words(ordered))
    turns = list(_turns(owner, ordered))
    own = _below(turns[-1], ordered, agents=False)
    every = _below(turns[-1], ordered, agents=True)
    answer = answer_in(turns[-1].output)
    ending = Passage(answer, turns[-1].id) if answer else _last_words(own)
    return Assignment(
        Passage(text, giver.id),
        _rules([s for s in _below(owner, ordered, agents=True) if s.kind == "llm"] or ordered),
        ending if ending.text else _last_words(every),
    )


def _turns(owner: Span, ordered: Sequence[Span]) -> Iterator[Span]:
    """The span that was asked and those that went on for it: an agent called again by the same
    caller, and further outermost steps that gave something back."""
    for span in ordered:
        alike = (span.kind, span.parent_id) == (owner.kind, owner.parent_id)
        further = owner.kind == "chain" and owner.parent_id is None and answer_in(span.output)
        if span is owner or (alike and (span.name == owner.name or further)):
            yield span


def _requests(ordered: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    """Spans with what was asked in them, those to be trusted most first."""
    first = next((i for i, s in enumerate(ordered) if s.kind == "llm"), len(ordered))
    chains = [s for s in ordered[:first] if s.kind == "chain"]
    tries: list[tuple[Span, str]] = [(s, _asked(s)) for s in ordered if s.kind == "agent"]
    tries += [(s, s.input or s.output) for s in ordered if s.kind == "user"]
    tries += [(s, request_in(s.input, plain=s.parent_id is None)) for s in chains]
    tries += [(s, _asked(s)) for s in ordered if s.kind == "llm"]
    tries += [(s, s.input) for s in ordered if s.kind != "tool"]
    yield from ((span, text) for span, text in tries if says_something(text))


def _asked(span: Span) -> str:
    """What an agent or a model was asked: the first words of a user, a task, or its input."""
    users = (m.content for m in span.messages if m.role == "user" and m.content.strip())
    held = (v for k, v in span.attributes.items() if k.rpartition(".")[2] == "task")
    texts = (v for v in held if isinstance(v, str) and says_something(v))
    return next(users, "") or request_in(span.input) or next(texts, "")


def _rules(spans: Iterable[Span]) -> Passage:
    rules = (
        Passage(m.content, s.id)
        for s in spans for m in s.messages if m.role == "system" and m.content.strip()
    )  # fmt: skip
    return next(rules, Passage())


def _below(top: Span, ordered: Sequence[Span], *, agents: bool) -> list[Span]:
    """A span and all below it, in order; without `agents` not what lies below further agents."""
    children: dict[str | None, list[Span]] = {}
    for span in ordered:
        children.setdefault(span.parent_id, []).append(span)
    inside, stack = {top.id}, [top.id]
    while stack:
        for span in children.get(stack.pop(), ()):
            if span.id not in inside and (agents or span.kind != "agent"):
                inside.add(span.id)
                stack.append(span.id)
    return [span for span in ordered if span.id in inside]


def _last_words(spans: Sequence[Span]) -> Passage:
    """The last answer of a model, or the last result of a tool that is named for answers."""
    for span in reversed(spans):
        texts: list[str] = []
        if span.kind == "llm":
            texts = [m.content for m in reversed(span.reply)] or [answer_in(span.output)]
        elif span.kind == "tool" and snake(span.tool or span.name) in OUTPUT:
            texts = [answer_in(span.output)]
        for text in texts:
            if is_answer(text):
                return Passage(text, span.id)
    return Passage()


# ---- requests and answers inside of values ------------------------------------------------------


def says_something(text: str) -> bool:
    """Whether a text is more than one of the ways in which programs write that there is none."""
    return text.strip().lower() not in _NOTHING


def value_in(text: str) -> Any:
    """The object or list that a text is, as JSON or as Python writes it; None when it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value = json_or_none(text)
    if value is None and len(text) < _MOST_LITERAL:
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return value if isinstance(value, (dict, list)) else None


def request_in(text: str, *, plain: bool = True) -> str:
    """What is asked in the input of a span: a named argument, the first words of a user in a list
    of messages, or (if `plain`) a text that is no object. "" when nothing is."""
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
    """The answer in the output of a span: the last words of an assistant in a list of messages,
    the text of an object that holds nothing else, or the whole."""
    value = value_in(text)
    if isinstance(value, dict) and len(value) == 1 and snake(str(next(iter(value)))) in OUTPUT:
        value = next(iter(value.values()))
        if isinstance(value, str):
            return value if is_answer(value) else ""
    rows = value if isinstance(value, list) else next(
        (value[key] for key in MESSAGES if key in value), None
    ) if isinstance(value, dict) else None  # fmt: skip
    answers = [t for t in _texts(rows, "assistant") if is_answer(t)]
    whole = text if says_something(text) and is_answer(text) else ""
    return answers[-1] if answers else whole


def _texts(rows: Any, role: str) -> Iterator[str]:
    """The texts of one role in a list of messages, in any form in which programs write them."""
    for row in rows if isinstance(rows, list) else ():
        pair = isinstance(row, (list, tuple)) and len(row) == 2 and isinstance(row[0], str)
        item = {"role": row[0], "content": row[1]} if pair else row
        if isinstance(item, dict) and isinstance(item.get("kwargs"), dict):
            item = item["kwargs"]  # as LangChain serialises a message
        if not isinstance(item, dict):
            continue
        speaker, source = role_of(item), item.get("source")
        if speaker is None and isinstance(source, str):  # the speaker, in AutoGen
            speaker = ROLES.get(source, "assistant")
        parts = Parts()
        parts.add(item.get("content"))
        parts.add(item.get("parts"))
        text = "\n".join(filter(None, parts.texts))
        if speaker == role and text.strip():
            yield text
