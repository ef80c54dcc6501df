"""Place in the prompt: the fit against dummy variables and loops, planted effects, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from agenteval.evaluators.utility.probes.position import Placed, position, within_fit
from agenteval.evaluators.utility.probes.result import Finding, ProbeOptions

OPTIONS = ProbeOptions(draws=500)


def placed(
    rng: np.random.Generator, *, cases: int = 30, repeats: int = 3, criteria: int = 4,
    effect: float = 0.0, noise: float = 0.1,
) -> Placed:  # fmt: skip
    """Scores of cases that differ, criteria that differ, and `effect` from first to last place."""
    rows = []
    for case in range(cases):
        good = rng.random()
        for _ in range(repeats):
            for criterion, place in enumerate(rng.permutation(criteria)):
                value = 0.3 * good + 0.1 * criterion + effect * place / (criteria - 1)
                value += noise * rng.normal()
                group = case * criteria + criterion
                rows.append((value, place, criteria, group, case, criterion))
    value, *rest = zip(*rows, strict=True)
    return Placed(np.array(value), *(np.array(r, dtype=np.int64) for r in rest))


def slope(found: Finding) -> float:
    interval = found.measured[0].interval
    assert interval is not None
    assert interval.mean is not None
    return interval.mean


def test_the_fit_is_least_squares_with_a_dummy_per_group() -> None:
    rng = np.random.default_rng(2)
    n = 60
    group, case = rng.integers(0, 12, n), np.zeros(n, dtype=np.int64)
    case = group % 6
    design, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    contrast = np.array([-1.0, 1.0])
    dummies = (group[:, None] == np.unique(group)).astype(float)
    full = np.column_stack([design, dummies])
    beta = np.linalg.lstsq(full, y, rcond=None)[0]
    residual = y - full @ beta
    bread = np.linalg.pinv(full.T @ full)
    meat = np.zeros((full.shape[1],) * 2)
    for one in range(6):
        pull = full[case == one].T @ residual[case == one]
        meat += np.outer(pull, pull)
    wide = np.concatenate([contrast, np.zeros(dummies.shape[1])])
    se = np.sqrt(wide @ bread @ meat @ bread @ wide * 6 / 5)
    found, _ = within_fit(y, design, group, case, contrast)
    assert found.mean == pytest.approx(contrast @ beta[:2])
    assert found.se == pytest.approx(se)
    assert found.mean is not None
    assert found.high == pytest.approx(found.mean + stats.t.ppf(0.975, 5) * se)


@pytest.mark.parametrize("repeats", [2, 4])
def test_a_planted_effect_is_recovered_exactly_without_noise(repeats: int) -> None:
    rng = np.random.default_rng(1)
    found = position(placed(rng, repeats=repeats, criteria=3, effect=0.2, noise=0.0), OPTIONS)
    for one in found.measured:
        assert one.interval is not None
        assert one.interval.mean == pytest.approx(0.2)
        assert one.p is not None
        assert one.p < 0.01


def test_one_repeat_compares_within_the_criterion() -> None:
    found = position(placed(np.random.default_rng(3), cases=300, repeats=1, effect=0.2), OPTIONS)
    assert slope(found) == pytest.approx(0.2, abs=0.04)


def test_without_an_effect_p_is_rarely_small() -> None:
    rng = np.random.default_rng(6)
    options = ProbeOptions(draws=200)
    low = covered = 0
    for _ in range(300):
        one = position(placed(rng, cases=25, repeats=2, criteria=3), options).measured[0]
        assert one.p is not None
        assert one.interval is not None
        assert one.interval.low is not None
        assert one.interval.high is not None
        low += one.p < 0.05
        covered += one.interval.low <= 0 <= one.interval.high
    assert low <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5
    assert covered >= 300 * 0.95 - 3 * (300 * 0.05 * 0.95) ** 0.5


def test_two_criteria_a_call_give_the_slope_alone() -> None:
    found = position(placed(np.random.default_rng(1), criteria=2), OPTIONS)
    assert [m.name for m in found.measured] == ["slope"]


def test_several_middle_places_share_one_level() -> None:
    found = position(placed(np.random.default_rng(1), cases=400, effect=0.2, noise=0.0), OPTIONS)
    assert slope(found) == pytest.approx(0.2)
    ends = found.measured[1].interval
    assert ends is not None
    assert ends.mean == pytest.approx(0.2, abs=0.005)


def test_means_by_place_are_in_the_detail() -> None:
    found = position(placed(np.random.default_rng(1), effect=0.3, noise=0.0), OPTIONS)
    assert found.detail is not None
    means = found.detail["mean_by_place"]
    assert isinstance(means, dict)
    assert means["first"] < means["middle"] < means["last"]  # type: ignore[operator]


def test_where_place_cannot_matter() -> None:
    none = np.empty(0, dtype=np.int64)
    assert "place cannot matter" in (
        position(Placed(np.empty(0), none, none, none, none, none), OPTIONS).absent or ""
    )
    fixed = placed(np.random.default_rng(1), noise=0.0)
    still = Placed(fixed.value, fixed.criterion, fixed.of, fixed.group, fixed.case, fixed.criterion)
    for one in position(still, OPTIONS).measured:
        assert one.p is None
        assert one.missing == "no criterion was seen in different places"
