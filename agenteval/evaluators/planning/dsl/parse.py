"""From English of the language back to the tree, words included: the inverse of `render`.

A recursive descent that follows every possibility, so that a text with two readings would be
found and refused, never read in one way silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NoReturn

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import Kind, Lexicon
from agenteval.evaluators.planning.dsl.render import CONJUNCTION, PREPOSITION, VERB, tangled
from agenteval.evaluators.planning.dsl.tree import (
    Actions,
    Clause,
    Dependent,
    Direction,
    Link,
    Object,
    Pair,
    Paragraph,
    Preposition,
    Relative,
    Sentence,
    SubSentence,
    Time,
    Verb,
)

DIRECTIONS: tuple[Direction, ...] = ("prec", "succ")
_CLOCK = re.compile(r"([01]\d|2[0-4]):00")
_ENDS = frozenset({" ", ",", ";", ".", ""})  # what may stand behind a phrase; "" is the end


def parse(text: str, phrases: Sequence[str], lexicon: Lexicon) -> Paragraph:
    """The tree of a text of the language, with the numbers of its words.

    `phrases` are the activities' noun phrases by action number. The case of a sentence's first
    letter is free, everything else stands as `render` writes it. Raises InputError with the
    position (characters, from 1) and what was expected there, for activities that are not fit
    (`Lexicon.check_activities`), and if the text had two readings.
    """
    found = parses(text, phrases, lexicon)
    if len(found) > 1:
        raise InputError(f"the request can be read in {len(found)} ways")
    return found[0]


def parses(text: str, phrases: Sequence[str], lexicon: Lexicon) -> list[Paragraph]:
    """Every reading of the text, at least one; raises InputError as `parse` does for none."""
    lexicon.check_activities(phrases)
    reader = _Reader(text, phrases, lexicon)
    start = 0
    sentences: list[list[Sentence]] = []
    while True:
        try:
            readings, end = reader.sentence(start)
        except RecursionError:
            raise InputError(f"sentence {len(sentences) + 1} is nested too deeply") from None
        sentences.append(readings)
        if end == len(text):
            return [Paragraph(choice) for choice in product(*sentences)]
        start = reader.gap(end)


class _Reader:
    """Reads one text. Each method yields (what was read, position behind it) for every reading."""

    def __init__(self, text: str, phrases: Sequence[str], lexicon: Lexicon) -> None:
        self.text = text
        self.lexicon = lexicon
        self.activities = [*enumerate(phrases)]
        self.start = 0  # of the sentence at hand: its first letter may have either case
        self.furthest = 0
        self.expected: dict[str, None] = {}
        self.known: dict[int, list[tuple[Actions, int]]] = {}

    def sentence(self, start: int) -> tuple[list[Sentence], int]:
        """All readings of the sentence at `start`, and the position behind its period."""
        self.start, self.furthest, self.expected, self.known = start, start, {}, {}
        found: list[Sentence] = []
        end = start
        open_: list[tuple[tuple[SubSentence, ...], tuple[int, ...], int]] = [((), (), start)]
        while open_:
            parts, conjunctions, at = open_.pop()
            for part, behind in self.part(at):
                longer = (*parts, part)
                for dot in self.literal(".", behind, "a period"):
                    found.append(Sentence(longer, conjunctions))
                    end = dot
                for number, after in self.conjunction(behind):
                    open_.append((longer, (*conjunctions, number), after))
        if not found:
            self.fail()
        return found, end

    def part(self, at: int) -> Iterator[tuple[SubSentence, int]]:
        yield from self.in_order(at)
        yield from self.fronted_clause(at)
        yield from self.fronted_pair(at)

    def in_order(self, at: int) -> Iterator[tuple[SubSentence, int]]:
        """ "A precedes B", "A occurs before B", "A happens before B happens"."""
        for subject, verb_at in self.subject(at):
            for link, object_, end in self.link_and_object(verb_at, subject):
                yield Clause(subject, link, object_), end
            for verb, behind in self.verb("VP_none", verb_at, subject):
                main = Dependent(subject, verb)
                for word_at in self.literal(" ", behind, "a conjunction of time"):
                    for direction, word, other_at in self.opening(CONJUNCTION, word_at):
                        for other, end in self.dependent(other_at):
                            yield Pair(direction, main, other, word), end

    def fronted_clause(self, at: int) -> Iterator[tuple[SubSentence, int]]:
        """ "Before B, A occurs"."""
        for direction, word, object_at in self.opening(PREPOSITION, at):
            for object_, behind in self.object(object_at, self.fits_time(direction, word)):
                for main_at in self.literal(", ", behind, "a comma"):
                    for main, end in self.dependent(main_at):
                        link = Preposition(direction, main.verb, word)
                        clause = Clause(main.subject, link, object_, fronted=True)
                        if not tangled(clause):
                            yield clause, end

    def fronted_pair(self, at: int) -> Iterator[tuple[SubSentence, int]]:
        """ "Before B happens, A happens"."""
        for direction, word, other_at in self.opening(CONJUNCTION, at):
            for other, behind in self.dependent(other_at):
                for main_at in self.literal(", ", behind, "a comma"):
                    for main, end in self.dependent(main_at):
                        yield Pair(direction, main, other, word, fronted=True), end

    def link_and_object(self, at: int, subject: Actions) -> Iterator[tuple[Link, Object, int]]:
        for direction in DIRECTIONS:
            for verb, behind in self.verb(VERB[direction], at, subject):
                for object_at in self.literal(" ", behind, "an object"):
                    for object_, end in self.object(object_at, False):
                        yield Verb(direction, verb), object_, end
        for verb, behind in self.verb("VP_none", at, subject):
            for word_at in self.literal(" ", behind, "a preposition"):
                for direction, word, object_at in self.opening(PREPOSITION, word_at):
                    link = Preposition(direction, verb, word)
                    for object_, end in self.object(object_at, self.fits_time(direction, word)):
                        yield link, object_, end

    def dependent(self, at: int) -> Iterator[tuple[Dependent, int]]:
        """ "A happens"."""
        for subject, verb_at in self.subject(at):
            for verb, end in self.verb("VP_none", verb_at, subject):
                yield Dependent(subject, verb), end

    def subject(self, at: int) -> Iterator[tuple[Actions, int]]:
        """Actions, with the comma that closes a relative clause and the space before the verb."""
        for actions, behind in self.actions(at):
            if actions.relative is None:
                yield from ((actions, end) for end in self.literal(" ", behind, "a verb phrase"))
            else:
                yield from ((actions, end) for end in self.literal(", ", behind, "a comma"))

    def object(self, at: int, time: bool) -> Iterator[tuple[Object, int]]:
        if time and (found := _CLOCK.match(self.text, at)):
            yield Time(int(found[1])), found.end()
            return
        if time:
            self.miss(at, "a time")
        yield from self.actions(at)

    def actions(self, at: int) -> list[tuple[Actions, int]]:
        """A list of activities, as it stands and with the relative clause behind it."""
        if at not in self.known:
            found: list[tuple[Actions, int]] = []
            for ids, behind in self.listing(at, ()):
                plain = Actions(ids)
                found.append((plain, behind))
                for relative_at in self.literal(", which ", behind, "', which'"):
                    for link, object_, end in self.link_and_object(relative_at, plain):
                        found.append((Actions(ids, Relative(link, object_)), end))
            self.known[at] = found
        return self.known[at]

    def listing(self, at: int, before: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
        """ "a", "a and b", "a, b and c"; a list with commas must end in "and"."""
        for action, behind in self.activity(at, before):
            ids = (*before, action)
            if len(ids) == 1:
                yield ids, behind
            for last_at in self.literal(" and ", behind, "'and'"):
                yield from (((*ids, last), end) for last, end in self.activity(last_at, ids))
            for next_at in self.literal(", ", behind, "a comma"):
                yield from self.listing(next_at, ids)

    def activity(self, at: int, taken: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        found = False
        for number, phrase in self.activities:
            end = at + len(phrase)
            if (
                number not in taken
                and self.stands(phrase, at)
                and self.text[end : end + 1] in _ENDS
            ):
                found = True
                yield number, end
        if not found:
            self.miss(at, "another activity" if taken else "an activity")

    def verb(self, kind: Kind, at: int, subject: Actions) -> Iterator[tuple[int, int]]:
        """A verb phrase in the number of its subject."""
        plural = len(subject.ids) > 1
        found = False
        for number, word in enumerate(self.lexicon.words[kind]):
            form = word.plural if plural else word.singular
            end = at + len(form)
            if self.text.startswith(form, at) and self.text[end : end + 1] in _ENDS:
                found = True
                yield number, end
        if not found:
            self.miss(at, f"a verb phrase in the {'plural' if plural else 'singular'}")

    def opening(
        self, kinds: dict[Direction, Kind], at: int
    ) -> Iterator[tuple[Direction, int, int]]:
        """A preposition or conjunction of time, and the space behind it."""
        found = False
        for direction in DIRECTIONS:
            for number, word in enumerate(self.lexicon.words[kinds[direction]]):
                form = word.singular
                if self.stands(form + " ", at):
                    found = True
                    yield direction, number, at + len(form) + 1
        if not found:
            self.miss(at, "a preposition" if kinds is PREPOSITION else "a conjunction of time")

    def conjunction(self, at: int) -> Iterator[tuple[int, int]]:
        for number, word in enumerate(self.lexicon.conjunctions):
            if self.text.startswith(word + " ", at):
                yield number, at + len(word) + 1
        self.miss(at, "a conjunction of clauses")

    def fits_time(self, direction: Direction, word: int) -> bool:
        return self.lexicon.words[PREPOSITION[direction]][word].time

    def literal(self, mark: str, at: int, name: str) -> Iterator[int]:
        """The position behind `mark`, if it stands here."""
        if self.text.startswith(mark, at):
            yield at + len(mark)
        else:
            self.miss(at, name)

    def stands(self, phrase: str, at: int) -> bool:
        """Does `phrase` stand here, its first letter in either case at the sentence's start?"""
        if self.text.startswith(phrase, at):
            return True
        return (
            at == self.start
            and self.text[at : at + 1].upper() == phrase[0].upper()
            and self.text.startswith(phrase[1:], at + 1)
        )

    def gap(self, at: int) -> int:
        """The position behind the space between two sentences."""
        if self.text.startswith(" ", at):
            return at + 1
        self.furthest, self.expected = at, {"a space or the end": None}
        return self.fail()

    def miss(self, at: int, expected: str) -> None:
        """Note what was expected; of all that failed the furthest position is reported."""
        if at > self.furthest:
            self.furthest, self.expected = at, {}
        if at == self.furthest:
            self.expected[expected] = None

    def fail(self) -> NoReturn:
        found = self.text[self.furthest : self.furthest + 30]
        raise InputError(
            f"expected {' or '.join(self.expected)}, found {found!r}"
            if found
            else f"expected {' or '.join(self.expected)}, found the end",
            f"request, character {self.furthest + 1}",
        )
