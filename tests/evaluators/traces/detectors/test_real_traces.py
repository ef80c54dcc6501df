"""Detectors on traces that our own agents leave: real agents, a real server, a scripted model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from agenteval.agents import AgentLimits, Tool, Toolbox, drive
from agenteval.agents.autogen import autogen
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.traced import traced
from agenteval.errors import AgentevalError
from agenteval.evaluators.traces.detectors import detect
from agenteval.readers.traces import read_traces
from agenteval.records import Finding, Run
from agenteval.testing import Fault, serve
from tests.agents.conftest import TOOLS, call, calls, instant, made, script
from tests.evaluators.traces.detectors.conftest import check

Backend = Callable[[str, Mapping[str, Any]], str]
AGENTS = {"chat": openai_chat, "autogen": autogen}
PRICE = Tool(
    name="get_price",
    description="The price of a thing.",
    parameters={
        "type": "object",
        "properties": {"thing": {"type": "string"}},
        "required": ["thing"],
        "additionalProperties": False,
    },
)


def answer(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}: 3.20 EUR"


async def trace(
    path: Path, agent: str, replies: Any, backend: Backend = answer, fault: Fault | None = None
) -> tuple[Run, list[Finding]]:
    file = path / "spans.jsonl"
    with serve(replies, [fault] if fault else ()) as server, traced(file):
        endpoint = Endpoint("test-model", server.base_url)
        client = connect(endpoint, sleep=instant)
        tools = Toolbox((*TOOLS, PRICE), backend, AgentLimits(seconds=20, turns=8))
        with contextlib.suppress(AgentevalError):
            await drive(made(AGENTS[agent](endpoint, client)), "Go on a trip.", tools)
        await client.close()
    (run,) = read_traces(file).runs
    findings = detect(run, undecided=True)
    check(run, findings)
    return run, list(findings)


def names(findings: list[Finding]) -> list[str]:
    return [f.source.removeprefix("detector:") for f in findings]


@pytest.mark.parametrize("agent", ["chat", "autogen"])
async def test_calls_that_no_tool_could_take(tmp_path: Path, agent: str) -> None:
    run, found = await trace(
        tmp_path,
        agent,
        script(
            calls(call("fly_home", number="a")),
            calls(call("book_train", '{"minute": "soon"}', "b")),
            calls(call("book_train", '{"minute": ', "c")),
            {"content": "All done. TERMINATE"},
        ),
    )
    assert names(found) == ["unknown-tool", "schema-violation", "malformed-arguments"]
    kinds = {s.id: s.kind for s in run.spans}
    assert [kinds[f.span] for f in found] == ["llm"] * 3
    assert len({f.span for f in found}) == 3


@pytest.mark.parametrize("agent", ["chat", "autogen"])
async def test_a_perfect_run_has_no_findings(tmp_path: Path, agent: str) -> None:
    run, found = await trace(
        tmp_path,
        agent,
        script(
            calls(call("get_price", '{"thing": "429 Too Many Requests"}', "a")),
            calls(call("get_price", '{"thing": "error 404"}', "b")),
            calls(call("book_train", '{"minute": 30}', "c"), call("pack_bag", number="d")),
            {"content": "All done. TERMINATE"},
        ),
    )
    assert sum(s.kind == "tool" for s in run.spans) >= 4
    assert found == []


@pytest.mark.parametrize("agent", ["chat", "autogen"])
async def test_the_same_call_again(tmp_path: Path, agent: str) -> None:
    again = [calls(call("get_price", '{"thing": "pear"}', f"n{n}")) for n in range(4)]
    run, found = await trace(
        tmp_path, agent, script(*again, {"content": "It costs 3.20. TERMINATE"})
    )
    assert names(found) == ["repeated-call"]
    asking = [s for s in run.spans if s.kind == "llm" and any(m.tool_calls for m in s.reply)]
    assert found[0].span in {s.id for s in asking[-2:]}  # a wrapper and the client's own span
    assert "4 times" in found[0].description


@pytest.mark.parametrize("agent", ["chat", "autogen"])
@pytest.mark.parametrize(
    ("status", "category"),
    [(429, "Rate Limiting"), (401, "Authentication Errors"), (503, "Service Errors")],
)
async def test_a_provider_that_refuses(
    tmp_path: Path, agent: str, status: int, category: str
) -> None:
    run, found = await trace(
        tmp_path, agent, script({"content": "x"}), fault=Fault("status", status)
    )
    assert [f.category for f in found] == [category]
    assert {s.id: s.kind for s in run.spans}[found[0].span] == "llm"


def fetch_page() -> str:
    """Fetches a page that is not there."""
    with serve(script({"content": ""})) as server:
        reply = requests.get(f"{server.base_url}/no/such/page", timeout=5)
        reply.raise_for_status()
    return "never"


async def test_a_backend_that_raises(tmp_path: Path) -> None:
    _, found = await trace(
        tmp_path,
        "chat",
        script(calls(call("get_price", '{"thing": "pear"}'))),
        backend=lambda name, arguments: fetch_page(),
    )
    (finding,) = found
    assert (finding.category, finding.impact) == ("Resource Not Found", "HIGH")
    assert finding.evidence.startswith("404 Client Error")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def test_tools_of_autogen_that_raise(tmp_path: Path) -> None:
    """AutoGen keeps the text of an exception, not its type, and goes on; the status stays ok."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    wanted = [("fetch_page", "{}"), ("add", '{"a": 1, "b": 404}'), ("fly", "{}")]
    asked = [FunctionCall(id=f"c{n}", name=n, arguments=a) for n, a in wanted]
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    replies = [
        CreateResult(finish_reason="function_calls", content=[one], usage=usage, cached=False)
        for one in asked
    ]
    info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown",
            "structured_output": False}  # fmt: skip
    client = ReplayChatCompletionClient([*replies, "Done."], model_info=info)  # type: ignore[arg-type]
    file = tmp_path / "spans.jsonl"
    with traced(file):
        agent = AssistantAgent("helper", client, tools=[fetch_page, add], max_tool_iterations=9)
        await agent.run(task="Go on.")
    runs = read_traces(file).runs
    found = [f for run in runs for f in detect(run, undecided=True)]
    tools = {s.id: s.tool for run in runs for s in run.spans if s.kind == "tool"}
    assert set(tools.values()) == {"fetch_page", "add", "fly"}
    assert [(f.category, tools[f.span]) for f in found] == [
        ("Resource Not Found", "fetch_page"), ("Tool-related", "fly"),
    ]  # fmt: skip
