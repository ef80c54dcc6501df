"""Clusters without chaining: every pair inside a cluster is at least tau alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EXACT_LIMIT = 10_000  # largest component linked exactly: 2 * 400 MB of distances
_BLOCK = 256  # rows of one block of the similarity matrix
_CANNOT = 2.0  # distance of a pair that must not share a cluster; others are below 1


def complete_link(
    vectors: NDArray[np.float32], tau: float, *, exact_limit: int = EXACT_LIMIT
) -> NDArray[np.intp]:
    """Cluster labels (0..k-1, numbered by first row) of unit rows (n, d) at cosine `tau`.

    Complete linkage (Sorensen 1948; the algorithm is scipy's nearest-neighbour chain) cut at tau:
    clusters with the highest least cosine are joined first, as long as it is >= tau. Since such
    a cluster lies within one connected component of the graph of pairs >= tau, the components are
    linked one by one, and the full matrix of a large sparse problem is never held.

    A component of more than `exact_limit` rows goes another way, in bounded memory: rows are
    taken in order, and each joins the cluster whose least alike member is most alike to it, if
    that cosine is >= tau, else it founds a cluster. Every pair still is >= tau; the partition may
    be finer or coarser than that of the linkage.

    Deterministic for a given order of rows. Raises ValueError unless 0 < tau <= 1.
    """
    if not 0 < tau <= 1:
        raise ValueError(f"tau {tau} is not in (0, 1]")
    component = _components(vectors, tau)
    order = np.argsort(component, kind="stable")
    starts = np.flatnonzero(np.diff(component[order], prepend=-1))
    labels = np.empty(len(vectors), dtype=np.intp)
    used = 0
    for rows in np.split(order, starts[1:]):
        local = (
            _link(vectors[rows], tau) if len(rows) <= exact_limit else _greedy(vectors[rows], tau)
        )
        labels[rows] = local + used
        used += int(local.max()) + 1 if len(rows) else 0
    return _renumbered(labels)


def _renumbered(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same partition with labels in the order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _components(vectors: NDArray[np.float32], tau: float) -> NDArray[np.intp]:
    """Connected components of the graph of pairs with cosine >= tau, block by block.

    Edges of one block at a time are joined with the components so far (a star per component), so
    that memory is bounded by one block even when all pairs are alike.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(vectors)
    component = np.arange(n, dtype=np.intp)
    for start in range(0, n, _BLOCK):
        alike = vectors[start : start + _BLOCK] @ vectors[start:].T >= tau
        row, column = np.nonzero(alike)
        source = np.concatenate([row + start, np.arange(n)])
        target = np.concatenate([column + start, component])
        ones = np.ones(len(source), dtype=np.int8)
        graph = coo_matrix((ones, (source, target)), shape=(n, n))
        _, labels = connected_components(graph, directed=False)
        # a label must be a row of its component, to be the centre of the next star
        _, first = np.unique(labels, return_index=True)
        component = first[labels].astype(np.intp)
    return component


def _link(vectors: NDArray[np.float32], tau: float) -> NDArray[np.intp]:
    """Labels of one component by complete linkage."""
    n = len(vectors)
    if n == 1:
        return np.zeros(1, dtype=np.intp)
    from scipy.cluster.hierarchy import fcluster, linkage

    condensed = np.empty(n * (n - 1) // 2)
    at = 0
    for start in range(0, n, _BLOCK):
        cosine = vectors[start : start + _BLOCK] @ vectors[start:].T
        for offset, row in enumerate(cosine):
            tail = row[offset + 1 :]
            # a barred pair is marked here, so that no rounding of 1 - cosine decides
            condensed[at : at + len(tail)] = np.where(
                tail >= tau, 1 - tail.astype(np.float64), _CANNOT
            )
            at += len(tail)
    np.maximum(condensed, 0, out=condensed)
    tree = linkage(condensed, method="complete")
    return fcluster(tree, t=1.5, criterion="distance").astype(np.intp) - 1


def _greedy(vectors: NDArray[np.float32], tau: float) -> NDArray[np.intp]:
    """Labels of one component by joining row after row; every pair inside is >= tau."""
    n = len(vectors)
    labels = np.zeros(n, dtype=np.intp)
    used = 0
    for start in range(0, n, _BLOCK):
        block = vectors[start : start + _BLOCK] @ vectors[: start + _BLOCK].T
        for offset, cosine in enumerate(block):
            now = start + offset
            least = np.full(used + 1, np.inf, dtype=np.float32)
            np.minimum.at(least, labels[:now], cosine[:now])
            least[used] = -np.inf
            best = int(np.argmax(least))
            labels[now] = best if least[best] >= tau else used
            used = max(used, int(labels[now]) + 1)
    return labels
