"""OpenAI-compatible endpoints through the openai SDK, which does the HTTP and nothing else here.

The SDK's own retries are off (the Client retries) and its response models are bypassed: the JSON
body is read directly, which saves about a millisecond of CPU per call and survives endpoints
whose answers are not quite in form.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from agenteval.errors import (
    BadRequest,
    InputError,
    ModelError,
    TooLong,
    Transient,
    Unauthorized,
)
from agenteval.models.connections import (
    Redirected,
    extra_headers,
    hopeless,
    http_library,
    open_connections,
)
from agenteval.models.waiting import may_retry, retry_after
from agenteval.models.wire import (
    Reply,
    Request,
    Simplified,
    one_line,
    printable,
)
from agenteval.records import Usage, canonical_json
from agenteval.text import keep_secret, public_url, spellings, url_secrets

_MODES = ("json_schema", "json_object", "text")
_RETRYABLE = {408, 409, 425, 429}
_FORM_WORDS = ("response_format", "response format", "json_schema", "json_object",
               "structured output")  # fmt: skip
# Parameters that some endpoints refuse by name, and what to send in their place.
_OPTIONAL = {
    "seed": None, "temperature": None, "stop": None, "max_tokens": "max_completion_tokens",
}  # fmt: skip
# A value out of range names the parameter as well; only these words say that it is not taken.
# A letter, digit, "-" or "_" as JSON may write it; in JSON within JSON with more backslashes.
_ESCAPED = re.compile(rb"\\+u00(2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])")
_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|only the default|cannot find|deprecated"
)
_TOO_LONG_CODE = "context_length_exceeded"
_TOO_LONG = re.compile(
    r"context (length|window|size)|prompt is too long|(input|prompt) (tokens|length) exceed"
    r"|exceeds? the (available )?context|maximum (prompt|input) length"
)
_FINISH = {
    "stop": "stop", "eos": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "model_length": "length",
    "content_filter": "content_filter", "safety": "content_filter", "refusal": "content_filter",
    "tool_calls": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
}  # fmt: skip
_CONNECT_SECONDS = 15.0
_MOST_TOKENS = 10**8  # a larger count is a defect of the endpoint, not a bill

_log = logging.getLogger(__name__)


class OpenAITransport:
    """One OpenAI-compatible endpoint.

    Steps down from JSON schema to JSON mode to plain text when the endpoint refuses the form,
    leaves out parameters it does not take, and remembers both; each step is one request, raised
    as Simplified. `endpoint` is the URL without credentials. Raises InputError for a key that
    cannot be sent. A refused key is told with `key_variables`, where it was read from.
    """

    path = "/chat/completions"

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, key_variables: str = ""
    ) -> None:
        url = base_url or "https://api.openai.com/v1"
        self.model = model
        self.endpoint = public_url(url)
        self._url = url
        self._key = (api_key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise InputError("the API key holds characters that no key has", self.endpoint)
        secrets = (self._key, *url_secrets(url))
        keep_secret(secrets)  # what a library or an endpoint says may repeat them
        spelled = {s.encode() for secret in secrets for s in spellings(secret)}
        self._bytes = sorted(spelled, key=len, reverse=True)  # a whole before its parts
        self._key_variables = key_variables
        self._headers = extra_headers()
        self._mode = 0
        self._refused: set[str] = set()
        self._bad_schemas: set[str] = set()
        self._sdk: Any = None
        self._response: Any = None  # the Response class of the HTTP library that the SDK uses

    def _client(self) -> Any:
        if self._sdk is None:
            import openai

            self._response = http_library().Response
            self._sdk = openai.AsyncOpenAI(
                api_key=self._key or "none",  # a local server needs no key, but the SDK does
                base_url=self._url,
                max_retries=0,
                timeout=openai.Timeout(None, connect=_CONNECT_SECONDS),
                http_client=open_connections(self._url),
                default_headers=self._headers,
            )
        return self._sdk

    async def send(self, request: Request) -> Reply:
        """One attempt. Raises Simplified when the next one will ask for less."""
        mode = self._form(request)
        body = self._body(request, mode)
        started = time.monotonic()
        try:
            payload = await self._post(body)
            return self._read(payload, mode, time.monotonic() - started)
        except Unauthorized as error:
            if not self._key_variables:
                raise
            where = f"the key is read from {self._key_variables}, headers from --header"
            raise Unauthorized(f"{error}; {where}") from None
        except BadRequest as error:
            given_up = self._simplify(str(error).lower(), mode, body, request)
            if given_up is None:
                raise
            _log.warning("%s does not take %s: asking without it", self.endpoint, given_up)
            raise Simplified(str(error)) from None

    async def _post(self, body: dict[str, Any]) -> bytes:
        import openai

        client = self._client()
        # `from None`: the exceptions of the SDK hold the request with its headers
        try:
            response = await client.post(self.path, cast_to=self._response, body=body)
        except openai.APIConnectionError as error:
            self._raise_hopeless(error)
            lost = one_line(_connection_lost(error))
            raise Transient(f"{self.endpoint}: {lost}") from None
        except openai.APIStatusError as error:
            raise status_error(self.endpoint, error) from None
        except openai.OpenAIError as error:
            self._raise_hopeless(error)
            raise
        except UnicodeEncodeError:
            raise BadRequest("the request holds half characters (lone surrogates)") from None
        payload: bytes = response.content
        return self._unsaid(payload)

    def _raise_hopeless(self, error: BaseException) -> None:
        if (why := hopeless(error)) is not None:
            where = "" if isinstance(why, Redirected) else f"{self.endpoint}: "
            raise type(why)(f"{where}{why}") from None

    def _unsaid(self, payload: bytes) -> bytes:
        """The body without our key, which some endpoints and debugging proxies repeat: replies
        are stored. Also where its letters are written as JSON escapes, at whatever depth."""
        plain = _ESCAPED.sub(lambda m: bytes((int(m[1], 16),)), payload)
        if plain != payload and any(secret in plain for secret in self._bytes):
            payload = plain
        for secret in self._bytes:
            if secret in payload:
                payload = payload.replace(secret, b"[hidden]")
        return payload

    def _form(self, request: Request) -> str:
        """How the form is asked for: the strictest way that the endpoint has not refused."""
        if not request.schema:
            return "text"
        mode = self._mode
        if mode == 0 and (
            not request.schema.get("properties")  # any object will do: that is JSON mode
            or (self._bad_schemas and canonical_json(request.schema) in self._bad_schemas)
        ):
            mode = 1
        return _MODES[mode]

    def _simplify(
        self, refusal: str, mode: str, body: dict[str, Any], request: Request
    ) -> str | None:
        """Give up what the endpoint names as unsupported; None when that is nothing we sent.

        Many requests under way may be refused for the same reason, so what was sent counts and
        not what another refusal has changed meanwhile.
        """
        if mode != "text" and any(word in refusal for word in _FORM_WORDS):
            if mode == "json_schema" and "invalid schema" in refusal:
                self._bad_schemas.add(canonical_json(request.schema))
                return "this JSON schema"
            self._mode = max(self._mode, _MODES.index(mode) + 1)
            return f"the form {mode}"
        if _NOT_TAKEN.search(refusal):
            for name in _OPTIONAL:
                if name in body and re.search(rf"\b{name}\b", refusal):
                    self._refused.add(name)
                    return f"the parameter {name}"
        return None

    def _body(self, request: Request, mode: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            **self._parameters(request),
        }
        if mode == "json_schema":
            # A fixed name: what a request is for (its role) is not part of its identity.
            schema = {"name": "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        if request.tools:
            body["tools"] = list(request.tools)
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        return body

    def _read(self, payload: bytes, mode: str, latency: float) -> Reply:
        return read_completion(payload, mode, latency, self.endpoint)

    def _parameters(self, request: Request) -> dict[str, Any]:
        if not self._refused:
            return request.parameters
        kept = {k: v for k, v in request.parameters.items() if k not in self._refused}
        for name in self._refused & set(request.parameters):
            if other := _OPTIONAL[name]:
                kept[other] = request.parameters[name]
        return kept

    async def close(self) -> None:
        """Close the connections."""
        if self._sdk is not None:
            sdk, self._sdk = self._sdk, None
            await sdk.close()


def _connection_lost(error: BaseException) -> str:
    """Whether it was made at all, and what the system said, or else a library.

    Read from the causes: to the SDK's transport over aiohttp, nearly everything is a timeout.
    """
    causes: list[BaseException] = []
    while (error.__cause__) is not None:
        error = error.__cause__
        causes.append(error)
    if not causes:
        return f"connection lost ({error})"
    reasons = (_system_words(cause) or str(cause) for cause in reversed(causes))
    reason = next((words for words in reasons if words), type(causes[0]).__name__)
    # the first is the SDK's, the second that of the library below it
    never = "Connect" in type(causes[min(1, len(causes) - 1)]).__name__
    return f"{'cannot connect' if never else 'connection lost'} ({reason})"


def _system_words(error: BaseException) -> str | None:
    """The text of a system's error number; None for any other exception."""
    if not isinstance(error, OSError) or not error.errno:
        return None
    return os.strerror(error.errno) if error.errno > 0 else error.strerror


def read_completion(payload: bytes, mode: str, latency: float, where: str) -> Reply:
    """Reply from the body of a chat completion.

    Raises Transient when the body is no JSON or holds no message: endpoints under load answer so
    with status 200. An error that the body names with its status is raised as what it is.
    """
    body = read_object(payload, where)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict) or choice.get("error"):
        raise_reason(body, choice, where)
    refusal, model = message.get("refusal"), body.get("model")
    return Reply(
        text=_text(message.get("content")),
        finish=_FINISH.get(str(choice.get("finish_reason")).lower(), "unknown"),
        refusal=printable(refusal) if refusal and isinstance(refusal, str) else None,
        tool_calls=_tool_calls(message.get("tool_calls")),
        usage=read_usage(body.get("usage"), "prompt_tokens", "completion_tokens"),
        logprobs=_logprobs(choice.get("logprobs")),
        mode=mode,
        model=model if isinstance(model, str) else None,
        latency=latency,
    )


def read_object(payload: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a body, NaN and infinity as None. Raises Transient where it is none."""
    try:
        body = json.loads(payload, parse_constant=_nothing, parse_float=_finite_or_nothing)
    except (ValueError, RecursionError):
        raise Transient(f"{where}: the answer is not JSON ({len(payload)} bytes)") from None
    if not isinstance(body, dict):
        raise Transient(f"{where}: the answer is no JSON object")
    return body


def raise_reason(body: dict[str, Any], choice: Any, where: str) -> NoReturn:
    """Raise what a body without an answer says of it: Transient, or as its status says."""
    detail = (choice.get("error") if isinstance(choice, dict) else None) or body.get("error")
    reason = detail.get("message") if isinstance(detail, dict) else detail
    code = detail.get("code") if isinstance(detail, dict) else None
    message = f"{where}: no message in the answer ({one_line(reason or 'no reason given')})"
    if isinstance(code, int) and 400 <= code < 600:
        raise _sorted(code, message, {})
    raise Transient(message)


def _nothing(_: str) -> None:
    """NaN and infinity, which some endpoints write as log-probabilities: no number."""


def _finite_or_nothing(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _text(content: Any) -> str:
    if isinstance(content, list):  # some endpoints answer in parts
        parts = [p.get("text") for p in content if isinstance(p, dict)]
        return printable("".join(p for p in parts if isinstance(p, str)))
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
            name = printable(function["name"])
            calls.append(
                {
                    "id": printable(str(call.get("id") or "")),
                    "type": "function",
                    "function": {"name": name, "arguments": printable(arguments)},
                }
            )
    return tuple(calls)


def _logprobs(value: Any) -> tuple[dict[str, Any], ...] | None:
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not all(isinstance(t, dict) for t in content):
        return None
    return tuple(content)


def read_usage(value: Any, prompt: str, completion: str) -> Usage:
    """One request, with the tokens that an endpoint counts under these names."""

    def count(name: str) -> int | None:
        number = value.get(name) if isinstance(value, dict) else None
        if isinstance(number, bool) or not isinstance(number, int):
            return None
        return number if 0 <= number <= _MOST_TOKENS else None

    return Usage(
        requests=1,
        prompt_tokens=count(prompt),
        completion_tokens=count(completion),
    )


def status_error(endpoint: str, error: Any) -> ModelError:
    """The ModelError for an exception of an SDK that carries an HTTP status."""
    status = int(error.status_code)
    reason = one_line(getattr(error, "message", None) or error)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    codes = {str(getattr(error, name, None)) for name in ("code", "type")}
    if status in (400, 413, 422) and (_TOO_LONG_CODE in codes or _TOO_LONG.search(reason.lower())):
        return TooLong(f"{endpoint}: the model's context is too short ({reason})")
    no_money = "insufficient_quota" in codes
    return _sorted(402 if no_money else status, f"{endpoint}: HTTP {status} ({reason})", headers)


def _sorted(status: int, message: str, headers: Mapping[str, str]) -> ModelError:
    retry = may_retry(headers)
    # 402 and an exhausted quota, as a refused key: every further request would fail alike
    if status in (401, 402, 403) and not retry:
        return Unauthorized(message)
    if not (retry or status in _RETRYABLE or status >= 500):
        return BadRequest(message)
    wait, again = retry_after(headers), retry is not False
    if not again:
        message += "; it asks not to be asked again"
    elif wait is not None and wait >= 1:
        message += f"; it asks to wait {wait:.0f} s"
    return Transient(message, retry_after=wait, overload=status == 429, again=again)
