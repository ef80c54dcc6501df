"""Steps that make a tree of the language smaller or plainer by one thing, for shrinking.

Every step lowers, in this order of weight: mentions of actions and times; sub-sentences joined;
pairs; fronted clauses; prepositions; "after" clauses; words other than the first of their list.
So no row of steps can go on for ever. The demands afterwards are a subset, or the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.dsl.nodes import (
    Actions,
    Clause,
    Direction,
    Link,
    Pair,
    Paragraph,
    Preposition,
    Relative,
    Sentence,
    Time,
    Verb,
)
from agenteval.evaluators.planning.dsl.render import PREPOSITION, tangled

Change = tuple[str, Any]  # what the step does, and the node after it
Step = Callable[[Any], Iterator[Change]]


def simpler(tree: Paragraph, lexicon: Lexicon) -> Iterator[tuple[str, Paragraph]]:
    """(what was changed, tree) for every step from this tree, the largest first.

    Two of them are many steps in one, since they often succeed: the plainest form of everything,
    and the first words everywhere.
    """
    plain = _Plain(lexicon)
    count = sum(1 for _ in tree.parts())
    if count > 1:
        for number in range(count):
            yield "one sub-sentence kept", _kept(tree, {number})
        for number in range(count):
            yield "sub-sentence removed", _kept(tree, {*range(count)} - {number})
    yield from _everywhere(tree, _smaller)
    for all_of, step in (
        ("plainest form", plain.form),
        ("first words", plain.word),
    ):
        if (changed := _exhausted(tree, step)) != tree:
            yield all_of, changed
        yield from _everywhere(tree, step)


def mentioned(node: Any) -> set[int]:
    """Numbers of the actions in a tree or a part of it."""
    if isinstance(node, Actions):
        return {*node.ids} | mentioned(node.relative)
    if isinstance(node, tuple):
        return set().union(*map(mentioned, node))
    if is_dataclass(node):
        return set().union(*(mentioned(getattr(node, f.name)) for f in fields(node)))
    return set()


def _everywhere(node: Any, step: Step) -> Iterator[Change]:
    """The node with the step taken at one place, here or anywhere below."""
    yield from step(node)
    if isinstance(node, tuple):
        for i, item in enumerate(node):
            for change, new in _everywhere(item, step):
                yield change, (*node[:i], new, *node[i + 1 :])
    elif is_dataclass(node) and not isinstance(node, type):
        for part in fields(node):
            for change, new in _everywhere(getattr(node, part.name), step):
                yield change, replace(node, **{part.name: new})


def _exhausted(tree: Paragraph, step: Step) -> Paragraph:
    """The tree after as many steps as there are, always the first one."""
    while (change := next(_everywhere(tree, step), None)) is not None:
        tree = change[1]
    return tree


def _kept(tree: Paragraph, numbers: set[int]) -> Paragraph:
    """The paragraph of these sub-sentences; a conjunction goes with the part behind it."""
    sentences, number = [], 0
    for sentence in tree.sentences:
        places = [i for i in range(len(sentence.parts)) if number + i in numbers]
        number += len(sentence.parts)
        if places:
            joined = tuple(sentence.conjunctions[i - 1] for i in places[1:])
            sentences.append(Sentence(tuple(sentence.parts[i] for i in places), joined))
    return Paragraph(tuple(sentences))


def _smaller(node: Any) -> Iterator[Change]:
    """A relative clause by itself or left out, a list without one of its members."""
    if isinstance(node, Clause | Pair):
        ends = (
            (node.subject, node.object)
            if isinstance(node, Clause)
            else (node.main.subject, node.other.subject)
        )
        for end in ends:
            if isinstance(end, Actions) and end.relative is not None:
                inner = Clause(Actions(end.ids), end.relative.link, end.relative.object)
                yield "relative clause by itself", inner
    if isinstance(node, Actions):
        if node.relative is not None:
            yield "relative clause removed", Actions(node.ids)
        if len(node.ids) > 1:
            for gone in node.ids:
                ids = tuple(i for i in node.ids if i != gone)
                yield "list member removed", Actions(ids, node.relative)


class _Plain:
    """Steps towards "A precedes B" in the first words of a lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        # one that fits a time too: a preposition does not know what stands behind it
        self._preposition: dict[Direction, int] = {
            direction: lexicon.allowed(kind, time=True)[0]
            for direction, kind in PREPOSITION.items()
        }

    def form(self, node: Any) -> Iterator[Change]:
        """A plainer form with the same demands."""
        if isinstance(node, Paragraph):
            for i, sentence in enumerate(node.sentences):
                if len(sentence.parts) > 1:
                    apart = tuple(Sentence((part,)) for part in sentence.parts)
                    before, behind = node.sentences[:i], node.sentences[i + 1 :]
                    yield "sentence taken apart", Paragraph((*before, *apart, *behind))
        if isinstance(node, Clause | Pair) and node.fronted:
            yield "put in order", replace(node, fronted=False)
        if isinstance(node, Pair):
            yield from self._pair(node)
        if isinstance(node, Clause | Relative) and not isinstance(node.object, Time):
            if isinstance(node.link, Preposition) and not getattr(node, "fronted", False):
                yield "verb for preposition", replace(node, link=Verb(node.link.direction, 0))
            if isinstance(node, Clause) and node.link.direction == "succ":
                assert isinstance(node.object, Actions)  # not a Time
                turned = Clause(node.object, self._turned(node.link), node.subject, node.fronted)
                if not tangled(turned):
                    yield "turned round", turned

    def word(self, node: Any) -> Iterator[Change]:
        """The first word of its list in one slot."""
        for slot in ("verb", "conjunction"):
            if getattr(node, slot, 0) != 0:
                yield "first word", replace(node, **{slot: 0})
        if isinstance(node, Preposition):
            first = self._preposition[node.direction]
            if node.preposition != first:
                yield "first word", replace(node, preposition=first)
        if isinstance(node, Sentence):
            for i, word in enumerate(node.conjunctions):
                if word != 0:
                    joined = (*node.conjunctions[:i], 0, *node.conjunctions[i + 1 :])
                    yield "first word", replace(node, conjunctions=joined)

    def _pair(self, node: Pair) -> Iterator[Change]:
        if not node.fronted:
            link = Preposition(node.direction, node.main.verb, self._preposition[node.direction])
            yield "one clause for two", Clause(node.main.subject, link, node.other.subject)
        if node.direction == "succ":
            yield "turned round", Pair("prec", node.other, node.main, 0, node.fronted)

    def _turned(self, link: Link) -> Link:
        if isinstance(link, Verb):
            return Verb("prec", 0)
        return Preposition("prec", link.verb, self._preposition["prec"])
