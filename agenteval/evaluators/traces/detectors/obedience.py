"""Replies that lack what their own prompt demands in so many words, or ended at a token limit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from pydantic import JsonValue

from agenteval.evaluators.traces.detectors.conversations import Conversations
from agenteval.evaluators.traces.detectors.demands import Demand, demands
from agenteval.evaluators.traces.detectors.registry import Hit, TraceView, quote, rule
from agenteval.records import Message, Span

_MARGIN = 1.1  # words and characters are counted in more than one way
_CALL_IN_WORDS = re.compile(r"^[ \t*]{0,9}Action[ \t*]{0,9}:", re.M)
_CUT = {"length", "max_tokens", "max_output_tokens", "incomplete", "model_length"}
_WITHHELD = {"content_filter", "safety", "refusal"}
_STOPS = ("stop", "stop_sequences", "gen_ai.request.stop_sequences")
_PARAMETERS = ("llm.invocation_parameters", "gen_ai.request.parameters")


def cut_off(span: Span) -> bool:
    """Whether the provider says that the reply ended at a limit of tokens."""
    return (span.finish or "").lower() in _CUT


Asked = tuple[Span, str, list[Demand]]


def _replies(view: TraceView) -> list[Asked]:
    """Replies in plain text that were ended by the model, with the demands that hold for them."""
    replies: list[Asked] = []
    read = lru_cache(maxsize=4096)(demands)
    finals = {c.requests[-1].id for c in view.once(Conversations).all if c.requests}
    for span in view.llms:
        if not span.reply or any(m.tool_calls for m in span.reply) or cut_off(span):
            continue
        text = "\n".join(m.content for m in span.reply)
        if span.id not in finals and _CALL_IN_WORDS.search(text):
            continue  # a step of ReAct is a call, as those that stand in tool_calls are
        if not text.strip() or (span.finish or "").lower() in _WITHHELD:
            continue
        asked = [d for m in prompts(span.messages) for d in read(m.content)]
        if asked or _formatted(span):
            holding = [d for d in asked if d.scope != "final" or span.id in finals]
            replies.append((span, text, holding))
    return replies


def prompts(messages: tuple[Message, ...]) -> list[Message]:
    """The messages that say what this reply must be: those of the system that open the
    conversation, and the user's last ones, looking back over calls and their results."""
    found = []
    for message in messages:
        if message.role != "system":
            break
        found.append(message)
    first, last = len(found), []
    for message in reversed(messages[first:]):
        if message.role == "user":
            last.append(message)
        elif last or (message.role == "assistant" and not message.tool_calls):
            break
    return found + last[::-1]


def _invocation(span: Span) -> dict[str, JsonValue]:
    """Parameters of a request, from its attributes or from the request itself as its input."""
    found: dict[str, JsonValue] = {}
    texts: list[JsonValue] = [span.attributes.get(key) for key in _PARAMETERS]
    if '"stop' in span.input or '"response_format' in span.input:
        texts.append(span.input)
    for text in texts:
        value: JsonValue = text
        if isinstance(text, str):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
        if isinstance(value, dict):
            found = {**value, **found}
    for key in _STOPS:
        if key in span.attributes:
            found[key] = span.attributes[key]
    return found


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if not c.isspace() and c not in "*`_#")


@rule(
    "end-marker",
    "Instruction Non-compliance",
    "LOW",
    "The system message, or the user's last one, demands without condition that the reply end with "
    "a literal marker, and the marker stands nowhere in it; markers that the request gives as stop "
    "sequences, replies with calls and replies cut at a limit are not covered.",
    confidence=0.95,
)
def end_marker(view: TraceView) -> Iterator[Hit]:
    """The first reply without each marker."""
    seen: set[str] = set()
    for span, text, asked in view.once(_replies):
        plain = _plain(text)
        for demand in asked:
            if demand.kind != "marker" or demand.marker in seen or _plain(demand.marker) in plain:
                continue
            if demand.scope == "code" and "```" not in text and "<code>" not in text:
                continue
            if _is_stop(span, demand.marker):
                continue
            seen.add(demand.marker)
            yield Hit(span, _end(span, text), f"the reply lacks {demand.marker!r}, as demanded")


def _is_stop(span: Span, marker: str) -> bool:
    given = _invocation(span)
    stops = [given.get(key) for key in _STOPS]
    return any(marker.strip() in json.dumps(stop, ensure_ascii=False) for stop in stops if stop)


def _end(span: Span, text: str) -> str:
    """The last line of a reply, at most 300 characters."""
    line = next((x for x in reversed(text.split("\n")) if x.strip()), "")
    return quote(span, line[-300:], line)


@rule(
    "length-limit",
    "Instruction Non-compliance",
    "LOW",
    "The system message, or the user's last one, bounds the whole reply by a number of words or "
    "characters, and the reply exceeds it by more than a tenth; limits on parts of a reply, in "
    "sentences or in lines are not covered.",
    confidence=0.95,
)
def length_limit(view: TraceView) -> Iterator[Hit]:
    """The first reply beyond each limit."""
    seen: set[str] = set()
    for span, text, asked in view.once(_replies):
        for demand in asked:
            if demand.kind not in ("words", "characters") or demand.words in seen:
                continue
            words = demand.kind == "words"
            length = _words(text) if words else len(text.strip())
            if demand.most and length > demand.most * _MARGIN:
                seen.add(demand.words)
                yield Hit(
                    span,
                    _end(span, text),
                    f"the reply has {length} {demand.kind}, at most {demand.most} were allowed",
                )


@rule(
    "no-json",
    "Formatting Errors",
    "MEDIUM",
    "The request's response format is JSON, or a prompt demands nothing but JSON, and the reply "
    "holds no JSON value at all; JSON among other words, or of the wrong shape, is not covered.",
)
def no_json(view: TraceView) -> Iterator[Hit]:
    """The first such reply of the trace."""
    for span, text, asked in view.once(_replies):
        wanted = any(d.kind == "json" for d in asked) or _formatted(span)
        if wanted and not holds_json(text):
            yield Hit(span, quote(span, text), "nothing but JSON was asked for, the reply has none")
            return


def _words(text: str) -> int:
    return sum(any(c.isalnum() for c in token) for token in text.split())


def _formatted(span: Span) -> bool:
    given = _invocation(span).get("response_format")
    return isinstance(given, dict) and given.get("type") in ("json_object", "json_schema")


def holds_json(text: str) -> bool:
    """Whether a text is a JSON value, or holds an object or array, fenced or among words."""
    openings = islice((i for i, c in enumerate(text) if c in "{["), 200)
    return _is_json(text.strip()) or any(_is_json(text, start) for start in openings)


def _is_json(text: str, start: int | None = None) -> bool:
    """Whether the text is JSON, or with `start` whether a value begins there."""
    try:
        json.loads(text) if start is None else json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return True


def _below_limit(span: Span) -> bool:
    """Whether fewer tokens came than were asked for at most."""
    used = None if span.usage is None else span.usage.completion_tokens
    return span.limit is not None and used is not None and used < span.limit


def _ending(span: Span) -> str:
    text = "\n".join(m.content for m in span.reply).strip()
    return quote(span, text[-200:], text.rpartition("\n")[2][-200:], span.finish or "")


@rule(
    "context-full",
    "Context Handling Failures",
    "HIGH",
    "The provider says that the context window was exceeded, or the reply was cut for length "
    "before it had the tokens that the request allowed; a cut without both numbers is not covered.",
)
def context_full(view: TraceView) -> Iterator[Hit]:
    """The first such reply of the trace."""
    for span in view.llms:
        full = "context_window" in (span.finish or "") or "context_length" in (span.finish or "")
        if full or (cut_off(span) and _below_limit(span)):
            yield Hit(span, _ending(span), "the context window was full before the reply ended")
            return


@rule(
    "cut-answer",
    "Formatting Errors",
    "MEDIUM",
    "The last reply of a conversation was cut at the limit of tokens, so that what came out is "
    "incomplete; that it was cut is certain, that it did harm and the category are not.",
    confidence=0.6,
)
def cut_answer(view: TraceView) -> Iterator[Hit]:
    """The last reply of each conversation, if it was cut."""
    for conversation in view.once(Conversations).all:
        if conversation.requests:
            span = conversation.requests[-1]
            if cut_off(span) and not _below_limit(span):
                yield Hit(span, _ending(span), "the last reply was cut at the limit of tokens")
