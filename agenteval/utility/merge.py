"""Merging paraphrased criteria, and counting the distinct ones.

Two criteria are the same:

* if their names fold to the same text (`fold_name`), regardless of descriptions, levels and scales.
  At tau = 1 this is the only rule, and no embedder is needed. The published curves use tau = 1; a
  curve for a lower tau cannot lie above it.
* below tau = 1, also if their names are paraphrases. Each folded name has one vector, that of its
  medoid wording: the sum of the unit vectors of name and description, which separates better than
  one vector of both texts (`benchmarks/merge_quality`). Names are joined by average linkage while
  the mean similarity of two groups (cosine plus a bonus for common level words) is at least tau.
* if a chat model says so (`consolidate.py`).

Two names are never joined if they differ by a negation ("correct actions", "incorrect actions"), or
share all other words and differ in the head ("completion" and "completion time", "step clarity" and
"step accuracy"), unless the heads are similar for the embedder ("methods", "techniques").

The result does not depend on the order of the input.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agenteval.errors import InputError
from agenteval.records import Criterion, Provenance, content_hash
from agenteval.stats.cluster import average_link, similar_pieces
from agenteval.utility import scale_words as lexicon
from agenteval.utility.critic_reply import with_unique_ids
from agenteval.utility.labels import fold, words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from agenteval.models.embeddings import Embedder, Vectors
    from agenteval.utility.consolidate import Consolidation

_EPSILON = 1e-6
_DIGITS = 6  # decimals to which cosines are rounded

Wording = tuple[str, str]  # folded name and description; one vector for each

_LIST_NUMBER = re.compile(r"\W*(?:criterion\s+)?\d{1,2}(?:[.)\]:](?=\s|[^\W\d])|\s+[-\u2013]\s)\s*")
_MEANING = "#%&@*"  # punctuation that distinguishes names, such as C and C#
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_SMALL = frozenset(words("a an and for in level of on the to use used with taken needed required"))
_BEHIND = frozenset(words("by for in of on to with"))
_ENDING = re.compile(
    r"(?<=\w{4})(?:ibility|ability|ness|ations?|ions?|ings?|ity|ies|es|s|ed|ly|al|e|y)$"
)
_SPEED = frozenset(words("slow slower fast faster quick prompt rapid time"))
_ANY_SCALE = {
    *lexicon.QUALITY,
    *lexicon.DEGREES,
    "right",
    "wrong",
}  # words that fit any scale, so they carry no information
HEADS_ALIKE = 0.5  # minimum cosine of heads that may be the same idea
SHARED_LEVELS = 0.25  # maximum bonus for common level words
NEVER = -1e9  # similarity of two names that must not be joined, even in large groups


# ---------------------------------------------------------------- names


def fold_name(name: str) -> str:
    """Normalise a name for comparison: remove case, list number ("1. ") and punctuation, split
    CamelCase, and use single spaces. Returns the name itself if nothing remains."""
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
    """The head of a name (a single-word name is its own head), the stems of its words without
    negating prefixes, and the number of negated words."""

    head: str
    words: frozenset[str]
    negated: int


def parse_name(folded: str) -> ParsedName:
    """Parse a folded name: "number of wrong steps" has the head "number"."""
    words = folded.replace("step by step", "stepwise").split()
    content = [word for word in words if word not in _SMALL] or words
    at = next((i for i, word in enumerate(words) if i and word in _BEHIND), len(words))
    head = next((word for word in reversed(words[:at]) if word in content), content[0])
    plain = [lexicon.without_negation(word) for word in content]
    negated = sum(a != b for a, b in zip(content, plain, strict=True))
    stems = frozenset(map(_stem, plain))
    return ParsedName(head if len(stems) > 1 else folded, stems, negated)


def _level_words(criterion: Criterion) -> frozenset[str]:
    """Return the stems of quality and fault words in the levels, and "time" for times."""
    stems = set()
    for token in lexicon.tokens_of(" ".join(fold(label) for label in criterion.accepted_values)):
        if token in lexicon.SECONDS or token in _SPEED:
            stems.add("time")
        elif token not in _ANY_SCALE and lexicon.sign(token):
            stems.add(lexicon.without_negation(token)[:5])
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

    `names`, `heads` (the vectors of their heads), `representatives` and `vectors` have the same
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
        _, self._modifiers = np.unique(
            [" ".join(sorted(w)) for w in modifiers], return_inverse=True
        )
        self._words = _incidence([name.words for name in names])
        self._word_count = np.asarray(self._words.sum(axis=1), np.float32).ravel()
        levels = [_level_words(criterion) for criterion in representatives]
        self._levels = _incidence(levels)
        self._level_count = np.asarray(self._levels.sum(axis=1), np.float32).ravel()
        self._timed = np.array([1 if "time" in words else -1 if words else 0 for words in levels])

    def __call__(self, rows: slice) -> Vectors:
        """Return the similarities (rows, n) of some names to all names."""
        cosine = self.vectors[rows] @ self.vectors.T
        levels, words = self._level_count, self._word_count
        shared = (self._levels[rows] @ self._levels.T).toarray()
        cosine += SHARED_LEVELS * 2 * shared / np.maximum(levels[rows, None] + levels, 1)
        cosine[self._timed[rows, None] * self._timed < 0] -= SHARED_LEVELS
        shared = (self._words[rows] @ self._words.T).toarray()
        other_head = (self._heads[rows, None] != self._heads) & (
            self._head_vectors[rows] @ self._head_vectors.T < HEADS_ALIKE
        )
        # all words of one name occur in the other
        within = shared == np.minimum(words[rows, None], words)
        same_modifiers = self._modifiers[rows, None] == self._modifiers
        opposed = within & (self._negated[rows, None] != self._negated)
        cosine[opposed | (other_head & (within | same_modifiers))] = NEVER
        return cosine


# ---------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two names that were not joined but may be the same."""

    left: str
    right: str
    cosine: float


@dataclass(frozen=True)
class _Item:
    criterion: Criterion
    wording: Wording
    rank: tuple[str, ...]  # canonical order by content and hashes; equal ranks are equal records


def _item(criterion: Criterion) -> _Item:
    description = " ".join(unicodedata.normalize("NFKC", criterion.description).casefold().split())
    wording = (fold_name(criterion.name), description)
    record = content_hash(criterion.model_dump(mode="json"))
    return _Item(criterion, wording, (*wording, criterion.sha256, record))


def _embedded(wordings: Sequence[Wording], embedder: Embedder) -> dict[Wording, Any]:
    """Return the unit vector of each wording: the sum of name and description, or the name alone if
    there is no description or the two vectors cancel out."""
    texts = sorted({text for wording in wordings for text in wording if text})
    row = dict(zip(texts, embedder.embed(texts), strict=True))
    names = np.stack([row[name] for name, _ in wordings])
    both = np.stack([row[name] + row[text] if text else row[name] for name, text in wordings])
    length = np.linalg.norm(both, axis=1, keepdims=True)
    units = np.where(length > _EPSILON, both / np.maximum(length, _EPSILON), names)
    return dict(zip(wordings, units, strict=True))


class CriterionClusters:
    """Criteria by folded name: one representative and, with an embedder, one vector for each name.

    Names are in canonical order; a list of labels has one number per name. `vectors` has unit rows,
    None without an embedder. Raises what the embedder raises.
    """

    def __init__(self, criteria: Iterable[Criterion], embedder: Embedder | None) -> None:
        by_name: defaultdict[str, list[_Item]] = defaultdict(list)
        for item in sorted(map(_item, criteria), key=lambda item: item.rank):
            by_name[item.wording[0]].append(item)
        self._items = list(by_name.values())
        self._embedder = embedder and embedder.name
        self._vector: dict[Wording, Any] = {}  # of each wording and each name
        parsed = []
        if embedder is not None and by_name:
            parsed = [parse_name(name) for name in by_name]
            wordings = {item.wording: None for items in self._items for item in items}
            wordings |= {(text, ""): None for text in [*by_name, *(name.head for name in parsed)]}
            self._vector = _embedded(list(wordings), embedder)
        best = [self._representative(items) for items in self._items]
        self.representatives = [item.criterion for item in best]
        self.vectors: Vectors | None = None
        self._likeness: Likeness | None = None
        if self._vector:
            self.vectors = np.stack([self._vector[item.wording] for item in best])
            heads = np.stack([self._vector[name.head, ""] for name in parsed])
            self._likeness = Likeness(parsed, heads, self.representatives, self.vectors)

    def partition(self, tau: float) -> list[int]:
        """Return the group of each name at `tau`, numbered in order of first appearance."""
        if tau == 1 or self._likeness is None:
            return list(range(len(self._items)))
        return [int(label) for label in average_link(self._likeness, len(self._items), tau)]

    def near_misses(self, labels: Sequence[int], least: float) -> list[NearMiss]:
        """Return pairs of names in different groups with a cosine of at least `least`, most similar
        first and one pair for any two groups. Empty without an embedder."""
        if self.vectors is None:
            return []
        i_rows, j_rows = np.triu_indices(len(self.vectors), 1)
        cosine = np.round((self.vectors @ self.vectors.T)[i_rows, j_rows], _DIGITS)
        order = np.argsort(-cosine, kind="stable")
        order = order[cosine[order] >= least]
        misses: dict[frozenset[int], NearMiss] = {}
        for i, j, alike in zip(i_rows[order], j_rows[order], cosine[order], strict=True):
            pair = frozenset({labels[i], labels[j]})
            if len(pair) == 2 and pair not in misses:
                a, b = (self.representatives[k].name for k in (i, j))
                misses[pair] = NearMiss(a, b, float(alike))
        return list(misses.values())

    def pieces(self, size: int) -> list[list[int]]:
        """Split the names into pieces of at most `size`, keeping similar names together."""
        count = len(self.representatives)
        if self.vectors is None or count <= size:
            return [list(range(at, min(at + size, count))) for at in range(0, count, size)]
        return similar_pieces(self.vectors, size)

    def members(
        self, sets: Sequence[Sequence[Criterion]], labels: Sequence[int]
    ) -> list[list[int]]:
        """Return the sorted groups of each set's criteria, which must be those passed in."""
        group = {
            id(item.criterion): label  # by identity: equal records of two sets are two members
            for items, label in zip(self._items, labels, strict=True)
            for item in items
        }
        return [sorted({group[id(c)] for c in criteria}) for criteria in sets]

    def merged(
        self, labels: Sequence[int], consolidated: Consolidation | None = None
    ) -> list[Criterion]:
        """Return one criterion for each group; see `merge_criteria`."""
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for name, label in enumerate(labels):
            groups[label].append(name)
        merged = {label: self._merged(names, consolidated) for label, names in groups.items()}
        title = {label: criterion.name for label, criterion in merged.items()}
        for part, container in consolidated.part_of if consolidated else ():
            criterion = merged[labels[part]]
            wholes = {title[labels[container]], *criterion.provenance.part_of}
            merged[labels[part]] = _with_provenance(criterion, part_of=tuple(sorted(wholes)))
        criteria = sorted(
            merged.values(),
            key=lambda c: (
                -len(c.provenance.seeds),
                fold_name(c.name),
                c.name,
                c.sha256,
                c.model_dump_json(),
            ),
        )
        return with_unique_ids(criteria, frozenset(c.id for c in criteria))

    def _representative(self, items: Sequence[_Item]) -> _Item:
        """Prefer a wording with an order, then the medoid: the highest mean cosine to all wordings
        (weighted by count) and to each name on its own, so that of two wordings the one closer to
        the name wins. Ties: more seeds, then the shorter name, then the smaller content hash."""
        seeds: defaultdict[str, set[int]] = defaultdict(set)
        for item in items:
            seeds[item.criterion.sha256].update(item.criterion.provenance.seeds)
        count = Counter(item.wording for item in items)
        means = dict.fromkeys(count, 1.0)
        if self._vector:
            count.update({(name, "") for name, _ in count})
            rows = np.stack([self._vector[wording] for wording in count]).astype(np.float64)
            weights = np.array(list(count.values()), dtype=np.float64)
            mean = np.round(rows @ (weights @ rows) / weights.sum(), _DIGITS)
            means = dict(zip(count, mean.tolist(), strict=True))
        return min(
            items,
            key=lambda item: (
                not item.criterion.ordered,
                -means[item.wording],
                -len(seeds[item.criterion.sha256]),
                len(item.criterion.name),  # "Accuracy" before "1. accuracy"
                item.criterion.sha256,
                item.rank,
            ),
        )

    def _merged(self, names: Sequence[int], consolidated: Consolidation | None) -> Criterion:
        name_of = {id(item): name for name in names for item in self._items[name]}
        items = [item for name in names for item in self._items[name]]
        best = self._representative(items)
        aliases: list[dict[str, Any]] = list(best.criterion.provenance.aliases)
        for item in items:
            if item is best:
                continue
            alias = self._alias(item, best)
            if consolidated is not None:
                alias |= consolidated.provenance(name_of[id(best)], name_of[id(item)])
            earlier = item.criterion.provenance.aliases
            aliases += [alias, *({"via": item.criterion.name, **a} for a in earlier)]
        seeds = {seed for item in items for seed in item.criterion.provenance.seeds}
        return _with_provenance(best.criterion, seeds=tuple(sorted(seeds)), aliases=tuple(aliases))

    def _alias(self, item: _Item, best: _Item) -> dict[str, Any]:
        criterion = item.criterion
        alias: dict[str, Any] = {
            "name": criterion.name,
            "description": criterion.description,
            "accepted_values": list(criterion.accepted_values),
            "seeds": sorted(set(criterion.provenance.seeds)),
            "cosine": None,
        }
        if self._vector:
            item_vector, best_vector = (self._vector[i.wording].astype(float) for i in (item, best))
            same = item.wording == best.wording
            alias["cosine"] = 1.0 if same else round(float(item_vector @ best_vector), _DIGITS)
            alias["embedder"] = self._embedder
        if criterion.sub_criteria:
            alias["sub_criteria"] = [part.name for part in criterion.sub_criteria]
        if criterion.numeric_range is not None:
            alias["numeric_range"] = list(criterion.numeric_range)
        return alias


def merge_criteria(
    criteria: Sequence[Criterion], embedder: Embedder | None, *, tau: float | None = None
) -> list[Criterion]:
    """Return one criterion per group, the most frequently proposed first (by distinct seeds).

    `tau` is the minimum mean cosine at which two groups are joined, in (0, 1]; None means the
    embedder's default, or 1 without an embedder. The representative of a group is a wording with
    ordered levels if there is one, and among these the medoid (highest mean cosine to all members);
    ties go to more seeds, then to the shorter name, then to the smaller content hash. It keeps its
    own accepted values, scale, order, sub-criteria and expectations. All other members are in
    `provenance.aliases` with their cosine to the representative (None if nothing was embedded),
    each followed by its own earlier aliases, marked with `via`. `provenance.seeds` is the union. If
    ids collide, the later one gets a number.

    Raises InputError for a tau outside (0, 1] or below 1 without an embedder, and what the embedder
    raises.
    """
    tau = threshold(embedder, tau)
    clusters = CriterionClusters(criteria, embedder if tau < 1 else None)
    return clusters.merged(clusters.partition(tau))


def threshold(embedder: Embedder | None, tau: float | None) -> float:
    """Return `tau`, or by default the embedder's. Raises InputError like `merge_criteria`."""
    if tau is None:
        return 1.0 if embedder is None else embedder.default_tau
    if not 0 < tau <= 1:
        raise InputError(f"tau is {tau:g}; it must be above 0 and at most 1")
    if tau < 1 and embedder is None:
        raise InputError(f"tau {tau:g} needs an embedder; tau 1 merges equal names without one")
    return tau


def _with_provenance(criterion: Criterion, **changes: Any) -> Criterion:
    provenance = Provenance(**{**dict(criterion.provenance), **changes})
    return criterion.model_copy(update={"provenance": provenance})
