"""Judges of pairs with known faults, for the world of `tests.support.world`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from agenteval.records import Criterion, Run
from tests.support.world_truth import truth

PairJudge = Callable[[Run, Run, Criterion], str]
_MIRROR = {"first": "second", "second": "first", "tie": "tie"}


def _chance(seed: int, *texts: str) -> float:
    """A number in [0, 1) that depends on the texts and their order."""
    digest = hashlib.sha256("\0".join((str(seed), *texts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _larger(first: float, second: float, tolerance: float = 0.0) -> str:
    if abs(first - second) <= tolerance:
        return "tie"
    return "first" if first > second else "second"


def pair_judges(seed: int) -> dict[str, PairJudge]:
    """Return judges by their fault; "good" errs in a twentieth of the judgments."""

    def quality(run: Run) -> float:
        shares = truth(run.output, run.input)
        return sum((shares.completeness, shares.accuracy, shares.coherence)) / 3

    def good(first: Run, second: Run, criterion: Criterion) -> str:
        if first.output != second.output and _chance(seed, first.output, second.output) < 0.05:
            return _larger(quality(second), quality(first), 0.02)
        return _larger(quality(first), quality(second), 0.02)

    def position(first: Run, second: Run, criterion: Criterion) -> str:
        if _chance(seed, first.output, second.output) < 0.7:
            return "first"
        return good(first, second, criterion)

    def length(first: Run, second: Run, criterion: Criterion) -> str:
        return _larger(len(first.output), len(second.output))

    def upside_down(first: Run, second: Run, criterion: Criterion) -> str:
        return _MIRROR[good(first, second, criterion)]

    def random(first: Run, second: Run, criterion: Criterion) -> str:
        return list(_MIRROR)[int(3 * _chance(seed, first.output, second.output))]

    return {
        "good": good,
        "position": position,
        "length": length,
        "upside down": upside_down,
        "random": random,
    }
