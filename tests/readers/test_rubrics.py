"""Published layouts of rubrics, and what is refused of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.rubrics import read_rubric

Q = {"id": "a", "input": "q", "output": "o"}


@pytest.mark.parametrize(
    ("rubric", "items"),
    [
        pytest.param(
            [{"weight": 5, "requirement": "Names it."}, {"weight": -3.5, "requirement": "Lies."}],
            [("Names it.", "Names it.", 5), ("Lies.", "Lies.", -3.5)],
            id="autorubric",
        ),
        pytest.param(
            {"sections": [{"criteria": [{"requirement": "A", "weight": 1}]}, {"criteria": ["B"]}]},
            None,
            id="autorubric sections, one without a weight",
        ),
        pytest.param(
            [{"criterion": "A", "points": 7, "tags": ["axis:accuracy"]}],
            [("A", "A", 7)],
            id="healthbench",
        ),
        pytest.param(
            [{"title": "Dose", "description": "Essential Criteria: States 5 mg.", "weight": 5}],
            [("Dose", "Essential Criteria: States 5 mg.", 5)],
            id="rubrics as rewards",
        ),
        pytest.param(["A", "B"], [("A", "A", 1), ("B", "B", 1)], id="texts"),
        pytest.param([{"rubric_item": "A"}], [("A", "A", 1)], id="researchqa"),
        pytest.param(
            [{"text": "A", "weight": 2, "polarity": "negative"}, {"text": "B", "weight": "1"}],
            [("A", "A", -2), ("B", "B", 1)],
            id="polarity",
        ),
    ],
)
def test_layouts(rubric: Any, items: list[tuple[str, str, float]] | None) -> None:
    if items is None:
        with pytest.raises(InputError, match="item 2 has no weight"):
            read_rubric(rubric, "x")
        return
    parts = read_rubric(rubric, "x").sub_criteria
    assert [(part.name, part.description, part.weight) for part in parts] == items
    for part in parts:  # 1 is the best value of every item
        best = "no" if (part.weight or 0) < 0 else "yes"
        assert part.value_of(best) == 1
        assert part.allow_na


def test_own_levels() -> None:
    options = [{"label": "all", "value": 1.0}, {"label": "some", "value": 0.5}]
    options += [{"label": "none", "value": 0.0}, {"label": "N/A", "value": 0, "na": True}]
    rubric = read_rubric(
        [
            {"requirement": "A", "weight": 1, "options": options},
            {"requirement": "B", "weight": -1, "accepted_values": ["never", "once", "often"]},
        ],
        "x",
    )
    first, second = rubric.sub_criteria
    assert first.accepted_values == ("none", "some", "all")
    assert second.accepted_values == ("often", "once", "never")


@pytest.mark.parametrize(
    ("rubric", "problem"),
    [
        ([], "no items"),
        ("", "must be a list of items or an object"),
        ("Be good.", "must be a list of items or an object"),
        (3, "must be a list of items or an object"),
        ([{"requirement": " "}], "item 1: 'requirement' is empty"),
        ([{"requirement": "A", "weight": "heavy"}], "item 1: 'weight' must be one number"),
        ([{"requirement": "A", "weight": True}], "item 1: 'weight' must be one number"),
        ([{"requirement": "A", "weight": 0}], "positive weight"),
        ([{"requirement": "A", "weight": -1}], "positive weight"),
        (["A", "B", " a. "], "items 1 and 3 are the same"),
        (
            [{"requirement": "A", "weight": 2}, {"requirement": "A", "weight": -2}],
            "once positive and once negative",
        ),
        ([{"requirement": "A", "weight": -1, "polarity": "positive"}], "positive, but weight -1"),
        ([{"requirement": "A", "polarity": "bad"}], "must be positive or negative"),
        ([{"rule": "A"}], "item 1: no statement among its keys .rule.; read are"),
        ([["A"]], "item 1: not a text or an object"),
        ({"rules": ["A"]}, "no known layout of a rubric: rules; read are"),
        ({"guidelines": "Be strict.", "criteria": ["A"]}, "guidelines"),
        ([{"requirement": "A", "options": [{"label": "x", "value": 0.4}]}], "evenly spaced"),
        ([{"requirement": "A", "accepted_values": ["x"]}], "item 1: .*at least two"),
    ],
)
def test_refused_with_file_and_line(tmp_path: Path, rubric: Any, problem: str) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [Q, {**Q, "id": "b", "rubric": rubric}]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=problem) as refused:
        read_runs(path)
    assert str(refused.value).startswith(f"{path}:2: rubric")


def test_a_run_carries_its_rubric(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [
        {**Q, "id": "a", "criteria": ["A"]},
        {**Q, "id": "b", "rubrics": [{"criterion": "B", "points": 1, "author": "me"}]},
        {**Q, "id": "c", "criteria": "be good"},
        {**Q, "id": "d", "rubric": json.dumps(["D"])},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    result = read_runs(path)
    shown = [run.rubric and run.rubric.sub_criteria[0].description for run in result.runs]
    assert shown == ["A", "B", None, "D"]
    assert result.runs[2].metadata["criteria"] == "be good"
    assert [w.partition(": ")[2] for w in result.warnings] == [
        "rubrics: not read in items of rubrics: author",
        "'criteria' is not a list of items: kept as metadata, not judged",
    ]
    path.write_text(json.dumps({**Q, "rubric": ["A"], "criteria": ["B"]}))
    with pytest.raises(InputError, match="two rubrics"):
        read_runs(path)
