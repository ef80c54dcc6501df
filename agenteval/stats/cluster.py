"""Groups of unit vectors by average linkage (UPGMA, Sokal and Michener 1958)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tree = NDArray[np.float64]
Labels = NDArray[np.intp]
Similarity = Callable[[slice], Floats]  # of some rows to all

_BLOCK = 256  # rows of the similarity matrix in memory
_SLACK = 1e-6  # precision of cosines of float32 rows


def average_tree(similarity: Similarity, n: int) -> Tree:
    """Return scipy's linkage matrix (n - 1, 4) of `n` rows: heights are 1 - mean similarity.

    Deterministic for a given order of rows. Memory is that of n * (n - 1) / 2 distances, twice.
    """
    from scipy.cluster.hierarchy import linkage

    if n < 2:
        return np.zeros((0, 4))
    condensed = np.empty(n * (n - 1) // 2)
    at = 0
    for begin in range(0, n, _BLOCK):
        for row, cosine in enumerate(similarity(slice(begin, begin + _BLOCK)), start=begin):
            tail = cosine[row + 1 :]
            condensed[at : at + len(tail)] = np.round(np.maximum(1 - tail, 0), 6)
            at += len(tail)
    return np.asarray(linkage(condensed, method="average"))


def average_link(similarity: Similarity, n: int, tau: float) -> Labels:
    """Return the group (0..k-1, in order of first appearance) of each of `n` rows.

    The two groups with the highest mean similarity are joined while it is at least `tau`. A higher
    tau never gives fewer groups. Raises ValueError unless 0 < tau <= 1.
    """
    from scipy.cluster.hierarchy import fcluster

    if not 0 < tau <= 1:
        raise ValueError(f"tau {tau} is not in (0, 1]")
    if n < 2:
        return np.zeros(n, dtype=np.intp)
    labels = fcluster(average_tree(similarity, n), 1 - tau + _SLACK, criterion="distance")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def similar_pieces(vectors: Floats, most: int) -> list[list[int]]:
    """Split all rows into pieces of at most `most`: the largest branches of the average-linkage
    tree that fit, with neighbouring branches joined while they fit."""
    n = len(vectors)
    branches: list[list[list[int]]] = [[[row]] for row in range(n)]
    for a, b, _, _ in average_tree(lambda rows: vectors[rows] @ vectors.T, n):
        pieces = branches[int(a)] + branches[int(b)]
        # join the two smallest pieces while they fit
        pieces.sort(key=lambda piece: (len(piece), piece))
        while len(pieces) > 1 and len(pieces[0]) + len(pieces[1]) <= most:
            pieces = sorted([sorted(pieces[0] + pieces[1]), *pieces[2:]], key=lambda p: (len(p), p))
        branches.append(pieces)
    return branches[-1] if n else []
