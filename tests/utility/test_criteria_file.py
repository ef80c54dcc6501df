"""Criteria files: our form, AutoGen's list, a mapping; what is refused and what is noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.records import CriteriaSet, Criterion
from agenteval.utility.bank import load_bank
from agenteval.utility.criteria_file import find_criteria, load_criteria, save_criteria


def write(folder: Path, value: Any) -> Path:
    path = folder / "c.json"
    path.write_text(json.dumps(value))
    return path


def test_not_applicable_among_the_levels_is_no_level(tmp_path: Path) -> None:
    levels = ["not applicable", "incorrect", "correct"]
    path = write(tmp_path, [{"name": "Code", "accepted_values": levels}])
    (criterion,) = load_criteria(path).criteria.criteria
    assert (criterion.accepted_values, criterion.allow_na) == (("incorrect", "correct"), True)
    levels = ["not clear", "fairly clear", "very clear"]  # AutoGen's own form
    path = write(tmp_path, [{"name": "Clarity", "description": "d", "accepted_values": levels}])
    (criterion,) = load_criteria(path).criteria.criteria
    assert criterion.accepted_values == tuple(levels)


PACKAGED = Path(__file__).parents[2] / "criteria"


@pytest.mark.parametrize(
    "levels",
    [["10", "9", "8", "1"], ["excellent", "good", "poor"], ["A", "B", "C"]],
)
def test_a_stated_order_that_its_levels_contradict_is_unclear_until_it_is_mended(
    tmp_path: Path, levels: list[str]
) -> None:
    entry = {"name": "Grade", "accepted_values": levels, "order": "worst_to_best"}
    loaded = load_criteria(write(tmp_path, {"criteria": [entry]}))
    (criterion,) = loaded.criteria.criteria
    assert (criterion.order, criterion.ordered) == ("unclear", False)
    assert criterion.accepted_values == tuple(levels)
    assert all(criterion.value_of(level) is None for level in levels)
    (note,) = loaded.notes
    assert note.startswith(
        "Grade: order unclear: stated is order worst_to_best, but its values run"
    )
    assert '"order_confirmed": true' in note
    save_criteria(tmp_path / "c.json", loaded.criteria)
    assert load_criteria(tmp_path / "c.json") == loaded
    # the two ways to mend it
    for change in (
        {"accepted_values": levels[::-1]},
        {"order_confirmed": True},
    ):
        mended = load_criteria(write(tmp_path, {"criteria": [{**entry, **change}]}))
        (criterion,) = mended.criteria.criteria
        assert (mended.notes, criterion.order) == ((), "worst_to_best")
        assert criterion.accepted_values == tuple(change.get("accepted_values", levels))
        assert criterion.value_of(criterion.accepted_values[-1]) == 1.0
        save_criteria(tmp_path / "c.json", mended.criteria)
        assert load_criteria(tmp_path / "c.json").criteria == mended.criteria


GOOD_FIRST, POOR_FIRST = ["good", "poor"], ["poor", "good"]
SECONDS = ["<5 seconds", ">5 seconds"]


@pytest.mark.parametrize(
    ("levels", "order", "values", "note"),
    [
        (GOOD_FIRST, "best_to_worst", POOR_FIRST, "reversed: stated best first"),
        (
            ["1 - good", "2 - poor"],
            None,
            ["2 - poor", "1 - good"],
            "reversed: its values ran best first",
        ),
        (["Yes", "No"], "worst_to_best", ["Yes", "No"], None),
        (SECONDS, "worst_to_best", SECONDS, None),
    ],
)
def test_the_values_stand_worst_first_whatever_the_file_states(
    tmp_path: Path, levels: list[str], order: str | None, values: list[str], note: str | None
) -> None:
    entry = {"name": "X", "accepted_values": levels} | ({"order": order} if order else {})
    for item in (entry, {"name": "W", "sub_criteria": [entry]}):
        loaded = load_criteria(write(tmp_path, {"criteria": [item]}))
        (criterion,) = loaded.criteria.criteria
        leaf = (*criterion.sub_criteria, criterion)[0]
        assert (list(leaf.accepted_values), leaf.order) == (values, "worst_to_best")
        assert [n.startswith(f"X: {note}") for n in loaded.notes] == [True] * bool(note)
        save_criteria(tmp_path / "c.json", loaded.criteria)
        saved = load_criteria(tmp_path / "c.json")
        assert (saved.criteria, saved.notes) == (loaded.criteria, ())
    confirmed = {**entry, "order": "best_to_worst", "order_confirmed": True}
    (criterion,) = load_criteria(write(tmp_path, [confirmed])).criteria.criteria
    assert criterion.accepted_values == tuple(levels[::-1])


def test_numeric_bounds_are_worst_and_best_as_they_stand(tmp_path: Path) -> None:
    entry = {"name": "Errors", "scale": "numeric", "numeric_range": [10, 0]}
    for order, bounds in (({}, (10, 0)), ({"order": "best_to_worst"}, (0, 10))):
        (criterion,) = load_criteria(write(tmp_path, [entry | order])).criteria.criteria
        assert (criterion.numeric_range, criterion.order) == (bounds, "worst_to_best")


@pytest.mark.parametrize("levels", [["clear", "fluffy"], ["few steps", "some steps", "many steps"]])
def test_a_list_whose_order_cannot_be_told_is_kept_without_a_mean(
    tmp_path: Path, levels: list[str]
) -> None:
    loaded = load_criteria(write(tmp_path, [{"name": "Style", "accepted_values": levels}]))
    (criterion,) = loaded.criteria.criteria
    assert (criterion.order, criterion.accepted_values) == ("unclear", tuple(levels))
    (note,) = loaded.notes
    assert note.startswith("Style: order unclear: ")
    # as it is saved, so it is read
    save_criteria(tmp_path / "c.json", loaded.criteria)
    assert load_criteria(tmp_path / "c.json") == loaded


def test_the_packaged_criteria_and_the_bank_raise_nothing(tmp_path: Path) -> None:
    for path in sorted(PACKAGED.glob("*.json")):
        assert load_criteria(path, task=path.name.split(".")[0]).notes == ()
    bank = tuple(concept.criterion(0) for concept in load_bank())
    save_criteria(tmp_path / "c.json", CriteriaSet(criteria=bank))
    assert load_criteria(tmp_path / "c.json").notes == ()


def test_expectations_of_removed_perturbations_are_accepted_and_noted(tmp_path: Path) -> None:
    entry = {"name": "Right", "accepted_values": ["no", "yes"], "scale": "binary"}
    old = entry | {"expect": {"paraphrase": "none", "drop_answer": "lower", "pad": "none"}}
    loaded = load_criteria(write(tmp_path, {"criteria": [old]}))
    (note,) = loaded.notes
    assert "drop_answer, paraphrase" in note
    (criterion,) = loaded.criteria.criteria
    assert criterion.expect == old["expect"]  # copies of earlier versions may be stored
    assert criterion.sha256 == Criterion.model_validate(entry).sha256
    save_criteria(tmp_path / "again.json", loaded.criteria)
    again = load_criteria(tmp_path / "again.json")
    assert (again.notes, again.criteria.criteria[0].expect) == ((), {"pad": "none"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"name": "X", "accepted_values": ["bad", "good"], "order": "sideways"}], "sideways"),
        ({"schema": 99, "criteria": []}, "schema 99"),
        ({"criteria": []}, "criteri"),
        ([{"name": "X", "accepted_values": ["bad", "good"], "colour": 1}], "colour"),
        ([{"name": "X", "accepted_values": ["bad", "good"]}] * 2, "two criteria have the id 'x'"),
    ],
)
def test_what_is_refused(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_criteria(write(tmp_path, value))


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
