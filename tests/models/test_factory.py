"""Which model a user means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.models.factory import PROVIDERS, choose_model, make_transport
from agenteval.models.openai import OpenAITransport
from agenteval.models.replay import ReplayTransport
from agenteval.models.windows import context_of

URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTEVAL_MODEL", "AGENTEVAL_BASE_URL", "AGENTEVAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for _, variable in PROVIDERS.values():
        if variable:
            monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("spec", "name"), [("openrouter:a/b:free", "a/b:free"), ("openrouter/a/b:free", "a/b:free")]
)
def test_keys_come_from_the_providers_variable(
    spec: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="OPENROUTER_API_KEY"):
        choose_model(spec)
    monkeypatch.setenv("OPENROUTER_API_KEY", " \n")  # as good as none
    with pytest.raises(InputError, match="OPENROUTER_API_KEY"):
        choose_model(spec)
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-key\n")
    choice = choose_model(spec)
    assert (choice.name, choice.api_key) == (name, "or-key")
    monkeypatch.setenv("AGENTEVAL_API_KEY", "own")
    assert choose_model(spec).api_key == "own"


def test_a_key_goes_to_its_own_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert choose_model("openai:gpt-4o").api_key == "sk-openai"
    assert choose_model("ollama:x").api_key is None
    assert choose_model("groq:x", URL).api_key is None
    with pytest.raises(InputError, match="GROQ_API_KEY"):
        choose_model("groq:x")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("m", "m"),
        ("openai:m", "m"),
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("meta-llama/Llama", "meta-llama/Llama"),
        ("a:b", "a:b"),
        ("http:x", "http:x"),
    ],
)
def test_any_endpoint(spec: str, name: str) -> None:
    choice = choose_model(spec, URL)
    assert (choice.kind, choice.name, choice.base_url) == ("chat", name, URL)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_MODEL", "m1")
    monkeypatch.setenv("AGENTEVAL_BASE_URL", URL)
    assert (choose_model(None).name, choose_model(None).base_url) == ("m1", URL)
    assert choose_model("m2").name == "m2"
    assert choose_model(None, "http://other").base_url == "http://other"
    assert choose_model("embedded").kind == "embedded"  # asked for by name
    assert choose_model("embedded", URL).kind == "chat"  # a server's model of that name


def test_wrong_use_is_one_line_that_helps() -> None:
    with pytest.raises(InputError, match="needs a model"):
        choose_model(None, URL)
    for spec in ("gpt-4o", "nobody:gpt", "openai:", "nobody/x"):
        with pytest.raises(InputError, match=r"PROVIDER:MODEL.*ollama.*--base-url"):
            choose_model(spec)
    for url in ("localhost:8000", "127.0.0.1:8000/v1", "ftp://x", "/tmp/x"):
        with pytest.raises(InputError, match="must start with http"):
            choose_model("m", url)
    with pytest.raises(InputError, match="no file"):
        choose_model("replay:absent.jsonl")


def test_no_key_in_any_text() -> None:
    choice = choose_model("m", "http://user:sk-canary@h/v1")
    assert "sk-canary" not in f"{choice} {choice!r} {[choice]}"


def test_transports(tmp_path: Path) -> None:
    chat = make_transport(choose_model("m", URL))
    assert isinstance(chat, OpenAITransport)
    assert (chat.model, chat.endpoint) == ("m", URL)
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"run": "r", "text": "x"}\n')
    assert isinstance(make_transport(choose_model(f"replay:{recording}")), ReplayTransport)
    config = tmp_path / "c.json"
    config.write_text(
        json.dumps(
            {
                "provider": "autogen_ext.models.replay.ReplayChatCompletionClient",
                "component_type": "model",
                "config": {"chat_completions": ["x"]},
            }
        )
    )
    transport = make_transport(choose_model(f"autogen:{config}"))
    assert transport.model == "autogen:c"


@pytest.mark.parametrize("tail", ["?api-key=secret-word", "#secret-word", "?", "/?a=1&b=2"])
def test_a_base_url_with_more_than_a_path_is_refused(tail: str) -> None:
    with pytest.raises(
        InputError, match=r"--base-url: write http://HOST/PATH without \? and #"
    ) as told:
        choose_model("m", f"http://127.0.0.1:9/v1{tail}")
    assert "secret-word" not in str(told.value)
    assert "azure:DEPLOYMENT" in str(told.value)


# ---- Windows of well-known models, by the figures on their makers' pages -------------------------


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1", 128_000),  # it takes more, judges find less in longer prompts
        ("o3-mini", 128_000),
        ("claude-sonnet-4-5", 128_000),
        ("models/gemini-2.5-flash", 128_000),
        ("gpt-4o-realtime-preview", None),  # 32,000
        ("gpt-4o-transcribe", None),
        ("gemini-2.5-flash-image", None),
        ("mistral-large-2402", None),  # 32,000; the later ones take more
        ("gpt-4", None),  # 8,192, as of any unknown one
        ("my-gpt-4o-copy", None),
        ("llama-3.1-8b", None),  # whoever serves it sets its window
        ("reader", None),
    ],
)
def test_the_window_of_a_model(model: str, tokens: int | None) -> None:
    assert context_of(model) == tokens
