"""What is true of simulated runs and their copies, from the labels of people on a task's runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.stats.scores import NAMED, ORIGINAL, CodedColumn, ScoreTable
from agenteval.utility.criteria_file import load_criteria
from benchmarks.folders import ROOT

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
OPERATORS = ("drop_sentences", "shuffle_sentences", "swap_numbers", "pad", "whitespace")
VARIANTS = (ORIGINAL, *(f"{name}:0.25:0" for name in OPERATORS))
_LENGTHS = np.array([1.0, 0.8, 1.0, 1.0, 1.15, 1.0])
SYSTEMS = ("first", "second", "third")


@dataclass(frozen=True)
class Task:
    """Criteria of a task and the levels (shares of the scale) that people gave to its runs.

    `good` and `bad` hold one row for each labelled run that succeeded or failed.
    """

    name: str
    criteria: tuple[Criterion, ...]
    good: Floats
    bad: Floats
    numbers: bool


@lru_cache
def load_task(name: str) -> Task:
    """The reviewed criteria of a task and the labels of its first rater."""
    criteria = load_criteria(ROOT / f"criteria/{name}.reviewed.json").criteria.criteria
    place = {c.id: i for i, c in enumerate(criteria)}
    success = {r["id"]: r["success"] for r in _lines(name, "runs")}
    levels: dict[str, Floats] = defaultdict(lambda: np.full(len(criteria), np.nan))
    for row in _lines(name, "ratings"):
        if row["rater"] == "A" and row["label"]:
            at = place[row["criterion"]]
            levels[row["run"]][at] = criteria[at].value_of(row["label"])
    rows = {run: row for run, row in levels.items() if not np.isnan(row).any()}
    good, bad = (np.array([r for i, r in rows.items() if success[i] is s]) for s in (True, False))
    return Task(name, tuple(criteria), good, bad, numbers=name == "math")


def _lines(task: str, file: str) -> list[dict[str, Any]]:
    text = (ROOT / f"tasks/{task}/{file}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@dataclass(frozen=True)
class World:
    """Runs and copies with their true qualities; the first `runs` texts are the originals.

    `run`, `variant`, `length`, `keywords` and `claims` have one entry for each text, `truth` and
    `fall` (by how much a copy is worse than its original) a row. Truth is continuous: 0 is the
    worst level, 1 the best, and half a level beyond both ends may occur.
    """

    task: Task
    success: Ints
    system: Ints
    case: Ints
    run: Ints
    variant: Ints
    truth: Floats
    fall: Floats
    length: Floats
    keywords: Ints
    claims: NDArray[np.bool_]
    step: Floats
    repeats: int

    @property
    def runs(self) -> int:
        """Number of originals."""
        return len(self.success)

    @property
    def criteria(self) -> int:
        """Number of criteria."""
        return len(self.task.criteria)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(texts, repeats, criteria)."""
        return len(self.run), self.repeats, self.criteria

    def repeated(self, values: Floats) -> Floats:
        """(texts, criteria) for every repeat."""
        wide = np.broadcast_to(values, (len(self.run), self.criteria))
        return np.broadcast_to(wide[:, None, :], self.shape)

    def is_variant(self, operator: str) -> NDArray[np.bool_]:
        """Which texts are copies by this operator."""
        return np.asarray(self.variant == VARIANTS.index(f"{operator}:0.25:0"))


@dataclass(frozen=True)
class Design:
    """How much is judged: `runs` of three systems, in turn; `copied` is the share with copies.

    With `shared` the systems answer the same cases, else every run is a case of its own.
    """

    runs: int
    repeats: int = 2
    copied: float = 1.0
    shared: bool = False


def make_world(
    task: Task, design: Design, share: Sequence[float], rng: np.random.Generator
) -> World:
    """Draw runs with the qualities of labelled ones, and damage their copies."""
    n, k = design.runs, len(task.criteria)
    system = np.arange(n) % 3
    success = np.zeros(n, dtype=np.intp)
    for s in range(3):  # the share is met exactly, up to rounding
        (mine,) = np.nonzero(system == s)
        success[rng.permutation(mine)[: round(share[s] * len(mine))]] = 1
    step = np.array([1 / (len(c.accepted_values) - 1) for c in task.criteria])
    pools = (task.bad, task.good)
    quality = np.array([pools[s][rng.integers(len(pools[s]))] for s in success])
    quality = quality + rng.uniform(-0.5, 0.5, (n, k)) * step
    copied = rng.permutation(n)[: round(design.copied * n)]
    parts = [(0, np.arange(n))]
    for v, operator in enumerate(OPERATORS, 1):
        if operator != "swap_numbers" or task.numbers:
            often = 0.95 if operator == "swap_numbers" else 1.0  # not every run holds numbers
            parts.append((v, np.sort(copied[rng.random(len(copied)) < often])))
    run = np.concatenate([runs for _, runs in parts])
    variant = np.concatenate([np.full(len(runs), v) for v, runs in parts])
    fall = np.zeros((len(run), k))
    for v, operator in enumerate(OPERATORS, 1):
        at = np.flatnonzero(variant == v)
        for j, criterion in enumerate(task.criteria):
            expected = criterion.expect.get(operator, "unknown")
            often, least, most = {"lower": (0.75, 0.25, 0.6), "unknown": (0.3, 0.1, 0.4)}.get(
                expected, (0.0, 0.0, 0.0)
            )
            hit = rng.random(len(at)) < (0.0 if operator == "whitespace" else often)
            fall[at, j] = hit * np.maximum(
                rng.uniform(least, most, len(at)), step[j] * (least > 0.2)
            )
    words = rng.integers(1, 6, n)
    keywords = np.where(variant == 1, rng.binomial(words[run], 0.75), words[run])
    keywords = keywords + (variant == 4)
    claims = (rng.random(n) < np.where(success == 1, 0.95, 0.8))[run]
    claims = claims & ~((variant == 1) & (rng.random(len(run)) < 0.25))
    return World(
        task=task,
        success=success,
        system=system,
        case=np.arange(n) // 3 if design.shared else np.arange(n),
        run=run,
        variant=variant,
        truth=np.maximum(quality[run] - fall, -0.5 * step),
        fall=fall,
        length=rng.lognormal(7, 0.4, n)[run] * _LENGTHS[variant],
        keywords=keywords,
        claims=claims,
        step=step,
        repeats=design.repeats,
    )


def rate(world: World, latent: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """Ratings as a judge writes them: latent values with noise, on the levels of each criterion."""
    noisy = latent + rng.normal(0, noise, world.shape)
    return np.asarray(np.clip(np.floor(noisy / world.step + 0.5) * world.step, 0, 1))


def as_table(world: World, ratings: Floats) -> ScoreTable:
    """The score table of these ratings (texts, repeats, criteria)."""
    texts, repeats, k = world.shape
    width = repeats * k
    run = np.repeat(world.run, width).astype(np.int32)

    def column(codes: NDArray[Any], names: Sequence[str]) -> CodedColumn:
        return CodedColumn(codes.astype(np.int32), tuple(names))

    criteria = [c.id for c in world.task.criteria]
    columns = dict.fromkeys(NAMED, column(np.full(len(run), -1), ())) | {
        "run": column(run, [f"run-{i:03}" for i in range(world.runs)]),
        "case": column(world.case[run], [f"case-{i:03}" for i in range(world.runs)]),
        "system": column(world.system[run], SYSTEMS),
        "criterion": column(np.tile(np.arange(k), texts * repeats), criteria),
        "variant": column(np.repeat(world.variant, width), VARIANTS),
        "status": column(np.zeros(len(run)), ("scored",)),
    }
    return ScoreTable(
        **columns,
        repeat=np.tile(np.repeat(np.arange(repeats), k), texts).astype(np.int32),
        success=world.success[run].astype(np.int8),
        value=ratings.ravel(),
    )
