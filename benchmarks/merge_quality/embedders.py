"""Embedders beside the default one: word and character n-grams, and other forms of the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.evaluators.utility.merge import cluster_members
from agenteval.records import Criterion

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder, Vectors

FORMS: dict[str, Callable[[Criterion], str]] = {
    "name: description": lambda c: f"{c.name}: {c.description}".removesuffix(": "),
    "name": lambda c: c.name,
    "description": lambda c: c.description,
}
MERGED = "name: description"  # what merge_criteria hands to its embedder
N_GRAMS: dict[str, dict[str, Any]] = {
    "TF-IDF words": {"analyzer": "word", "ngram_range": (1, 2)},
    "TF-IDF characters": {"analyzer": "char_wb", "ngram_range": (3, 5)},
}


class KnownTexts:
    """An embedder that looks its vectors up, so that each text is embedded once for all tau."""

    default_tau = 0.7  # never used: every tau is named
    tau_is_measured = False

    def __init__(self, name: str, rows: Mapping[str, Vectors]) -> None:
        self.name = name
        self._rows = rows

    def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 array (n, d) of unit rows. Raises KeyError for a text that is not known."""
        return np.stack([self._rows[text] for text in texts])


def n_grams(name: str, texts: Sequence[str]) -> Vectors:
    """TF-IDF vectors (n, d; float32 unit rows) of one of N_GRAMS, sublinear counts.

    The weights of the n-grams come from these texts alone. Raises ValueError when a text has no
    n-gram.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = TfidfVectorizer(**N_GRAMS[name], sublinear_tf=True).fit_transform(texts).toarray()
    if not rows.any(axis=1).all():
        raise ValueError(f"{name}: a text holds no n-gram")
    return np.asarray(rows, dtype=np.float32)


def in_form(
    criteria: Sequence[Criterion],
    name: str,
    embed: Callable[[Sequence[str]], Vectors],
    form: str = MERGED,
) -> tuple[KnownTexts, Vectors]:
    """An embedder that answers merging with the vectors of another form of the text.

    Also the vectors in the order of the criteria, (n, d).
    """
    vectors = embed([FORMS[form](c) for c in criteria])
    keys = [FORMS[MERGED](c) for c in criteria]
    return KnownTexts(name, dict(zip(keys, vectors, strict=True))), vectors


def labels(criteria: Sequence[Criterion], embedder: Embedder | None, tau: float) -> list[int]:
    """Number of the cluster of each criterion, by `merge_criteria`'s clustering."""
    return [one for (one,) in cluster_members([[c] for c in criteria], embedder, tau=tau)]


def ceiling(concepts: Sequence[str], vectors: Vectors, tau: float) -> float:
    """Share of the pairs of one concept with a cosine of at least tau, whatever is merged."""
    place = np.unique(np.asarray(concepts), return_inverse=True)[1]
    same = np.triu(place[:, None] == place[None, :], k=1)
    cosines = (vectors @ vectors.T)[same]
    return float((cosines >= tau).mean())
