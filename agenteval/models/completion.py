"""Read the body of a chat completion, in the dialects of many servers."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from agenteval.errors import BadRequest, Transient
from agenteval.models.http_errors import read_body, read_error
from agenteval.models.wire import Reply, one_line, printable
from agenteval.records import Usage

_FINISH = {
    "stop": "stop eos eos_token end_turn stop_sequence complete done",
    "length": "length max_tokens model_length max_output_tokens token_limit",
    "content_filter": "content_filter content_filtered safety refusal recitation blocklist"
    " prohibited_content guardrail_intervened sensitive error_toxic",
    "tool_calls": "tool_calls tool_use tool_call function_call",
    "error": "error abort aborted cancelled insufficient_system_resource",
}
_FINISH_OF = {word: kind for kind, words in _FINISH.items() for word in words.split()}
_STATUS_OF = (  # an error under status 200 that names its kind and no status
    ("overloaded", 529),
    ("rate", 429),
    ("quota", 429),
    ("content_filter", 400),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid", 400),
)
_MOST_TOKENS = 10**8  # a larger count is a defect of the endpoint, not a bill


def read_completion(payload: bytes, mode: str, latency: float, where: str) -> Reply:
    """Reply from the body of a chat completion.

    Raises Transient when the body is not JSON or holds no message: overloaded endpoints send these
    with status 200. An error named in the body is raised as its own type; the answer of another API
    is a BadRequest.
    """
    body = read_object(payload, where)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and isinstance(choice.get("text"), str) and message is None:
        message = {"content": choice["text"]}
    ended = str(choice.get("finish_reason") if isinstance(choice, dict) else "").lower()
    finish = _FINISH_OF.get(ended.partition(":")[0].strip(), "unknown")
    if finish == "content_filter" and message is None:
        message = {}
    if not isinstance(choice, dict) or not isinstance(message, dict) or choice.get("error"):
        raise_reason(body, choice, where)
    if finish == "error":
        reason = choice["finish_reason"]
        raise Transient(f"{where}: the reply broke off (finish_reason {one_line(reason)})")
    refusal, model = message.get("refusal"), body.get("model")
    usage = read_usage(body.get("usage"), "prompt_tokens", "completion_tokens")
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        usage = read_usage(body.get("usage"), "input_tokens", "output_tokens")
    calls = message.get("tool_calls")
    if not calls and isinstance(message.get("function_call"), dict):
        calls = [{"function": message["function_call"]}]
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    in_form = isinstance(tokens, list) and all(isinstance(token, dict) for token in tokens)
    return Reply(
        text=_text(message.get("content")),
        finish=finish,
        refusal=printable(refusal) if refusal and isinstance(refusal, str) else None,
        tool_calls=_tool_calls(calls),
        usage=usage,
        logprobs=tuple(tokens) if in_form and tokens is not None else None,
        mode=mode,
        model=model if isinstance(model, str) else None,
        latency=latency,
    )


def read_object(payload: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a body, NaN and infinity as None. Raises Transient if it is not one.

    Events that were not asked for (`data: {...}`) are put together into one object.
    """
    try:
        if (events := _events(payload)) is not None:
            return events
        body = json.loads(payload, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        words = one_line(read_body(payload).message)[:120]
        what = f"{len(payload)} bytes: {words}" if words else f"{len(payload)} bytes"
        raise Transient(f"{where}: the answer is not JSON ({what})") from None
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], dict):
        body = body[0]
    if not isinstance(body, dict):
        raise Transient(f"{where}: the answer is not a JSON object")
    return body


def _events(payload: bytes) -> dict[str, Any] | None:
    """The completion that a stream of server-sent events spells; None for any other body."""
    start = payload[:200].lstrip()
    if not start.startswith((b"data:", b"event:", b": ", b"id:")):
        return None
    lines = payload.decode("utf-8", "replace").splitlines()
    data = [line[5:].strip() for line in lines if line.startswith("data:")]
    chunks = [json.loads(line, parse_constant=_finite) for line in data if line != "[DONE]"]
    merged: dict[str, Any] = {}
    message: dict[str, Any] = {"content": "", "refusal": ""}
    finish = None
    for chunk in chunks:
        merged |= {k: v for k, v in chunk.items() if v is not None and k != "choices"}
        for choice in (chunk.get("choices") or ())[:1]:
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message") or {}
            for name in message:
                piece = delta.get(name)
                message[name] += _text(piece) if isinstance(piece, list) else piece or ""
    ended = finish is not None or "[DONE]" in data
    if not chunks or not (ended or merged.get("error")):
        raise ValueError("the stream broke off")
    if not merged.get("error"):
        merged["choices"] = [{"message": message, "finish_reason": finish}]
    return merged


def raise_reason(body: dict[str, Any], choice: Any, where: str) -> NoReturn:
    """Raise the error described by a body without an answer: Transient, or according to
    its status."""
    detail = (choice.get("error") if isinstance(choice, dict) else None) or body.get("error")
    if not detail and body and not {"choices", "answers", "error"} & body.keys():
        if isinstance(body.get("detail") or body.get("message") or body.get("errors"), str | list):
            detail = body
        else:
            members = one_line(", ".join(sorted(map(str, body))))[:120]
            hint = "its members are " + members + "; is the base URL that of this API?"
            raise BadRequest(f"{where}: the answer is not a chat completion: {hint}")
    encoded = json.dumps({"error": detail}).encode()
    words = read_body(encoded)
    codes = [int(code) for code in words.codes if code.isdigit() and 400 <= int(code) < 600]
    kinds = " ".join(words.codes)
    status = codes[0] if codes else next((n for word, n in _STATUS_OF if word in kinds), None)
    if status is not None:
        raise read_error(where, status, {}, encoded)
    reason = one_line(words.message) if detail else "no reason given"
    raise Transient(f"{where}: no message in the answer ({reason or 'no reason given'})")


def _finite(text: str) -> float | None:
    """None for NaN and infinity, which some endpoints write as log-probabilities."""
    number = float(text)
    return number if math.isfinite(number) else None


def _text(content: Any) -> str:
    """The text of a message: a string, parts (without those of thinking), or a JSON object."""
    if isinstance(content, list):
        parts = [p for p in content if isinstance(p, dict)]
        texts = [p.get("text") for p in parts if not re.search("think|reason", str(p.get("type")))]
        return printable("".join(text for text in texts if isinstance(text, str)))
    if isinstance(content, dict):
        text = content.get("text")
        return printable(text if isinstance(text, str) else json.dumps(content))
    return printable(content) if isinstance(content, str) else ""


def _tool_calls(value: Any) -> tuple[dict[str, Any], ...]:
    """Calls with a name, in OpenAI's form; arguments stay the text the model wrote."""
    calls = []
    for call in value if isinstance(value, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            if not isinstance(arguments, str):  # some endpoints send the object itself
                arguments = json.dumps(arguments if arguments is not None else {})
            called = {"name": printable(function["name"]), "arguments": printable(arguments)}
            number = printable(str(call.get("id") or ""))
            calls.append({"id": number, "type": "function", "function": called})
    return tuple(calls)


def read_usage(value: Any, prompt: str, completion: str) -> Usage:
    """Return the usage of one request from the token counts under these names."""

    def count(name: str) -> int | None:
        number = value.get(name) if isinstance(value, dict) else None
        if isinstance(number, str) and re.fullmatch(r"\d{1,9}", number):
            number = int(number)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int):
            return None
        return number if 0 <= number <= _MOST_TOKENS else None

    return Usage(requests=1, prompt_tokens=count(prompt), completion_tokens=count(completion))
