"""Are two parameter values the same? By rule (`values`), then by a judge.

Every distinct question (tool, parameter, gold, given) is decided once and logged as a Judgement;
questions in flight are shared. What only a judge could decide and none has decided is `unjudged`:
neither equal nor different, and never counted as either.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.records import FailureStatus, Record, Usage, canonical_json
from agenteval.workflows.judges import EqualityJudge, ValueQuestion, failure_of
from agenteval.workflows.values import filled, fold, kind, tokens

Same = Literal["equal", "different", "unjudged"]
By = Literal["exact", "normalised", "judge", "enumeration", "type", "none"]
Decision = Literal["right", "wrong", "undecided"]
Schema = Mapping[str, JsonValue]
_ENUMERATION = re.compile(r"\benumerat\w{0,12}[^\[\]]{0,80}\[([^\[\]]{1,4000})\]", re.I)
_SHOWN = 500
_WORST: tuple[Same, ...] = ("different", "unjudged", "equal")

# What the judge of values took since the list was set in this context. Each question is charged to
# the context that asked it first.
SPENT: ContextVar[list[Usage] | None] = ContextVar("SPENT", default=None)


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


def decided(verdicts: Sequence[Same]) -> Decision:
    """Return right when all are equal, wrong when one is different, else undecided."""
    if "different" in verdicts:
        return "wrong"
    return "undecided" if "unjudged" in verdicts else "right"


class Equality:
    """Decides with the schemas of the tools and, where it must, a judge.

    `schemas` are the JSON schemas of the parameters by tool. One object serves one event loop.
    Raises Unauthorized for a refused key; every other failure of the judge is in its Judgement.
    """

    def __init__(
        self, schemas: Mapping[str, Schema] | None = None, judge: EqualityJudge | None = None
    ) -> None:
        self.judge = judge
        self._schemas = schemas or {}
        self._log: dict[str, Judgement | None] = {}
        self._asked: dict[str, asyncio.Task[Judgement]] = {}

    @property
    def log(self) -> tuple[Judgement, ...]:
        """Return every distinct judgement in the order of the first request."""
        return tuple(judgement for judgement in self._log.values() if judgement is not None)

    def by_rule(self, tool: str, parameter: str, gold: JsonValue, given: JsonValue) -> Ruling:
        """Return the ruling without a judge: `unjudged` by `none` where one would decide."""
        schema = _property(self._schemas.get(tool), parameter)
        return _compared(ValuePair(parameter, schema, gold, given))

    async def compare(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> Judgement:
        """Decide whether `given` is the gold value of a parameter (at the top level) of a tool."""
        values = {"tool": tool, "parameter": parameter, "gold": gold, "given": given}
        key = canonical_json([*values.values()])
        if (logged := self._log.setdefault(key, None)) is not None:
            return logged
        ruling = self.by_rule(tool, parameter, gold, given)
        if ruling.verdict == "unjudged" and self.judge is not None:
            parts = await asyncio.gather(*(self._ask(tool, pair) for pair in ruling.open))
            decisive = min(parts, key=lambda part: _WORST.index(part.verdict))
            judgement = decisive.model_copy(update=values)
        else:
            judgement = Judgement(**values, verdict=ruling.verdict, by=ruling.by)
        self._log[key] = judgement
        return judgement

    async def _ask(self, tool: str, pair: ValuePair) -> Judgement:
        """Ask the judge about one pair of texts; all who ask at once wait for one answer."""
        key = canonical_json([tool, pair.path, pair.gold, pair.given])
        self._log.setdefault(key, None)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._judged(tool, pair))
        # A waiter that is cancelled does not take the answer away from the others.
        self._log[key] = judgement = await asyncio.shield(self._asked[key])
        return judgement

    async def _judged(self, tool: str, pair: ValuePair) -> Judgement:
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
        if (spent := SPENT.get()) is not None:
            spent.append(usage)
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


@dataclass(frozen=True, slots=True)
class ValuePair:
    """Two values at the same place, with its schema."""

    path: str
    schema: Schema
    gold: JsonValue
    given: JsonValue


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict by rules, and the pairs of texts that a judge would have to decide."""

    verdict: Same
    by: By
    open: tuple[ValuePair, ...] = ()


def _compared(pair: ValuePair) -> Ruling:
    gold, given = pair.gold, pair.given
    if kind(gold) != kind(given):
        return Ruling("different", "type")
    if isinstance(gold, str) and isinstance(given, str):
        return _texts(pair, gold, given)
    if isinstance(gold, dict) and isinstance(given, dict):
        gold, given = filled(gold), filled(given)
        if gold.keys() != given.keys():
            return Ruling("different", "exact")
        inner = [
            ValuePair(f"{pair.path}.{key}", _property(pair.schema, key), gold[key], given[key])
            for key in gold
        ]
    elif isinstance(gold, list) and isinstance(given, list):
        if len(gold) != len(given):
            return Ruling("different", "exact")
        schema = _object(pair.schema.get("items"))
        rows = enumerate(zip(gold, given, strict=True))
        inner = [ValuePair(f"{pair.path}[{i}]", schema, a, b) for i, (a, b) in rows]
    else:
        return Ruling("equal" if gold == given else "different", "exact")
    rulings = [_compared(part) for part in inner]
    if different := next((r for r in rulings if r.verdict == "different"), None):
        return Ruling("different", different.by)
    if open_pairs := tuple(part for r in rulings for part in r.open):
        return Ruling("unjudged", "none", open_pairs)
    return Ruling("equal", "exact" if all(r.by == "exact" for r in rulings) else "normalised")


def _texts(pair: ValuePair, gold: str, given: str) -> Ruling:
    if gold == given:
        return Ruling("equal", "exact")
    # A schema lists its values by `enum`, or in words: "Enumerated type, [a, b]".
    listed = isinstance(pair.schema.get("enum"), list)
    if listed or _ENUMERATION.search(str(pair.schema.get("description", ""))):
        return Ruling("equal" if fold(gold) == fold(given) else "different", "enumeration")
    words = tokens(gold)
    if words and words == tokens(given):
        return Ruling("equal", "normalised")
    if not gold.strip() or not given.strip():  # a blank text is not a value in other words
        return Ruling("different", "normalised")
    return Ruling("unjudged", "none", (pair,))


def _property(schema: Schema | None, key: str) -> Schema:
    """Return the schema of a property, {} when there is none."""
    return _object(_object((schema or {}).get("properties")).get(key))


def _object(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}
