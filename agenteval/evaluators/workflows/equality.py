"""Are two parameter values the same? Exact, then normalised, then a judge: never by substring.

Every distinct question (tool, parameter, gold, given) is decided once and logged as a Judgement;
questions in flight are shared. What only a judge could decide and none has decided is `unjudged`:
neither equal nor different, and never counted as either.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from agenteval.errors import AgentevalError, Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.workflows.asked_judge import (
    Form,
    JudgeOptions,
    ask_judge,
    object_schema,
    reason_of,
    yes_or_no,
)
from agenteval.models.asking import Asked
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.records import FailureStatus, Record, Usage, canonical_json

Same = Literal["equal", "different", "unjudged"]
By = Literal["exact", "normalised", "judge", "enumeration", "type", "none"]
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


@dataclass(frozen=True, slots=True)
class Question:
    """Two texts that differ, and what they are values of."""

    tool: str
    parameter: str
    description: str
    gold: str
    given: str


class TextJudge(Protocol):
    """Says whether two texts mean the same value."""

    async def same(self, question: Question) -> Asked[tuple[bool, str]]:
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
        schema = _inside(self._schemas.get(tool), parameter)
        verdict, by, _ = _compared(_Pair(parameter, schema, gold, given))
        return Judgement(
            tool=tool, parameter=parameter, gold=gold, given=given, verdict=verdict, by=by
        )

    async def compare(
        self, tool: str, parameter: str, gold: JsonValue, given: JsonValue
    ) -> Judgement:
        """Whether `given` is the gold value of a parameter (at the top level) of a tool."""
        key = canonical_json([tool, parameter, gold, given])
        if (known := self._log.get(key)) is not None:
            return known
        self._log.setdefault(key, None)
        schema = _inside(self._schemas.get(tool), parameter)
        verdict, by, open_pairs = _compared(_Pair(parameter, schema, gold, given))
        made = Judgement(
            tool=tool, parameter=parameter, gold=gold, given=given, verdict=verdict, by=by
        )
        if verdict == "unjudged" and self.judge is not None:
            found = await asyncio.gather(*(self._ask(tool, pair) for pair in open_pairs))
            made = _combined(made, found)
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
        question = Question(
            tool, pair.path, str(pair.schema.get("description", "")), str(pair.gold),
            str(pair.given),
        )  # fmt: skip
        verdict: Same = "unjudged"
        status: FailureStatus | None = None
        try:
            asked = await self.judge.same(question)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  becomes a judgement that says why there is none
            status, message = classify(error)
            if isinstance(error, AgentevalError):
                self.usage += error.spent or Usage()
        else:
            equal, message = asked.value
            verdict = "equal" if equal else "different"
            self.usage += asked.usage
        return Judgement(
            tool=tool, parameter=pair.path, gold=pair.gold, given=pair.given,
            verdict=verdict, by="judge", status=status, message=message[:_SHOWN],
        )  # fmt: skip


def equal_by_rule(gold: JsonValue, given: JsonValue) -> bool:
    """Whether two values are equal by the rules alone, no schema being known: what only a judge
    could take for equal is not."""
    return _compared(_Pair("", {}, gold, given))[0] == "equal"


def filled(arguments: JsonValue) -> dict[str, JsonValue]:
    """The arguments that say something: "", [], {} and null are as good as left out.

    No arguments (None) are {}; a raw text has none that could be read.
    """
    if not isinstance(arguments, dict):
        return {}
    return {key: value for key, value in arguments.items() if value not in ("", [], {}, None)}


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


_Found = tuple[Same, By, list[_Pair]]


def _compared(pair: _Pair) -> _Found:
    """The verdict by rules, and the pairs of texts that a judge would have to decide."""
    gold, given = pair.gold, pair.given
    if _kind(gold) != _kind(given):
        return "different", "type", []
    if isinstance(gold, str) and isinstance(given, str):
        return _texts(pair, gold, given)
    if isinstance(gold, dict) and isinstance(given, dict):
        return _objects(pair, filled(gold), filled(given))
    if isinstance(gold, list) and isinstance(given, list):
        if len(gold) != len(given):
            return "different", "exact", []
        schema = _child(pair.schema.get("items"))
        rows = enumerate(zip(gold, given, strict=True))
        return _all([_Pair(f"{pair.path}[{i}]", schema, a, b) for i, (a, b) in rows])
    return ("equal" if gold == given else "different"), "exact", []


def _texts(pair: _Pair, gold: str, given: str) -> _Found:
    if gold == given:
        return "equal", "exact", []
    if enumerated(pair.schema):
        return ("equal" if fold(gold) == fold(given) else "different"), "enumeration", []
    words = tokens(gold)
    if words and words == tokens(given):
        return "equal", "normalised", []
    if not gold.strip() or not given.strip():  # nothing is no value in other words
        return "different", "normalised", []
    return "unjudged", "none", [pair]


def _objects(pair: _Pair, gold: dict[str, JsonValue], given: dict[str, JsonValue]) -> _Found:
    if gold.keys() != given.keys():
        return "different", "exact", []
    return _all(
        [
            _Pair(f"{pair.path}.{key}", _inside(pair.schema, key), gold[key], given[key])
            for key in gold
        ]
    )


def _all(pairs: list[_Pair]) -> _Found:
    """Different if one is, unjudged if one of the rest is, equal otherwise."""
    found = [_compared(pair) for pair in pairs]
    for verdict, by, _ in found:
        if verdict == "different":
            return verdict, by, []
    open_pairs = [one for _, _, rest in found for one in rest]
    if open_pairs:
        return "unjudged", "none", open_pairs
    ways = {by for _, by, _ in found} - {"exact"}
    return "equal", "normalised" if ways else "exact", []


def _combined(made: Judgement, found: list[Judgement]) -> Judgement:
    """The judgement of a value from those of its parts."""
    for verdict in ("different", "unjudged", "equal"):
        for one in found:
            if one.verdict == verdict:
                return made.model_copy(
                    update={
                        "verdict": verdict, "by": "judge", "status": one.status,
                        "message": one.message,
                    }
                )  # fmt: skip
    raise AssertionError("a value without parts needs no judge")


def _kind(value: Any) -> str:
    """JSON type; all numbers are one, and true is none of them."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _inside(schema: Schema | None, key: str) -> Schema:
    """Schema of a property, empty when nothing is said of it."""
    properties = (schema or {}).get("properties")
    return _child(properties.get(key)) if isinstance(properties, dict) else {}


def _child(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
# Raised and lowered digits and fractions, which NFKC would join to the digits before them.
_RUN_ON = re.compile(r"(?<=\d)(?=[¹²³⁰⁴-⁹₀-₉¼-¾⅐-⅞])")
# In an address, a link or a made name (a_b) every mark counts: a.b@c.org is not a_b@c.org.
_NAME = re.compile(r"\S@\S|\w://\S|[^\W_]_[^\W_]")
_AROUND = ".,;:!?()[]{}<>\"'“”‘’"
_SLASHED_DATE = re.compile(r"(?<![\w/])(\d{1,4})/(\d{1,2})/(\d{1,4})(?![\w/])")
_PIECE = re.compile(
    r"(?P<minus>(?<![\w.])[-−‐-―](?=\.?\d)|(?<=\w)[-−](?![^\s,;.)]))"  # -5, and A- of A
    r"|(?P<mark>(?<=\d)[:/](?=\d))"  # 10:30 is not 10-30, 1/2 not 1 2
    r"|(?P<number>(?<![\w.])\.\d+|\d+(?:[.,]\d+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# Signs that change what a value is: 5 % is not 5, C# is not C.
_MEANT = frozenset("%#&@*‰′″")


def fold(text: str) -> str:
    """NFKC, case folded, single blanks; punctuation stays, and 10² becomes 10^2, not 102."""
    text = _RUN_ON.sub("^", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def tokens(text: str) -> tuple[str, ...]:
    """Words, numbers and signs of a text, by which values are compared.

    Case, blanks, punctuation and compatible characters (NFKC) make no difference; letters and
    digits are apart ("7pm" is "7 pm"); symbols and % # & @ * count, so do ":" and "/" between
    digits (but for dates such as 2031/03/12), a minus, and every mark in an address, a link or a
    name such as a_b. Numbers go by value ("2.50" is "2.5", "1,000" is "1000", ".5" is "0.5"), but
    not those with leading zeros or right behind a letter, which may be codes ("v1.10").
    """
    found: list[str] = []
    run: list[str] = []
    for chunk in fold(text).split():
        if _NAME.search(chunk):
            found += _pieces(" ".join(run))
            found.append(chunk.strip(_AROUND))
            run = []
        else:
            run.append(chunk)
    return (*found, *_pieces(" ".join(run)))


def _pieces(text: str) -> Iterator[str]:
    """The tokens of folded text without such names."""
    text = _SLASHED_DATE.sub(r"\1-\2-\3", _APOSTROPHE.sub("", text))
    at = 0
    for match in _PIECE.finditer(text):
        yield from _words(text[at : match.start()])
        at = match.end()
        if match.lastgroup == "number":
            behind_letter = match.start() > 0 and text[match.start() - 1].isalpha()
            yield match.group() if behind_letter else _number(match.group())
        else:
            yield "-" if match.lastgroup == "minus" else match.group()
    yield from _words(text[at:])


def _words(text: str) -> list[str]:
    found: list[str] = []
    word: list[str] = []
    for char in text:
        kind = unicodedata.category(char)[0]
        if kind in "LMN":
            word.append(char)
            continue
        if word:
            found.append("".join(word))
            word = []
        if kind == "S" or char in _MEANT:
            found.append(char)
    return [*found, "".join(word)] if word else found


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value


SCHEMA = object_schema({"reason": {"type": "string"}, "equal": {"type": "boolean"}})


class EqualityJudge:
    """Asks a model, with one repair. What was asked before is kept by `Equality`, not here."""

    def __init__(self, client: Client, options: JudgeOptions | None = None) -> None:
        self.client = client
        self.options = options or JudgeOptions(max_tokens=512)

    async def same(self, question: Question) -> Asked[tuple[bool, str]]:
        """Whether the two mean the same, and why. Raises what `models.asking.ask` raises."""
        return await ask_judge(
            self.client, Form("equal", SCHEMA, read_equal), self.options,
            tool=question.tool, parameter=question.parameter,
            description=question.description, gold=question.gold, given=question.given,
        )  # fmt: skip


def read_equal(text: str) -> tuple[bool, str]:
    """The verdict of a reply and its reason. Raises ReplyError when it holds none."""
    members = parse_reply(text, lambda value: isinstance(value, dict) and "equal" in value).value
    return yes_or_no(members["equal"], "equal"), reason_of(members, "reason")
