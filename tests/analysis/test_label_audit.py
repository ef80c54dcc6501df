"""The label audit: planted wrong labels are found, brute force agrees, and the recorded runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.analysis.label_audit import audit, with_and_without
from agenteval.errors import InputError
from agenteval.stats.scores import ScoreTable, score_table

RUNS = Path(
    os.environ.get(
        "AGENTEVAL_REFERENCE_QUANTIFIER_RUNS",
        Path(__file__).parents[3] / "shared/reference/utility/quantifier_runs",
    )
)


def ratings(run: str, success: bool | None, **values: list[float | None]) -> list[dict[str, Any]]:
    """Repeats of one run by criterion; None is a failure, -1 not applicable."""
    found = []
    for criterion, repeats in values.items():
        for repeat, value in enumerate(repeats):
            row = {"run": run, "criterion": criterion, "repeat": repeat, "success": success}
            if value is None:
                row["status"] = "unscored:parse"
            elif value < 0:
                row["status"] = "not_applicable"
            else:
                row["value"] = value
            found.append(row)
    return found


def clear() -> list[dict[str, Any]]:
    """Eight successes and eight failures, told apart by both criteria."""
    rows = []
    for i in range(8):
        rows += ratings(f"good-{i}", True, result=[1, 1, 1], steps=[1, 0.75, 1])
        rows += ratings(f"bad-{i}", False, result=[0, 0.25, 0], steps=[0.25, 0.25, 0])
    return rows


def test_wrong_labels_come_first_with_their_criteria() -> None:
    rows = clear()
    rows += ratings("really-good", False, result=[1, 1, 1], steps=[1, 1, 1])
    rows += ratings("half", False, result=[1, 1, 1], steps=[1, 0, 1])
    rows += ratings("really-bad", True, result=[0, 0, 0], steps=[0, 0, 0])
    found = audit(score_table(rows))
    assert [(s.run, s.against) for s in found] == [
        ("really-bad", ("result", "steps")),
        ("really-good", ("result", "steps")),
        ("half", ("result",)),
    ]
    # beyond all 8 other successes on both; the other two share the top among the failures
    assert found[0].outlying == 1.0
    assert found[1].outlying == pytest.approx((8.5 / 9 + 1) / 2)
    assert not found[1].success
    assert found[0].success


def test_no_audit_without_two_labels() -> None:
    with pytest.raises(InputError, match="success is unknown for every run"):
        audit(score_table(ratings("a", None, c=[1])))
    with pytest.raises(InputError, match="every labelled run is failed"):
        audit(score_table(ratings("a", False, c=[1]) + ratings("b", None, c=[1])))


def by_definition(table: ScoreTable, limit: float, fewest: int) -> dict[str, dict[str, Any]]:
    """Every witness from the words of the docstring, pair by pair."""
    found: dict[str, dict[str, Any]] = {}
    for criterion in table.present("criterion"):
        m = table.of(criterion=criterion).matrix()
        for i, run in enumerate(m.run):
            if m.success[i] < 0 or np.isnan(m.mean[i]):
                continue
            rest = [j for j in range(len(m.run)) if m.case[j] != m.case[i] and m.mean[j] >= 0]
            good = [m.mean[j] for j in rest if m.success[j] == 1]
            bad = [m.mean[j] for j in rest if m.success[j] == 0]
            if min(len(good), len(bad)) < fewest:
                continue
            auc = sum((g > b) + (g == b) / 2 for g in good for b in bad) / (len(good) * len(bad))
            if auc <= limit:
                continue
            said = m.values[i][~np.isnan(m.values[i])]
            if m.success[i] == 1:
                other, own, sign = bad, good, -1.0
            else:
                other, own, sign = good, bad, 1.0
            against = all(
                sign * v >= sign * np.median(other) and sign * v > sign * np.median(own)
                for v in said
            )
            beyond = np.mean([(sign * v < sign * m.mean[i]) + (v == m.mean[i]) / 2 for v in own])
            name = table.run.names[run]
            found.setdefault(name, {})[criterion] = (auc, against, beyond)
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_brute_force_says_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(rng.integers(4, 25)):
        success = [True, False, None][rng.choice(3, p=[0.45, 0.45, 0.1])]
        for criterion in ("a", "b"):
            level = rng.integers(0, 4 if success else 3, size=2) / 4
            rows += [
                {
                    "run": f"r{i}",
                    "case": f"c{i % 7}",
                    "criterion": criterion,
                    "repeat": k,
                    "success": success,
                    "value": float(v),
                }
                for k, v in enumerate(level)
            ]
    table = score_table(rows)
    if len(set(table.success.tolist()) - {-1}) < 2:
        return
    found = audit(table, min_group=1, outlying=0.0)
    expected = by_definition(table, 0.6, 1)
    assert {s.run for s in found} == set(expected)
    for suspect in found:
        for witness in suspect.witnesses:
            auc, against, beyond = expected[suspect.run][witness.criterion_id]
            assert witness.auc == pytest.approx(auc)
            assert witness.unanimous == against
            assert witness.outlying == pytest.approx(beyond)
    order = [(-len(s.against), -s.outlying) for s in found]
    assert order == sorted(order)


def test_auc_with_and_without() -> None:
    rows = clear() + ratings("really-good", False, result=[1, 1, 1])
    both = {w.criterion_id: w for w in with_and_without(score_table(rows), {"really-good"})}
    # 8 successes against 9 failures, 8 pairs tied
    assert both["result"].all_runs.mean == pytest.approx((64 + 4) / 72)
    assert both["result"].without.mean == 1.0
    assert both["steps"].all_runs == both["steps"].without


# ---- recorded GPT-4 ratings of 20 problems, 8 times; not part of the project ---------------------

LEVELS = {
    "Problem Interpretation": [
        "completely off",
        "slightly relevant",
        "relevant",
        "mostly accurate",
        "completely accurate",
    ],
    "Mathematical Methodology": [
        "inappropriate",
        "barely adequate",
        "adequate",
        "mostly effective",
        "completely effective",
    ],
    "Calculation Correctness": [
        "completely incorrect",
        "mostly incorrect",
        "neither",
        "mostly correct",
        "completely correct",
    ],
    "Explanation Clarity": [
        "not at all clear",
        "slightly clear",
        "moderately clear",
        "very clear",
        "completely clear",
    ],
    "Code Efficiency": [
        "not at all efficient",
        "slightly efficient",
        "moderately efficient",
        "very efficient",
        "extremely efficient",
    ],
    "Code Correctness": [
        "completely incorrect",
        "mostly incorrect",
        "partly correct",
        "mostly correct",
        "completely correct",
    ],
}


@pytest.mark.skipif(not RUNS.is_dir(), reason="the recorded replies are not here")
def test_the_recorded_runs_put_9_and_18_on_top() -> None:
    lines = (RUNS / "prealgebra_8runs.jsonl").read_text(encoding="utf-8").splitlines()
    replies = [json.loads(line) for line in lines]
    judges = sorted({r["run"] for r in replies})
    rows = []
    for reply in replies:
        for criterion, levels in LEVELS.items():
            label = reply["values"].get(criterion)
            row = {
                "run": reply["problem_file"].removesuffix(".json"),
                "criterion": criterion,
                "repeat": judges.index(reply["run"]),
                "success": reply["is_correct"],
            }
            if label in levels:
                row["value"] = levels.index(label) / 4
            else:
                na = label in ("not applicable", "N/A")
                row["status"] = "not_applicable" if na else "unscored:off_scale"
            rows.append(row)
    found = audit(score_table(rows))
    three = ("Mathematical Methodology", "Calculation Correctness", "Code Correctness")
    assert {s.run: s.against for s in found if s.against} == {"9": three, "18": three}
    assert [s.run for s in found[:2]] in (["9", "18"], ["18", "9"])
    # 7 comes next: nearly always below full marks although labelled a success
    assert (found[2].run, found[2].success, found[2].outlying) == ("7", True, 1.0)
    assert all(w.criterion_id != "Problem Interpretation" for s in found for w in s.witnesses)
