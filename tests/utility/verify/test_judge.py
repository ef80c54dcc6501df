"""Verdicts on judges of known kinds, each kind of evidence, and what no judge may pass with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.records.verification import JudgeVerdict, VerifiedSet
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.utility.reports import verify_report
from agenteval.utility.verify import CopyFacts, VerifyOptions, verify_table
from benchmarks.verdicts.kinds import KINDS, WORST, Kind
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
# (case, criterion, variant) → value before noise
Value = Callable[[int, int, str], float]


def succeeds(case: int) -> bool:
    return case % 2 == 0


def right(case: int, place: int, variant: str) -> float:
    """A level of five that tells success, minus a step for damage."""
    level = 0.5 + 0.5 * succeeds(case) - 0.25 * (case // (place + 2) % 2)
    return level - 0.25 * variant.startswith(("drop", "swap"))


def rated(value: Value, *, cases: int = 40, systems: int = 1, repeats: int = 2,
          success: Callable[[int], bool | None] = succeeds, noise: float = 0.04,
          variants: tuple[str, ...] = VARIANTS) -> ScoreTable:  # fmt: skip
    rng = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    for variant in variants:
        for case in range(cases):
            for place, name in enumerate(NAMES):
                for repeat in range(repeats):
                    noisy = value(case, place, variant) + rng.normal(0, noise)
                    level = float(np.clip(np.floor(noisy * 4 + 0.5) / 4, 0, 1))
                    rows.append({
                        "run": f"r{case}", "system": f"s{case // 2 % systems}", "criterion": name,
                        "variant": variant, "repeat": repeat, "success": success(case),
                        "value": level,
                    })  # fmt: skip
    return score_table(rows)


def judged(value: Value, options: VerifyOptions = OPTIONS, **how: Any) -> JudgeVerdict:
    return verify_table(rated(value, **how), CRITERIA, options).judge


def standings(judge: JudgeVerdict) -> dict[str, str]:
    return {e.name: e.standing for e in judge.evidence}


def upside_down(case: int, place: int, variant: str) -> float:
    return 1.0 - 0.25 * succeeds(case) - 0.25 * variant.startswith(("drop", "swap"))


def test_a_right_judge_has_all_evidence() -> None:
    judge = judged(right, systems=2)
    assert standings(judge) == {
        "repeats agree": "shown", "damage lowers scores": "shown",
        "controls change nothing": "shown", "success is rated above failure": "shown",
        "systems are judged alike": "shown",
    }  # fmt: skip
    assert (judge.verdict, judge.exit_code()) == ("trustworthy", 0)
    success = judge.of("success is rated above failure")
    assert success is not None
    assert success.low is not None
    assert success.low > OPTIONS.auc


def test_upside_down_is_not_trusted_however_well_it_sees_damage() -> None:
    judge = judged(upside_down)
    assert standings(judge)["damage lowers scores"] == "shown"
    assert standings(judge)["success is rated above failure"] == "refuted"
    assert (judge.verdict, judge.exit_code()) == ("not trustworthy", 5)
    assert "failed runs are rated higher" in judge.reasons[0]


def one_upside_down(case: int, place: int, variant: str) -> float:
    return (upside_down if place == 1 else right)(case, place, variant)


def test_one_refuted_criterion_is_named_and_never_passed_over() -> None:
    result = verify_table(rated(one_upside_down), CRITERIA, OPTIONS)
    judge = result.judge
    assert (judge.verdict, judge.refuted) == ("trustworthy except accurate", ("accurate",))
    assert judge.exit_code() == 5
    assert judge.exit_code(["accurate"]) == 0
    report = verify_report(result, CRITERIA, "a judge", rated(one_upside_down))
    gated = report.gate()
    assert gated.exit_code == 5
    assert "accurate" in gated.gates[-1].detail
    allowed = report.gate(allow=["Accurate"])
    assert (allowed.exit_code, allowed.gates[-1].outcome) == (0, "met")
    with pytest.raises(InputError, match="there is no criterion 'mood'"):
        report.gate(allow=["mood"])


def test_without_labels_trust_ends_at_differences_within_a_case() -> None:
    judge = judged(right, success=lambda case: None)
    assert judge.verdict == "trustworthy for differences within a case"
    assert judge.within_case
    assert judge.exit_code() == 4
    assert "agenteval agree sample" in judge.next_step


def labels(value: Value, cases: int = 40) -> ScoreTable:
    return rated(value, variants=("original",), repeats=1, cases=cases, success=lambda case: None)


@pytest.mark.parametrize(
    ("people", "standing", "verdict"),
    [
        (labels(right), "shown", "trustworthy"),
        (labels(lambda c, p, v: 1 - right(c, p, v)), "refuted", "not trustworthy"),
        (labels(right, 19), "not shown", "trustworthy for differences within a case"),
    ],
)
def test_labels_of_people_stand_in_for_success(
    people: ScoreTable, standing: str, verdict: str
) -> None:
    table = rated(right, success=lambda case: None)
    judge = verify_table(table, CRITERIA, OPTIONS, labels=[people]).judge
    assert (standings(judge)["people agree"], judge.verdict) == (standing, verdict)


BAD: list[tuple[str, Value, dict[str, Any], str]] = [
    ("labels of one class", right, {"success": lambda case: True}, "five of each needed"),
    ("one level", lambda c, p, v: 0.5, {"noise": 0}, "the same level everywhere"),
    ("no copies", right, {"variants": ("original",)}, "no perturbation"),
    ("no controls", right, {"variants": VARIANTS[:3]}, "no control was judged"),
    ("one repeat", right, {"repeats": 1}, "one repeat"),
    ("19 cases", right, {"cases": 19}, "19 cases: 1 more"),
    ("contradicting criteria",
     lambda c, p, v: right(c, 0, v) if p != 1 else 1.0 - right(c, 0, "original"), {}, "accurate"),
    ("damage raises scores", lambda c, p, v: right(c, p, v) + 0.5 * v.startswith(("drop", "swap")),
     {}, "did not move a score as expected"),
    ("controls lower scores", lambda c, p, v: right(c, p, v) - 0.25 * v.startswith("white"),
     {}, "controls move scores"),
]  # fmt: skip


@pytest.mark.parametrize("row", BAD, ids=lambda row: row[0])
def test_what_is_never_trustworthy(row: tuple[str, Value, dict[str, Any], str]) -> None:
    _, value, how, reason = row
    judge = judged(value, **how)
    assert judge.verdict != "trustworthy"
    assert judge.exit_code() in (4, 5)
    assert reason in "; ".join(judge.reasons)
    assert judge.next_step


def test_copies_that_equal_their_original() -> None:
    table = rated(right, variants=("original",))
    equal = {variant: [f"r{i}" for i in range(40)] for variant in VARIANTS[1:]}
    judge = verify_table(table, CRITERIA, OPTIONS, copies=CopyFacts(unchanged=equal)).judge
    assert judge.verdict == "not enough data"
    assert "copies equal their original" in "; ".join(judge.reasons)


def fixed_for_the_second(case: int, place: int, variant: str) -> float:
    return right(case, place, variant) if case // 2 % 2 == 0 else 0.75


def test_a_judge_with_a_fixed_opinion_on_a_system() -> None:
    judge = judged(fixed_for_the_second, cases=60, systems=2)
    evidence = judge.of("systems are judged alike")
    assert evidence is not None
    assert evidence.standing == "refuted"
    change = {f.system: f for f in evidence.systems if f.figure == "change"}
    noticed, unnoticed = change["s0"].low, change["s1"].high
    assert noticed is not None
    assert unnoticed is not None
    assert noticed > OPTIONS.margin > unnoticed
    assert judge.verdict == "not trustworthy"


@pytest.mark.parametrize(
    ("how", "reason"),
    [({"systems": 1}, "one system"), ({"cases": 20, "systems": 4}, "12 copies")],
)
def test_systems_that_cannot_be_compared(how: dict[str, Any], reason: str) -> None:
    judge = judged(right, **how)
    evidence = judge.of("systems are judged alike")
    assert evidence is not None
    assert (evidence.standing, reason in evidence.reason) == ("not checked", True)


def test_criteria_that_cannot_be_told_apart_are_one_score() -> None:
    judge = judged(lambda c, p, v: right(c, 0, v), noise=0)
    assert judge.verdict == "trustworthy as one score"
    assert judge.one_score == NAMES


def half_good(case: int, place: int, variant: str) -> float:
    return 0.5 + 0.25 * (case < 12) - 0.25 * variant.startswith(("drop", "swap"))


@pytest.mark.parametrize(
    ("success", "area", "step"),
    [
        (lambda case: case < 8 or 12 <= case < 16, 2 / 3, "more runs would decide"),
        (lambda case: case % 2 == 0, 0.5, "the criteria say nothing of success"),
    ],
)
def test_more_runs_are_proposed_only_where_the_estimate_passes(
    success: Callable[[int], bool], area: float, step: str
) -> None:
    judge = judged(half_good, cases=24, success=success, noise=0)
    evidence = judge.of("success is rated above failure")
    assert evidence is not None
    assert (evidence.standing, evidence.estimate) == ("not shown", pytest.approx(area))
    assert step in evidence.next_step


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WORST)
def test_the_worst_kinds(name: str, seed: int) -> None:
    kind: Kind = truth(next(k for k in KINDS if k.name == name), "math")
    result: VerifiedSet = verdict_of(kind, "math", Design(60), seed)
    assert classify(result) in kind.allowed
    if kind.excepted is not None:
        assert result.judge.refuted == ("accuracy",)
