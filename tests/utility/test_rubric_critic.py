"""Critics that write a rubric for each case, and how their items are merged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agenteval
from agenteval import Run, Task
from agenteval.errors import InputError, ModelError
from agenteval.readers.rubrics import read_rubric
from agenteval.testing import serve
from agenteval.utility.rubric_api import merged, propose_rubrics

TASK = Task(name="sums", description="Add the numbers.")
RUNS = [
    Run(id=f"{system}{case}", task="sums", system=system, input=f"{case} + 1?", reference=gold)
    for case, gold in ((4, "5"), (8, None))
    for system in ("hen", "cock")
]


class Alike:
    """All statements are paraphrases of one another."""

    name, default_tau = "alike", 0.8

    def embed(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 1), dtype=np.float32)


def test_merging_keeps_numbers_signs_and_one_critic_apart() -> None:
    sets: list[list[dict[str, Any]]] = [
        [{"requirement": "States 36.", "weight": 10}, {"requirement": "Shows steps", "weight": 1}],
        [
            {"requirement": "Gives 36 as result", "weight": 8},
            {"requirement": "Says 35", "weight": 2},
        ],
        [{"requirement": "states 36", "weight": 9}, {"requirement": "Skips steps", "weight": -3}],
    ]
    rubrics = [(seed, read_rubric(items, "x")) for seed, items in enumerate(sets)]
    found = {item.requirement: item for item in merged(rubrics, Alike())}
    assert len(found) == 4
    (first,) = (item for item in found.values() if len(item.seeds) == 3)
    assert first.weight == 9
    assert sorted(first.wordings) == ["Gives 36 as result", "States 36.", "states 36"]
    by_text = merged(rubrics, None, min_seeds=2)
    assert [item.wordings for item in by_text] == [("States 36.", "states 36")]


def test_the_file_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prompts: list[str] = []

    def answer(body: dict[str, Any], _: int) -> str:
        prompt = body["messages"][1]["content"]
        prompts.append(prompt)
        if "8 + 1" in prompt and body["seed"] == 1:
            return "I do not know."
        right = "5" if "4 + 1" in prompt else "9"
        items = [{"requirement": f"States {right}", "weight": 4}]
        items += [{"requirement": "Says 7", "weight": -2}] * (body["seed"] == 0)
        return json.dumps({"facts": "a sum", "rubric": items})

    with serve(answer, ignore=[r"[0-9a-f]{24}"]) as server:
        options: dict[str, Any] = {"model": "openai:m", "base_url": server.base_url, "seeds": 2}
        planned = propose_rubrics(TASK, RUNS, dry_run=True, tau=1, **options).estimate
        assert planned is not None
        assert planned.requests[0] == 4
        report = propose_rubrics(TASK, RUNS, tau=1, output="rubrics.jsonl", **options)
    assert sum("reference" in prompt for prompt in prompts) == 2  # of the case that has one
    lines = [json.loads(line) for line in Path("rubrics.jsonl").read_text().splitlines()]
    assert [line["input"] for line in lines] == ["4 + 1?", "8 + 1?"]
    assert lines[0]["rubric"][0] == {"requirement": "States 5", "weight": 4}
    assert [len(r.failures) for r in report.rubrics] == [0, 1]
    assert any("seed 1: unscored:parse" in note for note in report.notes)
    scored = agenteval.quantify(
        [run.model_copy(update={"output": "5"}) for run in RUNS],
        judge=lambda run, item: "yes" if item.description[-1] in run.output else "no",
        version="1",
        task=TASK,
        rubrics="rubrics.jsonl",
    )
    totals = {r.run_id: r.value for r in scored.ratings}
    assert totals == {"hen4": 1.0, "cock4": 1.0, "hen8": 0.0, "cock8": 0.0}


def test_what_does_not_apply_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--bank"):
        propose_rubrics(TASK, RUNS, bank=True)
    with pytest.raises(InputError, match="need a chat model"):
        propose_rubrics(TASK, RUNS, model="embedded")
    with serve(lambda *_: "no", ignore=[r"[0-9a-f]{24}"]) as server:
        options: dict[str, Any] = {"model": "openai:m", "base_url": server.base_url, "tau": 1}
        with pytest.raises(ModelError, match="nothing was written"):
            propose_rubrics(TASK, RUNS, output="r.jsonl", seeds=1, **options)
    assert not Path("r.jsonl").exists()
