"""OpenAI-compatible endpoints: chat completions over HTTP or through a client object; decisions."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agenteval.errors import (
    BadRequest,
    InputError,
    ModelError,
    Redirected,
    Transient,
    Unauthorized,
    Untrusted,
)
from agenteval.models.adaptation import Adaptation, adaptation
from agenteval.models.completion import raise_reason, read_completion, read_object, read_usage
from agenteval.models.http_errors import read_error
from agenteval.models.wire import Reply, Request, Simplified, one_line, printable
from agenteval.records import canonical_json
from agenteval.text import keep_secret, public_url, spellings, url_secrets

if TYPE_CHECKING:
    from agenteval.models.connections import Connections

HEADERS = "AGENTEVAL_HEADERS"  # environment variable: Name=value, one a line
OPENAI = "https://api.openai.com/v1"
_WITH_SLASH = (
    "https://api.anthropic.com/v1/",
    "https://generativelanguage.googleapis.com/v1beta/openai/",
)
_NO_PATH = re.compile(
    r"\A(?!.*\bmodel).*(not.?(found|allowed)|no such|cannot post|invalid url)", re.S
)
# A letter, digit, "-" or "_" as JSON may write it; in JSON within JSON with more backslashes.
_ESCAPED = re.compile(rb"\\+u00(2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])")


def base_of(url: str) -> str:
    """The base URL without the path of one request: /v1, /v1/ and /v1/chat/completions are one."""
    base, mark, query = url.partition("?")
    return re.sub(r"/+((chat/)?completions|responses|embeddings)?/*$", "", base) + mark + query


def endpoint_of(url: str) -> str:
    """The name of an endpoint in keys and messages: a host alone is its /v1, as most serve it."""
    base = public_url(base_of(url))
    if f"{base}/" in _WITH_SLASH:  # replies are stored under this spelling
        return f"{base}/"
    return base if "/" in base.partition("://")[2] else f"{base}/v1"


def extra_headers() -> dict[str, str]:
    """Headers of the environment that every request carries, such as those of a gateway.

    Their values are kept out of messages. Raises InputError for a line that is not NAME=VALUE.
    """
    headers: dict[str, str] = {}
    for line in filter(None, map(str.strip, os.environ.get(HEADERS, "").splitlines())):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not sign or not re.fullmatch(r"[A-Za-z0-9-]+", name) or not value.isascii():
            shape = "write NAME=VALUE, NAME of letters, digits, hyphens"
            raise InputError(f"{name[:40]!r}: {shape}", "--header")
        keep_secret([value])
        headers[name] = value
    return headers


class OpenAITransport:
    """One OpenAI-compatible endpoint.

    Asks for less when the endpoint refuses a form or a parameter, and remembers it (`adaptation`);
    each step is one request, raised as Simplified. `endpoint` is the URL without credentials, the
    same for every spelling of it. The key goes into `key_header`, and `query` behind each URL.
    Raises InputError for a key that cannot be sent. Messages about a refused key name
    `key_variables`, which it was read from.
    """

    path = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        key_variables: str = "",
        key_header: str = "Authorization",
        query: str = "",
    ) -> None:
        self.model = model
        base, _, own_query = base_of(base_url or OPENAI).partition("?")
        self.endpoint = endpoint_of(base)
        self.base_url = base  # with credentials
        self._query = f"?{query or own_query}" if query or own_query else ""
        self.key = key = (api_key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise InputError("the API key contains invalid characters", self.endpoint)
        secrets = (key, *url_secrets(base_url or ""))
        keep_secret(secrets)  # what a library or an endpoint says may repeat them
        spelled = {s.encode() for secret in secrets for s in spellings(secret)}
        self._bytes = sorted(spelled, key=len, reverse=True)  # the longest first
        self._key_variables = key_variables
        # a local server needs no key, but some want the header
        value = f"Bearer {key or 'none'}" if key_header == "Authorization" else key
        self._headers = {key_header: value, **extra_headers()}
        self._connections: Connections | None = None

    @property
    def adaptation(self) -> Adaptation:
        """Request features that this endpoint was found to reject."""
        return adaptation(self.endpoint, self.model)

    async def send(self, request: Request) -> Reply:
        """Send one request. Raises Simplified when the next attempt will be simpler."""
        adapted = self.adaptation
        form = adapted.form(request)
        body = self._body(request, form)
        started = time.monotonic()
        try:
            payload = await self._post(body)
            reply = self._read(payload, form, time.monotonic() - started)
        except Unauthorized as error:
            if not self._key_variables:
                raise
            where = f"the key is read from {self._key_variables}, headers from --header"
            raise Unauthorized(f"{error}; {where}") from None
        except (BadRequest, Transient) as error:
            if error.said is not None and adapted.learn(error.said, body, request, form):
                raise Simplified(str(error)) from None
            raise
        adapted.worked(request, form)
        if reply.tool_calls and not request.tools and not reply.text:  # the form, as a call
            arguments = reply.tool_calls[0]["function"]["arguments"]
            reply = replace(reply, text=arguments, tool_calls=())
        return reply

    async def _post(self, body: dict[str, Any]) -> bytes:
        """The body of a successful answer. Raises the error of any other."""
        try:  # `from None`: its causes may hold the prompt
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise BadRequest("the request contains lone surrogates") from None
        if self._connections is None:
            from agenteval.models.connections import Connections

            self._connections = Connections(self.base_url, self._headers)
        base = self.base_url
        answer = await self._connections.post(f"{base}{self.path}{self._query}", data)
        received = self._unsaid(answer.body)
        if 200 <= answer.status < 300:
            return received
        where = public_url(base)
        error = read_error(where, answer.status, answer.headers, received)
        unknown_path = not error.said.message or _NO_PATH.search(error.said.text)
        if not (answer.status in (404, 405) and isinstance(error, BadRequest) and unknown_path):
            raise error
        if base == self.base_url:  # otherwise another request has found the path meanwhile
            if where == self.endpoint:
                hint = f"there is no {self.path} here: is it the right base URL?"
                raise BadRequest(f"{error}; {hint}")
            self.base_url = f"{base}/v1"  # a host alone is asked at its /v1 from now on
            self.adaptation.say(f"is asked, since {where} has no {self.path}")
        raise Simplified(str(error))

    def _unsaid(self, payload: bytes) -> bytes:
        """The body without our key, which some endpoints and debugging proxies repeat: replies
        are stored. Also finds it written in JSON escapes, at any depth."""
        if self._bytes and b"\\u00" in payload:
            plain = _ESCAPED.sub(lambda m: bytes((int(m[1], 16),)), payload)
            if any(secret in plain for secret in self._bytes):
                payload = plain
        for secret in self._bytes:
            if secret in payload:
                payload = payload.replace(secret, b"[hidden]")
        return payload

    def _body(self, request: Request, form: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": self.adaptation.messages(request),
            **self.adaptation.parameters(request),
        }
        if form == "json_schema":
            # A fixed name: what a request is for (its role) is not part of its identity.
            schema = {"name": "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form == "json_object":
            body["response_format"] = {"type": "json_object"}
        if request.tools:
            body["tools"] = list(request.tools)
            if request.tool_choice is not None:
                body["tool_choice"] = request.tool_choice
        return body

    def _read(self, payload: bytes, form: str, latency: float) -> Reply:
        return read_completion(payload, form, latency, self.endpoint)

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.close()


class ClientTransport(OpenAITransport):
    """Sends through an `AsyncOpenAI` or `AsyncAzureOpenAI` object of the caller, who closes it."""

    def __init__(self, client: Any, model: str) -> None:
        url = str(client.base_url)
        super().__init__(model, base_url=url, api_key=str(client.api_key or ""))
        self._sdk = client.with_options(max_retries=0)  # every request must be counted

    async def _post(self, body: dict[str, Any]) -> bytes:
        return self._unsaid(await post_through(self._sdk, self.path, body, self.endpoint))


async def post_through(client: Any, path: str, body: dict[str, Any], where: str) -> bytes:
    """The body that an SDK's client gets for a request. Raises a ModelError."""
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    follow_no_redirect(client)
    raw = {"headers": {"X-Stainless-Raw-Response": "true"}}
    try:
        kind: Any = Response if path == "/responses" else ChatCompletion
        response = await client.post(path, cast_to=kind, body=body, options=raw)
    except Exception as error:  # noqa: BLE001  an SDK's, a library's, or a callback's of the caller
        raise sdk_error(where, error) from None
    content: bytes = response.http_response.content
    return content


def follow_no_redirect(client: Any) -> None:
    """Have the HTTP client of an SDK follow no redirect: it would take the prompt along."""
    http: Any = getattr(client, "_client", None)
    if hasattr(http, "follow_redirects"):
        http.follow_redirects = False


def sdk_error(where: str, error: Exception) -> ModelError:
    """The ModelError for an exception that an SDK raised."""
    from agenteval.models.connections import untrusted

    if isinstance(error, ModelError):
        return error
    if (refused := untrusted(error)) is not None:
        return Untrusted(f"{where}: {refused}")
    status, response = getattr(error, "status_code", None), getattr(error, "response", None)
    if isinstance(status, int) and status >= 300:
        headers: Mapping[str, str] = getattr(response, "headers", None) or {}
        if status < 400:
            target = public_url(str(headers.get("location", "")))
            moved = f"redirects to {target}; nothing was sent there: name it as the endpoint"
            return Redirected(f"{where} {moved}")
        try:
            content = response.content if response is not None else b""
        except Exception:  # noqa: BLE001  a stream that was not read
            content = b""
        return read_error(where, status, headers, content or str(error).encode())
    words = cause = error
    while (cause := cause.__cause__) is not None:  # type: ignore[assignment]
        words = cause if str(cause) else words  # the innermost that says anything
    message = f"{where}: {type(error).__name__}: {one_line(words)}"
    lasting = isinstance(error, TypeError | ValueError | KeyError | NotImplementedError)
    return BadRequest(message) if lasting else Transient(message)


MOST_QUESTIONS = 400  # of one request to decide


class DecisionsTransport(OpenAITransport):
    """One endpoint of `POST /v1/decisions` that answers `Request.questions` with probabilities.

    The form is that of openai 3.54 (`client.decisions.create`): `model`, `input` (messages) and
    `questions`, each a `predicate`, `choice` or `score`; the reply holds `answers` in their order,
    each of the question's type or a `refusal`. The reply's text is the JSON list of the answers;
    parameters of sampling and of the form are not sent, which the endpoint does not have.
    """

    path = "/decisions"

    def _body(self, request: Request, form: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "input": list(request.messages),
            "questions": list(request.questions),
        }

    def _read(self, payload: bytes, form: str, latency: float) -> Reply:
        body = read_object(payload, self.endpoint)
        answers, model = body.get("answers"), body.get("model")
        if not isinstance(answers, list):
            raise_reason(body, None, self.endpoint)
        return Reply(
            text=printable(canonical_json(answers)),
            usage=read_usage(body.get("usage"), "input_tokens", "output_tokens"),
            mode="decisions",
            model=model if isinstance(model, str) else None,
            latency=latency,
        )
