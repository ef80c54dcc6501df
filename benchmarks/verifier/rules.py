"""Verdicts to compare: those of `verify`, and naive rules on the same ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from agenteval.utility.verify import verify_table
from benchmarks.verdicts.kinds import TRUSTED
from benchmarks.verdicts.simulate import OPTIONS, classify
from benchmarks.verdicts.world import Design, Floats, World, as_table, load_task, make_world
from benchmarks.verifier.judges import SEED, SHARE, Flags, SimulatedJudge, truth

DAMAGE = ("drop_sentences", "shuffle_sentences", "swap_numbers")


def alpha(ratings: Floats) -> float:
    """Return Krippendorff's alpha of repeats (interval), all texts and criteria together."""
    units = np.moveaxis(ratings, 1, 0).reshape(ratings.shape[1], -1)
    total = units.var(ddof=1)
    return float(1 - units.var(axis=0, ddof=1).mean() / total) if total else 0.0


def auc(scores: Floats, success: Flags) -> float:
    """Return the probability that a successful run is rated above a failed one (ties: half)."""
    n, m = success.sum(), (~success).sum()
    return float((rankdata(scores)[success].sum() - n * (n + 1) / 2) / (n * m))


def agrees(world: World, ratings: Floats) -> bool:
    """Repeats agree: alpha of at least .667."""
    return alpha(ratings[: world.runs]) >= 0.667


def sees_damage(world: World, ratings: Floats) -> bool:
    """Damaged copies are rated lower on average."""
    means = ratings.mean(axis=(1, 2))
    damaged = np.any([world.is_variant(name) for name in DAMAGE], axis=0)
    return bool((means[damaged] - means[world.run[damaged]]).mean() < 0)


def separates(world: World, ratings: Floats, least: float = 0.7) -> bool:
    """Success is told from failure: AUC of the mean score above .7."""
    return auc(ratings[: world.runs].mean(axis=(1, 2)), world.success == 1) > least


# "verify, and AUC > .85" was added when the verdicts were known, to see what the target costs.
NAIVE: dict[str, tuple[Callable[[World, Floats], bool], ...]] = {
    "repeats agree (alpha >= .667)": (agrees,),
    "damage lowers the mean": (sees_damage,),
    "AUC > .7": (separates,),
    "all three": (agrees, sees_damage, separates),
}


@dataclass
class Judged:
    """One simulation: a judge with its truth, the class of `verify`'s verdict, and which rules
    trust the judge; `verify` is one of them."""

    judge: str
    family: str
    faultless: bool
    task: str
    truth: float
    runs: int
    seed: int
    verdict: str
    trusted: dict[str, bool]


def judge_once(judge: SimulatedJudge, task: str, runs: int, seed: int) -> Judged:
    """Return what is said of one judge that rates `runs` runs and their copies twice."""
    rng = np.random.default_rng([SEED, seed, runs, *judge.name.encode()])
    world = make_world(load_task(task), Design(runs), SHARE, rng)
    ratings = judge.ratings(world, rng)
    table = as_table(world, ratings)
    verdict = classify(verify_table(table, world.task.criteria, OPTIONS))
    naive = {name: all(rule(world, ratings) for rule in rules) for name, rules in NAIVE.items()}
    clearly = separates(world, ratings, 0.85)
    return Judged(
        judge=judge.name,
        family=judge.family,
        faultless=judge.faultless,
        task=task,
        truth=truth(judge, task),
        runs=runs,
        seed=seed,
        verdict=verdict,
        trusted={
            "verify": verdict == TRUSTED,
            "verify, and AUC > .85": verdict == TRUSTED and clearly,
            **naive,
        },
    )
