"""Dumps that AutoGen AgentChat itself writes, from agents with scripted replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.readers import make_view, read_runs
from agenteval.records import Run, ToolCall

TASK = "What is 17 + 25?"


def load(tmp_path: Path, result: Any, **extra: Any) -> Run:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({**result.model_dump(mode="json"), **extra}))
    return read_runs(path).runs[0]


def client(*replies: Any) -> Any:
    from autogen_ext.models.replay import ReplayChatCompletionClient

    info: Any = {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "family": "unknown",
        "structured_output": True,
    }
    return ReplayChatCompletionClient(list(replies), model_info=info)


def call_of_add(arguments: str = '{"a": 17, "b": 25}') -> Any:
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage

    return CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id="c1", name="add", arguments=arguments)],
        usage=RequestUsage(prompt_tokens=10, completion_tokens=5),
        cached=False,
        thought="I should add.",
    )


def add(a: int, b: int) -> int:
    """Sum of two numbers."""
    return a + b


def fail(a: int, b: int) -> int:
    """Never works."""
    raise ValueError("out of order")


async def test_team_with_a_tool_and_a_last_word(tmp_path: Path) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import TextMentionTermination
    from autogen_agentchat.teams import RoundRobinGroupChat

    agent = AssistantAgent(
        "adder",
        client(call_of_add(), "The sum is 42. TERMINATE"),
        tools=[add],
        reflect_on_tool_use=True,
    )
    team = RoundRobinGroupChat([agent], termination_condition=TextMentionTermination("TERMINATE"))
    run = load(tmp_path, await team.run(task=TASK))
    assert (run.id, run.input, run.output) == ("dump", TASK, "The sum is 42. TERMINATE")
    assert [(m.role, m.name, m.content) for m in run.messages] == [
        ("user", None, TASK),
        ("assistant", "adder", "I should add."),
        ("assistant", "adder", ""),
        ("tool", "add", "42"),
        ("assistant", "adder", "The sum is 42. TERMINATE"),
    ]
    assert run.messages[2].tool_calls == (
        ToolCall(name="add", arguments={"a": 17, "b": 25}, id="c1"),
    )
    assert run.messages[3].tool_call_id == "c1"
    assert "mentioned" in str(run.metadata["stop_reason"])
    fields: Any = run.metadata["message_fields"]
    assert fields["usage"]["prompt_tokens"] >= 10  # 10 scripted; the client counts the others
    assert make_view(run).trajectory == (
        "[assistant: adder]\nI should add.\n\n"
        '[assistant: adder]\n[tool call] add {"a": 17, "b": 25}\n\n'
        "[tool: add]\n42\n\n"
        "[assistant: adder]\nThe sum is 42. TERMINATE"
    )


async def test_tool_summary_is_the_output(tmp_path: Path) -> None:
    from autogen_agentchat.agents import AssistantAgent

    agent = AssistantAgent("adder", client(call_of_add()), tools=[add])
    run = load(tmp_path, await agent.run(task=TASK), id="r1", success=True, system="adder-1")
    assert (run.id, run.system, run.success, run.output) == ("r1", "adder-1", True, "42")


async def test_failing_tool_is_marked(tmp_path: Path) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.tools import FunctionTool

    tool = FunctionTool(fail, description="Sum", name="add")
    agent = AssistantAgent("adder", client(call_of_add()), tools=[tool])
    run = load(tmp_path, await agent.run(task=TASK))
    results = [m.content for m in run.messages if m.role == "tool"]
    assert len(results) == 1
    assert results[0].startswith("[error] ")
    assert "out of order" in results[0]


async def test_stream_chunks_are_not_said_twice(tmp_path: Path) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.base import TaskResult

    agent = AssistantAgent("talker", client("It is 42 ."), model_client_stream=True)
    seen = [item async for item in agent.run_stream(task=TASK)]
    events: list[Any] = [item for item in seen if not isinstance(item, TaskResult)]
    assert sum(e.type == "ModelClientStreamingChunkEvent" for e in events) > 1
    run = load(tmp_path, TaskResult(messages=events))
    assert [m.content for m in run.messages] == [TASK, "It is 42 ."]
    cut = TaskResult(messages=events[:-1])  # the stream broke off before the whole message
    assert load(tmp_path, cut).messages[-1].content == "It is 42 ."
