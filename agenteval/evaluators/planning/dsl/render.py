"""From a tree with words to English; `parse` is the exact inverse.

Verbs agree with the number of actions in their subject, also behind "which". Lists are "a",
"a and b", "a, b and c". A relative clause stands in commas; its closing comma merges with the next
mark, so nested clauses close with one: "a, which follows b, which precedes c, happens before d".

One shape of the grammar has no text, since the text would have two readings: see `tangled`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.planning.dsl.lexicon import Kind, Lexicon, Phrase
from agenteval.evaluators.planning.dsl.tree import (
    Actions,
    Clause,
    Dependent,
    Direction,
    Link,
    Object,
    Pair,
    Paragraph,
    SubSentence,
    Time,
    Verb,
)

VERB: dict[Direction, Kind] = {"prec": "VP_prec", "succ": "VP_succ"}
PREPOSITION: dict[Direction, Kind] = {"prec": "P_prec", "succ": "P_succ"}
CONJUNCTION: dict[Direction, Kind] = {"prec": "SC_prec", "succ": "SC_succ"}


def render(paragraph: Paragraph, phrases: Sequence[str], lexicon: Lexicon) -> str:
    """The paragraph in English, sentences separated by one space.

    `phrases` are the activities' noun phrases by action number. That they are fit is not checked
    here, since that is done once for a list of activities: `Lexicon.check_activities`. Raises
    ValueError for a tree without words, outside the grammar or `tangled`, IndexError for an
    unknown action.
    """
    conjunctions = lexicon.conjunctions
    sentences = []
    for sentence in paragraph.sentences:
        text = render_part(sentence.parts[0], phrases, lexicon)
        for number, part in zip(sentence.conjunctions, sentence.parts[1:], strict=True):
            if number < 0:
                raise ValueError("a conjunction has no word yet: fill the skeleton first")
            text += f"{conjunctions[number]} {render_part(part, phrases, lexicon)}"
        sentences.append(f"{_capital(text)}.")
    return " ".join(sentences)


def render_part(part: SubSentence, phrases: Sequence[str], lexicon: Lexicon) -> str:
    """One sub-sentence, without capital and period; raises as `render` does."""
    if isinstance(part, Pair):
        word = _word(lexicon, CONJUNCTION[part.direction], part.conjunction).singular
        main = _dependent(part.main, phrases, lexicon)
        other = _dependent(part.other, phrases, lexicon)
        return f"{word} {other}, {main}" if part.fronted else f"{main} {word} {other}"
    subject = _subject(part.subject, phrases, lexicon)
    verb, preposition = _link(part.link, part.subject, part.object, lexicon)
    object_ = _object(part.object, phrases, lexicon)
    if not part.fronted:
        return f"{subject} {verb}{preposition} {object_}"
    if not preposition:
        raise ValueError("only a preposition can be fronted, not a verb")
    if tangled(part):
        raise ValueError("a tangled clause has no text: its two relative clauses could be misread")
    return f"{preposition[1:]} {object_}, {subject} {verb}"


def tangled(part: SubSentence) -> bool:
    """Would the text have two readings? A synthesis must not make such a part (do not front it).

    So it is for a fronted clause whose object has a relative clause and whose subject is a list
    with one: "Before a, b and c, which follow d, e and f, which follow g, occur" could say that
    e and f occur before a, b and c, or that b and c occur before a.
    """
    return (
        isinstance(part, Clause)
        and part.fronted
        and len(part.subject.ids) > 1
        and part.subject.relative is not None
        and isinstance(part.object, Actions)
        and part.object.relative is not None
    )


def clock(hour: int) -> str:
    """An hour as it stands in a request: 9 is "09:00". Raises ValueError outside 0 to 24."""
    if not 0 <= hour <= 24:
        raise ValueError(f"{hour} is not an hour from 0 to 24")
    return f"{hour:02d}:00"


def _capital(text: str) -> str:
    """The first letter as a capital, where that is one letter too."""
    first = text[0].upper()
    return first + text[1:] if len(first) == 1 else text


def _word(lexicon: Lexicon, kind: Kind, number: int) -> Phrase:
    if number < 0:
        raise ValueError(f"a {kind} has no word yet: fill the skeleton first")
    return lexicon.words[kind][number]


def _verb(lexicon: Lexicon, kind: Kind, number: int, subject: Actions) -> str:
    """The verb phrase in the number of its subject."""
    word = _word(lexicon, kind, number)
    return word.singular if len(subject.ids) == 1 else word.plural


def _link(link: Link, subject: Actions, object_: Object, lexicon: Lexicon) -> tuple[str, str]:
    """The verb phrase, and the preposition with a space before it ("" for a verb by itself)."""
    time = isinstance(object_, Time)
    if isinstance(link, Verb):
        if time:
            raise ValueError("a time is the object of a preposition only")
        return _verb(lexicon, VERB[link.direction], link.verb, subject), ""
    preposition = _word(lexicon, PREPOSITION[link.direction], link.preposition)
    if time and not preposition.time:
        raise ValueError(f"{preposition.singular!r} is not used with a time")
    return _verb(lexicon, "VP_none", link.verb, subject), f" {preposition.singular}"


def _object(node: Object, phrases: Sequence[str], lexicon: Lexicon) -> str:
    if isinstance(node, Time):
        return clock(node.hour)
    ids = node.ids
    if len(ids) == 1:
        text = phrases[ids[0]]
    elif len(set(ids)) < len(ids) or not ids:
        raise ValueError("a list holds one or more different actions")
    else:
        text = f"{', '.join([phrases[i] for i in ids[:-1]])} and {phrases[ids[-1]]}"
    relative = node.relative
    if relative is None:
        return text
    verb, preposition = _link(relative.link, node, relative.object, lexicon)
    return f"{text}, which {verb}{preposition} {_object(relative.object, phrases, lexicon)}"


def _subject(node: Actions, phrases: Sequence[str], lexicon: Lexicon) -> str:
    """With the comma that closes its relative clause, if there is one."""
    text = _object(node, phrases, lexicon)
    return text if node.relative is None else f"{text},"


def _dependent(node: Dependent, phrases: Sequence[str], lexicon: Lexicon) -> str:
    verb = _verb(lexicon, "VP_none", node.verb, node.subject)
    return f"{_subject(node.subject, phrases, lexicon)} {verb}"
