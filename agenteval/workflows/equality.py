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
from agenteval.workflows.asked_judge import (
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
    """One decision on one value of a call, or why there is none.

    `by` says what decided: equality as it is (`exact`), after normalising (`normalised`), a judge,
    the rule for enumerations, unlike JSON types, or nothing (`none`: no judge was there). `status`
    is set where a judge was asked and failed. `parameter` is a path: `items[0].size`.
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
    """Right when all are equal, wrong when one is different, else undecided."""
    verdicts = {judgement.verdict for judgement in judged}
    if "different" in verdicts:
        return "wrong"
    return "undecided" if "unjudged" in verdicts else "right"


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """Two texts that differ, and what they are values of."""

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
    `usage` is what the judge has taken. Raises Unauthorized for a refused key; every other failure
    of the judge is told in its Judgement.
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
        """Every distinct judgement made, in the order in which they were first asked for."""
        return tuple(one for one in self._log.values() if one is not None)

    def by_rule(self, tool: str, parameter: str, gold: JsonValue, given: JsonValue) -> Judgement:
        """The judgement without a judge: `unjudged` by `none` where one would have to decide."""
        return self._ruled(tool, parameter, gold, given)[0]

    def _ruled(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> tuple[Judgement, list[_Pair]]:
        schema = _inside(self._schemas.get(tool), parameter)
        verdict, by, open_pairs = _compared(_Pair(parameter, schema, gold, given))
        judgement = Judgement(
            tool=tool, parameter=parameter, gold=gold, given=given, verdict=verdict, by=by
        )
        return judgement, open_pairs

    async def compare(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> Judgement:
        """Whether `given` is the gold value of a parameter (at the top level) of a tool."""
        key = canonical_json([tool, parameter, gold, given])
        if (known := self._log.get(key)) is not None:
            return known
        self._log.setdefault(key, None)
        made, open_pairs = self._ruled(tool, parameter, gold, given)
        if made.verdict == "unjudged" and self.judge is not None:
            parts = await asyncio.gather(*(self._ask(tool, pair) for pair in open_pairs))
            worst: tuple[Same, ...] = ("different", "unjudged", "equal")
            decisive = min(parts, key=lambda one: worst.index(one.verdict))
            made = decisive.model_copy(
                update={"parameter": parameter, "gold": gold, "given": given}
            )
        self._log[key] = made
        return made

    async def _ask(self, tool: str, pair: _Pair) -> Judgement:
        """The judge's word on one pair of texts; all who ask at once wait for one answer."""
        key = canonical_json([tool, pair.path, pair.gold, pair.given])
        task = self._asked.get(key)
        if task is None:
            self._log.setdefault(key, None)
            task = self._asked[key] = asyncio.create_task(self._judged(tool, pair))
        made = await asyncio.shield(task)  # one waiter that is cancelled takes no answer away
        self._log[key] = made
        return made

    async def _judged(self, tool: str, pair: _Pair) -> Judgement:
        assert self.judge is not None
        description = str(pair.schema.get("description", ""))
        question = ValueQuestion(tool, pair.path, description, str(pair.gold), str(pair.given))
        verdict: Same = "unjudged"
        status: FailureStatus | None = None
        try:
            asked = await self.judge.same(question)
        except Exception as error:  # noqa: BLE001  becomes a judgement that says why there is none
            status, message, usage = failure_of(error)
        else:
            (equal, message), usage = asked.value, asked.usage
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
    """Whether a schema lists its values: by `enum`, or in words, "Enumerated type, [a, b]"."""
    if isinstance(schema.get("enum"), list):
        return True
    return bool(_ENUMERATION.search(str(schema.get("description", ""))))


@dataclass(frozen=True, slots=True)
class _Pair:
    path: str
    schema: Schema
    gold: JsonValue
    given: JsonValue


def _compared(pair: _Pair) -> tuple[Same, By, list[_Pair]]:
    """The verdict by rules, and the pairs of texts that a judge would have to decide."""
    gold, given = pair.gold, pair.given
    if kind(gold) != kind(given):
        return "different", "type", []
    if isinstance(gold, str) and isinstance(given, str):
        verdict, by = _texts(pair.schema, gold, given)
        return verdict, by, [pair] if verdict == "unjudged" else []
    if isinstance(gold, dict) and isinstance(given, dict):
        gold, given = filled(gold), filled(given)
        if gold.keys() != given.keys():
            return "different", "exact", []
        return _all(
            [_Pair(f"{pair.path}.{k}", _inside(pair.schema, k), gold[k], given[k]) for k in gold]
        )
    if isinstance(gold, list) and isinstance(given, list):
        if len(gold) != len(given):
            return "different", "exact", []
        schema = _child(pair.schema.get("items"))
        rows = enumerate(zip(gold, given, strict=True))
        return _all([_Pair(f"{pair.path}[{i}]", schema, a, b) for i, (a, b) in rows])
    return ("equal" if gold == given else "different"), "exact", []


def _texts(schema: Schema, gold: str, given: str) -> tuple[Same, By]:
    if gold == given:
        return "equal", "exact"
    if enumerated(schema):
        return ("equal" if fold(gold) == fold(given) else "different"), "enumeration"
    words = tokens(gold)
    if words and words == tokens(given):
        return "equal", "normalised"
    if not gold.strip() or not given.strip():  # nothing is no value in other words
        return "different", "normalised"
    return "unjudged", "none"


def _all(pairs: list[_Pair]) -> tuple[Same, By, list[_Pair]]:
    """Different if one is, unjudged if one of the rest is, equal otherwise."""
    compared = [_compared(pair) for pair in pairs]
    for verdict, by, _ in compared:
        if verdict == "different":
            return verdict, by, []
    open_pairs = [one for _, _, rest in compared for one in rest]
    if open_pairs:
        return "unjudged", "none", open_pairs
    ways = {by for _, by, _ in compared} - {"exact"}
    return "equal", "normalised" if ways else "exact", []


def _inside(schema: Schema | None, key: str) -> Schema:
    """Schema of a property, empty when nothing is said of it."""
    properties = (schema or {}).get("properties")
    return _child(properties.get(key)) if isinstance(properties, dict) else {}


def _child(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


SCHEMA = object_schema({"reason": {"type": "string"}, "equal": {"type": "boolean"}})


class EqualityJudge:
    """Asks a model, with one repair. What was asked before is kept by `Equality`, not here."""

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
    """The verdict of a reply and its reason. Raises ReplyError when it holds none."""
    members = parse_reply(text, lambda value: isinstance(value, dict) and "equal" in value).value
    return yes_or_no(members["equal"], "equal"), reason_of(members, "reason")
