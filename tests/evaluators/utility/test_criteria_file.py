"""Criteria files: our form, AutoGen's list, a mapping; what is refused and what is noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.utility.bank import load_bank
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


PACKAGED = Path(__file__).parents[3] / "criteria"
REVERSED = [
    ["10", "9", "8", "1"],
    ["excellent", "good", "poor"],
    ["yes", "no"],
    ["fully correct", "partially correct", "incorrect"],
]


@pytest.mark.parametrize("levels", REVERSED)
@pytest.mark.parametrize("scale", ["ordinal", "binary"])
def test_a_stated_order_that_is_surely_wrong_is_refused_with_the_way_out(
    tmp_path: Path, levels: list[str], scale: str
) -> None:
    entry = {"name": "Grade", "accepted_values": levels, "scale": scale, "order": "worst_to_best"}
    path = write(tmp_path, {"criteria": [entry]})
    told = r"from best to worst.*worst first.*order_confirmed"
    with pytest.raises(InputError, match=told) as met:
        load_criteria(path)
    assert f"{path}: criteria[0].accepted_values" in str(met.value)
    turned = {**entry, "accepted_values": levels[::-1]}
    assert load_criteria(write(tmp_path, {"criteria": [turned]})).notes == ()
    kept = load_criteria(write(tmp_path, {"criteria": [{**entry, "order_confirmed": True}]}))
    assert kept.criteria.criteria[0].accepted_values == tuple(levels)
    save_criteria(path, kept.criteria)
    assert load_criteria(path).criteria == kept.criteria


def test_the_parts_of_a_criterion_and_a_binary_scale_are_checked_as_well(tmp_path: Path) -> None:
    part = {"name": "Right", "accepted_values": ["yes", "no"], "scale": "binary"}
    for entry, key in (
        ({"name": "Whole", "sub_criteria": [part]}, "[0].sub_criteria[0].accepted_values"),
        (part, "[0].accepted_values"),
    ):
        with pytest.raises(InputError, match="from best to worst") as met:
            load_criteria(write(tmp_path, [entry]))
        assert key in str(met.value)


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("Hue", ["blue", "red"]),
        ("Settled", ["unsettled", "settled in part", "settled"]),
        ("Number of errors", ["10", "5", "0"]),
        ("Level", ["low", "high"]),
        ("Delivery", ["many errors", "some errors", "no errors"]),
    ],
)
def test_no_alarm_where_the_words_are_unknown_or_right(
    tmp_path: Path, name: str, levels: list[str]
) -> None:
    entry = {"name": name, "accepted_values": levels, "order": "worst_to_best"}
    loaded = load_criteria(write(tmp_path, [entry]))
    assert (loaded.notes, loaded.criteria.criteria[0].accepted_values) == ((), tuple(levels))


def test_falling_numbers_of_something_bad_stay_without_a_stated_order(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": "Number of errors", "accepted_values": ["10", "5", "0"]}])
    loaded = load_criteria(path)
    assert (loaded.notes, loaded.criteria.criteria[0].accepted_values) == ((), ("10", "5", "0"))


@pytest.mark.parametrize("order", [{}, {"order": "worst_to_best"}])
def test_what_only_the_name_says_is_noted(tmp_path: Path, order: dict[str, str]) -> None:
    entry = {"name": "Timeliness", "accepted_values": ["1", "2", "3"], **order}
    loaded = load_criteria(write(tmp_path, [entry]))
    assert loaded.criteria.criteria[0].accepted_values == ("1", "2", "3")
    (line,) = loaded.notes
    assert "'1' counts as the worst" in line


@pytest.mark.parametrize("path", sorted(PACKAGED.glob("*.json")))
def test_the_packaged_criteria_raise_nothing(path: Path) -> None:
    assert load_criteria(path, task=path.name.split(".")[0]).notes == ()


def test_the_bank_would_raise_nothing_either(tmp_path: Path) -> None:
    for concept in load_bank():
        criterion = concept.criterion(0)
        save_criteria(tmp_path / "c.json", CriteriaSet(criteria=(criterion,)))
        assert not load_criteria(tmp_path / "c.json").notes


def test_criteria_of_another_task_are_noted(tmp_path: Path) -> None:
    criteria = CriteriaSet(task="support", criteria=(
        Criterion(name="A", accepted_values=("bad", "good")),
    ))  # fmt: skip
    save_criteria(tmp_path / "c.json", criteria)
    (line,) = load_criteria(tmp_path / "c.json", task="math").notes
    assert line == "they were made for task 'support' and judge task 'math'"
    assert load_criteria(tmp_path / "c.json", task="support").notes == ()


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
