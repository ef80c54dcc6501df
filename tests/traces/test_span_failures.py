"""Service failures, from errors that libraries really raise, and data that only looks like them."""

from __future__ import annotations

import errno
import json
import os
import urllib.error
from collections.abc import Callable
from email.message import Message as Headers
from typing import Any, Literal

import httpx2
import openai
import pytest
import requests
from aiohttp import ClientResponseError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from agenteval.records import Span, SpanEvent
from agenteval.traces.failures import facts, is_service_failure
from tests.traces.agent_trace import named, raised

URL_ = "http://127.0.0.1/x"


def service_failed(
    *events: SpanEvent,
    kind: Literal["tool", "llm", "chain"] = "tool",
    status: Literal["ok", "error", "unset"] = "error",
    message: str = "",
    output: str = "",
    attributes: dict[str, Any] | None = None,
) -> bool:
    """Whether one span with these fields says that a service failed."""
    span = Span(
        id="s",
        kind=kind,
        name="work",
        tool="fetch" if kind == "tool" else None,
        status=status,
        status_message=message,
        output=output,
        events=events,
        attributes=attributes or {},
    )
    return any(map(is_service_failure, facts(span)))


def thrown(act: Callable[[], object]) -> BaseException:
    try:
        act()
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def from_openai(status: int, body: object) -> BaseException:
    response = httpx2.Response(status, json=body, request=httpx2.Request("POST", URL_))
    return openai.OpenAI(api_key="k", base_url=URL_)._make_status_error_from_response(response)


def from_httpx(status: int) -> BaseException:
    response = httpx2.Response(status, request=httpx2.Request("GET", URL_))
    return thrown(response.raise_for_status)


def from_requests(status: int) -> BaseException:
    response = requests.Response()
    response.status_code, response.url, response.reason = status, URL_, "because"
    return thrown(response.raise_for_status)


def from_urllib(status: int) -> BaseException:
    return urllib.error.HTTPError(URL_, status, "because", Headers(), None)


def from_aiohttp(status: int) -> BaseException:
    url = URL(URL_)
    info = RequestInfo(url, "GET", CIMultiDictProxy(CIMultiDict[str]()), url)
    return ClientResponseError(info, (), status=status, message="because")


@pytest.mark.parametrize("library", [from_httpx, from_requests, from_urllib, from_aiohttp])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (429, True),
        (401, True),
        (410, True),
        (503, True),
        (408, True),
        (400, False),
        (422, False),
    ],
)
def test_statuses_of_http_clients(
    library: Callable[[int], BaseException], status: int, expected: bool
) -> None:
    error = library(status)
    assert service_failed(raised(error), message=str(error)) == expected
    # AutoGen keeps only the text, as the output of a tool that failed
    assert service_failed(message="Tool execution failed", output=str(error)) == expected
    # OpenTelemetry's own context manager writes the type before the text
    assert service_failed(message=f"{type(error).__name__}: {error}") == expected


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000.", 400),
        ("prompt is too long: 210000 tokens > 200000 maximum", 400),
        ("the request exceeds the available context size. try increasing it", 400),
        ("Requested tokens (5000) exceed context window of 4096", 500),
    ],
)
def test_context_overflow_is_no_other_error(message: str, status: int) -> None:
    error = from_openai(status, {"error": {"message": message, "code": 400}})
    assert service_failed(raised(error), kind="llm", message=str(error))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("anthropic.RateLimitError", "Error code: 429 - {'type': 'error'}"),
        ("anthropic._exceptions.OverloadedError", "Error code: 529 - {}"),
        ("google.api_core.exceptions.ResourceExhausted", "429 Quota exceeded for metric"),
        ("google.api_core.exceptions.NotFound", "404 No such object"),
        ("google.genai.errors.ServerError", "503 UNAVAILABLE. {'error': {}}"),
        (
            "botocore.exceptions.ClientError",
            "An error occurred (ThrottlingException) when calling the InvokeModel operation: no",
        ),
        (
            "botocore.exceptions.ClientError",
            "An error occurred (404) when calling the HeadObject operation: Not Found",
        ),
        ("litellm.exceptions.RateLimitError", "litellm.RateLimitError: OpenAIException - x"),
        ("litellm.exceptions.ContextWindowExceededError", "litellm.BadRequestError: x"),
        (
            "grpc._channel._InactiveRpcError",
            "<_InactiveRpcError of RPC:\n\tstatus = StatusCode.UNAVAILABLE",
        ),
        (
            "smolagents.utils.AgentExecutionError",
            "Code execution failed at line 'p = visit(u)' due to: HTTPError: 404 Client Error: "
            "Not Found for url: https://a.example/",
        ),
        (
            "mcp.shared.exceptions.McpError",
            "Error executing tool f: Client error '429 Too Many Requests' for url 'https://a.b/'",
        ),
    ],
)
def test_errors_by_the_names_of_other_libraries(kind: str, message: str) -> None:
    assert service_failed(named(kind, message), message=message)


@pytest.mark.parametrize(
    "output",
    [
        '{"error": {"code": 429, "message": "slow down"}}',
        '{"error": "Unauthorized", "status": 401}',
        '{"message": "upstream answered HTTP 503", "ok": false}',
        "RuntimeError: the weather service answered HTTP 429",
        "Traceback (most recent call last):\n  File 'a.py', line 404\n"
        "requests.exceptions.HTTPError: 500 Server Error: x for url: y",
    ],
)
def test_outputs_of_failed_tools(output: str) -> None:
    assert service_failed(message="Tool execution failed", output=output)


def test_results_marked_as_errors_by_mcp() -> None:
    text = "Error executing tool f: 503 Server Error: x for url: y"
    marked = {"content": [{"type": "text", "text": text}], "isError": True}
    assert service_failed(status="unset", output=json.dumps(marked))
    assert service_failed(status="unset", output=json.dumps({**marked, "isError": False})) is False


DATA = [
    "The highway 429 was opened in 1999. Error code: 429 is what drivers call it.",
    "HTTP 404: how the most famous error page came to be. 404 Client Error: Not Found for url",
    '{"status": 404, "error": "archived article", "title": "429 Too Many Requests explained"}',
    "Request timed out. So began the song.",
    "openai.RateLimitError: Error code: 429 - an entry of the log that was asked for",
    '{"rows": [{"isError": "yes", "code": 500}]}',
]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("row 3 has status 404, expected an integer"),
        ValueError("invalid literal for int() with base 10: '429 Too Many Requests'"),
        KeyError("timeout"),
        KeyError("PRODUCT_NAME"),
        AssertionError("expected HTTP 500 in the fixture"),
        TypeError("unsupported operand: 'Request timed out' + 3"),
        LookupError("order 404 is unknown"),
        RuntimeError("no flight 503 on that day"),
        RuntimeError("the page said '503 Service Unavailable' in its title, which is allowed"),
    ],
)
def test_errors_about_data_are_of_no_kind(error: Exception) -> None:
    assert service_failed(raised(error), message=str(error)) is False


def test_an_exception_caught_by_design() -> None:
    error = from_requests(404)
    assert service_failed(raised(error), status="ok") is False
    assert service_failed(raised(error), status="unset") is False
    assert service_failed(raised(error, escaped="True"), status="unset")


AUTOGEN = {"scope_name": "openinference.instrumentation.autogen_agentchat"}


@pytest.mark.parametrize("library", [from_httpx, from_requests, from_urllib, from_aiohttp])
def test_an_instrumentation_whose_status_is_always_ok(
    library: Callable[[int], BaseException],
) -> None:
    text = str(library(404))
    assert service_failed(status="ok", output=text, attributes=AUTOGEN)
    assert service_failed(status="ok", output=text) is False
    assert service_failed(status="ok", output=f"The page says: {text}", attributes=AUTOGEN) is False
    for data in DATA:
        assert service_failed(status="ok", output=data, attributes=AUTOGEN) is False


def test_bare_texts_of_exceptions() -> None:
    for error, expected in (
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), True),
        (openai.APITimeoutError(httpx2.Request("GET", URL_)), True),
        (KeyError("PRODUCT_NAME"), False),
        (ValueError("not a number"), False),
    ):
        assert service_failed(status="ok", output=str(error), attributes=AUTOGEN) == expected, error
