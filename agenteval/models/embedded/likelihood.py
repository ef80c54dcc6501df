"""Exact token log-probabilities of given texts, from a GGUF file, in torch float32.

Usage::

    model = LikelihoodModel.load(weights.require())      # or any Path to a GGUF file
    prefix = chat_prefix([{"role": "user", "content": problem}])
    one = model.token_logprobs(prefix, solution)
    one.logprobs                     # (n,) natural log, float64, one per token of the text
    one.starts, one.ends             # (n,) character span of each token in the text
    many = model.many([(prefix, a), (prefix, b)])        # the same, batched

Tokenisation: prefix and text are tokenised separately and their tokens concatenated, so that the
tokens of a text do not depend on what stands before it. Control tokens (<|im_start|> and such) are
recognised in the prefix only; in the text they are plain characters. An empty prefix stands for
the begin of a document (`Shape.empty`). Nothing is added after the text.

Length: up to 2048 tokens are seen at once; longer ones are scored in windows, see `plan`.

Equality: the order of floating-point sums depends on what is computed together, so a value may
differ by about 1e-5 (tests allow 1e-4) between `many` and `token_logprobs`, between numbers of
threads and between processors; the same call on the same machine gives the same bits.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import ModelUnavailable
from agenteval.models.embedded import convert, plan
from agenteval.models.embedded.tokenizer import Tokenizer
from agenteval.models.weights import cache_root, remembered_sha256


@dataclass(frozen=True, eq=False)
class TokenLogprobs:
    """One text, token by token; all arrays have the length n (0 for an empty text).

    logprobs: natural log of P(token | prefix, earlier tokens), float64, finite, <= 0.
    starts, ends: the token's characters are text[start:end]; the spans cover the text in order.
    Tokens that split one character all carry that character's span.
    """

    logprobs: NDArray[np.float64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class LikelihoodModel:
    """A language model that says how probable a text is. Safe to use from several threads."""

    def __init__(self, decoder: Any, tokenizer: Tokenizer, sha256: str) -> None:
        self.sha256 = sha256
        """Of the GGUF file: the identity of the model."""
        self._decoder = decoder
        self._tokenizer = tokenizer
        self._window = min(plan.WINDOW, decoder.shape.context)
        self._lock = threading.Lock()

    @classmethod
    def load(
        cls,
        gguf_path: Path | str,
        *,
        threads: int | None = None,
        cache_dir: Path | str | None = None,
    ) -> LikelihoodModel:
        """Load from a GGUF file; the first time it is converted into the cache.

        `threads` sets torch's threads for the whole process; None leaves them as they are.
        Raises ModelUnavailable, one line: no such file, not GGUF, an architecture or tokenizer
        that cannot be represented exactly, torch not installed, disk full.
        """
        path = Path(gguf_path)
        convert.require_gguf(path)
        try:
            import safetensors  # noqa: F401
            import tokenizers  # noqa: F401
            import torch
        except ImportError as error:
            raise ModelUnavailable(
                f"likelihood needs torch ({error}): install agenteval[local]"
            ) from error
        if threads is not None:
            torch.set_num_threads(threads)
        digest = remembered_sha256(path, cache_dir)
        root = cache_root(cache_dir) / "likelihood"
        folder = convert.converted(path, digest, root)
        opened = _open(folder)
        if opened is None:  # damaged in the cache: made anew, once
            shutil.rmtree(folder)
            opened = _open(convert.converted(path, digest, root))
        if opened is None:
            raise ModelUnavailable(f"the converted model in {folder} cannot be read")
        return cls(*opened, digest)

    def token_logprobs(self, prefix: str, text: str) -> TokenLogprobs:
        """Log-probabilities of the tokens of `text` after `prefix`.

        Raises InputError when one of them is not valid Unicode (a lone surrogate).
        """
        return self.many([(prefix, text)])[0]

    def many(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLogprobs]:
        """As `token_logprobs` for each (prefix, text), in the order given.

        Texts of like length are computed together, and a prefix that several texts share is
        computed once.
        """
        import torch

        encoded = [self._tokenizer.text(text) for _, text in pairs]
        logprobs = [np.full(len(ids), np.nan) for ids, _ in encoded]
        wanted: list[plan.Window] = []
        for item, ((prefix, _), (ids, _)) in enumerate(zip(pairs, encoded, strict=True)):
            before = self._tokenizer.prompt(prefix) or [self._decoder.shape.empty]
            wanted += plan.windows(item, before, ids, self._window)
        with self._lock, torch.inference_mode():
            for batch in plan.batches(wanted):
                for window, values in zip(batch.windows, self._score(batch), strict=True):
                    logprobs[window.item][window.at : window.at + len(values)] = values
        return [
            _result(values, spans) for values, (_, spans) in zip(logprobs, encoded, strict=True)
        ]

    def _score(self, batch: plan.Batch) -> list[NDArray[np.float64]]:
        import torch

        past = None
        if batch.shared:
            common = torch.tensor([batch.windows[0].context[: batch.shared]])
            _, past = self._decoder.hidden(common)
        rows = [(*w.context[batch.shared :], *w.targets[:-1]) for w in batch.windows]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *(0,) * (longest - len(row))] for row in rows])
        hidden, _ = self._decoder.hidden(ids, past)
        counts = [len(w.targets) for w in batch.windows]
        states = torch.cat(
            [
                hidden[index, len(row) - count : len(row)]
                for index, (row, count) in enumerate(zip(rows, counts, strict=True))
            ]
        )
        targets = torch.tensor([token for w in batch.windows for token in w.targets])
        values = self._decoder.logprobs(states, targets).numpy()
        return np.split(values, np.cumsum(counts)[:-1])


def _open(folder: Path) -> tuple[Any, Tokenizer] | None:
    """Decoder and tokenizer of a converted model; None when a file of it is damaged."""
    from safetensors import SafetensorError

    from agenteval.models.embedded.decoder import Decoder

    try:
        shape = convert.read_shape(folder)
        tokenizer = Tokenizer((folder / "tokenizer.json").read_text("utf-8"))
        return Decoder(shape, folder), tokenizer
    except (SafetensorError, OSError, ValueError, TypeError):
        return None


def _result(values: NDArray[np.float64], spans: Sequence[tuple[int, int]]) -> TokenLogprobs:
    if not np.isfinite(values).all():
        raise ModelUnavailable("the model gave a log-probability that is not finite")
    edges = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
    return TokenLogprobs(values, edges[:, 0].copy(), edges[:, 1].copy())
