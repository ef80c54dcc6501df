"""Read the replies of a trace judge: findings, with their quotes checked, and grades."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

from pydantic import JsonValue
from rapidfuzz import fuzz

from agenteval.errors import ReplyError
from agenteval.models.prompts import neutralise
from agenteval.models.reply import parse_reply
from agenteval.records import GRADES, Grade, Impact, Rejected, Run, Usage
from agenteval.traces.annotations import IMPACTS, OVERALL, to_number
from agenteval.traces.condense import Condensed
from agenteval.traces.spans import texts
from agenteval.traces.taxonomy import Leaf, Taxonomy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LocatorAnswer(Generic[T]):
    """A parsed reply. `gap` describes missing content; None if the reply is complete."""

    value: T
    gap: str | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen


# -- findings --------------------------------------------------------------------------------------

_LISTS = ("findings", "errors", "issues")
_SPAN = ("span", "location", "index", "span_index", "span_id")
# An index, or a copy of the heading around it: "S7 llm, characters 1 to 900 of 1200".
_INDEX = re.compile(
    r"\W*(?:span\s+)?(\w+)(?:\s+(?:agent|llm|tool|chain|user)\b.*)?\W*", re.I | re.S
)
_MAX_REJECTED = 600  # characters kept of a rejected entry
_PLACEHOLDER = "<index>"  # as in the prompt
_NEAR = 0.5  # factor on the confidence if the words occur in another span of the step


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """A finding that passed the checks; `near` if its words occur in another span of its step."""

    index: str
    category: str
    evidence: str
    description: str
    impact: Impact | None
    confidence: float | None
    near: bool = False


def reply_schema(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Return the JSON schema of a reply about these leaves."""
    finding = {
        "span": {"type": "string"},
        "evidence": {"type": "string"},
        "description": {"type": "string"},
        "category": {"type": "string", "enum": [leaf.name for leaf in leaves]},
        "impact": {"type": "string", "enum": list(IMPACTS)},
        "confidence": {"type": "number"},
    }
    findings = {"type": "array", "items": _object(finding)}
    return _object({"findings": findings, "summary": {"type": "string"}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(text: str) -> LocatorAnswer[tuple[list[Any], str]]:
    """Return the unchecked entries and the summary ("" for none) of a reply.

    Accepts {"findings": [...]} (also "errors", "issues"), a list of these objects, and a list of
    findings. Only an empty list means that there are no errors. Raises ReplyError without a list,
    and if the reply repeats the template of the prompt.
    """
    parsed = parse_reply(text, lambda value: _entries(value) is not None)
    items = _entries(parsed.value) or []
    if items and all(isinstance(i, dict) and _first(i, _SPAN) == _PLACEHOLDER for i in items):
        raise ReplyError("the reply repeats the form instead of filling it in")
    outer = parsed.value[0] if isinstance(parsed.value, list) and items else parsed.value
    summary = outer.get("summary") if isinstance(outer, dict) else None
    cut = "the reply was cut off; the rest is unknown"
    return LocatorAnswer((items, _text(summary)), cut if parsed.rung == "salvaged" else None)


def _entries(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    inner = [items for item in value if (items := _entries(item)) is not None]
    if value and len(inner) == len(value):
        return [item for items in inner for item in items]
    are_findings = all(_first(item, _SPAN) is not None for item in value)
    return value if value and are_findings else None


def check(
    item: Any, asked: Collection[str], taxonomy: Taxonomy, quotes: Quotes
) -> CheckedFinding | Rejected:
    """Return the finding in an entry, or why it is rejected. Nothing is guessed.

    The index must exist in the trace, the category must be a leaf in `asked` (or another spelling
    of one), and the quoted words must occur in the span. If they occur only elsewhere in its step,
    the finding is `near` and its confidence is halved, unless `quotes` has another rule.
    """

    def rejected(why: str) -> Rejected:
        return Rejected(why=why, said=abridged(item))

    if not isinstance(item, dict):
        return rejected("not an object")
    span, label = _first(item, _SPAN), item.get("category")
    match = _INDEX.fullmatch(span) if isinstance(span, str) else None
    index = match[1].upper() if match else ""
    if index not in quotes:
        return rejected(f"there is no span {span!r:.60}")
    leaf = _leaf_of(label, taxonomy)
    if leaf is None:
        return rejected(f"{label!r:.80} is not a category of the taxonomy")
    if leaf.name not in asked:
        return rejected(f"{leaf.name} was not requested")
    evidence = _first(item, ("evidence", "quote"))
    evidence = evidence.strip() if isinstance(evidence, str) else ""
    problem = quotes.problem(index, evidence)
    if problem is not None and not quotes.is_near(index, evidence):
        return rejected(problem)
    # Only 0 to 1: other values, such as 85, are ambiguous and count as unknown.
    number = to_number(item.get("confidence"))
    confidence = number if number is not None and 0 <= number <= 1 else None
    if confidence is not None and problem is not None:
        confidence *= _NEAR
    return CheckedFinding(
        index=index,
        category=leaf.name,
        evidence=evidence,
        description=_text(item.get("description")),
        impact=IMPACTS.get(_text(item.get("impact")).upper()),
        confidence=confidence,
        near=problem is not None,
    )


def _first(item: Mapping[Any, Any], names: Sequence[str]) -> Any:
    return next((item[n] for n in names if item.get(n) is not None), None)


def _leaf_of(label: Any, taxonomy: Taxonomy) -> Leaf | None:
    """Find the leaf from its name, a path ("Planning > Goal Deviation"), or a name with an
    explanation in brackets ("Tool-related (makes up a result)")."""
    if not isinstance(label, str):
        return None
    short = re.sub(r"[(\[].*", "", label, flags=re.DOTALL)
    names = (label, re.split(r"[>/:]", label)[-1], short, re.split(r"[>/:]", short)[-1])
    leaf = next(filter(None, map(taxonomy.find, names)), None)
    return leaf if leaf is not None and leaf.assigned else None


def _text(value: Any) -> str:
    return value.strip()[:2000] if isinstance(value, str) else ""


def abridged(value: JsonValue) -> JsonValue:
    """Return a short value unchanged, and of a long one the beginning of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text[:_MAX_REJECTED]}..." if len(text) > _MAX_REJECTED else value


# -- quotes ----------------------------------------------------------------------------------------

QuoteCheck = Literal["span", "step", "off"]
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt])?")
_SHOWN_CODE = re.compile(r"\[U\+[0-9A-F]{4,6}\]")  # how prompts show invisible characters
_NOISE = re.compile(r"[\s\"'`´‘’‚‛“”„‟«»‹›\u200b-\u200f\u2060\ufeff]+")
_ELLIPSIS = re.compile(r"\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MIN_QUOTE = 3  # characters, not counting white space and quote marks
_MIN_PIECE = 8  # characters of the longest piece of a quote with gaps, and of a whole quoted line
_SIMILARITY = 90  # minimum similarity (0 to 100) of words that differ only by slips
_CACHED = 64  # spans with a flattened text in the cache


def flat(text: str) -> str:
    """Remove differences caused by quoting: white space, quote marks, escapes, dashes, case."""
    text = _SHOWN_CODE.sub("", neutralise(text))  # a judge may quote the original or what it saw
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", text)
    if _SURROGATE.search(text):  # a pair of escapes may be one character: \\ud83e\\udd9c
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("–", "-").replace("—", "-")
    return _NOISE.sub("", text).casefold()


def quoted_in(quote: str, flat_text: str) -> str | None:
    """Return why a quote does not match a text (see `flat`), or None if it occurs in it.

    White space, quote marks, backslash escapes and case are ignored. An ellipsis marks omitted
    words: the pieces must occur in this order, and one of them must have eight characters. A quote
    of fewer than three characters does not count.
    """
    words = flat(quote)
    if len(_ELLIPSIS.sub("", words)) < _MIN_QUOTE:
        return "it does not quote the span"
    if words in flat_text:
        return None
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := flat(part))]
    if len(pieces) > 1 and max(map(len, pieces)) < _MIN_PIECE:
        return "the quoted pieces are too short to be located"
    at = 0
    for piece in pieces:
        position = flat_text.find(piece, at)
        if position < 0:
            return "the quoted words are not in the span"
        at = position + len(piece)
    return None


class Quotes:
    """The texts of a trace in which quoted words are searched.

    Quoted words count if they occur in the span as shown, or in its full reply and output, which
    may be shown elsewhere. One line of several is enough, and slips are allowed. With "step", they
    also count, with half the confidence, in the input of the span and in its step: the enclosing
    chain or tool and the spans in it. With "off", quotes are not checked.
    """

    def __init__(self, run: Run, condensed: Condensed, rule: QuoteCheck = "step") -> None:
        self.rule = rule
        self._ids = {piece.index: piece.span for piece in condensed.pieces}
        self._shown = {piece.span: piece.text for piece in condensed.pieces}
        self._spans = {span.id: span for span in reversed(run.spans)}
        self._children: defaultdict[str | None, list[str]] = defaultdict(list)
        for span in run.spans:
            self._children[span.parent_id].append(span.id)
        self._text = lru_cache(_CACHED)(self._flat_text)

    def __contains__(self, index: object) -> bool:
        return index in self._ids

    def problem(self, index: str, quote: str) -> str | None:
        """Return why a quote does not match a span, or None if it occurs in it."""
        return None if self.rule == "off" else _missing(quote, self._text(self._ids[index]))

    def is_near(self, index: str, quote: str) -> bool:
        """Return whether the rule accepts a quote from the input or step of the span."""
        if self.rule != "step":
            return False
        id = self._ids[index]
        span = self._spans.get(id)
        parent = self._spans.get((span.parent_id or "") if span else "")
        step = [id, *self._children.get(id, ())]
        if parent is not None and parent.parent_id is not None and parent.kind != "agent":
            step += [parent.id, *self._children[parent.id]]
        near = (self._text(i, everything=True) for i in dict.fromkeys(step))
        return any(_missing(quote, text) is None for text in near)

    def _flat_text(self, id: str, *, everything: bool = False) -> str:
        parts, span = [self._shown.get(id, "")], self._spans.get(id)
        if span and everything:
            parts += texts(span)
        elif span:
            parts += [span.output, *(message.content for message in span.reply)]
        return flat("\n".join(parts))


def _missing(quote: str, text: str) -> str | None:
    problem = quoted_in(quote, text)
    if problem is None:
        return None
    lines = [line for line in map(flat, quote.splitlines()) if len(line) >= _MIN_PIECE]
    if len(lines) > 1 and any(line in text for line in lines):
        return None
    words = flat(quote)
    long_enough = len(words) >= 2 * _MIN_PIECE
    slips = long_enough and fuzz.partial_ratio(words, text, score_cutoff=_SIMILARITY)
    return None if slips else problem


# -- grades ----------------------------------------------------------------------------------------

_UNFILLED = "<text>"  # as in the prompt: a small model may fill in only the number


def grades_schema() -> dict[str, Any]:
    """Return the JSON schema of the grades: a reason before each score, and the overall score."""
    grade = _object({"reason": {"type": "string"}, "score": {"type": "number"}})
    return _object({**dict.fromkeys(GRADES, grade), OVERALL: {"type": "number"}})


def read_grades(text: str) -> LocatorAnswer[dict[str, Grade]]:
    """Return a Grade for each name in GRADES and for "overall".

    A score that is missing or not between 1 and 5 becomes a Grade without a value, with the reason.
    If the reply does not state `overall`, it is the mean of the other grades (as in the annotations
    of TRAIL, arXiv 2505.08638); it has no value if it would be the only grade. The gap lists grades
    without a value. Raises ReplyError for a reply without grades.
    """
    parsed = parse_reply(text, lambda value: _members(value) is not None)
    members = _members(parsed.value) or {}
    grades = {name: _grade(members, name) for name in GRADES}
    stated = [grade.value for grade in grades.values() if grade.value is not None]
    if not stated:
        grades[OVERALL] = Grade(value=None, reason="no grade was given")
    elif _score(members.get(OVERALL)) is not None:
        grades[OVERALL] = _grade(members, OVERALL)
    else:
        reason = f"mean of the {len(stated)} grades given; not stated by the judge"
        grades[OVERALL] = Grade(value=math.fsum(stated) / len(stated), reason=reason)
    missing = [name for name, grade in grades.items() if grade.value is None]
    gap = f"no score from 1 to 5 for {', '.join(missing)}" if missing else None
    return LocatorAnswer(grades, gap)


def _members(value: Any) -> dict[str, Any] | None:
    """Find an object with at least one grade; it may be one level down or in a list."""
    for row in value if isinstance(value, list) else [value]:
        if not isinstance(row, dict):
            continue
        for holder in (row, *(v for v in row.values() if isinstance(v, dict | list))):
            inner = holder[0] if isinstance(holder, list) and holder else holder
            if isinstance(inner, dict) and any(_entry(inner, n) is not None for n in GRADES):
                return {**inner, **({OVERALL: row[OVERALL]} if OVERALL in row else {})}
    return None


def _entry(members: Mapping[str, Any], name: str) -> Any:
    """Return the entry of a grade: `name`, or `name_score` as in TRAIL's layout."""
    return _first(members, (name, f"{name}_score"))


def _score(entry: Any) -> Any:
    names = ("score", "value", "grade", "rating")
    return _first(entry, names) if isinstance(entry, dict) else entry


def _grade(members: Mapping[str, Any], name: str) -> Grade:
    entry = _entry(members, name)
    score, reason = _score(entry), members.get(f"{name}_reasoning")
    if isinstance(entry, dict):
        words = (entry.get(key) for key in ("reason", "reasoning", "explanation"))
        reason = next((text for text in words if isinstance(text, str)), None)
    reason, number = _text(reason), to_number(score)
    if reason == _UNFILLED:
        return Grade(value=None, reason="the reply repeats the form instead of a reason")
    if number is not None and 1 <= number <= 5:
        return Grade(value=number, reason=reason)
    why = "not given" if score is None else f"{score!r:.40} is not a score from 1 to 5"
    return Grade(value=None, reason=f"{why}. {reason}".strip())
