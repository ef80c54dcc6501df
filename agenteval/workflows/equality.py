"""Compare parameter values, by rule and then by a judge, and assign calls to gold calls.

By rule, values are compared exactly, then normalized, never by substring. All comparisons of calls,
results and states use these functions. `Equality` decides every distinct question (tool, parameter,
gold, given) once and logs it as a Judgement; concurrent questions are shared. Values that need a
judge and have no decision are `unjudged`: neither equal nor different.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.records import FailureStatus, Record, Usage, canonical_json
from agenteval.workflows.judges import EqualityJudge, ValueQuestion, failure_of


def filled(arguments: JsonValue) -> dict[str, JsonValue]:
    """Return the arguments without those that are "", [], {} or null, which count as omitted; {}
    for a value that is not an object."""
    if not isinstance(arguments, dict):
        return {}
    return {key: value for key, value in arguments.items() if value not in ("", [], {}, None)}


def kind(value: Any) -> str:
    """Return the JSON type; all numbers have one type, and booleans another."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def normalised(value: JsonValue) -> JsonValue:
    """Return one form for values that are equal by rule: texts as tokens, integral floats as int,
    objects without empty members."""
    if isinstance(value, str):
        return " ".join(tokens(value)) or value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in filled(value).items()}
    return [normalised(inner) for inner in value] if isinstance(value, list) else value


def equal_by_rule(gold: JsonValue, given: JsonValue) -> bool:
    """Return whether two values are equal by rule, without schema and judge."""
    return canonical_json(normalised(gold)) == canonical_json(normalised(given))


def contains_tokens(words: str, text: str) -> bool:
    """Return whether the text contains the tokens of `words` in sequence. False without tokens."""
    needle, haystack = tokens(words), tokens(text)
    return bool(needle) and any(
        haystack[at : at + len(needle)] == needle for at in range(len(haystack) - len(needle) + 1)
    )


def assigned(worth: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the best assignment as pairs (row, column), sorted by row.

    `worth` has a rank for every pair; 0 means no match. A pair of a higher rank is worth more than
    any number of pairs of lower ranks. Ties are resolved in favor of the earliest rows and columns,
    in order. Optimal by `scipy.optimize.linear_sum_assignment`.
    """
    rows, columns = len(worth), max(map(len, worth), default=0)
    most = min(rows, columns)
    if not most or not any(map(any, worth)):
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    early = rows * columns * most + 1  # more than the total bonus for keeping the order
    pair = early * (rows + columns) * most + 1  # more than the total bonus for early pairs
    ranks = np.array(worth, dtype=float)
    order = np.multiply.outer(np.arange(rows), np.arange(columns))
    lateness = np.add.outer(np.arange(rows), np.arange(columns))
    value = pair * (most + 1.0) ** (ranks - 1) - early * lateness + order
    chosen = linear_sum_assignment(np.where(ranks > 0, value, 0), maximize=True)
    pairs = zip(*(indices.tolist() for indices in chosen), strict=True)
    return [(i, j) for i, j in pairs if worth[i][j]]


_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
# Superscripts, subscripts and fractions, which NFKC would join to the digits before them.
_RUN_ON = re.compile(r"(?<=\d)(?=[¹²³⁰⁴-⁹₀-₉¼-¾⅐-⅞])")
# In an address, a link or an identifier (a_b) every mark counts: a.b@c.org is not a_b@c.org.
_NAME = re.compile(r"\S@\S|\w://\S|[^\W_]_[^\W_]")
_AROUND = ".,;:!?()[]{}<>\"'“”‘’"
_SLASHED_DATE = re.compile(r"(?<![\w/])(\d{1,4})/(\d{1,2})/(\d{1,4})(?![\w/])")
_PIECE = re.compile(
    r"(?P<minus>(?<![\w.])[-−‐-―](?=\.?\d)|(?<=\w)[-−](?![^\s,;.)]))"  # -5, and A- of A
    r"|(?P<mark>(?<=\d)[:/](?=\d))"  # 10:30 is not 10-30, 1/2 not 1 2
    r"|(?P<number>(?<![\w.])\.\d+|\d+(?:[.,]\d+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_MEANINGFUL = frozenset("%#&@*‰′″")  # signs that change a value: 5% is not 5, C# is not C


def fold(text: str) -> str:
    """Return the text in NFKC, case-folded, with single blanks. Keeps punctuation; 10² becomes
    10^2, not 102."""
    text = _RUN_ON.sub("^", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def tokens(text: str) -> tuple[str, ...]:
    """Return the words, numbers and signs of a text, for comparisons.

    Case, blanks, punctuation and compatible characters (NFKC) are ignored. Letters and digits are
    separated ("7pm" is "7 pm"). Symbols and % # & @ * count, and so do ":" and "/" between digits
    (except in dates like 2031/03/12), a minus, and every mark in an address, a link or a name like
    a_b. Numbers are compared by value ("2.50" is "2.5", "1,000" is "1000", ".5" is "0.5"), except
    those with leading zeros or directly after a letter, which may be codes ("v1.10").
    """
    words: list[str] = []
    run: list[str] = []
    for chunk in fold(text).split():
        if _NAME.search(chunk):
            words += [*_pieces(" ".join(run)), chunk.strip(_AROUND)]
            run = []
        else:
            run.append(chunk)
    return (*words, *_pieces(" ".join(run)))


def _pieces(text: str) -> Iterator[str]:
    """Yield the tokens of folded text without names."""
    text = _SLASHED_DATE.sub(r"\1-\2-\3", _APOSTROPHE.sub("", text))
    at = 0
    for match in _PIECE.finditer(text):
        yield from _words(text[at : match.start()])
        at = match.end()
        if (
            match.lastgroup == "number"
            and not text[max(match.start() - 1, 0) : match.start()].isalpha()
        ):
            yield _number(match.group())
        else:
            yield "-" if match.lastgroup == "minus" else match.group()
    yield from _words(text[at:])


def _words(text: str) -> list[str]:
    """Return the runs of letters, marks and digits, and the signs that count."""
    spaced = []
    for char in text:
        category = unicodedata.category(char)[0]
        sign = category == "S" or char in _MEANINGFUL
        spaced.append(char if category in "LMN" else f" {char} " if sign else " ")
    return "".join(spaced).split()


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value


Same = Literal["equal", "different", "unjudged"]
By = Literal["exact", "normalised", "judge", "enumeration", "type", "none"]
Decision = Literal["right", "wrong", "undecided"]
Schema = Mapping[str, JsonValue]
_ENUMERATION = re.compile(r"\benumerat\w{0,12}[^\[\]]{0,80}\[([^\[\]]{1,4000})\]", re.I)
_SHOWN = 500
_WORST: tuple[Same, ...] = ("different", "unjudged", "equal")

# Usage of the judge of values since the list was set in this context. Each question is charged to
# the context that asked it first.
SPENT: ContextVar[list[Usage] | None] = ContextVar("SPENT", default=None)


class Judgement(Record):
    """The decision on one value of a call, or the reason why there is none.

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
    """Return right if all are equal, wrong if one differs, else undecided."""
    if "different" in verdicts:
        return "wrong"
    return "undecided" if "unjudged" in verdicts else "right"


class Equality:
    """Decides with the schemas of the tools and, if needed, a judge.

    `schemas` are the JSON schemas of the parameters by tool. One object serves one event loop.
    Raises Unauthorized for a refused key. Other failures of the judge are recorded in the
    Judgement.
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
        """Return the ruling without a judge: `unjudged` by `none` if it would need one."""
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
        """Ask the judge about one pair of texts; concurrent callers share the answer."""
        key = canonical_json([tool, pair.path, pair.gold, pair.given])
        self._log.setdefault(key, None)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._judged(tool, pair))
        # If one waiter is cancelled, the others still get the answer.
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
        except Exception as error:  # noqa: BLE001  recorded as a judgement with the reason
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
    if not gold.strip() or not given.strip():  # a blank text is not a paraphrase of a value
        return Ruling("different", "normalised")
    return Ruling("unjudged", "none", (pair,))


def _property(schema: Schema | None, key: str) -> Schema:
    """Return the schema of a property, {} when there is none."""
    return _object(_object((schema or {}).get("properties")).get(key))


def _object(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}
