"""Verdicts on criteria and judges whose properties are known."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verifier import verify
from agenteval.records import Criterion
from agenteval.records.verification import Verification, VerifiedSet
from agenteval.stats.scores import ScoreTable
from tests.evaluators.utility.verify.making import Rate, criterion, quality, table

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


def judged(rate: Callable[[str], Rate], cases: int = 60, **how: object) -> VerifiedSet:
    rates = {c.id: rate(c.id) for c in ALL}
    ratings = table(rates, cases=cases, variants=VARIANTS, **how)  # type: ignore[arg-type]
    return verify(ratings, ALL, VerifyOptions(resamples=200))


def by_id(result: VerifiedSet) -> dict[str, Verification]:
    return {v.criterion_id: v for v in result.criteria}


def test_a_perfect_judge_is_trusted_and_its_criteria_kept() -> None:
    result = judged(perfect)
    assert [v.verdict for v in result.criteria] == ["keep"] * 3
    assert result.judge.verdict == "trustworthy"
    drop = next(e for e in by_id(result)["complete"].effects if e.operator == "drop_sentences")
    assert (drop.outcome, drop.expected, drop.share, drop.n) == ("pass", "lower", 0.25, 60)
    at_zero = sum(quality(c) == 0 for c in range(60))
    assert (drop.fell, drop.rose, drop.tied) == (60 - at_zero, 0, at_zero)
    assert drop.estimate == pytest.approx(0.25 * (60 - at_zero) / 60)


def test_a_random_judge_is_not_trusted() -> None:
    result = judged(lambda name: lambda c, r, v, rng: float(rng.integers(5)) / 4)
    assert result.judge.verdict == "not trustworthy"
    assert "keep" not in {v.verdict for v in result.criteria}
    assert any("repeats disagree" in reason for reason in result.judge.reasons)


def test_a_constant_judge_is_not_trusted() -> None:
    result = judged(lambda name: lambda c, r, v, rng: 0.5)
    assert result.judge.verdict == "not trustworthy"
    assert {v.verdict for v in result.criteria} == {"drop"}


def test_length_alone_passes_the_drop_and_is_found_by_the_rest() -> None:
    """Shorter copies score lower, longer ones higher; nothing of equal length is noticed."""

    def length_only(name: str) -> Rate:
        def rate(case: int, _: int, variant: str, __: np.random.Generator) -> float:
            own = 0.25 + OWN[name](case) / 2
            change = {"drop": -0.25, "pad:": 0.25}.get(variant[:4], 0.0)
            return own + change

        return rate

    result = judged(length_only)
    drop = next(e for e in by_id(result)["complete"].effects if e.operator == "drop_sentences")
    assert drop.p_adjusted is not None
    assert drop.p_adjusted < 0.05  # it passes the published test
    assert (drop.outcome, drop.reason) == ("pass", "fell by 0.250")
    assert result.judge.verdict == "not trustworthy"
    assert result.judge.reasons == ("2 of 3 perturbations did not move a score as expected",)
    said = by_id(result)["complete"].reasons
    assert "pad 25%: rose by 0.250 although none was expected" in said


def test_without_padding_length_is_still_found_by_what_keeps_it() -> None:
    def rate_of(name: str) -> Rate:
        return lambda case, r, v, rng: OWN[name](case) - (0.25 if v.startswith("drop") else 0)

    some = tuple(v for v in VARIANTS if not v.startswith("pad"))
    drops = tuple(
        c.model_copy(update={"expect": {**c.expect, "drop_sentences": "lower"}}) for c in ALL
    )
    ratings = table({c.id: rate_of(c.id) for c in drops}, cases=60, variants=some)
    shifted = ScoreTable(**{**ratings.__dict__, "value": np.clip(ratings.value + 0.25, 0, 1)})
    result = verify(shifted, drops, VerifyOptions(resamples=200))
    assert result.judge.verdict == "not trustworthy"
    assert any("with the length only" in reason for reason in result.judge.reasons)


def test_refusing_is_not_enough_data() -> None:
    def refusing(name: str) -> Rate:
        inner = perfect(name)
        return lambda c, r, v, rng: (
            "unscored:refusal" if rng.random() < 0.4 else inner(c, r, v, rng)
        )

    result = judged(refusing)
    assert result.judge.verdict == "not enough data"
    assert "only 6" in result.judge.reasons[0] or "only 5" in result.judge.reasons[0]
    assert {v.verdict for v in result.criteria} == {"repair"}


def test_some_malformed_replies_leave_the_verdict_and_lower_the_coverage() -> None:
    def malformed(name: str) -> Rate:
        inner = perfect(name)
        return lambda c, r, v, rng: "unscored:parse" if rng.random() < 0.05 else inner(c, r, v, rng)

    result = judged(malformed)
    assert result.judge.verdict == "trustworthy"
    assert all(0.9 < (v.coverage or 0) < 1 for v in result.criteria)


def test_below_twenty_cases_nothing_is_decided() -> None:
    result = judged(perfect, cases=19)
    assert {v.verdict for v in result.criteria} == {"undecided"}
    assert result.judge.verdict == "not enough data"
    assert "19 cases" in result.judge.reasons[0]


def test_success_unknown_leaves_agreement_and_perturbations() -> None:
    result = judged(perfect, success=lambda case: None)
    assert result.judge.verdict == "trustworthy"
    for one in result.criteria:
        found = one.check("discrimination")
        assert found is not None
        assert "success is unknown" in found.reason
    assert result.subset == ()


def test_two_criteria_that_say_the_same() -> None:
    twin = Criterion(name="Twin", accepted_values=COMPLETE.accepted_values, expect=COMPLETE.expect)

    def blurred(case: int, repeat: int, variant: str, rng: np.random.Generator) -> float:
        exact = perfect("complete")(case, repeat, variant, rng)
        return min(1.0, exact + 0.25) if case == 7 and repeat == 0 else exact

    rates: dict[str, Rate] = {c.id: perfect(c.id) for c in ALL} | {twin.id: blurred}
    result = verify(table(rates, cases=60, variants=VARIANTS), [*ALL, twin], VerifyOptions())
    found = by_id(result)
    assert (found["twin"].verdict, found["twin"].partner) == ("drop", "complete")
    assert found["complete"].verdict == "keep"
    assert "says what complete says" in found["twin"].reasons[0]


def test_the_order_of_rows_and_what_is_nominal_change_nothing() -> None:
    rates = {c.id: perfect(c.id) for c in ALL}
    ratings = table(rates, cases=30, variants=VARIANTS)
    order = np.random.default_rng(3).permutation(len(ratings))
    moved = ratings.where(order)
    kind = Criterion(name="Kind", accepted_values=("a", "b"), scale="nominal")
    one = verify(ratings, ALL, VerifyOptions(resamples=200))
    other = verify(moved, [*ALL, kind], VerifyOptions(resamples=200))
    assert one == other


def test_a_result_is_plain_json() -> None:
    result = judged(perfect, cases=20)
    assert VerifiedSet.model_validate_json(result.model_dump_json()) == result
    json.dumps(result.model_dump(mode="json"), allow_nan=False)


def test_nothing_rated_at_all() -> None:
    empty = verify(table({}), ALL)
    assert empty.criteria == ()
    assert empty.judge.verdict == "not enough data"


# ---- what a hostile reader tried -----------------------------------------------------------------


def test_refusing_the_copies_only_is_not_enough_data() -> None:
    def picky(name: str) -> Rate:
        inner = perfect(name)
        return lambda c, r, v, g: (
            "unscored:refusal" if v != "original" and c >= 15 else inner(c, r, v, g)
        )

    result = judged(picky)
    assert result.judge.verdict == "not enough data"
    assert "copies have no rating" in result.judge.reasons[0]
    assert any("have no rating" in w for w in result.judge.warnings)


def test_reacting_to_any_change_is_not_trusted() -> None:
    def jumpy(name: str) -> Rate:
        return lambda c, r, v, g: max(
            0.0, OWN[name](c) - (0.25 if v != "original" and g.random() < 0.2 else 0)
        )

    for seed in range(8):
        result = judged(jumpy, cases=100, seed=seed)
        assert result.judge.verdict != "trustworthy"


def test_no_control_no_trust() -> None:
    only = ("original", "drop_sentences:0.25:0", "shuffle_sentences:-:0", "swap_numbers:0.25:0")
    ratings = table({c.id: perfect(c.id) for c in ALL}, cases=60, variants=only)
    result = verify(ratings, ALL, VerifyOptions(resamples=200))
    assert result.judge.verdict == "not enough data"
    assert result.judge.reasons == (
        "no control was judged: copies by whitespace, formatting or paraphrase",
    )


def test_criteria_wholly_refused_stay_in_the_reckoning() -> None:
    rates: dict[str, Rate] = {
        c.id: perfect(c.id) if c is COMPLETE else lambda c, r, v, g: "unscored:parse" for c in ALL
    }
    result = verify(table(rates, cases=60, variants=VARIANTS), ALL, VerifyOptions(resamples=200))
    assert result.judge.verdict == "not enough data"


def test_what_the_judge_cannot_grade_is_named_and_left_out() -> None:
    rates: dict[str, Rate] = {
        c.id: perfect(c.id) if c is not COMPLETE else lambda c, r, v, g: "unscored:unsupported"
        for c in ALL
    }
    result = verify(table(rates, cases=60, variants=VARIANTS), ALL, VerifyOptions(resamples=200))
    assert result.judge.verdict == "trustworthy"
    assert "1 of 3 criteria this judge cannot grade: complete" in result.judge.warnings


def test_identical_repeats_are_said() -> None:
    assert any("all repeats are identical" in w for w in judged(perfect).judge.warnings)


def test_a_scale_upside_down_is_not_kept() -> None:
    def upside(name: str) -> Rate:
        return lambda c, r, v, g: max(
            0.0, (0.25 if c % 2 == 0 else 0.75) - (0.25 if v.startswith(HURT[name]) else 0)
        )

    result = judged(upside)
    assert all(v.verdict in ("repair", "drop") for v in result.criteria)
    assert any("failed runs are rated higher" in v.reasons[0] for v in result.criteria)


def test_runs_that_do_not_differ_are_no_fault_of_the_judge() -> None:
    result = judged(lambda name: lambda c, r, v, g: 0.5 if v.startswith(HURT[name]) else 1.0)
    assert {v.verdict for v in result.criteria} == {"undecided"}
    assert "do not differ" in result.criteria[0].reasons[0]
    assert result.judge.verdict != "not trustworthy"


def test_without_labels_noise_is_repaired_and_not_dropped() -> None:
    noise: Rate = lambda c, r, v, g: float(g.integers(5)) / 4  # noqa: E731
    ratings = table({"complete": noise}, cases=60, success=lambda case: None)
    (one,) = verify(ratings, [COMPLETE], VerifyOptions(resamples=200)).criteria
    assert one.verdict == "repair"


def test_the_partner_is_retained_and_covers_as_much() -> None:
    thin = criterion("thin", drop_sentences="lower")

    def thinly(case: int, repeat: int, variant: str, rng: np.random.Generator) -> float | str:
        exact = perfect("complete")(case, repeat, variant, rng)
        assert isinstance(exact, float)
        return exact if case % 4 == 0 else "unscored:refusal"

    rates: dict[str, Rate] = {"complete": perfect("complete"), "thin": thinly}
    result = verify(table(rates, cases=100, variants=VARIANTS), [COMPLETE, thin], VerifyOptions())
    found = by_id(result)
    assert found["complete"].verdict == "keep"
    assert found["thin"].verdict == "repair"
    assert result.subset == ()  # complete alone is at AUC 1/2: nothing to tell success by


def test_the_smallest_subset_tells_as_well_as_all() -> None:
    tells = criterion("tells")
    rates: dict[str, Rate] = {
        "tells": lambda c, r, v, g: 0.75 if c % 2 == 0 else 0.25,
        "complete": perfect("complete"),
    }
    result = verify(table(rates, cases=40), [tells, COMPLETE], VerifyOptions(resamples=200))
    assert result.subset == ("tells",)


def test_the_order_of_the_criteria_changes_nothing() -> None:
    ratings = table({c.id: perfect(c.id) for c in ALL}, cases=30, variants=VARIANTS)
    options = VerifyOptions(resamples=200)
    one, other = verify(ratings, ALL, options), verify(ratings, ALL[::-1], options)
    assert one.judge == other.judge
    assert by_id(one) == by_id(other)
