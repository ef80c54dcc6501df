"""Scripted planners as programs of their own, through both adapters, base and extended."""

from __future__ import annotations

import asyncio
import sys

import pytest

from agenteval.agents import AgentLimits
from agenteval.agents.spec import system
from agenteval.evaluators.planning.synthesis import Generator, Shape
from agenteval.evaluators.planning.trials import run_case

PROGRAM = f"{sys.executable} -m tests.support.planner"


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(
    ("agent", "outcomes"),
    [
        (f"command:{PROGRAM} perfect", {"pass"}),
        (f"mcp:{PROGRAM} perfect --mcp", {"pass"}),
        (f"command:{PROGRAM} reversed", {"order_error", "parameter_error"}),
    ],
)
async def test_outcomes_are_those_of_the_script(
    agent: str, outcomes: set[str], extended: bool
) -> None:
    cases = list(Generator(Shape((3, 3), extended=extended), seed=6).cases(2))
    made = system(agent)
    work = [run_case(case, made.make(), AgentLimits(seconds=60)) for case in cases]
    found = await asyncio.gather(*work)
    assert all(verdict is not None for _, verdict in found), [log for log, _ in found]
    assert {verdict.outcome for _, verdict in found if verdict} <= outcomes
