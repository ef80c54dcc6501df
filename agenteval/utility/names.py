"""Similarity of criteria by their names: equal texts, and names that never mean the same.

A pair is never the same if its names differ by a negation ("correct actions", "incorrect actions"),
or share all other words and differ in the head ("completion" and "completion time", "step clarity"
and "step accuracy"), unless the embedder finds the heads themselves alike ("methods",
"techniques"). Common words of the levels make a pair more similar.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from agenteval.utility.labels import fold, words
from agenteval.utility.scale_words import (
    DEGREES,
    QUALITY,
    SECONDS,
    sign,
    tokens_of,
    without_negation,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from agenteval.models.embeddings import Vectors
    from agenteval.records import Criterion

_LIST_NUMBER = re.compile(r"\W*(?:criterion\s+)?\d{1,2}(?:[.)\]:](?=\s|[^\W\d])|\s+[-\u2013]\s)\s*")
_MEANING = "#%&@*"  # punctuation that makes another name: C and C# are two languages
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_SMALL = frozenset(words("a an and for in level of on the to use used with taken needed required"))
_BEHIND = frozenset(words("by for in of on to with"))
_ENDING = re.compile(
    r"(?<=\w{4})(?:ibility|ability|ness|ations?|ions?|ings?|ity|ies|es|s|ed|ly|al|e|y)$"
)
_SPEED = frozenset(words("slow slower fast faster quick prompt rapid time"))
_ANY_SCALE = {*QUALITY, *DEGREES, "right", "wrong"}  # words of any scale: they say nothing of it
HEADS_ALIKE = 0.5  # cosine of heads that may be one idea
SHARED_LEVELS = 0.25  # what common level words add to a cosine, at most
NEVER = -1e9  # similarity of a pair that must not be joined, however large its groups


def fold_name(name: str) -> str:
    """Return the text by which names are equal: without case, list number ("1. "), hyphens,
    underscores and other punctuation, with single spaces, CamelCase as words; the name itself if
    nothing remains."""
    name = unicodedata.normalize("NFKC", name)
    if _CAMEL.fullmatch(name):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    text = " ".join(name.casefold().split())
    unnumbered = _LIST_NUMBER.sub("", text, count=1) if _LIST_NUMBER.match(text) else text
    letters = (
        " " if unicodedata.category(c)[0] == "P" and c not in _MEANING else c for c in unnumbered
    )
    return " ".join("".join(letters).split()) or text


def _stem(word: str) -> str:
    return _ENDING.sub("", word)


class ParsedName(NamedTuple):
    """The head of a name (all of a name of one word), the stems of its words without negation,
    and how many words had one."""

    head: str
    words: frozenset[str]
    negated: int


def parse_name(folded: str) -> ParsedName:
    """Parse a folded name: "number of wrong steps" has the head "number"."""
    words = folded.replace("step by step", "stepwise").split()
    content = [word for word in words if word not in _SMALL] or words
    at = next((i for i, word in enumerate(words) if i and word in _BEHIND), len(words))
    head = next((word for word in reversed(words[:at]) if word in content), content[0])
    plain = [without_negation(word) for word in content]
    negated = sum(a != b for a, b in zip(content, plain, strict=True))
    stems = frozenset(map(_stem, plain))
    return ParsedName(head if len(stems) > 1 else folded, stems, negated)


def _level_words(criterion: Criterion) -> frozenset[str]:
    """The levels' words for qualities and faults, without degree and negation; "time" for times."""
    stems = set()
    for token in tokens_of(" ".join(fold(label) for label in criterion.accepted_values)):
        if token in SECONDS or token in _SPEED:
            stems.add("time")
        elif token not in _ANY_SCALE and sign(token):
            stems.add(without_negation(token)[:5])
    return frozenset(stems)


def _incidence(sets: Sequence[Iterable[str]]) -> csr_array:
    from scipy.sparse import csr_array

    column = {word: n for n, word in enumerate(sorted({w for words in sets for w in words}))}
    pairs = [(row, column[word]) for row, words in enumerate(sets) for word in words]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    shape = (len(sets), max(len(column), 1))
    return csr_array((np.ones(len(pairs), np.float32), (rows, columns)), shape=shape)


class Likeness:
    """Similarities of names: the cosine of their vectors, common level words, and NEVER.

    `names`, `heads` (the vectors of their heads), `representatives` and `vectors` are of one
    length and order.
    """

    def __init__(
        self,
        names: Sequence[ParsedName],
        heads: Vectors,
        representatives: Sequence[Criterion],
        vectors: Vectors,
    ) -> None:
        self.vectors, self._head_vectors = vectors, heads
        _, self._heads = np.unique([_stem(name.head) for name in names], return_inverse=True)
        self._negated = np.array([name.negated % 2 for name in names])
        modifiers = [(name.words - {_stem(name.head)}) or {str(n)} for n, name in enumerate(names)]
        _, self._beside = np.unique([" ".join(sorted(w)) for w in modifiers], return_inverse=True)
        self._words = _incidence([name.words for name in names])
        self._word_count = np.asarray(self._words.sum(axis=1), np.float32).ravel()
        levels = [_level_words(criterion) for criterion in representatives]
        self._levels = _incidence(levels)
        self._level_count = np.asarray(self._levels.sum(axis=1), np.float32).ravel()
        self._timed = np.array([1 if "time" in words else -1 if words else 0 for words in levels])

    def __call__(self, rows: slice) -> Vectors:
        """Return the similarities (rows, n) of some names to all."""
        cosine = self.vectors[rows] @ self.vectors.T
        levels, words = self._level_count, self._word_count
        shared = (self._levels[rows] @ self._levels.T).toarray()
        cosine += SHARED_LEVELS * 2 * shared / np.maximum(levels[rows, None] + levels, 1)
        cosine[self._timed[rows, None] * self._timed < 0] -= SHARED_LEVELS
        shared = (self._words[rows] @ self._words.T).toarray()
        other_head = (self._heads[rows, None] != self._heads) & (
            self._head_vectors[rows] @ self._head_vectors.T < HEADS_ALIKE
        )
        # all words of one are words of the other
        within = shared == np.minimum(words[rows, None], words)
        same_modifiers = self._beside[rows, None] == self._beside
        opposed = within & (self._negated[rows, None] != self._negated)
        cosine[opposed | (other_head & (within | same_modifiers))] = NEVER
        return cosine
