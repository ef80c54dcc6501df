"""Find gold answers and verdicts inside a run: withhold them, or report visible ones.

In an input, an answer cannot be the system's, so every name of gold or a verdict is withheld. In an
output it can, so there are three kinds of names:

- ONLY_GOLD names are always gold or a verdict: withheld at any depth.
- EVERYDAY words are gold or a verdict next to an answer at the top level of the output ({"answer":
  ..., "expected": ..., "score": ...}), and are withheld there. Elsewhere they may be the answer
  itself (of a classifier or a test generator), or cite a source: they stay and are reported.
- DOUBTFUL words are as often part of an answer as gold: they stay, and are reported next to an
  answer. A `solution` is withheld in a log, which has an answer and also the problem or a name that
  is always gold.

In messages, nothing is withheld, because they are the work; keys of objects there are reported.
Texts are left to `leaks`, except an output that is a log in JSON: an object with an answer and a
name that is always gold, or with problem and `solution`.

A program that evaluates an agent also traces its own data rows: as attributes, as arguments and
results of wrappers, as JSON, as JSON inside a text, or in Python's notation. So the texts of spans
are searched for the names, quoted as keys, and the value after a name is replaced by MARK. Text
written by a model (replies, arguments of tools) is the work, and stays. Text from before the first
model call, or from an evaluator, cannot be the system's: objects there are treated like the input
of a run, those of other steps like the output of a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.assignment import Tree, value_in
from agenteval.readers.fields import (
    INPUT,
    OUTPUT,
    REFERENCE,
    SUCCESS,
    VERDICT,
    Context,
    json_text,
    snake,
    words,
)
from agenteval.readers.strict_json import json_or_none
from agenteval.records import Message, Run, Span
from agenteval.records.run import SpanEvent

MARK = "[withheld]"
# Keys of a run's metadata: withheld values by path; paths of visible keys.
WITHHELD = "withheld"
LEFT_VISIBLE = "gold_left_visible"
# `leaks` finds these in any text if quoted and with a value, so they are not reported twice.
VERDICT_NAMES = ("is_correct", "check_result")
GOLD_NAMES = words("""
    correct_ans correct_answer ground_truth gold_answer gold_label expected_answer reference_answer
    target_answer answer_key
""")
_IN_TEXT = frozenset({*VERDICT_NAMES, *GOLD_NAMES})
_ANSWERS = frozenset({*OUTPUT, "text", "content", "messages"})
_EVERYDAY_GOLD = frozenset({"expected", "gold"})
EVERYDAY = _EVERYDAY_GOLD | {
    *words("reference success is_success correct passed pass verdict grade grades score scores"),
    "reward",
}
DOUBTFUL = frozenset(
    words("target ideal solution label resolved evaluation rubric metrics assertions")
)
# Names in rows of public data sets (such as GAIA and SWE-bench) and files derived from them
_OF_A_SET = {
    *words("annotator_metadata test_patch fail_to_pass pass_to_pass hints_text"),
    *(
        f"{word}_{noun}"
        for word in words("true gold golden correct expected reference oracle")
        for noun in words(
            "answer answers output outputs response label labels solution solutions patch sql"
        )
    ),
}
ONLY_GOLD = (
    frozenset({"is_correct", "check_result", "grading_result", *REFERENCE, *_OF_A_SET})
    - EVERYDAY
    - DOUBTFUL
)
# Gold if a name of ONLY_GOLD is in the same row
BESIDE_GOLD = frozenset({"patch", "hint", "hints", "solution"})
_OF_A_LOG = ONLY_GOLD | frozenset(INPUT)
_VERDICTS = frozenset({*SUCCESS, *VERDICT})
GOLD_IN_INPUT = _VERDICTS | {*REFERENCE, *_OF_A_SET, "answer", "answers"}

# A quoted key with its colon, or a field with an equals sign, as in Python's repr. A search must
# not begin inside a run of backslashes, which would take quadratic time.
_KEY = re.compile(r"(?<!\\)(?P<quote>\\*[\"'])(?P<name>[A-Za-z][\w -]{2,40})(?P=quote)\s*:\s*")
_EQUALS = re.compile(r"=(?=\\*[\"'\[{(\d])")
_FIELD = re.compile(r"(?<![\w.])[A-Za-z]\w{2,40}\Z")
_QUOTE = re.compile(r"\\*[\"']")
_TOKEN = re.compile(r"(?<!\\)(\\*)([\"'])|[{}()\[\]]")
_UNQUOTED = re.compile(r"<[^<>]*>|[^\s,}\])\\\"']*")
_AFTER_STRING = re.compile(r"(?:\s|\\+[nrt])*(?:[,:}\])]|$)")
# Includes the placeholders of a reply format in a prompt
_NO_VALUE = re.compile(r"|null|None|\[\s*\]|\{\s*\}|\[withheld\]|<[^<>]*>|\.{3}|…")

_Rule = Callable[[Any, str], Any]  # a method of GoldFilter: value and path


def is_verdict(key: str) -> bool:
    """Return whether the name denotes a verdict; otherwise it denotes a gold answer."""
    return snake(key) in _VERDICTS


def _has_answer(value: dict[str, Any]) -> bool:
    return any(snake(key) in _ANSWERS for key in value)


def without_gold(run: Run) -> Run:
    """Return the run with gold withheld from its spans, and kept in its metadata."""
    gold = GoldFilter()
    spans = gold.clean_spans(run.spans)
    if not gold.withheld:
        return run
    before = run.metadata.get(WITHHELD)
    withheld = {**before, **gold.withheld} if isinstance(before, dict) else gold.withheld
    metadata = {**run.metadata, WITHHELD: withheld}
    return run.model_copy(update={"spans": tuple(spans), "metadata": metadata})


def withheld_from(run: Run) -> tuple[str, ...]:
    """Return the paths of values withheld from the spans of a run."""
    withheld = run.metadata.get(WITHHELD)
    paths = withheld if isinstance(withheld, dict) else ()
    return tuple(path for path in paths if path.startswith("spans."))


def note_withheld(paths: Collection[str], context: Context) -> None:
    """Warn about values withheld from spans, by name."""
    if paths:
        names = ", ".join(sorted({path.rpartition(".")[2] for path in paths}))
        context.notes.add(f"gold keys withheld from spans: {names}", context.place)


@dataclass
class GoldFilter:
    """Removes gold and verdicts from values, texts and spans, and collects them by path.

    `visible` has the distinct paths of keys that may be gold or a verdict but stay.
    """

    withheld: dict[str, Any] = field(default_factory=dict)
    visible: dict[str, None] = field(default_factory=dict)  # an ordered set
    _messages: dict[int, Message] = field(default_factory=dict)  # shared by spans, so cleaned once

    def find_visible(self, value: Any, path: str, *, of_system: bool = True) -> None:
        """Collect the keys in `value` that may be gold or a verdict; "[]" is any position.

        Without `of_system` (from a tool or a user), a `success` or `score` is a result, so only
        names of gold count.
        """
        stack = [(value, path)]
        while stack:
            item, at = stack.pop()
            if isinstance(item, list):
                stack.extend((child, f"{at}[]") for child in reversed(item))
            elif isinstance(item, dict):
                names = ONLY_GOLD | (EVERYDAY if of_system else _EVERYDAY_GOLD)
                names |= DOUBTFUL if of_system and _has_answer(item) else frozenset()
                for key in item:
                    if snake(key) in names and key.lower() not in _IN_TEXT:
                        self.visible[f"{at}.{key}"] = None
                stack.extend((child, f"{at}.{key}") for key, child in reversed(item.items()))

    def clean_input(self, value: Any, path: str) -> Any:
        """Return `value` without gold and verdicts at any depth."""
        return self._clean(value, GOLD_IN_INPUT, frozenset(), path)

    def clean_output(self, value: Any, path: str) -> Any:
        """Return `value` without values that are certainly gold or a verdict (see the module). A
        text is unchanged unless it is a log in JSON."""
        if not isinstance(value, str):
            return self._clean(value, ONLY_GOLD, EVERYDAY, path)
        log = value_in(value)
        if not isinstance(log, dict) or not _has_answer(log):
            return value
        before = len(self.withheld)
        clean = self._clean(log, ONLY_GOLD, frozenset(), path)
        return json_text(clean) if len(self.withheld) > before else value

    def _clean(self, value: Any, gold: frozenset[str], at_top: frozenset[str], path: str) -> Any:
        """Remove `gold`, and in a top-level object with an answer also `at_top`."""
        if isinstance(value, list):
            return [self._clean(v, gold, at_top, f"{path}[{i}]") for i, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        here = gold
        if _has_answer(value):
            in_log = any(snake(key) in _OF_A_LOG for key in value)
            here = gold | at_top | (frozenset({"solution"}) if in_log else frozenset())
        elif gold is GOLD_IN_INPUT and any(snake(key) in ONLY_GOLD for key in value):
            here = gold | BESIDE_GOLD
        clean: dict[str, Any] = {}
        for key, item in value.items():
            if snake(key) in here:
                self.withheld[f"{path}.{key}"] = item
            else:
                clean[key] = self._clean(item, gold, frozenset(), f"{path}.{key}")
        return clean

    def clean_spans(self, spans: Sequence[Span]) -> list[Span]:
        """Return spans (in trace order) without gold.

        Paths of withheld values look like `spans.ID.output.true_answer`.
        """
        working = (i for i, s in enumerate(spans) if s.kind in ("llm", "agent"))
        first = next(working, len(spans))
        begun = {s.id for s in spans[: first + 1] if s.kind not in ("llm", "tool")}
        ended = set[str]()  # spans that ended before the first call of a model or agent
        if first < len(spans):
            ended = begun - {s.id for s in Tree(spans).above(spans[first])} - {spans[first].id}
        return [self._span(s, s.id in begun, s.id in ended) for s in spans]

    def _span(self, span: Span, early_input: bool, early_output: bool) -> Span:
        at = f"spans.{span.id}"
        rule: _Rule | None = self.clean_output if span.kind == "chain" else None
        if str(span.attributes.get("openinference.span.kind")).upper() == "EVALUATOR":
            rule = self.clean_input
        of_input = self.clean_input if early_input else rule
        of_output = self.clean_input if early_output else rule
        new: dict[str, Any] = {}
        if span.kind != "tool":
            new["input"] = self._text(span.input, of_input, f"{at}.input")
        if span.kind != "llm":
            new["output"] = self._text(span.output, of_output, f"{at}.output")
        new["status_message"] = self._text(span.status_message, None, f"{at}.status_message")
        new["messages"] = tuple(self._message(m, f"{at}.messages") for m in span.messages)
        new["attributes"] = self._attributes(span.attributes, of_output, f"{at}.attributes")
        new["events"] = tuple(self._event(e, f"{at}.events") for e in span.events)
        new = {k: v for k, v in new.items() if v != getattr(span, k)}
        return span.model_copy(update=new) if new else span

    def _message(self, message: Message, path: str) -> Message:
        if message.role == "assistant":
            return message
        if id(message) not in self._messages:
            content = self._text(message.content, None, path)
            same = content == message.content
            clean = message if same else message.model_copy(update={"content": content})
            self._messages[id(message)] = clean
        return self._messages[id(message)]

    def _event(self, event: SpanEvent, path: str) -> SpanEvent:
        clean = self._attributes(event.attributes, None, path)
        same = clean == event.attributes
        return event if same else event.model_copy(update={"attributes": clean})

    def _attributes(self, flat: dict[str, Any], rule: _Rule | None, path: str) -> dict[str, Any]:
        clean = dict(flat)
        for key, value in flat.items():
            if value in (None, "", MARK):
                continue
            if key.startswith("gen_ai.evaluation.") or any(
                snake(part) in ONLY_GOLD for part in key.split(".") if len(part) <= 40
            ):
                clean[key] = self._withhold(f"{path}.{key}", value)
            elif isinstance(value, str):
                clean[key] = self._text(value, rule, f"{path}.{key}")
            elif isinstance(value, (dict, list)):
                text = json.dumps(value, ensure_ascii=False)
                new = self._text(text, rule, f"{path}.{key}")
                if new != text:
                    decoded = json_or_none(new)  # None: a text in it was cut off inside gold
                    clean[key] = new if decoded is None else decoded
        return clean

    def _text(self, text: str, rule: _Rule | None, path: str) -> str:
        """Return the text with MARK in place of every value under a name of gold; if it is an
        object, `rule` is applied first."""
        if rule is not None and (value := value_in(text)) is not None:
            before = len(self.withheld)
            clean = rule(value, path)
            text = json_text(clean) if len(self.withheld) > before else text
        pieces, at = [], 0
        for key in _gold_keys(text):
            if key.start < at:  # inside a withheld value
                continue
            end = _end_of_value(text, key.end)
            value = text[key.end : end]
            quote = _QUOTE.match(value)
            inner = value[quote.end() : -quote.end()] if quote else value
            if _NO_VALUE.fullmatch(inner):
                continue
            mark = self._withhold(f"{path}.{key.name}", inner)
            delimiter = quote[0] if quote else key.quote
            pieces += [text[at : key.end], delimiter, mark, delimiter]
            at = end
        return "".join([*pieces, text[at:]])

    def _withhold(self, path: str, value: Any) -> str:
        head, _, name = path.rpartition(".")
        number = 1
        while self.withheld.setdefault(path, value) != value:
            number += 1
            path = f"{head}[{number}].{name}"
        return MARK


# ---- gold in texts -------------------------------------------------------------------------------


@dataclass(frozen=True, order=True, slots=True)
class _Key:
    """A key in a text: the start of its name and of its value, and its quotes."""

    start: int
    end: int
    name: str
    quote: str


def _gold_keys(text: str) -> list[_Key]:
    keys = [_Key(m.start(), m.end(), m["name"], m["quote"]) for m in _KEY.finditer(text)]
    keys.extend(_printed_fields(text))
    names = {snake(key.name) for key in keys}
    gold = ONLY_GOLD if ONLY_GOLD.isdisjoint(names) else ONLY_GOLD | BESIDE_GOLD
    return sorted(key for key in keys if snake(key.name) in gold)


def _printed_fields(text: str) -> Iterator[_Key]:
    for equals in _EQUALS.finditer(text):
        if name := _FIELD.search(text, max(0, equals.start() - 50), equals.start()):
            yield _Key(name.start(), equals.end(), name[0], "'")


def _end_of_value(text: str, at: int) -> int:
    """Return the end of the JSON or Python value that starts here, even inside quotes."""
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
    value = _UNQUOTED.match(text, at)
    return value.end() if value else at


def _end_of_string(text: str, at: int, slashes: int, quote: str) -> int:
    """Return the end of a string with this many backslashes before its opening quote.

    The text after a quote is checked as well, because Python's quotes inside JSON have fewer
    backslashes than their depth suggests. Without an end, returns the end of the text.
    """
    for match in re.compile(rf"(?<!\\)(\\*){quote}").finditer(text, at):
        if _closes(len(match[1]), slashes) and _AFTER_STRING.match(text, match.end()):
            return match.end()
    return len(text)


def _closes(behind: int, opened: int) -> bool:
    """Return whether a quote after `behind` backslashes closes a string opened with `opened`: each
    level of quoting doubles the backslashes and adds one before the quote."""
    if not opened:
        return behind % 2 == 0
    return behind % 2 == 1 and _closes((behind - 1) // 2, (opened - 1) // 2)
