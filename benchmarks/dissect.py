"""Scripted agents whose fault is known, and the cause that `dissect` names for it.

    python -m benchmarks.dissect [--cases 30] [--extended 10] [--seed 1] [--draws 8] [--only TEXT …]

For every planted fault, cases (3 to 5 actions) are generated until the agent failed `--cases` of
them (`--extended` of the extended ones); each is dissected in full, so that every stage has its
rate. Rows: the fault; columns: the cause found, how often it was the planted one with Wilson's 95 %
interval, and the share of passes by stage. An agent that succeeds with probability p is labelled
Probability with 1 - (1 - p)^3; the expected shares are printed under its row. Then come agents
whose success rate is known: perfect, reversed, random (the mean of valid plans / n!).

Targets: a planted word, topic, clause form or pattern is found in at least 90 % of the cases; the
share of Probability of `chance` fits what is expected (exact binomial test, p > .001); perfect
100 %, reversed 0 %, random within 3.3 standard errors. Ends with 1 when one is missed. `--draws 1`
takes any other structure, as the paper does, not the one of eight with the fewest clause forms of
the original.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from agenteval.agents import System
from agenteval.evaluators.planning.case import Case, OrderRule
from agenteval.evaluators.planning.dissect import (
    LABELS,
    STAGES,
    Dissection,
    DissectOptions,
    Label,
    dissect,
)
from agenteval.evaluators.planning.substitute import Choices
from agenteval.evaluators.planning.synthesis import Generator, Shape
from agenteval.evaluators.planning.trials import run_case
from agenteval.evaluators.planning.words import choose_topics
from agenteval.stats.proportion import proportion_interval
from benchmarks.outcome import Row, finish
from tests.support.wrong_planners import FORMS, PATTERNS, wrong_planner

WORDS = ("P_prec/before", "P_succ/in the wake of", "VP_prec/precedes", "VP_none/is done",
         "SC_succ/once", "CONJ/, while")  # fmt: skip
TOPICS = ("Nurse", "Electrician", "Chef", "Journalist")
CHANCES = (0.2, 0.5, 0.8)
TARGET = 0.9
MOST = 3000  # cases looked at for one fault
SHORT = ("Prob", "Term", "Topic", "Struct", "Constr", "undec")


@dataclass(frozen=True)
class Planted:
    """An agent and the cause that is true of it; None where chance decides."""

    agent: str
    cause: Label | None
    extended: bool = False
    chance: float = 0.0


def planted() -> list[Planted]:
    """All faults, those that need points of time in extended cases."""
    made = [Planted(f"chance={p}", None, chance=p) for p in CHANCES]
    made += [Planted(f"wrong-word={word}", "Terminal") for word in WORDS]
    made += [Planted(f"wrong-topic={role}", "Topic") for role in TOPICS[:2]]
    made += [
        Planted(f"wrong-form={form}", "Structure") for form in FORMS if not form.startswith("time")
    ]
    made += [
        Planted(f"wrong-pattern={pattern}", "Constraint")
        for pattern in PATTERNS if pattern != "limit"
    ]  # fmt: skip
    made += [Planted("reversed", "Constraint")]
    timed = [
        Planted("chance=0.5", None, chance=0.5),
        Planted("wrong-word=P_prec/before", "Terminal"),
        Planted("wrong-topic=Nurse", "Topic"),
        Planted("wrong-form=fronted pair prec", "Structure"),
        Planted("wrong-pattern=chain3", "Constraint"),
        Planted("wrong-pattern=limit", "Constraint"),
        # a time limit can only be said as one: this form survives every other structure
        Planted("wrong-form=time prec", "Constraint"),
    ]
    return made + [Planted(p.agent, p.cause, True, p.chance) for p in timed]


def shape_of(row: Planted, seed: int) -> Generator:
    """The cases of a row; few topics where one of them is the fault."""
    topics = choose_topics(TOPICS if "topic" in row.agent else ())
    return Generator(Shape(extended=row.extended), seed=seed, topics=topics)


async def one_row(row: Planted, count: int, seed: int, draws: int) -> dict[str, Any]:
    """Dissect `count` failing cases of one fault."""
    system = System(row.agent, wrong_planner(row.agent), {"script": row.agent})
    options = DissectOptions(full=True, seed=seed, choices=Choices(draws=draws))
    generator = shape_of(row, seed)
    found: list[Dissection] = []
    looked, begun = 0, time.perf_counter()
    while len(found) < count and looked < MOST:
        case = generator.case(looked)
        looked += 1
        _, verdict = await run_case(case, system.make())
        assert verdict is not None
        if not verdict.passed:
            found.append(await dissect(case, system, options))
    seconds = time.perf_counter() - begun
    labels = Counter(one.label for one in found)
    passes = {
        name: sum(stage.passes for one in found if (stage := one.stage(name))) for name in STAGES
    }
    tries = {name: len(found) * 3 for name in STAGES}
    result: dict[str, Any] = {
        "agent": row.agent, "extended": row.extended, "planted": row.cause, "failed": len(found),
        "looked_at": looked, "found": {name: labels[name] for name in LABELS},
        "stage_rates": {name: passes[name] / tries[name] if found else None for name in STAGES},
        "ms_per_dissection": 1000 * seconds / max(1, len(found)),
    }  # fmt: skip
    if row.cause is not None:
        share = proportion_interval(labels[row.cause], len(found))
        result |= {
            "share": share.mean, "low": share.low, "high": share.high,
            "met": share.mean is not None and share.mean >= TARGET,
        }  # fmt: skip
    else:
        result |= chance_fit(row.chance, labels, len(found))
    result["met"] = result["met"] and len(found) == count
    return result


def chance_fit(p: float, labels: Counter[Label], count: int) -> dict[str, Any]:
    """The shares that independent successes with probability p lead to, and whether they fit."""
    from scipy.stats import binomtest

    passes = 1 - (1 - p) ** 3  # of a stage
    expected = [passes * (1 - passes) ** k for k in range(4)]
    test = binomtest(labels["Probability"], count, passes) if count else None
    return {
        "expected": dict(zip(LABELS, [*expected, (1 - passes) ** 4], strict=False)),
        "p_value": test and float(test.pvalue),
        "met": test is not None and test.pvalue > 0.001,
    }


async def rate(agent: str, count: int, *, extended: bool, seed: int) -> dict[str, Any]:
    """Success of an agent over fresh cases, beside what must come out."""
    factory = wrong_planner(agent)
    passed, expected, variance = 0, 0.0, 0.0
    begun = time.perf_counter()
    for case in Generator(Shape(extended=extended), seed=seed).cases(count):
        _, verdict = await run_case(case, factory())
        assert verdict is not None
        passed += verdict.passed
        share = {"perfect": 1.0, "reversed": 0.0}.get(agent)
        share = chance_of_random(case) if share is None else share
        expected += share
        variance += share * (1 - share)
    sd = math.sqrt(variance)
    return {
        "agent": agent, "extended": extended, "cases": count, "passed": passed,
        "expected": expected, "sd": sd, "met": abs(passed - expected) <= 3.3 * sd,
        "ms_per_case": 1000 * (time.perf_counter() - begun) / count,
    }  # fmt: skip


def chance_of_random(case: Case) -> float:
    """Share of all orders that keep the case's orders, by trying every one."""
    rules = [rule for rule in case.constraints if isinstance(rule, OrderRule)]
    orders = list(permutations(action.tool for action in case.actions))
    kept = sum(
        all(order.index(rule.first) < order.index(rule.second) for rule in rules)
        for order in orders
    )
    return kept / len(orders)


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    name = ("x " if row["extended"] else "  ") + row["agent"]
    counts = " ".join(f"{row['found'][label] or '.':>6}" for label in LABELS)
    rates = " ".join(
        "    -" if value is None else f"{value:5.2f}" for value in row["stage_rates"].values()
    )
    if row["planted"] is None:
        right = f"p={row['p_value']:.3f}"
    else:
        right = f"{row['share'] or 0:4.2f} [{row['low'] or 0:.2f}, {row['high'] or 0:.2f}]"
    flag = "" if row["met"] else "  MISSED"
    about = f"{row['failed']:>3}/{row['looked_at']:<4} {row['ms_per_dissection']:6.0f} ms"
    print(f"{name:32} {counts}  {right:19} {rates}  {about}{flag}", flush=True)
    if "expected" in row:
        values = [row["failed"] * row["expected"][label] for label in LABELS[:5]]
        print(f"{'    expected':32} " + " ".join(f"{value:6.1f}" for value in values))


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """All rows and rates."""
    print(f"{'fault':32} {' '.join(f'{name:>6}' for name in SHORT)}  {'as planted':19} "
          f"{' '.join(f'{name[:5]:>5}' for name in STAGES)}  failed/looked at")  # fmt: skip
    rows = []
    for row in planted():
        if not options.only or any(text in row.agent for text in options.only):
            count = options.extended if row.extended else options.cases
            rows.append(await one_row(row, count, options.seed, options.draws))
            show(rows[-1])
    rates = []
    for agent, extended, count in (
        ("perfect", False, options.sample), ("reversed", False, options.sample),
        ("random", False, options.sample), ("perfect", True, max(1, options.sample // 10)),
    ):  # fmt: skip
        rates.append(await rate(agent, count, extended=extended, seed=options.seed))
        one = rates[-1]
        print(f"{'x ' if extended else '  '}{agent:10} passed {one['passed']} of {one['cases']}, "
              f"expected {one['expected']:.1f} ± {one['sd']:.1f}, {one['ms_per_case']:.1f} ms"
              f" a case with its synthesis{'' if one['met'] else '  MISSED'}")  # fmt: skip
    return {"draws": options.draws, "faults": rows, "rates": rates}


def main() -> int:
    """Print the table and a line of JSON; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--extended", type=int, default=10)
    parser.add_argument("--sample", type=int, default=2000, help="cases of perfect and random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT")
    result = asyncio.run(run(parser.parse_args()))
    return finish("dissect", figures(result["faults"], result["rates"]), **result)


def figures(faults: list[dict[str, Any]], rates: list[dict[str, Any]]) -> list[Row]:
    """Planted causes found, and how the planners with a known rate fare."""
    rows = []
    if faults:
        found = sum(one["met"] for one in faults)
        rows.append(Row("kinds of planted faults whose cause is found as it must", f"{found}",
                        f"{len(faults)}", found == len(faults)))  # fmt: skip
    return rows + [
        Row(f"{one['agent']} planner{', extended cases' if one['extended'] else ''}: passed",
            f"{one['passed']} of {one['cases']}", f"{one['expected']:.1f} ± {3.3 * one['sd']:.1f}",
            one["met"])
        for one in rates
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
