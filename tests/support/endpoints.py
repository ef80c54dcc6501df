"""An endpoint whose model name picks how it behaves: what OpenAI-compatible servers really do.

`with behaving() as url:` serves it in a thread. A behaviour gets the request's body, the number of
requests before it for the same model and the text of its messages. It returns a completion, or a
`web.Response`, or raises nothing: whatever is odd about it is meant.
"""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]
Play = Callable[[Body, int, str], Any]
PLAYS: dict[str, Play] = {}
WORDS = "Unknown parameter: 'seed' is not supported by this model"
FILTERED = "FILTERME"  # in a prompt: what the moderated endpoints refuse


def plays(play: Play) -> Play:
    """Register a behaviour under the name of its function."""
    PLAYS[play.__name__] = play
    return play


def form(b: Body) -> Any:
    """The form that a request asks for; None without."""
    return (b.get("response_format") or {}).get("type")


def label(body: Body) -> str:
    """A good answer to the question: the last level of each criterion."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    named = schema["properties"] if schema else {"clear": None}
    return json.dumps({name: {"explanation": "fine", "label": "good"} for name in named})


def reply(content: Any, finish: Any = "stop", usage: Any = ..., **message: Any) -> Body:
    """A chat completion around a message."""
    message = {"role": "assistant", "content": content, **message}
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "x",
        "object": "chat.completion",
        "model": "m-2026",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": counted if usage is ... else usage,
    }


def refuse(status: int, body: Any, **headers: str) -> web.Response:
    """An error with a body of any form."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        return web.Response(text=body, status=status, headers=named)
    return web.json_response(body, status=status, headers=named)


def error(status: int, message: Any, code: Any = None, **more: Any) -> web.Response:
    """An error in OpenAI's form."""
    return refuse(status, in_openai_form(message, code, **more))


# ---- refusals of a parameter ---------------------------------------------------------------------

_MISTRAL = {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
BODIES: dict[str, tuple[int, Any]] = {
    "s_list": (400, [{"error": {"code": 400, "message": WORDS, "status": "INVALID_ARGUMENT"}}]),
    "s_string": (400, {"error": WORDS}),
    "s_mistral": (422, {"object": "error", "message": _MISTRAL, "type": "invalid_request"}),
    "s_plain": (400, WORDS),
    "s_detail": (400, {"detail": WORDS}),
    "s_errors": (400, {"errors": [{"message": WORDS, "code": 7}]}),
    "s_raw": (
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": json.dumps({"error": {"message": WORDS}}),
                    "provider_name": "X",
                },
            }
        },
    ),
    "s_cohere": (400, {"id": "1", "message": WORDS}),
    "s_bedrock": (400, {"__type": "ValidationException", "message": WORDS}),
    "s_html": (400, f"<html><body><h1>Bad Request</h1><p>{WORDS}</p></body></html>"),
}
_MAX_RANGE = "Invalid max_tokens value, the valid range of max_tokens is [1, 1500]"
_GEMMA = "Developer instruction is not enabled for models/gemma-3-27b-it"
_ALTERNATE = "Conversation roles must alternate user/assistant/user/..."
_LITELLM = "litellm.UnsupportedParamsError: it does not support parameters: ['seed'], for model=m"
_SCHEMA = "The specified schema produces a constraint that has too many states."
_ROUTED = {"message": "No endpoints found that can handle the requested parameters.", "code": 404}


def in_openai_form(message: str, code: Any = None, **more: Any) -> Body:
    """The body of an error of OpenAI."""
    inner = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return {"error": {**inner, **more}}


# name: what is refused, the status and the body; everything else is answered
REFUSED: dict[str, tuple[Callable[[Body], Any], int, Any]] = {
    **{name: (lambda b: "seed" in b, *shape) for name, shape in BODIES.items()},
    "only_max_tokens": (
        lambda b: "max_completion_tokens" in b,
        400,
        in_openai_form("Unrecognized request argument supplied: max_completion_tokens"),
    ),
    "max_range": (lambda b: b.get("max_tokens", 0) > 1500, 400, in_openai_form(_MAX_RANGE)),
    "kimi_temperature": (
        lambda b: "temperature" in b,
        400,
        in_openai_form("invalid temperature: only 1 is allowed for this model"),
    ),
    "too_many_states": (lambda b: form(b) == "json_schema", 400, in_openai_form(_SCHEMA)),
    "no_form_unnamed": (form, 400, in_openai_form("Bad Request")),
    "lmstudio_form": (
        lambda b: form(b) == "json_object",
        400,
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
    ),
    "form_501": (form, 501, {"error": "json_schema is not implemented for this backend"}),
    "form_500": (form, 500, {"error": {"message": "guided_json is not supported by this engine"}}),
    "groq_always": (form, 400, in_openai_form("Failed to generate JSON.", "json_validate_failed")),
    "openrouter_404": (form, 404, {"error": _ROUTED}),
    "system_role": (
        lambda b: any(m["role"] == "system" for m in b["messages"]),
        400,
        in_openai_form("System role not supported"),
    ),
    "alternate": (lambda b: b["messages"][0]["role"] == "system", 400, {"message": _ALTERNATE}),
    "gemma": (
        lambda b: b["messages"][0]["role"] == "system",
        400,
        [{"error": {"code": 400, "message": _GEMMA}}],
    ),
    "detail": (
        lambda b: "seed" in b,
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "seed"],
                    "input": 0,
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
    ),
    "azure_param": (lambda b: "seed" in b, 400, in_openai_form("Invalid request.", param="seed")),
    "invalidparam": (lambda b: "seed" in b, 400, in_openai_form("Invalid parameter: seed")),
    "litellm": (
        lambda b: "seed" in b,
        400,
        in_openai_form(_LITELLM, "400", type="None", param="None"),
    ),
    "bedrock_key": (
        lambda b: "seed" in b,
        400,
        {"message": "Malformed input request: #: extraneous key [seed] is not permitted"},
    ),
    "s_404": (bool, 404, {"error": "model 'llama9' not found, try pulling it first"}),
    "s_401": (
        bool,
        401,
        [{"error": {"code": 401, "message": "API key not valid. Please pass a valid API key."}}],
    ),
    "all_403": (bool, 403, "Forbidden"),
    "no_credit": (bool, 400, in_openai_form("Your credit balance is too low to access the API.")),
}
_AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management "
_AZURE += "policy."
_MODERATION = {
    "code": 403,
    "message": "Your chosen model requires moderation and your input was flagged for violence.",
    "metadata": {"reasons": ["violence"]},
}
_XAI = "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"
_INSPECTED = "Input data may contain inappropriate content."
# name: the status and the body for a prompt with FILTERED
MODERATED: dict[str, tuple[int, Any]] = {
    "azure_filter": (
        400,
        in_openai_form(
            _AZURE,
            "content_filter",
            param="prompt",
            innererror={"code": "ResponsibleAIPolicyViolation"},
        ),
    ),
    "or_moderation": (403, {"error": _MODERATION}),
    "xai_403": (403, {"code": "forbidden", "error": _XAI}),
    "dashscope": (400, in_openai_form(_INSPECTED, "data_inspection_failed")),
    "waf_403": (403, "<html><title>403 Forbidden</title><body>blocked</body></html>"),
    "filter_200": (
        200,
        {"error": {"code": "content_filter", "message": "flagged by the content filter"}},
    ),
    "gemini_filter": (
        200,
        {"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT", "index": 0}]},
    ),
}


def _refusing(refuses: Callable[[Body], Any], status: int, body: Any) -> Play:
    return lambda b, n, t: refuse(status, body) if refuses(b) else reply(label(b))


def _moderating(status: int, body: Any) -> Play:
    return lambda b, n, t: refuse(status, body) if FILTERED in t else reply(label(b))


PLAYS["good"] = lambda b, n, t: reply(label(b))
PLAYS |= {name: _refusing(*row) for name, row in REFUSED.items()}
PLAYS |= {name: _moderating(*row) for name, row in MODERATED.items()}


@plays
def gpt5(b: Body, n: int, t: str) -> Any:
    if "max_tokens" in b:
        said = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        said += "Use 'max_completion_tokens' instead."
        return error(400, said, "unsupported_parameter", param="max_tokens")
    if b.get("temperature", 1) != 1:
        said = "'temperature' does not support 0.5. Only the default (1) value is supported."
        return error(400, said, "unsupported_value", param="temperature")
    return reply(label(b))


@plays
def reasons_forever(b: Body, n: int, t: str) -> Any:
    spent = {"prompt_tokens": 900, "completion_tokens": b.get("max_tokens") or 30_000}
    return reply(None, "length", usage=spent, reasoning_content="hm, hm")


@plays
def groq_fail(b: Body, n: int, t: str) -> Any:
    if b.get("response_format") and n % 3 == 0:
        said = "Failed to generate JSON. Please adjust your prompt. See 'failed_generation'."
        return error(400, said, "json_validate_failed", failed_generation="{...")
    return reply(label(b))


@plays
def maxtoolarge(b: Body, n: int, t: str) -> Any:
    if (limit := b.get("max_tokens", 0)) > 1024:
        said = f"max_tokens is too large: {limit}. This model supports at most 1024 completion "
        return error(400, f"{said}tokens, whereas you provided {limit}.", param="max_tokens")
    return reply(label(b))


@plays
def vllm_context(b: Body, n: int, t: str) -> Any:
    if (limit := b.get("max_tokens", 0)) > 1000:
        said = "This model's maximum context length is 2000 tokens. However, you requested "
        said += f"{1000 + limit} tokens (1000 in the messages, {limit} in the completion)."
        return refuse(400, {"object": "error", "message": said, "code": 400})
    return reply(label(b))


@plays
def tgi(b: Body, n: int, t: str) -> Any:
    if b.get("max_tokens", 0) > 1096:
        said = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: "
        said += f"3000 `inputs` tokens and {b['max_tokens']} `max_new_tokens`"
        return refuse(422, {"error": said, "error_type": "validation"})
    return reply(label(b))


@plays
def no_limit_at_all(b: Body, n: int, t: str) -> Any:
    for name in ("max_tokens", "max_completion_tokens"):
        if name in b:
            return error(400, f"Unsupported parameter: {name}")
    return reply(label(b))


@plays
def reasons(b: Body, n: int, t: str) -> Any:
    limit = b.get("max_completion_tokens") or b.get("max_tokens")
    if limit is not None and limit < 6000:
        return reply("", "length", usage={"prompt_tokens": 900, "completion_tokens": limit})
    return reply(label(b))


# ---- replies -------------------------------------------------------------------------------------


@plays
def sse(b: Body, n: int, t: str) -> Any:
    text = label(b)
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in (text[:10], text[10:])
    ]
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return web.Response(text=f": keep\n\n{lines}data: [DONE]\n\n", content_type="text/event-stream")


@plays
def parts(b: Body, n: int, t: str) -> Any:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm, label bad"}]}
    return reply([thinking, {"type": "text", "text": label(b)}])


@plays
def tool_call(b: Body, n: int, t: str) -> Any:
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": label(b)}}
    return reply(None, "tool_calls", tool_calls=[call])


@plays
def odd_usage(b: Body, n: int, t: str) -> Any:
    given: Any = (None, {"prompt_tokens": "10", "completion_tokens": "5"}, [])[n % 3]
    return reply(label(b), usage=given)


@plays
def nan_usage(b: Body, n: int, t: str) -> Any:
    text = json.dumps(reply(label(b))).replace('"completion_tokens": 5', '"completion_tokens": NaN')
    return web.Response(text=text, content_type="application/json")


PLAYS |= {
    "refusal": lambda b, n, t: reply(None, refusal="I'm sorry, I cannot help with that."),
    "content_object": lambda b, n, t: reply(json.loads(label(b))),
    "function_call": lambda b, n, t: reply(
        None, "function_call", function_call={"name": "a", "arguments": label(b)}
    ),
    "beside_reasoning": lambda b, n, t: reply(
        label(b), reasoning_content='{"clear": {"label": "bad"}}'
    ),
    "choice_text": lambda b, n, t: {"choices": [{"text": label(b), "finish_reason": "stop"}]},
    "odd_finish": lambda b, n, t: reply(label(b), ("eos", "end_turn", None)[n % 3]),
    "blanks": lambda b, n, t: web.Response(
        text="\n" * 40 + json.dumps(reply(label(b))), content_type="text/plain"
    ),
    "gzipped": lambda b, n, t: web.Response(
        body=gzip.compress(json.dumps(reply(label(b))).encode()),
        headers={"Content-Encoding": "gzip"},
    ),
    "in_a_list": lambda b, n, t: web.json_response([reply(label(b))]),
    "gigabyte": lambda b, n, t: web.Response(body=b"x" * (40 * 2**20)),
}


# ---- no reply ------------------------------------------------------------------------------------


def once(answer: Any) -> Play:
    """Behave so at the first request only."""
    return lambda b, n, t: (answer() if callable(answer) else answer) if n == 0 else reply(label(b))


def _dated() -> web.Response:
    when = email.utils.formatdate(time.time() + 2, usegmt=True)
    return refuse(429, {"error": "Rate limit reached"}, Retry_After=when)


PLAYS |= {
    "finish_error": once(lambda: reply('{"clear": {"expl', "error")),
    "empty_200": once(lambda: web.Response(text="")),
    "null_choices": once({"choices": None}),
    "no_choices": once({"choices": []}),
    "error_200": once({"error": {"message": "Upstream overloaded", "code": 503}}),
    "error_200_text": once({"error": "The engine is starting"}),
    "bad_429": once(_dated),
    "words_429": once(lambda: error(429, "Rate limit. Please try again in 250ms.")),
    "status_499": once(lambda: refuse(499, {"error": {"status": "CANCELLED"}})),
    "status_529": once(lambda: refuse(529, {"error": {"type": "overloaded_error"}})),
    "status_524": once(lambda: refuse(524, "<html><title>524: A timeout occurred</title></html>")),
    "half_gzip": once(
        lambda: web.Response(body=b"\x1f\x8bxx", headers={"Content-Encoding": "gzip"})
    ),
    "html_200": lambda b, n, t: web.Response(text="<html><title>Sign in</title></html>"),
    "anthropic": lambda b, n, t: {"type": "message", "content": [{"type": "text", "text": "x"}]},
    "ollama": lambda b, n, t: {"model": "m", "message": {"content": "x"}, "done": True},
    "gemini": lambda b, n, t: {"candidates": [{"content": {"parts": [{"text": "x"}]}}]},
    "quota": lambda b, n, t: error(429, "You exceeded your current quota", "insufficient_quota"),
    "html_502": lambda b, n, t: refuse(502, "<html><title>502 Bad Gateway</title></html>"),
    "keyed": lambda b, n, t: error(401, "Incorrect API key provided: sk-12345678abcd"),
}


# ---- the server ----------------------------------------------------------------------------------


@dataclass
class Behaving:
    """The address of the endpoint, and what it was asked: bodies by model."""

    url: str = ""
    asked: dict[str, list[Body]] = field(default_factory=lambda: defaultdict(list))
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paid: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # tokens of replies

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a chat completion as its model says: NAME, or NAME@anything."""
        body = await request.json()
        asked = self.asked[body["model"]]
        number = len(asked)
        asked.append(body)
        self.paths.append(request.path_qs)
        self.headers.append(dict(request.headers))
        text = "\n".join(str(message.get("content")) for message in body["messages"])
        play = PLAYS[re.split("[@:]", body["model"])[0]]
        answer = play(body, number, text)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, web.StreamResponse):
            return answer
        usage = answer.get("usage")
        if isinstance(usage, dict):
            self.paid[body["model"]] += int(usage["completion_tokens"])
        return web.json_response(answer)


@contextmanager
def behaving(prefix: str = "/v1") -> Iterator[Behaving]:
    """Serve the behaviours on a free port of this machine."""
    served, ready, loop = Behaving(), threading.Event(), asyncio.new_event_loop()

    async def start() -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post(f"{prefix}/chat/completions", served.chat)
        app.router.add_post("/openai/deployments/{name}/chat/completions", served.chat)
        app.router.add_post("/openai/v1/chat/completions", served.chat)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        served.url = f"http://127.0.0.1:{port}"
        ready.set()

    def work() -> None:
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
