"""What the words of a level say: how good it is, how much of something, and what a name wants.

The lexicon is general English, written by hand: `data/scale_words.ini`.
"""

from __future__ import annotations

import re
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from agenteval.evaluators.utility.labels import fold

_LEXICON = ConfigParser(delimiters=("=",), interpolation=None)
_LEXICON.read_string(files("agenteval.data").joinpath("scale_words.ini").read_text("utf-8"))


def _graded(section: str) -> dict[str, float]:
    return {
        word: float(grade) for grade, text in _LEXICON[section].items() for word in text.split()
    }


def _words(name: str) -> frozenset[str]:
    return frozenset(_LEXICON["words"][name].split())


def _listed(name: str) -> frozenset[str]:
    return frozenset(map(str.strip, _LEXICON["lists"][name].replace("\n", " ").split(",")))


DEGREES = _graded("degrees")  # how much of something there is, 0 (none) to 1 (all)
QUALITY = _graded("quality")  # a word by itself on the line from -1 (worst) to 1 (best)
NONE, BARE = 0.0, 0.9  # the degree of "no", and of "clear" without any word of degree
_STEMS = dict.fromkeys(_words("good"), 1) | dict.fromkeys(_words("bad"), -1)
_EXCEPT, _WHOLE, _SEVERE = _words("except"), _words("whole"), _words("severe")
FILLERS = _words("fillers")
WEIGHTLESS = FILLERS | _words("weightless")
COUNTED = _words("counted")
# Times in seconds, as units.
SECONDS: dict[str, float] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86_400.0),
}
UNITS = _words("units") | frozenset(SECONDS)
CATEGORIES = _listed("categories")  # kinds of things, not grades
_NOT_APPLICABLE = _listed("not applicable")
_TOO_LITTLE, _TOO_MUCH = tuple(_words("too little")), tuple(_words("too much"))
_COUNTS, _SPENT, _KINDS = _words("counts"), _words("spent"), _words("kinds")
_MEASURES = _COUNTS | _words("measures")
_UNWELCOME, _PREPOSITIONS = _words("unwelcome"), _words("prepositions")
_WELCOME = _words("dealing") | _words("welcome")
# What stands alone and says only whether there is any of it.
_ALONE = {"yes": 1.0, "present": 1.0, "no": NONE, "absent": NONE, "missing": NONE}
# What is good to do about a fault: "acknowledges uncertainty", "does not detect errors".
_DEALS = re.compile(
    r"(?:acknowledge|address|admit|avoid|catch|detect|discuss|explain|fixe?|flag|handle|"
    r"identif(?:y|ie)|mitigate|prevent|reduce|resist|resolve|spot|avert)(?:e?s)?|corrects|recogni[sz]es|reports"
)
_LONG = 5  # letters of a beginning that needs no known ending
_ENDINGS = frozenset(("", "d", "ed", "er", "es", "ful", "ily", "ing", "ly", "s", "y"))
NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "ab")
_PHRASES = dict(_LEXICON["phrases"])
_PHRASE = re.compile(rf"\b(?:{'|'.join(_PHRASES)})\b")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CLAUSE = re.compile(r"\bbut\b|[,;:()]|\s[-–—]\s")
MOST_UNKNOWN = 2  # words of a clause that the lexicon does not know


def tokens_of(text: str) -> list[str]:
    """The words of a folded text."""
    return _TOKEN.findall(text)


def is_not_applicable(label: str) -> bool:
    """True for "not applicable" and its other spellings."""
    return fold(label) in _NOT_APPLICABLE


@lru_cache(maxsize=4096)
def sign(token: str) -> int:
    """1 for a quality, -1 for a fault, 0 for a word that says neither.

    The longest known beginning counts; of less than five letters, with a common ending only. A
    negating prefix in front of a quality makes it a fault.
    """
    if token in _EXCEPT:
        return 0
    if token in QUALITY:
        return (QUALITY[token] > 0) - (QUALITY[token] < 0)
    if token in _SEVERE:
        return -1
    for length in range(len(token), 2, -1):
        stem = token[:length]
        ending = token[length:].removeprefix(stem[-1])  # dragging
        if stem in _STEMS and (length >= _LONG or ending in _ENDINGS):
            return 1 if token == f"{stem}less" else _STEMS[stem]
    if token.startswith(("over", "under")):
        return -1
    for prefix in NEGATING_PREFIXES:
        if token.startswith(prefix) and (rest := sign(token.removeprefix(prefix))):
            return -rest
    if token.startswith("mis") or re.fullmatch(r"un\w{3,}(?:ed|able|ible)", token):
        return -1  # misquoted, undocumented
    return 1 if len(token) > _LONG and token.endswith(("able", "ible")) else 0


class Place(NamedTuple):
    """Where a label stands: `value` from -1 (worst) to 1, None when no word says good or bad.

    `amount` is how much of something it speaks of, 0 to 1, `whole` whether it is the whole of it;
    `heads` are the words for what that is.
    """

    value: float | None = None
    amount: float | None = None
    whole: bool = False
    heads: tuple[str, ...] = ()


def place(label: str) -> Place:
    """Where a label stands by the lexicon; several clauses count by the mean of their values."""
    clauses = [_clause(part) for part in _CLAUSE.split(fold(label)) if part.strip()]
    if not clauses:
        return Place()
    valued = [clause.value for clause in clauses if clause.value is not None]
    first = next((c for c in clauses if c.amount is not None), clauses[0])
    heads = tuple(head for clause in clauses for head in clause.heads)
    value = sum(valued) / len(valued) if valued else None
    return first._replace(value=value, heads=heads)


def _clause(text: str) -> Place:
    text = re.sub(r"\bat all\b|[-/]", " ", text)
    text = _PHRASE.sub(lambda match: _PHRASES[match[0]], text)
    tokens = [t for t in tokens_of(text) if t not in WEIGHTLESS]
    if len(tokens) == 1 and tokens[0] in _ALONE:
        return Place(None, _ALONE[tokens[0]], whole=True)
    quality = next((t for t in tokens if t in QUALITY), None)
    degrees = [DEGREES[t] for t in tokens if t in DEGREES and t != quality]
    heads = tuple(t for t in tokens if t not in DEGREES and t not in QUALITY)
    if "too" in heads and NONE not in degrees:
        degrees = []  # "too little" is no small fault
    if sum(sign(t) == 0 for t in set(heads)) > MOST_UNKNOWN:
        return Place(heads=heads)  # a sentence: what it says is not in one of its words
    fault = any(sign(t) == -1 for t in heads)
    degree = _degree(degrees)
    loud = quality in ("strong", "great") or QUALITY.get(quality or "") == 0
    if quality is not None and not (loud and fault and not any(map(_DEALS.fullmatch, heads))):
        return Place(_of_head(QUALITY[quality], degree), heads=(quality, *heads))
    if re.search(r"\w free$|\bfree (?:of|from)\b", text) and "too" not in heads:
        return Place(1.0, heads=heads)
    if any(map(sign, heads)):
        good = not fault or any(map(_DEALS.fullmatch, heads))
        return Place(_of_head(0.8 if good else -0.8, degree), heads=heads)
    if not degrees:
        return Place(heads=heads)
    if not heads and _SEVERE & set(tokens):
        return Place(_of_head(-0.8, degree), heads=("severe",))
    return Place(None, degree, any(t in _WHOLE for t in tokens), heads)


def _degree(degrees: list[float]) -> float:
    """A negation wins; "very" on another degree ("very high", "very few") does not move it."""
    if not degrees:
        return BARE
    if min(degrees) == NONE:
        return 0.1 if max(degrees) >= 0.8 else NONE
    return degrees[-1] if len(degrees) > 1 and degrees[0] >= 1.0 else degrees[0]


def _of_head(base: float, degree: float) -> float:
    """Value of a head word at a degree: none of it is the opposite end, all of it a bit beyond."""
    ahead = 1.0 if base >= 0 else -1.0
    if degree > BARE:
        return base + ahead * (degree - BARE) * 2
    return -ahead + (base + ahead) * degree / BARE


def at_degree(other: Place, amount: float) -> float:
    """Value of a mere degree ("none", "limited vocabulary") of what another label speaks of."""
    fault = any(sign(head) == -1 for head in other.heads)
    return _of_head(-0.8 if fault else 0.8, amount)


def two_faults(places: list[Place]) -> bool:
    """Whether some of the labels say too little and some too much."""
    heads = [h for p in places for h in p.heads if not h.startswith("underst")]
    return any(h.startswith(_TOO_LITTLE) for h in heads) and any(
        h.startswith(_TOO_MUCH) for h in heads
    )


def asks_for_a_kind(name: str) -> bool:
    """Whether a criterion's name asks for a kind and not for a grade: "Error type"."""
    return bool(_KINDS.intersection(fold(name).split()[-1:]))


def welcome(name: str) -> int:
    """1 where a criterion's name asks for more of a quality, -1 of what one wants less of
    ("Error rate", "Time to solve", "Steps taken"), 0 where it says neither.

    "Error handling", "Bias awareness" and "Cost-efficiency" speak of their last word.
    """
    tokens = tokens_of(fold(name).replace("-", " "))
    start = next((i for i, t in enumerate(tokens) if t not in _MEASURES | WEIGHTLESS), len(tokens))
    measure, tokens = tokens[:start], tokens[start:]
    end = next((i for i, t in enumerate(tokens) if i and t in _PREPOSITIONS), len(tokens))
    while end and tokens[end - 1] in _MEASURES | _SPENT:
        end -= 1
        measure.append(tokens[end])
    tokens = tokens[:end]
    if not tokens:
        return 0
    if sign(tokens[-1]) == 1 or tokens[-1] in _WELCOME:
        return 1
    counted = not (_COUNTS | _SPENT).isdisjoint(measure) and not UNITS.isdisjoint(tokens)
    if counted or any(t in _UNWELCOME or sign(t) == -1 for t in tokens):
        return -1
    return int(any(sign(t) == 1 for t in tokens))
