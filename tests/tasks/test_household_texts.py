"""What is written around the runs of ``tasks/household``: the view, the task, the criteria."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.readers.view import make_view
from agenteval.records import Run as RunRecord
from agenteval.utility.bank import load_bank
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.rubric_check import check_criteria
from tasks.household.agents import PROFILES
from tasks.household.layout import STEP_LIMIT, make_case
from tasks.household.make import play

Run = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "household"


@pytest.fixture
def runs() -> list[Run]:
    text = (FOLDER / "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_judge_sees_the_trajectory_and_no_verdict(runs: list[Run]) -> None:
    for run in runs:
        view = make_view(RunRecord.model_validate(run))
        shown = view.problem + view.trajectory
        assert view.trajectory.count("Do: ") == run["metadata"]["measured"]["steps"]
        assert view.trajectory.rstrip().endswith(run["output"])
        hidden = ("layout_seed", "success", "measured", *PROFILES)
        assert not [word for word in hidden if word in shown]


EXAMPLES = {
    "success": (("examine", 906, "atlas"), ("clean", 903, "birch")),
    "failed": (("heat", 904, "atlas"), ("put two", 908, "cedar")),
}


def test_task_file_shows_other_runs_of_the_same_agents(runs: list[Run]) -> None:
    task = yaml.safe_load((FOLDER / "task.yaml").read_text(encoding="utf-8"))
    assert task["name"] == "household"
    assert set(task) == {"name", "description", "examples"}
    assert f"{STEP_LIMIT} commands" in " ".join(task["description"].split())
    for label, sources in EXAMPLES.items():
        assert len(task["examples"][label]) == len(sources)
        for example, (kind, seed, system) in zip(task["examples"][label], sources, strict=True):
            run = play(make_case(kind, seed), system, 1)
            lines = [
                ("House: " if m["role"] == "tool" else "") + m["content"]
                for m in run["messages"][1:]
            ]
            assert example["output"] == "\n".join(lines)
            assert run["input"].startswith(example["input"] + "\n")
            assert run["success"] is (label == "success")
            assert seed not in {r["metadata"]["layout_seed"] for r in runs}


LEVELS = ("Terrible", "Poor", "Average", "Good", "Excellent")
CRITERIA = {
    "Task understanding": LEVELS,
    "Plan making": LEVELS,
    "Action decision": LEVELS,
    "Action execution": LEVELS,
    "Response to feedback": LEVELS,
    "Correctness of action": ("Incorrect", "Correct"),
    "Use of TERMINATE": ("Inappropriate", "Appropriate"),
}
OPERATORS = {
    *("drop_sentences", "drop_words", "drop_middle", "shuffle_sentences"),
    *("truncate", "swap_numbers", "pad", "whitespace", "formatting"),
}


def test_reviewed_criteria_are_those_of_the_table() -> None:
    loaded = load_criteria(ROOT / "criteria" / "household.reviewed.json")
    found = loaded.criteria.criteria
    assert loaded.notes == ()
    assert {c.name: c.accepted_values for c in found} == CRITERIA
    assert [i for i in check_criteria(found) if i.severity == "error"] == []
    concepts = {concept.id for concept in load_bank()}
    for criterion in found:
        assert criterion.order == "worst_to_best"
        assert criterion.provenance.origin == "reviewed"
        assert criterion.provenance.concept in {None, *concepts}
        assert set(criterion.expect) == OPERATORS
        assert {criterion.expect[c] for c in ("whitespace", "formatting")} == {"none"}
        named = [
            level for level in criterion.accepted_values if f"{level}: " in criterion.description
        ]
        assert named == list(criterion.accepted_values), "every level is described"
