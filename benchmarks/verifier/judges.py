"""69 simulated judges on a fixed grid of parameters, stated before any verdict was looked at.

Each family is one way in which a judge can err, from slightly to completely; the noise between
repeats is drawn once for each judge (`SEED`). No family says which verdict is right: whether a
judge is good is its balanced accuracy, see `truth`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.verdicts import kinds
from benchmarks.verdicts.kinds import Rate, right
from benchmarks.verdicts.world import Design, Floats, World, load_task, make_world, rate

SEED = 20261129
NOISE = (0.03, 0.12)  # standard deviation between repeats, as a share of the scale
SHARE = (0.5, 0.5, 0.5)  # of success, of each system
Flags = NDArray[np.bool_]
HELD_OUT = 4000  # runs from which the truth is known


@dataclass(frozen=True)
class SimulatedJudge:
    """A judge: its latent ratings, its noise, and whether it is faultless but for noise and use of
    the scale."""

    name: str
    family: str
    rate: Rate
    noise: float
    faultless: bool = False

    def ratings(self, world: World, rng: np.random.Generator) -> Floats:
        """Return ratings on the levels of the criteria: (texts, repeats, criteria)."""
        return rate(world, self.rate(world, rng), self.noise, rng)


def mixed(share: float, other: Rate) -> Rate:
    """Right, but for this share of another opinion."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        return np.asarray((1 - share) * right(world, rng) + share * other(world, rng))

    return latent


def used_scale(offset: float, width: float = 1.0) -> Rate:
    """Right, but lenient or severe by `offset`, or with a part of the scale only."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        return np.asarray(0.5 + offset + width * (right(world, rng) - 0.5))

    return latent


def partial(count: int, other: Rate) -> Rate:
    """Right, but for the first `count` criteria, which are rated in another way."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        rated = np.array(right(world, rng))
        rated[:, :, :count] = other(world, rng)[:, :, :count]
        return rated

    return latent


def opinions(size: float) -> Rate:
    """Right, but the first system is liked by `size`, the third disliked."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        liked = (1 - world.system[world.run]) * size
        return np.asarray(right(world, rng) + liked[:, None, None])

    return latent


def moving(shift: float) -> Rate:
    """Right, but each repeat is more severe by `shift` than the one before."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        return np.asarray(right(world, rng) - shift * np.arange(world.repeats)[None, :, None])

    return latent


def careless(missed: float) -> Rate:
    """Right about originals, but this share of damaged copies is taken for the original."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        unseen = (rng.random(len(world.run)) < missed)[:, None]
        return world.repeated(np.where(unseen, world.truth[world.run], world.truth))

    return latent


def confused(share: float) -> Rate:
    """Notices damage, but rates this share of the runs as if they were others, every time."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        wrong = (rng.random(world.runs) < share)[world.run][:, None, None]
        return np.where(wrong, kinds.damage_alone(world, rng), right(world, rng))

    return latent


def swayed(size: float) -> Rate:
    """Right, but white space costs `size` of the scale."""

    def latent(world: World, rng: np.random.Generator) -> Floats:
        return world.repeated(world.truth - size * world.is_variant("whitespace")[:, None])

    return latent


def leaning(world: World, rng: np.random.Generator) -> Floats:
    """The opinion that failed runs are better; damage is noticed."""
    failed = (world.success[world.run] == 0)[:, None]
    return world.repeated(failed - world.fall)


def _families() -> Iterator[tuple[str, Iterable[tuple[str, Rate]]]]:
    yield (
        "lenient or severe",
        ((f"offset {b:+.1f}", used_scale(b)) for b in (-0.3, -0.2, -0.1, 0.1, 0.2, 0.3)),
    )
    yield "part of the scale", ((f"{w:.0%} of it", used_scale(0, w)) for w in (0.3, 0.5, 0.7))
    yield "length", ((f"{w:.0%}", mixed(w, kinds.by_length)) for w in (0.1, 0.2, 0.35, 0.5, 0.7))
    yield "halo", ((f"{w:.0%}", mixed(w, kinds.halo)) for w in (0.3, 0.6, 1.0))
    yield "claims", ((f"{w:.0%}", mixed(w, kinds.sycophant)) for w in (0.2, 0.4, 0.6, 0.8))
    yield "leaning to failed", ((f"{w:.0%}", mixed(w, leaning)) for w in (0.2, 0.35, 0.5, 0.65))
    yield "upside down", ((f"on {k}", partial(k, kinds.inverted)) for k in (1, 2, 3, 5, 9))
    yield "blind criteria", ((f"{k}", partial(k, kinds.constant)) for k in (1, 3, 5, 7))
    yield "opinions of systems", ((f"{b:.1f}", opinions(b)) for b in (0.1, 0.2, 0.3, 0.5))
    yield "severer repeats", ((f"{b:.2f}", moving(b)) for b in (0.05, 0.1, 0.2))
    yield "careless", ((f"misses {p:.0%}", careless(p)) for p in (0.25, 0.5, 0.75))
    yield "white space", ((f"{b:.2f}", swayed(b)) for b in (0.05, 0.1, 0.25))
    yield "confused", ((f"{q:.0%}", confused(q)) for q in (0.1, 0.25, 0.5, 0.75, 1.0))
    yield (
        "no judge",
        (
            ("random", kinds.by_chance),
            ("constant", kinds.constant),
            ("position", kinds.by_place),
            ("keyword", kinds.by_keyword),
            ("believes claims", kinds.sycophant),
            ("believes claims, sees damage", kinds.sycophant_and_damage),
        ),
    )
    yield (
        "one system",
        (
            ("others fixed", kinds.one_system(0.75, 0.75)),
            ("others best and worst", kinds.one_system(1.0, 0.0)),
            ("third upside down", kinds.inverted_for_a_system),
        ),
    )


def judges() -> list[SimulatedJudge]:
    """Return all judges, in order."""
    rng = np.random.default_rng(SEED)
    noises = (0.04, 0.06, 0.08, 0.10, 0.12, 0.15, 0.20, 0.30)
    listed = [SimulatedJudge(f"noise {sd:.2f}", "noise", right, sd, sd <= 0.12) for sd in noises]
    for family, members in _families():
        faultless = family in ("lenient or severe", "part of the scale")
        for name, latent in members:
            noise = round(float(rng.uniform(*NOISE)), 3)
            listed.append(SimulatedJudge(f"{family}: {name}", family, latent, noise, faultless))
    return listed


@cache
def truth(judge: SimulatedJudge, task: str) -> float:
    """Return the balanced accuracy of a judge: its mean score over criteria and two repeats against
    success, on 4,000 runs, with the threshold that is best on 4,000 others."""
    scores, successes = [], []
    for part in (0, 1):
        rng = np.random.default_rng([SEED, part])
        world = make_world(load_task(task), Design(HELD_OUT, copied=0.0), SHARE, rng)
        scores.append(judge.ratings(world, rng).mean(axis=(1, 2)))
        successes.append(world.success == 1)
    return balanced(scores[1] >= best_threshold(scores[0], successes[0]), successes[1])


def best_threshold(scores: Floats, success: Flags) -> float:
    """Return the score from which a run is called a success so that most is right."""
    limits = np.quantile(scores, np.linspace(0, 1, 201))
    return float(max(limits, key=lambda limit: balanced(scores >= limit, success)))


def balanced(called: Flags, success: Flags) -> float:
    """Return the mean of sensitivity and specificity."""
    return float((called[success].mean() + (~called[~success]).mean()) / 2)
