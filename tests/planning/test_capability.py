"""The capability upper bound: both readings, certainty, campaign sizes."""

from __future__ import annotations

import pytest

from agenteval.planning.capability import (
    Capability,
    bounds,
    capability,
    cases_for,
    goes_on,
)
from agenteval.planning.tallies import SuccessTally
from agenteval.stats import Interval, proportion_interval
from tests.golden.files import published


def test_golden_cases() -> None:
    golden = published("planning_cases")
    for row in golden["campaign_cases_per_n"]:
        assert cases_for(row["n"]) == row["cases"]
    for row in golden["capability"]:
        found = capability({int(n): rate for n, rate in row["rates"].items()})
        assert (found.last, found.below) == (row["last_at_or_above_20pct"], row["first_below"])


def test_campaign_sizes() -> None:
    assert [cases_for(n) for n in range(2, 10)] == [20, 60, 120, 200, 300, 300, 300, 300]
    with pytest.raises(ValueError, match="at least 2"):
        cases_for(1)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({2: 0.95, 3: 0.7, 4: 0.22, 5: 0.11}, Capability(4, 5)),
        ({2: 0.2, 3: 0.1999}, Capability(2, 3)),
        ({2: 0.0}, Capability(None, 2)),
        ({3: 0.9, 4: 0.8}, Capability(4, None)),  # nothing below was tested
        ({2: 0.9, 3: 0.1, 4: 0.5}, Capability(2, 3, (4,))),
        ({2: 0.9, 4: 0.5, 5: 0.1}, Capability(2, 5)),  # 3 is missing
        ({}, Capability(None, None)),
    ],
)
def test_both_readings(rates: dict[int, float], expected: Capability) -> None:
    assert capability(rates) == expected


def test_the_stop_rule() -> None:
    assert goes_on(0.20)
    assert not goes_on(0.1999)
    with pytest.raises(ValueError, match="not in"):
        goes_on(20)


def tally(n: int, passes: int, cases: int) -> SuccessTally:
    return SuccessTally("s", str(n), float(n), proportion_interval(passes, cases), passes, 0, None)


def test_a_clear_fall_is_certain() -> None:
    """60 of 100 lies in [.50, .69], 5 of 100 in [.02, .11]: both exclude 20%."""
    (found,) = bounds([tally(2, 90, 100), tally(3, 60, 100), tally(4, 5, 100)])
    assert found.certain
    assert found.sentence == "capability bound 3 actions (first below 20% at 4)"


def test_a_near_one_is_not() -> None:
    """22 of 100 lies in [.15, .31], 18 of 100 in [.12, .27]: both hold 20%."""
    (found,) = bounds([tally(2, 90, 100), tally(3, 22, 100), tally(4, 18, 100), tally(5, 2, 100)])
    assert (found.found.last, found.least.last, found.most.last) == (3, 2, 4)
    assert not found.certain
    assert found.sentence.endswith("; the 95% intervals allow 2 to 4")


def test_what_was_not_reached_is_said() -> None:
    (found,) = bounds([tally(2, 99, 100), tally(3, 98, 100)])
    assert found.sentence == "capability bound at least 3 actions, the most tested"
    assert not found.certain
    (found,) = bounds([tally(2, 1, 100), tally(3, 0, 100)])
    assert found.sentence == "no bound: below 20% already at 2 actions"
    assert found.certain
    (found,) = bounds([tally(2, 3, 12)])
    assert "the 95% intervals allow fewer than 2 to 2 or more" in found.sentence


def test_a_number_without_a_verdict_is_a_gap_and_no_zero() -> None:
    nothing = Interval(None, None, None, None, 0, None, "none", "no values")
    gap = SuccessTally("s", "3", 3.0, nothing, 0, 60, None)
    (found,) = bounds([tally(2, 95, 100), gap, tally(4, 2, 100)])
    assert (found.found, found.untested, found.certain) == (Capability(2, 4), (3,), False)
    assert "nothing is known of 3 actions" in found.sentence
    assert bounds([gap]) == []
