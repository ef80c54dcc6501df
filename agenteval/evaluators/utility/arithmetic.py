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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from agenteval.evaluators.utility.expressions import evaluate
from agenteval.evaluators.utility.sentences import split_sentences

_MAX_CHARS = 400
_LOOSE = Fraction(1, 10)  # "347 ≈ 400" is nobody's slip

_LATEX: tuple[tuple[str, str], ...] = (
    (r"\\(?:text|mathrm|mathbf|operatorname|boxed)\s*\{([^{}]*)\}", r" \1 "),
    (r"(\d)\s*\\[dt]?frac", r"\1 ¤ \\frac"),  # 2\frac{1}{2} is a mixed number: not read
    (r"\\[dt]?frac\s*(\d)\s*(\d)(?!\d)", r"((\1)/(\2))"),
    (r"\^\s*\{([^{}]*)\}", r"^(\1)"),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
)
_PLAIN: tuple[tuple[str, str], ...] = (
    (r"\\(?:times|cdot|ast)\b", "*"),
    (r"\\div\b", "/"),
    (r"\\(?:approx|simeq)\b", "≈"),
    (r"\\sqrt\b", "√"),
    (r"\\(?:left|right|big|Big|quad|qquad|displaystyle)(?![a-zA-Z])", " "),
    (r"\\[,;:! ]|\\\(|\\\)|\\\[|\\\]|~", " "),
    (r"\\\\", "\n"),
    (r"\\([%$€£])", r"\1"),
    (r"\{,\}", ","),
    (r"&(?==)|(?<==)&", " "),
    (r"[$€£]", " "),
    (r"\*\*(?!\s?\d)|(?<![\d)] )(?<![\d)])\*\*", " ¦ "),  # bold, not a power
    (r"\*\*", "^"),
    (r"[×·∙⋅∗✕]", "*"),
    (r"÷", "/"),
    (r"[−]", "-"),
    (r"²", "^2"),
    (r"³", "^3"),
    (r"(?<=\d) [xX] (?=\d)|(?<=\d)[xX](?=\d)", "*"),
)
_TOKEN = re.compile(
    r"(?P<num>\d+(?:[.,:]\d+)*)|(?P<eq>(?<![=<>!:+*/-])=(?![=>])|≈)|(?P<op>[-+*/^()%])"
    r"|(?P<word>[^\W\d_][\w'’]*)|(?P<break>\n)|(?P<other>\S)"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A word just before or after the equality that would change what it says.
_BINDING = _words(
    "of times plus minus and or root roots sqrt half twice thrice double triple squared cubed "
    "per over divided by less log ln sin cos tan mod modulo to from than through into choose "
    "percent multiplied subtract subtracted add added increased decreased product sum "
    "difference quotient ratio power base binary hex dozen hundred thousand million billion k m "
    "remainder rest r left with rounded about roughly nearly almost approximately degrees up "
    "down x points "
)
# Words that change what follows even from a distance: half of the remaining 12 + 6.
_STRONG = _words(
    "half twice double triple root square sum product difference quotient third quarter percent "
    "thirds quarters fifths "
)
_OF_WHAT = _words("them these those it all which")  # of: what the result is part of
_RESULT = _words("comes come came amounts amount sums leads lead")  # to: announce a result
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
_CONVERTIBLE = _words(
    "s sec second min minute h hr hour day week month year mm cm m km inch inches in foot feet "
    "ft yard mile g mg kg gram kilogram pound lb ounce oz ton tonne l ml litre liter cl dl cent "
    "euro dollar penny pence pair dozen score meter metre centimeter centimetre kilometer "
    "kilometre kb mb gb byte bit percent quarter fold "
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
        plain = _normalise(sentence)
        for claim in _claims(plain):
            verdict = _judge(claim)
            if verdict is None:
                continue
            checked += 1
            if isinstance(verdict, Wrong) and not _doubtful(plain, after):
                wrong.append(verdict)
    return ArithmeticReport(checked, tuple(wrong))


def _normalise(text: str) -> str:
    """Inline code blanked, simple LaTeX and typographic signs in plain form."""
    text = re.sub(r"`[^`\n]*`", " ¦ ", text)
    for pattern, plain in _LATEX:
        text = re.sub(pattern, plain, text)
    for pattern, plain in _PLAIN:
        text = re.sub(pattern, plain, text)
    return text


def _doubtful(sentence: str, after: str) -> bool:
    return bool(_DOUBT.search(sentence) or _TAKEN_BACK.match(after))


# Finding claims


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # num, eq, op, word, break, other
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Side:
    """Tokens of one side without unit words; `units` has one entry per number, "" for none."""

    tokens: tuple[_Token, ...]
    units: tuple[str, ...]
    tail: str = ""  # the word that follows the last side

    @property
    def compound(self) -> bool:
        return any(t.kind == "op" and t.text in "+-*/^%" for t in self.tokens[1:])


@dataclass(frozen=True, slots=True)
class _Claim:
    left: _Side
    right: _Side
    sign: Literal["=", "≈"]
    excerpt: str
    chained: bool  # another sign follows the right side
    spaced: bool


def _claims(text: str) -> Iterator[_Claim]:
    tokens = [_Token(m.lastgroup or "", m.group(), *m.span()) for m in _TOKEN.finditer(text)]
    signs = [i for i, t in enumerate(tokens) if t.kind == "eq"]
    for k, sign in enumerate(signs):
        low = signs[k - 1] + 1 if k else 0
        high = signs[k + 1] if k + 1 < len(signs) else len(tokens)
        first, last = _left_edge(tokens, low, sign), _right_edge(tokens, sign + 1, high)
        left, right = _side(text, tokens, first, sign), _side(text, tokens, sign + 1, last)
        if left is None or right is None:
            continue
        if not (first == low and k) and not _free_before(text, tokens, first):
            continue
        chained = last == high < len(tokens)
        if not chained and not _free_after(tokens, last):
            continue
        if last < high and tokens[last].kind == "word":
            right = replace(right, tail=tokens[last].text.casefold())
        start, end = tokens[first].start, tokens[last - 1].end
        if end - start <= _MAX_CHARS:
            spaced = text[tokens[sign].start - 1].isspace()
            name: Literal["=", "≈"] = "=" if tokens[sign].text == "=" else "≈"
            excerpt = " ".join(text[start:end].split())
            yield _Claim(left, right, name, excerpt, chained, spaced)


def _belongs(tokens: Sequence[_Token], i: int) -> bool:
    """Numbers and operators; a word that is a unit: after a number, before an operator or sign."""
    token = tokens[i]
    if token.kind in ("num", "op"):
        return True
    if token.kind != "word" or token.text.casefold() in _BINDING - {"of", "m", "percent"}:
        return False
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    follows = i > 0 and (tokens[i - 1].kind == "num" or tokens[i - 1].text == "%")
    if token.text == "of":
        return follows and tokens[i - 1].text == "%" and after is not None and after.kind == "num"
    return follows and after is not None and (after.kind == "eq" or after.text in "+-*/)")


def _left_edge(tokens: Sequence[_Token], low: int, sign: int) -> int:
    """Start of the expression before a sign; stops behind an unclosed parenthesis."""
    i, depth = sign, 0
    while i > low and _belongs(tokens, i - 1):
        if tokens[i - 1].text == ")":
            depth += 1
        elif tokens[i - 1].text == "(":
            if depth == 0:
                return i
            depth -= 1
        i -= 1
    if depth:  # "1) 14 * 12": the marker of a step
        cut = next((j for j in range(i, sign) if tokens[j].text == ")"), i)
        return cut + 1
    return i


def _right_edge(tokens: Sequence[_Token], start: int, high: int) -> int:
    """End of the expression after a sign; stops before a parenthesis that was opened earlier."""
    i, depth = start, 0
    while i < high and _belongs(tokens, i):
        if tokens[i].kind == "word" and _per(tokens, i + 1, high):  # 25 m/s
            return i
        if tokens[i].text == "(":
            depth += 1
        elif tokens[i].text == ")":
            if depth == 0:
                return i
            depth -= 1
        i += 1
    return i


def _per(tokens: Sequence[_Token], i: int, high: int) -> bool:
    return i + 1 < high and tokens[i].text == "/" and tokens[i + 1].kind == "word"


def _free_before(text: str, tokens: Sequence[_Token], first: int) -> bool:
    """Whether nothing before the expression can be part of it."""
    if first == 0:
        return True
    before = tokens[first - 1]
    glued = before.end == tokens[first].start
    if before.kind == "word":
        near = [t.text.casefold() for t in tokens[max(0, first - 4) : first] if t.kind == "word"]
        bound = near[-1] in _BINDING and not (
            near[-1] == "to" and _RESULT.intersection(near[-2:-1])
        )
        return not glued and not bound and not _STRONG.intersection(near)
    if before.text == ":":
        return not text[before.start - 1 : before.start].isspace() and not glued
    return before.kind == "break" or before.text in (
        ",",
        ";",
        ".",
        "(",
        "¦",
        '"',
        "“",
        "–",
        "—",
        ")",
    )


def _free_after(tokens: Sequence[_Token], last: int) -> bool:
    """Whether nothing after the last expression can be part of it."""
    rest = tokens[last : last + 3]
    if not rest:
        return True
    after, end = rest[0], tokens[last - 1].end
    if after.kind == "word":
        if after.text == "of" and len(rest) > 1 and rest[1].text in _OF_WHAT:
            return True
        if after.text.casefold() in _BINDING - {"m", "left", "with", "or"}:
            return False
        if after.text.casefold() in ("with", "or", "left") and any(t.kind == "num" for t in rest):
            return False
        # "2 hours 15 minutes", "2 h and 15 min", "2x"
        single = after.start == end and len(after.text) == 1
        numbers = any(t.kind == "num" for t in rest[1:]) and rest[1].text not in (",", ".", ";")
        return not numbers and not (single and after.text.casefold() not in _CONVERTIBLE)
    if after.text == "." and len(rest) > 1 and rest[1].text in (".", "…"):
        return False
    return after.kind == "break" or after.text in (",", ";", ".", ")", "¦", '"', "”", ":", "!", "’")


def _side(text: str, tokens: Sequence[_Token], first: int, last: int) -> _Side | None:
    """Tokens of a side, units set apart; None when it is empty or cannot be an expression."""
    if first >= last or tokens[last - 1].text in "+-*/^(" or tokens[first].text in "+*/^%)":
        return None
    kept: list[_Token] = []
    units: list[str] = []
    for token in tokens[first:last]:
        if token.kind == "word" and token.text != "of":
            if not units:
                return None
            units[-1] = token.text.casefold().rstrip("s") or token.text
            continue
        if token.kind == "num":
            if not _NUMBER.fullmatch(token.text):
                return None
            units.append("")
        kept.append(token)
    if not units or _range(kept):
        return None
    return _Side(tuple(kept), tuple(units))


def _range(tokens: Sequence[_Token]) -> bool:
    """A sole glued dash, as in 10-15, may be a range; spaced or repeated it is a minus."""
    signs = [i for i, t in enumerate(tokens) if t.kind == "op"]
    if len(tokens) != 3 or len(signs) != 1 or tokens[1].text != "-":
        return False
    return tokens[0].end == tokens[1].start


# Judging a claim


def _judge(claim: _Claim) -> Wrong | Literal[True] | None:
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


def _same_units(claim: _Claim) -> bool:
    """Units written inside an expression must be one unit throughout, and placed beyond doubt."""
    named = {u for side in (claim.left, claim.right) for u in side.units if u}
    if not named:
        return True
    result = claim.right.units[-1] or claim.right.tail.rstrip("s")
    unit = next(iter(named))
    if len(named) > 1 or result != unit or claim.right.compound:
        return False
    if len(unit) == 1 and unit not in _CONVERTIBLE:
        return False
    signs = {t.text for t in claim.left.tokens if t.kind == "op"}
    count = sum(map(bool, claim.left.units))
    if signs <= {"+", "-"}:
        return count == len(claim.left.units) or (count == 1 and bool(claim.left.units[-1]))
    return signs == {"*"} and count == 1


def _holds(left: Fraction, right: Fraction, claim: _Claim) -> bool:
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
    return bool(words & _CONVERTIBLE) and ratio in _RATIOS


def _rounds(side: _Side, written: Fraction, exact: Fraction) -> bool:
    """Whether a literal is what needs more digits, rounded, cut or (as with bags) raised."""
    digits = side.tokens[-1].text if side.tokens[-1].kind == "num" else side.tokens[0].text
    places = len(digits.partition(".")[2])
    unit = Fraction(1, 10**places)
    return (exact / unit).denominator != 1 and abs(exact - written) < unit


def _readings(side: _Side) -> list[Fraction]:
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
