"""A scripted planner as a program of its own, to try the adapters with.

    agenteval plan test suite.jsonl --agent 'command:python -m tests.support.planner perfect'
    agenteval plan test suite.jsonl --agent 'mcp:python -m tests.support.planner perfect --mcp'

It speaks lines of JSON, or MCP with the server at AGENTEVAL_MCP_URL and the request on stdin. The
names are those of `scripted:NAME`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from agenteval.agents import Dialogue, Tool, Toolbox
from agenteval.evaluators.planning.scripted import scripted


def main() -> None:
    """Play the planner once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="as in scripted:NAME")
    parser.add_argument("--mcp", action="store_true", help="by MCP instead of lines of JSON")
    asked = parser.parse_args()
    words = asyncio.run(_mcp(asked.name)) if asked.mcp else _lines(asked.name)
    print(words, flush=True)


def _lines(script: str) -> str:
    start = json.loads(sys.stdin.readline())
    tools = [Tool.model_validate(entry["function"]) for entry in start["tools"]]

    def ask(name: str, arguments: Mapping[str, Any]) -> str:
        line = {"type": "call", "id": 0, "name": name, "arguments": dict(arguments)}
        print(json.dumps(line), flush=True)
        return str(json.loads(sys.stdin.readline())["content"])

    words = asyncio.run(scripted(script)().run(Dialogue.of(start["request"]), Toolbox(tools, ask)))
    return json.dumps({"type": "final", "content": words})


async def _mcp(script: str) -> str:
    from mcp import Client

    request = sys.stdin.read()
    loop = asyncio.get_running_loop()
    async with Client(os.environ["AGENTEVAL_MCP_URL"]) as client:
        offered = (await client.list_tools()).tools
        tools = [
            Tool(name=t.name, description=t.description or "", parameters=t.input_schema)
            for t in offered
        ]

        def ask(name: str, arguments: Mapping[str, Any]) -> str:
            call = client.call_tool(name, dict(arguments))
            found = asyncio.run_coroutine_threadsafe(call, loop).result()
            return "".join(getattr(part, "text", "") for part in found.content)

        def play() -> str:  # the script calls tools without awaiting them: in a thread of its own
            return asyncio.run(scripted(script)().run(Dialogue.of(request), Toolbox(tools, ask)))

        return await asyncio.to_thread(play)


if __name__ == "__main__":
    main()
