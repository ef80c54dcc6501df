"""A proxy before a real model: it forwards, and it is as sick as its world."""

from __future__ import annotations

import json
from typing import Any

from agenteval.evaluators.traces.plant.bodies import Answer
from agenteval.evaluators.traces.plant.endpoint import as_shown, damage, refused
from agenteval.evaluators.traces.plant.world import World


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
