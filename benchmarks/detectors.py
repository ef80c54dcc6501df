"""The rule `failed-code` against people's annotations: is it better than chance?

    python -m benchmarks.detectors [--data FOLDER] [--held-out]

Needs TRAIL's traces with annotations (github.com/patronus-ai/trail-benchmark; folders `traces` and
`gold` in each folder of --data), which are not in the repository. A flag is a hit where an
annotation marks the same span with the same category; each pair counts once. Chance places as many
flags on random spans of the same trace, of the kinds that people mark with this category; `p` is
the exact probability of as many hits (a sum of hypergeometric numbers, one for each trace).
Intervals resample traces. The rule counts as better than chance if it made ten flags or more and p
is below .05. Leave-one-trace-out, this and the better placement (the next request, or the one that
wrote the code) are decided on all traces but one and counted on that one. The rule's confidence
(`detectors.CONFIDENCE`) is what it then got right in a trace, averaged over the traces with
flags: of all flags together, two traces have a third.

The rule was made with the 40 traces named in `trail_dev.txt`, so their figures are too good.
`--held-out` measures all traces of --data but these.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from agenteval.readers.traces import read_traces
from agenteval.records import Findings, Run
from agenteval.stats.bootstrap import Bootstrap, bootstrap_sums
from agenteval.stats.interval import Interval
from agenteval.traces.annotations import Annotation, pair_up, read_folder
from agenteval.traces.detectors import CONFIDENCE, DETECTORS, detect, failed_steps
from agenteval.traces.taxonomy import built_in
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

DATA = ROOT.parent / "shared" / "reference" / "traces" / "trail_dev"
NAME = "failed-code"
CATEGORY = next(d.category for d in DETECTORS if d.name == NAME)
DEVELOPMENT = Path(__file__).with_name("trail_dev.txt")  # names of the traces the rule is made with
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


@dataclass(frozen=True)
class LeftOut:
    """Flags and hits on each trace with flags that was left out, and in how many of all traces the
    reader was preferred."""

    flags: tuple[int, ...]
    hits: tuple[int, ...]
    folds: int

    @property
    def share(self) -> Interval:
        """The share of right flags in a trace, averaged over traces."""
        shares = [[hits / flags, 1.0] for hits, flags in zip(self.hits, self.flags, strict=True)]
        return bootstrap_sums(
            np.array(shares),
            lambda sums: sums[:, 0] / sums[:, 1],
            how=Bootstrap(np.random.default_rng(0), 2000),
        )


def read_cases(data: Path, without: Collection[str] = ()) -> list[Case]:
    """All traces whose annotation can be read, in the order of their names, but those named."""
    cases = []
    for folder in sorted(path.parent for path in data.glob("*/traces")):
        gold = read_folder(folder / "gold", built_in())
        paths = (p for p in (folder / "traces").glob("*.json") if p.stem not in without)
        for path in sorted(paths):
            for run in read_traces(path).runs:
                name = Annotation(path.stem, Findings(trace=run.id), "")
                for truth, match in pair_up(gold, [name]).pairs:
                    if match is not None and truth.findings.status is None:
                        cases.append(make_case(run, truth.findings))
    return cases


def make_case(run: Run, gold: Findings) -> Case:
    """The trace with what the rule flags; `written` places it at the writing request."""
    flags = {
        NAME: {(finding.span, finding.category) for finding in detect(run, built_in())},
        "written": {(step.writer.id, CATEGORY) for step in failed_steps(run)},
    }
    ids = {kind: [s.id for s in run.spans if s.kind == kind] for kind in ("llm", "tool")}
    return Case(
        len(run.spans),
        ids,
        frozenset((f.span, f.category) for f in gold.findings),
        {name: frozenset(marks) for name, marks in flags.items()},
    )


def marked_kinds(cases: Iterable[Case], category: str) -> tuple[str, ...]:
    """Kinds of spans that people mark with a category; LLM spans if it was never marked."""
    marked = {
        kind
        for case in cases
        for kind, ids in case.ids.items()
        for span in ids
        if (span, category) in case.gold
    }
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


def left_out(cases: Sequence[Case]) -> LeftOut:
    """Count flags and hits on each trace for which the other traces say: better than chance.

    Both placements compete: where the other traces prefer `written`, that one is counted.
    """
    names, counts, folds = (NAME, "written"), list[tuple[int, int]](), 0
    for i, case in enumerate(cases):
        rest = [*cases[:i], *cases[i + 1 :]]
        tried = {one: measure(rest, CATEGORY, [one]) for one in names}
        best = max(names, key=lambda one: tried[one].hits)
        if tried[best].better:
            flags = case.flags[best]
            counts += [(len(flags), len(flags & case.gold))] if flags else []
            folds += best == NAME
    return LeftOut(tuple(f for f, _ in counts), tuple(h for _, h in counts), folds)


def precision(cases: Sequence[Case], category: str, rules: Sequence[str]) -> str:
    """Hits among flags with an interval over the traces that have flags."""
    sums = []
    for case in cases:
        flags = case.marks(rules, category)
        if flags:
            sums.append((len(flags & case.gold), len(flags)))
    if not sums:
        return "-"
    mean = bootstrap_sums(
        np.array(sums, float),
        lambda t: t[:, 0] / t[:, 1],
        how=Bootstrap(np.random.default_rng(0), 2000),
    )
    return f"{sum(hits for hits, _ in sums) / sum(flags for _, flags in sums):.2f}{_ends(mean)}"


def _ends(mean: Interval) -> str:
    low, high = mean.low, mean.high
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"


def show(cases: Sequence[Case]) -> None:
    """Print a row for each placement."""
    heads = ("flags", "hits", "precision", "recall", "false per 100 spans", "hits by chance", "p")
    table = Table(title=f"{NAME} ({CATEGORY}) on {len(cases)} annotated traces")
    for head in ("finding stands at", *heads):
        table.add_column(head)
    for name, place in ((NAME, "the next request"), ("written", "the writing request")):
        got = measure(cases, CATEGORY, [name])
        table.add_row(
            place,
            str(got.flags),
            str(got.hits),
            precision(cases, CATEGORY, [name]),
            f"{got.hits / got.gold:.2f}" if got.gold else "-",
            f"{100 * (got.flags - got.hits) / got.spans:.2f}",
            f"{got.chance:.1f}",
            f"{got.p:.2g}" if got.flags else "-",
        )
    Console(width=140).print(table)


def main() -> int:
    """Measure and print; 1 when the rule is not better than chance or CONFIDENCE is another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    without = DEVELOPMENT.read_text().split() if options.held_out else ()
    cases = read_cases(options.data, without) if options.data.is_dir() else []
    if not cases:
        print(f"no annotated traces in {options.data}: nothing measured")
        return finish("detectors", [])
    show(cases)
    got = measure(cases, CATEGORY, [NAME])
    figures = f"{got.hits} of {got.flags} right, {got.chance:.1f} by chance, p {got.p:.2g}"
    rows = [Row(f"{NAME} ({CATEGORY})", figures)]
    if not options.held_out:
        rows += left_out_rows(left_out(cases), len(cases))
    return finish("detectors", rows)


def left_out_rows(out: LeftOut, cases: int) -> list[Row]:
    """The figures of traces that were left out, and whether the code has them."""
    share = out.share
    value = None if share.mean is None else round(share.mean, 2)
    figures = (
        f"{sum(out.hits)} of {sum(out.flags)} right (placed so in {out.folds} of {cases}), "
        f"{value}{_ends(share)} of those of a trace, over {len(out.flags)} traces"
    )
    return [
        Row("confidence, as in the code", str(value), str(CONFIDENCE), value == CONFIDENCE),
        Row("each trace left out", figures),
    ]


if __name__ == "__main__":
    sys.exit(main())
