"""The criteria bank, and the embedded critic: it cannot write criteria, so it retrieves them.

The bank holds concepts written by the maintainers, three phrasings each. A phrasing is ranked by
the sum of standardised evidence: cosine of its text with the task's, and the language model's gain,
mean log P(phrasing | task) - mean log P(phrasing | any task). With examples there is a third:
log P(phrasing | success) - log P(phrasing | failure), so examples that are swapped or removed
change the ranking. Each seed draws phrasings and perturbs the ranking with Gumbel noise, so that
seeds differ as runs of a critic do; what it takes is diversified.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agenteval.models.embedded.chat import chat_prefix
from agenteval.models.embeddings import Embedder
from agenteval.records import Criterion, Example, Provenance, Task

if TYPE_CHECKING:
    from agenteval.models.embedded.likelihood import LikelihoodModel

_SHORTLIST = 32  # concepts the language model is asked about, nearest first
_EXAMPLE_CHARS = 1600  # of all examples of a kind, so that a shortlist is scored in seconds
_ANY_TASK = "An AI system does a task."
_QUESTION = "Name one criterion by which the quality of this work should be judged."
_NOISE = 0.35  # scale of the Gumbel noise, in standard deviations of the ranking
_REPULSION = 1.0  # weight of the cosine to what is already taken

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of the bank. `phrasings` are (name, description) pairs."""

    id: str
    group: str
    phrasings: tuple[tuple[str, str], ...]
    record: dict[str, Any]

    def criterion(self, phrasing: int, *, seed: int | None = None) -> Criterion:
        """The concept as a criterion in one of its phrasings."""
        name, description = self.phrasings[phrasing]
        return Criterion(
            name=name,
            description=description,
            accepted_values=tuple(self.record["accepted_values"]),
            scale=self.record["scale"],
            allow_na=self.record.get("allow_na", False),
            hint=self.record["hint"],
            expect={op: e["direction"] for op, e in self.record["expect"].items()},
            provenance=Provenance(
                origin="bank", concept=self.id, seeds=() if seed is None else (seed,)
            ),
        )


@functools.cache
def load_bank() -> tuple[Concept, ...]:
    """All concepts, in the order of the file."""
    text = files("agenteval.data").joinpath("bank.json").read_text("utf-8")
    return tuple(
        Concept(
            id=entry["id"],
            group=entry["group"],
            phrasings=tuple((p["name"], p["description"]) for p in entry["phrasings"]),
            record=entry,
        )
        for entry in json.loads(text)["concepts"]
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Evidence for every shortlisted phrasing; rows are concepts, columns phrasings."""

    concepts: tuple[Concept, ...]
    score: Vector  # (concepts, phrasings), sum of standardised evidence
    vectors: Vector  # (concepts, phrasings, d), unit rows


def rank_bank(
    task: Task,
    embedder: Embedder,
    model: LikelihoodModel | None,
    *,
    use_examples: bool = False,
) -> Ranking:
    """Rank the bank for a task. Without a language model the cosine alone decides."""
    concepts = load_bank()
    phrasings = len(concepts[0].phrasings)
    texts = [f"{name}: {text}" for c in concepts for name, text in c.phrasings]
    rows = np.asarray(embedder.embed([f"{task.name}: {task.description}", *texts]), dtype=float)
    cosine = (rows[1:] @ rows[0]).reshape(len(concepts), phrasings)
    order = np.argsort(-cosine.mean(axis=1), kind="stable")[:_SHORTLIST]
    vectors = rows[1:].reshape(len(concepts), phrasings, -1)[order]
    short = tuple(concepts[i] for i in order)
    score = _standard(cosine[order])
    if model is not None:
        about = f"{task.name}. {task.description}"
        known = _loglik(model, about, short)
        score = score + _standard(known - _loglik(model, _ANY_TASK, short))
        if use_examples and task.examples:
            after_success, after_failure = (
                _loglik(model, about + _shown(examples, verdict), short) if examples else known
                for examples, verdict in (
                    (task.examples.success, "good"),
                    (task.examples.failed, "poor"),
                )
            )
            score = score + _standard(after_success - after_failure)
    return Ranking(short, score, vectors)


def _shown(examples: Sequence[Example], verdict: str) -> str:
    each = _EXAMPLE_CHARS // len(examples)
    texts = [f"{e.input}\n{e.output}"[:each] for e in examples]
    return f"\n\nExamples of {verdict} work:\n" + "\n\n".join(texts)


def _loglik(model: LikelihoodModel, situation: str, concepts: Sequence[Concept]) -> Vector:
    """Mean token log-likelihood of each concept's first phrasing, as a column.

    One phrasing stands for its concept: all of them would take three times as long and say the
    same of the concept.
    """
    prefix = chat_prefix([{"role": "user", "content": f"{situation}\n\n{_QUESTION}"}])
    pairs = [(prefix, "{}: {}".format(*c.phrasings[0])) for c in concepts]
    means = [float(np.mean(t.logprobs)) for t in model.many(pairs)]
    return np.asarray(means).reshape(len(concepts), 1)


def _standard(values: Vector) -> Vector:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def draw(ranking: Ranking, seed: int, *, count: int = 6) -> list[Criterion]:
    """The criteria one seed proposes: `count` distinct concepts, best first.

    The noise is drawn for the whole shortlist first, so a seed's draw depends on nothing else.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(len(ranking.concepts))
    columns = rng.integers(ranking.score.shape[1], size=len(rows))
    noise = rng.gumbel(size=len(rows))
    spread = float(ranking.score.std()) or 1.0
    score = ranking.score[rows, columns] + _NOISE * spread * noise
    vectors = ranking.vectors[rows, columns]
    taken: list[int] = []
    for _ in range(min(count, len(rows))):
        near = (vectors @ vectors[taken].T).max(axis=1) if taken else np.zeros(len(rows))
        value = score - _REPULSION * spread * near
        value[taken] = -np.inf
        taken.append(int(np.argmax(value)))
    return [ranking.concepts[i].criterion(int(columns[i]), seed=seed) for i in taken]
