"""Looking while results come in: error rates over all looks, and the formulas by brute force."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from agenteval.stats import confidence_sequence
from agenteval.stats.sequential import is_futile, look_level, normalized_sum

NORMAL = NormalDist()


def z_of(level: float) -> float:
    return NORMAL.inv_cdf((1 + level) / 2)


def test_the_boundary_by_reflection() -> None:
    last = z_of(look_level(100, 100))
    assert 2 * NORMAL.cdf(-last) + 2 * NORMAL.cdf(last - 5) == pytest.approx(0.05)
    assert 1.96 < last < 2
    assert z_of(look_level(25, 100)) == pytest.approx(5.0)
    assert z_of(look_level(50, 100, level=0.9)) == pytest.approx(2.5 * 2**0.5)
    assert look_level(1, 10_000) < 1


def test_false_alarms_over_all_looks() -> None:
    rng = np.random.default_rng(0)
    sums = rng.normal(size=(20_000, 200)).cumsum(axis=1)
    z = np.abs(sums) / np.sqrt(np.arange(1, 201))
    limits = np.array([z_of(look_level(n, 200)) for n in range(1, 201)])
    assert (z > limits).any(axis=1).mean() == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize(("n", "planned"), [(0, 5), (6, 5)])
def test_looks_that_were_not_planned(n: int, planned: int) -> None:
    with pytest.raises(ValueError, match=f"{n} of {planned} cases"):
        look_level(n, planned)
    with pytest.raises(ValueError, match="does not keep level"):
        look_level(5, 5, level=0.999)


def test_hopeless_is_the_predictive_chance() -> None:
    rng = np.random.default_rng(2)
    limit = z_of(look_level(100, 100))
    chances, answers = [], []
    for shift in np.linspace(0, 0.5, 40):
        seen = rng.normal(size=70)
        seen = (seen - seen.mean()) / seen.std(ddof=1) + shift
        mean = shift + rng.normal(size=40_000) / math.sqrt(70)  # flat prior
        final = (70 * shift + 30 * mean + math.sqrt(30) * rng.normal(size=40_000)) / 10
        chances.append(float((np.abs(final) >= limit).mean()))
        answers.append(is_futile(seen, 100))
    for chance, answer in zip(chances, answers, strict=True):
        if not 0.008 < chance < 0.012:
            assert answer == (chance < 0.01)
    assert set(answers) == {True, False}
    assert not is_futile([0.1], 100)
    assert not is_futile([0.0] * 50, 100)
    assert not is_futile(seen, 70)


def test_normalized_sum_by_hand() -> None:
    assert normalized_sum([1, 1, 1, 1]) == 2
    assert normalized_sum([3, -4]) == pytest.approx(-1 / 5)
    assert normalized_sum([0, 0]) == 0


def by_hand(values: list[float], level: float) -> tuple[float, float]:
    """The definition, one mean and one bet at a time."""
    limit = 2 / (1 - level)
    kept = []
    for i in range(1001):
        m, possible, up, down = i / 1000, True, 1.0, 1.0
        total, squares = 0.0, 0.0
        variance = 0.25
        for t, x in enumerate(values, 1):
            bet = math.sqrt(2 * math.log(limit) / (variance * t * math.log(1 + t)))
            up *= 1 + min(bet, 0.5 / max(m, 1e-12)) * (x - m)
            down *= 1 - min(bet, 0.5 / max(1 - m, 1e-12)) * (x - m)
            possible = possible and up < limit and down < limit
            total += x
            squares += (x - (0.5 + total) / (t + 1)) ** 2
            variance = (0.25 + squares) / (t + 1)
        if possible:
            kept.append(m)
    return max(kept[0] - 0.001, 0), min(kept[-1] + 0.001, 1)


def test_confidence_sequence_is_its_definition() -> None:
    values = (np.random.default_rng(4).integers(0, 5, 60) / 4).tolist()
    for n in (1, 7, 60):
        got = confidence_sequence(values[:n])
        assert (got.low, got.high) == pytest.approx(by_hand(values[:n], 0.95), abs=1e-9)
        assert got.mean == pytest.approx(sum(values[:n]) / n)
    long = np.random.default_rng(5).random(2500)  # in several pieces
    whole = confidence_sequence(long)
    assert whole.low is not None
    assert whole.high is not None
    assert whole.high - whole.low < 0.06


def test_it_never_grows_and_rarely_leaves_the_truth() -> None:
    rng = np.random.default_rng(6)
    misses = 0
    for _ in range(200):
        values = (rng.random(150) < 0.8).astype(float)
        interval = confidence_sequence(values)
        assert interval.low is not None
        assert interval.high is not None
        misses += not interval.low <= 0.8 <= interval.high
    assert misses / 200 <= 0.05
    first, second = confidence_sequence(values[:75]), confidence_sequence(values)
    assert first.low is not None
    assert second.low is not None
    assert first.low <= second.low


def test_nothing_and_too_much() -> None:
    assert confidence_sequence([]).reason == "no values"
    with pytest.raises(ValueError, match="outside"):
        confidence_sequence([1.5])
