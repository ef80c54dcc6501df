"""Words and action numbers in and out of trees; the trees themselves never change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from agenteval.evaluators.planning.dsl.lexicon import Kind, Lexicon
from agenteval.evaluators.planning.dsl.render import CONJUNCTION, PREPOSITION, VERB
from agenteval.evaluators.planning.dsl.tree import (
    UNSET,
    Actions,
    Clause,
    Dependent,
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

Slot = Kind | Literal["CONJ"]  # CONJ: the conjunctions between sub-sentences
CONJ: Literal["CONJ"] = "CONJ"
Choose = Callable[[Slot, int, bool], int]  # slot, word now, must it fit a time -> word


def fill(paragraph: Paragraph, lexicon: Lexicon, rng: np.random.Generator) -> Paragraph:
    """Give every slot without a word one, uniformly; a time gets a preposition that fits it."""
    draw = _draws(rng)

    def choose(slot: Slot, word: int, time: bool) -> int:
        share = next(draw)
        if word != UNSET:
            return word
        options = _options(lexicon, slot, time)
        return options[int(share * len(options))]

    return _with_words(paragraph, choose)


def refill(paragraph: Paragraph, lexicon: Lexicon, rng: np.random.Generator) -> Paragraph:
    """The same skeleton with another word in every slot, uniform over the other words.

    A slot whose list holds no other word that fits keeps its own. That is never so for all slots,
    as a lexicon has at least two phrases of each kind and every part has a verb phrase.
    """
    draw = _draws(rng)

    def choose(slot: Slot, word: int, time: bool) -> int:
        share = next(draw)
        options = [i for i in _options(lexicon, slot, time) if i != word]
        return options[int(share * len(options))] if options else word

    return _with_words(paragraph, choose)


def strip(paragraph: Paragraph) -> Paragraph:
    """The skeleton: every word UNSET."""
    return _with_words(paragraph, lambda _slot, _word, _time: UNSET)


def words_in(paragraph: Paragraph) -> list[tuple[Slot, int]]:
    """(kind, word) of every slot, in the order of the tree; "CONJ" for conjunctions.

    A part gives subject, link (verb phrase, then preposition), object, a relative clause behind
    its actions; a pair gives main clause, conjunction, other clause. The conjunctions of a sentence
    follow its parts. A slot without a word has UNSET.
    """
    found: list[tuple[Slot, int]] = []

    def note(slot: Slot, word: int, _time: bool) -> int:
        found.append((slot, word))
        return word

    _with_words(paragraph, note)
    return found


def forms_in(paragraph: Paragraph) -> set[str]:
    """Names of the clause forms in use.

    With the direction prec or succ behind it: "verb", "preposition", "fronted preposition" (main
    clauses), "pair", "fronted pair", "relative" (each "which" clause), "time" (a time as object).
    Without: "plural" (a list of actions), "conjunction" (a sentence of several parts).
    """
    forms = {"conjunction" for s in paragraph.sentences if len(s.parts) > 1}
    for part in paragraph.parts():
        forms.add(_form(part))
        if isinstance(part, Pair):
            roots: tuple[Object, ...] = (part.main.subject, part.other.subject)
        else:
            roots = (part.subject, part.object)
            if isinstance(part.object, Time):
                forms.add(f"time {part.link.direction}")
        for root in roots:
            forms.update(_inner_forms(root))
    return forms


def _form(part: SubSentence) -> str:
    front = "fronted " if part.fronted else ""
    if isinstance(part, Pair):
        return f"{front}pair {part.direction}"
    name = "verb" if isinstance(part.link, Verb) else "preposition"
    return f"{front}{name} {part.link.direction}"


def _inner_forms(node: Object) -> Iterator[str]:
    """Forms of a subject or object and of the relative clauses inside it."""
    while isinstance(node, Actions):
        if len(node.ids) > 1:
            yield "plural"
        if node.relative is None:
            return
        yield f"relative {node.relative.link.direction}"
        if isinstance(node.relative.object, Time):
            yield f"time {node.relative.link.direction}"
        node = node.relative.object


def _options(lexicon: Lexicon, slot: Slot, time: bool) -> Sequence[int]:
    if slot == CONJ:
        return range(len(lexicon.conjunctions))
    return lexicon.allowed(slot, time=time)


def _draws(rng: np.random.Generator) -> Iterator[float]:
    """Numbers in [0, 1), drawn 32 at a time, since one by one is slow."""
    while True:
        yield from rng.random(32).tolist()


def _with_words(paragraph: Paragraph, choose: Choose) -> Paragraph:
    """The paragraph with the word of every slot replaced by what `choose` says."""
    sentences = []
    for sentence in paragraph.sentences:
        parts = tuple([_part(part, choose) for part in sentence.parts])
        joined = tuple([choose(CONJ, word, False) for word in sentence.conjunctions])
        sentences.append(Sentence(parts, joined))
    return Paragraph(tuple(sentences))


def _part(part: SubSentence, choose: Choose) -> SubSentence:
    if isinstance(part, Pair):
        main = _dependent(part.main, choose)
        word = choose(CONJUNCTION[part.direction], part.conjunction, False)
        return Pair(part.direction, main, _dependent(part.other, choose), word, part.fronted)
    subject = _actions(part.subject, choose)
    link = _link(part.link, part.object, choose)
    return Clause(subject, link, _object(part.object, choose), part.fronted)


def _dependent(node: Dependent, choose: Choose) -> Dependent:
    return Dependent(_actions(node.subject, choose), choose("VP_none", node.verb, False))


def _link(link: Link, object_: Object, choose: Choose) -> Link:
    direction = link.direction
    if isinstance(link, Verb):
        return Verb(direction, choose(VERB[direction], link.verb, False))
    verb = choose("VP_none", link.verb, False)
    time = isinstance(object_, Time)
    return Preposition(direction, verb, choose(PREPOSITION[direction], link.preposition, time))


def _object(node: Object, choose: Choose) -> Object:
    return node if isinstance(node, Time) else _actions(node, choose)


def _actions(node: Actions, choose: Choose) -> Actions:
    relative = node.relative
    if relative is None:
        return node
    link = _link(relative.link, relative.object, choose)
    return Actions(node.ids, Relative(link, _object(relative.object, choose)))
