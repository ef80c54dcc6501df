"""Pairwise precision and recall of clusters against concepts, the choice of tau, the halves."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_PRECISION = 0.95
RESAMPLES = 2000
LEVEL = 0.95


def half(concept_id: str) -> str:
    """`choose` or `print`: whether the first byte of the SHA-256 of the id is even or odd.

    A concept keeps its half when others are added to the bank.
    """
    return "print" if hashlib.sha256(concept_id.encode()).digest()[0] % 2 else "choose"


@dataclass(frozen=True)
class Pairs:
    """Pairs of criteria, counted per concept.

    `joined` and `apart` (one entry per concept) count the pairs of one concept that are in one
    cluster or not; `strangers` (concepts, concepts; symmetric, zero diagonal) the pairs of two
    concepts that are in one cluster.
    """

    joined: Floats
    apart: Floats
    strangers: Floats


def count_pairs(concepts: Sequence[Hashable], clusters: Sequence[Hashable]) -> Pairs:
    """Pairs of criteria; criterion i has concept concepts[i] and is in cluster clusters[i].

    Raises ValueError when the lengths differ.
    """
    if len(concepts) != len(clusters):
        raise ValueError(f"{len(concepts)} concepts but {len(clusters)} clusters")
    row = {c: i for i, c in enumerate(dict.fromkeys(concepts))}
    column = {c: i for i, c in enumerate(dict.fromkeys(clusters))}
    table = np.zeros((len(row), len(column)))
    for concept, cluster in zip(concepts, clusters, strict=True):
        table[row[concept], column[cluster]] += 1
    size = table.sum(axis=1)
    joined = (table * (table - 1) / 2).sum(axis=1)
    strangers = table @ table.T
    np.fill_diagonal(strangers, 0)
    return Pairs(joined, size * (size - 1) / 2 - joined, strangers)


@dataclass(frozen=True)
class Share:
    """A share in [0, 1] with its 95 % interval; None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Quality:
    """Pairwise precision, recall and F1.

    `merged` is the number of pairs in one cluster, `wrong` how many of these are of two concepts,
    `same` the number of pairs of one concept, `concepts` the number of resampling units.
    """

    precision: Share
    recall: Share
    f1: Share
    merged: int
    wrong: int
    same: int
    concepts: int


def draw_weights(n: int, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """How often each of n concepts is in each bootstrap resample, (resamples, n)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)


def weighed(pairs: Pairs, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Joined, strange and apart pairs per row of weights.

    A concept drawn w times brings its own pairs w times, and meets every draw of another concept;
    two draws of the same concept do not meet: they would be the same criteria.
    """
    strange = ((weights @ pairs.strangers) * weights).sum(axis=1) / 2
    return weights @ pairs.joined, strange, weights @ pairs.apart


def f1_of(pairs: Pairs, weights: Floats) -> Floats:
    """F1 per row of weights, 2 joined / (2 joined + strangers + apart).

    Raises ValueError when a row draws no pair that is joined or of one concept.
    """
    joined, strange, apart = weighed(pairs, weights)
    total = 2 * joined + strange + apart
    if not (total > 0).all():
        raise ValueError("no pairs to find: F1 is not defined")
    return np.asarray(2 * joined / total)


def measure(pairs: Pairs, weights: Floats) -> Quality:
    """Precision, recall and F1 with percentile intervals over resampled concepts.

    Where a share is 0 or 1 every resample gives the same, which is no certainty: then the bound is
    the exact binomial one (Clopper and Pearson 1934) over the concepts that bear on it: with a
    merged pair for precision, all for recall; F1 has no interval there. A share without pairs is
    not defined; resamples without such pairs are left out. The clusters are taken as they are,
    not made anew in each resample.
    """
    n = len(pairs.joined)
    tp, fp, fn = (float(x[0]) for x in weighed(pairs, np.ones((1, n))))
    joined, strange, apart = weighed(pairs, weights)
    touched = int(((pairs.joined > 0) | (pairs.strangers.sum(axis=1) > 0)).sum())
    f1 = _share(2 * tp, fp + fn, 2 * joined, strange + apart, n)
    if f1.value in (0.0, 1.0):
        f1 = Share(f1.value, None, None)
    return Quality(
        precision=_share(tp, fp, joined, strange, touched),
        recall=_share(tp, fn, joined, apart, n),
        f1=f1,
        merged=round(tp + fp),
        wrong=round(fp),
        same=round(tp + fn),
        concepts=n,
    )


def _share(right: float, other: float, rights: Floats, others: Floats, units: int) -> Share:
    if right + other == 0:
        return Share(None, None, None)
    bound = ((1 - LEVEL) / 2) ** (1 / units)
    if other == 0:
        return Share(1.0, bound, 1.0)
    if right == 0:
        return Share(0.0, 0.0, 1 - bound)
    known = rights + others > 0  # a resample without such pairs says nothing of their share
    return Share(right / (right + other), *_band(rights[known] / (rights + others)[known]))


def _band(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def f1_gain(new: Pairs, old: Pairs, weights: Floats) -> Share:
    """F1 of `new` less F1 of `old`, with a percentile interval over the same resamples."""
    one = np.ones((1, len(new.joined)))
    gain = float((f1_of(new, one) - f1_of(old, one))[0])
    return Share(gain, *_band(f1_of(new, weights) - f1_of(old, weights)))


def choose_tau(table: Mapping[float, Quality], least: float = LEAST_PRECISION) -> float | None:
    """The tau with the highest F1 among those with a precision of at least `least`.

    Equal F1: the higher tau, which joins less. None when no tau is precise enough.
    """
    allowed = [
        (q.f1.value, tau)
        for tau, q in table.items()
        if q.precision.value is not None and q.precision.value >= least and q.f1.value is not None
    ]
    return max(allowed)[1] if allowed else None
