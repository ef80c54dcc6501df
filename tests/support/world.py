"""A world with known truth: ledger derivations, real texts whose quality is computed from them.

Usage::

    rng = np.random.default_rng(1)
    runs = make_runs(60, rng)
    truth(runs[0].output, runs[0].input).levels      # (4, 3, 4)
    judged = criteria()                              # with the honest expectation per operator
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from agenteval.errors import InputError
from agenteval.records import Criterion, Run, Task
from agenteval.records.criteria import Direction
from tests.support.world_text import (
    CLOSING,
    FILLER,
    OPENING,
    PLACES,
    PROBLEM,
    RECEIVED,
    SENT,
    VAGUE,
)
from tests.support.world_truth import CRITERIA, Problem, read_problem, truth

TASK = Task(
    name="ledger",
    description="Book the movements of a store in order and state the closing balance.",
)
LABELS: dict[str, tuple[str, ...]] = {  # worst to best
    "completeness": ("mostly absent", "large gaps", "several gaps", "one gap", "nothing missing"),
    "accuracy": ("mostly wrong", "many errors", "several errors", "one error", "free of errors"),
    "coherence": ("jumbled", "often broken", "broken twice", "broken once", "in order throughout"),
}
_DESCRIPTIONS = {
    "completeness": "Every booking is shown with its balance, and the closing balance is stated.",
    "accuracy": "Each written equation books the amount of its booking and gives the right result.",
    "coherence": "The bookings that are shown stand in the order of the problem.",
}
OPERATORS = (
    *("drop_sentences", "drop_words", "drop_middle", "shuffle_sentences"),
    *("truncate", "swap_numbers", "pad", "whitespace", "formatting"),
)
_DROPS = ("drop_sentences", "drop_words", "drop_middle", "truncate")
# What is not named here changes nothing. Unknown: fewer joints and equations are left, so that a
# flaw that stays weighs more and one that goes leaves no trace; which of both wins is not fixed.
_LOWER: dict[str, tuple[str, ...]] = {
    "completeness": _DROPS,
    "accuracy": ("swap_numbers",),
    "coherence": ("shuffle_sentences",),
}
_UNKNOWN: dict[str, tuple[str, ...]] = {"completeness": (), "accuracy": _DROPS, "coherence": _DROPS}


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """How runs are drawn.

    skills: system → its skill in standard deviations; every case is drawn once for each. link:
    correlation of the kinds of defect within a run. flawless: share of runs without defects of a
    kind. worst: the largest expected share of steps with defects of a kind. noise: share of runs
    whose success label is turned round. sentences: the fewest and the most of a run.
    """

    skills: Mapping[str, float] = field(default_factory=lambda: {"ledger": 0.0})
    link: float = 0.7
    flawless: float = 0.45
    worst: float = 0.5
    noise: float = 0.05
    sentences: tuple[int, int] = (13, 14)


def criteria() -> tuple[Criterion, ...]:
    """The three criteria, 5 levels each from worst to best, with `expect` for every operator."""
    return tuple(
        Criterion(
            name=name.capitalize(),
            description=_DESCRIPTIONS[name],
            accepted_values=LABELS[name],
            expect={operator: expected(name, operator) for operator in OPERATORS},
        )
        for name in CRITERIA
    )


def expected(criterion: str, operator: str) -> Direction:
    """What `operator` does to the truth. Raises KeyError for a criterion of another world."""
    if operator in _LOWER[criterion]:
        return "lower"
    return "unknown" if operator in _UNKNOWN[criterion] else "none"


def make_runs(n: int, rng: np.random.Generator, options: WorldOptions | None = None) -> list[Run]:
    """n cases, one run of each system per case: ids "ledger-0007-system", text in `output`.

    A run succeeds when all three true levels are at least 3 of 4, but for the share `noise`.
    Length depends on the number of sentences, which is drawn apart from quality. Raises InputError
    for n below 1, no system, or a link, share or number of sentences out of bounds.
    """
    options = options or WorldOptions()
    _check(n, options)
    runs = []
    for case in range(n):
        problem = _problem(rng)
        hard = rng.normal()
        for system, skill in options.skills.items():
            badness = (hard + rng.normal()) / np.sqrt(2) - skill
            text = _derivation(
                read_problem(problem), _severities(badness, rng, options), rng, options
            )
            good = min(truth(text, problem).levels) >= 3
            runs.append(
                Run(
                    id=f"ledger-{case:04d}-{system}",
                    task=TASK.name,
                    system=system,
                    input=problem,
                    output=text,
                    success=bool(good != (rng.random() < options.noise)),
                )
            )
    return runs


def _check(n: int, options: WorldOptions) -> None:
    shares = (options.link, options.flawless, options.worst, options.noise)
    if n < 1 or not options.skills:
        raise InputError("a world needs at least one case and one system")
    if not all(0 <= s < 1 for s in shares):
        raise InputError("link, flawless, worst and noise are shares in [0, 1)")
    low, high = options.sentences
    if not 11 <= low <= high:
        raise InputError("sentences: 11 or more, the fewest first (9 bookings, opening, closing)")


def _problem(rng: np.random.Generator) -> str:
    count = int(rng.integers(7, 10))
    places = rng.choice(len(PLACES), count, replace=False)
    opening = balance = int(rng.integers(400, 601))
    told = []
    for place in places:
        amount = int(rng.integers(11, 61))
        up = rng.random() < (0.5 if 300 < balance < 700 else balance <= 300)
        balance += amount if up else -amount
        told.append(f"{'received from' if up else 'sent to'} {PLACES[place]} {amount}")
    return PROBLEM.format(n=opening, bookings="; ".join(told))


def _severities(badness: float, rng: np.random.Generator, options: WorldOptions) -> list[float]:
    """Expected share of steps with a defect, per criterion: 0 for `flawless`, then uniform."""
    own = rng.normal(size=len(CRITERIA))
    mixed = np.sqrt(options.link) * badness + np.sqrt(1 - options.link) * own
    rank = (ndtr(mixed) - options.flawless) / (1 - options.flawless)
    return [float(x) for x in np.clip(rank, 0, 1) * options.worst]


def _derivation(
    task: Problem, severities: Sequence[float], rng: np.random.Generator, options: WorldOptions
) -> str:
    gaps, errors, breaks = severities
    steps = len(task.amounts)
    missing = set(_some(steps, gaps, rng))
    shown = [i for i in range(steps) if i not in missing]
    wrong = {shown[i] for i in _some(len(shown), errors, rng)}
    told, balance = _told(task, wrong, missing, rng)
    order = _broken(shown, len(_some(len(shown) - 1, breaks, rng)), rng)
    body = [told[i] for i in order]
    total = int(rng.integers(options.sentences[0], options.sentences[1] + 1))
    extra = [FILLER[i] for i in rng.permutation(len(FILLER))[: total - 2 - steps]]
    extra += [_pick(VAGUE, rng).format(n=abs(task.amounts[i])) for i in sorted(missing)]
    for sentence in extra:
        body.insert(int(rng.integers(0, len(body) + 1)), sentence)
    first = _pick(OPENING, rng).format(n=task.opening)
    return " ".join([first, *body, _pick(CLOSING, rng).format(n=balance)])


def _told(
    task: Problem, wrong: set[int], missing: set[int], rng: np.random.Generator
) -> tuple[dict[int, str], int]:
    """A sentence per step, in the problem's order, with errors carried on; and the last balance."""
    balance, told = task.opening, {}
    for i, (place, amount) in enumerate(zip(task.places, task.amounts, strict=True)):
        moved = abs(amount)
        after = balance + amount
        if i in wrong:
            slip = int(rng.integers(1, 10)) * (1 if rng.random() < 0.5 else -1)
            if rng.random() < 0.5:  # the amount is misread, or the sum is wrong
                moved += abs(slip)
                after = balance + (moved if amount > 0 else -moved)
            else:
                after += slip
        equation = f"{balance} {'+' if amount > 0 else '-'} {moved} = {after}"
        words = _pick(RECEIVED if amount > 0 else SENT, rng)
        if i not in missing:
            told[i] = words.format(p=place.capitalize(), e=equation)
        balance = after
    return told, balance


def _pick(texts: Sequence[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


def _some(n: int, share: float, rng: np.random.Generator) -> list[int]:
    """A random subset of range(n) of size n * share, rounded up or down at random, at most n."""
    size = min(n, int(n * share + rng.random())) if n > 0 else 0
    return [int(i) for i in rng.permutation(max(n, 0))[:size]]


def _broken(steps: list[int], breaks: int, rng: np.random.Generator) -> list[int]:
    """The steps cut at `breaks` joints and put together so that no two joints close again."""
    if breaks == 0:
        return steps
    cuts = sorted(int(i) for i in rng.permutation(len(steps) - 1)[:breaks] + 1)
    blocks = [steps[a:b] for a, b in zip([0, *cuts], [*cuts, len(steps)], strict=True)]
    while True:
        order = rng.permutation(len(blocks))
        if all(order[1:] - order[:-1] != 1):
            return [step for i in order for step in blocks[i]]
