"""Cells: numbers as people write them, rounding that does not flatter."""

from __future__ import annotations

import pytest

from agenteval.report.grid import count, estimate, mean, number, percent, signed
from agenteval.stats import mean_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.5, "50 %"), (0.9992, "99.9 %"),
        (0.996, "99.6 %"), (0.99999, "99.999 %"), (0.004, "0.4 %"), (0.00002, "0.002 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_nothing(value: float | None, text: str) -> None:
    assert percent(value).text == text


def test_signs() -> None:
    assert [signed(v) for v in (-0.001, 0.001, -0.126, 0.126)] == ["0.00", "0.00", "−0.13", "+0.13"]
    assert estimate(-0.001, -0.07, 0.07).text == "0.00 [−0.07, 0.07]"
    assert number(-0.25).text == "−0.25"
    assert number(None).key is None
    assert count(12345).text == "12,345"


def test_a_mean_without_width_draws_no_interval() -> None:
    alone = mean(mean_interval([0.5], ["a"]))
    assert (alone.text, alone.note) == ("0.50", "one case: no interval")
    assert alone.span is not None
    assert alone.span.low is None
    flat = mean(mean_interval([0.5, 0.5], ["a", "b"]))
    assert (flat.text, flat.note) == ("0.50", "no variation")
    # Two cases, values 0 and 1: t with 1 degree of freedom, clipped to the scale.
    assert (
        mean(mean_interval([0.0, 1.0], ["a", "b"], bounds=(0.0, 1.0))).text == "0.50 [0.00, 1.00]"
    )
    assert mean(mean_interval([])).text == "–"
