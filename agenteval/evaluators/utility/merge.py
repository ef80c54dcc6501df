"""Merging paraphrased criteria, and counting the distinct ones.

What is the same:

* tau = 1: criteria with equal names (case, underscores and spacing aside), whatever their
  descriptions; no embedder is needed. This is how the published curves count at tau = 1.
* tau < 1: criteria whose "name: description" is equal (case, underscores and spacing aside), and
  clusters of texts in which every pair has a cosine of at least tau (complete linkage, no
  chaining). Equal names with unlike descriptions stay apart here and get numbered ids.

Criteria whose scales differ in kind (graded, numeric, nominal) never merge. The result does not
depend on the order of the input.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.records import Criterion, Provenance, content_hash

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder, Vectors

_KIND = {"ordinal": "graded", "binary": "graded", "numeric": "numeric", "nominal": "nominal"}
_DIGITS = 6  # cosines are compared and shown to this precision


@dataclass(frozen=True)
class _Item:
    """A criterion with what is needed to compare it, independent of where it stood."""

    criterion: Criterion
    key: tuple[str, ...]  # equal keys fold: kind, name and, below tau 1, description
    text: str
    sha: str

    @property
    def rank(self) -> tuple[str, ...]:
        """Canonical place: by content, ties by hash; equal ranks are the same record."""
        return (*self.key, self.sha, content_hash(self.criterion.model_dump(mode="json")))


def merge_criteria(
    criteria: Sequence[Criterion], embedder: Embedder | None, *, tau: float | None = None
) -> list[Criterion]:
    """One criterion per cluster, the most often proposed first (distinct seeds, then name).

    `tau` is the least cosine inside a cluster, in (0, 1]; None takes the embedder's default, or 1
    without an embedder. The representative of a cluster is its medoid: the highest mean cosine to
    all members, ties to the wording proposed by more seeds, then to the smallest content hash. It
    keeps its own accepted values, scale, order, sub-criteria and expectations. Every other member
    stands in `provenance.aliases` with its cosine to the representative (None at tau = 1, where
    nothing was embedded); aliases that a member brought along follow it, with `via`.
    `provenance.seeds` is the union. When ids collide, the later gets a number.

    Raises InputError for a tau outside (0, 1] or below 1 without an embedder, and whatever the
    embedder raises.
    """
    tau = _threshold(embedder, tau)
    clusters = _partition(criteria, embedder, tau)
    source = embedder.name if embedder is not None and tau < 1 else None
    merged = [_represent(cluster, source) for cluster in clusters]
    merged.sort(
        key=lambda c: (
            -len(c.provenance.seeds),
            _fold(c.name),
            c.name,
            c.sha256,
            c.model_dump_json(),
        )
    )
    return _with_unique_ids(merged)


def cluster_members(
    criteria_sets: Sequence[Sequence[Criterion]],
    embedder: Embedder | None,
    *,
    tau: float | None = None,
) -> list[list[int]]:
    """Per set the sorted distinct cluster ids of its criteria, for `stats.unique_curve`.

    The clusters are those of `merge_criteria` over all sets together, numbered 0, 1, ... in
    canonical order. Raises as `merge_criteria` does.
    """
    tau = _threshold(embedder, tau)
    everything = [c for criteria in criteria_sets for c in criteria]
    number: dict[int, int] = {}  # by identity: equal records of two sets are two members
    for label, cluster in enumerate(_partition(everything, embedder, tau)):
        number.update({id(item.criterion): label for item in cluster.items})
    return [sorted({number[id(c)] for c in criteria}) for criteria in criteria_sets]


def count_unique(
    criteria_sets: Sequence[Sequence[Criterion]],
    embedder: Embedder | None,
    *,
    tau: float | None = None,
) -> list[int]:
    """In how many of the sets each distinct criterion occurs, for `stats.expected_unique`.

    One entry per cluster; its length is the number of distinct criteria of all sets. Raises as
    `merge_criteria` does.
    """
    members = cluster_members(criteria_sets, embedder, tau=tau)
    counts = Counter(label for labels in members for label in labels)
    return [counts[label] for label in sorted(counts)]


def _threshold(embedder: Embedder | None, tau: float | None) -> float:
    if tau is None:
        return 1.0 if embedder is None else embedder.default_tau
    if not 0 < tau <= 1:
        raise InputError(f"tau is {tau:g}; it must lie above 0 and at most at 1")
    if tau < 1 and embedder is None:
        raise InputError(f"tau {tau:g} needs an embedder; tau 1 merges equal names without one")
    return tau


# ---------------------------------------------------------------- the partition


@dataclass(frozen=True)
class _Cluster:
    items: list[_Item]  # canonical order
    rows: list[int]  # row of `vectors` per item
    vectors: Vectors | None  # None at tau = 1


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    return " ".join(folded.split())


def _item(criterion: Criterion, by_name: bool) -> _Item:
    key = [_KIND[criterion.scale], _fold(criterion.name)]
    if not by_name:
        key.append(_fold(criterion.description))
    text = f"{criterion.name}: {criterion.description}"
    return _Item(criterion, tuple(key), text.removesuffix(": "), criterion.sha256)


def _partition(
    criteria: Iterable[Criterion], embedder: Embedder | None, tau: float
) -> list[_Cluster]:
    """The clusters, in canonical order of their first members."""
    items = sorted((_item(c, by_name=tau == 1) for c in criteria), key=lambda item: item.rank)
    groups: defaultdict[tuple[str, ...], list[_Item]] = defaultdict(list)
    for item in items:
        groups[item.key].append(item)
    if tau == 1 or embedder is None or not groups:
        return [_Cluster(group, [0] * len(group), None) for group in groups.values()]
    # one text speaks for all that are equal: the canonically first
    vectors = embedder.embed([group[0].text for group in groups.values()])
    kinds: defaultdict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(groups):
        kinds[key[0]].append(row)
    folded = list(groups.values())
    return [
        _Cluster(
            [item for row in rows for item in folded[row]],
            [row for row in rows for _ in folded[row]],
            vectors,
        )
        for of_kind in kinds.values()
        for rows in _linked(of_kind, vectors, tau)
    ]


def _linked(rows: list[int], vectors: Vectors, tau: float) -> list[list[int]]:
    from agenteval.stats.cluster import complete_link

    found: defaultdict[int, list[int]] = defaultdict(list)
    labels = complete_link(vectors[rows], tau)
    for row, label in zip(rows, labels.tolist(), strict=True):
        found[label].append(row)
    return list(found.values())


# ---------------------------------------------------------------- the representative


def _represent(cluster: _Cluster, embedder: str | None) -> Criterion:
    items = cluster.items
    cosines = _cosines(cluster)
    proposed: defaultdict[str, set[int]] = defaultdict(set)
    for item in items:
        proposed[item.sha].update(item.criterion.provenance.seeds)
    means = _means(cluster, cosines)
    best = min(
        range(len(items)),
        key=lambda i: (-means[i], -len(proposed[items[i].sha]), items[i].sha, items[i].rank),
    )
    chosen = items[best].criterion
    aliases: list[dict[str, Any]] = list(chosen.provenance.aliases)
    for i, item in enumerate(items):
        if i != best:
            cosine = None
            if cosines is not None:
                cosine = cosines[cluster.rows[best], cluster.rows[i]]
            aliases += _aliases(item.criterion, cosine, embedder)
    seeds = sorted({seed for item in items for seed in item.criterion.provenance.seeds})
    provenance = Provenance(
        **{**dict(chosen.provenance), "seeds": tuple(seeds), "aliases": tuple(aliases)}
    )
    return chosen.model_copy(update={"provenance": provenance})


class _Table:
    """Cosines between the distinct rows of one cluster, looked up by row."""

    def __init__(self, rows: list[int], vectors: Vectors) -> None:
        import numpy as np

        self.distinct = sorted(set(rows))
        self._place = {row: i for i, row in enumerate(self.distinct)}
        part = vectors[self.distinct].astype(np.float64)
        self.values = np.round(np.clip(part @ part.T, -1, 1), _DIGITS)
        np.fill_diagonal(self.values, 1.0)

    def __getitem__(self, pair: tuple[int, int]) -> float:
        return float(self.values[self._place[pair[0]], self._place[pair[1]]])


def _cosines(cluster: _Cluster) -> _Table | None:
    return None if cluster.vectors is None else _Table(cluster.rows, cluster.vectors)


def _means(cluster: _Cluster, cosines: _Table | None) -> list[float]:
    """Mean cosine of each item to all items; a wording counts as often as it was proposed."""
    if cosines is None:
        return [1.0] * len(cluster.items)
    import numpy as np

    weight = Counter(cluster.rows)
    weights = np.array([weight[row] for row in cosines.distinct], dtype=np.float64)
    mean = np.round(cosines.values @ weights / weights.sum(), _DIGITS)
    by_row = dict(zip(cosines.distinct, mean.tolist(), strict=True))
    return [by_row[row] for row in cluster.rows]


def _aliases(
    criterion: Criterion, cosine: float | None, embedder: str | None
) -> list[dict[str, Any]]:
    """What is kept of a merged criterion, and the aliases it had itself."""
    alias: dict[str, Any] = {
        "name": criterion.name,
        "description": criterion.description,
        "accepted_values": list(criterion.accepted_values),
        "seeds": sorted(set(criterion.provenance.seeds)),
        "cosine": cosine,
    }
    if embedder is not None:
        alias["embedder"] = embedder
    if criterion.sub_criteria:
        alias["sub_criteria"] = [part.name for part in criterion.sub_criteria]
    if criterion.numeric_range is not None:
        alias["numeric_range"] = list(criterion.numeric_range)
    return [alias, *({"via": criterion.name, **old} for old in criterion.provenance.aliases)]


def _with_unique_ids(criteria: list[Criterion]) -> list[Criterion]:
    """The later of two equal ids gets the next free number: clarity, clarity-2, clarity-3."""
    taken = {c.id for c in criteria}
    number: Counter[str] = Counter()
    result = []
    for criterion in criteria:
        number[criterion.id] += 1
        if number[criterion.id] == 1:
            result.append(criterion)
            continue
        while f"{criterion.id}-{number[criterion.id]}" in taken:
            number[criterion.id] += 1
        fresh = f"{criterion.id}-{number[criterion.id]}"
        taken.add(fresh)
        result.append(criterion.model_copy(update={"id": fresh}))
    return result
