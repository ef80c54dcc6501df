"""OpenAI-compatible endpoints through the openai SDK, which does the HTTP and nothing else here.

The SDK's own retries are off (the Client retries) and its response models are bypassed: the JSON
body is read directly, which saves about a millisecond of CPU per call and survives endpoints
whose answers are not quite in form.
"""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Mapping
from typing import Any

from agenteval.errors import BadRequest, ModelError, RequestTimeout, Transient, Unauthorized
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage

_MODES = ("json_schema", "json_object", "text")
_RETRYABLE = {408, 409, 425, 429}
_FORM_WORDS = ("response_format", "json_schema", "json_object", "structured output")
# Parameters that some endpoints refuse by name, and what to send in their place.
_OPTIONAL = {"seed": None, "temperature": None, "max_tokens": "max_completion_tokens"}


class OpenAITransport:
    """One OpenAI-compatible endpoint. Steps down from JSON schema to JSON mode to plain text when
    the endpoint refuses the form, and remembers it."""

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, connections: int = 256
    ) -> None:
        self.model = model
        self.endpoint = base_url or "https://api.openai.com/v1"
        self._key = api_key
        self._connections = connections
        self._mode = 0
        self._refused: set[str] = set()
        self._sdk: Any = None

    def _client(self) -> Any:
        if self._sdk is None:
            import openai

            # A local server needs no key, but the SDK insists on one.
            self._sdk = openai.AsyncOpenAI(
                api_key=self._key or "none", base_url=self.endpoint, max_retries=0, timeout=None
            )
        return self._sdk

    async def send(self, request: Request) -> Reply:
        """One attempt; a refusal of the form alone is answered by asking in a simpler form."""
        while True:
            mode = _MODES[self._mode] if request.schema else "text"
            try:
                return await self._post(request, mode)
            except BadRequest as error:
                if not self._simplify(str(error).lower(), mode, request):
                    raise

    def _simplify(self, refusal: str, mode: str, request: Request) -> bool:
        """Give up what the endpoint names as unsupported. False when there is nothing to give."""
        if mode != "text" and any(word in refusal for word in _FORM_WORDS):
            self._mode = max(self._mode, _MODES.index(mode) + 1)
            return True
        for name in _OPTIONAL:
            if name in request.parameters and name not in self._refused and name in refusal:
                self._refused.add(name)
                return True
        return False

    async def _post(self, request: Request, mode: str) -> Reply:
        import httpx2
        import openai

        started = time.monotonic()
        try:
            response = await self._client().post(
                "/chat/completions", cast_to=httpx2.Response, body=self._body(request, mode)
            )
            payload = response.content
        except openai.APITimeoutError as error:
            raise RequestTimeout(f"{self.endpoint}: {_one_line(error)}") from error
        except openai.APIConnectionError as error:
            reason = _one_line(error.__cause__ or error)
            raise Transient(f"{self.endpoint}: cannot connect ({reason})") from error
        except openai.APIStatusError as error:
            raise status_error(self.endpoint, error) from error
        except httpx2.HTTPError as error:  # the connection broke while the body was read
            raise Transient(f"{self.endpoint}: connection lost ({_one_line(error)})") from error
        return read_completion(payload, mode, time.monotonic() - started, self.endpoint)

    def _body(self, request: Request, mode: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            **self._parameters(request),
        }
        if mode == "json_schema":
            schema = {"name": request.role or "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        if request.tools:
            body["tools"] = list(request.tools)
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        return body

    def _parameters(self, request: Request) -> dict[str, Any]:
        kept = {k: v for k, v in request.parameters.items() if k not in self._refused}
        for name in self._refused & set(request.parameters):
            if other := _OPTIONAL[name]:
                kept[other] = request.parameters[name]
        return kept

    async def close(self) -> None:
        """Close the SDK's connections."""
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None


def read_completion(payload: bytes, mode: str, latency: float, where: str) -> Reply:
    """Reply from the body of a chat completion.

    Raises Transient when the body is no JSON, holds an error or has no choices: endpoints under
    load answer so with status 200.
    """
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Transient(f"{where}: the answer is not JSON ({len(payload)} bytes)") from error
    if not isinstance(body, dict):
        raise Transient(f"{where}: the answer is no JSON object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        detail = body.get("error")
        message = detail.get("message") if isinstance(detail, dict) else detail
        raise Transient(f"{where}: no choices in the answer ({_one_line(message or 'no reason')})")
    choice = choices[0]
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    logprobs = (choice.get("logprobs") or {}).get("content")
    return Reply(
        text=_text(message.get("content")),
        finish=choice.get("finish_reason") or "unknown",
        refusal=message.get("refusal") or None,
        tool_calls=tuple(message.get("tool_calls") or ()),
        usage=_usage(body.get("usage")),
        logprobs=tuple(logprobs) if isinstance(logprobs, list) else None,
        mode=mode,
        model=body.get("model") if isinstance(body.get("model"), str) else None,
        latency=latency,
    )


def _text(content: Any) -> str:
    if isinstance(content, list):  # some endpoints answer in parts
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def _usage(value: Any) -> Usage:
    def count(name: str) -> int | None:
        number = value.get(name) if isinstance(value, dict) else None
        valid = isinstance(number, int) and not isinstance(number, bool) and number >= 0
        return number if valid else None

    return Usage(
        requests=1,
        prompt_tokens=count("prompt_tokens"),
        completion_tokens=count("completion_tokens"),
    )


def status_error(endpoint: str, error: Any) -> ModelError:
    """The ModelError for an exception of the SDK that carries an HTTP status."""
    status = int(error.status_code)
    message = f"{endpoint}: HTTP {status} ({_one_line(error.message)})"
    if status in (401, 403):
        return Unauthorized(message)
    if status in _RETRYABLE or status >= 500:
        wait = retry_after(error.response.headers)
        return Transient(message, retry_after=wait, overload=status == 429)
    return BadRequest(message)


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds the endpoint asks to wait; the largest of its hints, None when it gives none.

    Reads `retry-after-ms`, and `retry-after` as seconds or as an HTTP date; negative, infinite
    and unreadable hints count as none.
    """
    hints = []
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = (headers.get(name) or "").strip()
        try:
            hints.append(float(text) * scale)
        except ValueError:
            date = email.utils.parsedate_to_datetime(text) if _is_date(text) else None
            if date is not None:
                hints.append(date.timestamp() - (time.time() if now is None else now))
    usable = [h for h in hints if math.isfinite(h) and h >= 0]
    return max(usable) if usable else None


def _is_date(text: str) -> bool:
    return email.utils.parsedate_tz(text) is not None


def _one_line(value: object) -> str:
    return " ".join(str(value).split())[:300]
