"""Simulated judges with known parameters, and the verdict that `verify` gives each of them.

    python -m benchmarks.judges [--simulations 500] [--cases 60] [--repeats 3] [--pool 240]

A pool of runs whose true levels can be computed from their text is perturbed once. Every simulation
draws `--cases` of them (without replacement), lets each judge rate originals and copies, and asks
the verifier. The rates tell how often a judge gets which verdict. Targets: a judge that should not
be trusted is called trustworthy in at most 5 % of the simulations, the perfect judge is called not
trustworthy in at most 5 %. Ends with 1 when a target is missed. The last judge rates the runs of
the pool through the real client, quantifier and store in tests/utility/test_perturbed_runs.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agenteval.readers import make_view
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import NAMED, ORIGINAL, CodedColumn, ScoreTable
from agenteval.utility.perturbed_runs import DEFAULT_OPERATORS, make_copies
from agenteval.utility.verify import verify_table
from agenteval.utility.verify.options import VerifyOptions
from benchmarks.outcome import Row, finish
from tests.support.judges import TOP, SimulatedJudge, family
from tests.support.world import criteria, make_runs
from tests.support.world_truth import CRITERIA

DISTRUSTED = {"random", "constant", "length_only", "position_only", "gullible"}
MISTAKEN = "perfect, one mistaken expectation"
MOST_WRONG = 0.05
OPTIONS = VerifyOptions(resamples=200, draws=2000)


@dataclass(frozen=True)
class Pool:
    """Texts of every run by variant; "" where a copy equals its original."""

    problems: list[str]
    success: NDArray[np.int8]
    texts: Mapping[str, list[str]]


def make_pool(size: int, seed: int) -> Pool:
    """Runs of the synthetic world with their copies."""
    runs = make_runs(size, np.random.default_rng(seed))
    items = [(run, make_view(run)) for run in runs]
    texts = {ORIGINAL: [view.trajectory for _, view in items]}
    for copies in make_copies(items, DEFAULT_OPERATORS, share=0.25, seed=seed):
        found = {run.id: view.trajectory for run, view in copies.items}
        texts[copies.variant] = [found.get(run.id, "") for run, _ in items]
    success = np.array([bool(run.success) for run in runs], dtype=np.int8)
    return Pool([view.problem for _, view in items], success, texts)


def rated(
    judge: SimulatedJudge,
    pool: Pool,
    chosen: NDArray[np.intp],
    repeats: int,
    rng: np.random.Generator,
) -> ScoreTable:
    """The judge's ratings of the chosen runs and their copies, all criteria."""
    parts: list[tuple[int, NDArray[np.intp], NDArray[np.float64]]] = []
    for variant, texts in enumerate(pool.texts.values()):
        there = np.array([i for i in chosen if texts[i]], dtype=np.intp)
        levels = judge.rate(
            [texts[i] for i in there], [pool.problems[i] for i in there], rng, repeats=repeats
        )
        parts.append((variant, there, levels))
    return _table(pool, parts, repeats)


def _table(
    pool: Pool, parts: Sequence[tuple[int, NDArray[np.intp], NDArray[np.float64]]], repeats: int
) -> ScoreTable:
    width = repeats * len(CRITERIA)
    run = np.concatenate([np.repeat(there, width) for _, there, _ in parts]).astype(np.int32)
    variant = np.concatenate([np.full(levels.size, v) for v, _, levels in parts]).astype(np.int32)
    value = np.concatenate([levels.ravel() for _, _, levels in parts]) / TOP
    n = len(value) // width
    names = tuple(f"run-{i}" for i in range(len(pool.problems)))
    nothing = CodedColumn(np.full(len(value), -1, dtype=np.int32), ())
    columns = dict.fromkeys(NAMED, nothing) | {
        "run": CodedColumn(run, names),
        "case": CodedColumn(run, names),
        "criterion": CodedColumn(
            np.tile(np.arange(len(CRITERIA)), n * repeats).astype(np.int32), tuple(CRITERIA)
        ),
        "variant": CodedColumn(variant, tuple(pool.texts)),
        "status": CodedColumn(np.isnan(value).astype(np.int32), ("scored", "unscored:parse")),
    }
    return ScoreTable(
        **columns,
        repeat=np.tile(np.repeat(np.arange(repeats), len(CRITERIA)), n).astype(np.int32),
        success=pool.success[run],
        value=value,
    )


def simulate(options: argparse.Namespace) -> dict[str, tuple[Counter[str], VerifiedSet]]:
    """Verdicts by judge, and the last result of each."""
    pool = make_pool(options.pool, options.seed)
    judges = family(pool.texts[ORIGINAL])
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in (*judges, MISTAKEN)}
    last: dict[str, VerifiedSet] = {}
    for number in range(options.simulations):
        rng = np.random.default_rng([options.seed, number])
        chosen = np.sort(rng.choice(options.pool, size=options.cases, replace=False))
        for name, judge in judges.items():
            table = rated(judge, pool, chosen, options.repeats, rng)
            last[name] = verify_table(table, criteria(), OPTIONS)
            verdicts[name][_verdict(last[name])] += 1
            if name == "perfect":
                last[MISTAKEN] = verify_table(table, mistaken(), OPTIONS)
                verdicts[MISTAKEN][_verdict(last[MISTAKEN])] += 1
        if (number + 1) % 50 == 0:
            print(f"{number + 1} of {options.simulations} simulations", file=sys.stderr)
    return {name: (verdicts[name], last[name]) for name in last}


def _verdict(result: VerifiedSet) -> str:
    """The verdict on the judge; trust with limits (a criterion excepted) counts as trust."""
    return "trustworthy" if result.judge.trusted else result.judge.verdict


def mistaken() -> tuple[Criterion, ...]:
    """The criteria with one wrong expectation: completeness does not mind lost sentences."""
    return tuple(
        c.model_copy(update={"expect": {**c.expect, "drop_sentences": "none"}})
        if c.id == "completeness"
        else c
        for c in criteria()
    )


def wrong(name: str, counts: Counter[str]) -> float:
    """Share of verdicts that are false: trust in the untrustworthy, or distrust in the good."""
    false = "trustworthy" if name in DISTRUSTED else "not trustworthy"
    return counts[false] / counts.total()


def show(
    found: Mapping[str, tuple[Counter[str], VerifiedSet]], options: argparse.Namespace
) -> None:
    """The table of judges × verdicts, with the reason of the last simulation."""
    table = Table(
        title=f"{options.simulations} simulations, {options.cases} cases, {options.repeats} repeats"
    )
    for head in ("judge", "trustworthy", "not trustworthy", "not enough data", "last reason"):
        table.add_column(head, justify="left" if head in ("judge", "last reason") else "right")
    for name, (counts, result) in found.items():
        shares = [
            f"{counts[v] / counts.total():.1%}"
            for v in ("trustworthy", "not trustworthy", "not enough data")
        ]
        said = [*result.judge.reasons[:1], *result.judge.warnings[:1]]
        table.add_row(name, *shares, "; ".join(said)[:90])
    Console(width=150).print(table)


def main() -> int:
    """Simulate and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pool", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    found = simulate(options)
    show(found, options)
    rates = {name: wrong(name, counts) for name, (counts, _) in found.items()}
    judged = DISTRUSTED | {"perfect", MISTAKEN}
    missed = sorted(name for name in judged if rates[name] > MOST_WRONG)
    result: dict[str, Any] = {
        "simulations": options.simulations,
        "cases": options.cases,
        "repeats": options.repeats,
        "seconds": round(time.perf_counter() - start, 1),
        "verdicts": {name: dict(counts) for name, (counts, _) in found.items()},
        "false": rates,
        "most_false": MOST_WRONG,
        "missed": missed,
    }
    print("target met" if not missed else f"target MISSED: {', '.join(missed)}")
    trusted = max(DISTRUSTED, key=lambda name: rates[name])
    rows = [
        Row(
            f"false trust, most often in the judge {trusted!r}",
            f"{rates[trusted]:.1%}",
            f"<= {MOST_WRONG:.0%}",
            rates[trusted] <= MOST_WRONG,
        ),
        *(
            Row(
                f"false distrust in the judge {name!r}",
                f"{rates[name]:.1%}",
                f"<= {MOST_WRONG:.0%}",
                rates[name] <= MOST_WRONG,
            )
            for name in ("perfect", MISTAKEN)
        ),
    ]
    return finish("judges", rows, **result)


if __name__ == "__main__":
    sys.exit(main())
