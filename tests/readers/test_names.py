"""What two names of one field, a system without a name and almost equal inputs lead to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import ReadResult, read_runs

ROOT = Path(__file__).parents[2]


def read(folder: Path, *records: Any) -> ReadResult:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps({"output": "a", **r}) + "\n" for r in records))
    return read_runs(path)


# ---- systems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "system"), [
    ({"system": 1}, "1"), ({"system": 2}, "2"), ({"system": "1"}, "1"), ({"system": -3}, "-3"),
    ({"system": {"name": "x"}}, "x"), ({"system": {"id": 7}}, "7"), ({"agent": 0}, "0"),
    ({"system": ""}, "unnamed"), ({"system": None}, "unnamed"), ({}, "unnamed"),
    ({"system": None, "model": "m"}, "m"), ({"agent": {"tools": []}, "model": "m"}, "m"),
])  # fmt: skip
def test_names_of_systems(tmp_path: Path, record: dict[str, Any], system: str) -> None:
    assert read(tmp_path, record).runs[0].system == system


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\tb", "x" * 201, True, 1.5, [], ["a"], {},
                                   {"temperature": 0}, {"name": "a\nb"}])  # fmt: skip
@pytest.mark.parametrize("key", ["system", "model"])
def test_what_names_no_system_is_refused_with_its_place(
    tmp_path: Path, key: str, value: Any
) -> None:
    with pytest.raises(InputError, match=rf"x\.jsonl:2: '{key}' is .*: a system's name is text"):
        read(tmp_path, {"system": "s"}, {key: value})


@pytest.mark.parametrize("value", [True, 1.5, ["a"], {"temperature": 0}])
def test_another_name_does_not_stand_in_for_a_broken_one(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match="'system' is "):
        read(tmp_path, {"system": value, "model": "m"})


def test_a_prompt_beside_a_name_is_kept_and_told(tmp_path: Path) -> None:
    result = read(tmp_path, {"system": "You are\nkind.", "model": "m"})
    assert (result.runs[0].system, result.runs[0].metadata) == ("m", {"system": "You are\nkind."})
    (line,) = result.warnings
    assert line.endswith("x.jsonl:1: 'system' is no name of a system and goes to the metadata; "
                         "'model' names it")  # fmt: skip


# ---- two names of one field ----------------------------------------------------------------------


@pytest.mark.parametrize(("record", "taken", "left"), [
    ({"question": "q", "prompt": "p"}, "question", "prompt"),
    ({"response": "r", "output": "o"}, "output", "response"),
    ({"prediction": "a", "answer": "b", "output": None}, "prediction", "answer"),
    ({"input": {"text": "q"}, "query": "p"}, "input", "query"),
    ({"messages": [{"role": "user", "content": "u"}],
      "history": [{"role": "user", "content": "v"}]}, "messages", "history"),
    ({"target": "x", "expected": "y"}, "expected", "target"),
    ({"gold_label": "B", "gold_answer": "Paris"}, "gold_answer", "gold_label"),
])  # fmt: skip
def test_the_text_that_is_left_is_told(
    tmp_path: Path, record: dict[str, Any], taken: str, left: str
) -> None:
    result = read(tmp_path, record, record)
    (line,) = result.warnings
    assert f"x.jsonl:1: {taken!r} is read; {left!r} says something else" in line
    assert line.endswith("(and 1 more)")
    assert result.runs[0].metadata[left] == record[left]


@pytest.mark.parametrize("record", [
    {"question": "q", "prompt": " q\n"}, {"response": "a"}, {"query": "q", "prompt": None},
    {"input": "17", "instruction": "Add."}, {"input": {"query": "q"}, "question": "q"},
    {"output": {"completion": "a", "model": "m"}, "completion": "a"},
    {"success": True, "is_correct": 1, "passed": "pass"}, {"success": None, "is_correct": True},
    {"passed": True, "label": "cat"}, {"passed": False, "label": 1},
    {"reference": "4", "expected": 4}, {"reference": "4", "solution": "2 + 2 = 4"},
    {"correct_ans": "4", "canonical_solution": "2 + 2"}, {"reference": "4", "gold": None},
])  # fmt: skip
def test_equal_values_and_different_things_need_no_word(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    assert read(tmp_path, record).warnings == []


@pytest.mark.parametrize("record", [
    {"is_correct": True, "success": False}, {"success": 0, "passed": "yes", "correct": "true"},
    {"success": True, "label": "fail"}, {"reference": "4", "expected": "5"},
    {"ground_truth": ["4"], "gold_answer": ["4", "5"]},
])  # fmt: skip
def test_two_verdicts_or_two_gold_answers_are_refused(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=r"x\.jsonl:2: .* differ: only one can be"):
        read(tmp_path, {}, record)


# ---- inputs --------------------------------------------------------------------------------------


def test_inputs_that_differ_in_outer_white_space_are_told_and_not_merged(tmp_path: Path) -> None:
    inputs = ["q1 ", "q1", "q2", "q1 ", "\nq3", "q3\n", " ", "", "q 4", "q  4"]
    result = read(tmp_path, *({"id": f"r{i}", "input": text} for i, text in enumerate(inputs)))
    assert [run.input for run in result.runs] == inputs
    (line,) = result.warnings
    assert line.endswith(
        "x.jsonl:2: the input differs from that of run 'r0' in white space around it only; "
        "they count as two cases (and 1 more)"
    )


# ---- data that is fine ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["household", "math", "support"])
def test_our_own_runs_give_no_warning(name: str) -> None:
    result = read_runs(ROOT / "tasks" / name / "runs.jsonl")
    assert (result.warnings, len(result.runs) > 10) == ([], True)
