"""Two ways to ask: estimates against their definition in loops, errors of the test, few data."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from agenteval.stats.agreement import krippendorff_alpha
from agenteval.utility.probes.result import ProbeFinding, ProbeOptions, settle
from agenteval.utility.probes.ways import WayPairs, compare_ways, lost_agreement, pair
from tests.utility.verify.making import criterion, table

OPTIONS = ProbeOptions(resamples=200, draws=2000)


def pairs(plain: np.ndarray, other: np.ndarray) -> WayPairs:
    return WayPairs(plain, other, np.arange(len(plain)))


def measured(found: ProbeFinding) -> dict[str, float | None]:
    return {m.name: m.interval.mean if m.interval else None for m in found.measured}


def by_definition(plain: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Alpha within and across the ways, by loops over pairs of repeats."""
    within = across = expected = 0.0
    for c in range(plain.shape[2]):
        pooled = np.concatenate([plain[:, :, c], other[:, :, c]], axis=1)
        spread = 2 * float(np.var(pooled[~np.isnan(pooled)], ddof=1))
        for run in range(len(plain)):
            a, b = plain[run, :, c], other[run, :, c]
            for i, j in combinations(np.flatnonzero(~np.isnan(a)), 2):
                within += ((a[i] - a[j]) ** 2 + (b[i] - b[j]) ** 2) / 2
                across += ((a[i] - b[j]) ** 2 + (b[i] - a[j]) ** 2) / 2
                expected += spread
    return 1 - within / expected, 1 - across / expected


@pytest.mark.parametrize("seed", range(3))
def test_lost_agreement_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, other = rng.integers(0, 5, (2, 12, 3, 2)) / 4.0
    gone = rng.random(plain.shape) < 0.15
    plain[gone] = other[gone] = np.nan
    found, detail = lost_agreement(pairs(plain, other), OPTIONS, rng)
    within, across = by_definition(plain, other)
    assert found.interval is not None
    assert found.interval.mean == pytest.approx(within - across)
    assert (detail["alpha_within"], detail["alpha_across"]) == pytest.approx((within, across))


def test_within_agrees_with_krippendorff_but_for_the_pool() -> None:
    """Twice the same scores: s^2 of 2n instead of n scores, so (2n - 1) / (2n - 2) of 1 - alpha."""
    rng = np.random.default_rng(3)
    plain = rng.integers(0, 5, (15, 2, 1)) / 4.0
    _, detail = lost_agreement(pairs(plain, plain[:, ::-1]), OPTIONS, rng)
    alpha = krippendorff_alpha(plain[:, :, 0], "interval").mean
    assert alpha is not None
    n = 30
    expected = 1 - (1 - alpha) * (2 * n - 1) / (2 * n - 2)
    assert detail["alpha_within"] == pytest.approx(expected)


def test_p_of_lost_agreement_is_the_share_of_swaps() -> None:
    plain = np.zeros((3, 2, 2))
    other = np.array([[[1, 0.5], [0.5, 0]], [[0.25, 0.5], [0, 0.5]], [[-0.5, 0], [-0.25, 0.25]]])
    total = []
    for signs in product((1, -1), repeat=6):
        d = np.array(signs).reshape(3, 2, 1) * other
        total.append(sum(float(run[0] @ run[1]) for run in d))
    exact = np.mean([t >= total[0] - 1e-12 for t in total])
    options = ProbeOptions(draws=20_000)
    found, _ = lost_agreement(pairs(plain, other), options, np.random.default_rng(1))
    assert found.p == pytest.approx(exact, abs=0.015)  # 4 standard errors


@pytest.mark.slow
def test_a_judge_of_pure_noise_is_rarely_called_swayed() -> None:
    """Raw p below .05 in at most 5 % of experiments without any effect, plus 3 standard errors."""
    rng = np.random.default_rng(8)
    options = ProbeOptions(resamples=100, draws=300)
    low = np.zeros(2)
    for _ in range(300):
        plain, other = rng.integers(0, 5, (2, 25, 2, 3)) / 4.0
        found = compare_ways("wording", pairs(plain, other), options)
        low += [m.p is not None and m.p < 0.05 for m in found.measured]
    assert (low <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5).all(), low


def test_a_change_of_order_without_a_shift_is_found_by_agreement_alone() -> None:
    """Half of the runs rise, half fall: the mean difference is 0, the ranking is destroyed."""
    plain = np.tile(np.array([0.25, 0.75])[:, None, None], (15, 2, 2))
    found = measured(compare_ways("wording", pairs(plain, 1 - plain), OPTIONS))
    assert found["difference"] == pytest.approx(0)
    # d_i d_j = .25 everywhere; 2 s^2 = 2 * 120 * .0625 / 119 of 120 scores a criterion
    assert found["agreement"] == pytest.approx(0.25 / (2 * 120 * 0.0625 / 119))


def test_every_case_counts_once() -> None:
    plain = np.full((3, 1, 1), 0.5)
    other = plain + np.array([0.5, 0.25, 0.0]).reshape(3, 1, 1)
    found = compare_ways("wording", WayPairs(plain, other, np.array([0, 0, 1])), OPTIONS)
    assert measured(found)["difference"] == pytest.approx((0.375 + 0.0) / 2)


def outcomes(plain: np.ndarray, other: np.ndarray) -> tuple[str, str, dict[str, str]]:
    (probe,) = settle([compare_ways("wording", pairs(plain, other), OPTIONS)], OPTIONS)
    return probe.outcome, probe.reason, {c.name: c.outcome for c in probe.checks}


def test_a_judge_that_throws_dice_has_no_agreement_to_lose() -> None:
    rng = np.random.default_rng(11)
    plain, other = rng.integers(0, 5, (2, 600, 2, 3)) / 4.0
    found = compare_ways("wording", pairs(plain, other), OPTIONS)
    assert max(abs(i.mean or 0) for m in found.measured if (i := m.interval)) < 0.05
    outcome, reason, checks = outcomes(plain, other)
    assert (outcome, checks["agreement"]) == ("unknown", "unknown")
    assert "hardly agrees with itself" in reason
    assert checks["difference"] == "pass"


def test_a_judge_that_agrees_with_itself_and_is_not_swayed_passes() -> None:
    truth = np.tile(np.linspace(0, 1, 5), 40)[:, None, None]
    plain = np.broadcast_to(truth, (200, 2, 3)).copy()
    assert outcomes(plain, plain.copy())[0] == "pass"


def test_a_sure_change_fails_though_the_judge_hardly_agrees_with_itself() -> None:
    rng = np.random.default_rng(12)
    plain, other = rng.integers(0, 5, (2, 400, 2, 1)) / 4.0
    outcome, _, checks = outcomes(plain, np.minimum(other + 0.5, 1))
    assert (outcome, checks["difference"]) == ("fail", "fail")


def test_the_judges_own_agreement_is_resampled_over_cases() -> None:
    """Independent cases with a known share of noise: the low end stays below the alpha of all."""
    rng = np.random.default_rng(0)
    truth = rng.random((80, 1, 1))
    plain, other = (truth + 0.2 * rng.standard_normal((2, 80, 2, 1)))[..., :]
    _, detail = lost_agreement(pairs(plain, other), OPTIONS, rng)
    within, low = detail["alpha_within"], detail["alpha_within_low"]
    drawn = []
    for _ in range(300):
        rows = rng.integers(0, 80, 80)
        drawn.append(by_definition(plain[rows], other[rows])[0])
    assert isinstance(within, float)
    assert isinstance(low, float)
    assert low == pytest.approx(np.quantile(drawn, 0.025), abs=0.06)
    assert low < within


def test_one_repeat_leaves_agreement_unknown_with_the_reason() -> None:
    plain = np.full((4, 1, 1), 0.5)
    found = compare_ways("wording", pairs(plain, plain + 0.25), OPTIONS)
    difference, agreement = found.measured
    assert difference.interval is not None
    assert difference.interval.mean == 0.25
    assert agreement.interval is None
    assert "--repeats 2" in (agreement.missing or "")


def test_only_what_both_ways_have_is_paired() -> None:
    def rate(case: int, repeat: int, variant: str, rng: np.random.Generator) -> float | str | None:
        return "unscored:parse" if (case, repeat) == (1, 0) else None if case == 2 else 1.0

    plain = table({"a": lambda case, repeat, v, rng: case / 4}, cases=3, repeats=2)
    other = table({"a": rate}, cases=3, repeats=2)
    found = pair(plain, other, [criterion("a")])
    np.testing.assert_array_equal(found.plain[:, :, 0], [[0, 0], [np.nan, 0.25]])
    np.testing.assert_array_equal(found.other[:, :, 0], [[1, 1], [np.nan, 1]])
    assert found.cases == 2
    # case means of b - a: 1 and .75
    assert measured(compare_ways("x", found, OPTIONS))["difference"] == pytest.approx(0.875)


def test_nothing_in_common() -> None:
    empty = pair(table({}), table({}), [criterion("a")])
    assert compare_ways("wording", empty, OPTIONS).absent == "no run was judged both ways"
