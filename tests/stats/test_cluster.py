"""Average linkage against a naive one, its cut, and pieces of like rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from agenteval.stats.cluster import average_link, similar_pieces


def at_angles(*degrees: float) -> np.ndarray:
    """Unit rows in the plane; the cosine of two is that of the angle between them."""
    angle = np.radians(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def linked(rows: np.ndarray, tau: float) -> np.ndarray:
    return average_link(lambda some: rows[some] @ rows.T, len(rows), tau)


def random_rows(n: int, seed: int, dimensions: int = 5) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def naive(rows: np.ndarray, tau: float) -> set[frozenset[int]]:
    """Join the two groups with the highest mean cosine, as long as it is at least tau."""
    cosine = rows.astype(float) @ rows.astype(float).T
    groups = [frozenset([i]) for i in range(len(rows))]
    while len(groups) > 1:
        mean, a, b = max(
            (
                (cosine[np.ix_(sorted(a), sorted(b))].mean(), a, b)
                for a, b in combinations(groups, 2)
            ),
            key=lambda found: found[0],
        )
        if mean < tau:
            break
        groups = [g for g in groups if g not in (a, b)] + [a | b]
    return set(groups)


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(5))
def test_equals_naive_average_linkage(seed: int, tau: float) -> None:
    rows = random_rows(24, seed)
    assert partition(linked(rows, tau)) == naive(rows, tau)


@pytest.mark.parametrize("tau", [0.3, 0.75])
def test_more_rows_than_a_block(tau: float) -> None:
    rows = random_rows(300, 9, dimensions=3)
    tree = linkage(rows.astype(float), method="average", metric="cosine")
    assert partition(linked(rows, tau)) == partition(fcluster(tree, 1 - tau, "distance"))


def test_a_pair_at_tau_is_joined_and_one_below_is_not() -> None:
    rows = at_angles(0, 60)
    assert linked(rows, 0.5).tolist() == [0, 0]
    assert linked(rows, 0.5001).tolist() == [0, 1]


def test_labels_are_in_order_of_first_appearance() -> None:
    assert linked(at_angles(90, 0, 91, 1), 0.9).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_join(n: int) -> None:
    assert linked(random_rows(n, 0), 0.5).tolist() == [0] * n
    assert similar_pieces(random_rows(n, 0), 3) == [[0]] * n


def test_refuses_a_tau_out_of_range() -> None:
    with pytest.raises(ValueError, match="tau"):
        linked(at_angles(0), 1.2)


@pytest.mark.parametrize(("n", "most"), [(5, 5), (40, 7), (40, 39), (200, 30)])
def test_pieces_hold_every_row_once_and_are_few(n: int, most: int) -> None:
    pieces = similar_pieces(random_rows(n, 2), most)
    assert sorted(row for piece in pieces for row in piece) == list(range(n))
    assert max(map(len, pieces)) <= most
    assert len(pieces) <= max(1, 2 * n // most)


def test_the_like_are_in_one_piece() -> None:
    rows = at_angles(0, 90, 1, 91, 2, 180, 92)
    assert sorted(similar_pieces(rows, 3)) == [[0, 2, 4], [1, 3, 6], [5]]
