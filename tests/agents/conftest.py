"""Tools for the agents under test, scripts for their models, and a server of the Responses API."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils, web

from agenteval.agents import AgentLimits, System, Tool, Toolbox

CANARY = "sk-canary-77aa12cd"
TOOLS = (
    Tool(name="pack_bag", description="Packs the bag."),
    Tool(name="call_taxi", description="Calls a taxi."),
    Tool(
        name="book_train",
        description="Books a train.",
        parameters={
            "type": "object",
            "properties": {"minute": {"type": "integer", "minimum": 0}},
            "required": ["minute"],
            "additionalProperties": False,
        },
    ),
)


def answer(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name} done {json.dumps(dict(arguments))}"


def box(seconds: float = 20.0, turns: int = 5) -> Toolbox:
    return Toolbox(TOOLS, answer, AgentLimits(seconds=seconds, turns=turns))


async def instant(_: float) -> None:
    """A pause that is none."""
    await asyncio.sleep(0)


def call(name: str, arguments: Any = "{}", number: str | None = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    made = {"type": "function", "function": function}
    return made if number is None else {"id": number, **made}


def calls(*made: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    return {"content": text, "tool_calls": list(made)}


def turn_of(body: Mapping[str, Any]) -> int:
    """How often the model has spoken before this request."""
    return sum(m["role"] == "assistant" for m in body["messages"])


def script(*replies: Any) -> Callable[[dict[str, Any], int], Any]:
    """A model that says the n-th reply in its n-th turn, and the last one from then on."""
    return lambda body, n: replies[min(turn_of(body), len(replies) - 1)]


def statuses(events: Any) -> list[tuple[int, str, str]]:
    return [(e.turn, e.name, e.status) for e in events]


def made(system: System) -> Any:
    assert CANARY not in json.dumps(system.parameters)
    return system.make()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is the current one; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("AGENTEVAL_MODEL", "AGENTEVAL_BASE_URL", "AGENTEVAL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


# ---- The Responses API ---------------------------------------------------------------------------

Responder = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


@asynccontextmanager
async def serving_responses(respond: Responder) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Serve POST /v1/responses; yields the base URL and the bodies of the requests so far."""
    bodies: list[dict[str, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        status, reply = respond(bodies[-1])
        return web.json_response(reply, status=status)

    app = web.Application()
    app.router.add_post("/v1/responses", handle)
    async with test_utils.TestServer(app) as server:
        yield str(server.make_url("/v1")), bodies


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "test-model-7",
        "status": status,
        "output": list(items),
        "error": None,
        "incomplete_details": None,
        "usage": {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14},
    } | more


def words(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def item(name: str, arguments: Any = "{}", call_id: str | None = "c1") -> dict[str, Any]:
    made = {
        "type": "function_call",
        "id": "fc_1",
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }
    return made if call_id is None else {**made, "call_id": call_id}


def item_script(*replies: dict[str, Any]) -> Responder:
    """The n-th reply after n answered turns, and the last one from then on."""

    def respond(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        done = sum(i.get("id", "").startswith(("fc_", "msg_")) for i in body["input"])
        return 200, replies[min(done, len(replies) - 1)]

    return respond
