"""The verdicts on eight recorded runs of a real judge over 20 labelled cases."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.models.reply import parse_reply
from agenteval.readers.scores import read_scores
from agenteval.records import Criterion
from agenteval.records.criteria import Direction
from agenteval.records.verification import Verification, VerifiedSet
from agenteval.stats.scores import CodedColumn, ScoreTable, score_table
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.verify import verify_table

FOLDER = Path(__file__).parents[4] / "shared" / "reference" / "utility"

recorded = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded data is not here")


@pytest.fixture(scope="module")
def verified() -> dict[str, Verification]:
    listed = json.loads((FOLDER / "samples" / "sample_math_criteria.json").read_text())
    criteria = {
        c["name"]: Criterion(
            name=c["name"],
            accepted_values=c["accepted_values"],
            allow_na=c["name"].startswith("Code"),
        )
        for c in listed
    }
    path = FOLDER / "quantifier_runs" / "prealgebra_8runs.jsonl"
    replies = [json.loads(line) for line in path.read_text().splitlines()]
    repeats = {run: i for i, run in enumerate(sorted({r["run"] for r in replies}))}
    labels = {r["problem_file"]: label_of(r["problem_file"]) for r in replies}
    rows: list[dict[str, Any]] = []
    for reply in replies:
        for name, criterion in criteria.items():
            label = reply["values"][name]
            row: dict[str, Any] = {"run": reply["problem_file"], "criterion": criterion.id}
            row |= {"repeat": repeats[reply["run"]], "success": labels[reply["problem_file"]]}
            if label in criterion.accepted_values:
                row["value"] = criterion.value_of(label)
            elif str(label).upper() in ("N/A", "NA", "NOT APPLICABLE"):
                row["status"] = "not_applicable"
            else:
                row["status"] = "unscored:off_scale"
            rows.append(row)
    result = verify_table(score_table(rows), list(criteria.values()))
    return {v.criterion_id: v for v in result.criteria}


def label_of(problem_file: str) -> bool:
    path = FOLDER / "conversations" / "agentchat_prealgebra" / problem_file
    return bool(json.loads(path.read_text())["is_correct"])


@recorded
def test_agreement_and_discrimination_are_the_published_ones(
    verified: dict[str, Verification],
) -> None:
    found = {
        name: tuple(
            round(check.estimate or 0, digits)
            for which, digits in (("alpha", 2), ("discrimination", 3))
            if (check := one.check(which)) is not None
        )
        for name, one in verified.items()
    }
    assert found == {
        "problem-interpretation": (0.21, 0.527),
        "mathematical-methodology": (0.47, 0.764),
        "calculation-correctness": (0.61, 0.747),
        "explanation-clarity": (0.22, 0.775),
        "code-efficiency": (0.18, 0.769),
        "code-correctness": (0.71, 0.758),
    }


@recorded
def test_twenty_cases_carry_no_confident_verdict(verified: dict[str, Verification]) -> None:
    assert verified["problem-interpretation"].verdict != "keep"
    assert "keep" not in {one.verdict for one in verified.values()}
    for one in verified.values():
        area = one.check("discrimination")
        assert area is not None
        assert area.low is not None
        assert area.high is not None
        assert area.high - area.low > 0.3  # 13 against 7: nothing is better than another
        assert one.reasons


# ---- the two published figures (one run of the judge each) ---------------------------------------


def means_of_run(run: str, *, strict: bool) -> dict[bool, list[str]]:
    """Mean level (from 0) of success and failed per criterion, read from the raw replies.

    `strict` reads as the published notebook did: a reply in a code fence is no reply.
    """
    listed = json.loads((FOLDER / "samples" / "sample_math_criteria.json").read_text())
    path = FOLDER / "quantifier_runs" / "prealgebra_8runs.jsonl"
    replies = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[bool, list[str]] = {}
    for success in (True, False):
        means = []
        for criterion in listed:
            ranks = [
                criterion["accepted_values"].index(label)
                for reply in replies
                if reply["run"] == run
                and label_of(reply["problem_file"]) is success
                and not (strict and "```" in reply["raw"])
                and (label := labels_in(reply["raw"]).get(criterion["name"]))
                in criterion["accepted_values"]
            ]
            means.append(f"{sum(ranks) / len(ranks):.3f}")
        found[success] = means
    return found


def labels_in(raw: str) -> dict[str, Any]:
    value = parse_reply(raw, lambda v: isinstance(v, dict)).value
    assert isinstance(value, dict)
    return value


def run_named(part: str) -> str:
    path = FOLDER / "quantifier_runs" / "prealgebra_8runs.jsonl"
    names = {json.loads(line)["run"] for line in path.read_text().splitlines()}
    (name,) = [n for n in names if part in n]
    return name


@recorded
def test_the_figure_of_january_2024_with_and_without_fenced_replies() -> None:
    run = run_named("009df140")
    read = means_of_run(run, strict=False)
    assert read[True] == ["3.923", "3.923", "3.923", "3.077", "2.167", "3.833"]
    assert read[False] == ["4.000", "3.714", "3.286", "2.429", "2.250", "3.400"]
    strict = means_of_run(run, strict=True)
    assert two_digits(strict[True]) == "3.92 4.00 3.92 3.08 2.18 3.82"
    assert two_digits(strict[False]) == "4.00 3.83 3.33 2.33 2.33 3.50"


def two_digits(means: list[str]) -> str:
    return " ".join(f"{float(m):.2f}" for m in means)


@recorded
def test_the_current_figure_with_the_groups_told_apart() -> None:
    read = means_of_run(run_named("1ffc5956"), strict=False)
    assert read[True] == ["4.000", "4.000", "3.923", "3.000", "2.182", "4.000"]
    assert read[False] == ["4.000", "3.143", "2.571", "2.857", "1.600", "2.800"]


# ---- a capable judge on 20 runs of tasks/math, one repeat ----------------------------------------

CAPABLE = Path(__file__).parents[2] / "golden" / "data" / "ratings_math_120.jsonl"
MATH = Path(__file__).parents[3] / "criteria" / "math.reviewed.json"


def capable(expect: dict[str, dict[str, Direction]], *, repeats: int = 1) -> VerifiedSet:
    """Its verdicts; `expect` changes single expectations of the reviewed criteria."""
    criteria = [
        c.model_copy(update={"expect": {**c.expect, **expect.get(c.id, {})}})
        for c in load_criteria(MATH).criteria.criteria
    ]
    once = read_scores(CAPABLE, criteria)
    rows = [replace(once, repeat=np.full(len(once), n, dtype=np.int32)) for n in range(repeats)]
    columns = {
        f.name: np.concatenate([getattr(one, f.name) for one in rows])
        if isinstance(getattr(once, f.name), np.ndarray)
        else CodedColumn(np.tile(getattr(once, f.name).codes, repeats), getattr(once, f.name).names)
        for f in fields(once)
    }
    return verify_table(ScoreTable(**columns), criteria)


def test_the_table_of_a_capable_judge() -> None:
    result = capable({})
    by_id = {v.criterion_id: v for v in result.criteria}
    area = {i: (c.estimate or 0) for i, v in by_id.items() if (c := v.check("discrimination"))}
    assert area["accuracy"] == 1
    assert area["justification"] == pytest.approx(0.95, abs=0.005)
    assert area["completeness"] == pytest.approx(0.85, abs=0.005)
    effect = {
        (i, e.operator): (round(e.estimate or 0, 2), e.outcome)
        for i, v in by_id.items()
        for e in v.effects
    }
    assert effect["accuracy", "swap_numbers"] == (0.38, "pass")
    assert effect["coherence", "shuffle_sentences"] == (0.70, "pass")
    assert effect["clarity", "shuffle_sentences"] == (0.40, "pass")
    assert effect["conciseness", "pad"] == (0.32, "pass")
    assert effect["completeness", "drop_sentences"] == (0.20, "pass")
    for criterion in by_id:
        size, outcome = effect[criterion, "whitespace"]
        assert abs(size) < 0.04
        assert outcome != "fail"
    assert result.judge.verdict == "not enough data"
    assert result.judge.reasons[0] == (
        "one repeat: nothing shows whether the judge agrees with itself"
    )


def test_a_mistaken_expectation_keeps_a_capable_judge() -> None:
    """Swapped numbers make a text less clear; the critic's example says that they should not."""
    right = capable({}, repeats=3)
    wrong = capable({"clarity": {"swap_numbers": "none"}}, repeats=3)
    assert right.judge.verdict == "trustworthy"
    assert wrong.judge.verdict == "trustworthy except clarity"
    assert wrong.judge.evidence == right.judge.evidence
    verdicts = {v.criterion_id: v for v in wrong.criteria}
    assert verdicts["clarity"].verdict == "repair"
    assert verdicts["clarity"].reasons == (
        "swap_numbers 25%: fell by 0.450 although none was expected",
    )
    assert {i: v.verdict for i, v in verdicts.items() if i != "clarity"} == {
        v.criterion_id: v.verdict for v in right.criteria if v.criterion_id != "clarity"
    }
