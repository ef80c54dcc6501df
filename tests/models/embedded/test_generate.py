"""Generation: the wire with a tiny random model, the sense of it with the default weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import BadRequest, ModelUnavailable
from agenteval.models.embedded.chat import chat_prefix
from agenteval.models.embedded.generate import LocalServer, physical_cores

pytest.importorskip("xllamacpp", reason="needs the extra `local`")

ASK = [{"role": "user", "content": "Name a colour and a number."}]
SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "number": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["colour", "number"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def server(tiny: Any) -> Iterator[LocalServer]:
    with LocalServer(tiny.path, context=512) as running:
        yield running


def content(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["message"]["content"])


def post(server: LocalServer, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        server.base_url.removesuffix("/v1") + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.load(answer))


def test_schema_binds_even_a_random_model(server: LocalServer) -> None:
    for seed in range(5):
        reply = server.chat({"messages": ASK, "response_format": FORMAT, "seed": seed})
        answer = json.loads(content(reply))
        assert set(answer) == {"colour", "number"}
        assert answer["colour"] in ("red", "green", "blue")
        assert 1 <= answer["number"] <= 9
        assert reply["usage"]["completion_tokens"] > 0


def test_grammar(server: LocalServer) -> None:
    body = {"messages": ASK, "grammar": 'root ::= "yes" | "no"', "seed": 3}
    assert content(server.chat(body)) in ("yes", "no")


def test_seed_decides_the_text(server: LocalServer) -> None:
    def run(seed: int) -> str:
        return content(server.chat({"messages": ASK, "max_tokens": 30, "seed": seed}))

    assert run(1) == run(1)
    assert len({run(seed) for seed in range(6)}) > 1


def test_seed_decides_the_text_while_others_wait(server: LocalServer) -> None:
    found: dict[int, str] = {}

    def run(seed: int) -> None:
        body = {"messages": ASK, "max_tokens": 30, "seed": seed}
        found[seed] = content(server.chat(body))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(found)
    for seed in range(8):
        run(seed)
    assert found == together


def test_logprobs_are_those_of_the_likelihood_runtime(
    server: LocalServer, tiny: Any, tmp_path: Path
) -> None:
    """Two runtimes, one file: also a check of the prompt and of the tokenizer."""
    from agenteval.models.embedded.likelihood import LikelihoodModel

    grammar = 'root ::= "The speed is 80 km/h."'
    body = {"messages": ASK, "grammar": grammar, "logprobs": True, "seed": 1}
    told = server.chat(body)["choices"][0]["logprobs"]["content"]
    model = LikelihoodModel.load(tiny.path, cache_dir=tmp_path)
    before = chat_prefix(ASK, system=None)
    for token in told:
        if len(model._tokenizer.text(token["token"])[0]) == 1:
            (found,) = model.token_logprobs(before, token["token"]).logprobs
            assert found == pytest.approx(token["logprob"], abs=0.02)
        before += token["token"]
        if len(model._tokenizer.prompt(before)) != len(model._tokenizer.prompt(before[:-1])) + 1:
            break  # from here the grammar's tokens differ from the tokenizer's own
    assert told


@pytest.mark.parametrize("pre", ["smollm", "qwen2", "llama-bpe", "gpt-2"])
def test_tokenizer_equals_llama_cpp(
    make_tiny: Callable[..., Any], tmp_path: Path, pre: str
) -> None:
    from agenteval.models.embedded.likelihood import LikelihoodModel

    made = make_tiny("llama", pre)
    texts = [
        "The train covers 120 km in 1.5 hours, it's 80 km/h. WE'LL check: 80*1.5 = 1200000.",
        "\n\n  two  blanks\t tab \r\n\r\n x   ",
        "Straße naïve 東京 привет 🎉👍🏽 x²+y² ½ Ⅷ e\u0301 \u00a0 \u200b.",
        "for i in range(10):\n    print(f'{i:>3}')  # ok!!\n",
        "",
        " ",
        "<|im_end|>",
    ]
    model = LikelihoodModel.load(made.path, cache_dir=tmp_path)
    with LocalServer(made.path, context=512) as running:
        for text in texts:
            told = post(running, "/tokenize", {"content": text, "parse_special": False})
            assert model._tokenizer.text(text)[0] == told["tokens"], text
        told = post(running, "/tokenize", {"content": chat_prefix(ASK), "parse_special": True})
        assert model._tokenizer.prompt(chat_prefix(ASK)) == told["tokens"]


def test_openai_client(server: LocalServer) -> None:
    import openai

    client: Any = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == [server.model]
    reply = client.chat.completions.create(
        model=server.model,
        messages=[{"role": "user", "content": "Name a colour and a number."}],
        response_format={"type": "json_schema", "json_schema": FORMAT["json_schema"]},
        seed=2,
    )
    assert json.loads(reply.choices[0].message.content or "")["colour"] in ("red", "green", "blue")
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0


def test_foreign_web_pages_are_not_allowed(server: LocalServer) -> None:
    request = urllib.request.Request(
        f"{server.base_url}/models", headers={"Origin": "http://example.org"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] not in ("*", "http://example.org")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "messages"),
        ({"messages": "x"}, "array"),
        ({"messages": [{"role": "user", "content": "word " * 2000}]}, "exceeds"),
        ({"messages": ASK, "stream": True}, "stream"),
        ({"messages": [{"role": "user", "content": object()}]}, "serializable"),
    ],
)
def test_refused_requests(server: LocalServer, body: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        server.chat(body)
    assert content(server.chat({"messages": ASK, "max_tokens": 2, "seed": 1})) is not None


def test_closed(tiny: Any) -> None:
    running = LocalServer(tiny.path, context=256)
    running.close()
    running.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        running.chat({"messages": ASK})
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{running.base_url}/models", timeout=5)


def test_closing_at_once_never_hangs(tiny: Any) -> None:
    """In a process of its own with a time limit: a server freed before its loop begins hung."""
    script = (
        "import sys\n"
        "from agenteval.models.embedded.generate import LocalServer\n"
        "for _ in range(25):\n"
        "    LocalServer(sys.argv[1], context=256).close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tiny.path], check=False, timeout=120)
    assert done.returncode == 0


def test_files_that_are_no_model(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No such file"):
        LocalServer(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelUnavailable, match="not a GGUF file"):
        LocalServer(tmp_path / "text.gguf")
    (tmp_path / "cut.gguf").write_bytes(tiny.path.read_bytes()[:3000])
    with pytest.raises(ModelUnavailable, match=r"cannot load .*cut\.gguf") as caught:
        LocalServer(tmp_path / "cut.gguf")
    assert "\n" not in str(caught.value)


def test_nothing_is_printed(tiny: Any, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(tiny.path.read_bytes()[:3000])
    script = (
        "import sys\n"
        "from agenteval.errors import ModelUnavailable\n"
        "from agenteval.models.embedded.generate import LocalServer\n"
        "with LocalServer(sys.argv[1], context=256) as s:\n"
        "    s.chat({'messages': [{'role': 'user', 'content': 'Hi'}], 'max_tokens': 3})\n"
        "try:\n"
        "    LocalServer(sys.argv[2])\n"
        "except ModelUnavailable:\n"
        "    sys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tiny.path, tmp_path / "cut.gguf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_threads_respect_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = physical_cores()
    assert 1 <= cores <= (os.cpu_count() or 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert physical_cores() == 1
    for odd in ("0", "2,3", "many", "100000"):
        monkeypatch.setenv("OMP_NUM_THREADS", odd)
        assert physical_cores() == cores


@pytest.mark.local
def test_real_weights(real_model: Path) -> None:
    question = [{"role": "user", "content": "What is 2 + 3?"}]
    with LocalServer(real_model) as running:
        body = {"messages": question, "max_tokens": 40, "temperature": 0, "seed": 1}
        reply = running.chat(body)
        assert "5" in content(reply)
        body = {"messages": question, "max_tokens": 30, "temperature": 0.9, "seed": 5}
        assert content(running.chat(body)) == content(running.chat(body))
        answer = json.loads(content(running.chat({"messages": ASK, "response_format": FORMAT})))
        assert set(answer) == {"colour", "number"}
