"""Complete linkage without chaining, against a naive agglomeration and by its properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.stats import complete_link
from agenteval.stats.cluster import _components


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def random_rows(seed: int, n: int, d: int = 4) -> np.ndarray:
    return unit(np.random.default_rng(seed).normal(size=(n, d)))


def at_angles(*degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    return unit(np.stack([np.cos(angle), np.sin(angle)], axis=1))


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def naive(vectors: np.ndarray, tau: float, sizes: list[int]) -> set[frozenset[int]]:
    """Join the two clusters with the highest least cosine until that is below tau."""
    cosine = vectors @ vectors.T
    owner = [g for g, size in enumerate(sizes) for _ in range(size)]
    clusters = [[g] for g in range(len(sizes))]

    def least(a: list[int], b: list[int]) -> float:
        rows = [[i for i, g in enumerate(owner) if g in part] for part in (a, b)]
        return min(float(cosine[i, j]) for i in rows[0] for j in rows[1])

    while len(clusters) > 1:
        best = max(itertools.combinations(clusters, 2), key=lambda pair: least(*pair))
        if least(*best) < tau:
            break
        clusters = [c for c in clusters if c not in best] + [best[0] + best[1]]
    return {frozenset(c) for c in clusters}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tau", [0.3, 0.7, 0.95])
def test_equals_naive_complete_linkage(seed: int, tau: float) -> None:
    vectors = random_rows(seed, 24)
    assert partition(complete_link(vectors, tau)) == naive(vectors, tau, [1] * 24)


@pytest.mark.parametrize("seed", range(5))
def test_groups_equal_naive_complete_linkage_over_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=14).tolist()
    centre = rng.normal(size=(14, 3))
    rows = np.repeat(centre, sizes, axis=0) + 0.1 * rng.normal(size=(sum(sizes), 3))
    vectors = unit(rows)
    assert partition(complete_link(vectors, 0.8, sizes=sizes)) == naive(vectors, 0.8, sizes)


def test_a_chain_is_cut() -> None:
    # 0, 40 and 80 degrees: neighbours at cos 40 = .766, the ends at cos 80 = .174
    labels = complete_link(at_angles(0, 40, 80), 0.7)
    assert len(set(labels.tolist())) == 2
    assert labels[0] != labels[2]


def test_a_chain_is_one_component_and_apart_rows_are_not() -> None:
    vectors = at_angles(0, 40, 80, 200)
    components = _components(vectors, np.ones(4, dtype=np.intp), 0.7)
    assert partition(components) == {frozenset({0, 1, 2}), frozenset({3})}


def test_the_pair_at_tau_is_joined_and_the_pair_below_is_not() -> None:
    vectors = np.array([[1, 0], [0.75, np.sqrt(1 - 0.75**2)]], dtype=np.float32)
    tau = float(vectors[0] @ vectors[1])
    assert complete_link(vectors, tau).tolist() == [0, 0]
    assert complete_link(vectors, float(np.nextafter(np.float32(tau), np.float32(1)))).tolist() == [
        0,
        1,
    ]


def test_a_group_stays_together_and_bars_by_its_least_alike_row() -> None:
    # the group holds 0 and 60 degrees; 30 degrees is near both, 90 only near the second
    rows = at_angles(0, 60, 30, 90)
    assert complete_link(rows, 0.8, sizes=[2, 1, 1]).tolist() == [0, 0, 1]
    assert complete_link(rows[[0, 1, 3]], 0.8, sizes=[2, 1]).tolist() == [0, 1]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    tau=st.floats(0.05, 0.99),
    limit=st.sampled_from([1, 10, 10_000]),
)
def test_every_pair_inside_is_at_least_tau(seed: int, n: int, tau: float, limit: int) -> None:
    vectors = random_rows(seed, n)
    labels = complete_link(vectors, tau, exact_limit=limit)
    assert labels.shape == (n,)
    inside = labels[:, None] == labels[None, :]
    np.fill_diagonal(inside, False)
    assert (vectors @ vectors.T)[inside].min(initial=1.0) >= tau - 1e-6


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
def test_a_higher_tau_only_splits(seed: int, n: int) -> None:
    vectors = random_rows(seed, n)
    coarse = partition(complete_link(vectors, 0.4))
    for finer in partition(complete_link(vectors, 0.8)):
        assert any(finer <= cluster for cluster in coarse)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_the_order_of_rows_changes_nothing(seed: int, data: st.DataObject) -> None:
    vectors = random_rows(seed, 30)
    order = np.array(data.draw(st.permutations(range(30))))
    shuffled = partition(complete_link(vectors[order], 0.6))
    back = {frozenset(order[list(cluster)].tolist()) for cluster in shuffled}
    assert back == partition(complete_link(vectors, 0.6))


def test_blocks_do_not_show() -> None:
    # 700 rows span three blocks, the middle group of 400 rows spans a block border
    rng = np.random.default_rng(3)
    sizes = [100, 400, 1, 99, 100]
    centre = np.array([[1, 0, 0], [0, 1, 0], [0.02, 1, 0], [0, 0, 1], [1, 0.02, 0]], dtype=float)
    vectors = unit(np.repeat(centre, sizes, axis=0) + 0.01 * rng.normal(size=(700, 3)))
    assert complete_link(vectors, 0.9, sizes=sizes).tolist() == [0, 1, 1, 2, 0]
    assert complete_link(vectors, 0.9, sizes=sizes, exact_limit=1).tolist() == [0, 1, 1, 2, 0]
    assert complete_link(vectors, 0.9).tolist() == np.repeat([0, 1, 1, 2, 0], sizes).tolist()


def test_labels_are_numbered_by_first_appearance() -> None:
    assert complete_link(at_angles(90, 0, 91, 1), 0.9).tolist() == [0, 1, 0, 1]


def test_no_rows_no_labels() -> None:
    assert complete_link(np.zeros((0, 3), dtype=np.float32), 0.5).tolist() == []


@pytest.mark.parametrize("tau", [0.0, -0.5, 1.01])
def test_refuses_a_tau_out_of_range(tau: float) -> None:
    with pytest.raises(ValueError, match="tau"):
        complete_link(at_angles(0), tau)


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [0, 2], [3, -1]])
def test_refuses_sizes_that_do_not_fit(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="sizes"):
        complete_link(at_angles(0, 1), 0.5, sizes=sizes)
