"""An agent of docs/agents.md on the test server, whose model calls two tools and is done."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agenteval.agents import AgentLimits, Tool, Toolbox, drive
from agenteval.agents.spec import opened
from agenteval.testing import serve

GIVEN = {"cup": "blue"}
CALLS = [
    {
        "id": f"call_{name}",
        "type": "function",
        "function": {"name": name, "arguments": '{"cup": "blue"}'},
    }
    for name in ("rinse", "dry")
]
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"cup": {"type": "string"}},
    "required": ["cup"],
    "additionalProperties": False,
}


def _model(body: dict[str, Any], asked: int) -> Any:
    if "is clean" in str(body["messages"]):
        return "All done."
    return {"role": "assistant", "content": None, "tool_calls": CALLS}


async def _driven(module: str) -> None:
    tools = Toolbox(
        [Tool(name=name, description=name, parameters=PARAMETERS) for name in ("rinse", "dry")],
        lambda name, given: f"the {given['cup']} cup is clean",
        AgentLimits(seconds=60),
    )
    async with opened(f"python:{module}:solve") as made:
        log = await drive(made.make(), "Rinse the blue cup, then dry it.", tools)
    assert getattr(log, "output", None) == "All done.", log
    called = [(e.name, e.status, e.arguments) for e in log.events]
    assert called == [("rinse", "ok", GIVEN), ("dry", "ok", GIVEN)], log


def ask(module: str) -> None:
    """Raises AssertionError where it did not call both tools, or said something else."""
    with serve(_model) as server:
        os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="none")
        asyncio.run(_driven(module))
