"""Assistants that are functions, classes and programs; and how `--agent` names an assistant."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import AgentLimits, AgentLog, Dialogue, Tool, Toolbox, drive
from agenteval.agents.callable import CallableAgent, Tools
from agenteval.agents.command import CommandAgent
from agenteval.agents.mcp import McpAgent
from agenteval.agents.spec import system
from agenteval.errors import InputError
from agenteval.records import Message, ToolCall

TOOLS = [Tool(name="rinse", description="Rinse."), Tool(name="dry")]
assistant = partial(system, dialogue=True)
DIALOGUE = Dialogue(
    instructions="You cut hair.",
    messages=(
        Message(role="user", content="Wash, please. – ✓"),
        Message(role="assistant", tool_calls=(ToolCall(name="rinse", arguments={}, id="r1"),)),
        Message(role="tool", content="wet", tool_call_id="r1"),
        Message(role="assistant", content="It is wet."),
        Message(role="user", content="Now dry it."),
    ),
)
MESSAGES = [
    {"role": "user", "content": "Wash, please. – ✓"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "r1", "type": "function", "function": {"name": "rinse", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "r1", "content": "wet"},
    {"role": "assistant", "content": "It is wet."},
    {"role": "user", "content": "Now dry it."},
]
WHOLE = [{"role": "system", "content": "You cut hair."}, *MESSAGES]


async def answer_later(name: str, arguments: Any) -> str:
    await asyncio.sleep(0)
    return f"{name} done"


def box(stop_after: int | None = None, **limits: Any) -> Toolbox:
    return Toolbox(TOOLS, answer_later, AgentLimits(**limits), stop_after=stop_after)


async def take(agent: Any, **more: Any) -> Any:
    return await drive(agent, DIALOGUE, box(**more))


def plain(messages, tools):  # type: ignore[no-untyped-def]
    assert messages == WHOLE
    return tools["dry"]()


async def awaits(messages: list[dict[str, Any]], tools: Tools) -> str:
    assert messages == WHOLE
    return await tools.call_async("dry")


def takes_the_dialogue(talk: Dialogue, tools: Tools) -> str:
    assert talk == DIALOGUE
    return tools.call("dry")


@pytest.mark.parametrize("function", [plain, awaits, takes_the_dialogue])
async def test_functions(function: Any) -> None:
    log = await take(CallableAgent(function))
    assert isinstance(log, AgentLog), log
    assert log.output == "dry done"
    assert [(e.name, e.status) for e in log.events] == [("dry", "ok")]


def single(request: str, tools: Tools) -> str:
    return request


def test_functions_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"takes a single request.*function\(messages, tools\)"):
        CallableAgent(single, dialogue=True)
    with pytest.raises(InputError, match=r"cannot be called as function\(messages, tools\)"):
        CallableAgent(lambda messages: "", dialogue=True)  # type: ignore[misc,arg-type]


HEAD = """
import json, sys
def send(**line):
    print(json.dumps(line), flush=True)
def receive():
    line = sys.stdin.readline()
    if not line: sys.exit(9)
    return json.loads(line)
start = receive()
"""


@pytest.fixture
def script(tmp_path: Any) -> Any:
    """Writes a program and returns the command that runs it."""

    def write(text: str, head: str = HEAD) -> str:
        path = tmp_path / "program.py"
        path.write_text(head + textwrap.dedent(text), encoding="utf-8")
        return f"{sys.executable} {path}"

    return write


async def test_a_command(script: Any) -> None:
    command = script("""
        send(type="call", id=7, name="dry", arguments={})
        answer = receive()
        send(type="final", content=json.dumps([start, answer]))
    """)
    log = await take(CommandAgent(command), seconds=30)
    assert isinstance(log, AgentLog), log
    start, answer = json.loads(log.output)
    assert start == {
        "type": "dialogue",
        "instructions": "You cut hair.",
        "messages": MESSAGES,
        "tools": [tool.function() for tool in TOOLS],
    }
    assert answer == {"type": "result", "id": 7, "content": "dry done"}


async def test_a_command_is_not_answered_after_the_last_call(script: Any, tmp_path: Any) -> None:
    mark = tmp_path / "asked"
    command = script(f"""
        send(type="calls", calls=[dict(id=n, name=name) for n, name in
                                  enumerate(["polish", "dry", "rinse"])])
        receive()
        open({str(mark)!r}, "w")
    """)
    tools = box(stop_after=1, seconds=30)
    log = await drive(CommandAgent(command), DIALOGUE, tools)
    assert isinstance(log, AgentLog), log
    assert (log.ending, log.output) == ("iterations", "")
    assert [(e.name, e.status) for e in log.events] == [("polish", "unknown_tool")]
    assert not mark.exists()


READER = """
import json, os, sys
talk = json.load(sys.stdin)
assert talk == json.load(open(os.environ["AGENTEVAL_DIALOGUE"], encoding="utf-8"))
assert talk == json.load(open(sys.argv[1], encoding="utf-8"))
assert "AGENTEVAL_REQUEST" not in os.environ
print(json.dumps(talk))
"""


@pytest.mark.slow
async def test_an_mcp_program_reads_the_dialogue_and_may_leave_the_server_alone(
    script: Any,
) -> None:
    log = await take(McpAgent(script("", READER) + " {dialogue_file}"), seconds=30)
    assert isinstance(log, AgentLog), log
    assert json.loads(log.output) == {
        "type": "dialogue",
        "instructions": "You cut hair.",
        "messages": MESSAGES,
    }


CLIENT = """
import asyncio, os, sys
from mcp import Client
async def main():
    async with Client(os.environ["AGENTEVAL_MCP_URL"]) as client:
        await client.call_tool("dry", {})
    open(sys.argv[1], "w")
asyncio.run(main())
"""


async def test_an_mcp_client_is_not_answered_after_the_last_call(
    script: Any, tmp_path: Any
) -> None:
    agent = McpAgent(script("", CLIENT) + f" {tmp_path / 'answered'}")
    log = await take(agent, stop_after=1, seconds=60)
    assert isinstance(log, AgentLog), log
    assert (log.ending, [(e.name, e.status) for e in log.events]) == ("iterations", [("dry", "ok")])
    assert not (tmp_path / "answered").exists()


# ---- --agent -------------------------------------------------------------------------------------


async def test_functions_and_classes_by_name(project: Any) -> None:
    (project / "desk.py").write_text(
        "def reply(messages, tools): return messages[-1]['content'].upper()\n"
        "class Clerk:\n"
        "    async def run(self, dialogue, tools):\n"
        "        return dialogue.instructions + await tools.call_async('dry')\n"
        "class Deaf:\n    async def listen(self, request, tools): return ''\n"
    )
    function = assistant("python:desk:reply")
    assert (await take(function.make())).output == "NOW DRY IT."
    assert function.name == "python:desk:reply"
    assert function.parameters["function"] == "desk:reply"
    clerk = assistant("python:desk:Clerk")
    assert (await take(clerk.make())).output == "You cut hair.dry done"
    assert clerk.make() is not clerk.make()
    assert clerk.sha256 != function.sha256
    with pytest.raises(InputError, match=r"lacks `async def run\(self, dialogue, tools\)`"):
        assistant("python:desk:Deaf")


@pytest.mark.parametrize("word", ["{request}", "--file={request_file}"])
def test_mcp_with_a_single_request_is_refused(project: Any, word: str) -> None:
    with pytest.raises(InputError, match=r"\{dialogue_file\}"):
        assistant(f"mcp:{sys.executable} agent.py {word}")
    assert system(f"mcp:{sys.executable} agent.py {word}").name.startswith("mcp:")


def examples() -> tuple[list[str], dict[str, str]]:
    """The specifications in the part of the documentation on conversations, and its files."""
    docs = Path(__file__).parents[2] / "docs" / "agents.md"
    text = docs.read_text(encoding="utf-8").partition("\n## In a conversation")[2]
    text = text.partition("\n## Agents of other frameworks")[0]  # run by tests/interop
    commands = re.findall(r"^```sh\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    files = re.findall(r"^```python\n# (\w+\.py)\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(command)[-1] for command in commands], dict(files)


SPECS, FILES = examples()


@pytest.mark.parametrize("spec", SPECS)
async def test_the_examples_of_the_docs(
    project: Any, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    for name, text in FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    log = await take(assistant(spec).make(), seconds=30)
    assert isinstance(log, AgentLog), log
    assert log.output == "All done."
    assert [(e.name, e.status) for e in log.events] == [("rinse", "ok"), ("dry", "ok")]
