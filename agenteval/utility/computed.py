"""Criteria that are computed from a run's reference answer, without a model.

A criterion with `"judge": "numeric"` (or another of KINDS) gets its best level if the run's final
answer matches the reference, else its worst level. Only the last turn that the judge sees counts.
For `numeric` and `set`, the answer is the last \\boxed{...}, else the text after the last
"answer:", "answer is" or "solution:", else the last sentence. A missing answer is wrong. A run
without a usable reference, or with a search that takes too long, is not scored.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key
from agenteval.errors import InputError, ReplyError
from agenteval.models.reply import parse_reply
from agenteval.readers.messages import is_answer
from agenteval.readers.view import HEADING
from agenteval.records import CallRecord, Criterion, canonical_json
from agenteval.records.trial import Trial
from agenteval.utility.answers import LevelAnswer, NoAnswer, result_of

SECONDS = 10.0  # time limit of a pattern search
_SEARCH = "import re, sys; p, t = sys.stdin.read().split('\\0', 1); print(bool(re.search(p, t)))"
_MOST_DIGITS = 300

_STATEMENT = re.compile(r"\b(?:answer|solution)s?\b(?:\s+is|\s*[:=])\s*([^\n]+)", re.I)
_ABOUT = re.compile(r"[,;(]?\s*(?:\bis\s+)?(?:\babout\b|\bapprox(?:imately)?\b\.?|≈|~).*", re.I)
_NUMBER = re.compile(
    r"(?:(?<![\w)])-)?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3}(?!\d))?(?:\s*/\s*\d+(?:\.\d+)?)?|-?\.\d+"
)
# Text next to a number that makes it part of an expression, a list, a range, a date, a mixed
# number, or a number with a decimal comma.
_BEFORE = re.compile(r"(?:[\w)]\s*[*^/+]{1,2}\s*\(?|\d\s*-\s*|sqrt\s*\(|\d[,:.eE ]|\d\s*,\s+)$")
_AFTER = re.compile(
    r"\s*(?:[*^/√²³½¼¾]|pi\b|sqrt|[-+]\s*[\d(]|(?:,|\bor\b|\band\b)\s*-?\d+\W*$|\d)|[,:.]\d|-\d|[eE]\d"
)
_PLAIN_SIGNS = (
    (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
    (r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)"),
    (r"√\(", "sqrt("),
    (r"√(\w+)", r"sqrt(\1)"),
    (r"\\(?:cdot|times)|[·×∙]", "*"),
    (r"\\pi\b|π", " pi "),
    (r"\\(?:left|right|,|;|!|quad)|\$|\*\*(?=\D|$)", " "),
    (r"−|–", "-"),
    (r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)", ""),
    (r"\\%", "%"),
)


class WithComputed:
    """A judge that computes the criteria with a `judge` and passes the others to `inner`.

    Results are stored under the source of `inner`; the criterion itself says how it is computed.
    """

    def __init__(self, inner: RunJudge) -> None:
        self.inner = inner
        self.source = inner.source

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the batches of the inner judge; computed criteria join the first one."""
        computed = tuple(c for c in criteria if c.judge)
        batches = self.inner.batches([c for c in criteria if not c.judge])
        return [batches[0] + computed, *batches[1:]] if batches else [computed] if computed else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion. Raises what the inner judge raises."""
        judged = tuple(c for c in unit.criteria if not c.judge)
        call: CallRecord | Trial = CallRecord(shown=())
        results = {}
        if judged:
            outcome = await self.inner.evaluate(replace(unit, criteria=judged))
            call = outcome.call
            results = dict(zip((c.id for c in judged), outcome.results, strict=True))
        for criterion in unit.criteria:
            if criterion.judge:
                answer = await asyncio.to_thread(_answer, unit, criterion)
                key = cell_key(unit, criterion, self.source.sha256)
                results[criterion.id] = result_of(criterion, key, answer)
        return Outcome(tuple(results[c.id] for c in unit.criteria), call)


def _answer(unit: JudgeUnit, criterion: Criterion) -> LevelAnswer | NoAnswer:
    reference = criterion.judge_options.get("pattern") or unit.run.reference
    if reference is None:
        return NoAnswer("unscored:unsupported", "the run does not have a reference")
    text, compare = last_turn(unit.view.trajectory), KINDS[criterion.judge or ""].compare
    try:
        right, why = compare(text, str(reference), criterion.judge_options)
    except TimeoutError as error:
        return NoAnswer("error:timeout", str(error))
    except AmbiguousNumber as error:
        return NoAnswer("unscored:parse", str(error))
    except ValueError as error:  # of the reference, not of the answer
        return NoAnswer("unscored:unsupported", f"the reference cannot be used: {error}")
    label = criterion.accepted_values[-1 if right else 0]
    return LevelAnswer(label, criterion.value_of(label), "exact", why)


def check_computed(criteria: Sequence[Criterion], references: Sequence[str | None]) -> None:
    """Raise InputError if a criterion's `judge` does not fit it, or if no run has a reference that
    its kind can use."""
    for criterion in (leaf for c in criteria for _, leaf in c.leaves()):
        where, options = f"criterion {criterion.id}", criterion.judge_options
        if not criterion.judge:
            if options:
                raise InputError("judge_options need a judge", where)
            continue
        kind = _kind_of(criterion, where)
        levels = criterion.scale in ("binary", "ordinal") and criterion.order != "unclear"
        if not levels or criterion.allow_na or criterion not in criteria:
            needs = "levels from wrong to right, without sub-criteria or n/a"
            raise InputError(f"is computed: it needs {needs}", where)
        if "pattern" not in options and not any(r and kind.can_use(r) for r in references):
            usable = f" that {criterion.judge} can use" if any(references) else ""
            raise InputError(f"no run has a reference{usable}", where)


def _kind_of(criterion: Criterion, where: str) -> ReferenceCheck:
    name, options = criterion.judge or "", criterion.judge_options
    if name in ("expression", "unit_test"):
        advice = "compute it with a judge in Python, see docs/computed.md"
        raise InputError(f"the judge {name!r} was removed: {advice}", where)
    if name not in KINDS:
        raise InputError(f"no judge {name!r}; known: {', '.join(KINDS)}", where)
    if unknown := [option for option in options if option not in KINDS[name].options]:
        listed = ", ".join(KINDS[name].options) or "none"
        raise InputError(f"{name} has no option {unknown[0]!r}; it has {listed}", where)
    try:
        re.compile(str(options.get("pattern", "")))
    except re.error as error:
        raise InputError(f"invalid pattern: {error}", where) from None
    return KINDS[name]


def last_turn(trajectory: str) -> str:
    """Return the last turn with an answer (AutoGen's TERMINATE does not count), or the whole text
    if it has no headings."""
    lines = trajectory.splitlines()
    end = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        if HEADING.match(lines[at]):
            if is_answer(turn := "\n".join(lines[at + 1 : end])):
                return turn.strip()
            end = at
    return "\n".join(lines[:end]).strip()


def final_answer(text: str) -> str:
    """Return the part of a text that states its answer, with LaTeX as plain text."""
    _, opening, box = text.rpartition("\\boxed{")
    if opening:
        depth, end = 1, 0
        while end < len(box) and (depth := depth + (box[end] == "{") - (box[end] == "}")):
            end += 1
        return _plain(box[:end])
    sentences = re.split(r"(?<=[.!?])\s+|\n+", text.strip())
    return _plain([*sentences, *_STATEMENT.findall(text)][-1])


def _plain(text: str) -> str:
    for pattern, sign in _PLAIN_SIGNS:
        text = re.sub(pattern, sign, text)
    return _ABOUT.sub("", text).strip() or text.strip()


def _after_lead(text: str) -> str:
    """Return the text after the last "=", else the last ":", else the first "is" or "are"."""
    for sign, which in ((r"=", -1), (r":(?!\d)", -1), (r"\b(?:is|are)\b", 1)):
        parts = re.split(sign, text, maxsplit=1 if which == 1 else 0)
        if len(parts) > 1 and re.search(r"\d|pi\b", parts[which]):
            return parts[which]
    return text


class AmbiguousNumber(ValueError):
    """The answer does not state a single plain number."""


def number_of(text: str) -> Fraction | None:
    """Return the first number after "=", ":" or "is", else the last in the text, or None.

    A percentage is divided by 100. Raises AmbiguousNumber if the number is part of an expression, a
    list, a range, a date or a mixed number, or has a decimal comma.
    """
    text = re.sub(r"\((-?\d+)\)/\((-?\d+)\)", r"\1/\2", text)
    lead = _after_lead(text)
    numbers = [*_NUMBER.finditer(lead)]
    if not numbers:
        return None
    number = numbers[-1 if lead == text else 0]
    top, _, bottom = number.group().replace(" ", "").partition("/")
    is_part = _BEFORE.search(lead[: number.start()]) or _AFTER.match(lead, number.end())
    if len(top) + len(bottom) > _MOST_DIGITS or is_part:
        raise AmbiguousNumber(f"no single plain number: {lead.strip()[:80]!r}")
    try:
        value = Fraction(top) / Fraction(bottom or 1)
    except ZeroDivisionError:
        return None
    return value / 100 if lead[number.end() :][:2].strip().startswith("%") else value


def _numeric(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    try:
        expected = number_of(_plain(reference))
    except AmbiguousNumber:
        expected = None
    if expected is None:
        raise ValueError(f"{reference[:40]!r} does not contain a number")
    stated = number_of(final_answer(text))
    if stated is None:
        return False, "the answer does not state a number"
    relative = Fraction(options.get("relative", 1e-9)) * max(abs(stated), abs(expected))
    near = abs(stated - expected) <= max(relative, Fraction(options.get("absolute", 1e-12)))
    return near, f"states {_shown(stated)}, the reference is {_shown(expected)}"


def _shown(value: Fraction) -> str:
    large = max(abs(value.numerator), value.denominator) > 10**15
    return str(value)[:40] if large else f"{float(value):g}"


def _exact(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    pair = [" ".join(value.split()) for value in (text, reference)]
    if not options.get("case"):
        pair = [value.casefold() for value in pair]
    return pair[0] == pair[1], "compared letter by letter"


def _elements(text: str) -> frozenset[str | Fraction]:
    parts = re.split(r"[,;\n]|\band\b", _after_lead(text).strip(" .{}[]()"))
    values = [p.strip(" .") for p in parts]
    numbers = {v: number_of(v) if _NUMBER.fullmatch(v) else None for v in values if v}
    return frozenset(v.casefold() if n is None else n for v, n in numbers.items())


def _set(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    stated, expected = _elements(final_answer(text)), _elements(_plain(reference))
    shown = ", ".join(sorted(map(str, stated ^ expected)))
    return stated == expected, f"differ by {shown[:200]}" if shown else "the same elements"


def _json(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    pair = [json.loads(reference)]
    try:
        pair.append(parse_reply(text).value)
    except ReplyError:
        return False, "the answer does not contain JSON"
    keys = options.get("keys")
    if keys is not None and isinstance(pair[0], dict):
        pair = [{k: v.get(k) for k in keys} if isinstance(v, dict) else v for v in pair]
    # 1 and 1.0 are equal, objects are equal in any order
    texts = [canonical_json(json.loads(json.dumps(v), parse_int=float)) for v in pair]
    same = texts[0] == texts[1]
    return same, "equal by value" if same else f"states {canonical_json(pair[1])[:200]}"


def _regex(text: str, pattern: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    # Use a process that can be killed, because a pattern may backtrack for hours.
    try:
        search = subprocess.run(  # noqa: S603  this interpreter with a constant program
            [sys.executable, "-I", "-X", "utf8", "-c", _SEARCH],
            input=f"{pattern}\0{text}".encode("utf-8", "replace"),
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"not finished after {SECONDS:g} s") from None
    if search.returncode:
        error = search.stderr.decode("utf-8", "replace").strip()
        raise ValueError(error.rpartition("\n")[2][:200])
    return search.stdout.strip() == b"True", "searched for the pattern"


@dataclass(frozen=True)
class ReferenceCheck:
    """A comparison of the last turn with the reference. `compare` returns whether they match and
    an explanation; it raises ValueError for an unusable reference."""

    compare: Callable[[str, str, Mapping[str, Any]], tuple[bool, str]]
    options: tuple[str, ...] = ()

    def can_use(self, reference: str) -> bool:
        """Return whether `compare` accepts the reference."""
        try:
            self.compare("", reference, {})
        except ValueError:
            return False
        return True


KINDS = {
    "exact": ReferenceCheck(_exact, ("case",)),
    "numeric": ReferenceCheck(_numeric, ("relative", "absolute")),
    "set": ReferenceCheck(_set),
    "json": ReferenceCheck(_json, ("keys",)),
    "regex": ReferenceCheck(_regex, ("pattern",)),
}
