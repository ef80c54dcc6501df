"""The lowest confidence that labels prove: exact limits, cases as units, and the guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from agenteval.stats.selective import cases_to_prove, prove_threshold


def test_without_errors_the_number_of_cases_decides() -> None:
    assert cases_to_prove(0.9, 0.95) == 29  # .9^29 = .0471, .9^28 = .0523
    for n, proven in ((28, None), (29, 1.0)):
        found = prove_threshold([1.0] * n, [False] * n, range(n), agreement=0.9, confidence=0.95)
        assert found.threshold == proven
        assert found.cases == n
    assert found.agreement == pytest.approx(0.05 ** (1 / 29))


@pytest.mark.parametrize(
    ("agreement", "confidence"), [(0.0, 0.95), (1.0, 0.95), (0.9, 0.49), (0.9, 0.995)]
)
def test_targets_that_nothing_can_prove_are_refused(agreement: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="is not between"):
        prove_threshold([1.0], [False], [0], agreement=agreement, confidence=confidence)


def test_thresholds_are_tested_from_the_top_to_the_first_that_fails() -> None:
    confidences = [1.0] * 60 + [0.8] * 60 + [0.6] * 60
    wrong = [i in (0, 60, 61, *range(120, 131)) for i in range(180)]
    found = prove_threshold(confidences, wrong, range(180), agreement=0.9, confidence=0.95)
    assert (found.threshold, found.cases, found.errors) == (0.8, 120, 3)
    assert found.agreement == pytest.approx(1 - beta.ppf(0.95, 4, 117))
    # 8 errors of 180 would prove .9, but the threshold above them fails and ends the search
    high = [i < 8 for i in range(60)] + [False] * 120
    assert (
        prove_threshold(confidences, high, range(180), agreement=0.9, confidence=0.95).threshold
        is None
    )
    assert beta.ppf(0.95, 9, 172) < 0.1


def test_the_case_is_the_unit() -> None:
    cases = [i // 4 for i in range(80)]
    few = prove_threshold([1.0] * 80, [False] * 80, cases, agreement=0.9, confidence=0.95)
    assert (few.threshold, few.cases) == (None, 20)
    assert "29" in few.reason
    cases = [i // 4 for i in range(240)]
    wrong = [i % 60 == 0 for i in range(240)]  # in 4 of 60 cases 1 of 4 runs
    some = prove_threshold([1.0] * 240, wrong, cases, agreement=0.9, confidence=0.95)
    assert some.threshold == 1.0
    assert some.agreement is not None
    assert 0.9 < some.agreement < 1 - 4 / 240


@pytest.mark.parametrize("systems", [1, 4])
def test_the_guarantee_holds_in_simulation(systems: int) -> None:
    """The true agreement lies just below the target from .8 on, and from .6 on as well."""
    rng, missed, draws, n = np.random.default_rng(systems), 0, 400, 120
    truth = {1.0: 0.95, 0.8: 0.83, 0.6: 0.7}  # with equal shares: .95, .89, .827
    for _ in range(draws):
        confidence = rng.choice(list(truth), (n, 1)).repeat(systems, axis=1)
        right = np.vectorize(truth.get)(confidence)
        same = rng.random((n, 1)) < 0.5  # half of the cases are right or wrong as a whole
        draw = np.where(same, rng.random((n, 1)), rng.random((n, systems)))
        found = prove_threshold(
            confidence.ravel(),
            (draw >= right).ravel(),
            np.repeat(np.arange(n), systems),
            agreement=0.9,
            confidence=0.95,
        )
        missed += found.threshold is not None and found.threshold < 1
    assert missed / draws <= 0.05 + 2 * (0.05 * 0.95 / draws) ** 0.5
