"""The meaning of the words of a level (how good, how much of something) and of a name.

The head of a phrase decides, not just any word: "error handling" is handling, "error rate" is a
rate of errors, "errors caught" is caught. `polarity` implements these rules for labels and names.
The lexicon, `data/scale_words.ini`, is hand-written general English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from agenteval.utility.labels import fold

_LEXICON = ConfigParser(delimiters=("=",), interpolation=None)
_LEXICON.read_string(files("agenteval.utility").joinpath("data/scale_words.ini").read_text("utf-8"))


def _graded(section: str) -> dict[str, float]:
    return {
        word: float(grade) for grade, text in _LEXICON[section].items() for word in text.split()
    }


def _words(name: str) -> frozenset[str]:
    return frozenset(_LEXICON["words"][name].split())


def _listed(name: str) -> frozenset[str]:
    return frozenset(map(str.strip, _LEXICON["lists"][name].replace("\n", " ").split(",")))


DEGREES = _graded("degrees")  # how much there is of something, 0 (none) to 1 (all)
QUALITY = _graded("quality")  # value of a single word, -1 (worst) to 1 (best)
SECONDS = _graded("seconds")  # by unit of time
NONE, BARE = 0.0, 0.9  # the degree of "no", and of "clear" without a degree word
_STEMS = dict.fromkeys(_words("good"), 1) | dict.fromkeys(_words("bad"), -1)
_EXCEPT, _WHOLE, _SEVERE = _words("except"), _words("whole"), _words("severe")
FILLERS, COUNTED, TOO = _words("fillers"), _words("counted"), _words("too")
WEIGHTLESS = FILLERS | _words("weightless")
UNITS = _words("units") | frozenset(SECONDS)
CATEGORIES = _listed("categories")  # kinds of things, not grades
_NOT_APPLICABLE = _listed("not applicable")
_TOO_LITTLE, _TOO_MUCH = tuple(_words("too little")), tuple(_words("too much"))
_COUNTS, _SPENT, _KINDS = _words("counts"), _words("spent"), _words("kinds")
_MEASURES = _COUNTS | _words("measures")
_UNWELCOME, _PREPOSITIONS, _FAULTS = _words("unwelcome"), _words("prepositions"), _words("faults")
_LACK, _NEEDS, _WORK = _words("lack"), _words("needs"), tuple(_words("work"))
_DEALING, _IGNORING = _words("dealing"), tuple(_words("ignoring"))
# "No errors found" counts errors, "all errors found" finds them: it depends on the whole scale.
_FOUND = _words("found")
# Words that, on their own, only say whether something is present.
_ALONE = {"yes": 1.0, "present": 1.0, "no": NONE, "absent": NONE, "missing": NONE}
_DEALT = re.compile(
    rf"(?:{'|'.join(sorted(_DEALING, key=len, reverse=True))})[sz]?"
    r"(?P<ending>|e|e?s|e?d|t|y|ies|ied|(?P<noun>[a-z]*(?:ion|ment|ing|ce|al|sis|ness|or|er)))"
)
_ABSTRACT = re.compile(r"\w+(?:ity|ness|c[ey]|ion|ment|ship|dom|ing)s?")
_LONG = 5  # a stem with this many letters matches with any ending
_ENDINGS = ("", "d", "ed", "er", "es", "ful", "ily", "ing", "ly", "s", "y")
NEGATING_PREFIXES = tuple(_LEXICON["words"]["negating prefixes"].split())
_PHRASES = {
    phrase: word for word, text in _LEXICON["phrases"].items() for phrase in re.split(r",\s+", text)
}
_PHRASE = re.compile(rf"\b(?:{'|'.join(_PHRASES)})\b")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CLAUSE = re.compile(
    r"\bbut\b|[,;:()]|\s[-–—]\s|\b(?:and|or|with)\s+(?=(?:no|not|without|never|many|few|some)\b)"
    r"|(?<=absent) or\b|(?<=missing) or\b|(?<=none) or\b"
)
MOST_UNKNOWN = 2  # maximum words of a clause that are not in the lexicon


def tokens_of(text: str) -> list[str]:
    """Return the words of a folded text."""
    return _TOKEN.findall(text)


def is_not_applicable(label: str) -> bool:
    """Return whether the label is a spelling of "not applicable"."""
    return fold(label) in _NOT_APPLICABLE


@lru_cache(maxsize=4096)
def sign(token: str) -> int:
    """Return 1 for a quality, -1 for a fault, 0 for other words.

    The longest known stem counts; a stem with fewer than five letters needs a common ending. A
    negating prefix turns a quality into a fault.
    """
    if token in _EXCEPT:
        return 0
    if token in QUALITY:
        return (QUALITY[token] > 0) - (QUALITY[token] < 0)
    if token in _SEVERE or is_fault(token):
        return -1
    if of_token := _by_stem(token):
        return of_token
    if token.startswith(("over", "under")):
        return -1
    for prefix in NEGATING_PREFIXES:
        if token.startswith(prefix) and (of_stem := _by_stem(token.removeprefix(prefix))):
            return -of_stem
    if token.startswith("mis") or re.fullmatch(r"un\w{3,}(?:ed|able|ible)", token):
        return -1  # misquoted, undocumented
    able = len(token) > _LONG and token.endswith(("able", "ible"))
    return int(able and not token.startswith(("in", "im", "ir", "il")))


def _by_stem(token: str) -> int:
    for length in range(len(token), 2, -1):
        stem = token[:length]
        ending = token[length:].removeprefix(stem[-1])  # dragging
        if stem in _STEMS and (length >= _LONG or ending in _ENDINGS):
            return 1 if token == f"{stem}less" else _STEMS[stem]
    return 0


def without_negation(token: str) -> str:
    """Remove a negating prefix: "incorrect" becomes "correct", "intact" stays as it is."""
    stems = (token.removeprefix(prefix) for prefix in NEGATING_PREFIXES if token.startswith(prefix))
    return next((stem for stem in stems if _by_stem(stem)), token)


@lru_cache(maxsize=4096)
def is_fault(token: str) -> bool:
    """Return whether the word is a noun for a fault that can be fixed, singular or plural."""
    singular = token.removesuffix("ies") + "y" if token.endswith("ies") else token
    return bool(_FAULTS & {token, singular, token.removesuffix("s"), token.removesuffix("es")})


def polarity(phrase: Sequence[str]) -> int | None:
    """Return 1 if more of the phrase's subject is better, -1 if less is, 0 if neither is known.

    None if a fault modifies an unknown head ("error budget"). `phrase` contains the words and
    prepositions but no words of degree.
    """
    if phrase and phrase[-1] in _NEEDS:
        if any(word.startswith(_WORK) for word in phrase):
            return -1  # "corrections needed"
        phrase = phrase[:-1]
    if not phrase:
        return 0
    last = _DEALT.fullmatch(phrase[-1])
    ignored = any(word.startswith(_IGNORING) and not is_fault(word) for word in phrase)
    if (ignored and (last is None or last["noun"])) or phrase[0] in _NEEDS:
        return -1  # "errors ignored", "requires supervision"
    at = _preposition(phrase)
    noun = [word for word in phrase[:at] if word not in _PREPOSITIONS]
    if noun and noun[-1] in _MEASURES:
        return polarity(noun[:-1] or phrase[at + 1 :])
    handling = _fault_handling(phrase, noun)
    return _of_noun(noun, phrase[at + 1 :]) if handling == 0 else handling


def _preposition(phrase: Sequence[str]) -> int:
    """Return the index of the first preposition after the first word, or the length."""
    return next((i for i, word in enumerate(phrase) if i and word in _PREPOSITIONS), len(phrase))


def _fault_handling(phrase: Sequence[str], noun: Sequence[str]) -> int | None:
    """Return 1 for handling of faults, -1 for bad handling, 0 for none; None if unsure."""
    dealt = {word: match for word in phrase if (match := _DEALT.fullmatch(word))}
    if not dealt or all(sign(word) >= 0 for word in phrase):
        return 0
    head = noun[-1] if noun else ""
    if is_fault(head) and all(match["noun"] for match in dealt.values()):
        # "handling errors": errors in handling, or the handling of errors
        return None if noun[-2:-1] and noun[-2] in dealt else 0
    # "error recovery" and "error control": the ending does not show that the head is a noun
    nouns = all(
        m["noun"] or (w == head != noun[0] and m["ending"] in ("", "y")) for w, m in dealt.items()
    )
    bad = any(sign(word) == -1 and not is_fault(word) for word in noun)
    return -1 if bad and nouns else 1


def _of_noun(noun: Sequence[str], behind: Sequence[str]) -> int | None:
    """Return the polarity of a noun with modifiers, else of the words after its preposition."""
    signs = [sign(word) for word in noun]
    faults = [is_fault(word) for word in noun]
    if any(s == -1 and not fault for s, fault in zip(signs, faults, strict=True)):
        return -1  # "wrong answer", "biased reasoning"
    if noun and signs[-1]:
        return signs[-1]
    if any(faults):
        return None
    modifiers = [word for word, s in zip(noun, signs, strict=True) if s == 1]
    # "clear concerns" are clear, "clarity concerns" are not
    return 1 if any(not _ABSTRACT.fullmatch(w) for w in modifiers) else polarity(behind)


class ScalePlace(NamedTuple):
    """Position of a label: `value` from -1 (worst) to 1, or None if no word is good or bad.

    `amount` is how much of a thing the label mentions, 0 to 1, and `whole` whether it is all of
    it; `heads` are the words for that thing, and `polarity` says whether more of it is better.
    """

    value: float | None = None
    amount: float | None = None
    whole: bool = False
    heads: tuple[str, ...] = ()
    polarity: int | None = 0


def place(label: str, *, whole: bool = False) -> ScalePlace:
    """Return the position of a label by the lexicon: the mean value of its clauses.

    `whole` means that the scale is about all of something, so "no errors found" is about finding
    them.
    """
    clauses = [_clause(part, whole) for part in _CLAUSE.split(fold(label)) if part.strip()]
    if not clauses:
        return ScalePlace()
    valued = [clause.value for clause in clauses if clause.value is not None]
    first = next((c for c in clauses if c.amount is not None), clauses[0])
    heads = tuple(head for clause in clauses for head in clause.heads)
    return first._replace(value=sum(valued) / len(valued) if valued else None, heads=heads)


def _clause(text: str, whole: bool) -> ScalePlace:
    text = re.sub(r"\bat all\b|[-/]", " ", text)
    text = _PHRASE.sub(lambda match: _PHRASES[match[0]], text)
    text = re.sub(
        r"(\w+) free$", lambda m: m[0] if m[1] in TOO or sign(m[1]) >= 0 else "flawless", text
    )
    words = tokens_of(text)
    if len(words) == 1 and words[0] in _ALONE:
        return ScalePlace(None, _ALONE[words[0]], whole=True)
    return _of_words(words if whole else _without_found(words))


def _without_found(words: list[str]) -> list[str]:
    """Remove "found" and its synonyms if the words count faults."""
    counts = any(sign(word) < 0 for word in words) or all(
        w in DEGREES or w in WEIGHTLESS | _FOUND for w in words
    )
    return [word for word in words if word not in _FOUND] if counts else words


def _of_words(words: list[str]) -> ScalePlace:
    words = [word for word in words if word not in WEIGHTLESS or word in _PREPOSITIONS]
    tokens = [word for word in words if word not in WEIGHTLESS]
    lacking = not _LACK.isdisjoint(tokens)
    quality = next((t for t in tokens if t in QUALITY), None)
    degrees = [DEGREES[t] for t in tokens if t in DEGREES and t != quality]
    phrase = [t for t in words if t not in DEGREES and t not in QUALITY and t not in _LACK]
    heads = tuple(t for t in phrase if t not in WEIGHTLESS)
    if "too" in heads and NONE not in degrees:
        degrees = []  # "too little" is not a small fault
    unknown = {
        t for t in heads if not sign(t) and t not in _NEEDS | _MEASURES and not _DEALT.fullmatch(t)
    }
    all_of_it = any(t in _WHOLE for t in tokens)
    if len(unknown) > MOST_UNKNOWN:  # a sentence
        return ScalePlace(None, _degree(degrees) if degrees else None, all_of_it, heads)
    direction = polarity(phrase)
    degree = _degree(degrees)
    if lacking:  # "no lack of clarity" is all of it
        degree = 1.0 - (degree if degrees else 1.0)
        all_of_it = degree == 1.0
    loud = quality in ("strong", "great") or QUALITY.get(quality or "") == 0
    if quality is not None and not (loud and direction == -1):
        value = _of_head(QUALITY[quality], degree)
        return ScalePlace(value, None, False, (quality, *heads), direction)
    if direction:
        return ScalePlace(_of_head(0.8 * direction, degree), None, False, heads, direction)
    if not heads and _SEVERE & set(tokens):
        return ScalePlace(_of_head(-0.8, degree), heads=("severe",), polarity=-1)
    if not degrees and not lacking:
        return ScalePlace(heads=heads, polarity=direction)
    return ScalePlace(None, degree, all_of_it, heads, direction)


def _degree(degrees: list[float]) -> float:
    """A negation wins; "very" before another degree ("very high", "very few") is ignored."""
    if not degrees:
        return BARE
    if min(degrees) == NONE:
        return 0.1 if max(degrees) >= 0.8 else NONE
    return degrees[-1] if len(degrees) > 1 and degrees[0] >= 1.0 else degrees[0]


def _of_head(base: float, degree: float) -> float:
    """Return the value of a head at a degree: none is the opposite end, all is slightly beyond."""
    ahead = 1.0 if base >= 0 else -1.0
    if degree > BARE:
        return base + ahead * (degree - BARE) * 2
    return -ahead + (base + ahead) * degree / BARE


def at_degree(other: ScalePlace, amount: float) -> float:
    """Return the value of a mere degree ("none", "limited") of the thing in another label."""
    return _of_head(-0.8 if other.polarity == -1 else 0.8, amount)


def two_faults(places: Sequence[ScalePlace]) -> bool:
    """Return whether some labels mean too little and others too much."""
    heads = [h for p in places for h in p.heads if not h.startswith("underst") and h not in _EXCEPT]
    little, much = (any(h.startswith(stems) for h in heads) for stems in (_TOO_LITTLE, _TOO_MUCH))
    return little and much


def asks_for_a_kind(name: str) -> bool:
    """Return whether a criterion's name asks for a kind, not for a grade: "Error type"."""
    return bool(_KINDS.intersection(fold(name).split()[-1:]))


def name_polarity(name: str) -> int:
    """Return 1 if more of what a criterion's name says is better, -1 if less is ("Error rate",
    "Time to solve", "Steps taken"), 0 if neither is known."""
    words = tokens_of(fold(name).replace("-", " "))
    phrase = [w for w in words if w not in WEIGHTLESS | _LACK or w in _PREPOSITIONS]
    while phrase and (phrase[0] in _PREPOSITIONS or phrase[-1] in _SPENT):
        phrase = phrase[:-1] if phrase[-1] in _SPENT else phrase[1:]
    at = _preposition(phrase)
    noun = phrase[:at]
    while noun and noun[-1] in _MEASURES:  # "level of difficulty", "number of steps"
        noun = noun[:-1] or phrase[at + 1 :]
        at = len(phrase)
    if noun and noun[-1] in _UNWELCOME:
        return -1
    direction = polarity(phrase)
    if not _LACK.isdisjoint(words):
        return -(direction or 0)
    if direction == 1:
        return 1
    counted = not (_COUNTS | _SPENT).isdisjoint(words) and not UNITS.isdisjoint(noun)
    return -1 if counted or direction != 0 or not _UNWELCOME.isdisjoint(noun) else 0
