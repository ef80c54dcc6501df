"""Which kinds of criteria the embedded judge may offer: those that hold on tasks new to it.

    python -m benchmarks.embedded [--quick]      # 12 cases of each task, or two
    python -m benchmarks.embedded --write                      # all cases; writes the constants

The rule (stated before the figures on the tasks were seen)
-----------------------------------------------------------
The constants of a kind come from one set of texts. Pairs won: original above its own copy, ties
half (Wilson, n cases). It holds on another set when there
1. it wins: the lower bound is above .50 for every operator that the kind must react to;
2. it keeps still: the value's mean change by whitespace and formatting is within 5 % of
   the scale, and what the bank expects to change nothing changes it less than each operator that
   the kind must react to;
3. it does not praise failures: where the outcome is known the AUC of success against failure is not
   surely below .50 (95 % interval, bootstrap over cases); for a kind that claims to tell them apart
   the whole interval is above .50;
4. it exists for 80 % of the runs and copies.

A kind is offered when it holds so with the constants of the development set on math, household and
support, with those of math on household and support, and with those of household on math and
support. One kind is: conciseness by the number of words. Likelihoods under a small language model
were tried for completeness, coherence, clarity and calculation, held on no task that they were not
calibrated on, and are gone.

Copies are those of `agenteval verify` (a quarter of the text, seed 0), of one run of each case, the
systems taking turns. A right and a wrong solution stand for success and failure in the development
set (`devset/`), which shares nothing with the tasks. Without --write its choice is what was frozen
in `data/embedded_judge.json`, and of the controls only whitespace is measured.

Constants: value = 1 / (1 + exp(-1.702 (s - center) / scale)), with center and scale the mean and
standard deviation of the statistic s over originals and copies, half the weight each. The logistic
with 1.702 is within .01 of the normal distribution function (Camilli 1994), so a value says about
which share of such texts has a lower statistic. For conciseness the scale is at least ln 2: the
development set was written to one length, so its spread says nothing about that of real answers,
and twice as long counts as one standard deviation.

Then the judge as it stands is put before `agenteval verify` on all runs of math and household.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenteval.engine import Experiment
from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.embedded import CriterionKind, EmbeddedJudge, load_kinds
from agenteval.evaluators.utility.quantifier import Guarded
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats import Bootstrap, Interval, bootstrap_interval, mean_interval
from agenteval.store import Store
from agenteval.trust.verification import (
    DEFAULT_OPERATORS,
    Material,
    make_copies,
    verify_stored,
)
from benchmarks.embedded.texts import (
    CONTROLS,
    DEVELOPMENT,
    DEVSET,
    MOVING,
    SEED,
    SHARE,
    TASKS,
    Text,
    Texts,
    load_material,
    read_texts,
)
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

CONSTANTS = ROOT / "agenteval" / "data" / "embedded_judge.json"
STILL, COVERED, CHANCE, Z95 = 0.05, 0.80, 0.50, 1.959963984540054


class Claim(NamedTuple):
    """What a kind of criterion must react to, by which statistics, and what it says of success."""

    moved_by: tuple[str, ...]
    statistic: str
    tells_success: bool = False


CLAIMS = {
    "conciseness": Claim(("pad",), "words"),
}


# Figures


def wilson(wins: float, n: int) -> tuple[float, float]:
    """Wilson score interval at 95 % (Wilson 1927); `wins` may be fractional."""
    p, z2 = wins / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return centre - half, centre + half


@dataclass(frozen=True)
class Wins:
    """Share of cases whose original is above its copy (ties half), with its 95 % interval."""

    share: float
    low: float
    high: float
    cases: int


def wins(pairs: Sequence[tuple[float, float]]) -> Wins | None:
    """Of (original, copy), one pair per case; None without pairs."""
    if not pairs:
        return None
    won = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs)
    return Wins(won / len(pairs), *wilson(won, len(pairs)), len(pairs))


def auc(values: NDArray[np.float64], success: NDArray[np.bool_]) -> float | None:
    """P(success above failed), ties half; None without one of them."""
    good, bad = values[success], values[~success]
    if not (len(good) and len(bad)):
        return None
    above = (good[:, None] > bad).mean() + (good[:, None] == bad).mean() / 2
    return float(above)


# Constants


def fit(name: str, statistic: str, texts: Texts) -> CriterionKind:
    """A kind with constants from the originals that have copies, and those copies by the operators
    that it must react to, half the weight each."""
    pairs = [
        (texts.originals[run], copy)
        for op in CLAIMS[name].moved_by
        for run, copy in texts.copies.get(op, {}).items()
        if statistic in copy.statistics and statistic in texts.originals[run].statistics
    ]
    if len(pairs) < 2:
        return CriterionKind(name, False, f"no text has the statistic {statistic}", statistic)
    good, other = (
        np.array([t.statistics[statistic] for t in side]) for side in zip(*pairs, strict=True)
    )
    center = float(good.mean() + other.mean()) / 2
    spread = float(((good - center) ** 2).mean() + ((other - center) ** 2).mean()) / 2
    scale = max(math.sqrt(spread), math.log(2) if statistic == "words" else 0.0)
    return CriterionKind(name, True, "", statistic, center, scale)


# Does it hold?


@dataclass(frozen=True)
class Held:
    """What a kind does on a set of texts; `against` says in words what speaks against it."""

    moved: dict[str, Wins | None]
    changes: dict[str, Interval]  # mean over cases of original minus copy, shares of the scale
    success: Interval | None
    against: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.against


def examine(kind: CriterionKind, texts: Texts) -> Held:
    """The four conditions of the rule."""
    value = {run: _value(kind, text) for run, text in texts.originals.items()}
    pairs: dict[str, list[tuple[float, float]]] = {}
    asked, rated = len(value), sum(v is not None for v in value.values())
    for op, copies in texts.copies.items():
        both = [(value[run], _value(kind, copy)) for run, copy in copies.items()]
        pairs[op] = [(a, b) for a, b in both if a is not None and b is not None]
        asked, rated = asked + len(both), rated + len(pairs[op])
    moved = {op: wins(pairs.get(op, [])) for op in CLAIMS[kind.name].moved_by}
    changes = {op: mean_interval([a - b for a, b in both]) for op, both in pairs.items() if both}
    success = _success(
        [
            (text, v)
            for run, text in texts.originals.items()
            if text.success is not None and (v := value[run]) is not None
        ]
    )
    against = [
        *_unmoved(moved),
        *_restless(kind.name, changes),
        *_praise(CLAIMS[kind.name], success),
        *([f"it exists for {rated / asked:.0%} of the texts"] if rated < COVERED * asked else []),
    ]
    return Held(moved, changes, success, tuple(against))


def _unmoved(moved: Mapping[str, Wins | None]) -> Iterator[str]:
    for op, won in moved.items():
        if won is None:
            yield f"{op} has no copy"
        elif won.low <= CHANCE:
            yield f"{op} lowers it in {won.share:.0%} of the cases, interval from {won.low:.0%}"


def _restless(name: str, changes: Mapping[str, Interval]) -> Iterator[str]:
    mean = {op: change.mean for op, change in changes.items() if change.mean is not None}
    least = min((mean[op] for op in CLAIMS[name].moved_by if op in mean), default=0.0)
    expect = next(c.record["expect"] for c in load_bank() if c.id == name)
    for op, change in mean.items():
        if op in CONTROLS and abs(change) > STILL:
            yield f"{op} moves it by {change:.2f}"
        elif op in MOVING and expect[op]["direction"] == "none" and abs(change) >= least:
            yield f"{op} moves it by {change:.2f}, what should move it by {least:.2f}"


def _praise(claim: Claim, success: Interval | None) -> Iterator[str]:
    if success is None or success.low is None or success.high is None:
        return
    if success.high < CHANCE:
        yield f"failed runs are surely higher (AUC {success.mean:.2f})"
    elif claim.tells_success and success.low <= CHANCE:
        yield f"it does not surely tell success (AUC {success.mean:.2f})"


def _value(kind: CriterionKind, text: Text) -> float | None:
    if kind.statistic not in text.statistics:
        return None
    return kind.value(text.statistics[kind.statistic])


def _success(known: Sequence[tuple[Text, float]]) -> Interval | None:
    """AUC of success against failure, its interval from resampled cases."""
    if len({text.success for text, _ in known}) < 2:
        return None
    values = np.array([v for _, v in known])
    success = np.array([bool(text.success) for text, _ in known])
    how = Bootstrap(np.random.default_rng(20), resamples=1000, method="percentile")
    return bootstrap_interval(auc, [values, success], [text.case for text, _ in known], how=how)


@dataclass(frozen=True)
class Trial:
    """A kind as one set calibrates it, and what it does on the sets that it does not come from."""

    kind: CriterionKind
    calibrated_on: str
    held: dict[str, Held]


def trials(
    sets: Mapping[str, Texts], frozen: Mapping[str, CriterionKind]
) -> dict[str, list[Trial]]:
    """By kind: what the development set (or the constants frozen from it), math and household
    choose, examined on the tasks that are not their own."""
    table: dict[str, list[Trial]] = {}
    for name, claim in CLAIMS.items():
        table[name] = []
        for origin in (DEVELOPMENT, "math", "household"):
            kind = fit(name, claim.statistic, sets[origin]) if origin in sets else frozen[name]
            held = {t: examine(kind, sets[t]) for t in TASKS if t != origin}
            table[name].append(Trial(kind, origin, held))
    return table


class Objection(NamedTuple):
    """What speaks against offering a kind, on which task, as which set calibrated it."""

    task: str
    trial: Trial
    why: str


def objections(trials_of_kind: Sequence[Trial]) -> list[Objection]:
    """Everything that speaks against offering a kind; it is offered when nothing does."""
    return [
        Objection(task, trial, why)
        for trial in trials_of_kind
        for task, held in trial.held.items()
        for why in held.against
    ]


def record(table: Mapping[str, Sequence[Trial]]) -> dict[str, Any]:
    """The content of embedded_judge.json."""
    kinds = {}
    for name, found in table.items():
        against, kind = objections(found), found[0].kind
        kinds[name] = {
            "supported": not against,
            "reason": reason(name, against),
            "statistic": kind.statistic,
            "center": round(kind.center, 6),
            "scale": round(kind.scale, 6),
        }
    return {
        "about": "Written by benchmarks/embedded --write, which states the rule. Constants come"
        " from the development set; no task was used for them.",
        "devset_sha256": hashlib.sha256(DEVSET.read_bytes()).hexdigest(),
        "kinds": kinds,
    }


def reason(name: str, against: Sequence[Objection]) -> str:
    """In words, why a kind is or is not offered."""
    if not against:
        return f"holds on {', '.join(TASKS)}, on none of which it was calibrated"
    first = against[0]
    return (
        f"nothing that was tried grades {name} on tasks that it was not calibrated on"
        f" (on {first.task} {first.why})"
    )


# The judge, as the verifier sees it


def verify_judge(task: str) -> VerifiedSet:
    """The verdict of `agenteval verify` on the judge as it stands, on the bank's wording of every
    kind, two repeats."""
    bank = {concept.id: concept for concept in load_bank()}
    criteria: tuple[Criterion, ...] = tuple(bank[name].criterion(0) for name in CLAIMS)
    judge = Guarded(EmbeddedJudge())
    items = load_material(task, ()).items
    copies = make_copies(items, DEFAULT_OPERATORS, share=SHARE, seed=SEED)
    verified = Material(tuple(items), tuple(copies), criteria, 2)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "v.db") as store:
        asyncio.run(Experiment(verified.rated_by(judge), store, concurrency=1).run())
        return verify_stored(store, judge.source.sha256, verified, VerifyOptions())


# Tables


def print_trials(table: Mapping[str, Sequence[Trial]]) -> None:
    """Kinds by tasks."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title="kinds of criteria on tasks that they were not calibrated on",
                 title_justify="left", show_lines=True)  # fmt: skip
    for head in ("kind", "calibrated on", "statistic", *TASKS):
        grid.add_column(head)
    for name, found in table.items():
        for trial in found:
            cells = [cell(trial.held[t]) if t in trial.held else "its own" for t in TASKS]
            grid.add_row(name, trial.calibrated_on, trial.kind.statistic, *cells)
    Console(width=170).print(grid)


def cell(held: Held) -> str:
    """What was measured, and what speaks against the kind."""
    lines = [
        f"{op} {w.share:.2f} \\[{w.low:.2f}, {w.high:.2f}], n {w.cases}"
        for op, w in held.moved.items()
        if w
    ]
    if (s := held.success) is not None and s.mean is not None:
        ends = "" if s.low is None or s.high is None else f" \\[{s.low:.2f}, {s.high:.2f}]"
        lines.append(f"AUC of success {s.mean:.2f}{ends}")
    lines.append(", ".join(f"{op} {c.mean:+.2f}" for op, c in held.changes.items() if c.n))
    lines += [f"[red]{why}[/red]" for why in held.against] or ["[green]holds[/green]"]
    return "\n".join(lines)


def rows(
    table: Mapping[str, Sequence[Trial]],
    frozen: Mapping[str, CriterionKind],
    verdicts: Mapping[str, VerifiedSet],
    *,
    full: bool,
) -> list[Row]:
    """A row for each kind, and one for the verifier's verdict on each task."""
    made = []
    for name, found in table.items():
        against = objections(found)
        offered = frozen[name].supported
        if against:
            measured = f"{len(against)} objections, on {against[0].task}: {against[0].why}"
        else:
            measured = "holds; " + ", ".join(
                f"{task} {op} {w.share:.2f} [{w.low:.2f}, {w.high:.2f}]"
                for task, held in found[0].held.items()
                for op, w in held.moved.items()
                if w
            )
        made.append(
            Row(
                f"embedded judge, {name}: {'offered' if offered else 'unsupported'}",
                measured,
                "holds on tasks that it was not calibrated on" if offered else None,
                not against if offered and full else None,
            )
        )
    for task, result in verdicts.items():
        kept = ", ".join(f"{v.criterion_id} {v.verdict}" for v in result.criteria if v.coverage)
        made.append(
            Row(f"embedded judge on {task}, by verify",
                f"{result.judge.verdict}; {kept or 'no criterion was rated'}")
        )  # fmt: skip
    return made


def main() -> int:
    """Score what is missing, examine every kind, verify the judge; --write freezes the result."""
    parser = argparse.ArgumentParser(description="Examine the embedded judge.")
    parser.add_argument("--quick", action="store_true", help="two cases of each task")
    parser.add_argument(
        "--write", action="store_true", help="all cases; write the judge's constants"
    )
    options = parser.parse_args()
    cases = None if options.write else 2 if options.quick else 12
    operators = MOVING + (CONTROLS if options.write else CONTROLS[:1])
    material = {t: load_material(t, operators, cases) for t in TASKS}
    if options.write:
        material[DEVELOPMENT] = load_material(DEVELOPMENT, MOVING)
    sets = {name: read_texts(one) for name, one in material.items()}
    frozen = {} if options.write else load_kinds()
    table = trials(sets, frozen)
    if options.write:
        content = record(table)
        CONSTANTS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        load_kinds.cache_clear()
        frozen = load_kinds()
    print_trials(table)
    for found in table.values():
        for task, trial, why in objections(found):
            origin = f"{trial.kind.statistic}, calibrated on {trial.calibrated_on}"
            print(f"{trial.kind.name} ({origin}), on {task}: {why}")
    verdicts = {t: verify_judge(t) for t in ("math", "household")}
    for task, result in verdicts.items():
        print(f"verify, {task}: {result.judge.verdict}: {'; '.join(result.judge.reasons)}")
        for criterion in result.criteria:
            print(
                f"  {criterion.criterion_id}: {criterion.verdict}: {'; '.join(criterion.reasons)}"
            )
    return finish("embedded", rows(table, frozen, verdicts, full=not options.quick))


if __name__ == "__main__":
    sys.exit(main())
