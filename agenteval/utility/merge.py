"""Merging paraphrased criteria, and counting the distinct ones.

Two criteria are the same:

* if their names fold to the same text (`fold_name`), whatever their descriptions, levels and kinds
  of scale. At tau = 1 nothing else is, and no embedder is needed: so the published curves count at
  tau = 1, and no curve for a lower tau can lie above it.
* below tau = 1 also if their names are paraphrases. Each folded name has one vector, however often
  it was proposed: that of its medoid wording, the sum of the unit vectors of name and description,
  which separates better than the vector of both in one text (`benchmarks/merge_quality`). Names are
  joined by average linkage as long as the mean similarity between two groups is at least tau: the
  cosine and what common words of the levels add to it. Opposites, and names that differ in their
  head alone, are never joined (`names.Likeness`).
* if a chat model that was asked about the names says so (`consolidate.py`).

The result does not depend on the order of the input.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.errors import InputError
from agenteval.records import Criterion, Provenance, content_hash
from agenteval.stats.cluster import average_link, similar_pieces
from agenteval.utility.critic_reply import with_unique_ids
from agenteval.utility.names import Likeness, fold_name, parse_name

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder, Vectors
    from agenteval.utility.consolidate import Consolidation

_EPSILON = 1e-6
_DIGITS = 6  # cosines are compared and shown to this precision

Wording = tuple[str, str]  # folded name and description: equal ones have one vector


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two names that stayed apart and may be the same."""

    left: str
    right: str
    cosine: float


@dataclass(frozen=True)
class _Item:
    criterion: Criterion
    wording: Wording
    rank: tuple[str, ...]  # canonical place: content, then hashes; equal ranks are equal records


def _item(criterion: Criterion) -> _Item:
    description = " ".join(unicodedata.normalize("NFKC", criterion.description).casefold().split())
    wording = (fold_name(criterion.name), description)
    record = content_hash(criterion.model_dump(mode="json"))
    return _Item(criterion, wording, (*wording, criterion.sha256, record))


def _embedded(wordings: Sequence[Wording], embedder: Embedder) -> dict[Wording, Any]:
    """The unit vector of each wording: name and description added, the name alone if there is no
    description (or an opposite one, as far as the embedder knows)."""
    texts = sorted({text for wording in wordings for text in wording if text})
    row = dict(zip(texts, embedder.embed(texts), strict=True))
    names = np.stack([row[name] for name, _ in wordings])
    both = np.stack([row[name] + row[text] if text else row[name] for name, text in wordings])
    length = np.linalg.norm(both, axis=1, keepdims=True)
    units = np.where(length > _EPSILON, both / np.maximum(length, _EPSILON), names)
    return dict(zip(wordings, units, strict=True))


class CriterionClusters:
    """Criteria by folded name: one representative and, with an embedder, one vector for each name.

    Names are in canonical order; a label list has one number for each of them. `vectors` are unit
    rows, None without an embedder. Raises whatever the embedder raises.
    """

    def __init__(self, criteria: Iterable[Criterion], embedder: Embedder | None) -> None:
        by_name: defaultdict[str, list[_Item]] = defaultdict(list)
        for item in sorted(map(_item, criteria), key=lambda item: item.rank):
            by_name[item.wording[0]].append(item)
        self._items = list(by_name.values())
        self._embedder = embedder and embedder.name
        self._vector: dict[Wording, Any] = {}  # of each wording, and of each name alone
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
        """Return pairs of names in different groups from a cosine of `least` on, most alike first.

        Of two groups only the most alike pair. Empty without an embedder.
        """
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
        """Partition the names into pieces of at most `size`, similar names together."""
        count = len(self.representatives)
        if self.vectors is None or count <= size:
            return [list(range(at, min(at + size, count))) for at in range(0, count, size)]
        return similar_pieces(self.vectors, size)

    def members(
        self, sets: Sequence[Sequence[Criterion]], labels: Sequence[int]
    ) -> list[list[int]]:
        """Return per set the sorted distinct groups of its criteria, which are those given."""
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
        """The wording with an order before one without, then the medoid: the highest mean cosine
        to all, a wording counted as often as it was proposed and each name by itself once more, so
        that of two wordings the one closer to the name is taken; then that of more seeds, then the
        shortest name and the smallest content hash."""
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
            brought = item.criterion.provenance.aliases
            aliases += [alias, *({"via": item.criterion.name, **a} for a in brought)]
        seeds = {seed for item in items for seed in item.criterion.provenance.seeds}
        return _with_provenance(best.criterion, seeds=tuple(sorted(seeds)), aliases=tuple(aliases))

    def _alias(self, item: _Item, best: _Item) -> dict[str, Any]:
        """The record of a merged criterion."""
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
    """Return one criterion per group, the most often proposed first (distinct seeds, then name).

    `tau` is the least mean cosine at which two groups are joined, in (0, 1]; None takes the
    embedder's default, or 1 without an embedder. The representative of a group is a wording whose
    levels have an order, if there is one; among these the medoid: the highest mean cosine to all
    members, ties to the wording proposed by more seeds, then to the shorter name, then to the
    smallest content hash. It keeps its own accepted values, scale, order, sub-criteria and
    expectations. Every other member is in `provenance.aliases` with its cosine to the
    representative (None if nothing was embedded); aliases that a member brought along follow it,
    with `via`. `provenance.seeds` is the union. When ids collide, the later gets a number.

    Raises InputError for a tau outside (0, 1] or below 1 without an embedder, and whatever the
    embedder raises.
    """
    tau = threshold(embedder, tau)
    clusters = CriterionClusters(criteria, embedder if tau < 1 else None)
    return clusters.merged(clusters.partition(tau))


def threshold(embedder: Embedder | None, tau: float | None) -> float:
    """Return `tau` or the embedder's default (1 without). Raises InputError as `merge_criteria`."""
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
