"""Read scales and scores in running text: "on a 1-10 scale", "I would rate it 4"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agenteval.records import Criterion
from agenteval.utility.labels import NUMBER, fold

_DASHES = r"\s?(?:-|–|—|to|and|\.\.+)\s?"
_SCALES = re.compile(
    r"\b(?:scale|range)(?:\s(?:is|was|of|from|goes|runs|between))*\s?:?\s?\(?[01]"
    rf"{_DASHES}(?P<a>\d{{1,3}})\)?"
    rf"|\b[01]{_DASHES}(?P<b>\d{{1,3}})\s(?:point\s)?(?:scale|range)\b"
    r"|\b(?P<c>\d{1,3}|ten|hundred)[- ]point\s(?:\w{1,20}\s)?scale\b"
    r"|\b(?:scores|ratings|grades)\s(?:are|were)\s(?:\w{1,20}\s){0,2}?"
    r"(?:out of|up to)\s(?P<d>\d{1,3})\b"
    r"|(?:^|[\n<])\W{0,9}(?:max(?:imum)?|out[ _]of)(?:[ _]score)?\s?[:=>]\s?(?P<e>\d{1,3})\b",
    re.I,
)
_SCALE_NOTE = re.compile(
    rf"[(\[]\s?(?:from\s)?[01]{_DASHES}(?P<a>\d{{1,3}})\s?[)\]]"
    r"|[(\[]\s?(?:out of|of|max(?:imum)?:?|/)\s?(?P<b>\d{1,3})\s?[)\]]"
    r"|(?<=[^\W\d])\s?/\s?(?P<c>\d{1,3})$",
    re.I,
)
_ON_A = re.compile(r"\(?\s?(?:on|using|from|with)?\s?(?:an?|the)?\s?$", re.I)


@dataclass(frozen=True, slots=True)
class StatedScore:
    """A level in a sentence, the top of its scale if stated, and the subjects of the score."""

    level: str
    top: float | None
    subjects: tuple[str, ...]


def scales_in(text: str) -> set[float]:
    """Return the tops of the scales that a text mentions."""
    return {_top(match) for match in _SCALES.finditer(text)}


def without_scale(words: str) -> tuple[str, float | None]:
    """Remove a stated scale ("(on a 1-10 scale)") from words; return them and its top."""
    for pattern in (_SCALES, _SCALE_NOTE):
        if match := pattern.search(words):
            before = _ON_A.sub("", words[: match.start()])
            after = words[match.end() :].removeprefix(")")
            return f"{before.rstrip()}{after}".strip(), _top(match)
    return words, None


def _top(match: re.Match[str]) -> float:
    stated = next(filter(None, match.groups())).lower()
    return float({"ten": 10, "hundred": 100}.get(stated, stated))


def top_of(leaf: Criterion) -> float | None:
    """Return the highest number of a criterion's scale; None if its levels are not numbered."""
    if leaf.numeric_range is not None:
        return max(leaf.numeric_range)
    numbers = [re.match(r"\d+(?:\.\d+)?", value) for value in leaf.accepted_values]
    return max((float(number[0]) for number in numbers if number), default=None)


def stated_scores(sentence: str, levels: Sequence[str]) -> Iterator[StatedScore]:
    """Yield the scores stated in a sentence, which must be lower case with single spaces.

    Quotations, denials, comparisons and conditions are ignored.
    """
    folded = set(map(fold, levels))
    for match in _statement(tuple(levels)).finditer(sentence):
        level = match["value"]
        behind, top = without_scale(sentence[match.end() :])
        before, top_before = without_scale(sentence[: match.start("value")])
        worded = not any(map(str.isdigit, level)) and fold(level) in folded
        if worded and (match["is"] or ":") not in ":=":  # "the rating is clear"
            continue
        if _NOT_STATED.search(before) or _TAKEN_BACK.search(behind):
            continue
        subjects = tuple(words for groups in _SUBJECT.findall(before) for words in groups if words)
        yield StatedScore(level, top or top_before, subjects)


# ---------------------------------------------------------------- patterns of sentences

_SPACE = r"[\s*_`]{0,8}"
_WORDS = r"(?:[^\s.:;!?]{1,30}\s){0,12}?"
_SCORE = r"(?:score|rating|grade)"
_SAYING = rf"""(?:
    \b{_SCORE}(?:\s?\([^()]{{1,30}}\)|\s(?:for|of|on|in)\s{_WORDS}(?:[^\s.:;!?]{{1,30}})?)?
    {_SPACE}(?P<is>[:=]|\s?[-–—]\s|\s?\b(?:is|was)\s)
  | \[result\]{_SPACE}(?:{_SCORE}\s?:)?\s?\(?
  | \b(?:giv(?:e|es|ing)|assign(?:s|ing)?|award(?:s|ing)?|receives?|earns?|deserves?|gets?|merits?
      |warrants?|justif(?:y|ies)|(?:results?|resulting)\sin|(?:leads?|leading)\sto)
    \s{_WORDS}{_SCORE}\sof\s
  | \bi(?:['’](?:d|ll)|\swould|\swill)?(?:\s\w{{1,20}})?\s(?:rate|score|grade)\s{_WORDS}
)"""
_NUMBER = (
    rf"(?:{NUMBER})(?:\s?/\s?(?:{NUMBER})|\s(?:out\s)?of\s(?:{NUMBER})|%)?(?:\s(?:stars?|points?))?"
)
# After a score: the end of the sentence, or a reason.
_END = (
    rf"(?={_SPACE}(?:$|[.,;!](?:\s|$)|\)|\s[-–—]{{1,2}}\s(?!\d)|\(|"
    r"(?:because|since|as|for|due|on|based|given|overall)\b))"
)
_NOT_STATED = re.compile(
    r"\b(?:if|unless|could|might|may|should|cannot|not|never|neither|instead|rather than|between|"
    r"claim\w*|says?|states?|asks?|demands?|instruct\w*|tells?|wants?|ends|writes?|written|reads?|"
    r"contains?|includes?|previous\w*|initial\w*|original\w*|reference|other|another|example|"
    r"minimum|maximum|at (?:least|most)|"
    r"would(?! (?:\w+ )?(?:rate|score|grade|give|assign|award)\b))\b|n['’]t\b|e\.g\.|[?\"“”«»>]"
)
_TAKEN_BACK = re.compile(r"\b(?:if|unless|could|might|would|or|instead|rather)\b|[\d?]")
# The subject of a score: "score for clarity", "the clarity score is", "in terms of clarity, ...".
_NOUN = r"[^\s.:;!?,]{1,30}"
_SUBJECT = re.compile(
    rf"\b(?:{_SCORE}\s(?:for|of|on|in)|terms of|regarding|concerning|as for|respect to)\s"
    rf"({_NOUN}(?:\s{_NOUN}){{0,3}})"
    rf"|(?:^|\b(?:the|my|a|an|its|overall)\s)({_NOUN})\s{_SCORE}\b(?!\sof\b)"
    rf"|^for\s({_NOUN}(?:\s{_NOUN}){{0,2}}?),?\s(?:i|we|the|it|a)\b"
    rf"|\b(?:giv(?:e|es|ing)|assign(?:s|ing)?|award(?:s|ing)?)\s((?:{_NOUN}\s){{1,5}}?)(?:an?|the)\s"
    rf"|\b({_NOUN})\s(?:receives?|earns?|deserves?|gets?|merits?|warrants?)\s"
)
SENTENCE_END = re.compile(r"(?<=[.!?])[*_]{0,3}\s+|\n+")


@lru_cache(maxsize=64)
def _statement(levels: tuple[str, ...]) -> re.Pattern[str]:
    worded = "|".join(re.escape(fold(level)) for level in sorted(levels, key=len, reverse=True))
    stated = rf"(?P<value>{_NUMBER}{'|' if worded else ''}{worded})"
    return re.compile(rf"(?x:{_SAYING}){_SPACE}(?:an?\s)?{_SPACE}{stated}{_END}")
