"""Kinds of judges with the verdict that each of them should get, stated before simulating.

A judge is a function from a simulated `World` (what is true of runs and copies) to latent ratings;
noise of every repeat, rounding to the levels and the table are added by `simulate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts.world import Floats, World

VERDICTS = ("trusted", "trusted except", "trusted as one score", "not trusted", "undecided")
TRUSTED, EXCEPT, LIMITED, NOT, UNDECIDED = VERDICTS

Rate = Callable[[World, np.random.Generator], Floats]


@dataclass(frozen=True)
class Kind:
    """A kind of judge.

    `rate` gives latent ratings of shape (texts, repeats, criteria), where 0 is the worst level and
    1 the best; `noise` is the standard deviation between repeats as a share of the scale.
    `allowed` are the verdicts that are right. `must_not` marks kinds whose trust is an error that
    counts against the goal of at most 5%. `excepted` says which criterion (by position) has to be
    named. `share` is the success rate of each of the three systems.
    """

    name: str
    rate: Rate
    allowed: tuple[str, ...]
    noise: float = 0.06
    must_not: bool = False
    excepted: int | None = None
    share: tuple[float, float, float] = (0.5, 0.5, 0.5)


def right(world: World, rng: np.random.Generator) -> Floats:
    """The true quality of every text."""
    return world.repeated(world.truth)


def by_chance(world: World, rng: np.random.Generator) -> Floats:
    """Any level."""
    return rng.random(world.shape) * 1.2 - 0.1


def constant(world: World, rng: np.random.Generator) -> Floats:
    """The same for everything."""
    return np.full(world.shape, 0.75)


def by_length(world: World, rng: np.random.Generator) -> Floats:
    """Longer is better, on every criterion."""
    ranks = np.searchsorted(np.sort(world.length[world.variant == 0]), world.length)
    return world.repeated((ranks / world.runs)[:, None])


def by_place(world: World, rng: np.random.Generator) -> Floats:
    """The later in the prompt, the better; the order of criteria is shuffled for every call."""
    order = rng.permuted(np.broadcast_to(np.arange(world.criteria), world.shape), axis=-1)
    return np.asarray(order / (world.criteria - 1), dtype=np.float64)


def by_keyword(world: World, rng: np.random.Generator) -> Floats:
    """Counts a word that dropped sentences take away and padding adds."""
    return world.repeated((world.keywords / 5)[:, None])


def inverted(world: World, rng: np.random.Generator) -> Floats:
    """Failed runs get the best level, successful ones the second best; damage is noticed."""
    best = np.where(world.success[world.run] == 1, 1 - world.step[None, :].T, 1.0).T
    return world.repeated(best - world.fall)


def inverted_on_first(world: World, rng: np.random.Generator) -> Floats:
    """Right on every criterion but the first, which is inverted."""
    rated = np.array(right(world, rng))
    rated[:, :, 0] = inverted(world, rng)[:, :, 0]
    return rated


def inverted_for_a_system(world: World, rng: np.random.Generator) -> Floats:
    """Right on two systems, inverted on the third."""
    third = (world.system[world.run] == 2)[:, None, None]
    return np.where(third, inverted(world, rng), right(world, rng))


def blind_to_numbers(world: World, rng: np.random.Generator) -> Floats:
    """Right, but a copy with other numbers is as good as its original."""
    swapped = world.is_variant("swap_numbers")[:, None]
    return world.repeated(np.where(swapped, world.truth[world.run], world.truth))


def damage_alone(world: World, rng: np.random.Generator) -> Floats:
    """Notices damage; how a run is rated has nothing to do with the run."""
    other = rng.permutation(world.runs)
    return world.repeated(np.maximum(world.truth[other][world.run] - world.fall, 0))


def leaning(world: World, rng: np.random.Generator) -> Floats:
    """Half the truth, and half the opinion that failed runs are better; damage is noticed."""
    failed = (world.success[world.run] == 0)[:, None]
    return world.repeated(0.5 * (world.truth + world.fall) + 0.5 * failed - world.fall)


def one_system(*fixed: float) -> Rate:
    """Right on the first system, a fixed opinion on the two others."""

    def rate(world: World, rng: np.random.Generator) -> Floats:
        opinion = np.array([0.0, *fixed])[world.system[world.run]][:, None]
        known = (world.system[world.run] == 0)[:, None]
        return world.repeated(np.where(known, world.truth, opinion))

    return rate


def halo(world: World, rng: np.random.Generator) -> Floats:
    """One overall impression on every criterion."""
    return world.repeated(world.truth.mean(axis=1, keepdims=True))


def sycophant(world: World, rng: np.random.Generator) -> Floats:
    """Believes what the run claims of itself."""
    return world.repeated(np.where(world.claims, 0.95, 0.35)[:, None])


def sycophant_and_damage(world: World, rng: np.random.Generator) -> Floats:
    """Believes what the run claims of itself, and notices damage."""
    claims = world.claims[: world.runs][world.run]
    return world.repeated(np.where(claims, 0.95, 0.45)[:, None] - world.fall)


def swayed_by_layout(world: World, rng: np.random.Generator) -> Floats:
    """Right, but white space costs a quarter of the scale."""
    return world.repeated(world.truth - 0.25 * world.is_variant("whitespace")[:, None])


_NEVER = (NOT, UNDECIDED)
KINDS = (
    Kind("good, SD .06", right, (TRUSTED,)),
    Kind("good, SD .10", right, (TRUSTED,), noise=0.10),
    Kind(
        "systems of 90/50/10% success, SD .10", right, (TRUSTED,), noise=0.10, share=(0.9, 0.5, 0.1)
    ),
    Kind("noisy, SD .15", right, VERDICTS, noise=0.15),
    Kind("noisy, SD .25", right, _NEVER, noise=0.25, must_not=True),
    Kind("noisy, SD .50", right, _NEVER, noise=0.50, must_not=True),
    Kind("random", by_chance, _NEVER, must_not=True),
    Kind("constant", constant, _NEVER, must_not=True),
    Kind("length", by_length, _NEVER, must_not=True),
    Kind("position", by_place, _NEVER, must_not=True),
    Kind("keyword", by_keyword, _NEVER, must_not=True),
    Kind("upside-down on all", inverted, (NOT,), must_not=True),
    Kind("upside-down on the first", inverted_on_first, (EXCEPT,), excepted=0),
    Kind("upside-down for a system", inverted_for_a_system, _NEVER, must_not=True),
    Kind("blind to numbers", blind_to_numbers, (EXCEPT,), excepted=0),
    Kind("damage, nothing of success", damage_alone, _NEVER, must_not=True),
    Kind("leans to failed runs", leaning, (NOT,), must_not=True),
    Kind("right for a system, fixed on others", one_system(0.75, 0.75), _NEVER, must_not=True),
    Kind("right for a system, best and worst", one_system(1.0, 0.0), _NEVER, must_not=True),
    Kind("halo", halo, (LIMITED, *_NEVER)),
    Kind("sycophant", sycophant, _NEVER, must_not=True),
    Kind("sycophant that sees damage", sycophant_and_damage, _NEVER, must_not=True),
    Kind("swayed by layout", swayed_by_layout, (NOT,), must_not=True),
)
WORST = (
    "upside-down on all",
    "damage, nothing of success",
    "leans to failed runs",
    "right for a system, fixed on others",
    "upside-down on the first",
    "noisy, SD .25",
)


def without_numbers(kind: Kind) -> Kind:
    """The kind on a task whose runs hold no number that can be swapped: nothing to be blind to."""
    if kind.rate is not blind_to_numbers:
        return kind
    return Kind(kind.name, kind.rate, (TRUSTED,), kind.noise)
