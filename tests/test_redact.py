"""Keys stay out of messages and logs, whoever repeats them; other words stay as they are."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval import text as redact
from agenteval.errors import InputError, Transient
from agenteval.models.factory import choose_model
from agenteval.models.openai import OpenAITransport
from agenteval.text import guard_logs, keep_secret, public_url, redacted, visible, without_known

KEY = "canary-55d1-of-these-tests"
PAIR = "somebody:pass/word+81f2"


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    """What these tests make known is forgotten after each of them."""
    before, factory = set(redact._known), logging.getLogRecordFactory()
    yield
    redact._known.clear()
    redact._known.update(before)
    logging.setLogRecordFactory(factory)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [hidden]"),
        ("{'authorization': 'Basic c29tZWJvZHk6eA=='}", "{'authorization': 'Basic [hidden]'}"),
        ('"x-api-key": "0123456789abcdef"', '"x-api-key": "[hidden]"'),
        ("[(b'api-key', b'0123456789abcdef')]", "[(b'api-key', b'[hidden]')]"),
        ("GET https://h/v1?key=abc&v=2 failed", "GET https://h/v1?key=[hidden]&v=2 failed"),
        ("https://h/?x=1&access_token=a.b", "https://h/?x=1&access_token=[hidden]"),
        ("http://user:p@ss@host:80/x", "http://[hidden]@host:80/x"),
        ("wrong key: sk-proj-a1b2c3d4e5 given", "wrong key: [hidden] given"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "[hidden]"),
        # not a credential
        ("the bearer understands it", "the bearer understands it"),
        ("task-level-decomposition-2", "task-level-decomposition-2"),
        ("see https://host/a@b/c?page=2", "see https://host/a@b/c?page=2"),
        ("the key was refused", "the key was refused"),
        ("hf_transfer and sk-learn are packages", "hf_transfer and sk-learn are packages"),
    ],
)
def test_forms(text: str, clean: str) -> None:
    assert redacted(text) == clean
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    "spelling", [PAIR, quote(PAIR, safe=""), quote(PAIR), base64.b64encode(PAIR.encode()).decode()]
)
def test_known_values_in_every_spelling(spelling: str) -> None:
    assert without_known(f"it said {spelling}.") == f"it said {spelling}."
    keep_secret([quote(PAIR, safe="")])
    assert without_known(f"it said {spelling}.") == "it said [hidden]."


@given(st.integers(12, len(KEY)))
def test_a_known_value_cut_at_the_end(length: int) -> None:
    keep_secret([KEY])
    assert without_known("message: " + KEY[:length]) == "message: [hidden]"
    assert without_known("message: " + KEY[:length] + "...").rstrip(".") == "message: [hidden]"


def test_short_values_are_not_looked_for() -> None:
    keep_secret(["3", "abc", ""])
    assert without_known("abc 3") == "abc 3"


def test_the_environment_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", KEY)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{quote(PAIR, safe=':')}@proxy:1")
    assert without_known(f"{KEY} {PAIR}") == "[hidden] [hidden]"


def test_errors_hold_no_key() -> None:
    keep_secret([KEY])
    for error in (
        InputError(f"bad {KEY}", f"--key {KEY}"),
        Transient(f"lost {KEY}", overload=True),
    ):
        assert KEY not in str(error)
        assert KEY not in repr(error)


def test_every_logger_is_guarded() -> None:
    """Also one that does not propagate, with arguments, and with an exception."""
    keep_secret([KEY])
    stream = io.StringIO()
    logger = logging.getLogger("tests.of.redact")
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.warning("key %s and %r", KEY, {"a": KEY})
        logger.warning("no arguments %d%%", 5)
        try:
            raise ValueError(f"with {KEY}")
        except ValueError:
            logger.exception("it failed")
    finally:
        logger.removeHandler(handler)
    said = stream.getvalue()
    assert KEY not in said
    assert "key [hidden] and {'a': '[hidden]'}" in said
    assert "no arguments 5%" in said
    assert "ValueError: with [hidden]" in said


def test_guarding_twice_keeps_the_shape() -> None:
    guard_logs(visible)
    keep_secret([KEY])  # guards again, without a shape
    record = logging.getLogger("x").makeRecord("x", 30, "f", 1, "a\x1bb %s", (KEY,), None)
    assert record.getMessage() == "a[U+001B]b [hidden]"


def test_a_wrong_format_is_left_to_logging() -> None:
    guard_logs()
    record = logging.getLogger("x").makeRecord("x", 30, "f", 1, "%d", ("no number",), None)
    with pytest.raises(TypeError):
        record.getMessage()


@pytest.mark.parametrize(
    "url",
    [
        f"{PAIR}@host/v1?key={KEY}",
        f"ftp://{PAIR}@host/v1?key={KEY}",
        f"http://{PAIR}@host/v1",  # a slash in the password: not where the path begins
        "http://somebody:pass%2Fword+81f2@host:x/v1",
        "http://somebody:12/word81f2@host/v1",
        "http://somebody:pass#word81f2@host/v1",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(InputError) as refused:
        choose_model("m", url)
    for part in ("81f2", "word", KEY, "somebody"):
        assert part not in str(refused.value).replace("password", "")


@pytest.mark.parametrize(
    "url", ["HTTP://host:8000/v1", "https://host/a@b/v1", "http://[::1]:80/v1"]
)
def test_urls_that_can_be_read(url: str) -> None:
    assert choose_model("m", url).base_url == url


def test_the_password_of_a_second_url_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_BASE_URL", "http://one/v1 http://u:second-pass-81f2@two/v1")
    assert redacted("with second-pass-81f2 in it") == "with [hidden] in it"


def test_the_identity_is_the_same_with_and_without_credentials() -> None:
    plain = OpenAITransport("m", base_url="http://h/v1", api_key=None).endpoint
    full = OpenAITransport("m", base_url=f"http://u:p@ss@h/v1?key={KEY}", api_key=KEY).endpoint
    assert plain == full == "http://h/v1" == public_url("http://u:p@ss@h/v1?key=abc#d")


def test_a_reply_that_repeats_the_key() -> None:
    transport = OpenAITransport("m", base_url="http://some%2Fbody:passwd99@h/v1", api_key=KEY)
    told = base64.b64encode(b"some/body:passwd99").decode()
    body = transport._unsaid(f'{{"a": "Bearer {KEY}, Basic {told}, some/body:passwd99"}}'.encode())
    assert body == b'{"a": "Bearer [hidden], Basic [hidden], [hidden]"}'


def test_a_warning_of_a_library_tells_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    from agenteval.app.main import _warned

    keep_secret([KEY])
    _warned(f"model {KEY}\x1b", UserWarning, "f.py", 3)
    said = capsys.readouterr().err
    assert "f.py:3: UserWarning: model [hidden][U+001B]" in said
