"""Ask the judge of a trace one question, and read its reply: findings, and grades of the run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from agenteval.errors import AgentevalError, ReplyError
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request
from agenteval.records import GRADES, Grade, Impact, Rejected, Usage
from agenteval.traces.annotations import IMPACTS, OVERALL, to_number
from agenteval.traces.locator_quotes import Quotes
from agenteval.traces.taxonomy import Leaf, Taxonomy

T = TypeVar("T")


class Unreadable(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    def __init__(self, message: str, raw: str, spent: Usage) -> None:
        super().__init__(message)
        self.raw = raw
        self.spent = spent


@dataclass(frozen=True, slots=True)
class LocatorAnswer(Generic[T]):
    """A reply that was understood. `gap` says what is missing of it, None if it is complete."""

    value: T
    gap: str | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen


async def ask(
    client: Client,
    request: Request,
    read: Callable[[str], LocatorAnswer[T]],
    repair: Callable[[str], str],
    show: Callable[[str], str],
) -> LocatorAnswer[T]:
    """Return the parsed reply, or its repair if the reply is unreadable or has a gap.

    A reply with a gap is used if its repair is not better. Raises Unreadable, Filtered, and what
    the client raises; `spent` is the usage of both requests.
    """
    texts: list[str] = []
    partial: list[LocatorAnswer[T]] = []

    def read_all(text: str) -> LocatorAnswer[T]:
        texts.append(text)
        answer = read(text)
        if answer.gap is not None:
            partial.append(answer)
            raise ReplyError(answer.gap)
        return answer

    try:
        parsed = await asking.ask(client, request, read_all, repair, show)
        return replace(parsed.value, usage=parsed.usage)
    except AgentevalError as error:
        spent = error.spent or Usage()
        if partial:
            return replace(partial[0], usage=spent)
        if isinstance(error, ReplyError):
            raise Unreadable(str(error), texts[-1], spent) from error
        raise


# -- findings --------------------------------------------------------------------------------------

_LISTS = ("findings", "errors", "issues")
_SPAN = ("span", "location", "index", "span_index", "span_id")
# An index, or the heading it stands in, copied: "S7 llm, characters 1 to 900 of 1200".
_INDEX = re.compile(
    r"\W*(?:span\s+)?(\w+)(?:\s+(?:agent|llm|tool|chain|user)\b.*)?\W*", re.I | re.S
)
_MAX_REJECTED = 600  # characters of something rejected
_PLACEHOLDER = "<index>"  # as in the prompt
_NEAR = 0.5  # of a confidence remains if the words occur in another span of the step


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """A finding that passed the checks; `near`: its words occur in another span of its step."""

    index: str
    category: str
    evidence: str
    description: str
    impact: Impact | None
    confidence: float | None
    near: bool = False


def reply_schema(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Return the JSON schema of a reply on these leaves."""
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

    Accepts {"findings": [...]} (also "errors", "issues"), a list of such objects, and a list of
    findings. Only an empty list says that there are no errors. Raises ReplyError for no list, and
    for the form of the prompt, repeated.
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
    if not isinstance(value, list) or not value:
        return None
    inner = [_entries(item) if isinstance(item, dict) else None for item in value]
    if all(items is not None for items in inner):
        return [item for items in inner for item in items or ()]
    are_findings = all(isinstance(i, dict) and _first(i, _SPAN) is not None for i in value)
    return value if are_findings else None


def check(
    item: Any, asked: Collection[str], taxonomy: Taxonomy, quotes: Quotes
) -> CheckedFinding | Rejected:
    """Return the finding that an entry states, or why it does not count. Nothing is guessed.

    The index must exist in the trace, the category must be a leaf in `asked` (or another spelling
    of one), and the quoted words must occur in the span. If they occur in its step only, the
    finding is `near` and has half its confidence, unless `quotes` has another rule.
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
    # 0 to 1; anything else is unknown, since 85 may mean many things
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
    """Find the leaf named alone, at the end of a path ("Planning > Goal Deviation"), or before an
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
    """Return a short value unchanged, else the beginning of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{text[:_MAX_REJECTED]}..." if len(text) > _MAX_REJECTED else value


# -- grades ----------------------------------------------------------------------------------------

_UNFILLED = "<text>"  # as in the prompt: a small model fills in the number alone
WORST, BEST = 1.0, 5.0


def grades_schema() -> dict[str, Any]:
    """Return the JSON schema of the grades: a reason before each score, and the overall score."""
    grade = _object({"reason": {"type": "string"}, "score": {"type": "number"}})
    return _object({**dict.fromkeys(GRADES, grade), OVERALL: {"type": "number"}})


def read_grades(text: str) -> LocatorAnswer[dict[str, Grade]]:
    """Return a Grade for each name in GRADES and for "overall".

    A score that is missing or not within 1 and 5 is a Grade without value whose reason says so.
    If the reply does not state `overall`, it is the mean of the other grades (the rule of the
    annotations of TRAIL, arXiv 2505.08638); it has no value if it would be the only grade. The gap
    names the grades without a value. Raises ReplyError for a reply without any grade.
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
    """Find the object with at least one of the grades, also one level down or in a list."""
    for row in value if isinstance(value, list) else [value]:
        if not isinstance(row, dict):
            continue
        for holder in (row, *(v for v in row.values() if isinstance(v, dict | list))):
            inner = holder[0] if isinstance(holder, list) and holder else holder
            if isinstance(inner, dict) and any(_entry(inner, n) is not None for n in GRADES):
                return {**inner, **({OVERALL: row[OVERALL]} if OVERALL in row else {})}
    return None


def _entry(members: Mapping[str, Any], name: str) -> Any:
    """The entry of a grade: `name`, or `name_score` as in the layout of TRAIL."""
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
    if number is not None and WORST <= number <= BEST:
        return Grade(value=number, reason=reason)
    why = "not given" if score is None else f"{score!r:.40} is not a score from 1 to 5"
    return Grade(value=None, reason=f"{why}. {reason}".strip())
