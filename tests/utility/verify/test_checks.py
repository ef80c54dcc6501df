"""Single checks on ratings with known properties, and how copies are paired with originals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.records.verification import Check
from agenteval.utility.verify import CopyFacts, VerifyOptions
from agenteval.utility.verify.checks import agreement, coverage, separation, spread
from agenteval.utility.verify.effects import effects
from agenteval.utility.verify.evidence import Evidence, gather
from tests.utility.verify.making import Rate, criterion, quality, table

OPTIONS = VerifyOptions()


def one(rate: Rate, **how: Any) -> Evidence:
    return gather(table({"x": rate}, **how), [criterion("x")])[0]


CHECKS: list[tuple[Callable[..., Check], Rate, dict[str, Any], str, float | None, str]] = [
    # check, rate, how the table is made, outcome, estimate, part of the reason
    (coverage, lambda c, r, v, g: quality(c), {}, "pass", 1.0, "100% of 90 ratings were made"),
    (coverage, lambda c, r, v, g: "unscored:refusal" if c % 5 < 2 else quality(c), {}, "fail", 0.6,
     "(36 unscored:refusal); missing not at random: every rating of 12 of 30 cases failed"),
    (coverage, lambda c, r, v, g: "not_applicable" if c % 2 else quality(c), {}, "pass", 1.0, ""),
    (coverage, lambda c, r, v, g: "unscored:parse" if c % 2 and r == 0 else quality(c), {}, "pass",
     75 / 90, "0% of successful and 33% of failed runs' ratings"),
    (coverage, lambda c, r, v, g: "unscored:unsupported", {}, "unknown", 0.0, "cannot grade it"),
    (spread, lambda c, r, v, g: 0.75, {}, "fail", 1.0, "every run has the same value, 0.75"),
    (spread, lambda c, r, v, g: 1.0 if c % 10 else 0.5, {}, "pass", 0.9,
     "2 different values over 30 runs; warning: 90% of the ratings at the top"),
    (spread, lambda c, r, v, g: "error:timeout", {}, "unknown", None, "no run has a value"),
    (agreement, lambda c, r, v, g: quality(c), {}, "pass", 1.0, "100% of the repeats are equal"),
    (agreement, lambda c, r, v, g: quality(c), {"cases": 19}, "unknown", 1.0, "too few to decide"),
    (agreement, lambda c, r, v, g: quality(c), {"repeats": 1}, "unknown", None, "one repeat"),
    (separation, lambda c, r, v, g: 0.75 if c % 2 == 0 else 0.25, {}, "pass", 1.0, "AUC 1.000"),
    # unrelated to success: undecided with 30 runs, surely not told with 1,000
    (separation, lambda c, r, v, g: c // 2 % 3 / 2, {}, "unknown", 0.5, "AUC 0.5"),
    (separation, lambda c, r, v, g: c // 2 % 3 / 2, {"cases": 1000, "repeats": 1}, "fail", 0.5,
     "negligible; 500 successful, 500 failed runs"),
    (separation, lambda c, r, v, g: quality(c), {"success": lambda c: None}, "unknown", None,
     "success is unknown"),
]  # fmt: skip


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: f"{row[0].__name__}-{row[5][:20]}")
def test_a_check(row: tuple[Any, ...]) -> None:
    check, rate, how, outcome, estimate, reason = row
    found = check(one(rate, **how), OPTIONS)
    assert found.outcome == outcome
    assert found.estimate == (estimate and pytest.approx(estimate))
    assert reason in found.reason
    assert "not at random" not in found.reason or estimate != 1.0


def test_random_repeats_disagree() -> None:
    noise = agreement(one(lambda c, r, v, g: float(g.integers(5)) / 4, cases=60), OPTIONS)
    assert noise.outcome == "fail"
    assert noise.estimate == pytest.approx(0, abs=0.3)


def test_pairs_are_matched_by_run_and_unchanged_copies_left_out() -> None:
    """Of six copies one has no rating, one fails, and one equals its original."""

    def rate(case: int, repeat: int, variant: str, _: object) -> float | str | None:
        if variant == "original":
            return 0.75
        return {3: None, 4: "error:timeout"}.get(case, 0.25 * (case % 2))

    ratings = table({"x": rate}, cases=6, variants=("original", "pad:0.25:0", "mine:x:1"))
    lengths = {
        (f"run-{c:03}", v): 100 + (v != "original") * (10 if c else -10)
        for c in range(6) for v in ("original", "pad:0.25:0")
    }  # fmt: skip
    evidence = gather(ratings, [criterion("x")], CopyFacts(lengths, {"pad:0.25:0": ["run-005"]}))
    mine, pad = effects(evidence, OPTIONS)[0]
    assert pad.estimate == pytest.approx((0.75 + 0.5 + 0.75) / 3)  # cases 0, 1, 2
    assert (pad.operator, pad.share, pad.n, pad.pairs) == ("pad", 0.25, 3, 3)
    assert (pad.missing, pad.unchanged, pad.shorter) == (1, 1, 0.25)
    assert (mine.operator, mine.share, mine.n, mine.shorter) == ("mine", None, 4, None)


@pytest.mark.parametrize(
    "bad", [{"margin": 0.0}, {"auc": 1.0}, {"min_cases": 1}, {"resamples": 10}, {"draws": 99}]
)
def test_thresholds_that_nothing_could_meet(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        VerifyOptions(**bad)
