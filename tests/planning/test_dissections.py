"""Dissections that are interrupted: what is under way is stored, and nothing else is begun."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agenteval.agents import Dialogue, System, Toolbox
from agenteval.engine import Experiment
from agenteval.planning.dissect import DissectionEvaluator, DissectOptions
from agenteval.planning.synthesis import Generator, Shape
from agenteval.store import Store

CASES = list(Generator(Shape((2, 2)), seed=4).cases(2))
OPTIONS = DissectOptions(tries=1, original=1)


class Idle:
    """Does nothing, once it is let go: every try fails."""

    def __init__(self, begun: asyncio.Event, go: asyncio.Event) -> None:
        self.begun, self.go = begun, go

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        self.begun.set()
        await self.go.wait()
        return "done"


@pytest.mark.parametrize("in_time", [True, False])
def test_interrupted(tmp_path: Path, in_time: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def work(store: Store) -> None:
        begun, go = asyncio.Event(), asyncio.Event()
        system = System("idle", lambda: Idle(begun, go), {})

        def tell(line: str) -> None:
            told.append(line)
            if in_time:
                go.set()

        evaluator = DissectionEvaluator.of(system, CASES, OPTIONS, concurrency=1)
        if not in_time:
            monkeypatch.setattr(DissectionEvaluator, "grace", 0.0)
        work = Experiment(evaluator, store, concurrency=1, notify=tell, announce=False)
        running = asyncio.create_task(work.run())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        left = [unit.content for unit in work.pending().units]
        assert left == (CASES[1:] if in_time else CASES)

    with Store(tmp_path / "s.db") as store:
        asyncio.run(work(store))
    assert told[0].startswith("interrupted: finishing 1 dissection in progress")
    assert len(told) == (1 if in_time else 2)
