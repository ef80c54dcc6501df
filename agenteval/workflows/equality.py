"""Are two parameter values the same? By rule (`values`), then by a judge.

Every distinct question (tool, parameter, gold, given) is decided once and logged as a Judgement;
questions in flight are shared. What only a judge could decide and none has decided is `unjudged`:
neither equal nor different, and never counted as either.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from agenteval.models.asking import ParsedReply
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.records import FailureStatus, Record, Usage, canonical_json
from agenteval.workflows.judges import (
    Form,
    JudgeSampling,
    ask_judge,
    failure_of,
    object_schema,
    reason_of,
    yes_or_no,
)
from agenteval.workflows.values import filled, fold, kind, tokens

Same = Literal["equal", "different", "unjudged"]
By = Literal["exact", "normalised", "judge", "enumeration", "type", "none"]
Decision = Literal["right", "wrong", "undecided"]
Schema = Mapping[str, JsonValue]
_ENUMERATION = re.compile(r"\benumerat\w{0,12}[^\[\]]{0,80}\[([^\[\]]{1,4000})\]", re.I)
_SHOWN = 500


class Judgement(Record):
    """One decision on one value of a call, or the reason for a missing one.

    `by` is what decided: equality (`exact`), equality after normalizing (`normalised`), a judge,
    the rule for enumerations, different JSON types, or `none` without a judge. `status` is set if a
    judge failed. `parameter` is a path: `items[0].size`.
    """

    tool: str
    parameter: str
    gold: JsonValue
    given: JsonValue
    verdict: Same
    by: By
    status: FailureStatus | None = None
    message: str = ""


def decided(judged: Sequence[Judgement]) -> Decision:
    """Return right when all are equal, wrong when one is different, else undecided."""
    verdicts = {judgement.verdict for judgement in judged}
    if "different" in verdicts:
        return "wrong"
    return "undecided" if "unjudged" in verdicts else "right"


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """Two texts that differ, and the parameter whose values they are."""

    tool: str
    parameter: str
    description: str
    gold: str
    given: str


class TextJudge(Protocol):
    """Says whether two texts mean the same value."""

    async def same(self, question: ValueQuestion) -> ParsedReply[tuple[bool, str]]:
        """Whether they do, and the reason. Raises what `models.asking.ask` raises."""
        ...


class Equality:
    """Decides with the schemas of the tools and, where it must, a judge.

    `schemas` are the JSON schemas of the parameters by tool. One object serves one event loop.
    `usage` is what the judge has used. Raises Unauthorized for a refused key; every other failure
    of the judge is in its Judgement.
    """

    def __init__(
        self, schemas: Mapping[str, Schema] | None = None, judge: TextJudge | None = None
    ) -> None:
        self.judge = judge
        self.usage = Usage()
        self._schemas = schemas or {}
        self._log: dict[str, Judgement | None] = {}
        self._asked: dict[str, asyncio.Task[Judgement]] = {}

    @property
    def log(self) -> tuple[Judgement, ...]:
        """Return every distinct judgement in the order of the first request."""
        return tuple(judgement for judgement in self._log.values() if judgement is not None)

    def by_rule(self, tool: str, parameter: str, gold: JsonValue, given: JsonValue) -> Judgement:
        """Return the judgement without a judge: `unjudged` by `none` where one would decide."""
        return self._ruled(tool, parameter, gold, given)[0]

    def _ruled(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> tuple[Judgement, tuple[_Pair, ...]]:
        schema = _property(self._schemas.get(tool), parameter)
        ruling = _compared(_Pair(parameter, schema, gold, given))
        judgement = Judgement(
            tool=tool,
            parameter=parameter,
            gold=gold,
            given=given,
            verdict=ruling.verdict,
            by=ruling.by,
        )
        return judgement, ruling.open

    async def compare(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> Judgement:
        """Decide whether `given` is the gold value of a parameter (at the top level) of a tool."""
        key = canonical_json([tool, parameter, gold, given])
        if (logged := self._log.setdefault(key, None)) is not None:
            return logged
        judgement, open_pairs = self._ruled(tool, parameter, gold, given)
        if judgement.verdict == "unjudged" and self.judge is not None:
            parts = await asyncio.gather(*(self._ask(tool, pair) for pair in open_pairs))
            worst: tuple[Same, ...] = ("different", "unjudged", "equal")
            decisive = min(parts, key=lambda part: worst.index(part.verdict))
            update = {"parameter": parameter, "gold": gold, "given": given}
            judgement = decisive.model_copy(update=update)
        self._log[key] = judgement
        return judgement

    async def _ask(self, tool: str, pair: _Pair) -> Judgement:
        """Ask the judge about one pair of texts; all who ask at once wait for one answer."""
        key = canonical_json([tool, pair.path, pair.gold, pair.given])
        self._log.setdefault(key, None)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._judged(tool, pair))
        # A waiter that is cancelled does not take the answer away from the others.
        self._log[key] = judgement = await asyncio.shield(self._asked[key])
        return judgement

    async def _judged(self, tool: str, pair: _Pair) -> Judgement:
        assert self.judge is not None
        description = str(pair.schema.get("description", ""))
        question = ValueQuestion(tool, pair.path, description, str(pair.gold), str(pair.given))
        verdict: Same = "unjudged"
        status: FailureStatus | None = None
        try:
            answer = await self.judge.same(question)
        except Exception as error:  # noqa: BLE001  becomes a judgement that says why there is none
            failure = failure_of(error)
            status, message, usage = failure.status, failure.message, failure.usage
        else:
            (equal, message), usage = answer.value, answer.usage
            verdict = "equal" if equal else "different"
        self.usage += usage
        return Judgement(
            tool=tool,
            parameter=pair.path,
            gold=pair.gold,
            given=pair.given,
            verdict=verdict,
            by="judge",
            status=status,
            message=message[:_SHOWN],
        )


def enumerated(schema: Schema) -> bool:
    """Return whether a schema lists its values: by `enum`, or "Enumerated type, [a, b]"."""
    if isinstance(schema.get("enum"), list):
        return True
    return bool(_ENUMERATION.search(str(schema.get("description", ""))))


@dataclass(frozen=True, slots=True)
class _Pair:
    path: str
    schema: Schema
    gold: JsonValue
    given: JsonValue


@dataclass(frozen=True, slots=True)
class _Ruling:
    """The verdict by rules, and the pairs of texts that a judge would have to decide."""

    verdict: Same
    by: By
    open: tuple[_Pair, ...] = ()


def _compared(pair: _Pair) -> _Ruling:
    gold, stated = pair.gold, pair.given
    if kind(gold) != kind(stated):
        return _Ruling("different", "type")
    if isinstance(gold, str) and isinstance(stated, str):
        return _texts(pair, gold, stated)
    if isinstance(gold, dict) and isinstance(stated, dict):
        gold, stated = filled(gold), filled(stated)
        if gold.keys() != stated.keys():
            return _Ruling("different", "exact")
        inner = [(f"{pair.path}.{k}", _property(pair.schema, k), gold[k], stated[k]) for k in gold]
    elif isinstance(gold, list) and isinstance(stated, list):
        if len(gold) != len(stated):
            return _Ruling("different", "exact")
        schema = _object(pair.schema.get("items"))
        rows = enumerate(zip(gold, stated, strict=True))
        inner = [(f"{pair.path}[{i}]", schema, a, b) for i, (a, b) in rows]
    else:
        return _Ruling("equal" if gold == stated else "different", "exact")
    rulings = [_compared(_Pair(*parts)) for parts in inner]
    different = next((r for r in rulings if r.verdict == "different"), None)
    if different is not None:
        return _Ruling("different", different.by)
    if open_pairs := tuple(part for r in rulings for part in r.open):
        return _Ruling("unjudged", "none", open_pairs)
    exact = all(r.by == "exact" for r in rulings)
    return _Ruling("equal", "exact" if exact else "normalised")


def _texts(pair: _Pair, gold: str, given: str) -> _Ruling:
    if gold == given:
        return _Ruling("equal", "exact")
    if enumerated(pair.schema):
        return _Ruling("equal" if fold(gold) == fold(given) else "different", "enumeration")
    words = tokens(gold)
    if words and words == tokens(given):
        return _Ruling("equal", "normalised")
    if not gold.strip() or not given.strip():  # a blank text is not a value in other words
        return _Ruling("different", "normalised")
    return _Ruling("unjudged", "none", (pair,))


def _property(schema: Schema | None, key: str) -> Schema:
    """Return the schema of a property, {} when there is none."""
    return _object(_object((schema or {}).get("properties")).get(key))


def _object(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


SCHEMA = object_schema({"reason": {"type": "string"}, "equal": {"type": "boolean"}})


class EqualityJudge:
    """Asks a model, with one repair. `Equality` keeps the answers."""

    def __init__(self, client: Client, options: JudgeSampling | None = None) -> None:
        self.client = client
        self.options = options or JudgeSampling(max_tokens=512)

    async def same(self, question: ValueQuestion) -> ParsedReply[tuple[bool, str]]:
        """Whether the two mean the same, and why. Raises what `models.asking.ask` raises."""
        return await ask_judge(
            self.client,
            Form("equal", SCHEMA, read_equal),
            self.options,
            tool=question.tool,
            parameter=question.parameter,
            description=question.description,
            gold=question.gold,
            given=question.given,
        )


def read_equal(text: str) -> tuple[bool, str]:
    """Return the verdict of a reply and its reason. Raises ReplyError when it holds none."""
    members = parse_reply(text, lambda value: isinstance(value, dict) and "equal" in value).value
    return yes_or_no(members["equal"], "equal"), reason_of(members, "reason")
