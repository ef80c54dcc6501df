"""The table against values worked out by hand, by brute force, and against recorded replies."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from agenteval.analysis.means import ALL, Rating, ScoreRow, load_ratings, summarize
from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.records import (
    CallRecord,
    CellKey,
    Criterion,
    Failure,
    Result,
    Run,
    Score,
    Source,
    View,
)
from agenteval.store import Store
from tests.store.making import ScriptedJudge, criteria, items, scores

CLARITY = Criterion(name="clarity", accepted_values=("bad", "ok", "good"))


def rating(case: str, value: float | None, **more: object) -> Rating:
    base: dict[str, object] = {
        "run_id": f"{case}-{value}",
        "system": "a",
        "case": case,
        "success": True,
        "criterion_id": "clarity",
        "repeat": 0,
        "status": "scored",
        "value": value,
    }
    return Rating(**{**base, **more})  # type: ignore[arg-type]


def row_of(ratings: list[Rating], criterion: Criterion = CLARITY, system: str = "a") -> ScoreRow:
    rows = summarize(ratings, [criterion])
    return next(r for r in rows if r.system == system)


# ---- means ---------------------------------------------------------------------------------------


def test_a_mean_with_its_clustered_interval_by_hand() -> None:
    # Cases p: 0, 1; q: 1, 1; r: 0.5. Mean 3.5 / 5 = 0.7.
    # Residual sums: p -0.4, q 0.6, r -0.2; squares 0.16 + 0.36 + 0.04 = 0.56.
    # se^2 = 3/2 * 0.56 / 25 = 0.0336; t(2 df, .975) = 4.302653.
    ratings = [
        rating("p", 0.0),
        rating("p", 1.0),
        rating("q", 1.0),
        rating("q", 1.0, repeat=1),
        rating("r", 0.5),
    ]
    overall = row_of(ratings).overall
    assert overall.mean == pytest.approx(0.7)
    assert overall.se == pytest.approx(math.sqrt(0.0336))
    assert (overall.n, overall.n_clusters) == (5, 3)
    assert overall.low == pytest.approx(max(0, 0.7 - 4.302653 * math.sqrt(0.0336)), abs=1e-6)
    assert overall.high == 1.0  # 1.49 is not a score
    assert "clipped" in overall.method


def test_failures_and_answers_without_a_value_are_counted_and_never_averaged() -> None:
    ratings = [
        rating("p", 1.0, label="good"),
        rating("q", 0.5, label="ok"),
        rating("q", None, status="unscored:parse"),
        rating("r", None, status="unscored:parse"),
        rating("r", None, status="error:timeout"),
        rating("s", None, status="not_applicable", label="not applicable"),
        rating("t", 0.0, status="degenerate", label="bad", success=False),
    ]
    row = row_of(ratings)
    assert row.failures == Counter({"unscored:parse": 2, "error:timeout": 1})
    assert (row.not_applicable, row.degenerate) == (1, 1)
    assert (row.overall.mean, row.overall.n) == (0.5, 3)
    assert (row.without_degenerate.mean, row.without_degenerate.n) == (0.75, 2)
    assert row.labels == Counter({"good": 1, "ok": 1, "bad": 1, "not applicable": 1})
    assert (row.failed.mean, row.failed.n) == (None, 0)  # its only value is given by rule


def test_what_is_missing_bounds_the_mean() -> None:
    ratings = [
        rating("p", 1.0),
        rating("q", 0.5),
        rating("r", None, status="unscored:parse"),
        rating("s", None, status="error:timeout"),
        rating("t", None, status="not_applicable"),
    ]
    assert row_of(ratings).bounds == (
        1.5 / 4,
        3.5 / 4,
    )  # an answer that has no value is not missing
    assert row_of(ratings[:2]).bounds is None
    assert row_of(ratings[2:]).bounds is None  # no mean


def test_empty_replies_alone_give_no_mean() -> None:
    empty = [rating(c, 0.0, status="degenerate", label="bad") for c in "pqr"]
    dead = [rating("s", None, status="error:infrastructure", success=None)]
    row = row_of(empty + dead)
    for interval in (row.overall, row.success, row.without_degenerate):
        assert (interval.mean, interval.low, interval.n) == (None, None, 0)
    assert (row.degenerate, row.failures.total(), row.bounds) == (3, 1, None)
    # one reply that was rated, and they count at the worst level again
    rated = row_of([*empty, rating("s", 1.0)])
    assert (rated.overall.mean, rated.overall.n, rated.without_degenerate.mean) == (0.25, 4, 1.0)
    # of two systems, only the one without any rating has no mean
    two = summarize([*empty, rating("s", 1.0, system="b")], [CLARITY])
    assert [(r.system, r.overall.mean) for r in two] == [("a", None), ("b", 1.0), (ALL, 0.25)]


def test_rows_per_system_then_all_and_order_does_not_matter() -> None:
    ratings = [
        rating("p", 1.0, system="b"),
        rating("q", 0.5, system="a"),
        rating("p", 0.0, system="a", criterion_id="other"),
    ]
    other = CLARITY.model_copy(update={"id": "other", "name": "other"})
    rows = summarize(ratings, [CLARITY, other])
    assert [(r.criterion_id, r.system, r.overall.n) for r in rows] == [
        ("clarity", "a", 1),
        ("clarity", "b", 1),
        ("clarity", ALL, 2),
        ("other", "a", 1),
        ("other", "b", 0),
        ("other", ALL, 1),
    ]
    assert summarize(ratings[::-1], [CLARITY, other]) == rows
    assert [r.system for r in summarize(ratings[1:], [CLARITY])] == ["a"]
    assert summarize([], [CLARITY]) == []


# ---- from the store ------------------------------------------------------------------------------


def put(
    store: Store, judge: ScriptedJudge, unit: JudgeUnit, outcome: Outcome | None = None
) -> None:
    done = outcome or scores(unit, judge.source)
    store.save_soon(done.results, done.call).result(5)


def test_ratings_know_their_run_and_can_be_restricted(tmp_path: Path) -> None:
    judge, runs, two = ScriptedJudge(), items(6), criteria(2)
    with Store(tmp_path / "s.db") as store:
        store.register(runs, two, judge.source)
        for repeat in range(2):
            for run, view in runs:
                put(store, judge, JudgeUnit(run, view, tuple(two), repeat))
        put(store, judge, JudgeUnit(*runs[0], tuple(two), 0, "drop:1"))
        key = judge.source.sha256
        ratings = load_ratings(store, key)
        assert len(ratings) == 24  # the perturbed variant is not among them
        by_run = {r.run_id: r for r in ratings}
        for run, _ in runs:
            assert by_run[run.id].system == run.system
            assert by_run[run.id].success is run.success
        assert len({r.case for r in ratings}) == 2  # run-0..2 share a problem, and run-3..5
        assert len(load_ratings(store, key, repeats=1)) == 12
        some = load_ratings(
            store, key, run_keys=[runs[1][1].sha256], criterion_keys=[two[0].sha256]
        )
        assert [(r.run_id, r.criterion_id, r.repeat) for r in some] == [
            ("run-1", "quality-0", 0),
            ("run-1", "quality-0", 1),
        ]
        assert load_ratings(store, key, run_keys=[]) == []
        assert load_ratings(store, "0" * 64) == []


def test_versions_of_a_criterion_and_of_a_run_never_mix(tmp_path: Path) -> None:
    judge = ScriptedJudge()
    key = judge.source.sha256
    old, new = CLARITY, CLARITY.model_copy(update={"accepted_values": ("bad", "good")})
    run, view = items(1)[0]
    shown = View(run_id=run.id, problem=view.problem, trajectory=view.trajectory, reference="4")

    def judged(criterion: Criterion, seen: View, value: float) -> None:
        store.register([(run, seen)], [criterion], judge.source)
        unit = JudgeUnit(run, seen, (criterion,))
        score = Score(
            key=cell_key(unit, criterion, key), criterion_id="clarity", label="x", value=value
        )
        put(store, judge, unit, Outcome((score,), CallRecord()))

    with Store(tmp_path / "s.db") as store:
        judged(old, view, 0.5)
        judged(new, view, 1.0)
        assert [r.value for r in load_ratings(store, key)] == [1.0]
        assert [r.value for r in load_ratings(store, key, criterion_keys=[old.sha256])] == [0.5]
        judged(new, shown, 0.0)
        assert [r.value for r in load_ratings(store, key)] == [0.0]
        # Used again, the first versions are the ones in use.
        store.register([(run, view)], [old], judge.source)
        assert [r.value for r in load_ratings(store, key)] == [0.5]
        # A version that this source has not judged hides nothing.
        third = CLARITY.model_copy(update={"accepted_values": ("no", "yes")})
        store.register([], [third], ScriptedJudge(seed=3).source)
        assert [r.value for r in load_ratings(store, key)] == [0.5]


# ---- recorded replies ----------------------------------------------------------------------------

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "utility"
CODE = ("Code Efficiency", "Code Correctness")
# Success and failed: mean of the raw levels 0 to 4, and the number of ratings (8 runs pooled).
POOLED = {
    "Problem Interpretation": ("3.962", 104, "3.964", 56),
    "Mathematical Methodology": ("3.865", 104, "3.214", 56),
    "Calculation Correctness": ("3.798", 104, "2.804", 56),
    "Explanation Clarity": ("3.165", 103, "2.804", 56),
    "Code Efficiency": ("2.484", 91, "1.864", 44),
    "Code Correctness": ("3.868", 91, "2.778", 45),
}


def recorded_criteria() -> dict[str, Criterion]:
    listed = json.loads((REFERENCE / "samples" / "sample_math_criteria.json").read_text())
    return {  # the levels of this file run from worst to best
        c["name"]: Criterion(
            name=c["name"], accepted_values=c["accepted_values"], allow_na=c["name"] in CODE
        )
        for c in listed
    }


def recorded_result(key: CellKey, criterion: Criterion, label: str) -> Result:
    fields = {"key": key, "criterion_id": criterion.id}
    if label in ("not applicable", "N/A") and criterion.allow_na:
        return Score(**fields, status="not_applicable", label=label)
    if label not in criterion.accepted_values:
        return Failure(**fields, status="unscored:off_scale", message=label)
    return Score(**fields, label=label, value=criterion.value_of(label))


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the recorded replies are not here")
def test_recorded_replies_give_the_known_means(tmp_path: Path) -> None:
    lines = (REFERENCE / "quantifier_runs" / "prealgebra_8runs.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    dimensions = recorded_criteria()
    source = Source(evaluator="recorded", version=1, model="recorded")
    repeats = {run: i for i, run in enumerate(dict.fromkeys(r["run"] for r in rows))}
    views = {}
    for row in rows:
        name = row["problem_file"]
        run = Run(id=name, input=name, success=row["is_correct"])
        views[name] = (run, View(run_id=name, problem=name, trajectory=name))
    with Store(tmp_path / "s.db") as store:
        store.register(views.values(), dimensions.values(), source)
        for row in rows:
            results = [
                recorded_result(
                    CellKey(
                        run=views[row["problem_file"]][1].sha256,
                        criterion=c.sha256,
                        source=source.sha256,
                        repeat=repeats[row["run"]],
                    ),
                    c,
                    row["values"][name],
                )
                for name, c in dimensions.items()
            ]
            store.save_soon(results, CallRecord(raw=row["raw"]))
        store.register([], [], source)
        table = {
            r.criterion_id: r
            for r in summarize(load_ratings(store, source.sha256), list(dimensions.values()))
        }
    assert len(rows) == 160
    assert sum(r.overall.n for r in table.values()) == 910
    assert sum(r.not_applicable for r in table.values()) == 48
    assert sum((r.failures for r in table.values()), Counter()) == {"unscored:off_scale": 2}
    for name, (good, n_good, bad, n_bad) in POOLED.items():
        row = table[dimensions[name].id]
        assert row.success.mean is not None
        assert row.failed.mean is not None
        found = (
            f"{4 * row.success.mean:.3f}",
            row.success.n,
            f"{4 * row.failed.mean:.3f}",
            row.failed.n,
        )
        assert found == (good, n_good, bad, n_bad), name
        assert (row.success.n_clusters, row.failed.n_clusters) == (13, 7)
