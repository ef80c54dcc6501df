"""The tools as an MCP server, and a foreign command that uses them.

Every case has a server of its own (streamable HTTP on 127.0.0.1, a free port, an unguessable path),
which ends with it. The log holds the calls that the server received; the command's stdout is its
final answer. The command is told where the server is by its environment and by placeholders:

====================  ==================  ====================================================
in the command        environment         what it is
====================  ==================  ====================================================
``{url}``             AGENTEVAL_MCP_URL   the server's URL
``{config}``          AGENTEVAL_MCP_FILE  a JSON file ``{"mcpServers": {"agenteval": {...}}}``
``{request}``                             the request, as one word
``{request_file}``    AGENTEVAL_REQUEST   a text file that holds it; it is on stdin as well
``{dialogue_file}``   AGENTEVAL_DIALOGUE  in conversations, in the place of the request: a JSON
                                          file ``{"type": "dialogue", "instructions": ...,
                                          "messages": [...]}``; it is on stdin as well
====================  ==================  ====================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.agents.command import first_line
from agenteval.agents.process import running, split
from agenteval.agents.protocol import CallStatus, Dialogue
from agenteval.agents.toolbox import Toolbox, clean
from agenteval.errors import InputError, ModelUnavailable

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

_MAX_OUTPUT = 100_000  # bytes of stdout
_HOLD = 0.03  # seconds
_VARIABLES = {
    "{url}": "AGENTEVAL_MCP_URL",
    "{config}": "AGENTEVAL_MCP_FILE",
    "{request_file}": "AGENTEVAL_REQUEST",
    "{dialogue_file}": "AGENTEVAL_DIALOGUE",
}


@dataclass(slots=True)
class Offer:
    """The server that offers the tools, and whether a client has requested them."""

    url: str
    used: bool = False


class McpAgent:
    """An agent that is an MCP client: a command, started for every case without a shell.

    Raises InputError for a command that cannot be run and ModelUnavailable without `mcp`.
    """

    def __init__(self, command: str) -> None:
        require_mcp()
        self._words = split(command)

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Its stdout, of which the last 100,000 bytes are kept.

        Raises ModelError when it fails (exit code), or never asked the server for anything though
        it was given a request; InputError when it cannot be started, or for the placeholder of a
        request in a conversation. Its whole process group is killed at the end.
        """
        is_single = dialogue.instructions is None
        if is_single:
            task = clean(dialogue.messages[-1].content)
        else:
            check_placeholders(self._words)
            task = clean(json.dumps(first_line(dialogue), ensure_ascii=False))
        async with served(tools) as offer:
            with tempfile.TemporaryDirectory(prefix="agenteval-") as folder:
                values = _told(Path(folder), task, offer.url, is_single=is_single)
                words = list(self._words)
                for placeholder, value in values.items():  # the request last: its text stays
                    words = [word.replace(placeholder, value) for word in words]
                environment = {_VARIABLES[p]: v for p, v in values.items() if p in _VARIABLES}
                async with running(words, environment) as child:
                    writing = asyncio.ensure_future(child.write(task.encode(), last=True))
                    try:
                        output = await child.text(_MAX_OUTPUT)
                        code = await child.exit_code()
                    finally:
                        writing.cancel()
                    if code != 0:
                        raise await child.failed(f"the command ended with exit code {code}")
                    if is_single and not offer.used:
                        raise await child.failed("the command never asked the MCP server")
        return output.strip()


def check_placeholders(words: Sequence[str]) -> None:
    """Raise InputError for a command that asks for a single request, where there is a dialogue."""
    for placeholder in ("{request}", "{request_file}"):
        if any(placeholder in word for word in words):
            raise InputError(
                f"{placeholder} stands for a single request; a conversation is in {{dialogue_file}}"
                " (JSON), and on stdin",
                "--agent",
            )


def require_mcp() -> None:
    """Raise ModelUnavailable, with the install command, if the package `mcp` is missing."""
    try:  # all of it here: a second of imports must not stop the event loop during a case
        for name in ("mcp.server.lowlevel", "mcp.server.streamable_http_manager", "uvicorn"):
            importlib.import_module(name)
    except ImportError as error:
        raise ModelUnavailable(
            "the adapter mcp needs the package mcp: pip install 'agenteval[mcp]'"
        ) from error


@contextlib.asynccontextmanager
async def served(tools: Toolbox, hold: float = _HOLD) -> AsyncIterator[Offer]:
    """Offer the tools at `Offer.url` until the block ends.

    MCP does not say which calls a model requested together. Calls that arrive within `hold` seconds
    of a call, before its answer is sent, count as the same turn; a client that waits for answers is
    unaffected. Raises ModelUnavailable without the package `mcp`.
    """
    require_mcp()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    names = ["127.0.0.1:*", "localhost:*"]  # scripts of web pages send other hosts
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    turns = _Turns(tools, hold)
    server = _server(tools, turns)
    manager = StreamableHTTPSessionManager(server, json_response=True, security_settings=security)
    path = f"/{secrets.token_urlsafe(24)}/mcp"
    offer = Offer("")

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == path:
            offer.used = True
            with contextlib.suppress(asyncio.CancelledError):  # only at the end, by ourselves
                await manager.handle_request(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async with manager.run(), _listening(application) as port:
        offer.url = f"http://127.0.0.1:{port}{path}"
        try:
            yield offer
        finally:
            turns.answer()  # the SDK would wait a second for calls under way


class _Turns:
    """Puts calls into turns and carries them out; see `served`."""

    def __init__(self, tools: Toolbox, hold: float) -> None:
        self._tools = tools
        self._hold = hold
        self._open: asyncio.Event | None = None  # set when the turn under way is answered
        self._turn = 0

    async def call(self, name: str, arguments: object) -> tuple[CallStatus | None, str]:
        """Carry out a call; returns when its whole turn is answered."""
        if self._open is None:
            self._open, self._turn = asyncio.Event(), self._tools.turn()
            asyncio.get_running_loop().call_later(self._hold, self._due, self._open)
        answered = self._open
        answer = await self._tools.attempt_async(name, arguments, turn=self._turn)
        await answered.wait()
        return answer

    async def hold(self) -> None:
        """Wait for the end."""
        self._open = self._open or asyncio.Event()
        await self._open.wait()

    def _due(self, turn: asyncio.Event) -> None:
        """Answer, unless the agent needs no further requests: then wait for its end."""
        if not self._tools.seen_enough:
            self.answer(turn)

    def answer(self, turn: asyncio.Event | None = None) -> None:
        """Have the given turn, or the one under way, answered."""
        turn = turn or self._open
        if turn is not None:
            turn.set()
        if turn is self._open:
            self._open = None


def _server(tools: Toolbox, turns: _Turns) -> Server[Any]:
    """The protocol's side: schemas are unchanged, and only the toolbox checks calls."""
    from mcp import types
    from mcp.server.lowlevel.server import Server

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=t.name, description=t.description, input_schema=dict(t.parameters))
                for t in tools.tools
            ]
        )

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        status, answer = await turns.call(params.name, params.arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer)], is_error=status != "ok"
        )

    async def log_unreadable(ctx: Any, call_next: Any) -> Any:
        """The SDK refuses such a call before any handler sees it."""
        params = ctx.params or {}
        name, arguments = params.get("name"), params.get("arguments")
        readable = isinstance(name, str) and isinstance(arguments, Mapping | None)
        if ctx.method == "tools/call" and not readable:
            tools.malformed(json.dumps(ctx.params, ensure_ascii=False, default=str))
            if tools.seen_enough:
                await turns.hold()
        return await call_next(ctx)

    server: Server[Any] = Server(
        "agenteval",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _name: None,
    )
    server.middleware[:] = [log_unreadable]
    return server


@contextlib.asynccontextmanager
async def _listening(application: Any) -> AsyncIterator[int]:
    """Serve an ASGI application on 127.0.0.1; yields the port."""
    import uvicorn

    class Listener(uvicorn.Server):
        def capture_signals(self) -> contextlib.nullcontext[None]:  # type: ignore[override]
            """Leave the signals to the command."""
            return contextlib.nullcontext()

    config = uvicorn.Config(
        application,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=86_400,  # an agent may think for longer than the usual 5 s
        timeout_graceful_shutdown=0,  # no client reads the answers any more
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Listener(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


def _told(folder: Path, task: str, url: str, *, is_single: bool) -> dict[str, str]:
    """The placeholders and their values; the files are written into `folder`."""
    config = folder / "mcp.json"
    servers = {"agenteval": {"type": "http", "url": url}}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    file = folder / ("request.txt" if is_single else "dialogue.json")
    file.write_text(task, encoding="utf-8")
    values = {"{url}": url, "{config}": str(config)}
    if not is_single:
        return {**values, "{dialogue_file}": str(file)}
    # arguments cannot contain NUL
    return {**values, "{request_file}": str(file), "{request}": task.replace("\0", " ")}
