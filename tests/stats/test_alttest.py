"""Alternative annotator test: a slow version in scipy, and judges whose result is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from agenteval.stats import alt_test


def people(rng: np.random.Generator, items: int, noise: float) -> tuple[list[int], list[list[int]]]:
    truth = rng.integers(0, 3, items).tolist()
    return truth, [
        [t if rng.random() > noise else int(rng.integers(0, 3)) for t in truth] for _ in range(3)
    ]


def test_equals_a_slow_version() -> None:
    rng = np.random.default_rng(1)
    truth, labels = people(rng, 60, 0.3)
    judge = [t if rng.random() > 0.4 else int(rng.integers(0, 3)) for t in truth]
    got = alt_test(judge, labels, epsilon=0.15)
    for j in range(3):
        differences, wins = [], 0
        for i in range(60):
            others = [labels[k][i] for k in range(3) if k != j]
            ours, theirs = others.count(judge[i]), others.count(labels[j][i])
            differences.append((theirs >= ours) - (ours >= theirs))
            wins += ours >= theirs
        expected = stats.ttest_1samp(differences, 0.15, alternative="less").pvalue
        assert got.p[j] == pytest.approx(expected, rel=1e-9)
        assert got.advantages[j] == pytest.approx(wins / 60)
    known = [p for p in got.p if p is not None]
    adjusted = stats.false_discovery_control(known, method="by")
    assert got.adjusted == pytest.approx(tuple(adjusted))


def test_known_judges() -> None:
    rng = np.random.default_rng(2)
    truth, labels = people(rng, 200, 0.3)
    perfect = alt_test(truth, labels, epsilon=0.1)
    assert (perfect.winning_rate, perfect.passes) == (1, True)
    random = alt_test(rng.integers(0, 3, 200).tolist(), labels, epsilon=0.1)
    assert (random.winning_rate, random.passes) == (0, False)


def test_missing_labels_and_small_sets() -> None:
    rng = np.random.default_rng(3)
    truth, labels = people(rng, 80, 0.2)
    holes: list[list[int | None]] = [list(a) for a in labels]
    holes[0][::4] = [None] * 20
    got = alt_test(truth, holes)
    assert got.items == (60, 80, 80)
    few = alt_test(truth[:29], [a[:29] for a in labels])
    assert (few.winning_rate, few.passes, few.p) == (None, None, (None, None, None))
    assert few.reason == "3 of 3 annotators share fewer than 30 items"
    two = alt_test(truth, labels[:2])
    assert two.winning_rate is None
    assert two.reason == "2 annotators: the test needs at least three"


def test_no_spread_is_certain() -> None:
    same = [[1] * 40] * 3
    assert alt_test([1] * 40, same).p == (0, 0, 0)  # equal everywhere: 0 < epsilon
    assert alt_test([1] * 40, same, epsilon=0).p == (1, 1, 1)
    assert alt_test([2] * 40, same).winning_rate == 0


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="per item"):
        alt_test([1], [[1], [1], [1, 2]])
    with pytest.raises(ValueError, match="epsilon"):
        alt_test([1], [[1]] * 3, epsilon=1)
