"""Simulate judges and ask the verifier; see `python -m benchmarks.verdicts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from agenteval.records.verification import VerifiedSet
from agenteval.utility.verify import verify_table
from agenteval.utility.verify.options import VerifyOptions
from benchmarks.verdicts.kinds import (
    EXCEPT,
    KINDS,
    LIMITED,
    NOT,
    TRUSTED,
    UNDECIDED,
    Kind,
    without_numbers,
)
from benchmarks.verdicts.world import Design, as_table, load_task, make_world, rate

OPTIONS = VerifyOptions(resamples=200, draws=1000)


def verdict_of(kind: Kind, task: str, design: Design, seed: int) -> VerifiedSet:
    """What the verifier says of one judge of this kind; the same seed gives the same judge."""
    material = load_task(task)
    rng = np.random.default_rng([seed, [k.name for k in KINDS].index(kind.name)])
    world = make_world(material, design, kind.share, rng)
    ratings = rate(world, kind.rate(world, rng), kind.noise, rng)
    table = as_table(world, ratings)
    return verify_table(table, material.criteria, OPTIONS)


def classify(result: VerifiedSet) -> str:
    """The class of a verdict, as the table of kinds states it."""
    verdict = result.judge.verdict
    if "as one score" in verdict:
        return LIMITED
    if "except" in verdict:
        return EXCEPT
    if verdict == "trustworthy":
        return TRUSTED
    if verdict.startswith("trustworthy"):
        return LIMITED
    return NOT if verdict == "not trustworthy" else UNDECIDED


def truth(kind: Kind, task: str) -> Kind:
    """The kind with the verdict that is right on this task."""
    return kind if load_task(task).numbers else without_numbers(kind)


def simulate(kind: Kind, task: str, design: Design, seeds: Iterable[int]) -> Counter[str]:
    """How often a kind gets which verdict; "named" counts verdicts that except the right one."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        result = verdict_of(kind, task, design, seed)
        counts[classify(result)] += 1
        if kind.excepted is not None:
            wanted = load_task(task).criteria[kind.excepted].id
            counts["named"] += wanted in result.judge.refuted
    return counts
