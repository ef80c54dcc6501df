"""Written equalities of numbers, checked exactly: 14 * 12 = 158 is wrong, whoever wrote it.

A wrong alarm would blame a right solution, so everything doubtful is passed over: what is not a
number on both sides, what words may change (half of, remainder, percent, units that differ), code,
clock times, ranges, running totals, rounding, and equalities that the text itself calls wrong. An
equality is reported only if it is false under every usual reading. No eval: the text is untrusted.

Usage::

    report = check_arithmetic("The morning gives 14 * 12 = 158 rolls.")
    report.checked            # 1
    report.wrong              # (Wrong(excerpt='14 * 12 = 158', expected='168'),)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from agenteval.evaluators.utility.equalities import CONVERTIBLE, Claim, Side, claims, normalise
from agenteval.evaluators.utility.expressions import evaluate
from agenteval.evaluators.utility.sentences import split_sentences

_LOOSE = Fraction(1, 10)  # "347 ≈ 400" is nobody's slip

_DOUBT = re.compile(
    r"\b(?:wrong(?:ly)?|incorrect(?:ly)?|false|mistaken?|error|contradict\w*|impossible|suppose"
    r"|assume|mod|modulo|modular|binary|base|hexadecimal|octal|guess|instead|claim\w*)\b|≠|≡|\?"
    r"|\b(?:not|never|if|would|try|trying|cannot|no)\b|n['’]t\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"\W*(?:wait|no\b|oops|sorry|hmm|actually|correction|but (?:that|this|it)\b"
    r"|(?:that|this|it|which)(?: is|['’]s| was| would|'s| can| does| must)? ?"
    r"(?:be )?(?:not|n['’]t|wrong|false|impossible|an? (?:contradiction|mistake|error)|incorrect))",
    re.I,
)
_RATIOS = frozenset({7, 10, 12, 16, 24, 30, 36, 52, 60, 100, 365, 1000, 1024, 1440, 3600, 10**6})


@dataclass(frozen=True, slots=True)
class Wrong:
    """An equality that does not hold, as written (LaTeX made plain), and what is right."""

    excerpt: str
    expected: str


@dataclass(frozen=True, slots=True)
class ArithmeticReport:
    """How many equalities could be checked, and those that are false."""

    checked: int
    wrong: tuple[Wrong, ...]


def check_arithmetic(text: str) -> ArithmeticReport:
    """Check the equalities of numbers that the system's own prose states.

    Units are those of `split_sentences`; headings, tool results, calls and fenced code are left
    out, and inline code is blanked.
    """
    units = [s for s in split_sentences(text) if s.prose]
    checked, wrong = 0, []
    for i, unit in enumerate(units):
        sentence = text[unit.start : unit.end]
        if not re.search(r"[=≈]|\\approx|\\simeq", sentence):
            continue
        after = text[units[i + 1].start : units[i + 1].end] if i + 1 < len(units) else ""
        plain = normalise(sentence)
        for claim in claims(plain):
            verdict = _judge(claim)
            if verdict is None:
                continue
            checked += 1
            if isinstance(verdict, Wrong) and not _doubtful(plain, after):
                wrong.append(verdict)
    return ArithmeticReport(checked, tuple(wrong))


def _doubtful(sentence: str, after: str) -> bool:
    return bool(_DOUBT.search(sentence) or _TAKEN_BACK.match(after))


def _judge(claim: Claim) -> Wrong | Literal[True] | None:
    """True when it holds or may hold, Wrong when it cannot, None when it says nothing to check."""
    if not (claim.left.compound or claim.right.compound) or not _same_units(claim):
        return None
    lefts, rights = _readings(claim.left), _readings(claim.right)
    if not lefts or not rights:
        return None
    if any(_holds(a, b, claim) for a in lefts for b in rights):
        return True
    first = claim.right.tokens[0]
    if claim.right.compound and claim.chained and first.kind == "num":
        running = Fraction(first.text.replace(",", ""))
        if running in lefts:  # 3 + 4 = 7 + 5 = 12, a running total
            return None
    computed = lefts[0] if claim.left.compound else rights[0]
    return Wrong(claim.excerpt, _spell(computed))


def _same_units(claim: Claim) -> bool:
    """Units written inside an expression must be one unit throughout, and placed beyond doubt."""
    named = {u for side in (claim.left, claim.right) for u in side.units if u}
    if not named:
        return True
    result = claim.right.units[-1] or claim.right.tail.rstrip("s")
    unit = next(iter(named))
    if len(named) > 1 or result != unit or claim.right.compound:
        return False
    if len(unit) == 1 and unit not in CONVERTIBLE:
        return False
    signs = {t.text for t in claim.left.tokens if t.kind == "op"}
    count = sum(map(bool, claim.left.units))
    if signs <= {"+", "-"}:
        return count == len(claim.left.units) or (count == 1 and bool(claim.left.units[-1]))
    return signs == {"*"} and count == 1


def _holds(left: Fraction, right: Fraction, claim: Claim) -> bool:
    if left == right:
        return True
    sides = ((claim.left, left, right), (claim.right, right, left))
    if claim.sign == "≈" and abs(left - right) <= _LOOSE * max(abs(left), abs(right)):
        return True
    if any(not side.compound and _rounds(side, value, exact) for side, value, exact in sides):
        return True
    if not left or not right:
        return False
    ratio = max(abs(left / right), abs(right / left))
    percent = any(t.text == "%" for s in (claim.left, claim.right) for t in s.tokens)
    if percent and ratio == 100:  # 3 / 4 * 100 = 75 %
        return True
    words = {claim.right.tail.rstrip("s"), *claim.left.units, *claim.right.units}
    return bool(words & CONVERTIBLE) and ratio in _RATIOS


def _rounds(side: Side, written: Fraction, exact: Fraction) -> bool:
    """Whether a literal is what needs more digits, rounded, cut or (as with bags) raised."""
    digits = side.tokens[-1].text if side.tokens[-1].kind == "num" else side.tokens[0].text
    places = len(digits.partition(".")[2])
    unit = Fraction(1, 10**places)
    return (exact / unit).denominator != 1 and abs(exact - written) < unit


def _readings(side: Side) -> list[Fraction]:
    """Values under the readings in use: strict precedence; 1/2*3 as 1/(2*3) and -3^2 as (-3)^2;
    1.000 as a thousand; what follows a dash at the top level (a bullet, "Step 2 - 3 + 4").
    """
    texts = [t.text for t in side.tokens]
    variants = [texts]
    european = [
        t.replace(".", "") if re.fullmatch(r"[1-9]\d{0,2}(\.\d{3})+", t) else t for t in texts
    ]
    if european != texts:
        variants.append(european)
    for i, token in enumerate(side.tokens):
        alone = token.text == "-" and (i == 0 or side.tokens[i - 1].end < token.start)
        if alone and i + 1 < len(texts) and side.tokens[i + 1].start > token.end:
            variants.insert(len(variants) if i else 0, texts[i + 1 :])
    found: list[Fraction] = []
    for variant in variants:
        for loose in (False, True):
            try:
                value = evaluate(variant, loose=loose)
            except (ValueError, ZeroDivisionError):
                continue
            if value not in found:
                found.append(value)
    glued = any(
        b.text == "(" and (a.kind == "num" or a.text == ")") for a, b in pairwise(side.tokens)
    )
    return [] if glued and "/" in texts else found


def _spell(value: Fraction) -> str:
    """A decimal where it ends within six places, else a fraction."""
    scaled = value * 10**6
    if scaled.denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    return f"{scaled.numerator / 10**6:.6f}".rstrip("0").rstrip(".")
