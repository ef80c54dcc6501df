"""Gold answers inside the spans of a trace, withheld wherever they stand in it.

A program that evaluates an agent traces its own rows of data as well: as attributes, as arguments
and results of wrappers, as JSON, as JSON inside a text, or as Python prints it. So texts are
searched for the names, quoted as keys, and what follows a name is replaced by MARK; the rest of
the text stays as it is. What a model wrote (replies, arguments of tools) is the work, and stays.

What can be nothing but gold (`gold.ONLY_GOLD`) is withheld everywhere. What was there before any
model spoke cannot be the system's, nor what an evaluator says: of objects there every name of gold
or of a verdict is withheld, as in the input of a run. Other steps of the program are read as the
output of a run is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.assignment import Tree, value_in
from agenteval.readers.fields import Context, json_text, snake
from agenteval.readers.gold import (
    BESIDE_GOLD,
    ONLY_GOLD,
    withhold_from_input,
    withhold_from_output,
)
from agenteval.readers.spans import json_or_none
from agenteval.records import Message, Run, Span
from agenteval.records.run import SpanEvent

MARK = "[withheld]"
WITHHELD = "withheld"  # key of a run's metadata: what was withheld, by where it stood
# A quoted key with its colon; the equals sign of a field, as Python prints objects. No search may
# begin inside of a run of backslashes: it would take time in proportion to its square.
_KEY = re.compile(r"(?<!\\)(?P<quote>\\*[\"'])(?P<name>[A-Za-z][\w -]{2,40})(?P=quote)\s*:\s*")
_EQUALS = re.compile(r"=(?=\\*[\"'\[{(\d])")
_FIELD = re.compile(r"(?<![\w.])[A-Za-z]\w{2,40}\Z")
_QUOTE = re.compile(r"\\*[\"']")
_TOKEN = re.compile(r"(?<!\\)(\\*)([\"'])|[{}()\[\]]")
_BARE = re.compile(r"<[^<>]*>|[^\s,}\])\\\"']*")
_AFTER_STRING = re.compile(r"(?:\s|\\+[nrt])*(?:[,:}\])]|$)")
# Also the places to fill in of a form that a prompt asks for.
_NO_VALUE = re.compile(r"|null|None|\[\s*\]|\{\s*\}|\[withheld\]|<[^<>]*>|\.{3}|…")

_Rule = Callable[[Any, str, dict[str, Any]], Any]  # of `gold`: value, path and what is kept


def without_gold(run: Run) -> Run:
    """The run with gold withheld from its spans, and kept in its metadata as `withheld`."""
    kept: dict[str, Any] = {}
    spans = withhold_from_spans(run.spans, kept)
    if not kept:
        return run
    before = run.metadata.get(WITHHELD)
    metadata = {**run.metadata, WITHHELD: {**before, **kept} if isinstance(before, dict) else kept}
    return run.model_copy(update={"spans": tuple(spans), "metadata": metadata})


def withheld_from(run: Run) -> tuple[str, ...]:
    """The paths of what was withheld from the spans of a run."""
    kept = run.metadata.get(WITHHELD)
    return tuple(p for p in kept if p.startswith("spans.")) if isinstance(kept, dict) else ()


def tell_withheld(paths: Collection[str], context: Context) -> None:
    """Warn of what was withheld, by name."""
    if paths:
        names = ", ".join(sorted({path.rpartition(".")[2] for path in paths}))
        context.notes.add(f"gold keys withheld from spans: {names}", context.place)


def withhold_from_spans(spans: Sequence[Span], kept: dict[str, Any]) -> list[Span]:
    """The spans, in the order of their trace, without gold; what is withheld goes into `kept` by
    path: `spans.ID.output.true_answer`."""
    inputs, outputs = _before_models(spans)
    cleaner = _Cleaner(kept)
    return [cleaner.span(s, s.id in inputs, s.id in outputs) for s in spans]


def _before_models(spans: Sequence[Span]) -> tuple[set[str], set[str]]:
    """Ids of the spans that stand before the first model or agent, itself and those around it
    included; and of those that had ended then."""
    working = (i for i, s in enumerate(spans) if s.kind in ("llm", "agent"))
    first = next(working, len(spans))
    begun = {s.id for s in spans[: first + 1] if s.kind not in ("llm", "tool")}
    if first == len(spans):
        return begun, set()
    around = {s.id for s in Tree(spans).above(spans[first])}
    return begun, begun - around - {spans[first].id}


@dataclass
class _Cleaner:
    """Withholds gold from texts and values; messages that many spans share are cleaned once."""

    kept: dict[str, Any]
    _messages: dict[int, Message] = field(default_factory=dict)

    def span(self, span: Span, early_input: bool, early_output: bool) -> Span:
        at = f"spans.{span.id}"
        later: _Rule | None = withhold_from_output if span.kind == "chain" else None
        if str(span.attributes.get("openinference.span.kind")).upper() == "EVALUATOR":
            later = withhold_from_input
        given = withhold_from_input if early_input else later
        made = withhold_from_input if early_output else later
        changed: dict[str, Any] = {
            "input": span.input
            if span.kind == "tool"
            else self.text(span.input, given, f"{at}.input"),
            "output": span.output
            if span.kind == "llm"
            else self.text(span.output, made, f"{at}.output"),
            "status_message": self.text(span.status_message, None, f"{at}.status_message"),
            "messages": tuple(self.message(m, f"{at}.messages") for m in span.messages),
            "attributes": self.attributes(span.attributes, made, f"{at}.attributes"),
            "events": tuple(self.event(e, f"{at}.events") for e in span.events),
        }
        changed = {k: v for k, v in changed.items() if v != getattr(span, k)}
        return span.model_copy(update=changed) if changed else span

    def message(self, message: Message, path: str) -> Message:
        if message.role == "assistant":
            return message
        if id(message) not in self._messages:
            content = self.text(message.content, None, path)
            same = content == message.content
            clean = message if same else message.model_copy(update={"content": content})
            self._messages[id(message)] = clean
        return self._messages[id(message)]

    def event(self, event: SpanEvent, path: str) -> SpanEvent:
        clean = self.attributes(event.attributes, None, path)
        same = clean == event.attributes
        return event if same else event.model_copy(update={"attributes": clean})

    def attributes(self, flat: dict[str, Any], rule: _Rule | None, path: str) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, value in flat.items():
            if value in (None, "", MARK):
                clean[key] = value
            elif key.startswith("gen_ai.evaluation.") or any(
                snake(part) in ONLY_GOLD for part in key.split(".") if len(part) <= 40
            ):
                clean[key] = self._keep(f"{path}.{key}", value)
            elif isinstance(value, str):
                clean[key] = self.text(value, rule, f"{path}.{key}")
            elif isinstance(value, (dict, list)):
                whole = json.dumps(value, ensure_ascii=False)
                text = self.text(whole, rule, f"{path}.{key}")
                made = value if text == whole else json_or_none(text)
                clean[key] = text if made is None else made  # a text in it broke off inside of gold
            else:
                clean[key] = value
        return clean

    def text(self, text: str, rule: _Rule | None, path: str) -> str:
        """The text with MARK in the place of every value that stands under a name of gold; of an
        object first without what `rule` withholds."""
        value = value_in(text) if rule else None
        if rule is not None and value is not None:
            before = len(self.kept)
            clean = rule(value, path, self.kept)
            text = json_text(clean) if len(self.kept) > before else text
        pieces, at = [], 0
        for start, begin, name, mark_quote in _named(text):
            if start < at:  # inside of what went
                continue
            end = _end_of_value(text, begin)
            value = text[begin:end]
            quote = _QUOTE.match(value)
            bare = value[quote.end() : -quote.end()] if quote else value
            if _NO_VALUE.fullmatch(bare):
                continue
            mark = self._keep(f"{path}.{name}", bare)
            around = quote[0] if quote else mark_quote
            pieces += [text[at:begin], around, mark, around]
            at = end
        return "".join([*pieces, text[at:]])

    def _keep(self, path: str, value: Any) -> str:
        head, _, name = path.rpartition(".")
        number = 1
        while self.kept.setdefault(path, value) != value:
            number += 1
            path = f"{head}[{number}].{name}"
        return MARK


def _named(text: str) -> list[tuple[int, int, str, str]]:
    """Names of gold in a text, in order: where one begins, where its value does, the name, and the
    quotes around it."""
    named = [(m.start(), m.end(), m["name"], m["quote"]) for m in _KEY.finditer(text)]
    for match in _EQUALS.finditer(text):
        field_name = _FIELD.search(text, max(0, match.start() - 50), match.start())
        if field_name:
            named.append((field_name.start(), match.end(), field_name[0], "'"))
    names = [snake(name) for _, _, name, _ in named]
    beside = BESIDE_GOLD if not ONLY_GOLD.isdisjoint(names) else frozenset()
    gold = (n for n, name in zip(named, names, strict=True) if name in ONLY_GOLD or name in beside)
    return sorted(gold)


def _end_of_value(text: str, at: int) -> int:
    """Where the JSON or Python value that begins here ends, also within further quotes."""
    depth = 0
    while token := _TOKEN.match(text, at) if not depth else _TOKEN.search(text, at):
        if token[2]:
            at = _end_of_string(text, token.end(), len(token[1]), token[2])
        else:
            depth += 1 if token[0] in "{[(" else -1
            at = token.end()
        if depth <= 0:
            return at
    if depth:
        return len(text)
    bare = _BARE.match(text, at)
    return bare.end() if bare else at


def _end_of_string(text: str, at: int, slashes: int, quote: str) -> int:
    """Behind the quote that ends a string whose opening quote has so many backslashes.

    What may follow a string is looked at as well, since quotes of Python inside of JSON have fewer
    backslashes than their depth tells. The end of the text where none is found.
    """
    for match in re.compile(rf"(?<!\\)(\\*){quote}").finditer(text, at):
        if _closes(len(match[1]), slashes) and _AFTER_STRING.match(text, match.end()):
            return match.end()
    return len(text)


def _closes(behind: int, opened: int) -> bool:
    """Whether a quote after `behind` backslashes ends a string opened with `opened` of them: every
    level of quoting doubles the backslashes and puts one before the quote."""
    if not opened:
        return behind % 2 == 0
    return behind % 2 == 1 and _closes((behind - 1) // 2, (opened - 1) // 2)
