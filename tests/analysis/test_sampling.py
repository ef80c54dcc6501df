"""What people should label: chances, strata, and samples that were edited."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agenteval.analysis.sampling import Sample, draw, read_sample
from agenteval.errors import InputError
from agenteval.stats.scores import ScoreTable, score_table


def ratings(values: list[float], second: list[float] | None = None) -> ScoreTable:
    rows = [{"run": f"r{i:03}", "criterion": "c", "value": v} for i, v in enumerate(values)]
    for i, v in enumerate(second or ()):
        rows.append({"run": f"r{i:03}", "criterion": "c", "value": v, "repeat": 1})
    return score_table(rows)


VALUES = [0.1] * 10 + [0.6] * 30 + [0.9] * 60


def test_random_gives_every_run_the_same_chance() -> None:
    table = ratings(VALUES)
    sample = draw(table, 20, seed=3)
    assert len(sample.weights) == 20
    assert set(sample.weights.values()) == {5.0}
    assert draw(table, 20, seed=3) == sample != draw(table, 20, seed=4)
    counts = dict.fromkeys(table.run.names, 0)
    for seed in range(400):
        for run in draw(table, 20, seed=seed).weights:
            counts[run] += 1
    assert np.mean(list(counts.values())) == 80
    assert min(counts.values()) > 45
    assert len(draw(table, 500).weights) == 100


def test_bands_are_drawn_alike_and_weights_stand_for_all_runs() -> None:
    sample = draw(ratings(VALUES), 45, by="value", seed=1)
    by_band: dict[float, list[float]] = {}
    for run, weight in sample.weights.items():
        by_band.setdefault(VALUES[int(run[1:])], []).append(weight)
    # ten of the band of ten, and what it lacks goes to the others
    assert {v: len(w) for v, w in by_band.items()} == {0.1: 10, 0.6: 17, 0.9: 18}
    assert sum(sample.weights.values()) == pytest.approx(100)
    mean = sum(VALUES[int(run[1:])] * w for run, w in sample.weights.items()) / 100
    assert mean == pytest.approx(np.mean(VALUES))


def test_by_disagreement_of_repeats() -> None:
    table = ratings([0.5] * 40, [0.5] * 36 + [1.0] * 4)
    sample = draw(table, 8, by="disagreement")
    assert {f"r{i:03}" for i in range(36, 40)} <= set(sample.weights)
    assert sorted(set(sample.weights.values())) == [1.0, 9.0]
    with pytest.raises(InputError, match="judged once"):
        draw(ratings([0.5, 0.6]), 1, by="disagreement")
    with pytest.raises(InputError, match="'luck' is not one of: random, value, disagreement"):
        draw(table, 8, by="luck")  # type: ignore[arg-type]


def written(path: Path, sample: Sample, *, weight: float | None = None, drop: int = 0) -> Path:
    rows = [
        {"run": run, "criterion": "c", "label": None, "weight": w, "sample": sample.name}
        for run, w in sample.weights.items()
    ]
    if weight is not None:
        rows[0]["weight"] = weight
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[drop:]))
    return path


def test_a_file_says_how_it_was_drawn(tmp_path: Path) -> None:
    sample = draw(ratings(VALUES), 30, by="value", seed=9)
    assert read_sample(written(tmp_path / "s.jsonl", sample)) == sample
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"run": "a", "criterion": "c", "value": 1}\n')
    assert read_sample(plain) is None


@pytest.mark.parametrize(("weight", "drop"), [(7.0, 0), (None, 1)])
def test_an_edited_sample_is_refused(tmp_path: Path, weight: float | None, drop: int) -> None:
    path = written(tmp_path / "s.jsonl", draw(ratings(VALUES), 30), weight=weight, drop=drop)
    with pytest.raises(InputError, match="the sample was edited, or rows are missing"):
        read_sample(path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"sample": "x", "weight": 1}], "'x' is not a sample"),
        ([{"sample": "x", "weight": 0}], "s.jsonl:1: weight 0 is not a number of at least 1"),
        ([{"sample": "x", "weight": 1}, {"sample": "y", "weight": 1}], "several samples: x, y"),
        ([{"sample": "x", "weight": 1}, {}], "s.jsonl:2: this row does not name a sample"),
    ],
)
def test_rows_that_fit_no_sample(tmp_path: Path, rows: list[dict[str, object]], said: str) -> None:
    path = tmp_path / "s.jsonl"
    whole = [{"run": f"r{i}", "criterion": "c", "value": 1, **row} for i, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in whole))
    with pytest.raises(InputError) as error:
        read_sample(path)
    assert said in str(error.value)
