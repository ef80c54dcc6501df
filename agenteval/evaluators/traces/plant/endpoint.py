"""The model of a world as an endpoint of chat completions: a policy, or a proxy before a model; and
the loopback server for it and for the service of the world of the run under way."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agenteval.errors import AgentevalError
from agenteval.evaluators.traces.pieces import estimate_tokens
from agenteval.evaluators.traces.plant.policy import (
    Call,
    Final,
    Mind,
    Policy,
    Seen,
    Slip,
    Step,
    in_words,
    obey,
    read,
    think,
)
from agenteval.evaluators.traces.plant.service import (
    Answer,
    Service,
    model_refusal,
    serve,
    sick,
    too_long,
)
from agenteval.evaluators.traces.plant.world import Act, Dice, Mouth, World

_LOST = (
    "I have a result in front of me, but I do not know what it was for. "
    "What would you like me to do?",
    "Thank you for the data. Could you tell me the task again? I have no record of it.",
    "Hello! How can I help you today? Please describe what you need.",
)


async def refused(world: World, body: Mapping[str, Any]) -> Answer | None:
    """What a sick endpoint answers to the next request; None when it goes on to the model."""
    world.requests += 1
    health = world.model
    if health.slow and health.spared <= 0 and health.healthy_after != 0:
        world.note("Timeout Issues")
        if health.healthy_after is not None:
            health.healthy_after -= 1
        await asyncio.sleep(health.slow)
    sickness = sick(
        world, health, lambda code: model_refusal(code, world.dice, "/v1/chat/completions")
    )
    if sickness is not None or world.mouth.spare_tokens is None:
        return sickness
    tokens = estimate_tokens(json.dumps(body["messages"]))
    world.window = world.window or tokens + world.mouth.spare_tokens
    if tokens <= world.window:
        return None
    world.note("Context Handling Failures")
    return too_long(tokens, world.window, world.dice)


async def answer_chat(world: World, policy: Policy, body: dict[str, Any]) -> Answer:
    """One chat completion: the next step of the policy, or the refusal of a sick endpoint."""
    refusal = await refused(world, body)
    if refusal is not None:
        return refusal
    number = world.requests - 1
    message = _reply(world, policy, body, number)
    usage = {
        "prompt_tokens": estimate_tokens(json.dumps(body["messages"])),
        "completion_tokens": estimate_tokens(json.dumps(message)),
    }
    usage["total_tokens"] = sum(usage.values())
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    value = {
        "id": f"chatcmpl-{number:04d}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "model"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }
    return Answer(200, json.dumps(value, ensure_ascii=False))


def _reply(world: World, policy: Policy, body: dict[str, Any], number: int) -> dict[str, Any]:
    """The message of the next step; mistakes that are made in it are noted."""
    mouth = world.mouth
    shown, forgotten = as_shown(body, mouth)
    seen = read(shown)
    if mouth.drop_system and not seen.react:
        seen = replace(seen, system="")
    if seen.request is None:
        world.note("Context Handling Failures")
        return in_words(Final(world.dice.pick(_LOST)), seen.react, number)
    if mouth.cut_request is not None:
        seen = replace(seen, request=seen.request[: mouth.cut_request])
    step = _next(world, policy, seen)
    if step is None:
        raise AgentevalError("the agent asked again after the last words")
    if step.slip is not None:
        _note_slip(world, step.slip, number)
    if isinstance(step, Final):
        if forgotten and _otherwise(step, _next(world, policy, read(body))):
            world.note("Context Handling Failures")
        return in_words(_last_words(world, step, seen), seen.react, number)
    return _asked(world, step, seen, number)


def _next(world: World, policy: Policy, seen: Seen) -> Step | None:
    mouth = world.mouth
    broken = mouth.break_call if mouth.break_call is not None else mouth.no_step
    return think(policy, Mind(seen, Dice("mind", world.demand), mouth.errs), seen, broken)


def _asked(world: World, step: Call, seen: Seen, number: int) -> dict[str, Any]:
    """The message that asks for a call, damaged where the model's decoding is."""
    mouth, turn = world.mouth, len(seen.observations)
    step = _as_offered(world, step)
    if turn == mouth.break_call:
        damaged = damage(json.dumps(step.arguments, ensure_ascii=False), world.dice)
        world.note("Formatting Errors", damaged)
        return in_words(step, seen.react, number, damaged)
    if turn == mouth.no_step and seen.react:
        world.note("Formatting Errors")
        return {"role": "assistant", "content": _prose(step, world.dice)}
    return in_words(step, seen.react, number)


def _otherwise(step: Final, whole: Step | None) -> bool:
    """Whether these are not the words of a model that remembers everything."""
    return not isinstance(whole, Final) or whole.text != step.text


def _note_slip(world: World, slip: Slip, number: int) -> None:
    act = Act(slip.category, slip.description, slip.impact, request=number)
    world.erred(act, last=slip.category == "Resource Abuse")


def as_shown(body: Mapping[str, Any], mouth: Mouth) -> tuple[dict[str, Any], bool]:
    """The request as the model sees it, and whether messages were dropped from it."""
    messages = body["messages"]
    first = [m for m in messages if m.get("role") == "system"]
    rest = messages[len(first) :]
    if mouth.window is None or len(rest) <= 3:
        return dict(body), False
    kept = [rest[0], *rest[-2:]] if mouth.window == "middle" else rest[-2:]
    return {**body, "messages": [*first, *kept]}, True


def _last_words(world: World, step: Final, seen: Seen) -> Final:
    """The final answer in the form that the model knows of, damaged where its decoding is."""
    said = obey(step, f"{seen.request}\n{seen.system}")
    wanted = obey(step, world.demand)
    if "Instruction Non-compliance" in world.why and said.text != wanted.text:
        world.note("Instruction Non-compliance", said.text[-80:])
    if world.mouth.break_final and wanted.text.startswith("{"):
        said = Final(damage_final(said.text, world.mouth.break_final))
        world.note("Formatting Errors", said.text[:200])
    return said


def _as_offered(world: World, step: Call) -> Call:
    """The call in the names of the schema that was offered: a model knows no others."""
    names = world.tools.rename.get(step.name)
    if not names:
        return step
    given = {names.get(k, k): v for k, v in step.arguments.items() if names.get(k, k)}
    return replace(step, arguments=given)


def damage(text: str, dice: Dice) -> str:
    """JSON as weak decoding leaves it: cut, with single quotes, with Python words, unquoted."""
    ways = (
        text[: max(1, len(text) - 2)],
        text.replace('"', "'"),
        text[:-1],
        text.replace('": ', '" = ', 1),
        text[:-1] + ", }",
        re.sub(r'^\{"(\w+)":', r"{\1:", text),
        text.replace('"', "\u201c", 1),
    )
    return dice.pick([way for way in ways if not _starts_with_json(way)])


def _starts_with_json(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return True


BROKEN_FINALS = ("cut", "quotes", "words", "comma")


def damage_final(text: str, how: str) -> str:
    """A final answer that had to be JSON and is not. Raises KeyError for an unknown way."""
    if how == "words":
        lines = [f"- {key}: {value}" for key, value in json.loads(text.split("\n")[0]).items()]
        return "Here is the result:\n" + "\n".join(lines)
    return {
        "cut": text[: len(text) // 2],
        "quotes": text.replace('"', "'"),
        "comma": text.replace("}", ",}", 1),
    }[how]


def _prose(step: Call, dice: Dice) -> str:
    return dice.pick(
        (
            f"I will now use {step.name} with the values that the user gave me.",
            f"Let me call {step.name}({', '.join(map(str, step.arguments.values()))}).",
            f"<{step.name}>{json.dumps(step.arguments)}</{step.name}>",
        )
    )


async def answer_upstream(world: World, upstream: str, key: str, body: dict[str, Any]) -> Answer:
    """The answer of the model at the URL `upstream`, or a refusal made here.

    Where the world's window is too small, messages are dropped before they are forwarded; where
    its decoding is weak, the arguments of a call are damaged. Streaming is not spoken.
    """
    import aiohttp

    refusal = await refused(world, body)
    if refusal is not None:
        return refusal
    shown, forgotten = as_shown(body, world.mouth)
    if forgotten:
        world.note("Context Handling Failures")
    headers = {"Authorization": key} if key else {}
    url = f"{upstream.rstrip('/')}/chat/completions"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json={**shown, "stream": False}, headers=headers) as answer,
    ):
        text, status, kind = await answer.text(), answer.status, answer.content_type
    if status == 200 and world.mouth.break_call is not None:
        text = _damaged(world, text)
    return Answer(status, text, kind)


def _damaged(world: World, text: str) -> str:
    """The reply with the arguments of its first call broken, once."""
    value = json.loads(text)
    calls = value["choices"][0]["message"].get("tool_calls") or []
    if not calls or any(act.category == "Formatting Errors" for act in world.acts):
        return text
    function = calls[0]["function"]
    function["arguments"] = damage(function["arguments"], world.dice)
    world.note("Formatting Errors", function["arguments"])
    return json.dumps(value, ensure_ascii=False)


if TYPE_CHECKING:
    from aiohttp import web


class Host:
    """A server on 127.0.0.1 in a thread of its own; a context manager.

    `/v1/chat/completions` is the model, everything below `/api/` the service. Tools that speak
    HTTP asynchronously use its event loop by `wait`.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="world", daemon=True)
        self._world: World | None = None
        self._service: Service | None = None
        self._policy: Policy | None = None
        self._upstream: str | None = None
        self._runner: Any = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = self.wait(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wait(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, Any], timeout: float = 30.0) -> Any:
        """The result of a coroutine that runs in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def show(
        self,
        world: World,
        service: Service,
        policy: Policy | None = None,
        upstream: str | None = None,
    ) -> None:
        """From now on, this world is served: by a policy, or by the model at `upstream`."""
        self._world, self._service = world, service
        self._policy, self._upstream = policy, upstream
        world.base_url = f"{self.url}/api"

    async def _open(self) -> str:
        from aiohttp import web

        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/api/{path:.*}", self._api)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _chat(self, request: web.Request) -> web.Response:
        world, body = self._world, await request.json()
        if world is not None and self._policy is not None:
            return await _guarded(world, answer_chat(world, self._policy, body))
        if world is None or self._upstream is None:
            raise AgentevalError("the host serves no model yet")
        key = request.headers.get("Authorization", "")
        return await _guarded(world, answer_upstream(world, self._upstream, key, body))

    async def _api(self, request: web.Request) -> web.Response:
        if self._world is None or self._service is None:
            raise AgentevalError("the host serves no world yet")
        path, key = request.match_info["path"], request.headers.get("Authorization", "")
        work = serve(self._world, self._service, f"/{path}", dict(request.query), key)
        return await _guarded(self._world, work)


async def _guarded(world: World, work: Coroutine[Any, Any, Answer]) -> web.Response:
    """The answer; a defect of a world in this package must not pass for one that was planted."""
    try:
        return _response(await work)
    except Exception as error:
        world.surprises.append(f"defect: {error!r}")
        raise


def _response(answer: Answer) -> web.Response:
    from aiohttp import web

    return web.Response(
        status=answer.status,
        text=answer.body,
        content_type=answer.content_type,
        headers=dict(answer.headers),
    )
