"""Synthesis of planning tests, against a literal algorithm 1 with Z3 alone in the same process.

The literal one (arXiv 2404.17833, algorithm 1): one z3 Solver with push and pop, N = 4 sentences,
K = 20 draws, sentences from the same random source; neither side renders text. It may leave actions
unmentioned and say what is implied, which ours may not. Then whole cases (words, request, tools,
number of valid plans, the line of JSON) by number of actions, and extended cases.

    python -m benchmarks.planning [--seconds 4]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import z3

from agenteval.evaluators.planning.grammar import demands
from agenteval.evaluators.planning.suite import case_line
from agenteval.evaluators.planning.synthesis import Dice, Generator, Picker, Shape, Style, draw_part
from benchmarks.outcome import Row, finish

SENTENCES, TRIES = 4, 20
SIZES = range(3, 10)
SURE = 2.0  # seconds for a figure from which on the targets are checked


class Literal:
    """Algorithm 1 as printed. The solver is made once; every case is a level of its own."""

    def __init__(self) -> None:
        self.solver: Any = z3.Solver()
        self.calls = 0

    def case(self, dice: Dice, n: int) -> int:
        solver = self.solver
        names = [z3.Int(f"a{i}") for i in range(n)]
        solver.push()
        solver.add(z3.Distinct(*names))
        for name in names:
            solver.add(name >= 1, name <= n)
        found = 0
        for _ in range(SENTENCES):
            for _ in range(TRIES):
                part = draw_part(Picker(dice, [], range(n), 0.0), Style())
                solver.push()
                for c in demands(part):
                    solver.add(names[c.first] < names[c.second])  # type: ignore[union-attr]
                self.calls += 1
                if solver.check() == z3.sat:
                    found += 1  # stays on its level: that is C'
                    break
                solver.pop()
            else:
                break
        solver.pop(found + 1)
        return found


def rate(make: Callable[[int], object], seconds: float) -> float:
    """Milliseconds for one call, over calls for about `seconds`."""
    for number in range(20):
        make(number)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        make(count)
        count += 1
    return (time.perf_counter() - begun) / count * 1e3


def skeletons(low: int, high: int, seconds: float) -> tuple[float, float]:
    """Milliseconds a skeleton: the literal algorithm, ours. Interleaved, medians of 3 rounds."""
    literal, ours = Literal(), Generator(Shape((low, high)), seed=1)

    def one(number: int) -> None:
        dice = Dice(np.random.default_rng([1, number]))
        n = dice.between(low, high)
        while ours.skeleton(dice, n) is None:
            pass

    def other(number: int) -> None:
        dice = Dice(np.random.default_rng([1, number]))
        literal.case(dice, dice.between(low, high))

    rounds = [(rate(other, seconds / 6), rate(one, seconds / 6)) for _ in range(3)]
    return statistics.median(r[0] for r in rounds), statistics.median(r[1] for r in rounds)


def main() -> int:
    """Print the table; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure, about")
    seconds = parser.parse_args().seconds
    rows: list[dict[str, Any]] = []
    print("milliseconds a case            literal + Z3      ours    ratio   whole case with JSON")
    for low, high in [(3, 5), *((n, n) for n in SIZES)]:
        slow, fast = skeletons(low, high, seconds)
        whole = whole_case(Shape((low, high)), seconds / 3)
        name = f"{low}-{high}" if low < high else str(low)
        rows.append({"actions": name, "literal_ms": slow, "ours_ms": fast, "ratio": slow / fast,
                     "case_ms": whole})  # fmt: skip
        figures = f"{slow:>14.2f} {fast:>9.3f} {slow / fast:>7.1f}x {whole:>20.2f}"
        print(f"{name + ' actions':<28} {figures}")
    extended = {}
    for n in (3, 4, 5):
        extended[n] = whole_case(Shape((n, n), extended=True), seconds / 3)
        print(f"{n} actions, extended {extended[n]:>64.2f}")
    table = targets(rows[0], rows[-1], judged=seconds >= SURE)
    met = all(row.met for row in table) if seconds >= SURE else None
    return finish("planning", table, sizes=rows, extended=extended, met=met)


def targets(small: dict[str, Any], large: dict[str, Any], *, judged: bool) -> list[Row]:
    """What has a target; short measurements are not judged."""
    found = [
        ("skeletons over the literal algorithm, 3 to 5 actions", f"{small['ratio']:.1f} times",
         ">= 3 times", small["ratio"] >= 3),
        ("the literal algorithm itself, 3 to 5 actions", f"{small['literal_ms']:.2f} ms",
         "<= 5 ms", small["literal_ms"] <= 5),
        ("a whole case, 3 to 5 actions", f"{small['case_ms']:.2f} ms", "<= 7 ms",
         small["case_ms"] <= 7),
        (f"a whole case, {large['actions']} actions", f"{large['case_ms']:.2f} ms", "<= 50 ms",
         large["case_ms"] <= 50),
    ]  # fmt: skip
    return [Row(what, got, target, met if judged else None) for what, got, target, met in found]


def whole_case(shape: Shape, seconds: float) -> float:
    """Milliseconds for a case with words, request, tools, number of plans, and its line of JSON."""
    generator = Generator(shape, seed=1)
    return rate(lambda number: case_line(generator.case(number)), seconds)


if __name__ == "__main__":
    sys.exit(main())
