"""One question to the judge of a trace, with one repair round; and what its reply says: findings,
checked against the spans it read, and the grades of the run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from pydantic import JsonValue

from agenteval.errors import AgentevalError, BadRequest, Filtered, ReplyError
from agenteval.evaluators.traces.locator_rows import quoted_in
from agenteval.evaluators.traces.taxonomy import Leaf, Taxonomy
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Reply, Request
from agenteval.records import GRADES, Grade, Impact, Rejected, Usage

T = TypeVar("T")


class Unreadable(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw


class Meter:
    """A client whose requests are counted. `calls` counts questions, cached ones as well;
    `usage` what was sent and paid for. Every request is asked as this `attempt`: no reply to an
    earlier one answers it from the cache."""

    def __init__(self, client: Client, attempt: int = 0) -> None:
        self.client = client
        self.attempt = attempt
        self.calls = 0
        self.usage = Usage()

    async def complete(self, request: Request) -> Reply:
        """The client's reply. Raises what it raises, and Filtered for a refusal."""
        self.calls += 1
        try:
            reply = await self.client.complete(
                replace(request, attempt=request.attempt + self.attempt)
            )
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        self.usage += Usage() if reply.cached else reply.usage
        if reply.refusal or reply.finish == "content_filter":
            raise Filtered(reply.refusal or "withheld by the endpoint's content filter")
        return reply


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A reply that was understood. `gap` says what is missing of it, None for a whole one."""

    value: T
    gap: str | None = None


async def ask(
    meter: Meter,
    request: Request,
    read: Callable[[str], Read[T]],
    repair: Callable[[str, str], Request] | None,
) -> Read[T]:
    """What the reply says, or its repair where the reply is unreadable or has a gap.

    `repair(problem, text)` makes the second request. A first reply with a gap stands when its
    repair is no better. Raises Unreadable, Filtered, and what the client raises; a repair that an
    endpoint refuses to take (a full context, a recording) counts as not tried.
    """
    first = await meter.complete(request)
    kept, problem, raw = _attempt(first, read)
    if repair is None or (kept is not None and kept.gap is None):
        return _settled(kept, problem, raw)
    again = replace(repair(problem, first.text), role=f"{request.role}:repair")
    try:
        second = await meter.complete(again)
    except BadRequest:
        return _settled(kept, problem, raw)
    except AgentevalError:
        if kept is not None:  # what could be read is not lost with its repair
            return kept
        raise
    better, problem, raw = _attempt(second, read)
    if better is not None and (kept is None or better.gap is None):
        return better
    return _settled(kept, problem, raw)


def _attempt(reply: Reply, read: Callable[[str], Read[T]]) -> tuple[Read[T] | None, str, str]:
    cut = " (cut off by the length limit)" if reply.finish == "length" else ""
    try:
        value = read(reply.text)
    except ReplyError as error:
        return None, f"{error}{cut}", reply.text
    return value, f"{value.gap}{cut}" if value.gap else "", reply.text


def _settled(kept: Read[T] | None, problem: str, raw: str) -> Read[T]:
    if kept is None:
        raise Unreadable(problem, raw)
    return kept


_LISTS = ("findings", "errors", "issues")
_SPAN = ("span", "location", "index", "span_index", "span_id")
_QUOTE = ("evidence", "quote")
_IMPACTS: tuple[Impact, ...] = ("HIGH", "MEDIUM", "LOW")
# An index, or the heading it stands in, copied: "S7 llm, characters 1 to 900 of 1200".
_INDEX = re.compile(
    r"\W*(?:span\s+)?(\w+)(?:\s+(?:agent|llm|tool|chain|user)\b.*)?\W*", re.I | re.S
)
_KEPT_CHARACTERS = 600  # of something rejected
_PLACEHOLDER = "<index>"  # as in the prompt
_CUT_REPLY = "the reply broke off: what came after is not known"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply in form: what it lists, not yet checked, and its summary."""

    items: tuple[Any, ...]
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A finding that passed the checks. `verified` is False when its quote is not in the span."""

    index: str
    category: str
    evidence: str
    description: str
    impact: Impact | None
    confidence: float | None
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a reply is checked against.

    `shown` are the indices that the prompt showed, `asked` the names of the leaves it asked for;
    `flat_text` gives the flattened text of a span of the trace by index, None if there is none.
    """

    shown: frozenset[str]
    asked: Mapping[str, Leaf]
    taxonomy: Taxonomy
    flat_text: Callable[[str], str | None]
    unverified: Literal["reject", "keep"] = "reject"


def reply_schema(leaves: Sequence[Leaf], *, summary: bool) -> dict[str, Any]:
    """JSON schema of a reply on these leaves."""
    finding = {
        "span": {"type": "string"},
        "evidence": {"type": "string"},
        "description": {"type": "string"},
        "category": {"type": "string", "enum": [leaf.name for leaf in leaves]},
        "impact": {"type": "string", "enum": list(_IMPACTS)},
        "confidence": {"type": "number"},
    }
    whole: dict[str, Any] = {"findings": {"type": "array", "items": _object(finding)}}
    if summary:
        whole["summary"] = {"type": "string"}
    return _object(whole)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(text: str) -> Read[Spoken]:
    """The findings and the summary in a reply.

    Read are {"findings": [...]} (also "errors", "issues") and a list of such objects. No list is
    no answer: only an empty list says that there are no errors. Nor is the form of the prompt,
    repeated. Raises ReplyError.
    """
    parsed = parse_reply(text, lambda value: _listed(value) is not None)
    items = _listed(parsed.value)
    assert items is not None
    if items and all(isinstance(i, dict) and _first(i, _SPAN) == _PLACEHOLDER for i in items):
        raise ReplyError("the reply repeats the form instead of filling it in")
    summary = parsed.value.get("summary") if isinstance(parsed.value, dict) else None
    spoken = Spoken(tuple(items), summary.strip() if isinstance(summary, str) else None)
    return Read(spoken, _CUT_REPLY if parsed.rung == "salvaged" else None)


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        found = [value[key] for key in _LISTS if isinstance(value.get(key), list)]
        return found[0] if found else None
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return value if all(_first(item, _SPAN) is not None for item in value) else None
    return None


def check(item: Any, grounds: Grounds) -> Named | Rejected:
    """The finding that an entry states, or why it is none. Nothing is guessed.

    The index must exist in the trace, the category must be a leaf that was asked for (or another
    spelling of one), and the quoted words must stand in the span.
    """
    if not isinstance(item, dict):
        return _rejected("not an object", item)
    index, text = _span_of(_first(item, _SPAN), grounds)
    if index is None or text is None:
        return _rejected(f"there is no span {_first(item, _SPAN)!r:.60}", item)
    said = item.get("category")
    leaf = _leaf_of(said, grounds.taxonomy)
    if leaf is None:
        return _rejected(f"{said!r:.80} is no kind of error in the taxonomy", item)
    if leaf.name not in grounds.asked:
        return _rejected(f"{leaf.name} was not asked for", item)
    evidence = _first(item, _QUOTE)
    evidence = evidence.strip() if isinstance(evidence, str) else ""
    wrong = quoted_in(evidence, text)
    if wrong is not None and (grounds.unverified == "reject" or index not in grounds.shown):
        return _rejected(wrong, item)
    confidence = _confidence(item.get("confidence"))
    if wrong is not None and confidence is not None:
        confidence /= 2
    return Named(
        index=index,
        category=leaf.name,
        evidence=evidence,
        description=_text(item.get("description")),
        impact=_impact(item.get("impact")),
        confidence=confidence,
        verified=wrong is None,
    )


def _first(item: dict[Any, Any], names: Sequence[str]) -> Any:
    return next((item[n] for n in names if item.get(n) is not None), None)


def _span_of(said: Any, grounds: Grounds) -> tuple[str | None, str | None]:
    """Index and flattened text of the span that is meant; (None, None) when there is none."""
    match = _INDEX.fullmatch(said) if isinstance(said, str) else None
    if match is None:
        return None, None
    index = match[1].upper()
    return index, grounds.flat_text(index)


def _leaf_of(said: Any, taxonomy: Taxonomy) -> Leaf | None:
    """The leaf named, alone or at the end of its path ("Planning > Goal Deviation")."""
    if not isinstance(said, str):
        return None
    leaf = taxonomy.find(said) or taxonomy.find(re.split(r"[>/:]", said)[-1])
    return leaf if leaf is not None and leaf.assigned else None


def _impact(said: Any) -> Impact | None:
    word = said.strip().upper() if isinstance(said, str) else ""
    return next((impact for impact in _IMPACTS if impact == word), None)


def _confidence(said: Any) -> float | None:
    """A number from 0 to 1; None for anything else, since 85 may mean many things."""
    number = to_number(said)
    return number if number is not None and 0 <= number <= 1 else None


def to_number(said: Any) -> float | None:
    """A finite number, also when it is written as text; None for anything else."""
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    try:
        number = float(said)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(said: Any) -> str:
    return said.strip()[:2000] if isinstance(said, str) else ""


def _rejected(why: str, said: Any) -> Rejected:
    return Rejected(why=why, said=kept(said))


def kept(said: Any) -> JsonValue:
    """What was said, as it is while it is short, else the beginning of its text."""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    if len(text) > _KEPT_CHARACTERS:
        return f"{text[:_KEPT_CHARACTERS]}..."
    value: JsonValue = said
    return value


OVERALL = "overall"
_UNFILLED = "<text>"  # as in the prompt: a small model fills in the number alone
WORST, BEST = 1.0, 5.0
_SCORE = ("score", "value", "grade", "rating")
_REASON = ("reason", "reasoning", "explanation")


def read_grades(text: str) -> Read[dict[str, Grade]]:
    """A Grade for each name in GRADES and for "overall".

    A score that is missing or off the scale of 1 to 5 is a Grade without value whose reason says
    so. `overall` is the mean of those given where the reply does not state it (the rule of the
    annotations of TRAIL, arXiv 2505.08638), and has no value where what it states is off the
    scale, or where it would stand alone. The gap names the grades without a value. Raises
    ReplyError when none is there.
    """
    parsed = parse_reply(text, lambda value: _members(value) is not None)
    members = _members(parsed.value) or {}
    grades = {name: _grade(members, name) for name in GRADES}
    said = _raw(members.get(OVERALL))
    known = any(grade.value is not None for grade in grades.values())
    grades[OVERALL] = _mean(grades) if said is None or not known else _grade(members, OVERALL)
    missing = [name for name, grade in grades.items() if grade.value is None]
    gap = f"no score from 1 to 5 for {', '.join(missing)}" if missing else None
    return Read(grades, gap)


def _members(value: Any) -> dict[str, Any] | None:
    """The object that holds at least one of the grades, also one level down or in a list."""
    rows = value if isinstance(value, list) else [value]
    for row in rows:
        if not isinstance(row, dict):
            continue
        for one in (row, *(v for v in row.values() if isinstance(v, dict | list))):
            inner = one[0] if isinstance(one, list) and one else one
            if isinstance(inner, dict) and any(_find(inner, name) is not None for name in GRADES):
                return {**inner, **({OVERALL: row[OVERALL]} if OVERALL in row else {})}
    return None


def _find(members: dict[str, Any], name: str) -> Any:
    """The entry of a grade: `name`, or `name_score` as in the layout of TRAIL."""
    found = members.get(name)
    return members.get(f"{name}_score") if found is None else found


def _raw(entry: Any) -> Any:
    if isinstance(entry, dict):
        return next((entry[key] for key in _SCORE if entry.get(key) is not None), None)
    return entry


def _grade(members: dict[str, Any], name: str) -> Grade:
    entry = _find(members, name)
    said = _raw(entry)
    reason = members.get(f"{name}_reasoning", "")
    if isinstance(entry, dict):
        reason = next((entry[key] for key in _REASON if isinstance(entry.get(key), str)), "")
    reason = reason.strip()[:2000] if isinstance(reason, str) else ""
    number = to_number(said)
    if reason == _UNFILLED:
        return Grade(value=None, reason="the reply repeats the form instead of a reason")
    if number is not None and WORST <= number <= BEST:
        return Grade(value=number, reason=reason)
    why = "not given" if said is None else f"{said!r:.40} is no score from 1 to 5"
    return Grade(value=None, reason=f"{why}. {reason}".strip())


def _mean(grades: dict[str, Grade]) -> Grade:
    given = [grade.value for grade in grades.values() if grade.value is not None]
    if not given:
        return Grade(value=None, reason="no grade was given")
    return Grade(
        value=math.fsum(given) / len(given),
        reason=f"mean of the {len(given)} grades given; not stated by the judge",
    )
