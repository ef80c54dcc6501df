"""The fuzzer finds what is planted, and nothing in the readers."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz import __main__ as module
from benchmarks.fuzz.__main__ import Fuzz, changed, fuzz, seeds
from benchmarks.fuzz.arcs import Arcs
from tests.thorough import often

pytestmark = pytest.mark.slow


def test_nothing_breaks_and_a_seed_gives_the_same_run() -> None:
    number = often(300, 20_000)
    first, second = (fuzz(5, number, 0.0) for _ in range(2))
    assert first.broken == {}
    assert first.executions == number
    assert first.pool == second.pool
    assert first.seen == second.seen
    assert len(first.pool) > 50
    assert len(first.seen) > 800
    assert first.most_steps < module.STEPS_PER_CHARACTER
    assert {target for target, _ in first.pool} >= {"judge", "ladder", "critic", "react"}


def staged(text: str) -> int:
    """Raises for texts with four letters in a row, which chance alone hardly makes."""
    if text[:1] == "f":
        if text[1:2] == "u":
            if text[2:3] == "z":
                if text[3:4] == "z":
                    raise IndexError("the planted one")
                return 3
            return 2
        return 1
    return 0


def test_coverage_leads_to_what_is_planted() -> None:
    state = Fuzz(random.Random(0), {"staged": staged}, Arcs([Path(__file__)]))
    state.start([("staged", "xuzf " * 3)], lambda: True)
    while not state.broken and state.executions < 50_000:
        state.step()
    (found,) = state.broken.values()
    assert found.text == "fuzz"  # shortened
    assert found.error == "IndexError: the planted one"


def test_too_many_steps_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def quadratic(text: str) -> int:
        return sum(1 for _ in text for _ in text)

    monkeypatch.setattr(module, "STEPS_PER_CHARACTER", 5)
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 50)
    state = Fuzz(random.Random(0), {"quadratic": quadratic}, Arcs([Path(__file__)]))
    state.run("quadratic", "x" * 5)
    assert state.broken == {}
    state.run("quadratic", "x" * 100)
    (found,) = state.broken.values()
    assert found.error.startswith("too slow")
    assert 5 < len(found.text) < 20  # where n * n passes 50 + 5 n


def test_arcs_are_those_of_the_files_asked_for() -> None:
    arcs = Arcs([Path(__file__)])
    assert arcs.run(staged, "fu") == 2
    short, steps = arcs.seen, arcs.steps
    assert arcs.run(staged, "fuz") == 3
    assert len(arcs.seen - short) >= 1
    assert arcs.steps == steps + 1
    assert sys.gettrace() is None or sys.gettrace() is not arcs._entered
    assert Arcs([]).run(staged, "fu") == 2


def test_changes_are_decided_by_the_seed() -> None:
    pool = [("judge", '{"clarity": "fair"}'), ("judge", "<think>")]
    one, two = ([changed(pool[0][1], pool, rng) for _ in range(40)]
                for rng in (random.Random(7), random.Random(7)))  # fmt: skip
    assert one == two
    assert len(set(one)) > 20
    assert seeds(random.Random(1)) == seeds(random.Random(1))
