"""Clusters without chaining: every pair inside a cluster is at least tau alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.intp]

EXACT_LIMIT = 10_000  # largest component linked exactly: 2 * 400 MB of distances
_BLOCK = 256  # rows of the similarity matrix held at once
_CANNOT = 3.0  # distance of a pair that must not share a cluster; others are at most 1


def complete_link(
    vectors: Floats,
    tau: float,
    *,
    sizes: Sequence[int] | None = None,
    exact_limit: int = EXACT_LIMIT,
) -> Labels:
    """Cluster label (0..k-1, in order of first appearance) per group of unit rows (n, d).

    A group is a run of rows that belong together whatever their cosines; `sizes` gives the length
    of each run (default: every row is a group). Groups are as alike as their least alike rows.

    Complete linkage (Defays 1977; scipy's nearest-neighbour chain) cut at cosine `tau`: the two
    clusters with the highest least cosine are joined, as long as it is >= tau, so that every two
    rows of different groups in a cluster are at least that alike. Such a cluster lies within one
    connected component of the graph of pairs >= tau; therefore components are linked one by one,
    and a large problem of many small components never holds its whole matrix.

    A component of more than `exact_limit` groups goes another way, in memory linear in its size:
    groups are taken in order, each joins the cluster whose least alike member is most alike to
    it, if that cosine is >= tau, else it founds a cluster. Every pair still is >= tau, but the
    number of clusters may differ from the linkage's.

    Deterministic for a given order of rows. Raises ValueError unless 0 < tau <= 1 and the sizes
    are positive and sum to n.
    """
    if not 0 < tau <= 1:
        raise ValueError(f"tau {tau} is not in (0, 1]")
    lengths = np.ones(len(vectors), dtype=np.intp) if sizes is None else np.array(sizes, np.intp)
    if lengths.sum() != len(vectors) or (lengths < 1).any():
        raise ValueError("sizes must be positive and sum to the number of rows")
    labels = np.empty(len(lengths), dtype=np.intp)
    if not len(lengths):
        return labels
    component = _components(vectors, lengths, tau)
    row_component = np.repeat(component, lengths)
    used = 0
    for centre in np.unique(component):
        groups = np.flatnonzero(component == centre)
        link = _link if len(groups) <= exact_limit else _greedy
        local = link(vectors[row_component == centre], lengths[groups], tau)
        labels[groups] = local + used
        used += int(local.max()) + 1
    return _renumbered(labels)


def _renumbered(labels: Labels) -> Labels:
    """The same partition with labels in the order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _alike(vectors: Floats, lengths: Labels) -> Iterator[tuple[int, Floats]]:
    """Blocks of the matrix of least cosines between groups: (first group, array (k, groups)).

    Groups that span blocks are carried over, so memory is bounded whatever their sizes.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    ends = starts + lengths
    carried: Floats | None = None
    done = 0
    for begin in range(0, len(vectors), _BLOCK):
        end = min(begin + _BLOCK, len(vectors))
        least = np.minimum.reduceat(vectors[begin:end] @ vectors.T, starts, axis=1)
        inside = starts[done : np.searchsorted(starts, end)] - begin
        least = np.minimum.reduceat(least, np.maximum(inside, 0), axis=0)
        if carried is not None:
            least[0] = np.minimum(least[0], carried)
        complete = int(np.searchsorted(ends, end, side="right")) - done
        carried = least[-1].copy() if complete < len(least) else None
        if complete:
            yield done, least[:complete]
        done += complete


def _components(vectors: Floats, lengths: Labels, tau: float) -> Labels:
    """Connected components of the graph of groups >= tau alike; each named by its first group.

    The edges of one block are joined with the components so far (a star per component), so that
    memory is bounded by a block even when all pairs are alike.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(lengths)
    component = np.arange(n, dtype=np.intp)
    for start, cosine in _alike(vectors, lengths):
        row, column = np.nonzero(cosine >= tau)
        source = np.concatenate([row + start, np.arange(n)])
        target = np.concatenate([column, component])
        ones = np.ones(len(source), dtype=np.int8)
        graph = coo_matrix((ones, (source, target)), shape=(n, n))
        _, labels = connected_components(graph, directed=False)
        _, first = np.unique(labels, return_index=True)
        component = first[labels].astype(np.intp)
    return component


def _link(vectors: Floats, lengths: Labels, tau: float) -> Labels:
    """Labels of one component by complete linkage."""
    n = len(lengths)
    if n == 1:
        return np.zeros(1, dtype=np.intp)
    from scipy.cluster.hierarchy import fcluster, linkage

    condensed = np.empty(n * (n - 1) // 2)
    at = 0
    for start, block in _alike(vectors, lengths):
        for offset, row in enumerate(block):
            tail = row[start + offset + 1 :]
            # barred pairs are marked here, so that no rounding of 1 - cosine decides
            distance = np.where(tail >= tau, np.maximum(1 - tail.astype(np.float64), 0), _CANNOT)
            condensed[at : at + len(tail)] = distance
            at += len(tail)
    tree = linkage(condensed, method="complete")
    return np.asarray(fcluster(tree, t=_CANNOT / 2, criterion="distance"), dtype=np.intp) - 1


def _greedy(vectors: Floats, lengths: Labels, tau: float) -> Labels:
    """Labels of one component by joining group after group; every pair inside is >= tau."""
    labels = np.zeros(len(lengths), dtype=np.intp)
    used = 0
    for start, block in _alike(vectors, lengths):
        for offset, cosine in enumerate(block):
            now = start + offset
            least = np.full(used + 1, np.inf, dtype=np.float32)
            np.minimum.at(least, labels[:now], cosine[:now])
            least[used] = -np.inf
            best = int(np.argmax(least))
            labels[now] = best if least[best] >= tau else used
            used = max(used, int(labels[now]) + 1)
    return labels
