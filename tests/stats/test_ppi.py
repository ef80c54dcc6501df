"""Corrected means: the formula by brute force, what needs no correction, and coverage."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.stats import mean_interval, ppi_mean


def sample(n: int, labelled: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n) / 4
    judge = np.clip(truth + rng.integers(-1, 3, n) / 4, 0, 1)
    labels = np.full(n, np.nan)
    labels[rng.choice(n, labelled, replace=False)] = 1
    return judge, np.where(np.isnan(labels), np.nan, truth), truth


@pytest.mark.slow
def test_estimate_and_variance_by_brute_force_over_the_power() -> None:
    judge, labels, _ = sample(120, 40)
    cases = [f"case {i // 3}" for i in range(120)]
    weights = np.where(np.arange(120) % 2, 1.0, 3.0)
    known = ~np.isnan(labels)
    share = weights[known] / weights[known].sum()

    def estimate(power: float) -> float:
        rest = (labels - power * judge)[known]
        return float(power * judge.mean() + share @ rest)

    def variance(power: float) -> float:
        """Sum over cases of the squared linear part, each run by itself."""
        mean_label, mean_judge = share @ labels[known], share @ judge[known]
        parts: dict[str, float] = {}
        for i, case in enumerate(cases):
            part = power * (judge[i] - judge.mean()) / 120
            if known[i]:
                rest = (labels[i] - mean_label) - power * (judge[i] - mean_judge)
                part += weights[i] / weights[known].sum() * rest
            parts[case] = parts.get(case, 0.0) + part
        return sum(part**2 for part in parts.values())

    got = ppi_mean(judge, labels, cases, weights=weights)
    best = min(np.linspace(0, 1, 20_001), key=variance)
    assert got.power == pytest.approx(best, abs=1e-4)
    assert got.corrected.mean == pytest.approx(estimate(got.power))
    labelled = len({case for case, k in zip(cases, known, strict=True) if k})
    assert got.corrected.n_clusters == labelled
    assert got.corrected.se == pytest.approx(
        (variance(got.power) * labelled / (labelled - 2)) ** 0.5
    )
    assert got.people.mean == pytest.approx(estimate(0))
    people = (variance(0) * labelled / (labelled - 1)) ** 0.5
    assert got.people.se == pytest.approx(people)
    assert got.worth == pytest.approx(40 * (people / got.corrected.se) ** 2)


def test_labels_of_every_run_need_no_correction() -> None:
    judge, _, truth = sample(60, 30)
    got = ppi_mean(judge, truth)
    plain = mean_interval(truth.tolist())
    assert got.power == 0
    for one in (got.people, got.corrected):
        assert (one.mean, one.low, one.high) == pytest.approx((plain.mean, plain.low, plain.high))
    assert got.judge.mean == pytest.approx(judge.mean())


def test_a_judge_turned_round_is_not_used_backwards() -> None:
    _, labels, truth = sample(200, 50)
    assert ppi_mean(1 - truth, labels).power == 0


def test_fewer_than_twenty_cases_give_no_interval() -> None:
    judge, labels, _ = sample(100, 19)
    got = ppi_mean(judge, labels)
    assert (got.corrected.low, got.people.low) == (None, None)
    assert got.corrected.reason == "19 labelled cases; 20 are needed"
    assert got.corrected.mean is not None
    assert got.worth is None
    nothing = ppi_mean(judge, np.full(100, np.nan))
    assert (nothing.corrected.mean, nothing.corrected.reason) == (None, "no labels")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ratings": [0.5, 2.0]}, "outside"),
        ({"labels": [0.5]}, "one label"),
        ({"weights": [1.0, 0.0]}, "positive weight"),
        ({"clusters": ["a"]}, "1 cluster labels"),
    ],
)
def test_what_cannot_be_computed(change: dict[str, object], said: str) -> None:
    arguments: dict[str, object] = {"ratings": [0.5, 1.0], "labels": [0.5, np.nan], **change}
    with pytest.raises(ValueError, match=said):
        ppi_mean(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("systems", [1, 4])
def test_coverage_on_simulated_labels(systems: int) -> None:
    rng = np.random.default_rng(systems)
    hits = 0
    for _ in range(400):
        quality = rng.normal(0.5, 0.15, (400 // systems, 1)) + rng.normal(0, 0.1, (1, systems)) * 0
        quality = quality + rng.normal(0, 0.1, (400 // systems, systems))
        truth, judge = (
            np.clip(quality + rng.normal(shift, 0.1, quality.shape), 0, 1).ravel()
            for shift in (0.0, 0.1)
        )
        labels = np.full(400, np.nan)
        drawn = rng.choice(400, 60, replace=False)
        labels[drawn] = truth[drawn]
        mean = ppi_mean(judge, labels, np.repeat(np.arange(400 // systems), systems).tolist())
        assert mean.corrected.low is not None
        assert mean.corrected.high is not None
        hits += mean.corrected.low <= 0.5 <= mean.corrected.high
    assert 0.92 <= hits / 400 <= 0.98
