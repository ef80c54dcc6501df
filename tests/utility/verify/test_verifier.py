"""Verdicts on criteria and judges whose properties are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.utility.verify import verify_table
from agenteval.utility.verify.options import VerifyOptions
from tests.utility.verify.making import Rate, criterion, quality, table

VARIANTS = ("original", "drop_sentences:0.25:0", "shuffle_sentences:-:0", "swap_numbers:0.25:0",
            "pad:0.25:0", "whitespace:-:0")  # fmt: skip
COMPLETE = criterion("complete", drop_sentences="lower", pad="none", whitespace="none")
COHERENT = criterion("coherent", shuffle_sentences="lower", pad="none", whitespace="none")
ACCURATE = criterion("accurate", swap_numbers="lower", pad="none", whitespace="none")
ALL = (COMPLETE, COHERENT, ACCURATE)
HURT = {"complete": "drop", "coherent": "shuffle", "accurate": "swap"}
# The three qualities of a case differ, so that no criterion repeats another.
OWN: dict[str, Callable[[int], float]] = {
    "complete": quality,
    "coherent": lambda case: (case // 3 % 4 + (case % 2 == 0)) / 4,
    "accurate": lambda case: (case // 2 % 4 + (case % 2 == 0)) / 4,
}


def perfect(name: str) -> Rate:
    def rate(case: int, _: int, variant: str, __: np.random.Generator) -> float:
        hurt = variant.startswith(HURT[name])
        return max(0.0, OWN[name](case) - (0.25 if hurt else 0.0))

    return rate


def succeeds(case: int) -> bool:
    return sum(own(case) for own in OWN.values()) > 1.4


def judged(rate: Callable[[str], Rate], cases: int = 60, **how: object) -> VerifiedSet:
    how.setdefault("success", succeeds)
    rates = {c.id: rate(c.id) for c in ALL}
    ratings = table(rates, cases=cases, variants=VARIANTS, **how)  # type: ignore[arg-type]
    return verify_table(ratings, ALL, VerifyOptions(resamples=200))


def broken(change: Callable[[int, str, float, np.random.Generator], float | str]) -> Any:
    """A perfect judge whose rating is changed: (case, variant, rating, rng) → what it says."""

    def make(name: str) -> Rate:
        inner = perfect(name)
        return lambda c, r, v, rng: change(c, v, inner(c, r, v, rng), rng)  # type: ignore[arg-type]

    return make


def of_length(with_pad: bool) -> Callable[[str], Rate]:
    """Shorter copies score lower, longer ones higher; nothing of equal length is noticed."""
    change = {"drop": -0.25, "pad:": 0.25 * with_pad}
    return lambda name: lambda c, r, v, rng: 0.25 + OWN[name](c) / 2 + change.get(v[:4], 0.0)


JUDGES: list[tuple[Callable[[str], Rate], dict[str, Any], str, set[str], str]] = [
    # rates, how, verdict on the judge, verdicts on the criteria, part of what is said
    (perfect, {}, "trustworthy", {"keep"}, "all repeats are identical"),
    (perfect, {"success": lambda case: None}, "trustworthy for differences within a case",
     {"keep"}, "on 3 of 3 criteria"),
    (perfect, {"cases": 19}, "not enough data", {"undecided"}, "19 cases"),
    (lambda n: lambda c, r, v, rng: float(rng.integers(5)) / 4, {}, "not trustworthy",
     {"drop", "repair"}, "repeats disagree"),
    (lambda n: lambda c, r, v, rng: float(rng.integers(5)) / 4, {"success": lambda case: None},
     "not trustworthy", {"repair"}, "repeats disagree"),  # without labels noise is not dropped
    (lambda n: lambda c, r, v, rng: 0.5, {}, "not trustworthy", {"drop"}, "the same level"),
    (of_length(True), {}, "not trustworthy", {"repair"},
     "pad 25%: rose by 0.250 although none was expected"),
    # runs that do not differ are no fault of the judge
    (lambda n: lambda c, r, v, rng: 0.5 if v.startswith(HURT[n]) else 1.0, {}, "not enough data",
     {"undecided"}, "these runs do not differ on it"),
    (lambda n: lambda c, r, v, rng: max(0.0, (0.25 if c % 2 == 0 else 0.75)
                                        - (0.25 if v.startswith(HURT[n]) else 0)),
     {"success": lambda case: case % 2 == 0}, "not trustworthy", {"repair"},
     "failed runs are rated higher"),
    (broken(lambda c, v, own, rng: "unscored:refusal" if rng.random() < 0.4 else own), {},
     "not enough data", {"repair"}, "of the ratings were made; what is missing may be the hard"),
    (broken(lambda c, v, own, rng: "unscored:parse" if rng.random() < 0.05 else own), {},
     "trustworthy", {"keep"}, "on 3 of 3 criteria"),
    (broken(lambda c, v, own, rng: "unscored:refusal" if v != "original" and c >= 15 else own), {},
     "not enough data", {"keep", "undecided"}, "copies have no rating"),
    (broken(lambda c, v, own, rng: own if v == "original" else max(0.0, own - 0.25)), {},
     "not trustworthy", {"repair"}, "nothing should change"),
]  # fmt: skip


@pytest.mark.parametrize("row", JUDGES, ids=lambda row: f"{row[2]}: {row[4]}")
def test_a_judge_of_known_properties(row: tuple[Any, ...]) -> None:
    rate, how, verdict, verdicts, said = row
    result = judged(rate, **how)
    assert result.judge.verdict == verdict
    assert {v.verdict for v in result.criteria} <= verdicts
    texts = [*result.judge.reasons, *result.judge.warnings]
    assert said in "\n".join([*texts, *(reason for v in result.criteria for reason in v.reasons)])
    assert VerifiedSet.model_validate_json(result.model_dump_json()) == result


def test_the_effect_of_a_perfect_judge() -> None:
    (drop,) = (e for e in judged(perfect).criteria[0].effects if e.operator == "drop_sentences")
    at_zero = sum(quality(c) == 0 for c in range(60))
    assert (drop.outcome, drop.expected, drop.share, drop.n) == ("pass", "lower", 0.25, 60)
    assert (drop.fell, drop.rose, drop.tied) == (60 - at_zero, 0, at_zero)
    assert drop.estimate == pytest.approx(0.25 * (60 - at_zero) / 60)


def test_length_is_found_by_what_keeps_it() -> None:
    """Length alone passes the published test, dropped sentences; all criteria expect them."""
    criteria = [
        c.model_copy(update={"expect": {**c.expect, "drop_sentences": "lower"}}) for c in ALL
    ]
    ratings = table({c.id: of_length(False)(c.id) for c in ALL}, cases=60, variants=VARIANTS)
    result = verify_table(ratings, criteria, VerifyOptions(resamples=200))
    assert [e.outcome for v in result.criteria for e in v.effects
            if e.operator == "drop_sentences"] == ["pass"] * 3  # fmt: skip
    assert result.judge.verdict == "not trustworthy"
    assert any("with the length only" in reason for reason in result.judge.reasons)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("unscored:parse", "not enough data"), ("unscored:unsupported", "trustworthy")],
)
def test_a_criterion_wholly_unrated(status: str, verdict: str) -> None:
    """Refused, it stays in the reckoning; declared unsupported, it is named and left out."""
    rates: dict[str, Rate] = {
        c.id: perfect(c.id) if c is not COMPLETE else lambda c, r, v, g: status for c in ALL
    }
    ratings = table(rates, cases=200, variants=VARIANTS, success=succeeds)
    result = verify_table(ratings, ALL, VerifyOptions(resamples=200))
    assert result.judge.verdict == verdict
    named = "1 of 3 criteria this judge cannot grade: complete" in result.judge.warnings
    assert named is (verdict == "trustworthy")


def test_two_criteria_that_say_the_same() -> None:
    twin = Criterion(name="Twin", accepted_values=COMPLETE.accepted_values, expect=COMPLETE.expect)

    def blurred(case: int, repeat: int, variant: str, rng: np.random.Generator) -> float:
        exact = perfect("complete")(case, repeat, variant, rng)
        assert isinstance(exact, float)
        return min(1.0, exact + 0.25) if case == 7 and repeat == 0 else exact

    rates: dict[str, Rate] = {c.id: perfect(c.id) for c in ALL} | {twin.id: blurred}
    result = verify_table(table(rates, cases=60, variants=VARIANTS), [*ALL, twin], VerifyOptions())
    found = {v.criterion_id: v for v in result.criteria}
    assert (found["twin"].verdict, found["twin"].partner) == ("drop", "complete")
    assert found["complete"].verdict == "keep"
    assert "says what complete says (rho " in found["twin"].reasons[0]


def test_the_order_of_rows_and_criteria_and_what_is_nominal_change_nothing() -> None:
    ratings = table({c.id: perfect(c.id) for c in ALL}, cases=30, variants=VARIANTS)
    moved = ratings.where(np.random.default_rng(3).permutation(len(ratings)))
    kind = Criterion(name="Kind", accepted_values=("a", "b"), scale="nominal")
    one = verify_table(ratings, ALL, VerifyOptions(resamples=200))
    assert one == verify_table(moved, [*ALL, kind], VerifyOptions(resamples=200))
    other = verify_table(ratings, ALL[::-1], VerifyOptions(resamples=200))
    assert (one.judge, one.criteria) == (other.judge, other.criteria[::-1])


def test_nothing_rated_at_all() -> None:
    empty = verify_table(table({}), ALL)
    assert empty.criteria == ()
    assert empty.judge.verdict == "not enough data"


def test_the_smallest_subset_tells_as_well_as_all() -> None:
    rates: dict[str, Rate] = {
        "tells": lambda c, r, v, g: 0.75 if c % 2 == 0 else 0.25,
        "complete": perfect("complete"),
    }
    ratings, options = table(rates, cases=40), VerifyOptions(resamples=200)
    assert verify_table(ratings, [criterion("tells"), COMPLETE], options).subset == ("tells",)
    # complete alone is near AUC 1/2: nothing to tell success by
    chance = table({"complete": lambda c, r, v, g: c // 2 % 3 / 2}, cases=40)
    assert verify_table(chance, [COMPLETE], options).subset == ()
