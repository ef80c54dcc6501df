"""Malformed replies without end: a correct answer, one to three mutations, the outcome known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from agenteval.records import Criterion
from benchmarks.malformed.draft import start
from benchmarks.malformed.mutations import TABLE, Mutation


class Generated(NamedTuple):
    """A reply, the outcome of each leaf, and the names of its mutations."""

    reply: str
    finish: str
    asked: tuple[Criterion, ...]
    expect: dict[str, str]
    mutations: tuple[str, ...]
    kinds: tuple[str, ...]


def generate(seed: int) -> Generated:
    """The reply of a seed: always the same."""
    rng = random.Random(seed)
    draft = start(rng)
    chosen = _chosen(rng)
    written = False
    for one in chosen:
        if one.stage >= 2 and not written:
            draft.settle()
            draft.write()
            written = True
        one.change(draft, rng)
        if one.kind == "cut":
            draft.settle()
    if not written:
        draft.settle()
        draft.write()
    names, kinds = tuple(one.name for one in chosen), tuple(one.kind for one in chosen)
    return Generated(draft.text, draft.finish, draft.asked, draft.expect, names, kinds)


def _chosen(rng: random.Random) -> list[Mutation]:
    """One to three mutations whose slots differ, in the order of their stages."""
    chosen: list[Mutation] = []
    taken: set[str] = set()
    for _ in range(rng.randint(1, 3)):
        one = rng.choice(TABLE)
        if not taken & one.slots:
            chosen.append(one)
            taken |= one.slots
    return sorted(chosen, key=lambda one: one.stage)


def replies(count: int, seed: int = 0) -> Iterator[Generated]:
    """`count` replies from one seed on."""
    for number in range(count):
        yield generate(seed * 1_000_003 + number)
