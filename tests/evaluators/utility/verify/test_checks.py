"""Single checks on ratings with known properties."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.evaluators.utility.verify.checks import (
    agreement,
    at_the_end,
    coverage,
    separation,
    spread,
)
from agenteval.evaluators.utility.verify.evidence import (
    Evidence,
    Lengths,
    gather,
    share_of,
)
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.stats.scores import split_variant
from tests.evaluators.utility.verify.making import Rate, criterion, quality, table

OPTIONS = VerifyOptions()


def one(rate: Rate, **how: object) -> Evidence:
    return gather(table({"x": rate}, **how), [criterion("x")])[0]  # type: ignore[arg-type]


# ---- coverage ------------------------------------------------------------------------------------


def test_every_rating_made() -> None:
    check = coverage(one(lambda c, r, v, g: quality(c)), OPTIONS)
    assert (check.outcome, check.estimate, check.n) == ("pass", 1.0, 90)
    assert "not at random" not in check.reason


def test_two_of_five_refused_is_too_few() -> None:
    check = coverage(
        one(lambda c, r, v, g: "unscored:refusal" if c % 5 < 2 else quality(c)), OPTIONS
    )
    assert check.outcome == "fail"
    assert check.estimate == pytest.approx(0.6)
    assert "36 unscored:refusal" in check.reason
    assert "every rating of 12 of 30 cases failed" in check.reason


def test_not_applicable_is_an_answer() -> None:
    check = coverage(one(lambda c, r, v, g: "not_applicable" if c % 2 else quality(c)), OPTIONS)
    assert (check.outcome, check.estimate) == ("pass", 1.0)


def test_failures_on_one_side_are_not_at_random() -> None:
    def rate(case: int, repeat: int, _: str, rng: np.random.Generator) -> float | str:
        return "unscored:parse" if case % 2 and repeat == 0 else quality(case)

    check = coverage(one(rate), OPTIONS)
    assert check.estimate == pytest.approx(75 / 90)
    assert "0% of successful and 33% of failed runs' ratings" in check.reason


def test_what_a_judge_cannot_see_is_not_its_failure() -> None:
    check = coverage(one(lambda c, r, v, g: "unscored:unsupported"), OPTIONS)
    assert check.outcome == "unknown"


# ---- spread --------------------------------------------------------------------------------------


def test_a_constant_tells_nothing() -> None:
    evidence = one(lambda c, r, v, g: 0.75)
    assert spread(evidence, OPTIONS).outcome == "fail"
    assert at_the_end(evidence, OPTIONS) is None


def test_a_crowd_at_the_top_passes_with_a_warning() -> None:
    evidence = one(lambda c, r, v, g: 1.0 if c % 10 else 0.5)
    check = spread(evidence, OPTIONS)
    assert check.outcome == "pass"
    assert "90% of the ratings at the top" in check.reason
    assert at_the_end(evidence, OPTIONS) == "top"


def test_no_value_at_all() -> None:
    assert spread(one(lambda c, r, v, g: "error:timeout"), OPTIONS).outcome == "unknown"


# ---- agreement -----------------------------------------------------------------------------------


def test_equal_repeats_agree_and_random_ones_do_not() -> None:
    same = agreement(one(lambda c, r, v, g: quality(c)), OPTIONS)
    assert (same.outcome, same.estimate) == ("pass", 1.0)
    noise = agreement(one(lambda c, r, v, g: float(g.integers(5)) / 4, cases=60), OPTIONS)
    assert noise.outcome == "fail"
    assert noise.estimate is not None
    assert abs(noise.estimate) < 0.3


def test_one_repeat_and_few_cases_decide_nothing() -> None:
    single = agreement(one(lambda c, r, v, g: quality(c), repeats=1), OPTIONS)
    assert (single.outcome, single.estimate) == ("unknown", None)
    few = agreement(one(lambda c, r, v, g: quality(c), cases=19), OPTIONS)
    assert (few.outcome, few.estimate) == ("unknown", 1.0)


# ---- discrimination ------------------------------------------------------------------------------


def test_success_above_failure() -> None:
    check = separation(one(lambda c, r, v, g: 0.75 if c % 2 == 0 else 0.25), OPTIONS)
    assert (check.outcome, check.estimate) == ("pass", 1.0)


def test_unrelated_to_success_is_unknown_or_failed_but_never_passed() -> None:
    small = separation(one(lambda c, r, v, g: c // 2 % 3 / 2), OPTIONS)
    assert small.outcome == "unknown"
    large = separation(one(lambda c, r, v, g: c // 2 % 3 / 2, cases=1000, repeats=1), OPTIONS)
    assert large.outcome == "fail"


def test_success_unknown() -> None:
    check = separation(one(lambda c, r, v, g: quality(c), success=lambda c: None), OPTIONS)
    assert (check.outcome, check.estimate) == ("unknown", None)
    assert "success is unknown" in check.reason


# ---- evidence ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parts"),
    [("pad:0.25:7", ("pad", 0.25)), ("whitespace::7", ("whitespace", None)),
     ("drop_answer", ("drop_answer", None)), ("mine:x:1", ("mine", None))],
)  # fmt: skip
def test_variants(name: str, parts: tuple[str, float | None]) -> None:
    operator, written = split_variant(name)
    assert (operator, share_of(written)) == parts


def test_pairs_are_matched_by_run_and_unchanged_copies_left_out() -> None:
    def rate(case: int, repeat: int, variant: str, _: np.random.Generator) -> float | None:
        if variant == "original":
            return 0.75
        return None if case == 3 else 0.25 * (case % 2)

    ratings = table({"x": rate}, cases=6, variants=("original", "pad:0.25:0"))
    lengths = Lengths(
        {(f"run-{c:03}", v): 100 + (v != "original") * (10 if c else -10)
         for c in range(6) for v in ("original", "pad:0.25:0")}
    )  # fmt: skip
    evidence = gather(
        ratings, [criterion("x")], lengths=lengths, unchanged={"pad:0.25:0": ["run-005"]}
    )[0]
    (copies,) = evidence.copies
    assert copies.drop.tolist() == [0.75, 0.5, 0.75, 0.75]  # cases 0, 1, 2, 4
    assert copies.unchanged == 1
    assert copies.shorter == 0.25


@pytest.mark.parametrize(
    "bad", [{"margin": 0.0}, {"auc": 1.0}, {"min_cases": 1}, {"resamples": 10}]
)
def test_thresholds_that_nothing_could_meet(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        VerifyOptions(**bad)  # type: ignore[arg-type]
