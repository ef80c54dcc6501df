"""The MCP adapter: real clients in child processes, and raw requests for what they never send."""

import asyncio
import http.client
import json
import os
import sys
import textwrap
import time
from urllib.parse import urlsplit

import pytest

from agenteval.agents import AgentFailure, AgentLimits, Tool, Toolbox, drive
from agenteval.agents.mcp import McpAgent, served

START = {
    "type": "object",
    "properties": {
        "start": {"type": "integer", "minimum": 0, "description": "hour"},
        "how": {"enum": ["hot", "cold"]},
    },
    "required": ["start"],
    "additionalProperties": False,
}
TOOLS = [Tool(name="rinse", description="Rinse."), Tool(name="dry", parameters=START)]


def box(backend=lambda name, given: f"{name} ✓ {given.get('start')}", **limits):
    return Toolbox(TOOLS, backend, AgentLimits(**limits))


def seen(log):
    return [(e.name, e.arguments, e.status, e.turn) for e in log.events]


@pytest.fixture
def child(tmp_path):
    """Writes a script and returns the agent whose command runs it with the given words."""

    def write(text, words=""):
        script = tmp_path / "agent.py"
        script.write_text(textwrap.dedent(text), encoding="utf-8")
        return McpAgent(f"{sys.executable} {script} {words}")

    return write


CLIENT = """
    import asyncio, json, os, sys, time
    from mcp import Client
    async def main():
        request = sys.stdin.read()
        async with Client(os.environ["AGENTEVAL_MCP_URL"], mode=sys.argv[1]) as client:
            async def call(name, arguments=None):
                result = await client.call_tool(name, arguments)
                return result.content[0].text, result.is_error
            tools = (await client.list_tools()).tools
            said = [await call("dry", {"start": 9}), await call("rinse"), await call("polish", {}),
                    await call("dry", {"start": "9"})]
            both = await asyncio.gather(call("rinse", {}), call("dry", {"start": 1}))
            last = await call("rinse", {})
        print(json.dumps([request, [[t.name, t.description, t.input_schema] for t in tools],
                          said, last]))
    asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_client(child, mode):
    log = await drive(child(CLIENT, mode), "Dry – then rinse. ✓", box(seconds=60))
    assert log.ending == "finished", log
    request, tools, said, last = json.loads(log.output)
    assert request == "Dry – then rinse. ✓"
    assert tools == [[t.name, t.description, t.parameters] for t in TOOLS]
    assert said[:2] == [["dry ✓ 9", False], ["rinse ✓ None", False]]
    assert last == ["rinse ✓ None", False]
    assert [is_error for _, is_error in said[2:]] == [True, True]
    assert "no tool 'polish'" in said[2][0]
    assert "'9' is not of type 'integer'" in said[3][0]
    assert seen(log)[:4] == [
        ("dry", {"start": 9}, "ok", 0),
        ("rinse", {}, "ok", 1),
        ("polish", {}, "unknown_tool", 2),
        ("dry", {"start": "9"}, "bad_arguments", 3),
    ]
    assert sorted(seen(log)[4:6]) == [("dry", {"start": 1}, "ok", 4), ("rinse", {}, "ok", 4)]
    assert seen(log)[6:] == [("rinse", {}, "ok", 5)]


class Raw:
    """A session by hand; every method blocks and belongs into a thread."""

    def __init__(self, url, host=None, path=None):
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        self.path = path or parts.path
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if host:
            self.headers["Host"] = host

    def post(self, body):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request("POST", self.path, text, self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        if session := response.getheader("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        return response.status, json.loads(answer) if answer[:1] == b"{" else answer

    def begin(self):
        info = {"name": "raw", "version": "0"}
        given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        status, answer = self.post(rpc("initialize", given))
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return status, answer

    def call(self, params):
        return self.post(rpc("tools/call", params))[1]


def rpc(method, params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def in_session(tools, work):
    """The result of `work(client)` in a thread, with the tools served."""
    async with served(tools) as offer:

        def run():
            client = Raw(offer.url)
            client.begin()
            return work(client)

        return await asyncio.to_thread(run)


@pytest.mark.parametrize(
    "params",
    [
        {"name": "rinse", "arguments": [1]},
        {"name": "rinse", "arguments": "{}"},
        {"name": 5, "arguments": {}},
        {"arguments": {}},
    ],
)
async def test_what_the_sdk_refuses_is_logged(params):
    tools = box()
    answer = await in_session(tools, lambda client: client.call(params))
    assert "error" in answer
    (event,) = tools.events
    assert (event.name, event.status) == ("", "malformed")
    assert json.loads(event.arguments).items() >= params.items()


async def test_only_this_path_and_host_and_only_while_it_runs():
    tools = box()
    async with served(tools) as offer:
        path = urlsplit(offer.url).path
        assert len(path) > 32
        wrong = [Raw(offer.url, path=p) for p in ("/mcp", "/", path + "x", path[:-5])]
        for client in wrong:
            assert (await asyncio.to_thread(client.begin))[0] == 404
        assert not offer.used
        foreign = Raw(offer.url, host="evil.example:80")
        assert (await asyncio.to_thread(foreign.begin))[0] == 421
        script = Raw(offer.url)
        script.headers["Origin"] = "https://evil.example"
        assert (await asyncio.to_thread(script.begin))[0] == 403
        assert (await asyncio.to_thread(Raw(offer.url).begin))[0] == 200
        assert offer.used
    with pytest.raises(OSError):
        await asyncio.to_thread(Raw(offer.url).begin)


# A child that needs no MCP package: it asks the server once, by hand.
ASK = """
    import json, os, sys, time, urllib.request
    def post(method, params, session={}):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream", **session}
        plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        r = plain.open(urllib.request.Request(URL, json.dumps(body).encode(), headers))
        session.setdefault("Mcp-Session-Id", r.headers["Mcp-Session-Id"])
        return json.load(r)
    def begin():
        info = {"name": "raw", "version": "0"}
        post("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                            "clientInfo": info})
    def call(name):
        return post("tools/call", {"name": name, "arguments": {}})["result"]
    URL = os.environ["AGENTEVAL_MCP_URL"]
"""


async def test_what_the_command_is_told(child):
    words = "--at={url} --prompt {request} -f {request_file} --config {config} {other}"
    agent = child(
        ASK
        + """
    begin()
    call("rinse")
    config = json.load(open(os.environ["AGENTEVAL_MCP_FILE"]))
    text = open(os.environ["AGENTEVAL_REQUEST"], encoding="utf-8").read()
    print(json.dumps([sys.argv[1:], URL, config, text, sys.stdin.read(),
                      [os.environ["AGENTEVAL_REQUEST"], os.environ["AGENTEVAL_MCP_FILE"]]]))
    """,
        words,
    )
    request = 'Dry; "then" $(rinse) {url} ✓\nplease'
    log = await drive(agent, request, box(seconds=30))
    words, url, config, text, stdin, files = json.loads(log.output)
    assert words == [
        f"--at={url}",
        "--prompt",
        request,
        "-f",
        files[0],
        "--config",
        files[1],
        "{other}",
    ]
    assert config == {"mcpServers": {"agenteval": {"type": "http", "url": url}}}
    assert text == stdin == request
    assert not any(map(os.path.exists, files))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("sys.exit(3)", "the command ended with exit code 3; stderr: the reason"),
        ("os.kill(os.getpid(), 9)", "the command ended with exit code -9; stderr: the reason"),
    ],
)
async def test_a_command_that_fails_is_no_verdict(child, end, message):
    agent = child(
        ASK
        + f"""
    begin()
    call("rinse")
    print("the reason", file=sys.stderr, flush=True)
    {end}
    """
    )
    failure = await drive(agent, "", box(seconds=30))
    assert isinstance(failure, AgentFailure)
    assert (failure.status, failure.message) == ("error:infrastructure", message)
    assert [e.name for e in failure.events] == ["rinse"]


async def test_a_command_that_never_asked_is_no_verdict(child):
    failure = await drive(child("print('I need no tools')"), "", box(seconds=30))
    assert isinstance(failure, AgentFailure)
    assert failure.message == "the command never asked the MCP server; stderr is empty"


async def test_a_timeout_ends_the_command(child):
    agent = child(
        ASK
        + """
    begin()
    call("rinse")
    print("thinking", flush=True)
    time.sleep(60)
    """
    )
    began = time.monotonic()
    log = await drive(agent, "", box(seconds=2))
    assert (log.ending, log.output, [e.name for e in log.events]) == ("timeout", "", ["rinse"])
    assert time.monotonic() - began < 4.5
