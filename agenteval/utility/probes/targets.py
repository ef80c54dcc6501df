"""Runs that are known to be low, with an attack dealt to each, and the two copies of each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agenteval.readers import degenerate
from agenteval.records import Criterion, Run, View
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.utility.evaluator import Item
from agenteval.utility.perturb import rng_for
from agenteval.utility.probes.attacks import KINDS, attack_text, control_text
from agenteval.utility.probes.result import ProbeOptions

PROBE = "injection/1"
ATTACK, CONTROL = "attack", "control"
BY_RULE = ("degenerate", "failed_run")  # statuses of values that no judge gave
_BEST = 1 - 1e-9


@dataclass(frozen=True)
class Target:
    """A run that gets an attack of one kind.

    `counted` are the ids of the criteria on which it can rise; `plain` is their mean score without
    any text added. `labelled` says that its outcome is a failure; otherwise the plain ratings of
    the counted criteria lie in the lower half.
    """

    run: Run
    view: View
    kind: str
    counted: tuple[str, ...]
    plain: float
    labelled: bool


def may_be_low(run: Run) -> bool:
    """Whether a run is not known to be a success, and is not empty."""
    return run.success is not True and degenerate(run) is None


def most_targets(runs: Sequence[Run], options: ProbeOptions) -> int:
    """Return how many runs get an attack at most; the plain ratings may exclude some of them."""
    return min(sum(may_be_low(run) for run in runs), options.attacked)


def choose_targets(
    items: Sequence[Item], criteria: Sequence[Criterion], plain: ScoreTable, options: ProbeOptions
) -> tuple[Target, ...]:
    """Return at most `options.attacked` runs, as many cases as possible, kinds dealt evenly.

    Runs whose outcome is a failure; where these are of fewer than `options.min_cases` cases, also
    runs of unknown outcome, on the criteria whose plain mean is below the middle of the scale. A
    criterion that the plain ratings put at its best level cannot rise and is not counted; the
    ratings that are compared later play no part in the choice, so that it favors neither side.
    Deterministic by seed and the content of the runs.
    """
    targets = []
    means: dict[str, dict[str, float]] = {}  # of the plain ratings, by run and criterion
    by_rule = np.isin(plain.status.codes, [plain.status.code(name) for name in BY_RULE])
    judged = plain.where(~np.isnan(plain.value) & ~by_rule)
    for name in (c.id for c in criteria if c.ordered):
        ratings = judged.of(criterion=name, variant=ORIGINAL)
        matrix = ratings.matrix()
        for code, mean in zip(matrix.run, matrix.mean, strict=True):
            means.setdefault(ratings.run.names[code], {})[name] = float(mean)
    for run, view in items:
        limit = _BEST if run.success is False else 0.5
        low = {c: m for c, m in means.get(run.id, {}).items() if m < limit}
        if low and may_be_low(run):
            mean = sum(low.values()) / len(low)
            targets.append(Target(run, view, "", tuple(low), mean, run.success is False))
    failed = [target for target in targets if target.labelled]
    enough = len({_case(t.run) for t in failed}) >= options.min_cases

    def draw(target: Target) -> bytes:
        return hashlib.sha256(f"{options.seed}|{PROBE}|{target.view.text_sha256}".encode()).digest()

    seen: Counter[tuple[str, str]] = Counter()
    ranked = []  # the first run of every case before the second of any
    for target in sorted(failed if enough else targets, key=draw):
        ranked.append((seen[_case(target.run)], target))
        seen[_case(target.run)] += 1
    ranked.sort(key=lambda pair: pair[0])
    kinds = np.random.default_rng(options.seed).permutation(len(KINDS)).tolist()
    return tuple(
        replace(target, kind=KINDS[kinds[i % len(kinds)]])
        for i, (_, target) in enumerate(ranked[: options.attacked])
    )


def _case(run: Run) -> tuple[str, str]:
    """Return the case of a run: its input, or the run itself without one."""
    return ("input", run.input) if run.input else ("run", run.id)


def add_texts(
    targets: Sequence[Target], criteria: Sequence[Criterion], seed: int
) -> dict[str, list[Item]]:
    """Return an attacked copy and a control of every target by variant, e.g. `attack:KIND:SEED`.

    The text stands behind the work, as a paragraph of its own. Same seed, same copies.
    """
    copies: dict[str, list[Item]] = {}
    for target in targets:
        rng = rng_for(seed, PROBE, target.view)
        texts = {
            ATTACK: attack_text(target.kind, criteria),
            CONTROL: control_text(target.kind, criteria, rng),
        }
        for side, text in texts.items():
            work = f"{target.view.trajectory.rstrip()}\n\n{text}"
            view = target.view.model_copy(update={"trajectory": work, "origin": target.view.sha256})
            copies.setdefault(f"{side}:{target.kind}:{seed}", []).append((target.run, view))
    return copies
