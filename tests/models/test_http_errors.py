"""One reader for the bodies of refusals: its words, and the kind of error that they mean."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from agenteval.errors import BadRequest, Filtered, ModelError, TooLong, Transient, Unauthorized
from agenteval.models.http_errors import read_body, read_error, retry_after

SEED = "Unknown parameter: 'seed'"


def encoded(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


BODIES: list[tuple[Any, str]] = [
    ({"error": {"message": SEED, "code": None}}, SEED),
    ([{"error": {"code": 400, "message": SEED, "status": "INVALID_ARGUMENT"}}], SEED),
    ({"error": SEED}, SEED),
    ({"detail": SEED}, SEED),
    ({"message": SEED, "id": "7"}, SEED),
    ({"errors": [{"message": SEED}]}, SEED),
    ({"errors": [SEED, "and another"]}, f"{SEED}; and another"),
    (SEED, SEED),
    (f"<html><head><title>400\nBad</title></head><body>{SEED}</body></html>", "400\nBad"),
    (
        {"error": {"message": "failed", "metadata": {"raw": json.dumps({"error": SEED})}}},
        f"failed; {SEED}",
    ),
    (
        {"error": {"message": "flagged", "metadata": {"reasons": ["violence", "hate"]}}},
        "flagged; violence; hate",
    ),
    (
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "not permitted"}]},
        "body.seed: not permitted",
    ),
    (
        {"object": "error", "message": {"detail": [{"loc": ["body", "seed"], "msg": "no"}]}},
        "body.seed: no",
    ),
    ({"error": {"message": "Invalid value", "param": "seed"}}, "Invalid value (param seed)"),
    ({"error": {"message": "a", "innererror": {"message": "b"}}}, "a; b"),
    ({"odd": {"nobody": "knows this form"}}, '{"odd": {"nobody": "knows this form"}}'),
    ({}, ""),
    ([], ""),
    ("", ""),
    ("null", ""),
]


@pytest.mark.parametrize(("body", "words"), BODIES)
def test_the_words_of_a_body(body: Any, words: str) -> None:
    assert read_body(encoded(body)).message == words


@pytest.mark.parametrize("body", [b"\xff\xfe{", b"[" * 100_000, b"{" * 5000, b"x" * 10**6])
def test_no_body_is_too_odd_or_too_long_for_a_line(body: bytes) -> None:
    said = str(read_error("here", 400, {}, body))
    assert said.startswith("here: HTTP 400 (")
    assert "\n" not in said
    assert len(said) < 400


HOSTILE = [
    b"<title" * 16_000,
    b"<" * 100_000,
    b"7" * 100_000,
    b"maximum context length" + b"7" * 90_000,
    b"retry after " + b"7" * 90_000,
    b"[" + b'"a",' * 24_000 + b'"a"]',
    json.dumps({"errors": [str(n) for n in range(9000)]}).encode(),
    json.dumps({"errors": ['{"a": "b"}'] * 5000}).encode(),
    b" " * 100_000,
    b"system " * 14_000,
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda b: repr(b[:12]))
def test_a_hostile_body_costs_no_time(body: bytes) -> None:
    began = time.process_time()
    read_error("here", 400, {}, body)
    assert time.process_time() - began < 1.0


def openai(message: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, **more}}


KINDS: list[tuple[int, Any, type[ModelError]]] = [
    (400, openai(SEED), BadRequest),
    (404, {"error": "model 'x' not found, try pulling it first"}, BadRequest),
    (501, "not implemented", BadRequest),
    (400, openai("x", "context_length_exceeded"), TooLong),
    (400, {"detail": "This model's maximum context length is 8192 tokens."}, TooLong),
    (500, "the request exceeds the available context size", TooLong),
    (
        400,
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 5096 "
            "tokens (3000 in the messages, 2096 in the completion)."
        ),
        BadRequest,
    ),
    (
        400,
        openai(
            "This model's maximum context length is 4096 tokens. However, you requested 7000 "
            "tokens (5000 in the messages, 2000 in the completion)."
        ),
        TooLong,
    ),
    (401, [{"error": {"code": 401, "message": "API key not valid."}}], Unauthorized),
    (401, {"detail": "Not authenticated"}, Unauthorized),
    (401, "", BadRequest),
    (
        403,
        {"error": {"status": "PERMISSION_DENIED", "message": "The caller lacks it"}},
        Unauthorized,
    ),
    (403, openai("You do not have access to this project"), Unauthorized),
    (403, "<html><title>403 Forbidden</title></html>", BadRequest),
    (403, openai("Your input was flagged", metadata={"reasons": ["violence"]}), Filtered),
    (403, openai("Your account was flagged for abuse"), Unauthorized),
    (403, {"code": "forbidden", "error": "Content violates usage guidelines."}, Filtered),
    (
        400,
        openai("triggering Azure OpenAI's content management policy", "content_filter"),
        Filtered,
    ),
    (400, openai("no", innererror={"code": "ResponsibleAIPolicyViolation"}), Filtered),
    (
        400,
        openai("Input data may contain inappropriate content.", "data_inspection_failed"),
        Filtered,
    ),
    (400, {"message": "Content Exists Risk"}, Filtered),
    (402, openai("Payment required"), Unauthorized),
    (413, openai("Request too large for model: tokens per minute"), TooLong),
    (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
            "Given: 3000 `inputs` tokens and 2048 `max_new_tokens`"
        },
        BadRequest,
    ),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens."}, TooLong),
    (400, openai("Budget has been exceeded! Max budget: 1.0", "400"), Unauthorized),
    (400, {"__type": "ThrottlingException", "message": "Too many requests"}, Transient),
    (498, {"message": "blocked input"}, Transient),
    (400, openai("Your credit balance is too low"), Unauthorized),
    (429, openai("no", "insufficient_quota"), Unauthorized),
    (429, openai("slow down"), Transient),
    (499, {"error": {"status": "CANCELLED"}}, Transient),
    (503, "", Transient),
    (524, "<title>A timeout occurred</title>", Transient),
    (529, {"error": {"type": "overloaded_error"}}, Transient),
]


@pytest.mark.parametrize(("status", "body", "kind"), KINDS)
def test_what_a_refusal_means(status: int, body: Any, kind: type[ModelError]) -> None:
    error = read_error("here", status, {}, encoded(body))
    assert type(error) is kind
    words = read_body(encoded(body)).message.split("\n")[0]
    assert words in str(error)
    assert error.said is not None
    assert error.said.status == status


@pytest.mark.parametrize(
    ("headers", "words", "wait"),
    [
        ({"retry-after": "7"}, "slow down, try again in 9s", 7.0),
        ({}, "Rate limit reached. Please try again in 1m12.5s. Visit", 72.5),
        ({}, "Please try again in 250ms.", 0.25),
        ({}, '[{"error": {"details": [{"retryDelay": "34s"}]}}]', 34.0),
        ({}, "Retry after 20 seconds", 20.0),
        ({}, '{"error": "loading", "estimated_time": 20.5}', 20.5),
        ({}, "slow down", None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], words: str, wait: float | None) -> None:
    error = read_error("here", 429, headers, encoded(words))
    assert isinstance(error, Transient)
    assert error.retry_after == wait
    assert error.overload


@pytest.mark.parametrize(
    ("status", "answer", "body", "kind", "again"),
    [
        (503, "false", "", Transient, False),
        (429, "False", "", Transient, False),
        (400, " TRUE ", "", Transient, True),
        (401, "true", "", Transient, True),
        (503, "no", "", Transient, True),
        (400, "false", "", BadRequest, None),
        (401, "false", "the key", Unauthorized, None),
        (429, "false", openai("no", "insufficient_quota"), Unauthorized, None),
        # no second answer can differ from the first
        (400, "true", openai("x", "context_length_exceeded"), TooLong, None),
    ],
)
def test_the_header_that_says_whether_to_retry(
    status: int, answer: str, body: Any, kind: type[ModelError], again: bool | None
) -> None:
    error = read_error("here", status, {"x-should-retry": answer}, encoded(body))
    assert type(error) is kind
    assert getattr(error, "again", None) is again
    assert str(error).endswith("asks not to retry") is (again is False)


def test_the_id_of_the_request_is_named() -> None:
    error = read_error("here", 500, {"x-request-id": "req_81"}, b"broken")
    assert str(error) == "here: HTTP 500 (broken, request req_81)"


def test_a_key_in_a_body_is_not_repeated() -> None:
    error = read_error("here", 401, {}, b'{"error": "Incorrect API key: sk-1234567890abcdef"}')
    assert "sk-1234567890abcdef" not in str(error)


# ---- the wait that headers ask for ---------------------------------------------------------------

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT
REQUESTS, TOKENS = "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": " 7.5 "}, 7.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "1500", "retry-after": "1"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1.0),
        ({"retry-after": "tue, 14 nov 2023 22:13:50 gmt"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50"}, 30.0),  # no zone: UTC
        ({"retry-after": "Tue, 14 Nov 2023 23:13:50 +0100"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, None),  # past
        ({"retry-after": "Tue, 99 Nov 2023 22:13:50 GMT"}, None),
        ({"retry-after": "Tue, 14 Nov 99999999 22:13:50 GMT"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-inf"}, None),
        # several reset headers: the longest; a hint to retry goes before all of them
        ({REQUESTS: "1m2.5s", TOKENS: "250ms"}, 62.5),
        ({REQUESTS: "9s", "retry-after": "2"}, 2.0),
        (
            {
                REQUESTS: "9s",
                "x-ratelimit-remaining-requests": "5",
                TOKENS: "3",
                "x-ratelimit-remaining-tokens": "0",
            },
            3.0,
        ),
        ({TOKENS: "9s", "x-ratelimit-remaining-tokens": "71"}, None),
        # the same header several times arrives as one
        ({"retry-after": "5, 10"}, 10.0),
        ({"retry-after": "10,5"}, 10.0),
        ({"retry-after-ms": "250, 1500"}, 1.5),
        ({"retry-after": "-4, 3"}, 3.0),
        ({"retry-after": "5, soon"}, None),
        ({"retry-after": "1e1"}, 10.0),
        ({"retry-after": "+2"}, 2.0),
        ({"retry-after": ".5"}, 0.5),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "inf"}, None),
        # numbers to Python, but to nobody who speaks HTTP
        ({"retry-after": "1_000"}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after-ms": "-1", "retry-after": "2"}, 2.0),
        ({REQUESTS: "soon"}, None),
        ({REQUESTS: "-5s"}, None),
        ({REQUESTS: "2023-11-14T22:14:00Z"}, None),
        ({REQUESTS: "1" * 400 + "s"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    found = retry_after(headers, now=NOW)
    assert found == (None if expected is None else pytest.approx(expected))


def test_no_long_text_takes_long() -> None:
    texts = "1" * 100_000, "1," * 50_000, "1e" * 50_000, "1 , " * 25_000 + "x"
    # where a digit could belong to two parts of a number, these would outlast the universe
    for text in (*texts, "11," * 200 + "x", "1" * 100_000 + "x"):
        retry_after({"retry-after": text}, now=0.0)
