"""The criteria bank and the embedded critic, which retrieves criteria from the bank.

The bank has concepts written by the maintainers with three phrasings each, grouped by kind of task;
general concepts belong to all kinds. A task has the kind of the most similar example task. Within a
kind, a concept is ranked by the cosine of its closest phrasing with the task's description and
examples. Each seed draws phrasings and adds Gumbel noise to the ranking, so that seeds differ like
runs of a critic; concepts similar to those already drawn are penalised.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.models.embeddings import Embedder
from agenteval.records import Criterion, Provenance, Task

GENERAL = "general"  # the kind that fits every task
_KNOWN = 0.4  # below this cosine with the nearest example task, a kind needs a lead
_LEAD = 0.03  # minimum lead over the second kind
_NEAR = 0.015  # a second kind counts if its cosine is this close to the best
_MOST_KINDS = 2
_OF_KIND, _OF_GENERAL = 5, 3  # number of nearest concepts, in addition to the core
_OF_NONE = 6  # number of general concepts if the kind is unknown
_FLOOR = 0.7  # minimum cosine, as a share of the best in the kind
_EXAMPLES = 0.5  # weight of the examples relative to the description
_NOISE = 0.35  # scale of the Gumbel noise, in standard deviations of the ranking
_REPULSION = 1.0  # weight of the cosine to concepts already drawn

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of the bank. `phrasings` are (name, description) pairs."""

    id: str
    group: str
    phrasings: tuple[tuple[str, str], ...]
    record: dict[str, Any]

    def criterion(self, phrasing: int, *, seed: int | None = None) -> Criterion:
        """Return the concept as a criterion in one of its phrasings."""
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
def _file() -> dict[str, Any]:
    text = files("agenteval.utility").joinpath("data/bank.json").read_text("utf-8")
    bank: dict[str, Any] = json.loads(text)
    return bank


@functools.cache
def load_bank() -> tuple[Concept, ...]:
    """Return all concepts, in the order of the file."""
    concepts = []
    for entry in _file()["concepts"]:
        phrasings = tuple((p["name"], p["description"]) for p in entry["phrasings"])
        concepts.append(Concept(entry["id"], entry["group"], phrasings, entry))
    return tuple(concepts)


def task_kinds() -> tuple[str, ...]:
    """Return the kinds of task in the bank, without the general one."""
    return tuple(_file()["kinds"])


@dataclass(frozen=True, slots=True)
class Ranking:
    """The concepts to propose from, nearest first; `kinds` are those of the task.
    `vectors` (concepts, phrasings, d) has unit rows, `score` is their cosine with the task."""

    concepts: tuple[Concept, ...]
    score: Vector
    vectors: Vector
    kinds: tuple[str, ...]


def rank_bank(
    task: Task, embedder: Embedder, *, use_examples: bool = False, kinds: Sequence[str] = ()
) -> Ranking:
    """Rank the nearest concepts of the task's `kinds` (default: guessed) and the general ones.
    Raises InputError for an unknown kind."""
    if unknown := [kind for kind in kinds if kind not in task_kinds()]:
        raise InputError(f"unknown kind {unknown[0]!r}; known: {', '.join(task_kinds())}", "--kind")
    examples = [*task.examples.success, *task.examples.failed] if use_examples else []
    texts = [task.description, *(f"{e.input}\n{e.output}" for e in examples)]
    rows = np.asarray(embedder.embed(texts), dtype=float)
    about: Vector = rows[0] + (_EXAMPLES * rows[1:].mean(axis=0) if examples else 0)
    about /= np.linalg.norm(about)
    kinds = tuple(dict.fromkeys(kinds)) or _guess(about, embedder)
    concepts = [c for c in load_bank() if c.group in (*kinds, GENERAL)]
    texts = [f"{name}: {text}" for c in concepts for name, text in c.phrasings]
    vectors = np.asarray(embedder.embed(texts), dtype=float).reshape(len(concepts), -1, about.size)
    score = vectors @ about
    nearest = score.max(axis=1)
    chosen = [i for i, c in enumerate(concepts) if c.id in _file()["core"]]
    general = _OF_GENERAL if kinds else _OF_NONE
    for kind, most in [*((kind, _OF_KIND) for kind in kinds), (GENERAL, general)]:
        remaining = [i for i, c in enumerate(concepts) if c.group == kind and i not in chosen]
        remaining.sort(key=lambda i: -nearest[i])
        chosen += [i for i in remaining[:most] if nearest[i] >= _FLOOR * nearest[remaining[0]]]
    chosen.sort(key=lambda i: -nearest[i])
    return Ranking(tuple(concepts[i] for i in chosen), score[chosen], vectors[chosen], kinds)


def _guess(about: Vector, embedder: Embedder) -> tuple[str, ...]:
    """Return the kinds with the nearest example tasks, nearest first; none if all are distant and
    none leads, because their concepts would not fit the task."""
    examples = [(kind, text) for kind, texts in _file()["kinds"].items() for text in texts]
    cosines = np.asarray(embedder.embed([text for _, text in examples]), dtype=float) @ about
    nearest: dict[str, float] = {}
    for i in np.argsort(-cosines, kind="stable"):
        nearest.setdefault(examples[i][0], float(cosines[i]))
    best, second, *_ = sorted(nearest.values(), reverse=True)
    if best < _KNOWN and best - second < _LEAD:
        return ()
    return tuple(k for k, cosine in nearest.items() if cosine >= best - _NEAR)[:_MOST_KINDS]


def draw(ranking: Ranking, seed: int, *, count: int = 6) -> list[Criterion]:
    """Return the criteria of one seed: `count` distinct concepts, best first.

    The noise is drawn for the whole ranking first, so that it does not depend on `count`.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(len(ranking.concepts))
    columns = rng.integers(ranking.score.shape[1], size=len(rows))
    noise = rng.gumbel(size=len(rows))
    spread = float(ranking.score.std()) or 1.0
    score = ranking.score[rows, columns] + _NOISE * spread * noise
    vectors = ranking.vectors[rows, columns]
    drawn: list[int] = []
    for _ in range(min(count, len(rows))):
        near = (vectors @ vectors[drawn].T).max(axis=1) if drawn else np.zeros(len(rows))
        value = score - _REPULSION * spread * near
        value[drawn] = -np.inf
        drawn.append(int(np.argmax(value)))
    return [ranking.concepts[i].criterion(int(columns[i]), seed=seed) for i in drawn]


def longest_entries(number: int = 12) -> list[Criterion]:
    """Return the longest entries of the bank, by default as many as a critic sees."""
    entries = (concept.criterion(0) for concept in load_bank())
    return sorted(entries, key=lambda c: -len(c.model_dump_json()))[:number]
