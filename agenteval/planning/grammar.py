"""Syntax trees of planning requests (arXiv 2404.17833, figures 4 and 6), rendered in English.

A leaf is an action (its number in the case, from 0) or a point in time (an hour). A tree without
words is a skeleton: every word number is UNSET. Word numbers index the lists of `words`.

The constraints of a tree (section 4.1): a part binds every action of its subject to every action
of its object. A relative clause binds the actions before it in the same way, and so do relative
clauses inside it. Fronting does not change the meaning: the order is always read from the subject
to the object. The words themselves add no constraint.

In English, verbs agree with the number of actions in their subject, also after "which". Lists are
"a", "a and b", "a, b and c". A relative clause stands between commas; its closing comma merges with
the next mark, so nested clauses close with one: "a, which follows b, which precedes c, happens
before d". One shape is never generated because its text is ambiguous: see `unfronted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from agenteval.planning.case import Before, Constraint, Side, StatedConstraint, TimeLimit
from agenteval.planning.words import CONJUNCTIONS, Kind, allowed, words

Direction = Literal["prec", "succ"]  # subject before object; subject after object
Form = Literal["verb", "preposition", "pair"]
DIRECTIONS: tuple[Direction, Direction] = ("prec", "succ")
CONJ: Literal["CONJ"] = "CONJ"  # slot of a conjunction between parts
Slot = Kind | Literal["CONJ"]
UNSET = -1
SLOTS: dict[tuple[Form, Direction], tuple[Kind, ...]] = {
    ("verb", "prec"): ("VP_prec",),
    ("verb", "succ"): ("VP_succ",),
    ("preposition", "prec"): ("VP_none", "P_prec"),
    ("preposition", "succ"): ("VP_none", "P_succ"),
    ("pair", "prec"): ("VP_none", "SC_prec", "VP_none"),
    ("pair", "succ"): ("VP_none", "SC_succ", "VP_none"),
}


@dataclass(frozen=True, slots=True)
class Link:
    """The connection of subject and object, with a word for each of its `slots`.

    "verb": a verb phrase that carries the order itself ("precedes"). "preposition": a neutral verb
    phrase and a preposition ("occurs" + "before"). "pair": two dependent clauses, each with its
    neutral verb phrase, and a conjunction ("A happens before B happens"); not in relative clauses.
    """

    form: Form
    direction: Direction
    words: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.words:
            object.__setattr__(self, "words", (UNSET,) * len(self.slots))

    @property
    def slots(self) -> tuple[Kind, ...]:
        """The kind of each word."""
        return SLOTS[self.form, self.direction]


@dataclass(frozen=True, slots=True)
class Relative:
    """A "which" clause about all actions before it."""

    link: Link
    object: Object


@dataclass(frozen=True, slots=True)
class Actions:
    """One or more different actions, optionally with a relative clause."""

    ids: tuple[NonNegativeInt, ...]
    relative: Relative | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A point in time, a full hour from 0 to 24; only as the object of a preposition."""

    hour: int


Object = Actions | Time


@dataclass(frozen=True, slots=True)
class SubSentence:
    """A sub-sentence: "A precedes B", "A occurs before B", "A happens before B happens"; fronted
    (not with a verb) "Before B, A occurs", "Before B happens, A happens"."""

    subject: Actions
    link: Link
    object: Object
    fronted: bool = False


@dataclass(frozen=True, slots=True)
class RequestSentence:
    """Parts joined by conjunctions that do not affect the order ("and", "while")."""

    parts: tuple[SubSentence, ...]
    conjunctions: tuple[int, ...] = ()  # one less than parts, in CONJ

    def __post_init__(self) -> None:
        if len(self.conjunctions) != len(self.parts) - 1:
            raise ValueError("a sentence of k parts has k - 1 conjunctions")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """The whole request: its sentences in order."""

    sentences: tuple[RequestSentence, ...]

    def parts(self) -> Iterator[SubSentence]:
        """Yield all parts in order; constraints cite a part by its position."""
        for sentence in self.sentences:
            yield from sentence.parts


def bonds(part: SubSentence) -> Iterator[tuple[Actions, Link, Object]]:
    """Yield (subject, link, object) of the part, of the relative clauses of its subject from outer
    to inner, and of those of its object."""
    yield part.subject, part.link, part.object
    for node in (part.subject, part.object):
        while isinstance(node, Actions) and node.relative is not None:
            yield node, node.relative.link, node.relative.object
            node = node.relative.object


def followed(paragraph: Paragraph) -> set[int]:
    """Return the actions that are followed by another action in a list, or by "which"."""
    nodes = {node for part in paragraph.parts() for s, _, o in bonds(part) for node in (s, o)}
    lists = [node for node in nodes if isinstance(node, Actions)]
    return {id for node in lists for id in (node.ids if node.relative else node.ids[:-1])}


def demands(part: SubSentence) -> list[Constraint]:
    """Return all constraints of one part, each once, in the order of `bonds`."""
    constraints: dict[Constraint, None] = {}
    for subject, link, object_ in bonds(part):
        before = link.direction == "prec"
        for action in subject.ids:
            if isinstance(object_, Time):
                side: Side = "before" if before else "after"
                constraints[TimeLimit(action, side, object_.hour)] = None
                continue
            for other in object_.ids:
                constraints[Before(action, other) if before else Before(other, action)] = None
    return list(constraints)


def constraints_of(paragraph: Paragraph) -> tuple[StatedConstraint, ...]:
    """Return every constraint once, in order of first mention.

    Its `sentences` are the numbers of the parts that state it, over the whole paragraph.
    """
    sentences: dict[Constraint, list[int]] = {}
    for number, part in enumerate(paragraph.parts()):
        for constraint in demands(part):
            sentences.setdefault(constraint, []).append(number)
    return tuple(StatedConstraint(c, tuple(numbers)) for c, numbers in sentences.items())


def forms_in(paragraph: Paragraph) -> set[str]:
    """Return the names of the clause forms in use.

    Names followed by the direction, prec or succ: "verb", "preposition", "fronted preposition",
    "pair", "fronted pair" (parts), "relative" (each "which" clause), "time" (a time as object).
    Without a direction: "plural" (a list of actions), "conjunction" (several parts in a sentence).
    """
    forms = {"conjunction" for s in paragraph.sentences if len(s.parts) > 1}
    for part in paragraph.parts():
        name = f"fronted {part.link.form}" if part.fronted else part.link.form
        for subject, link, object_ in bonds(part):
            forms.add(f"{name} {link.direction}")
            name = "relative"
            if isinstance(object_, Time):
                forms.add(f"time {link.direction}")
            if any(isinstance(o, Actions) and len(o.ids) > 1 for o in (subject, object_)):
                forms.add("plural")
    return forms


_TREE = TypeAdapter(Paragraph)


def to_json(paragraph: Paragraph) -> dict[str, Any]:
    """Return the tree as JSON values without defaults."""
    tree: dict[str, Any] = _TREE.dump_python(paragraph, mode="json", exclude_defaults=True)
    return tree


def from_json(value: object) -> Paragraph:
    """Return the tree from the output of `to_json`. Raises ValueError for anything else."""
    try:
        return _TREE.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


# -- words and hours -------------------------------------------------------------------------------

ChooseWord = Callable[[Slot, int, bool], int]


def fill(paragraph: Paragraph, rng: np.random.Generator) -> Paragraph:
    """Draw a word uniformly for each empty slot; a time gets a preposition that fits."""
    return _drawn(paragraph, rng, lambda word, every: every if word == UNSET else [])


def refill(paragraph: Paragraph, rng: np.random.Generator) -> Paragraph:
    """Replace every word with a different one, drawn uniformly."""
    return _drawn(paragraph, rng, lambda word, every: [i for i in every if i != word])


def strip(paragraph: Paragraph) -> Paragraph:
    """Return the skeleton: every word UNSET."""
    return rewritten(paragraph, lambda _slot, _word, _time: UNSET)


def _drawn(
    paragraph: Paragraph,
    rng: np.random.Generator,
    among: Callable[[int, Sequence[int]], Sequence[int]],
) -> Paragraph:
    def draws() -> Iterator[float]:  # 32 at a time, since one by one is slow
        while True:
            yield from rng.random(32).tolist()

    draw = draws()

    def choose(slot: Slot, word: int, time: bool) -> int:
        share = next(draw)
        conjunctions = range(len(CONJUNCTIONS))
        options = among(word, conjunctions if slot == CONJ else allowed(slot, time=time))
        return options[int(share * len(options))] if options else word

    return rewritten(paragraph, choose)


def rewritten(
    paragraph: Paragraph,
    word: ChooseWord = lambda _slot, word, _time: word,
    hour: Callable[[int], int] = lambda hour: hour,
) -> Paragraph:
    """Return the paragraph with other words and hours, chosen in the order of the text.

    A word becomes word(slot, word, whether it must fit a time), an hour becomes hour(hour).
    """

    def actions(node: Actions) -> Actions:
        if node.relative is None:
            return node
        return Actions(node.ids, Relative(*bond(node.relative.link, node.relative.object)))

    def bond(link: Link, object_: Object) -> tuple[Link, Object]:
        time = isinstance(object_, Time)
        slots = list(zip(link.slots, link.words, strict=True))
        chosen = [word(kind, w, time and kind.startswith("P_")) for kind, w in slots[:2]]
        other = Time(hour(object_.hour)) if isinstance(object_, Time) else actions(object_)
        chosen += [word(kind, w, False) for kind, w in slots[2:]]  # the verb of the second clause
        return Link(link.form, link.direction, tuple(chosen)), other

    sentences = []
    for sentence in paragraph.sentences:
        parts = [
            SubSentence(actions(p.subject), *bond(p.link, p.object), p.fronted)
            for p in sentence.parts
        ]
        conjunctions = [word(CONJ, w, False) for w in sentence.conjunctions]
        sentences.append(RequestSentence(tuple(parts), tuple(conjunctions)))
    return Paragraph(tuple(sentences))


# -- English ---------------------------------------------------------------------------------------


def render(paragraph: Paragraph, phrases: Sequence[str]) -> str:
    """Return the paragraph in English, sentences separated by one space.

    `phrases` are the noun phrases of activities by action number, valid by `check_activities`.
    Raises ValueError for a tree without words or outside the grammar, IndexError for an unknown
    action.
    """
    sentences = []
    for sentence in paragraph.sentences:
        text = render_part(sentence.parts[0], phrases)
        for number, part in zip(sentence.conjunctions, sentence.parts[1:], strict=True):
            if number == UNSET:
                raise ValueError("a conjunction has no word yet: fill the skeleton first")
            text += f"{CONJUNCTIONS[number]} {render_part(part, phrases)}"
        first = text[0].upper()
        sentences.append(f"{first if len(first) == 1 else text[0]}{text[1:]}.")
    return " ".join(sentences)


def render_part(part: SubSentence, phrases: Sequence[str]) -> str:
    """Return one part without capitalization and period; raises as `render` does."""
    link, object_ = part.link, part.object
    forms = _forms(link, part.subject, object_)
    subject = _english(part.subject, phrases)
    subject += "," if part.subject.relative else ""
    other = _english(object_, phrases)
    if link.form == "pair":
        other += ", " if isinstance(object_, Actions) and object_.relative else " "
        other += forms.pop()
    if not part.fronted:
        return f"{subject} {' '.join(forms)} {other}"
    if link.form == "verb":
        raise ValueError("only a preposition can be fronted, not a verb")
    return f"{forms[1]} {other}, {subject} {forms[0]}"


def unfronted(part: SubSentence) -> SubSentence:
    """Return the part, with fronting removed if its text would be ambiguous.

    This concerns a fronted preposition whose object has a relative clause and whose subject is a
    list with one: "Before a, b and c, which follow d, e and f, which follow g, occur" could say
    that e and f occur before a, b and c, or that b and c occur before a.
    """
    ambiguous = (
        part.fronted
        and part.link.form != "pair"
        and len(part.subject.ids) > 1
        and part.subject.relative is not None
        and isinstance(part.object, Actions)
        and part.object.relative is not None
    )
    return replace(part, fronted=False) if ambiguous else part


def _forms(link: Link, subject: Actions, object_: Object) -> list[str]:
    """Return the words of a link; verbs agree with the subject (in a pair, the second with the
    object)."""
    time = isinstance(object_, Time)
    if time and link.form != "preposition":
        raise ValueError("a time can only be the object of a preposition")
    forms = []
    for place, (kind, number) in enumerate(zip(link.slots, link.words, strict=True)):
        if number == UNSET:
            raise ValueError(f"a {kind} has no word yet: fill the skeleton first")
        word = words()[kind][number]
        if time and place == 1 and not word.time:
            raise ValueError(f"{word.singular!r} is not used with a time")
        node = object_ if place == 2 and isinstance(object_, Actions) else subject
        forms.append(word.singular if len(node.ids) == 1 else word.plural)
    return forms


def _english(node: Object, phrases: Sequence[str]) -> str:
    if isinstance(node, Time):
        if not 0 <= node.hour <= 24:
            raise ValueError(f"{node.hour} is not an hour from 0 to 24")
        return f"{node.hour:02d}:00"
    if len(set(node.ids)) < len(node.ids) or not node.ids:
        raise ValueError("a list holds one or more different actions")
    *most, last = [phrases[i] for i in node.ids]
    text = f"{', '.join(most)} and {last}" if most else last
    if node.relative is None:
        return text
    link, object_ = node.relative.link, node.relative.object
    return f"{text}, which {' '.join(_forms(link, node, object_))} {_english(object_, phrases)}"
