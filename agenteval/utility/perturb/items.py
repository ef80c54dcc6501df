"""The perturbation of a rubric: remove the part of the text that satisfies an item.

The sentences that are closest to an item of the run's rubric are replaced by sentences without
content of about the same length, so that the length gives no hint. A judge should then no longer
find the item satisfied.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from agenteval.models.embeddings import Embedder
from agenteval.records import Criterion, View
from agenteval.utility.perturb.changes import FILLERS
from agenteval.utility.perturb.layout import Edit, Unchanged, apply_edits, read_layout

_NEAR = 0.8  # share of the highest similarity from which a sentence counts as equivalent
_MOST = 1 / 3  # maximum share of replaced sentences

# (statements, sentences) -> similarity (statements, sentences), 1 for the same meaning
Similarity = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]


def without_item(view: View, rubric: Criterion, similarity: Similarity) -> tuple[View, str]:
    """Return a copy without what one positive item asks for, and the id of the item: the one that
    comes nearest to a sentence of the system, so that the work most probably satisfied it.

    Raises Unchanged if no sentence has anything in common with an item, or there is only one.
    """
    layout = read_layout(view.trajectory)
    pool = layout.sentences(least=2)
    items = [item for item in rubric.sub_criteria if (item.weight or 0.0) > 0]
    near = similarity([item.description for item in items], [layout.of(i) for i in pool])
    best = int(np.argmax(near.max(axis=1)))
    row = near[best]
    if row.max() <= 0:
        raise Unchanged("no sentence resembles an item")
    order = np.argsort(-row, kind="stable")[: max(1, int(len(pool) * _MOST))]
    chosen = [pool[int(k)] for k in order if row[k] >= _NEAR * row.max()]
    rng = np.random.default_rng(int(view.text_sha256[:15], 16))
    edits = []
    for number, index in enumerate(layout.with_copies(chosen)):
        start, end = layout.body(index)
        edits.append(Edit(start, end, _filler(end - start, rng.permutation(len(FILLERS)), number)))
    text = apply_edits(view.trajectory, edits)
    return view.model_copy(update={"trajectory": text}), items[best].id


def _filler(length: int, order: NDArray[np.int64], first: int) -> str:
    """Return sentences without content with approximately this length."""
    text = FILLERS[int(order[first % len(order)])]
    for k in order:
        longer = f"{text} {FILLERS[int(k)]}"
        if abs(len(longer) - length) >= abs(len(text) - length):
            break
        text = longer
    return text


def cosines(embedder: Embedder) -> Similarity:
    """Return a similarity function that uses an embedder."""

    def near(statements: Sequence[str], sentences: Sequence[str]) -> NDArray[np.float64]:
        vectors = embedder.embed(statements) @ embedder.embed(sentences).T
        return np.asarray(vectors, dtype=np.float64)

    return near


def common_words(statements: Sequence[str], sentences: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of a statement's words that occur in a sentence; rare words have a higher
    weight."""
    words = [set(re.findall(r"\w+", text.casefold())) for text in sentences]
    counts = Counter(word for sentence_words in words for word in sentence_words)
    near = np.zeros((len(statements), len(sentences)))
    for row, statement in zip(near, statements, strict=True):
        item_words = set(re.findall(r"\w+", statement.casefold()))
        weight = {word: math.log((1 + len(words)) / max(counts[word], 1)) for word in item_words}
        for k, sentence_words in enumerate(words):
            row[k] = sum(weight[word] for word in item_words & sentence_words) / (
                sum(weight.values()) or 1.0
            )
    return near
