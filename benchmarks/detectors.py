"""The rules for traces against people's annotations: is each better than chance?

    python -m benchmarks.detectors [--data FOLDER] [--write]

Needs TRAIL's traces with annotations (github.com/patronus-ai/trail-benchmark; folders `traces` and
`gold` in each folder of --data), which are not in the repository. A flag is a hit where an
annotation marks the same span with the same category; each pair counts once. Chance places as many
flags on random spans of the same trace, of the kinds that people mark with this category; `p` is
the exact probability of as many hits (a sum of hypergeometric numbers, one for each trace).
Intervals resample traces. A rule is on if it made ten flags or more and p is below .05. Leave-one-
trace-out, this is decided on all traces but one and counted on that one; the precision of those
flags is the rule's confidence. --write keeps it in agenteval/data/traces/detectors.json.
`benchmarks/results.md` shows one line for each rule.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from agenteval.evaluators.traces.annotation_files import pair_up, read_folder
from agenteval.evaluators.traces.annotations import Annotation
from agenteval.evaluators.traces.detectors import RULES, TraceView, detect
from agenteval.evaluators.traces.detectors.steps import failed_steps
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.files import write_atomically
from agenteval.readers.traces import read_traces
from agenteval.records import Findings, Run
from agenteval.stats.bootstrap import Bootstrap, bootstrap_sums
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

DATA = ROOT.parent / "shared" / "reference" / "traces" / "trail_dev"
KEPT = ROOT / "agenteval" / "data" / "traces" / "detectors.json"
LEAST, LEVEL = 10, 0.05
Marks = frozenset[tuple[str, str]]  # (span, category)


@dataclass(frozen=True)
class Case:
    """One annotated trace: ids of its LLM and tool spans by kind, gold, and flags by rule."""

    spans: int
    ids: dict[str, list[str]]
    gold: Marks
    flags: dict[str, Marks]

    def marks(self, rules: Iterable[str], category: str) -> Marks:
        """What the rules flag as errors of this category."""
        every = frozenset[tuple[str, str]]().union(*(self.flags[name] for name in rules))
        return frozenset(mark for mark in every if mark[1] == category)


@dataclass(frozen=True)
class Measured:
    """Flags of one category against gold."""

    flags: int
    hits: int
    gold: int
    chance: float  # hits to be expected of random spans
    p: float
    spans: int

    @property
    def better(self) -> bool:
        """Whether this is surely better than chance, on enough flags."""
        return self.flags >= LEAST and self.p < LEVEL


def read_cases(data: Path) -> list[Case]:
    """All traces whose annotation can be read, in the order of their names."""
    cases = []
    for folder in sorted(path.parent for path in data.glob("*/traces")):
        gold = read_folder(folder / "gold", built_in())
        for path in sorted((folder / "traces").glob("*.json")):
            for run in read_traces(path).runs:
                name = Annotation(path.stem, Findings(trace=run.id), "")
                for truth, match in pair_up(gold, [name]).pairs:
                    if match is not None and truth.findings.status is None:
                        cases.append(make_case(run, truth.findings))
    return cases


def make_case(run: Run, gold: Findings) -> Case:
    """The trace with what every rule flags; `written` is failed-code at the writing request."""
    flags: dict[str, set[tuple[str, str]]] = {name: set() for name in RULES}
    for one in detect(run, built_in(), undecided=True):
        flags[one.source.removeprefix("detector:")].add((one.span, one.category))
    code = RULES["failed-code"].category
    flags["written"] = {(step.writer.id, code) for step in failed_steps(TraceView(run))}
    ids = {kind: [s.id for s in run.spans if s.kind == kind] for kind in ("llm", "tool")}
    return Case(len(run.spans), ids, frozenset((f.span, f.category) for f in gold.findings),
                {name: frozenset(marks) for name, marks in flags.items()})  # fmt: skip


def marked_kinds(cases: Iterable[Case], category: str) -> tuple[str, ...]:
    """Kinds of spans that people mark with a category; LLM spans if it was never marked."""
    marked = {
        kind for case in cases for kind, ids in case.ids.items()
        for span in ids if (span, category) in case.gold
    }  # fmt: skip
    return tuple(sorted(marked)) or ("llm",)


def measure(cases: Sequence[Case], category: str, rules: Sequence[str]) -> Measured:
    """The flags of one category of some traces against gold and chance."""
    from scipy.stats import hypergeom

    kinds = marked_kinds(cases, category)
    counts, chance, spread = np.zeros(3, int), 0.0, np.ones(1)
    for case in cases:
        flags = case.marks(rules, category)
        gold = {mark for mark in case.gold if mark[1] == category}
        counts += (len(flags), len(flags & gold), len(gold))
        spans = {span for kind in kinds for span in case.ids[kind]}
        right = len({span for span, _ in gold} & spans)
        drawn = min(len(flags), len(spans))
        if drawn:
            chance += drawn * right / len(spans)
            numbers = np.arange(drawn + 1)
            spread = np.convolve(spread, hypergeom.pmf(numbers, len(spans), right, drawn))
    flags_, hits, truth = (int(n) for n in counts)
    p = min(1.0, float(spread[hits:].sum()))
    return Measured(flags_, hits, truth, chance, p, sum(case.spans for case in cases))


def left_out(cases: Sequence[Case], name: str) -> tuple[int, int, int]:
    """Flags and hits on traces for which the others say that the rule is on, and how many say so.

    Both placements of failed-code compete: where the others prefer `written`, it is counted."""
    category, totals = RULES[name].category, np.zeros(3, int)
    names = (name, "written") if name == "failed-code" else (name,)
    for i, case in enumerate(cases):
        rest = [*cases[:i], *cases[i + 1 :]]
        tried = {one: measure(rest, category, [one]) for one in names}
        best = max(names, key=lambda one: tried[one].hits)
        if tried[best].better:
            flags = case.flags[best]
            totals += (len(flags), len(flags & case.gold), best == name)
    return int(totals[0]), int(totals[1]), int(totals[2])


def precision(cases: Sequence[Case], category: str, rules: Sequence[str]) -> str:
    """Hits among flags with an interval over the traces that have flags."""
    sums = []
    for case in cases:
        flags = case.marks(rules, category)
        if flags:
            sums.append((len(flags & case.gold), len(flags)))
    if not sums:
        return "-"
    mean = bootstrap_sums(np.array(sums, float), lambda t: t[:, 0] / t[:, 1],
                          how=Bootstrap(np.random.default_rng(0), 2000))  # fmt: skip
    ends = "" if mean.low is None or mean.high is None else f" [{mean.low:.2f}, {mean.high:.2f}]"
    return f"{sum(hits for hits, _ in sums) / sum(flags for _, flags in sums):.2f}{ends}"


def reading_nothing(cases: Sequence[Case]) -> dict[str, float]:
    """Precision of the category commonest in the other traces at a random, first, last request."""
    shares: dict[str, list[float]] = {"a random": [], "the first": [], "the last": []}
    for i, case in enumerate(cases):
        others = Counter(c for j, one in enumerate(cases) if j != i for _, c in one.gold)
        category = others.most_common(1)[0][0]
        right = [(span, category) in case.gold for span in case.ids["llm"]]
        if right:
            for name, share in zip(
                shares, (float(np.mean(right)), right[0], right[-1]), strict=True
            ):
                shares[name].append(float(share))
    return {name: float(np.mean(values)) for name, values in shares.items()}


def line(cases: Sequence[Case], category: str, rules: Sequence[str]) -> list[str]:
    """The cells of a row."""
    got = measure(cases, category, rules)
    wrong = 100 * (got.flags - got.hits) / got.spans
    recall = f"{got.hits / got.gold:.2f}" if got.gold else "-"
    p = "-" if not got.flags else f"{got.p:.2g}" if got.p >= 1e-4 else "< .0001"
    return [str(got.flags), str(got.hits), precision(cases, category, rules), recall,
            f"{wrong:.2f}", f"{got.chance:.1f}", p]  # fmt: skip


def show(cases: Sequence[Case], kept: dict[str, tuple[int, int, int]]) -> None:
    """Print the table by rule, that by category, and what reads nothing."""
    console = Console(width=140)
    heads = ("flags", "hits", "precision", "recall", "false per 100 spans", "hits by chance", "p")
    rules = Table(title=f"Rules on {len(cases)} annotated traces")
    for head in ("rule", "category", *heads, "left out", ""):
        rules.add_column(head)
    for name in (*RULES, "written"):
        category = RULES["failed-code" if name == "written" else name].category
        flags, hits, _ = kept.get(name, (0, 0, 0))
        label = "(failed-code at the writer)" if name == "written" else name
        state = "" if name == "written" else "on" if flags else "undecided"
        rules.add_row(label, category, *line(cases, category, [name]),
                      f"{hits} of {flags}" if flags else "-", state)  # fmt: skip
    console.print(rules)
    kinds = Table(title="Categories, the rules that are on and (in brackets: flags) all rules")
    for head in ("category", *heads):
        kinds.add_column(head)
    on = [name for name, (flags, _, _) in kept.items() if flags]

    for leaf in built_in().assigned:
        cells = line(cases, leaf.name, on)
        every = measure(cases, leaf.name, list(RULES)).flags
        kinds.add_row(leaf.name, f"{cells[0]} ({every})", *cells[1:])
    console.print(kinds)
    for name, share in reading_nothing(cases).items():
        print(f"the commonest category at {name} request: precision {share:.2f}")


def main() -> int:
    """Measure and print; 1 when a rule that is on is not better than chance, or is not kept so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true", help=f"keep the result in {KEPT.name}")
    options = parser.parse_args()
    cases = read_cases(options.data) if options.data.is_dir() else []
    if not cases:
        print(f"no annotated traces in {options.data}: nothing measured")
        return finish("detectors", [])
    kept = {name: left_out(cases, name) for name in RULES}
    show(cases, kept)
    values = {name: round(hits / flags, 2) for name, (flags, hits, _) in kept.items() if flags}
    if options.write:
        write_atomically(KEPT, json.dumps({"precision": values}, indent=1) + "\n")
    stored = json.loads(KEPT.read_text("utf-8"))["precision"]
    rows = [Row("rules that are on, as stored", ", ".join(values), ", ".join(stored) or None,
                values == stored)]  # fmt: skip
    for name, (flags, hits, folds) in kept.items():
        got = measure(cases, RULES[name].category, [name])
        state = (f"{hits} of {flags} right left out (placed so in {folds} of {len(cases)}), "
                 f"{got.chance:.1f} by chance, p {got.p:.2g}" if flags
                 else f"undecided: {got.hits} of {got.flags}")  # fmt: skip
        rows.append(Row(f"{name} ({RULES[name].category})", state))
    return finish("detectors", rows)


if __name__ == "__main__":
    sys.exit(main())
