"""The stored data of the notebooks: complete, and what the program gives when asked again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval import Client, Store, Task, read_runs
from agenteval.analysis.scores import scores_from_store
from agenteval.engine import Experiment
from agenteval.readers import make_view
from agenteval.readers.scores import read_scores
from agenteval.records import Criterion, Run
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.quantifier import Quantifier

ROOT = Path(__file__).resolve().parents[2]
SCORES = ROOT / "tasks" / "math" / "embedded_scores.jsonl"
MAKER = ROOT / "notebooks" / "make_data.py"
REPEATS = 5
SUPPORTED = {"coherence": "scored", "conciseness": "scored"}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {r.id: r for r in read_runs(ROOT / "tasks" / "math" / "runs.jsonl").runs}


@pytest.fixture(scope="module")
def criteria() -> tuple[Criterion, ...]:
    return load_criteria(ROOT / "criteria" / "math.reviewed.json").criteria.criteria


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SCORES.read_text("utf-8").splitlines()]


def test_every_run_criterion_and_repeat_is_there_once(
    rows: list[dict[str, Any]], runs: dict[str, Run], criteria: tuple[Criterion, ...]
) -> None:
    seen = Counter((r["run"], r["criterion"], r["repeat"]) for r in rows)
    assert set(seen.values()) == {1}
    rated = [c.id for c in criteria if c.id != "accuracy"]
    assert set(seen) == {(r, c, k) for r in runs for c in rated for k in range(REPEATS)}
    for row in rows:
        run = runs[row["run"]]
        assert (row["system"], row["success"]) == (run.system, run.success)


def test_only_two_criteria_are_supported(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        status = row.get("status", "scored")
        assert status in (SUPPORTED.get(row["criterion"]), "unscored:unsupported")
        assert ("value" in row) == (status != "unscored:unsupported")


def test_labels_are_the_levels_of_the_values(
    rows: list[dict[str, Any]], criteria: tuple[Criterion, ...]
) -> None:
    scale = {c.id: c.accepted_values for c in criteria}
    for row in rows:
        if "label" in row:
            levels = scale[row["criterion"]]
            nearest = min(
                range(len(levels)), key=lambda i: abs(i / (len(levels) - 1) - row["value"])
            )
            assert row["label"] == levels[nearest]


def test_the_maker_writes_what_the_store_holds(tmp_path: Path) -> None:
    some = [
        Run(
            id=f"r{i}",
            task="t",
            system="s",
            input="What is 1 + 1?",
            output=f"It is {i}.",
            success=i == 2,
        )
        for i in range(1, 4)
    ]
    wanted = (
        Criterion(name="Right", accepted_values=("no", "yes")),
        Criterion(name="Kind", accepted_values=("no", "yes")),
    )
    with Store(tmp_path / "s.db") as store:
        reply = json.dumps({"right": {"explanation": "e", "label": "yes"}})
        client = Client(ScriptedTransport(lambda _: reply), cache=store)
        judge = Quantifier(client, Task(name="t", description="Add."))
        items = [(run, make_view(run)) for run in some]
        rated = JudgeEvaluator.of(judge, items, wanted, 2)
        assert asyncio.run(Experiment(rated, store, concurrency=1).run()).stopped is None
        table = scores_from_store(
            store,
            judge.source.sha256,
            criteria={c.sha256 for c in wanted},
            runs={v.sha256 for _, v in items},
        )
    target = tmp_path / "scores.jsonl"
    command = [sys.executable, str(MAKER), "scores", str(tmp_path / "s.db"), str(target)]
    subprocess.run(command, check=True)
    again = read_scores(target, wanted)
    assert again.statuses() == table.statuses() == {"scored": 6, "unscored:missing": 6}
    for name in ("right", "kind"):
        ours, theirs = (t.of(criterion=name, run="r2") for t in (again, table))
        assert sorted(ours.repeat) == sorted(theirs.repeat) == [0, 1]
        assert list(ours.success) == [1, 1]
        assert str(list(ours.value)) == str(list(theirs.value))


def test_the_maker_refuses_a_wrong_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(MAKER), "rows"], capture_output=True, text=True)
    assert done.returncode == 2
    missing = [sys.executable, str(MAKER), "scores", str(tmp_path / "no.db"), str(tmp_path / "o")]
    done = subprocess.run(missing, capture_output=True, text=True)
    assert done.returncode == 3
    assert "no.db" in done.stderr
