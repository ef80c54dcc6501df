"""Corrected means, calibration and the alternative annotator test from tables of ratings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from agenteval.analysis.label_tables import ALL
from agenteval.analysis.labelled_means import calibrations, labelled_means
from agenteval.analysis.panel import replacing
from agenteval.analysis.sampling import draw
from agenteval.records import Criterion
from agenteval.stats import ppi_mean
from agenteval.stats.scores import ScoreTable, score_table

GRADE = Criterion(name="Grade", accepted_values=("bad", "fair", "good"))
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, 90)
JUDGED = np.clip(TRUTH + (RNG.random(90) < 0.3), 0, 2)


def table(levels: np.ndarray, runs: list[int] | None = None, repeats: int = 1) -> ScoreTable:
    return score_table(
        {
            "run": f"r{i}",
            "case": f"case {i // 3}",
            "system": f"s{i % 3}",
            "criterion": "grade",
            "label": GRADE.accepted_values[levels[i]],
            "value": levels[i] / 2,
            "repeat": k,
        }
        for i in (range(90) if runs is None else runs)
        for k in range(repeats)
    )


def test_labels_that_were_drawn_correct_the_mean() -> None:
    judge = table(JUDGED, repeats=2)
    sample = draw(judge, 60, by="value", seed=1)
    drawn = [int(run[1:]) for run in sample.weights]
    (got,) = labelled_means(judge, table(TRUTH, drawn[:58]), [GRADE], sample)
    runs = list(dict.fromkeys(judge.run.names))
    expected = ppi_mean(
        [JUDGED[int(r[1:])] / 2 for r in runs],
        [TRUTH[int(r[1:])] / 2 if int(r[1:]) in drawn[:58] else np.nan for r in runs],
        [f"case {int(r[1:]) // 3}" for r in runs],
        weights=[sample.weights.get(r, 1.0) for r in runs],
    )
    assert got.mean == expected
    assert (got.n, got.labelled, got.unlabelled, got.unrated) == (90, 58, 2, 0)


def test_labels_that_somebody_picked_correct_nothing() -> None:
    judge, picked = table(JUDGED), table(TRUTH, list(range(40)))
    (got,) = labelled_means(judge, picked, [GRADE])
    assert got.mean is None
    assert got.reason == "40 of 90 runs, not drawn by `agree sample`"
    (declared,) = labelled_means(judge, picked, [GRADE], random=True)
    assert declared.mean is not None
    (every,) = labelled_means(judge, table(TRUTH), [GRADE])
    assert every.mean is not None
    assert every.mean.power == 0
    assert every.mean.corrected.mean == pytest.approx(TRUTH.mean() / 2)


def test_labels_of_runs_that_are_not_in_the_sample_do_not_count() -> None:
    judge = table(JUDGED)
    sample = draw(judge, 30, seed=2)
    (got,) = labelled_means(judge, table(TRUTH), [GRADE], sample)
    assert got.labelled == 30


def test_calibration_by_hand() -> None:
    rows = [("a", 1.0, 1.0), ("b", 1.0, 0.5), ("c", 0.0, 0.0), ("d", 0.0, 0.5)]
    judge, label = (
        score_table(
            {"run": row[0], "criterion": "grade", "value": row[at], "system": "xy"[i % 2]}
            for i, row in enumerate(rows)
        )
        for at in (1, 2)
    )
    (got,) = calibrations(judge, label, [GRADE])
    assert [(one.judge, one.label.mean) for one in got.bins] == [(0.0, 0.25), (1.0, 0.75)]
    assert 0.15 < got.error.mean < 0.25  # .25 less what the noise of four runs adds
    assert got.squared.mean == pytest.approx(0.125)
    assert {name: bias.mean for name, bias in got.systems} == {"x": 0.0, "y": 0.0}


def test_probabilities_by_hand() -> None:
    def own(*masses: float) -> str:
        return json.dumps(dict(zip(GRADE.accepted_values, masses, strict=True)))

    rows = [  # run, repeat, probabilities, label; d was asked otherwise
        ("a", 0, own(0.8, 0.2, 0.0), 0),
        ("b", 0, own(0.0, 0.15, 0.85), 1),
        ("c", 0, own(0.0, 1.0, 0.0), 1),
        ("c", 1, own(0.0, 0.2, 0.8), 1),
        ("d", 0, None, 2),
    ]
    judge = score_table(
        {"run": run, "repeat": repeat, "criterion": "grade", "value": 0.5, "probabilities": masses}
        for run, repeat, masses, _ in rows
    )
    labels = {run: GRADE.accepted_values[label] for run, _, _, label in rows}
    people = score_table(
        {"run": run, "criterion": "grade", "label": label, "value": GRADE.value_of(label)}
        for run, label in labels.items()
    )
    (got,) = calibrations(judge, people, [GRADE])
    brier = [0.04 + 0.04, 0.85**2 * 2, 0.4**2 + 0.4**2]
    assert got.brier is not None
    assert got.brier.mean == pytest.approx(sum(brier) / 3)
    # a says .8 and is right, b says .85 and is wrong, c says .6 (mean of its repeats) and is right
    assert [(one.judge, one.label.mean) for one in got.level_bins] == [
        (pytest.approx(0.6), 1.0),
        (pytest.approx(0.825), 0.5),
    ]
    assert got.level_error is not None
    assert got.level_error.n == 3


def test_three_people_say_whether_a_judge_may_stand_in() -> None:
    rng = np.random.default_rng(5)
    people = {
        name: table(np.where(rng.random(90) < 0.2, rng.integers(0, 3, 90), TRUTH)) for name in "ABC"
    }
    good = replacing(table(TRUTH), people, [GRADE])
    assert good["grade"].passes is True
    bad = replacing(table(rng.integers(0, 3, 90)), people, [GRADE])
    assert bad["grade"].passes is False
    two = replacing(table(TRUTH), {"A": people["A"], "B": people["B"]}, [GRADE])
    assert (two["grade"].passes, two["grade"].reason) == (
        None,
        "2 annotators: the test needs at least three",
    )
    assert ALL not in good
