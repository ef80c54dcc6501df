"""Rules for wordings that nobody has read yet.

`Lexicon` refuses what is ambiguous, but it cannot know what a new word means: "trails" in the list
of "before" would turn every verdict round. So a proposed wording is kept only if each of its words
is one whose meaning is known here, and together they say the direction of its list. What a model
finds beyond these words is refused and listed; who has read it can write it into the file by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import KINDS, Lexicon, Phrase
from agenteval.evaluators.planning.invent_activities import Refused
from agenteval.evaluators.planning.synthesis.topics import Topic

Wording = tuple[str, str, str]  # kind, singular, plural (the same where it has no number)

_MARKS = {
    "prec": "before ahead prior earlier sooner preceding advance",
    "succ": "after later following subsequent behind posterior wake",
}
# Verbs whose subject comes first (prec) or second (succ); the passive turns them round.
_VERBS = {
    "prec": ("precede precedes", "predate predates", "antedate antedates",
             "antecede antecedes"),
    "succ": ("follow follows", "succeed succeeds", "postdate postdates"),
}  # fmt: skip
_PASSIVE = {"preceded": "succ", "predated": "succ", "anteceded": "succ", "antedated": "succ",
            "followed": "prec", "succeeded": "prec", "postdated": "prec"}  # fmt: skip
_DIRECTION = {word: way for way, words in _MARKS.items() for word in words.split()} | {
    form: way for way, verbs in _VERBS.items() for verb in verbs for form in verb.split()
}
_BE = "is are has have been being gets get to be"
_PLACED = """comes come goes go stands stand sits sit falls fall lies lie happens happen occurs
occur takes take taken place done performed executed carried out conducted completed placed
positioned scheduled set put located situated"""
# No "moment", "day" or "hour" here: "a moment before" asks for more than the order.
_GLUE = "a an the some any at in on of to than by point stage time plan schedule sequence order"
_CLAUSE = frozenset({"the", "time", "point", "stage", "moment", "when", "that"})  # of SC only
_KNOWN = frozenset(f"{_BE} {_PLACED} {_GLUE}".split()) | set(_DIRECTION) | set(_PASSIVE)

_NEUTRAL = re.compile(
    rf"(?:(?:{'|'.join(_BE.split())}) )*(?:happens?|happened|occurs?|occurred|takes? place"
    r"|taken place|transpires?|unfolds?|comes? about|comes? to pass|done|performed|executed"
    r"|carried out|conducted|completed|accomplished|undertaken|handled|dealt with|attended to"
    r"|seen to|taken care of|implemented|reali[sz]ed|fulfilled|tackled|effected)"
)
_LAST = {
    "VP": {"before", "after", "of", "to", "than", "by", "behind"},
    "P_": {"before", "after", "of", "to", "than", "following", "preceding", "behind"},
    "SC": {"before", "after", "when", "that"},
}
_CLOCK = frozenset({"before", "after", "than"})  # a clock time reads well behind these
_AGREEING = {"is": "are", "has": "have", "does": "do", "goes": "go"}


def add_wordings(
    lexicon: Lexicon, proposed: Sequence[Wording], topics: Sequence[Topic]
) -> tuple[Lexicon, list[Wording], list[Refused]]:
    """The lexicon with the wordings that may be added, those wordings, and the refused ones.

    One after another, in their order. `topics` are activities that the texts may hold already: a
    wording inside one of them is refused as well.
    """
    added: list[Wording] = []
    refused: list[Refused] = []
    for wording in proposed:
        kind, singular, plural = wording
        told = singular if singular == plural else f"{singular} / {plural}"
        reason = next(meaning_faults(wording), None)
        if reason is None:
            try:
                lexicon = _extended(lexicon, wording, topics)
            except InputError as error:
                reason = str(error)
        if reason is None:
            added.append(wording)
        else:
            refused.append(Refused(kind, "", told, reason))
    return lexicon, added, refused


def _extended(lexicon: Lexicon, wording: Wording, topics: Sequence[Topic]) -> Lexicon:
    kind, singular, plural = wording
    time = kind.startswith("P_") and singular.split()[-1] in _CLOCK
    words = {
        name: (*phrases, Phrase(singular, plural, time)) if name == kind else phrases
        for name, phrases in lexicon.words.items()
    }
    longer = replace(lexicon, words=words)
    for topic in topics:
        longer.check_activities(topic.activities)
    return longer


def meaning_faults(wording: Wording) -> Iterator[str]:
    """What is wrong with the meaning or the form of a wording by itself, one line each."""
    kind, singular, plural = wording
    if kind not in KINDS:
        yield f"there is no kind {kind!r}"
        return
    if not singular.split() or not plural.split():
        yield "is empty"
        return
    if kind.startswith("VP") and not _agree(singular.split(), plural.split()):
        yield "singular and plural must differ in the first word alone, and agree"
    if kind == "VP_none":
        if not _NEUTRAL.fullmatch(singular):
            yield "is not known to mean that something is done, without any order"
        return
    words = singular.split()
    known = _KNOWN | _CLAUSE if kind.startswith("SC") else _KNOWN
    if unknown := [word for word in words if word not in known]:
        yield f"{unknown[0]!r} is not among the words whose meaning is known"
        return
    wanted = kind.split("_")[1]
    found = {_direction(words, i) for i in range(len(words))} - {None}
    if found != {wanted}:
        said = {"prec": "before", "succ": "after"}
        told = " and ".join(said.get(str(way), str(way)) for way in sorted(map(str, found)))
        yield f"says {told or 'no order'}, not {said[wanted]!r}"
    if words[-1] not in _LAST[kind[:2]] and not (kind.startswith("VP") and _is_verb(words)):
        yield f"cannot stand in front of {_AFTER[kind[:2]]}: it ends in {words[-1]!r}"


_AFTER = {"VP": "an activity", "P_": "an activity", "SC": "a clause"}


def _direction(words: Sequence[str], at: int) -> str | None:
    """prec or succ for a word that says it, "nothing certain" for half a passive, else None."""
    word = words[at]
    if word in _PASSIVE:
        return _PASSIVE[word] if words[at + 1 : at + 2] == ["by"] else "nothing certain"
    return _DIRECTION.get(word)


def _is_verb(words: Sequence[str]) -> bool:
    """Is it one of the verbs that take an object, alone?"""
    return len(words) == 1 and any(
        words[0] in verb.split() for verbs in _VERBS.values() for verb in verbs
    )


def _agree(singular: Sequence[str], plural: Sequence[str]) -> bool:
    one, many = singular[0], plural[0]
    expected = {_AGREEING.get(one, one.removesuffix("s")), one.removesuffix("es")}
    return one != many and many in expected and list(singular[1:]) == list(plural[1:])
