"""Ratings made elsewhere: both forms, every field, and one clear line for what cannot be used."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers.scores import read_scores
from agenteval.records import Criterion

CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear"))
KIND = Criterion(name="Kind", accepted_values=("x", "y"), scale="nominal")


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def test_one_rater_of_several(tmp_path: Path) -> None:
    rows = [
        {"run": "a", "criterion": "clarity", "label": v, "rater": r}
        for r, v in (("A", "fair"), ("B", "clear"))
    ]
    path = jsonl(tmp_path / "s.jsonl", *rows)
    assert read_scores(path, [CLARITY], rater="B").value.tolist() == [1.0]
    with pytest.raises(InputError, match="rated twice"):
        read_scores(path, [CLARITY])
    with pytest.raises(InputError, match="no ratings of rater 'C'"):
        read_scores(path, [CLARITY], rater="C")


# ---- names of columns ----------------------------------------------------------------------------


def both(folder: Path, row: dict[str, Any]) -> list[Path]:
    """The row as CSV and as JSONL."""
    path = folder / "s.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        writer.writeheader()
        writer.writerow(row)
    return [path, jsonl(folder / "s.jsonl", row)]


@pytest.mark.parametrize(
    ("column", "meant"), [("Sucess", "success"), ("repetition", "repeat"), ("labell", "label")]
)
def test_a_column_that_looks_like_a_known_one_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, column: str, meant: str
) -> None:
    for path in both(tmp_path, {"run": "a", "criterion": "x", "value": 1, column: "0"}):
        caplog.clear()
        read_scores(path)
        read_scores(path)
        (told,) = caplog.messages
        assert told.endswith(f": column {column!r} is not read; did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("row", "value", "told"),
    [
        ({"label": "clear", "value": 0.0}, 1.0, "'clear' has 1 on clarity, not 0"),
        ({"label": "fair", "value": 0.7}, 0.5, "'fair' has 0.5 on clarity, not 0.7"),
        ({"label": "fair", "value": 0.504}, 0.504, None),  # rounded by whoever wrote it
        ({"label": "fair", "value": 0.506}, 0.5, "'fair' has 0.5 on clarity"),
        ({"criterion": "kind", "label": "y", "value": 1.0}, None, "'y' has no value on kind"),
        ({"criterion": "unknown", "label": "clear", "value": 0.0}, 0.0, None),
        ({"label": "another's", "value": 0.3}, 0.3, None),
        # an expected value is not that of the likeliest label
        (
            {"label": "clear", "value": 0.75, "probabilities": {"clear": 0.5, "fair": 0.5}},
            0.75,
            None,
        ),
        (
            {"label": "clear", "value": 0.25, "probabilities": '{"clear": 0.5, "fair": 0.5}'},
            0.75,
            "'clear' has 0.75",
        ),
        ({"label": "clear", "value": 0.9, "evidence": {"statistic": "x"}}, 0.9, None),
        ({"label": "unclear", "value": 0.0, "status": "degenerate"}, 0.0, None),
        ({"label": "clear", "value": 0.0, "status": "degenerate"}, 0.0, None),
    ],
)
def test_a_value_that_contradicts_its_label_gives_way_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, row: Any, value: Any, told: str | None
) -> None:
    sound = {"run": "b", "criterion": "clarity", "label": "clear", "value": 1.0}
    path = jsonl(tmp_path / "s.jsonl", {"run": "a", "criterion": "clarity", **row}, sound)
    known = [CLARITY, KIND] if row.get("criterion") != "unknown" else []
    read = read_scores(path, known).value[0]
    assert math.isnan(read) if value is None else read == pytest.approx(value)
    assert [told in r.message for r in caplog.records] == ([True] if told else [])
    if told:
        assert "1 of 2 ratings have a value that contradicts their label" in caplog.text
