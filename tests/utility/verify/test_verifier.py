"""Verdicts on judges of known kinds, each kind of evidence, and what no judge may pass with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.records.verification import JudgeVerdict, VerifiedSet
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.utility.reports import verify_report
from agenteval.utility.verify import CopyFacts, VerifyOptions, verify_table
from benchmarks.verdicts.kinds import KINDS, WORST
from benchmarks.verdicts.simulate import classify, truth, verdict_of
from benchmarks.verdicts.world import Design
from tests.utility.verify.making import criterion

VARIANTS = ("original", "drop_sentences:0.25:0", "swap_numbers:0.25:0", "whitespace:-:0")
NAMES = ("complete", "accurate", "clear")
CRITERIA = tuple(
    criterion(name, drop_sentences="lower", swap_numbers="lower", whitespace="none")
    for name in NAMES
)
OPTIONS = VerifyOptions(resamples=200, draws=1000)
# (case, place of the criterion, variant, generator) → value before noise, or a status of failure
Value = Callable[[int, int, str, np.random.Generator], float | str]
Level = Callable[[int, int, str], float]


def succeeds(case: int) -> bool:
    return case % 2 == 0


def right(case: int, place: int, variant: str) -> float:
    """A level of five that tells success, minus a step for damage."""
    level = 0.5 + 0.5 * succeeds(case) - 0.25 * (case // (place + 2) % 2)
    return level - 0.25 * variant.startswith(("drop", "swap"))


def upside_down(case: int, place: int, variant: str) -> float:
    return 1.0 - 0.25 * succeeds(case) - 0.25 * variant.startswith(("drop", "swap"))


def rated(
    value: Callable[..., float | str],
    *,
    cases: int = 40,
    systems: int = 1,
    repeats: int = 2,
    success: Callable[[int], bool | None] = succeeds,
    noise: float = 0.04,
    variants: tuple[str, ...] = VARIANTS,
) -> ScoreTable:
    """Ratings on a scale of five; `value` takes (case, place, variant), or a generator as well."""
    rng = np.random.default_rng(7)
    takes_rng = value.__code__.co_argcount > 3
    rows: list[dict[str, Any]] = []
    for variant in variants:
        for case in range(cases):
            for place, name in enumerate(NAMES):
                for repeat in range(repeats):
                    more = (rng,) if takes_rng else ()
                    rating = value(case, place, variant, *more)
                    row: dict[str, Any] = {"run": f"r{case}", "criterion": name}
                    row |= {"system": f"s{case // 2 % systems}", "success": success(case)}
                    row |= {"variant": variant, "repeat": repeat}
                    if isinstance(rating, str):
                        rows.append(row | {"status": rating})
                        continue
                    noisy = rating + rng.normal(0, noise)
                    level = float(np.clip(np.floor(noisy * 4 + 0.5) / 4, 0, 1))
                    rows.append(row | {"value": level})
    return score_table(rows)


def verified(value: Callable[..., float | str], **how: Any) -> VerifiedSet:
    return verify_table(rated(value, **how), CRITERIA, OPTIONS)


def standings(judge: JudgeVerdict) -> dict[str, str]:
    return {e.name: e.standing for e in judge.evidence}


def refusing(share: float, status: str, when: Callable[[int, str], bool]) -> Value:
    def value(case: int, place: int, variant: str, rng: np.random.Generator) -> float | str:
        refused = when(case, variant) and rng.random() < share
        return status if refused else right(case, place, variant)

    return value


def dice(case: int, place: int, variant: str, rng: np.random.Generator) -> float:
    return float(rng.integers(5)) / 4


def by_length(case: int, place: int, variant: str) -> float:
    """Shorter copies score lower; nothing of equal length is noticed."""
    return right(case, place, "original") - 0.25 * variant.startswith("drop")


def blind_to_runs(case: int, place: int, variant: str) -> float:
    return 1 - 0.5 * variant.startswith(("drop", "swap"))


def damage_raises(case: int, place: int, variant: str) -> float:
    return right(case, place, variant) + 0.5 * variant.startswith(("drop", "swap"))


def any_change(case: int, place: int, variant: str) -> float:
    return right(case, place, "original") - 0.25 * (variant != "original")


def controls_lower(case: int, place: int, variant: str) -> float:
    return right(case, place, variant) - 0.25 * variant.startswith("white")


ALWAYS: Callable[[int, str], bool] = lambda case, variant: True  # noqa: E731
UNLABELLED = {"success": lambda case: None}
ENOUGH, FEW, NOT = "trustworthy", "not enough data", "not trustworthy"
NO_COPIES, NO_CONTROLS = {"variants": ("original",)}, {"variants": VARIANTS[:3]}
AGREE = "on 3 of 3 criteria"
MALFORMED = refusing(0.05, "unscored:parse", ALWAYS)
REFUSED = refusing(0.4, "unscored:refusal", ALWAYS)
COPIES = refusing(1, "unscored:refusal", lambda case, variant: variant != "original" and case > 9)
JUDGES: list[tuple[str, Callable[..., float | str], dict[str, Any], str, set[str], str]] = [
    # name, ratings, how, verdict on the judge, verdicts on the criteria, part of what is said
    ("right", right, {"systems": 2}, ENOUGH, {"keep"}, AGREE),
    ("no noise", right, {"noise": 0}, ENOUGH, {"keep"}, "all repeats are identical"),
    ("no labels", right, UNLABELLED, f"{ENOUGH} for differences within a case", {"keep"}, AGREE),
    ("5% malformed", MALFORMED, {}, ENOUGH, {"keep"}, AGREE),
    ("one class", right, {"success": lambda case: True}, FEW, {"keep"}, "five of each needed"),
    ("19 cases", right, {"cases": 19}, FEW, {"undecided"}, "19 cases: 1 more"),
    ("one repeat", right, {"repeats": 1}, FEW, {"undecided"}, "one repeat"),
    ("no copies", right, NO_COPIES, FEW, {"keep"}, "no perturbation"),
    ("no controls", right, NO_CONTROLS, FEW, {"keep"}, "no control was judged"),
    ("40% refused", REFUSED, {}, FEW, {"repair"}, "what is missing may be the hard"),
    ("copies refused", COPIES, {}, FEW, {"keep", "undecided"}, "copies have no rating"),
    ("no differences", blind_to_runs, {"noise": 0}, FEW, {"undecided"}, "runs do not differ on it"),
    ("dice", dice, {"cases": 60}, NOT, {"drop", "repair"}, "repeats disagree"),
    ("dice, no labels", dice, {"cases": 60, **UNLABELLED}, NOT, {"repair"}, "repeats disagree"),
    ("one level", lambda c, p, v: 0.5, {"noise": 0}, NOT, {"drop"}, "the same level everywhere"),
    ("upside down", upside_down, {}, NOT, {"repair"}, "failed runs are rated higher"),
    ("length", by_length, {}, NOT, {"repair"}, "with the length only"),
    ("damage raises", damage_raises, {}, NOT, {"repair"}, "did not move a score as expected"),
    ("any change", any_change, {}, NOT, {"repair"}, "nothing should change"),
    ("controls lower", controls_lower, {}, NOT, {"repair"}, "controls move scores"),
]


@pytest.mark.parametrize("row", JUDGES, ids=lambda row: row[0])
def test_a_judge_of_known_properties(row: tuple[Any, ...]) -> None:
    _, value, how, verdict, verdicts, text = row
    result = verified(value, **how)
    judge = result.judge
    assert judge.verdict == verdict
    assert {v.verdict for v in result.criteria} <= verdicts
    texts = [*judge.reasons, *judge.warnings, *(r for v in result.criteria for r in v.reasons)]
    assert text in "\n".join(texts)
    assert judge.exit_code() == {"trustworthy": 0, "not trustworthy": 5}.get(verdict, 4)
    assert judge.next_step
    assert VerifiedSet.model_validate_json(result.model_dump_json()) == result


def test_a_right_judge_has_all_evidence() -> None:
    judge = verified(right, systems=2).judge
    assert list(standings(judge).values()) == ["shown"] * 5 + ["not checked"]
    assert judge.evidence[-1].name == "liking of a system"
    success = judge.of("success is rated above failure")
    assert success is not None
    assert (success.low or 0) > OPTIONS.auc


def one_upside_down(case: int, place: int, variant: str) -> float:
    return (upside_down if place == 1 else right)(case, place, variant)


def test_one_refuted_criterion_is_named_and_never_passed_over() -> None:
    result = verified(one_upside_down)
    judge = result.judge
    assert (judge.verdict, judge.refuted) == ("trustworthy except accurate", ("accurate",))
    assert (judge.exit_code(), judge.exit_code(["accurate"])) == (5, 0)
    report = verify_report(result, CRITERIA, "a judge", rated(one_upside_down))
    gated = report.gate()
    assert (gated.exit_code, "accurate" in gated.gates[-1].detail) == (5, True)
    allowed = report.gate(allow=["Accurate"])
    assert (allowed.exit_code, allowed.gates[-1].outcome) == (0, "met")
    with pytest.raises(InputError, match="there is no criterion 'mood'"):
        report.gate(allow=["mood"])


def labels(value: Level, cases: int = 40) -> ScoreTable:
    return rated(value, variants=("original",), repeats=1, cases=cases, success=lambda case: None)


@pytest.mark.parametrize(
    ("people", "standing", "verdict"),
    [
        (labels(right), "shown", "trustworthy"),
        (labels(lambda c, p, v: 1 - right(c, p, v)), "refuted", "not trustworthy"),
        (labels(right, 19), "not shown", "trustworthy for differences within a case"),
    ],
)
def test_labels_of_people_replace_success(people: ScoreTable, standing: str, verdict: str) -> None:
    table = rated(right, **UNLABELLED)
    judge = verify_table(table, CRITERIA, OPTIONS, labels=[people]).judge
    assert (standings(judge)["people agree"], judge.verdict) == (standing, verdict)


def test_copies_that_equal_their_original() -> None:
    table = rated(right, variants=("original",))
    equal = {variant: [f"r{i}" for i in range(40)] for variant in VARIANTS[1:]}
    judge = verify_table(table, CRITERIA, OPTIONS, copies=CopyFacts(unchanged=equal)).judge
    assert judge.verdict == "not enough data"
    assert "copies equal their original" in "; ".join(judge.reasons)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("unscored:parse", "not enough data"), ("unscored:unsupported", "trustworthy")],
)
def test_a_criterion_wholly_unrated(status: str, verdict: str) -> None:
    """Refused, it counts; declared unsupported, it is named and left out."""
    result = verified(lambda c, p, v: status if p == 0 else right(c, p, v), cases=200)
    assert result.judge.verdict == verdict
    named = "1 of 3 criteria this judge cannot grade: complete" in result.judge.warnings
    assert named is (verdict == "trustworthy")


def test_a_judge_with_a_fixed_opinion_on_a_system() -> None:
    def fixed(case: int, place: int, variant: str) -> float:
        return right(case, place, variant) if case // 2 % 2 == 0 else 0.75

    judge = verified(fixed, cases=60, systems=2).judge
    evidence = judge.of("systems are judged alike")
    assert evidence is not None
    change = {f.system: f for f in evidence.systems if f.figure == "change"}
    high = change["s1"].high
    assert high is not None
    assert (change["s0"].low or 0) > OPTIONS.margin > high
    assert (evidence.standing, judge.verdict) == ("refuted", "not trustworthy")


@pytest.mark.parametrize(
    ("how", "reason"),
    [({"systems": 1}, "one system"), ({"cases": 20, "systems": 4}, "12 copies")],
)
def test_systems_that_cannot_be_compared(how: dict[str, Any], reason: str) -> None:
    evidence = verified(right, **how).judge.of("systems are judged alike")
    assert evidence is not None
    assert (evidence.standing, reason in evidence.reason) == ("not checked", True)


def test_criteria_that_cannot_be_told_apart_are_one_score() -> None:
    judge = verified(lambda c, p, v: right(c, 0, v), noise=0).judge
    assert (judge.verdict, judge.one_score) == ("trustworthy as one score", NAMES)


@pytest.mark.parametrize(
    ("success", "auc", "step"),
    [
        (lambda case: case < 8 or 12 <= case < 16, 2 / 3, "more runs would decide"),
        (lambda case: case % 2 == 0, 0.5, "the criteria say nothing of success"),
    ],
)
def test_more_runs_are_proposed_only_where_the_estimate_passes(
    success: Callable[[int], bool], auc: float, step: str
) -> None:
    def half_good(case: int, place: int, variant: str) -> float:
        return 0.5 + 0.25 * (case < 12) - 0.25 * variant.startswith(("drop", "swap"))

    evidence = verified(half_good, cases=24, success=success, noise=0).judge.of(
        "success is rated above failure"
    )
    assert evidence is not None
    assert (evidence.standing, evidence.estimate) == ("not shown", pytest.approx(auc))
    assert step in evidence.next_step


def test_the_order_of_rows_and_criteria_and_what_is_nominal_change_nothing() -> None:
    ratings = rated(right)
    shuffled = ratings.where(np.random.default_rng(3).permutation(len(ratings)))
    kind = Criterion(name="Kind", accepted_values=("a", "b"), scale="nominal")
    result = verify_table(ratings, CRITERIA, OPTIONS)
    assert result == verify_table(shuffled, [*CRITERIA, kind], OPTIONS)
    other = verify_table(ratings, CRITERIA[::-1], OPTIONS)
    assert (result.judge.verdict, result.criteria) == (other.judge.verdict, other.criteria[::-1])


def test_nothing_rated_at_all() -> None:
    empty = verify_table(score_table([]), CRITERIA)
    assert (empty.criteria, empty.judge.verdict) == ((), "not enough data")


def test_the_smallest_subset_tells_as_well_as_all() -> None:
    def one_tells(case: int, place: int, variant: str) -> float:
        return 0.25 + 0.5 * succeeds(case) if place == 1 else case // 2 % (place + 3) / 4

    assert verified(one_tells, noise=0).subset == ("accurate",)
    # near AUC 1/2 there is nothing to tell success by
    assert verified(lambda c, p, v: c // 2 % 3 / 2, noise=0).subset == ()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WORST)
def test_the_worst_kinds(name: str, seed: int) -> None:
    kind = truth(next(k for k in KINDS if k.name == name), "math")
    result = verdict_of(kind, "math", Design(60), seed)
    assert classify(result) in kind.allowed
    if kind.excepted is not None:
        assert result.judge.refuted == ("accuracy",)
