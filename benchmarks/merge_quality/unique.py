"""Distinct criteria against the number of seeds: the embedded critic's, and recorded replies'."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import ReplyError
from agenteval.evaluators.utility import retrieval
from agenteval.evaluators.utility.critic_reply import read_criteria
from agenteval.evaluators.utility.merge import cluster_members
from agenteval.models import weights
from agenteval.models.embedded import likelihood
from agenteval.proposals import CURVE_TAUS
from agenteval.readers.tasks import find_task
from agenteval.records import Criterion, Task, content_hash
from agenteval.stats import UniqueCurve, unique_curve

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder

MODES = {"task-based": False, "solution-based": True}  # whether the critic sees the examples
RESAMPLES = 200
KEPT = 50  # seeds kept at least: a draw costs nothing beside the ranking
Sets = list[list[Criterion]]


@dataclass(frozen=True)
class ModeCurves:
    """Curves of one mode.

    `by_tau` counts distinct criteria after merging. `concepts` counts the concepts of the bank
    that were meant, so it is what perfect merging would give; None where nobody knows them.
    """

    seeds: int
    proposed: int
    by_tau: dict[float, UniqueCurve]
    concepts: UniqueCurve | None


def propose(task_folder: Path, embedder: Embedder, seeds: int, cache: Path) -> dict[str, Sets]:
    """Per mode the proposals of the embedded critic, one list per seed 0, 1, ...

    They are what `agenteval criteria --model embedded` proposes, with --no-examples for the
    task-based mode. Ranking the bank takes the time, once per mode; every seed then draws from
    the ranking. Kept in `cache`, under a hash of the task, the bank, the critic's code and
    weights, the embedder and the number of seeds. Raises ModelUnavailable without weights.
    """
    count = max(seeds, KEPT)
    task = find_task(str(task_folder)).task
    path = weights.require()
    key = content_hash(
        {
            "task": task.model_dump(mode="json"),
            "bank": files("agenteval.data").joinpath("bank.json").read_text("utf-8"),
            "code": [Path(str(m.__file__)).read_text("utf-8") for m in (retrieval, likelihood)],
            "weights": weights.remembered_sha256(path),
            "embedder": embedder.name,
            "seeds": count,
        }
    )
    file = cache / f"proposals-{key[:16]}.json"
    if file.is_file():
        kept = json.loads(file.read_text("utf-8"))
        return {
            m: [[Criterion.model_validate(c) for c in s] for s in kept[m][:seeds]] for m in MODES
        }
    found = _ask(task, embedder, count, path)
    plain = {
        m: [[c.model_dump(mode="json", by_alias=True) for c in s] for s in sets]
        for m, sets in found.items()
    }
    cache.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(plain, ensure_ascii=False), "utf-8")
    fresh.replace(file)
    return {mode: sets[:seeds] for mode, sets in found.items()}


def _ask(task: Task, embedder: Embedder, seeds: int, path: Path) -> dict[str, Sets]:
    model = likelihood.LikelihoodModel.load(path)
    found = {}
    for mode, use_examples in MODES.items():
        start = time.perf_counter()
        ranking = retrieval.rank_bank(task, embedder, model, use_examples=use_examples)
        found[mode] = [retrieval.draw(ranking, seed) for seed in range(seeds)]
        print(f"{mode}: {seeds} seeds proposed in {time.perf_counter() - start:.0f} s", flush=True)
    return found


def mode_curves(sets: Sequence[Sequence[Criterion]], embedder: Embedder) -> ModeCurves:
    """Curves of one mode at the thresholds of the package (.7, .85, 1). Raises without sets."""
    named = {c.provenance.concept for s in sets for c in s}
    number = {concept: i for i, concept in enumerate(sorted(map(str, named)))}
    meant = [sorted({number[str(c.provenance.concept)] for c in s}) for s in sets]
    return ModeCurves(
        seeds=len(sets),
        proposed=sum(map(len, sets)),
        by_tau={tau: curve(cluster_members(sets, embedder, tau=tau)) for tau in CURVE_TAUS},
        concepts=None if None in named else curve(meant),
    )


def curve(members: Sequence[Sequence[int]]) -> UniqueCurve:
    """Distinct members against the number of sets: exact mean, and the band of random orders."""
    return unique_curve(members, resamples=RESAMPLES, rng=np.random.default_rng(0))


def recorded(folder: Path) -> tuple[Sets, list[str]]:
    """Criteria of the critic replies in a folder (or file) of JSONL with a field `raw`.

    One list per reply that can be read, and one line for each that cannot. Raises ValueError when
    there are no replies.
    """
    paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    sets, failed = [], []
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            try:
                sets.append(read_criteria(str(json.loads(line)["raw"])).criteria)
            except ReplyError as error:
                failed.append(f"{path.name}:{number}: {error}")
    if not sets:
        raise ValueError(f"no critic reply can be read in {folder}")
    return sets, failed
