"""Merging paraphrased criteria, and counting the distinct ones.

What is the same:

* Criteria with equal names (case, underscores and spacing aside) at every tau, whatever their
  descriptions. At tau = 1 nothing else is, and no embedder is needed: so the published curves
  count at tau = 1, and no curve for a lower tau can lie above it.
* Below tau = 1 also names that are paraphrases: complete linkage over the texts
  "name: description", so that in a cluster every two criteria of different names have a cosine of
  at least tau, whichever wordings of the two are compared. No chaining.

Criteria whose scales differ in kind (graded, numeric, nominal) never merge, not even with equal
names: they get numbered ids. The result does not depend on the order of the input.
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
    name: tuple[str, str]  # kind of scale and folded name: equal ones always merge
    wording: tuple[str, str, str]  # with the folded description: equal ones have one vector
    text: str
    sha: str
    rank: tuple[str, ...]  # canonical place: content, then hashes; equal ranks are equal records


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
    rows: list[int]  # row of `vectors` per item; empty at tau = 1
    vectors: Vectors | None  # None at tau = 1


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    return " ".join(folded.split())


def _item(criterion: Criterion) -> _Item:
    name = (_KIND[criterion.scale], _fold(criterion.name))
    wording = (*name, _fold(criterion.description))
    text = f"{criterion.name}: {criterion.description}".removesuffix(": ")
    sha = criterion.sha256
    rank = (*wording, sha, content_hash(criterion.model_dump(mode="json")))
    return _Item(criterion, name, wording, text, sha, rank)


def _partition(
    criteria: Iterable[Criterion], embedder: Embedder | None, tau: float
) -> list[_Cluster]:
    """The clusters, in canonical order of their first members."""
    items = sorted(map(_item, criteria), key=lambda item: item.rank)
    names: defaultdict[tuple[str, str], list[_Item]] = defaultdict(list)
    for item in items:
        names[item.name].append(item)
    if tau == 1 or embedder is None or not items:
        return [_Cluster(members, [], None) for members in names.values()]
    texts: dict[tuple[str, str, str], str] = {}
    for item in items:  # of equal wordings the canonically first is embedded
        texts.setdefault(item.wording, item.text)
    vectors = embedder.embed(list(texts.values()))
    row = {wording: number for number, wording in enumerate(texts)}
    return [
        _Cluster(members, [row[item.wording] for item in members], vectors)
        for members in _linked(names, row, vectors, tau)
    ]


def _linked(
    names: dict[tuple[str, str], list[_Item]],
    row: dict[tuple[str, str, str], int],
    vectors: Vectors,
    tau: float,
) -> list[list[_Item]]:
    """Members of each cluster of names, linked within each kind of scale."""
    from agenteval.stats.cluster import complete_link

    found: defaultdict[tuple[str, int], list[_Item]] = defaultdict(list)
    for kind in sorted({kind for kind, _ in names}):
        groups = [members for name, members in names.items() if name[0] == kind]
        rows = [sorted({row[item.wording] for item in members}) for members in groups]
        part = vectors[[number for group in rows for number in group]]
        labels = complete_link(part, tau, sizes=[len(group) for group in rows])
        for members, label in zip(groups, labels.tolist(), strict=True):
            found[kind, label] += members
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
