"""Upper limits of means of bounded values: exact cases, draws, and coverage where t fails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from agenteval.stats.mean_limit import mean_limit, n_for_zero_events, upper_limit_unobserved
from tests.thorough import often


@pytest.mark.parametrize(
    ("k", "n"), [(0, 1), (0, 20), (1, 2), (3, 40), (33, 400), (59, 60), (1, 1000)]
)
@pytest.mark.parametrize("room", [1.0, 0.3])
def test_yes_and_no_are_clopper_pearson(k: int, n: int, room: float) -> None:
    found = mean_limit([room] * k + [0.0] * (n - k), room)
    expected = stats.binomtest(k, n).proportion_ci(0.95, method="exact").high
    assert found == pytest.approx(room * expected, abs=1e-6)


def test_the_quantile_of_drawn_weights() -> None:
    """Weights uniform on the simplex, 200,000 times: the definition itself."""
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.2, 30).clip(-0.6, 0.6)
    weights = rng.dirichlet(np.ones(31), 200_000)
    drawn = np.quantile(weights @ np.append(values, 0.7), 0.975)
    assert mean_limit(values, 0.7) == pytest.approx(drawn, abs=5e-4)


def test_values_seen_more_often() -> None:
    values = [0.0, 0.25, -0.5, 1.0, 0.0, 0.125]
    assert mean_limit(values, 1.0, times=3) == pytest.approx(mean_limit(values * 3, 1.0))
    assert mean_limit([0.4, 0.4], 0.4) == 0.4


@pytest.mark.parametrize(
    ("share", "size", "n"), [(0.056, 1.0, 20), (0.08, 0.7, 40), (0.1, 0.6, 100), (0.5, 0.2, 20)]
)
def test_coverage(share: float, size: float, n: int) -> None:
    """Rare rises of one size upon noise of .1 to both sides in a third of the cases, seeded."""
    trials = often(80, 1500)
    rng = np.random.default_rng(n)
    below = 0
    for _ in range(trials):
        noise = rng.choice([-0.1, 0.0, 0.1], n, p=[1 / 6, 2 / 3, 1 / 6])
        values = noise + size * (rng.random(n) < share)
        below += mean_limit(values, size + 0.1) < share * size
    assert below / trials <= 0.025 + 3 * (0.025 * 0.975 / trials) ** 0.5


@pytest.mark.parametrize(
    "rooms", [[0.6] * 30, [1.0] * 10 + [0.2] * 10, [1.0, 0.0, 0.0], [0.9, 0.8, 0.5, 0.1] * 5]
)
def test_the_least_favourable_chances_by_a_general_optimiser(rooms: list[float]) -> None:
    """Maximise sum q r / n with prod (1 - q) >= .025, as a problem with constraints."""
    r = np.array(rooms)
    n = len(r)
    total = optimize.NonlinearConstraint(lambda q: np.log1p(-q).sum(), np.log(0.025), np.inf)
    found = optimize.minimize(
        lambda q: np.float64(-(q * r).sum() / n),
        np.full(n, 1e-3),
        method="SLSQP",
        bounds=optimize.Bounds(np.zeros(n), np.full(n, 1 - 1e-9)),
        constraints=[total],
    )
    assert found.success
    room = upper_limit_unobserved(rooms)
    assert room * (1 - 0.025 ** (1 / n)) == pytest.approx(-found.fun, abs=1e-6)
    assert np.mean(r) - 1e-9 <= room <= r.max()


def test_cases_that_are_needed_without_a_rise() -> None:
    for limit, room in ((0.05, 1.0), (0.05, 0.6), (0.1, 0.25)):
        n = n_for_zero_events(limit, room)
        shares = [
            stats.binomtest(0, k).proportion_ci(0.95, method="exact").high for k in (n - 1, n)
        ]
        assert room * shares[1] <= limit < room * shares[0]
    assert n_for_zero_events(0.05, 1.0) == 72  # .95^72 = .0249
    assert n_for_zero_events(0.05, 0.05) == 1


def test_what_is_refused() -> None:
    for values, highest in (([], 1.0), ([0.5], 0.4), ([float("nan")], 1.0)):
        with pytest.raises(ValueError, match="value"):
            mean_limit(values, highest)
    with pytest.raises(ValueError, match="times"):
        mean_limit([0.0], 1.0, times=0)
    for rooms in ([], [-0.1]):
        with pytest.raises(ValueError, match="rooms"):
            upper_limit_unobserved(rooms)
    with pytest.raises(ValueError, match="positive"):
        n_for_zero_events(0.0, 1.0)
