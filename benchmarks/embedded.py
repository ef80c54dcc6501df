"""May the embedded judge offer conciseness? Does it hold on tasks that it was not calibrated on?

    python -m benchmarks.embedded [--quick]     # 12 cases of each task, or two
    python -m benchmarks.embedded --write       # all cases; writes the judge's constants

The rule was stated before the figures on the tasks were seen. The constants come from one set of
texts. The kind holds on another set when
1. padding lowers it: the lower bound of the share of cases whose original is above its padded copy
   is above .50 (Wilson; a tie counts as a loss);
2. it keeps still: whitespace, formatting and paraphrase change the mean by at most 5 % of the
   scale, and operators that should not change it change it less than padding does;
3. it does not praise failures: the AUC of success against failure is not surely below .50 (95 %
   interval, bootstrap over cases);
4. it exists for 80 % of the runs and copies.
It is offered when it holds with the constants of the development set (`devset/`) on math,
household and support, and with those of math and of household on the other tasks.

Copies are those of `agenteval verify`: a quarter of the text, seed 0, one run of each case, the
systems taking turns. Without --write the constants are those in `data/embedded_judge.json`.

Value = 1 / (1 + exp(-1.702 (s - center) / scale)), with the mean and the standard deviation of the
statistic s over originals and padded copies. The scale is at least ln 2, because the development
set was written to one length: twice as long counts as one standard deviation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from agenteval.readers import make_view, read_runs
from agenteval.records import Run
from agenteval.stats import Bootstrap, Interval, bootstrap_interval, proportion_interval
from agenteval.utility.bank import load_bank
from agenteval.utility.embedded import MIN_SENTENCES, CriterionKind, load_kinds, read_prose
from agenteval.utility.evaluator import Item
from agenteval.utility.perturbed_runs import make_copies
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

DEVSET = ROOT / "benchmarks" / "devset" / "problems.jsonl"
CONSTANTS = ROOT / "agenteval" / "utility" / "data" / "embedded_judge.json"
NAME, STATISTIC, MOVED_BY = "conciseness", "words", "pad"
TASKS = ("math", "household", "support")
MOVING = ("drop_sentences", "truncate", "shuffle_sentences", "swap_numbers", "pad")
CONTROLS = ("whitespace", "formatting", "paraphrase")
SHARE, SEED = 0.25, 0  # as `agenteval verify` makes its copies
STILL, COVERED, CHANCE = 0.05, 0.80, 0.50

Statistics = dict[str, float | None]  # by run; None for a text without enough prose


@dataclass(frozen=True)
class Texts:
    """Runs of a set with their statistics, and by operator those of the copies."""

    runs: dict[str, Run]
    originals: Statistics
    copies: dict[str, Statistics]


def development() -> list[Run]:
    """Return the right solution of every problem as a success, the wrong one as a failure."""
    runs = []
    for problem in map(json.loads, DEVSET.read_text("utf-8").splitlines()):
        for which in ("good", "wrong"):
            texts = {"input": problem["problem"], "output": problem[which]}
            id = f"{problem['id']}-{which}"
            runs.append(Run(id=id, system=which, success=which == "good", **texts))
    return runs


def read_texts(
    runs: Sequence[Run], operators: Sequence[str], cases: int | None = None, *, rotate: bool = True
) -> Texts:
    """Return the statistics of the first `cases` cases and of the copies of one run of each.

    With `rotate` the systems take turns; else the first run of each case is copied.
    """
    by_case: dict[str, list[Item]] = {}
    for run in runs:
        by_case.setdefault(run.input or run.id, []).append((run, make_view(run)))
    groups = list(by_case.values())[:cases]
    copied = [group[i % len(group) if rotate else 0] for i, group in enumerate(groups)]
    items = [item for group in groups for item in group]
    made = make_copies(copied, operators, share=SHARE, seed=SEED)
    by_operator = {c.variant.partition(":")[0]: statistics(c.items) for c in made}
    return Texts({run.id: run for run, _ in items}, statistics(items), by_operator)


def statistics(items: Sequence[Item]) -> Statistics:
    """Return the shortness of the prose of every text."""
    prose = {run.id: read_prose(view.trajectory) for run, view in items}
    return {
        run: text.shortness() if len(text.words) >= MIN_SENTENCES else None
        for run, text in prose.items()
    }


def pairs(texts: Texts, operator: str) -> list[tuple[float, float]]:
    """Return (original, copy) of every run that has both statistics."""
    return [
        (original, copy)
        for run, copy in texts.copies.get(operator, {}).items()
        if copy is not None and (original := texts.originals[run]) is not None
    ]


def fit(texts: Texts) -> CriterionKind:
    """Return the constants of a set. Raises ValueError with fewer than two pairs."""
    both = np.array(pairs(texts, MOVED_BY))
    if len(both) < 2:
        raise ValueError(f"fewer than two texts have the statistic {STATISTIC}")
    center = float(both.mean())
    scale = max(float(both.std()), math.log(2))
    return CriterionKind(NAME, True, "", STATISTIC, center, scale)


def objections(kind: CriterionKind, texts: Texts) -> Iterator[str]:
    """Yield what speaks against the kind on this set of texts, by the rule."""
    values = {
        op: [(kind.value(a), kind.value(b)) for a, b in pairs(texts, op)] for op in texts.copies
    }
    moved = values.get(MOVED_BY, [])
    if not moved or (moved_share(moved).low or 0.0) <= CHANCE:
        yield f"{MOVED_BY} does not surely lower it"
    changes = {op: float(np.mean([a - b for a, b in both])) for op, both in values.items() if both}
    expect = next(concept.record["expect"] for concept in load_bank() if concept.id == NAME)
    for op, change in changes.items():
        if op in CONTROLS and abs(change) > STILL:
            yield f"{op} moves it by {change:.2f}"
        restless = op in MOVING and expect[op]["direction"] == "none"
        if restless and abs(change) >= changes.get(MOVED_BY, 0.0):
            yield f"{op} moves it by {change:.2f}, no less than {MOVED_BY}"
    area = success_area(kind, texts)
    if area is not None and area.high is not None and area.high < CHANCE:
        yield f"failed runs are surely higher (AUC {area.mean:.2f})"
    copies = [s for of_operator in texts.copies.values() for s in of_operator.values()]
    everything = [*texts.originals.values(), *copies]
    rated = sum(statistic is not None for statistic in everything)
    if rated < COVERED * len(everything):
        yield f"it exists for {rated / len(everything):.0%} of the texts"


def moved_share(values: Sequence[tuple[float, float]]) -> Interval:
    """Return the share of pairs whose original is above its copy; a tie counts as a loss."""
    return proportion_interval(sum(a > b for a, b in values), len(values))


def success_area(kind: CriterionKind, texts: Texts) -> Interval | None:
    """Return the AUC of success against failure over cases; None without both outcomes."""
    known = [
        (texts.runs[run], kind.value(statistic))
        for run, statistic in texts.originals.items()
        if statistic is not None and texts.runs[run].success is not None
    ]
    success = np.array([bool(run.success) for run, _ in known])
    if success.all() or not success.any():
        return None
    how = Bootstrap(np.random.default_rng(20), resamples=1000)
    cases = [run.input or run.id for run, _ in known]
    return bootstrap_interval(area, [np.array([v for _, v in known]), success], cases, how=how)


def area(values: NDArray[np.float64], success: NDArray[np.bool_]) -> float | None:
    """Return P(success above failed), ties half; None without one of them."""
    return None if success.all() or not success.any() else float(roc_auc_score(success, values))


def write_constants(kind: CriterionKind, against: Sequence[str]) -> None:
    """Write embedded_judge.json."""
    reason = f"holds on {', '.join(TASKS)}, on none of which it was calibrated"
    content = {
        "supported": not against,
        "reason": f"does not hold: {against[0]}" if against else reason,
        "statistic": STATISTIC,
        "center": round(kind.center, 6),
        "scale": round(kind.scale, 6),
    }
    about = "Written by benchmarks/embedded --write, which states the rule. Constants come from the"
    record = {
        "about": f"{about} development set; no task was used for them.",
        "devset_sha256": hashlib.sha256(DEVSET.read_bytes()).hexdigest(),
        "kinds": {NAME: content},
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    CONSTANTS.write_text(text + "\n", "utf-8")


def main() -> int:
    """Examine the judge; --write freezes the constants. 1 when it is offered and does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two cases of each task")
    parser.add_argument("--write", action="store_true", help="all cases; write the constants")
    options = parser.parse_args()
    cases = None if options.write else 2 if options.quick else 12
    operators = MOVING + (CONTROLS if options.write else CONTROLS[:1])
    files = {task: ROOT / "tasks" / task / "runs.jsonl" for task in TASKS}
    sets = {t: read_texts(read_runs(path).runs, operators, cases) for t, path in files.items()}
    kind = load_kinds()[NAME]
    if options.write:
        kind = fit(read_texts(development(), MOVING, rotate=False))
    kinds = {"development": kind, "math": fit(sets["math"]), "household": fit(sets["household"])}
    against = [
        f"calibrated on {origin}, on {task}: {objection}"
        for origin, calibrated in kinds.items()
        for task in TASKS
        if task != origin
        for objection in objections(calibrated, sets[task])
    ]
    for line in against:
        print(line)
    shares = []
    for task in TASKS:
        share = moved_share(pairs(sets[task], MOVED_BY))
        shares.append(f"{task} {MOVED_BY} {share.mean:.2f} [{share.low:.2f}, {share.high:.2f}]")
    if options.write:
        write_constants(kind, against)
    measured = f"{len(against)} objections: {against[0]}" if against else "holds"
    row = Row(
        f"embedded judge, {NAME}: {'offered' if kind.supported else 'unsupported'}",
        f"{measured}; {', '.join(shares)}",
        "holds on tasks that it was not calibrated on",
        None if options.quick else not against,
    )
    return finish("embedded", [row])


if __name__ == "__main__":
    sys.exit(main())
