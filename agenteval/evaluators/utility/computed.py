"""Criteria that are computed from a run's reference answer; no model is asked.

A criterion of a criteria file with `"judge": "numeric"` (or another of KINDS) gets its best level
where the run's final answer is the reference, its worst where it is not. `judge_options` belong to
the kind, see `check_computed`. What is looked at is the last turn of what the judge sees: of a
perturbed copy its text. The answer of `numeric`, `expression` and `set` is the last \\boxed{...},
else what stands behind the last "answer:", "answer is" or "solution:", else the last sentence. An
answer that is not there is no right answer; a run without a usable reference, and what takes too
long, has no score.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from agenteval.engine import Outcome
from agenteval.errors import InputError, ReplyError
from agenteval.evaluators.base import Evaluator, Unit, cell_key
from agenteval.evaluators.utility.answers import Answer, NoAnswer, result_of
from agenteval.evaluators.utility.sandbox import finds, passes
from agenteval.models.reply import parse_reply
from agenteval.readers.messages import is_answer
from agenteval.readers.view import HEADING
from agenteval.records import CallRecord, Criterion, Source, canonical_json
from agenteval.store import Trial

SECONDS = 10.0  # of a unit test, and of a search for a pattern


class WithComputed:
    """A judge of the other criteria, and computation of those that say so.

    Results stand under the source of the judge; how a criterion is computed is part of what the
    criterion is.
    """

    def __init__(self, inner: Evaluator, *, allow_code: bool = False) -> None:
        self.inner = inner
        self.allow_code = allow_code

    @property
    def source(self) -> Source:
        """That of the judge."""
        return self.inner.source

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """As the judge spreads its own; what is computed goes with the first call."""
        computed = tuple(c for c in criteria if c.judge)
        own = self.inner.batches([c for c in criteria if not c.judge])
        return [own[0] + computed, *own[1:]] if own else [computed] if computed else []

    async def evaluate(self, unit: Unit) -> Outcome:
        """One result per criterion; raises what the judge raises."""
        asked = tuple(c for c in unit.criteria if not c.judge)
        if len(asked) == len(unit.criteria):
            return await self.inner.evaluate(unit)
        call: CallRecord | Trial = CallRecord(shown=())
        results = {}
        if asked:
            outcome = await self.inner.evaluate(replace(unit, criteria=asked))
            call = outcome.call
            results = dict(zip((c.id for c in asked), outcome.results, strict=True))
        for criterion in unit.criteria:
            if criterion.judge:
                answer = await asyncio.to_thread(self._answer, unit, criterion)
                key = cell_key(unit, criterion, self.source.sha256)
                results[criterion.id] = result_of(criterion, key, answer)
        return Outcome(tuple(results[c.id] for c in unit.criteria), call)

    def _answer(self, unit: Unit, criterion: Criterion) -> Answer | NoAnswer:
        options = criterion.judge_options
        wanted = options.get("pattern") or options.get("test") or unit.run.reference
        if wanted is None:
            return NoAnswer("unscored:unsupported", "the run has no reference")
        if criterion.judge == "unit_test" and not self.allow_code:
            return NoAnswer("unscored:unsupported", "runs the system's code: say --allow-code")
        try:
            right, why = _KINDS[criterion.judge or ""](
                last_turn(unit.view.trajectory), str(wanted), options
            )
        except TimeoutError as error:
            return NoAnswer("error:timeout", str(error))
        except Ambiguous as error:
            return NoAnswer("unscored:parse", str(error))
        except ValueError as error:  # of the reference, not of the answer
            return NoAnswer("unscored:unsupported", f"the reference cannot be used: {error}")
        label = criterion.accepted_values[-1 if right else 0]
        return Answer(label, criterion.value_of(label), "exact", why)


def check_computed(criteria: Sequence[Criterion], references: Sequence[str | None]) -> None:
    """Raise InputError for a criterion that cannot be computed as it says, and where no run has a
    reference that its kind can use."""
    given = [reference for reference in references if reference is not None]
    for criterion in (leaf for c in criteria for _, leaf in c.leaves()):
        where, options = f"criterion {criterion.id}", criterion.judge_options
        if not criterion.judge:
            if options:
                raise InputError("judge_options need a judge", where)
            continue
        _check_options(criterion, where)
        levels = criterion.scale in ("binary", "ordinal") and criterion.order != "unclear"
        if not levels or criterion.allow_na or criterion not in criteria:
            raise InputError(
                "is computed: it needs levels from wrong to right, without parts or n/a", where
            )
        if {"pattern", "test"} & options.keys():
            continue
        usable = _USABLE.get(criterion.judge, bool)
        if not any(usable(reference) for reference in given):
            what = f"that {criterion.judge} can use" if given else "at all"
            raise InputError(f"no run has a reference {what}", where)


def _check_options(criterion: Criterion, where: str) -> None:
    known = _OPTIONS.get(criterion.judge or "")
    if known is None:
        raise InputError(f"no judge {criterion.judge!r}; known: {', '.join(_OPTIONS)}", where)
    for name in criterion.judge_options:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"{criterion.judge} has no option {name!r}; it has {listed}", where)
    try:
        re.compile(str(criterion.judge_options.get("pattern", "")))
    except re.error as error:
        raise InputError(f"the pattern cannot be used: {error}", where) from None


def last_turn(trajectory: str) -> str:
    """The text behind the last heading of a turn that says anything (AutoGen's TERMINATE says
    nothing); all of it where there is no heading."""
    lines = trajectory.splitlines()
    end = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        if HEADING.match(lines[at]):
            if is_answer(turn := "\n".join(lines[at + 1 : end])):
                return turn.strip()
            end = at
    return "\n".join(lines[:end]).strip()


_SAID = re.compile(r"\b(?:answer|solution)s?\b(?:\s+is|\s*[:=])\s*([^\n]+)", re.I)
_ABOUT = re.compile(r"[,;(]?\s*(?:\bis\s+)?(?:\babout\b|\bapprox(?:imately)?\b\.?|≈|~).*", re.I)


def final_answer(text: str) -> str:
    """The part of a text that states its answer, see the module; LaTeX in plain signs."""
    boxes = [text[m.end() : _closing(text, m.end())] for m in re.finditer(r"\\boxed\{", text)]
    if boxes:
        stated = boxes[-1]
    elif said := _SAID.findall(text):
        stated = said[-1]
    else:
        stated = re.split(r"(?<=[.!?])\s+|\n+", text.strip())[-1]
    return _plain(stated)


def _closing(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if not depth:
            return at
    return len(text)


def _plain(text: str) -> str:
    """LaTeX fractions, roots and signs, and typographic ones, in signs of ASCII."""
    for before, after in (
        (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
        (r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)"),
        (r"√\(", "sqrt("), (r"√(\w+)", r"sqrt(\1)"), (r"\\(?:cdot|times)|[·×∙]", "*"),
        (r"\\pi\b|π", " pi "), (r"\\(?:left|right|,|;|!|quad)|\$|\*\*(?=\D|$)", " "), (r"−|–", "-"),
        (r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)", ""), (r"\\%", "%"),
    ):  # fmt: skip
        text = re.sub(before, after, text)
    return _ABOUT.sub("", text).strip() or text.strip()


def _stated(text: str) -> str:
    """What stands behind the last "=", else the last ":", else the first "is" or "are"."""
    for sign, which in ((r"=", -1), (r":(?!\d)", -1), (r"\b(?:is|are)\b", 1)):
        parts = re.split(sign, text, maxsplit=1 if which == 1 else 0)
        if len(parts) > 1 and re.search(r"\d|pi\b", parts[which]):
            return parts[which]
    return text


_NUMBER = re.compile(
    r"(?:(?<![\w)])-)?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3}(?!\d))?(?:\s*/\s*\d+(?:\.\d+)?)?|-?\.\d+"
)
# What makes a number a part of something else: an expression, a list, a range, a date, a mixed
# number, a decimal comma.
_BEFORE = re.compile(r"(?:[\w)]\s*[*^/+]{1,2}\s*\(?|\d\s*-\s*|sqrt\s*\(|\d[,:.eE ]|\d\s*,\s+)$")
_AFTER = re.compile(
    r"\s*(?:[*^/√²³½¼¾]|pi\b|sqrt|[-+]\s*[\d(]|(?:,|\bor\b|\band\b)\s*-?\d+\W*$|\d)|[,:.]\d|-\d|[eE]\d"
)
_MOST_DIGITS = 300


class Ambiguous(ValueError):
    """An answer that states no single plain number."""


def number_of(text: str) -> Fraction | None:
    """The first number behind what leads to the answer, else the last one of the text; a percentage
    is its hundredth. None without one. Raises Ambiguous where that number is a part of something
    else: an expression, a list, a range, a date, a mixed number, a decimal comma."""
    text = re.sub(r"\((-?\d+)\)/\((-?\d+)\)", r"\1/\2", text)
    lead = _stated(text)
    found = [*_NUMBER.finditer(lead)][: 1 if lead != text else None][-1:]
    if not found:
        return None
    source, end = found[0].string, found[0].end()
    top, _, bottom = found[0].group().replace(" ", "").partition("/")
    before, after = source[: found[0].start()], _AFTER.match(source, end)
    if len(top) + len(bottom) > _MOST_DIGITS or _BEFORE.search(before) or after:
        raise Ambiguous(f"no single plain number: {source.strip()[:80]!r}")
    try:
        value = Fraction(top) / Fraction(bottom or 1)
    except ZeroDivisionError:
        return None
    return value / 100 if source[end : end + 2].strip().startswith("%") else value


def _reference_number(reference: str) -> Fraction | None:
    try:
        return number_of(_plain(reference))
    except Ambiguous:
        return None


def _numeric(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    wanted = _reference_number(reference)
    if wanted is None:
        raise ValueError(f"{reference[:40]!r} holds no number")
    stated = number_of(final_answer(text))
    if stated is None:
        return False, "no number is stated"
    share = Fraction(options.get("relative", 1e-9)) * max(abs(stated), abs(wanted))
    near = abs(stated - wanted) <= max(share, Fraction(options.get("absolute", 1e-12)))
    return near, f"states {_shown(stated)}, the reference is {_shown(wanted)}"


def _shown(value: Fraction) -> str:
    return (
        str(value)[:40]
        if max(abs(value.numerator), value.denominator) > 10**15
        else f"{float(value):g}"
    )


def _exact(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    def folded(value: str) -> str:
        value = " ".join(value.split())
        return value if options.get("case") else value.casefold()

    return folded(text) == folded(reference), "compared letter by letter"


def elements(text: str) -> frozenset[str | Fraction]:
    """The elements of a list in any order: parted by commas, semicolons, line ends, "and"; numbers
    by value, words without regard to case."""
    text = _stated(text).strip(" .{}[]()")
    parts = [p.strip(" .") for p in re.split(r"[,;\n]|\band\b", text)]
    numbers = {p: number_of(p) if _NUMBER.fullmatch(p) else None for p in parts if p}
    return frozenset(p.casefold() if n is None else n for p, n in numbers.items())


def _set(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    stated, wanted = elements(final_answer(text)), elements(_plain(reference))
    shown = ", ".join(sorted(map(str, stated ^ wanted)))
    return stated == wanted, f"differ by {shown[:200]}" if stated != wanted else "the same elements"


def _json(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    wanted = json.loads(reference)
    try:
        stated = parse_reply(text).value
    except ReplyError:
        return False, "no JSON is stated"
    keys = options.get("keys")
    if keys is not None and isinstance(wanted, dict):
        wanted = {key: wanted.get(key) for key in keys}
        stated = {key: stated.get(key) for key in keys} if isinstance(stated, dict) else stated
    same = _by_value(stated) == _by_value(wanted)
    return same, "equal by value" if same else f"states {canonical_json(stated)[:200]}"


def _by_value(value: Any) -> str:
    """One text for values that are equal: 1 and 1.0, objects in any order."""
    return canonical_json(json.loads(json.dumps(value), parse_int=float))


def _regex(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    return finds(reference, text, SECONDS), "searched for the pattern"


def _expression(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    from agenteval.evaluators.utility.expressions import expressions_of, same_expressions

    wanted = expressions_of(_plain(reference))
    if not wanted:
        raise ValueError(f"{reference[:40]!r} is no expression")
    stated = expressions_of(_stated(final_answer(text)))
    shown, due = (", ".join(map(str, some)) for some in (stated, wanted))
    why = f"states {shown}, the reference is {due}" if stated else "no expression is stated"
    return same_expressions(stated, wanted), why


def _unit_test(text: str, reference: str, options: Mapping[str, Any]) -> tuple[bool, str]:
    blocks = re.findall(r"```(?:python|py)?\n(.*?)```", text, re.S)
    return passes(blocks[-1] if blocks else text, reference, SECONDS)


def _is_json(reference: str) -> bool:
    try:
        json.loads(reference)
    except ValueError:
        return False
    return True


def _is_expression(reference: str) -> bool:
    from agenteval.evaluators.utility.expressions import expressions_of

    return bool(expressions_of(_plain(reference)))


_KINDS: dict[str, Callable[[str, str, Mapping[str, Any]], tuple[bool, str]]] = {
    "exact": _exact, "numeric": _numeric, "expression": _expression, "set": _set, "json": _json,
    "regex": _regex, "unit_test": _unit_test,
}  # fmt: skip
_OPTIONS: dict[str, tuple[str, ...]] = {
    "exact": ("case",), "numeric": ("relative", "absolute"), "expression": (), "set": (),
    "json": ("keys",), "regex": ("pattern",), "unit_test": ("test",),
}  # fmt: skip
_USABLE: dict[str, Callable[[str], bool]] = {
    "numeric": lambda reference: _reference_number(reference) is not None,
    "json": _is_json, "expression": _is_expression,
}  # fmt: skip
KINDS = tuple(_KINDS)
