"""Reads English of the language back to its tree: an independent check of texts and constraints.

A recursive descent that follows every possibility, so that a text with two readings is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from agenteval.planning.case import Case
from agenteval.planning.grammar import (
    DIRECTIONS,
    SLOTS,
    Actions,
    Form,
    Link,
    Object,
    Paragraph,
    Relative,
    RequestSentence,
    Slot,
    SubSentence,
    Time,
    constraints_of,
    rewritten,
    to_json,
    unfronted,
)
from agenteval.planning.suite import read_case, rules_of
from agenteval.planning.words import CONJUNCTIONS, Kind, words
from agenteval.planning.words import action as action_of

_ANY: tuple[Form, ...] = ("verb", "preposition", "pair")
_CLOCK = re.compile(r"([01]\d|2[0-4]):00")


def parse(text: str, phrases: Sequence[str]) -> Paragraph:
    """The tree of a text with exactly one reading; `phrases` are those of the activities."""
    (reading,) = parses(text, phrases)
    return reading


def parses(text: str, phrases: Sequence[str]) -> list[Paragraph]:
    """Every reading of the text."""
    reader = _Reader(text, phrases)
    at, sentences = 0, list[list[RequestSentence]]()
    while True:
        ends = reader.sentence(at)
        if not ends:
            return []
        sentences.append([sentence for sentence, _ in ends])
        at = ends[0][1]
        if at == len(text):
            return [Paragraph(choice) for choice in product(*sentences)]
        if text[at] != " ":
            return []
        at += 1


class _Reader:
    """Reads one text. Each method yields (what was read, position behind it) for every reading."""

    def __init__(self, text: str, phrases: Sequence[str]) -> None:
        self.text = text
        self.activities = list(enumerate(phrases))
        self.start = 0  # of the sentence at hand: its first letter may have either case
        self.known: dict[int, list[tuple[Actions, int]]] = {}

    def sentence(self, start: int) -> list[tuple[RequestSentence, int]]:
        self.start, self.known = start, {}
        readings = []
        begun: list[tuple[tuple[SubSentence, ...], tuple[int, ...], int]] = [((), (), start)]
        joints = list(enumerate(CONJUNCTIONS))
        while begun:
            parts, conjunctions, at = begun.pop()
            for part, behind in self.part(at):
                for end in self.mark(".", behind):
                    readings.append((RequestSentence((*parts, part), conjunctions), end))
                for number, after in self.among(joints, behind, " "):
                    begun.append(((*parts, part), (*conjunctions, number), after))
        return readings

    def part(self, at: int) -> Iterator[tuple[SubSentence, int]]:
        for subject, verb_at in self.subject(at):
            for form in _ANY:
                for link, object_, end in self.bond(form, verb_at, subject):
                    yield SubSentence(subject, link, object_), end
        for form in _ANY[1:]:
            yield from self.fronted(form, at)

    def bond(self, form: Form, at: int, subject: Actions) -> Iterator[tuple[Link, Object, int]]:
        """Everything behind a subject."""
        for direction in DIRECTIONS:
            kinds = SLOTS[form, direction]
            for verb, behind in self.verb(kinds[0], at, subject):
                for next_at in self.mark(" ", behind):
                    if form == "verb":
                        for node, end in self.actions(next_at):
                            yield Link(form, direction, (verb,)), node, end
                        continue
                    for word, object_, end in self.bound(kinds, next_at):
                        yield Link(form, direction, (verb, *word)), object_, end

    def bound(
        self, kinds: Sequence[Kind], at: int
    ) -> Iterator[tuple[tuple[int, ...], Object, int]]:
        """A preposition and its object, or a conjunction and its clause: the words of both."""
        listed = words()[kinds[1]]
        forms = [(i, word.singular) for i, word in enumerate(listed)]
        for word, object_at in self.among(forms, at, " "):
            if len(kinds) == 3:
                for node, verb_at in self.subject(object_at):
                    for verb, end in self.verb("VP_none", verb_at, node):
                        yield (word, verb), node, end
            elif listed[word].time and (hour := _CLOCK.match(self.text, object_at)):
                yield (word,), Time(int(hour[1])), hour.end()
            else:
                for actions, end in self.actions(object_at):
                    yield (word,), actions, end

    def fronted(self, form: Form, at: int) -> Iterator[tuple[SubSentence, int]]:
        """ "Before B, A occurs", "Before B happens, A happens"."""
        for direction in DIRECTIONS:
            for word, object_, behind in self.bound(SLOTS[form, direction], at):
                for main_at in self.mark(", ", behind):
                    for subject, verb_at in self.subject(main_at):
                        for verb, end in self.verb("VP_none", verb_at, subject):
                            part = SubSentence(
                                subject, Link(form, direction, (verb, *word)), object_, True
                            )
                            if unfronted(part) is part:
                                yield part, end

    def subject(self, at: int) -> Iterator[tuple[Actions, int]]:
        """Actions, with the comma that closes a relative clause and the space before the verb."""
        for actions, behind in self.actions(at):
            for end in self.mark(" " if actions.relative is None else ", ", behind):
                yield actions, end

    def actions(self, at: int) -> list[tuple[Actions, int]]:
        """A list of activities, as it stands and with the relative clause behind it."""
        if at not in self.known:
            readings: list[tuple[Actions, int]] = []
            for ids, behind in self.listing(at, ()):
                plain = Actions(ids)
                readings.append((plain, behind))
                for relative_at in self.mark(", which ", behind):
                    for form in _ANY[:2]:
                        for link, object_, end in self.bond(form, relative_at, plain):
                            readings.append((Actions(ids, Relative(link, object_)), end))
            self.known[at] = readings
        return self.known[at]

    def listing(self, at: int, before: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
        """ "a", "a and b", "a, b and c"; a list with commas must end in "and"."""
        for action, behind in self.activity(at, before):
            ids = (*before, action)
            if len(ids) == 1:
                yield ids, behind
            for last_at in self.mark(" and ", behind):
                yield from (((*ids, last), end) for last, end in self.activity(last_at, ids))
            for next_at in self.mark(", ", behind):
                yield from self.listing(next_at, ids)

    def activity(self, at: int, taken: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        free = [(number, phrase) for number, phrase in self.activities if number not in taken]
        return self.among(free, at)

    def verb(self, kind: Kind, at: int, subject: Actions) -> Iterator[tuple[int, int]]:
        """A verb phrase in the number of its subject."""
        number = "plural" if len(subject.ids) > 1 else "singular"
        forms = [(i, getattr(word, number)) for i, word in enumerate(words()[kind])]
        return self.among(forms, at)

    def among(
        self, phrases: Iterable[tuple[int, str]], at: int, behind: str = ""
    ) -> Iterator[tuple[int, int]]:
        """The numbers of the phrases that stand here whole."""
        text = self.text
        for number, phrase in phrases:
            end = at + len(phrase)
            stands = text.startswith(phrase, at) or (
                at == self.start
                and text[at : at + 1].upper() == phrase[0].upper()
                and text.startswith(phrase[1:], at + 1)
            )
            if stands and (
                text.startswith(behind, end) if behind else text[end : end + 1] in " ,;."
            ):
                yield number, end + len(behind)

    def mark(self, mark: str, at: int) -> Iterator[int]:
        """The position behind `mark`, if it stands here."""
        if self.text.startswith(mark, at):
            yield at + len(mark)


def words_in(paragraph: Paragraph) -> list[tuple[Slot, int]]:
    """(kind, word) of every slot, in the order of the tree; "CONJ" for conjunctions, which follow
    the sub-sentences of their sentence. A slot without a word has UNSET."""
    slots: list[tuple[Slot, int]] = []

    def note(slot: Slot, word: int, _time: bool) -> int:
        slots.append((slot, word))
        return word

    rewritten(paragraph, note)
    return slots


def written(text: str, actions: Sequence[str], **more: object) -> Case:
    """The case of a text of the language, with the constraints and the tree that a reader finds."""
    value = {"id": "hand", "actions": list(actions), "text": text, **more}
    tree = parse(text, actions)
    steps = [action_of(phrase) for phrase in actions]
    rules = [rule.model_dump() for rule in rules_of(constraints_of(tree), steps)]
    return read_case(json.dumps({"constraints": rules, "tree": to_json(tree), **value}), "hand")
