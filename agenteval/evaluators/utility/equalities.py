"""Equalities of numbers as a text writes them, found and cut into their parts.

What is doubtful is passed over: what is not a number on both sides, what a word beside it may
change (half of, remainder, percent), code, clock times and ranges. Whether one holds is the
business of `arithmetic`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

_MAX_CHARS = 400

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
# Units of which one may be told in another, and words for a number of things.
CONVERTIBLE = _words(
    "s sec second min minute h hr hour day week month year mm cm m km inch inches in foot feet "
    "ft yard mile g mg kg gram kilogram pound lb ounce oz ton tonne l ml litre liter cl dl cent "
    "euro dollar penny pence pair dozen score meter metre centimeter centimetre kilometer "
    "kilometre kb mb gb byte bit percent quarter fold "
)


def normalise(text: str) -> str:
    """Inline code blanked, simple LaTeX and typographic signs in plain form."""
    text = re.sub(r"`[^`\n]*`", " ¦ ", text)
    for pattern, plain in _LATEX:
        text = re.sub(pattern, plain, text)
    for pattern, plain in _PLAIN:
        text = re.sub(pattern, plain, text)
    return text


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text and where it stands."""

    kind: str  # num, eq, op, word, break, other
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Side:
    """Tokens of one side without unit words; `units` has one entry per number, "" for none."""

    tokens: tuple[Token, ...]
    units: tuple[str, ...]
    tail: str = ""  # the word that follows the last side

    @property
    def compound(self) -> bool:
        """Whether it is more than one number, so that there is something to compute."""
        return any(t.kind == "op" and t.text in "+-*/^%" for t in self.tokens[1:])


@dataclass(frozen=True, slots=True)
class Claim:
    """An equality of two sides."""

    left: Side
    right: Side
    sign: Literal["=", "≈"]
    excerpt: str
    chained: bool  # another sign follows the right side
    spaced: bool


def claims(text: str) -> Iterator[Claim]:
    """The equalities of a text made plain by `normalise`, in its order; a chain gives several."""
    tokens = [Token(m.lastgroup or "", m.group(), *m.span()) for m in _TOKEN.finditer(text)]
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
            yield Claim(left, right, name, excerpt, chained, spaced)


def _belongs(tokens: Sequence[Token], i: int) -> bool:
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


def _left_edge(tokens: Sequence[Token], low: int, sign: int) -> int:
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


def _right_edge(tokens: Sequence[Token], start: int, high: int) -> int:
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


def _per(tokens: Sequence[Token], i: int, high: int) -> bool:
    return i + 1 < high and tokens[i].text == "/" and tokens[i + 1].kind == "word"


def _free_before(text: str, tokens: Sequence[Token], first: int) -> bool:
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


def _free_after(tokens: Sequence[Token], last: int) -> bool:
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
        return not numbers and not (single and after.text.casefold() not in CONVERTIBLE)
    if after.text == "." and len(rest) > 1 and rest[1].text in (".", "…"):
        return False
    return after.kind == "break" or after.text in (",", ";", ".", ")", "¦", '"', "”", ":", "!", "’")


def _side(text: str, tokens: Sequence[Token], first: int, last: int) -> Side | None:
    """Tokens of a side, units set apart; None when it is empty or cannot be an expression."""
    if first >= last or tokens[last - 1].text in "+-*/^(" or tokens[first].text in "+*/^%)":
        return None
    kept: list[Token] = []
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
    return Side(tuple(kept), tuple(units))


def _range(tokens: Sequence[Token]) -> bool:
    """A sole glued dash, as in 10-15, may be a range; spaced or repeated it is a minus."""
    signs = [i for i, t in enumerate(tokens) if t.kind == "op"]
    if len(tokens) != 3 or len(signs) != 1 or tokens[1].text != "-":
        return False
    return tokens[0].end == tokens[1].start
