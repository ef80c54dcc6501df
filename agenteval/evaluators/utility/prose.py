"""The last rung: the one score that running prose states, for a single criterion.

It is said in so many words (`Score: 4/5`, "I would rate it 4 out of 5", `[RESULT] 4`), in the last
sentence or as the whole first line, and whatever else is stated in the reply is the same. A
sentence that quotes, denies, compares or sets a condition states nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agenteval.evaluators.utility.answers import Answer, answer_of, names_of
from agenteval.evaluators.utility.labelled import LABELLED, VERDICTS, level_of
from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.stated_number import NUMBER
from agenteval.records import Criterion, slug

_MARKUP = r"[\s*_`]{0,8}"
_WORDS = r"(?:[^\s.:;!?]{1,30}\s){0,12}?"
_SCORE = r"(?:score|rating|grade)"
_SAYING = rf"""(?:
    \b{_SCORE}(?:\s?\([^()]{{1,30}}\)|\s(?:for|of|on|in)\s{_WORDS}(?:[^\s.:;!?]{{1,30}})?)?
    {_MARKUP}(?P<is>[:=]|\s?[-–—]\s|\s?\b(?:is|was)\s)
  | \[result\]{_MARKUP}(?:{_SCORE}\s?:)?
  | \b(?:giv(?:e|es|ing)|assign(?:s|ing)?|award(?:s|ing)?|receives?|earns?|deserves?|gets?|merits?
      |warrants?|justif(?:y|ies)|(?:results?|resulting)\sin|(?:leads?|leading)\sto)
    \s{_WORDS}{_SCORE}\sof\s
  | \bi(?:['’](?:d|ll)|\swould|\swill)?(?:\s\w{{1,20}})?\s(?:rate|score|grade)\s{_WORDS}
)"""
_NUMBER = (
    rf"(?:{NUMBER})(?:\s?/\s?(?:{NUMBER})|\s(?:out\s)?of\s(?:{NUMBER})|%)?(?:\s(?:stars?|points?))?"
)
# What follows a score: the end of the sentence, or a reason.
_END = (
    rf"(?={_MARKUP}(?:$|[.,;!](?:\s|$)|\)|\s[-–—]{{1,2}}\s(?!\d)|\(|"
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
_SCALE = re.compile(
    r"\bon (?:an?|the) (?:\S{1,20} )?scale (?:of|from) \d{1,3} ?(?:to|[-–—]) ?(\d{1,3})\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_]{0,3}\s+|\n+")
_MOST_CHARS = 100_000


def stated_score(text: str, path: str, leaf: Criterion) -> str | None:
    """The level that a reply states for its only criterion; None when it states none, or two."""
    if len(text) > _MOST_CHARS:
        return None
    text = re.sub(r":([ \t*_]{0,8})\n\s{0,20}", r":\1 ", text.strip())  # a score beneath its word
    sentences = [s for s in _SENTENCE_END.split(text) if any(map(str.isalnum, s))]
    stated = [_stated(" ".join(sentence.casefold().split()), leaf) for sentence in sentences]
    names = {**dict.fromkeys(VERDICTS, path), **names_of([(path, leaf)])}
    lines = [_line(line, names, leaf) for line in text.split("\n")]
    labels = {level for levels in stated for level in levels} | {level for level in lines if level}
    if not stated or len(labels) != 1 or not (lines[0] or len(stated[-1]) == 1):
        return None
    return labels.pop() or None  # "": on another scale


def _line(line: str, names: dict[str, str], leaf: Criterion) -> str | None:
    """The level of a line `Score: 4`, which may stand first; a quotation of levels counts, too."""
    entry = LABELLED.fullmatch(line)
    if entry is None or slug(entry["name"]) not in names:
        return None
    return _level(level_of(entry["said"], leaf) or "", leaf) or None


def _stated(sentence: str, leaf: Criterion) -> list[str]:
    """The level of each score that a sentence states, "" for one that is on another scale."""
    levels = []
    for match in _statement(leaf.accepted_values).finditer(sentence):
        before, said, rest = sentence[: match.start("said")], match["said"], sentence[match.end() :]
        worded = not any(map(str.isdigit, said)) and fold(said) in map(fold, leaf.accepted_values)
        if worded and (match["is"] or ":") not in ":=":  # "the rating is clear"
            continue
        scale = _SCALE.search(sentence)
        if scale:
            said = f"{said}/{scale[1]}" if said.replace(".", "").isdigit() else said
            before, rest = _SCALE.sub("", before), _SCALE.sub("", rest)
        if not _NOT_STATED.search(before) and not _TAKEN_BACK.search(rest):
            levels.append(_level(said, leaf))
    return levels


def _level(said: str, leaf: Criterion) -> str:
    answer = answer_of(said, leaf)
    return (answer.label or "") if isinstance(answer, Answer) else ""


@lru_cache(maxsize=64)
def _statement(levels: tuple[str, ...]) -> re.Pattern[str]:
    worded = "|".join(re.escape(fold(level)) for level in sorted(levels, key=len, reverse=True))
    said = rf"(?P<said>{_NUMBER}{'|' if worded else ''}{worded})"
    return re.compile(rf"(?x:{_SAYING}){_MARKUP}(?:an?\s)?{_MARKUP}{said}{_END}")
