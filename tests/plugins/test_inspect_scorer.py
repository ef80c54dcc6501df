"""`agenteval/quantify` inside inspect, on a stand-in of it: values, failures, the store."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agenteval
from agenteval.store import Store
from tests.support import scorers

RIGHT = {"name": "Right answer", "accepted_values": ["wrong", "right"], "scale": "binary"}
CLARITY = {"name": "Clarity", "accepted_values": ["unclear", "clear"]}
MODULE = "agenteval.plugins.inspect_scorer"


@pytest.fixture
def quantify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    for name, module in scorers.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    Path("criteria.json").write_text(json.dumps({"task": "sums", "criteria": [RIGHT, CLARITY]}))
    made = importlib.import_module(MODULE).quantify
    monkeypatch.delitem(sys.modules, MODULE)  # it holds the stand-ins
    return lambda judge, **more: made(criteria="criteria.json", judge=judge, version="1", **more)


def state(number: int, epoch: int = 1, model: str = "openai/m", **more: Any) -> SimpleNamespace:
    asked, said = f"{number} + {number}?", f"It is {2 * number}"
    turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    return SimpleNamespace(
        model=model,
        sample_id=f"s{number}",
        epoch=epoch,
        input_text=asked,
        output=SimpleNamespace(completion=said),
        messages=[SimpleNamespace(model_dump=lambda turn=turn: turn) for turn in turns],
        **more,
    )


async def scored(scorer: Any, *states: SimpleNamespace) -> list[Any]:
    targets = [scorers.Target(str(2 * int(s.sample_id[1:]))) for s in states]
    return await asyncio.gather(*map(scorer, states, targets))


async def test_each_criterion_is_a_key_and_failures_are_left_out(quantify: Any) -> None:
    def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> Any:
        if run.input.startswith("2"):
            raise ValueError("a bug")
        if criterion.id == "clarity":
            return None if run.input.startswith("1") else ("unclear", "mumbled")
        return "right" if run.output.endswith(run.reference or "?") else "wrong"

    whole, part, none = await scored(
        quantify(judge, with_reference=True), state(0), state(1), state(2)
    )
    assert whole.value == {"right-answer": 1.0, "clarity": 0.0}
    assert whole.reason is None
    assert "clarity: unclear. mumbled" in whole.explanation.splitlines()
    assert part.value["right-answer"] == 1.0
    assert math.isnan(part.value["clarity"])
    assert part.reason == none.reason == "grader_failed"
    assert "clarity: unscored:missing." in part.explanation
    assert math.isnan(none.value)
    assert none.explanation.count("error:judge. ValueError: a bug") == 2


async def test_a_judge_sees_the_turns_and_no_target_unless_asked_for(quantify: Any) -> None:
    seen: list[agenteval.Run] = []

    def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> float:
        seen.append(run)
        return 1.0

    given = state(3)
    given.messages.insert(
        1,
        SimpleNamespace(
            model_dump=lambda: {
                "role": "assistant",
                "content": [{"type": "text", "text": "Let me see."}],
                "tool_calls": [{"id": "c", "function": "add", "arguments": {"a": 3, "b": 3}}],
            }
        ),
    )
    await scored(quantify(judge), given)
    assert {run.reference for run in seen} == {None}
    (text,) = {run.output for run in seen}
    assert "Let me see." in text
    assert '[tool call] add {"a": 3, "b": 3}' in text


@pytest.mark.slow
async def test_samples_of_all_models_and_epochs_stay_apart(quantify: Any) -> None:
    asked: list[str] = []

    async def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> float:
        asked.append(run.id)
        await asyncio.sleep(0)
        return 1.0 if "b" in run.id else 0.0

    every = [state(n, epoch, model) for model in "ab" for n in range(5) for epoch in (1, 2)]
    scores = await scored(quantify(judge, store="mine.db"), *every)
    values = [set(score.value.values()) for score in scores]
    assert values == [{0.0}] * 10 + [{1.0}] * 10
    assert len(asked) == 40
    await scored(quantify(judge, store="mine.db"), *every)
    assert len(asked) == 40  # what is stored is not asked again
    with Store("mine.db", create=False) as store:
        ids = {run["run_id"] for run in store.runs().values()}
    assert ids == {f"{m}/s{n}:{e}" for m in "ab" for n in range(5) for e in (1, 2)}


async def test_repeats_are_averaged_and_limits_hold(quantify: Any) -> None:
    grades = iter([1.0, 0.0, 1.0, 1.0])

    def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> float:
        return next(grades)

    Path("criteria.json").write_text(json.dumps({"task": "sums", "criteria": [RIGHT]}))
    scorer = quantify(judge, repeats=2, limits={"max_calls": 2, "concurrency": 1})
    (first,) = await scored(scorer, state(0))
    assert first.value == {"right-answer": 0.5}
    assert first.reason is None
    (second,) = await scored(scorer, state(1))
    assert math.isnan(second.value)
    assert second.reason == "grader_failed"
    assert "the cap of 2 calls is reached" in second.explanation


async def test_what_cannot_be_used_is_an_error_of_each_sample(quantify: Any) -> None:
    scorer = quantify("python:no_such_module:judge")
    for _ in range(2):
        with pytest.raises(agenteval.AgentevalError, match="no_such_module"):
            await scored(scorer, state(0))


def test_inspect_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["inspect_ai"] == {"agenteval": MODULE}
