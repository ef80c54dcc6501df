"""One question to the judge of a trace, with one repair round; and what its reply says: findings,
checked against the spans it read, and the grades of the run."""

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
from agenteval.models.wire import Reply, Request
from agenteval.records import GRADES, Grade, Impact, Rejected, Usage
from agenteval.traces.annotations import OVERALL, to_number
from agenteval.traces.locator_quotes import Quotes
from agenteval.traces.taxonomy import Leaf, Taxonomy

T = TypeVar("T")


class Unreadable(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw


class UsageTracker:
    """A client that counts: `calls` are questions, cached ones as well, `usage` what was paid for.

    Every request is asked as this `attempt`: no reply to an earlier one answers it from the cache.
    """

    def __init__(self, client: Client, attempt: int = 0) -> None:
        self._client = client
        self._attempt = attempt
        self.calls = 0
        self.usage = Usage()

    async def complete(self, request: Request) -> Reply:
        """Return the client's reply. Raises what it raises."""
        self.calls += 1
        try:
            reply = await self._client.complete(
                replace(request, attempt=request.attempt + self._attempt)
            )
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        self.usage += Usage() if reply.cached else reply.usage
        return reply


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A reply that was understood. `gap` says what is missing of it, None for a whole one."""

    value: T
    gap: str | None = None


async def ask(
    tracker: UsageTracker,
    request: Request,
    read: Callable[[str], Read[T]],
    repair: Callable[[str], str],
    show: Callable[[str], str],
) -> Read[T]:
    """Return what the reply says, or its repair if the reply is unreadable or has a gap.

    A first reply with a gap counts if its repair is no better. Raises Unreadable, Filtered, and
    what the client raises.
    """
    texts: list[str] = []
    partial: list[Read[T]] = []

    def whole(text: str) -> Read[T]:
        texts.append(text)
        answer = read(text)
        if answer.gap is not None:
            partial.append(answer)
            raise ReplyError(answer.gap)
        return answer

    try:
        return (await asking.ask(tracker, request, whole, repair, show)).value
    except AgentevalError as error:
        if partial:
            return partial[0]  # what could be read is not lost with its repair
        if isinstance(error, ReplyError):
            raise Unreadable(str(error), texts[-1]) from error
        raise


# -- findings --------------------------------------------------------------------------------------

_LISTS = ("findings", "errors", "issues")
_SPAN = ("span", "location", "index", "span_index", "span_id")
_IMPACTS: Mapping[str, Impact] = {"HIGH": "HIGH", "MEDIUM": "MEDIUM", "LOW": "LOW"}
# An index, or the heading it stands in, copied: "S7 llm, characters 1 to 900 of 1200".
_INDEX = re.compile(
    r"\W*(?:span\s+)?(\w+)(?:\s+(?:agent|llm|tool|chain|user)\b.*)?\W*", re.I | re.S
)
_KEPT_CHARACTERS = 600  # of something rejected
_PLACEHOLDER = "<index>"  # as in the prompt


@dataclass(frozen=True, slots=True)
class Named:
    """A finding that passed the checks; `near`: its words stand in another span of its step."""

    index: str
    category: str
    evidence: str
    description: str
    impact: Impact | None
    confidence: float | None
    near: bool = False


def reply_schema(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """JSON schema of a reply on these leaves."""
    finding = {
        "span": {"type": "string"},
        "evidence": {"type": "string"},
        "description": {"type": "string"},
        "category": {"type": "string", "enum": [leaf.name for leaf in leaves]},
        "impact": {"type": "string", "enum": list(_IMPACTS)},
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


def read_reply(text: str) -> Read[tuple[list[Any], str]]:
    """The entries and the summary ("" for none) in a reply, the entries not yet checked.

    Read are {"findings": [...]} (also "errors", "issues"), a list of such objects and a list of
    findings. No list is no answer: only an empty list says that there are no errors. Nor is the
    form of the prompt, repeated. Raises ReplyError.
    """
    parsed = parse_reply(text, lambda value: _listed(value) is not None)
    items = _listed(parsed.value) or []
    if items and all(isinstance(i, dict) and _first(i, _SPAN) == _PLACEHOLDER for i in items):
        raise ReplyError("the reply repeats the form instead of filling it in")
    outer = parsed.value[0] if isinstance(parsed.value, list) and items else parsed.value
    summary = outer.get("summary") if isinstance(outer, dict) else None
    cut = "the reply broke off: what came after is not known"
    return Read((items, _text(summary)), cut if parsed.rung == "salvaged" else None)


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
    if not isinstance(value, list) or not value:
        return None
    inner = [_listed(item) if isinstance(item, dict) else None for item in value]
    if all(items is not None for items in inner):
        return [item for items in inner for item in items or ()]
    spans = [_first(item, _SPAN) if isinstance(item, dict) else None for item in value]
    return value if all(span is not None for span in spans) else None


_NEAR = 0.5  # what is left of a confidence where the words stand in another span of the step


def check(
    item: Any, asked: Collection[str], taxonomy: Taxonomy, quotes: Quotes
) -> Named | Rejected:
    """The finding that an entry states, or why it is none. Nothing is guessed.

    The index must exist in the trace, the category must be a leaf that was `asked` for (or another
    spelling of one), and the quoted words must stand in the span; where they stand in its step,
    the finding has half its confidence and is `near`, unless `quotes` has another rule.
    """
    if not isinstance(item, dict):
        return _rejected("not an object", item)
    span, label = _first(item, _SPAN), item.get("category")
    match = _INDEX.fullmatch(span) if isinstance(span, str) else None
    index = match[1].upper() if match else ""
    if index not in quotes:
        return _rejected(f"there is no span {span!r:.60}", item)
    leaf = _leaf_of(label, taxonomy)
    if leaf is None:
        return _rejected(f"{label!r:.80} is no kind of error in the taxonomy", item)
    if leaf.name not in asked:
        return _rejected(f"{leaf.name} was not asked for", item)
    evidence = _first(item, ("evidence", "quote"))
    evidence = evidence.strip() if isinstance(evidence, str) else ""
    problem = quotes.problem(index, evidence)
    near = problem is not None and quotes.stands_near(index, evidence)
    if problem is not None and not near:
        return _rejected(problem, item)
    # 0 to 1; anything else is unknown, since 85 may mean many things
    number = to_number(item.get("confidence"))
    confidence = number if number is not None and 0 <= number <= 1 else None
    if confidence is not None and near:
        confidence *= _NEAR
    return Named(
        index=index,
        category=leaf.name,
        evidence=evidence,
        description=_text(item.get("description")),
        impact=_IMPACTS.get(_text(item.get("impact")).upper()),
        confidence=confidence,
        near=near,
    )


def _first(item: Mapping[Any, Any], names: Sequence[str]) -> Any:
    return next((item[n] for n in names if item.get(n) is not None), None)


def _leaf_of(label: Any, taxonomy: Taxonomy) -> Leaf | None:
    """The leaf named, alone, at the end of its path ("Planning > Goal Deviation"), or before an
    explanation in brackets ("Tool-related (makes up a result)")."""
    if not isinstance(label, str):
        return None
    bare = re.sub(r"[(\[].*", "", label, flags=re.DOTALL)
    names = (label, re.split(r"[>/:]", label)[-1], bare, re.split(r"[>/:]", bare)[-1])
    leaf = next(filter(None, map(taxonomy.find, names)), None)
    return leaf if leaf is not None and leaf.assigned else None


def _text(value: Any) -> str:
    return value.strip()[:2000] if isinstance(value, str) else ""


def _rejected(why: str, said: Any) -> Rejected:
    return Rejected(why=why, said=abridged(said))


def abridged(said: Any) -> JsonValue:
    """What was said, as it is while it is short, else the beginning of its text."""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    if len(text) > _KEPT_CHARACTERS:
        return f"{text[:_KEPT_CHARACTERS]}..."
    value: JsonValue = said
    return value


# -- grades ----------------------------------------------------------------------------------------

_UNFILLED = "<text>"  # as in the prompt: a small model fills in the number alone
WORST, BEST = 1.0, 5.0


def grades_schema() -> dict[str, Any]:
    """JSON schema of the grades: a reason before each score, and the overall score."""
    grade = _object({"reason": {"type": "string"}, "score": {"type": "number"}})
    return _object({**dict.fromkeys(GRADES, grade), OVERALL: {"type": "number"}})


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
    stated = [grade.value for grade in grades.values() if grade.value is not None]
    if not stated:
        grades[OVERALL] = Grade(value=None, reason="no grade was given")
    elif _score(members.get(OVERALL)) is not None:
        grades[OVERALL] = _grade(members, OVERALL)
    else:
        reason = f"mean of the {len(stated)} grades given; not stated by the judge"
        grades[OVERALL] = Grade(value=math.fsum(stated) / len(stated), reason=reason)
    missing = [name for name, grade in grades.items() if grade.value is None]
    return Read(grades, f"no score from 1 to 5 for {', '.join(missing)}" if missing else None)


def _members(value: Any) -> dict[str, Any] | None:
    """The object that holds at least one of the grades, also one level down or in a list."""
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
    why = "not given" if score is None else f"{score!r:.40} is no score from 1 to 5"
    return Grade(value=None, reason=f"{why}. {reason}".strip())
