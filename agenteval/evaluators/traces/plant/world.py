"""The world around one agent: a gateway before its tools and a proxy before its model, on loopback,
and the one thing that is wrong with them.

The fault really happens (the service answers 429, messages are dropped); where it first showed is
noted. That note is the gold.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from agenteval.agents.toolbox import Backend
from agenteval.errors import AgentevalError
from agenteval.evaluators.traces.pieces import estimate_tokens
from agenteval.records.finding import Impact

if TYPE_CHECKING:
    from aiohttp import web

VARIABLE, KEY = "SERVICE_KEY", "key-3f9a1c"
_HANGS = 1.2  # seconds; clients give up long before
_ROOM = 20  # tokens of a short context behind its first request
_TOLD = (  # what frameworks tell an agent of an exception
    "Error: {error}",
    "{kind}: {error}",
    "Tool execution failed with {kind}: {error}",
    "The tool raised an exception.\n{trace}",
)
_WORDS: Mapping[int, tuple[str, str]] = {  # all texts are ours, none is copied from a product
    429: ("Too many requests, slow down.", "Quota of 60 requests per minute exceeded."),
    401: ("The key that was sent has been revoked.", "Token expired at 08:00, sign in again."),
    403: ("This account may not read this resource.", "The caller lacks a permission."),
    404: ("There is no such record.", "The item was deleted or never existed."),
    500: ("An unexpected condition was met.", "NullPointerException at com.example.Reader.load"),
    503: ("Down for maintenance until noon.", "No healthy upstream."),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a world.

    `at` is where: "service" and "model" can be had around any agent, "sample" in the sample system
    alone. `status` is what is answered instead, `failures` times (None: for ever).
    """

    category: str
    name: str
    at: Literal["service", "model", "sample"]
    description: str
    impact: Impact = "HIGH"
    status: int = 0
    failures: int | None = None


_S: Literal["service"] = "service"
_M: Literal["model"] = "model"
_CONTEXT = "Context Handling Failures"
AROUND = (
    Fault("Rate Limiting", "service quota", _S, "the service refuses: too many requests",
          status=429),
    Fault("Rate Limiting", "model quota, then free", _M,
          "the model endpoint refuses twice: too many requests", "LOW", 429, 2),
    Fault("Rate Limiting", "model quota", _M, "the model endpoint refuses: too many requests",
          status=429),
    Fault("Authentication Errors", "revoked key", _S, "the service does not accept the key",
          status=401),
    Fault("Authentication Errors", "forbidden", _S, "the service denies access", status=403),
    Fault("Authentication Errors", "model key", _M, "the model endpoint does not accept the key",
          status=401),
    Fault("Service Errors", "defect", _S, "the service fails with an internal error", status=500),
    Fault("Service Errors", "down", _S, "the service is down", status=503),
    Fault("Service Errors", "model down, then up", _M, "the model endpoint is unavailable once",
          "LOW", 503, 1),
    Fault("Service Errors", "model defect", _M, "the model endpoint fails", status=500),
    Fault("Resource Not Found", "model gone", _M, "the model is not found at the endpoint",
          status=404),
    Fault("Timeout Issues", "service hangs", _S, "the service hangs beyond the client's timeout"),
    Fault("Timeout Issues", "model hangs", _M, "the model endpoint hangs beyond the timeout",
          "MEDIUM", failures=1),
    Fault("Environment Setup Errors", "variable", _S, "a variable of the environment is not set"),
    Fault("Resource Exhaustion", "device", _S, "there is no space left to write"),
    Fault("Formatting Errors", "broken arguments", _M, "the arguments of the call are no JSON",
          "LOW"),
    Fault(_CONTEXT, "too long", _M, "the conversation no longer fits into the model's context"),
    Fault(_CONTEXT, "oldest dropped", _M, "the task has fallen out of the model's context"),
    Fault(_CONTEXT, "middle dropped", _M,
          "results of earlier steps have fallen out of the model's context"),
)  # fmt: skip


@dataclass(slots=True)
class Place:
    """Where the fault showed: the n-th request to the model, or else the n-th call of a tool."""

    request: int
    call: int | None
    evidence: str = ""


@dataclass(slots=True)
class ToolCallMade:
    """One call that was carried out; `span` is "" where it had none of its own at that time.

    `asked` is the number of the request to the model whose answer asked for it.
    """

    name: str
    span: str
    asked: int
    answer: str = ""


class World:
    """All that one run depends on. Used by one run at a time."""

    def __init__(self, fault: Fault | None, rng: Random, folder: Path, spared: int = 0) -> None:
        self.fault = fault
        self.rng = rng
        self.folder = folder
        self.place: Place | None = None
        self.requests = 0
        self.calls: list[ToolCallMade] = []
        self.defects: list[str] = []  # of this package; they must not pass for what was planted
        self._calling = False
        self._spared = spared  # requests that are served before one is refused
        self._failures = fault.failures if fault else None
        self._window: int | None = None
        self._words, self._recorded = rng.choice(_TOLD), rng.random() < 0.6
        if self.has("device"):
            self._log.symlink_to("/dev/full")

    @property
    def _log(self) -> Path:
        return self.folder / "calls.log"

    def has(self, *names: str) -> bool:
        """Whether one of these is what is wrong."""
        return self.fault is not None and self.fault.name in names

    def note(self, evidence: str = "", *, last: bool = False) -> None:
        """The fault showed, in the call or the request under way. The first time counts, or the
        last."""
        if self.place is None or last:
            call = len(self.calls) - 1 if self._calling else None
            self.place = Place(self.requests - 1, call, evidence)

    def refuses(self, at: str) -> bool:
        """Whether the gateway ("service") or the proxy ("model") is out of order just now."""
        fault = self.fault
        if fault is None or fault.at != at or not (fault.status or fault.name.endswith("hangs")):
            return False
        if self._spared or self._failures == 0:
            self._spared = 0
            return False
        if self._failures:
            self._failures -= 1
        self.note(str(fault.status or ""))
        return True

    def refusal(self) -> tuple[int, str]:
        """Status and body of what the fault answers."""
        assert self.fault is not None
        status = self.fault.status
        error = {
            "message": self.rng.choice(_WORDS[status]),
            "type": HTTPStatus(status).phrase.lower().replace(" ", "_"),
            "code": status,
        }
        return status, json.dumps({"error": error})

    @contextmanager
    def environment(self) -> Iterator[None]:
        """The key of the service in the environment of this process, if the world has one."""
        before = os.environ.pop(VARIABLE, None)
        if not self.has("variable"):
            os.environ[VARIABLE] = KEY
        try:
            yield
        finally:
            os.environ.pop(VARIABLE, None)
            if before is not None:
                os.environ[VARIABLE] = before

    def behind_gateway(self, backend: Backend, url: str) -> Backend:
        """The tools, behind the gateway at `url`, which is asked before every call.

        A refusal of arguments (ValueError) is passed on; what the gateway's client raises is told
        to the agent.
        """

        def call(name: str, arguments: Mapping[str, Any]) -> str:
            span = tool_span()
            number = "" if span is None else format(span.get_span_context().span_id, "016x")
            self.calls.append(ToolCallMade(name, number, self.requests - 1))
            self._calling = True
            try:
                answer = self._pass(name, url) or backend(name, arguments)
            finally:
                self._calling = False
            self.calls[-1].answer = answer
            return answer

        return call

    def _pass(self, name: str, url: str) -> str | None:
        """None where the gateway lets the call pass, else what the agent is told."""
        try:
            headers = {"Authorization": f"Bearer {os.environ[VARIABLE]}"}
            request = urllib.request.Request(f"{url}/tools/{name}", headers=headers)  # noqa: S310
            patience = 0.25 if self.has("service hangs") else 5.0
            urllib.request.urlopen(request, timeout=patience).close()  # noqa: S310  loopback
            with self._log.open("a") as log:
                log.write(f"{name}\n")
        except Exception as error:  # noqa: BLE001  whatever it is, the agent is told
            return self.tell(error)
        return None

    def tell(self, error: Exception) -> str:
        """What the agent is told of a tool that failed; its span is told too, in most worlds."""
        if self.fault is None or self.fault.at == "model":
            self.defects.append(repr(error))
        self.note(str(error)[:200])
        span, kind = tool_span(), type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        stack = "\n".join([
            "Traceback (most recent call last):",
            *(f'  File "{Path(f.filename).name}", line {f.lineno}, in {f.name}' for f in frames),
            f"{kind}: {error}",
        ])  # fmt: skip
        if self._recorded and span is not None:
            from opentelemetry.trace import Status, StatusCode

            span.record_exception(error, {"exception.stacktrace": stack})
            span.set_status(Status(StatusCode.ERROR, f"{kind}: {error}"))
        return self._words.format(kind=kind, error=str(error) or kind, trace=stack)

    def too_long(self, body: Mapping[str, Any]) -> str | None:
        """The refusal of a request that no longer fits; None where it does."""
        if not self.has("too long"):
            return None
        tokens = estimate_tokens(json.dumps(body["messages"]))
        self._window = self._window or tokens + _ROOM
        if tokens <= self._window:
            return None
        self.note()
        words = (f"This model's maximum context length is {self._window} tokens. However, your "
                 f"messages resulted in {tokens} tokens.")  # fmt: skip
        code = "context_length_exceeded"
        error = {"message": words, "type": "invalid_request_error", "code": code}
        return json.dumps({"error": error})

    def shown(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as the model sees it: of a long one, only the ends."""
        first = [m for m in body["messages"] if m.get("role") == "system"]
        rest = body["messages"][len(first) :]
        if len(rest) <= 3 or not self.has("oldest dropped", "middle dropped"):
            return body
        self.note()
        kept = [*rest[: self.has("middle dropped")], *rest[-2:]]
        return {**body, "messages": [*first, *kept]}

    def spoken(self, text: str) -> str:
        """A chat completion as the agent gets it: of weak decoding, one call is no JSON."""
        if not self.has("broken arguments") or self.place is not None:
            return text
        value = json.loads(text)
        calls = value["choices"][0]["message"].get("tool_calls")
        if not calls:
            return text
        function = calls[0]["function"]
        function["arguments"] = damaged(function["arguments"], self.rng)
        self.note(function["arguments"])
        return json.dumps(value, ensure_ascii=False)


def damaged(text: str, rng: Random) -> str:
    """A JSON object as weak decoding leaves it: cut, with single quotes, unquoted."""
    ways = (
        text[:-1],
        text.replace('"', "'"),
        text[:-1] + ", }",
        re.sub(r'^\{"(\w+)":', r"{\1:", text),
    )
    return rng.choice([way for way in ways if not _is_json(way)])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def tool_span() -> Any:
    """The span of the tool call under way; None without one."""
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    attributes = getattr(span, "attributes", None) or {}
    return span if attributes.get("openinference.span.kind") == "TOOL" else None


Model = Callable[[dict[str, Any]], Awaitable[tuple[int, str]]]  # a request: status and reply


def upstream(url: str, key: str) -> Model:
    """The model at a URL. Streaming is not spoken."""

    async def ask(body: dict[str, Any]) -> tuple[int, str]:
        import aiohttp

        headers = {"Authorization": key} if key else {}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url.rstrip('/')}/chat/completions", json={**body, "stream": False},
                         headers=headers) as answer,
        ):  # fmt: skip
            return answer.status, await answer.text()

    return ask


class Host:
    """A server on 127.0.0.1 in a thread of its own; a context manager.

    `/v1/chat/completions` is the model, `/tools/NAME` the gateway.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="world", daemon=True)
        self._world: World | None = None
        self._model: Model | str | None = None
        self._runner: Any = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def show(self, world: World, model: Model | str | None) -> None:
        """From now on, this world is served; `model` is a function, or the URL of a model."""
        self._world, self._model = world, model

    async def _open(self) -> str:
        from aiohttp import web

        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._guarded(self._chat))
        app.router.add_get("/tools/{name}", self._guarded(self._gateway))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _end(self) -> None:
        await self._runner.cleanup()
        hanging = asyncio.all_tasks() - {asyncio.current_task()}
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    def _guarded(
        self, serve: Callable[[World, web.Request], Awaitable[tuple[int, str]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        from aiohttp import web

        async def answer(request: web.Request) -> web.Response:
            if self._world is None:
                raise AgentevalError("the host serves no world yet")
            try:
                status, text = await serve(self._world, request)
            except Exception as error:
                self._world.defects.append(repr(error))
                raise
            return web.Response(status=status, text=text, content_type="application/json")

        return answer

    async def _gateway(self, world: World, request: web.Request) -> tuple[int, str]:
        if world.refuses("service"):
            if not world.has("service hangs"):
                return world.refusal()
            await asyncio.sleep(_HANGS)
        return 200, json.dumps({"pass": request.match_info["name"]})

    async def _chat(self, world: World, request: web.Request) -> tuple[int, str]:
        body = await request.json()
        model = self._model
        if isinstance(model, str):
            model = upstream(model, request.headers.get("Authorization", ""))
        if model is None:
            raise AgentevalError("the host serves no model")
        world.requests += 1
        if world.refuses("model"):
            if not world.has("model hangs"):
                return world.refusal()
            await asyncio.sleep(_HANGS)
        refusal = world.too_long(body)
        if refusal is not None:
            return 400, refusal
        status, text = await model(world.shown(body))
        return status, world.spoken(text) if status == 200 else text
