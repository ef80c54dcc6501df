"""Real child processes that speak JSON lines, well and badly."""

import asyncio
import contextlib
import json
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from agenteval.agents import AgentFailure, AgentLimits, Tool, Toolbox, drive
from agenteval.agents.command import CommandAgent
from agenteval.errors import InputError

START = {
    "type": "object",
    "properties": {"start": {"type": "integer"}},
    "required": ["start"],
    "additionalProperties": False,
}
TOOLS = [Tool(name="rinse", description="Rinse."), Tool(name="dry", parameters=START)]

# A client in a few lines, standard library only.
HEAD = """
import json, os, signal, sys, time
def send(**line):
    print(json.dumps(line), flush=True)
def receive():
    line = sys.stdin.readline()
    if not line: sys.exit(9)
    return json.loads(line)
def call(name, arguments=None, id=1):
    send(type="call", id=id, name=name, arguments=arguments)
    return receive()
start = receive()
"""


def box(**limits):
    return Toolbox(
        TOOLS, lambda name, given: f"{name} ✓ {given.get('start')}", AgentLimits(**limits)
    )


@pytest.fixture
def child(tmp_path):
    """Writes a script and returns the command that runs it."""

    def write(text, head=HEAD):
        script = tmp_path / "agent one.py"
        script.write_text(head + textwrap.dedent(text), encoding="utf-8")
        return CommandAgent(f"{sys.executable} '{script}' --flag")

    return write


def seen(log):
    return [(e.name, e.arguments, e.status, e.turn) for e in log.events]


async def test_a_whole_conversation(child, tmp_path):
    agent = child(f"""
        open({str(tmp_path / "start.json")!r}, "w").write(json.dumps(start))
        send(type="message", content="först ✓")
        one = call("dry", {{"start": 9}}, id="a")
        two = call("rinse", id=2)
        send(type="final", content=json.dumps([one, two, sys.argv[1:]]))
    """)
    log = await drive(agent, "Dry – then rinse.", box())
    assert json.loads((tmp_path / "start.json").read_text()) == {
        "type": "start",
        "request": "Dry – then rinse.",
        "tools": [tool.function() for tool in TOOLS],
    }
    assert json.loads(log.output) == [
        {"type": "result", "id": "a", "content": "dry ✓ 9"},
        {"type": "result", "id": 2, "content": "rinse ✓ None"},
        ["--flag"],
    ]
    assert seen(log) == [("dry", {"start": 9}, "ok", 0), ("rinse", {}, "ok", 1)]
    assert [(m.role, m.content) for m in log.messages] == [("assistant", "först ✓")]
    assert log.ending == "finished"


async def test_simultaneous_calls(child):
    agent = child("""
        both = [{"id": n, "name": "dry", "arguments": {"start": n}} for n in (1, 2)]
        send(type="calls", calls=both)
        ids = [receive()["id"], receive()["id"]]
        call("rinse", "{}")
        send(type="final", content=str(ids))
    """)
    log = await drive(agent, "", box())
    assert [(e.name, e.turn) for e in log.events] == [("dry", 0), ("dry", 0), ("rinse", 1)]
    assert log.output == "[1, 2]"


@pytest.mark.parametrize(
    "line",
    [
        "Loading weights ...",
        "[1, 2]",
        "null",
        '{"type": "call"}',
        '{"type": "call", "name": 5}',
        '{"type": "calls", "calls": []}',
        '{"type": "calls", "calls": [{"name": "rinse"}, 3]}',
        '{"type": "message", "content": 4}',
        '{"type": "final", "content": ["done"]}',
        '{"type": "tool_call", "name": "rinse"}',
        '{"name": "rinse"}',
        "[" * 50_000,
    ],
)
async def test_a_line_that_cannot_be_used(child, line):
    agent = child(f"""
        print({line!r}, flush=True)
        answer = receive()
        send(type="final", content=answer["type"] + ": " + answer["message"])
    """)
    log = await drive(agent, "", box())
    assert seen(log) == [("", line[:2000], "malformed", 0)]
    assert log.output.startswith("error: ")


async def test_a_huge_line_is_cut_and_the_next_one_read(child):
    agent = child("""
        sys.stdout.write('{"type": "call", "name": "' + "x" * 5_000_000 + '"}\\n')
        call("rinse")
        answer = receive()
        send(type="final", content="done")
    """)
    log = await drive(agent, "", box())
    assert [(e.name, e.status, len(str(e.arguments))) for e in log.events] == [
        ("", "malformed", 2000),
        ("rinse", "ok", 2),
    ]
    assert log.output == "done"


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("sys.exit(3)", "ended (exit code 3)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended (exit code -9)"),
        ("1 / 0", "ended (exit code 1)"),
        ("pass", "ended (exit code 0)"),  # a wrong command must not become a wrong plan
        ("os.close(1); time.sleep(20)", "closed its stdout"),
    ],
)
async def test_an_end_without_last_words_is_no_verdict(child, end, how):
    agent = child(f"""
        call("rinse")
        print("x" * 10_000, "the reason", file=sys.stderr, flush=True)
        {end}
    """)
    failure = await drive(agent, "", box(seconds=15))
    assert isinstance(failure, AgentFailure)
    assert failure.status == "error:infrastructure"
    assert f"the command {how} before a final line; stderr: …" in failure.message
    if end != "1 / 0":
        assert failure.message.endswith("x the reason")
    assert "ZeroDivisionError" in failure.message or end != "1 / 0"
    assert len(failure.message) < 500
    assert [e.name for e in failure.events] == ["rinse"]


async def test_stderr_without_end_does_not_block(child):
    agent = child("""
        sys.stderr.write("noise\\n" * 500_000)
        call("rinse")
        send(type="final", content="done")
    """)
    assert (await drive(agent, "", box())).output == "done"


async def test_too_many_messages(child):
    agent = child("""
        while True: send(type="message", content="on and on")
    """)
    failure = await drive(agent, "", box(seconds=20))
    assert "more than 1000 messages" in failure.message


def alive(pid):
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    return False


def children():
    """Children of this process, zombies among them."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


SPAWN = """
import subprocess
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(PIDS, "w").write(f"{os.getpid()} {inner.pid}")
"""


async def gone(path):
    pids = [int(pid) for pid in path.read_text().split()]
    for _ in range(100):
        if not any(map(alive, pids)):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_timeout_kills_the_whole_group(child, tmp_path, deaf):
    before = children()
    agent = child(
        SPAWN.replace("PIDS", repr(str(tmp_path / "pids")))
        + ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if deaf else "")
        + 'call("rinse")\ntime.sleep(60)\n'
    )
    began = time.monotonic()
    log = await drive(agent, "", box(seconds=1.5))
    assert (log.ending, len(log.events)) == ("timeout", 1)
    assert time.monotonic() - began < 4
    assert await gone(tmp_path / "pids")
    assert children() == before  # no zombies


async def test_a_crash_is_seen_although_the_pipes_are_held(child, tmp_path):
    agent = child(SPAWN.replace("PIDS", repr(str(tmp_path / "pids"))) + "sys.exit(4)\n")
    began = time.monotonic()
    failure = await drive(agent, "", box(seconds=30))
    assert "exit code 4" in failure.message
    assert time.monotonic() - began < 5
    assert await gone(tmp_path / "pids")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "a command is needed"),
        ("   ", "a command is needed"),
        ("python 'agent.py", "cannot be split into words"),
        ("no-such-program-here --x", "the program 'no-such-program-here' does not exist"),
        ("/etc/passwd", "the program '/etc/passwd' does not exist"),
    ],
)
def test_commands_that_cannot_be_run(command, said):
    with pytest.raises(InputError) as caught:
        CommandAgent(command)
    assert said in str(caught.value)


async def test_no_shell(child, tmp_path):
    agent = CommandAgent(f"{sys.executable} -c pass ; touch {tmp_path / 'shell'}")
    failure = await drive(agent, "", box())
    assert isinstance(failure, AgentFailure)
    assert not (tmp_path / "shell").exists()
