"""Criteria files: our form, AutoGen's list, a mapping; what is refused and what is noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria, save_criteria
from agenteval.records import CriteriaSet, Criterion


def write(folder: Path, value: Any) -> Path:
    path = folder / "c.json"
    path.write_text(json.dumps(value))
    return path


def test_autogens_list_is_read(tmp_path: Path) -> None:
    levels = ["not clear", "fairly clear", "very clear"]
    path = write(tmp_path, [{"name": "Clarity", "description": "d", "accepted_values": levels}])
    (criterion,) = load_criteria(path).criteria.criteria
    assert criterion.accepted_values == ("not clear", "fairly clear", "very clear")


def test_a_best_first_list_is_turned_round_and_noted(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": "Clarity", "accepted_values": ["excellent", "good", "poor"]}])
    loaded = load_criteria(path)
    assert loaded.criteria.criteria[0].accepted_values == ("poor", "good", "excellent")
    assert "best first" in loaded.notes[0]


def test_not_applicable_among_the_levels_is_no_level(tmp_path: Path) -> None:
    levels = ["not applicable", "incorrect", "correct"]
    path = write(tmp_path, [{"name": "Code", "accepted_values": levels}])
    (criterion,) = load_criteria(path).criteria.criteria
    assert (criterion.accepted_values, criterion.allow_na) == (("incorrect", "correct"), True)


def test_a_stated_order_is_believed(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": "Hue", "accepted_values": ["blue", "red"],
                             "order": "worst_to_best"}])  # fmt: skip
    assert load_criteria(path).criteria.criteria[0].accepted_values == ("blue", "red")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"name": "Hue", "accepted_values": ["blue", "red", "green"]}], "unclear whether"),
        ({"schema": 99, "criteria": []}, "schema 99"),
        ({"criteria": []}, "no criterion"),
        ([{"name": "X", "accepted_values": ["bad", "good"], "colour": 1}], "colour"),
        ([{"name": "X", "accepted_values": ["bad", "good"]}] * 2, "two criteria have the id 'x'"),
    ],
)
def test_what_is_refused(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_criteria(write(tmp_path, value))


def test_saved_and_read_back(tmp_path: Path) -> None:
    criteria = CriteriaSet(
        task="t",
        criteria=(
            Criterion(name="A", accepted_values=("bad", "good"), expect={"pad": "none"}),
            Criterion(name="B", accepted_values=("x", "y"), scale="nominal", order="unclear"),
        ),
    )
    path = tmp_path / "criteria" / "t.json"
    save_criteria(path, criteria)
    assert load_criteria(path).criteria == criteria


def test_own_criteria_come_before_the_reviewed_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_criteria("math").name == "math.reviewed.json"
    write(tmp_path, [])
    (tmp_path / "criteria").mkdir()
    (tmp_path / "criteria" / "math.json").write_text("[]")
    assert find_criteria("math") == Path("criteria/math.json")
    with pytest.raises(InputError, match="no criteria for task 'nope'"):
        find_criteria("nope")
