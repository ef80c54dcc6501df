"""Does merging join what is the same, and only that? And how many distinct criteria come out?

    python -m benchmarks.merge_quality [--embedder NAME_OR_PATH …] [--seeds 50] [--quick]
                                       [--recorded FOLDER]

Every concept of the criteria bank has several phrasings, written independently of each other. All
phrasings of half of the bank are merged, and every pair of them is right when its two criteria are
in one cluster exactly if they are of one concept. Precision is the share of pairs in one cluster
that are of one concept, recall the share of pairs of one concept that are in one cluster. The
clusters are those of `merge_criteria`: equal names at every tau, and below tau = 1 complete linkage
over cosines, so that a cluster holds no two criteria of different names with a cosine below tau;
criteria whose scales differ in kind are never joined. The ceiling is the share of pairs of one
concept with a cosine of at least tau: complete linkage can join no more, but for equal names.

Compared: the default sentence-transformers model over the three forms of a criterion's text, TF-IDF
over words (1- and 2-grams) and over characters (3- to 5-grams inside words), both weighted by the
texts compared alone, equal names without an embedder, and what --embedder names.

The rules (stated before the figures were seen)
-----------------------------------------------
Halves: a concept is in `choose` when the first byte of the SHA-256 of its id is even, else in
`print`. The chosen tau of an embedder is the one of .05, .10, … .95 with the highest F1 among those
with a precision of at least .95 on `choose`; ties go to the higher tau; there may be none. The
tables and the first figure are from `print`. The package's default tau should change when its
precision there is below .95, or when the chosen tau has there a precision of at least .95 and an F1
that is higher, with an interval of the difference above 0.

Intervals: 95 %, percentiles over 2000 resamples of concepts (not of criteria or pairs, which hang
together), clusters as they are; exact binomial over concepts where a share is 0 or 1.

What the bank cannot show (added when the figures had been seen): its concepts were written to be
distinct, its closest pairs were looked up with the default embedder, and paraphrases written for a
bank keep closer to each other than those of a critic. So precision and recall of that embedder are
upper bounds, and the rule leans towards a low tau: its verdict is advice. For that reason the pairs
joined wrongly are named, over the whole bank and over the proposals for one task, at the default
and at the chosen tau, and --recorded names what is joined in real replies, to be read.

Curves: distinct criteria against the number of seeds (arXiv 2402.09015, figure 5), for the embedded
critic on tasks/math with the description alone (task-based) and with the examples of success and
failure (solution-based), after merging at tau .7, .85 and 1; mean and central 95 % of random orders
of the seeds. The critic draws from the bank, so the concepts meant are known and drawn beside. With
--recorded also for the critic replies in a folder (JSONL, field `raw`).

Figures go to benchmarks/out/merge_quality.png and unique_criteria.png, proposals are kept there.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.evaluators.utility.bank import Concept, load_bank
from agenteval.models.embeddings import Embedder, make_embedder
from benchmarks.folders import OUT, ROOT
from benchmarks.merge_quality.embedders import MERGED, N_GRAMS, ceiling, in_form, labels, n_grams
from benchmarks.merge_quality.figures import draw_curves, draw_quality
from benchmarks.merge_quality.pairs import (
    RESAMPLES,
    Pairs,
    Quality,
    choose_tau,
    count_pairs,
    draw_weights,
    half,
    measure,
)
from benchmarks.merge_quality.print import (
    curve_row,
    judge_default,
    print_curves,
    print_joined,
    print_result,
    print_together,
    row,
)
from benchmarks.merge_quality.unique import ModeCurves, mode_curves, propose, recorded
from benchmarks.outcome import Row, finish

if TYPE_CHECKING:
    from agenteval.models.embeddings import Vectors
    from agenteval.records import Criterion

TASK = ROOT / "tasks" / "math"
GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))


@dataclass(frozen=True)
class Half:
    """The phrasings of half of the bank as criteria, with their concepts."""

    criteria: list[Criterion]
    concepts: list[str]

    @classmethod
    def of(cls, bank: Sequence[Concept], name: str) -> Half:
        """All phrasings of the concepts whose half is `name`."""
        pairs = [
            (c.criterion(p), c.id)
            for c in bank
            if half(c.id) == name
            for p in range(len(c.phrasings))
        ]
        return cls([criterion for criterion, _ in pairs], [concept for _, concept in pairs])

    @property
    def n(self) -> int:
        """Number of concepts."""
        return len(set(self.concepts))


@dataclass(frozen=True)
class Method:
    """One way to tell what is the same; `embed` None merges equal names alone."""

    name: str
    form: str
    embed: Callable[[Sequence[str]], Vectors] | None


@dataclass(frozen=True)
class Result:
    """What one method was measured to do on the half `print`, by tau.

    `chosen` is the tau from the half `choose`, `on_choose` the quality it had there.
    """

    method: Method
    chosen: float | None
    on_choose: Quality | None
    table: dict[float, Quality]
    ceilings: dict[float, float]
    pairs: dict[float, Pairs]


def measured(method: Method, choose: Half, shown: Half, resamples: int) -> Result:
    """Choose tau on one half and measure on the other."""
    if method.embed is None:
        pairs = {1.0: count_pairs(shown.concepts, labels(shown.criteria, None, 1.0))}
        table = {1.0: measure(pairs[1.0], draw_weights(shown.n, resamples))}
        return Result(method, None, None, table, {}, pairs)
    known, _ = in_form(choose.criteria, method.name, method.embed, method.form)
    weights = draw_weights(choose.n, resamples)
    tried = {
        tau: measure(count_pairs(choose.concepts, labels(choose.criteria, known, tau)), weights)
        for tau in GRID
    }
    chosen = choose_tau(tried)
    known, vectors = in_form(shown.criteria, method.name, method.embed, method.form)
    pairs = {tau: count_pairs(shown.concepts, labels(shown.criteria, known, tau)) for tau in GRID}
    weights = draw_weights(shown.n, resamples)
    return Result(
        method,
        chosen,
        None if chosen is None else tried[chosen],
        {tau: measure(pairs[tau], weights) for tau in GRID},
        {tau: ceiling(shown.concepts, vectors, tau) for tau in GRID},
        pairs,
    )


@dataclass(frozen=True)
class Together:
    """What merging all given criteria does at one tau, with the pairs that it joins wrongly.

    `strangers` holds (name, name) of every joined pair of two concepts.
    """

    tau: float
    criteria: int
    clusters: int
    quality: Quality
    strangers: list[tuple[str, str]]


def together(criteria: Sequence[Criterion], embedder: Embedder, tau: float) -> Together:
    """Merge criteria of known concepts, each wording once. Raises ValueError without a concept."""
    distinct = list({(c.name, c.description): c for c in criteria}.values())
    if any(c.provenance.concept is None for c in distinct):
        raise ValueError("a criterion without a concept")
    concepts = [c.provenance.concept for c in distinct]
    found = labels(distinct, embedder, tau)
    pairs = count_pairs(concepts, found)
    strangers = [
        (a.name, b.name)
        for (a, i), (b, j) in combinations(zip(distinct, found, strict=True), 2)
        if i == j and a.provenance.concept != b.provenance.concept
    ]
    quality = measure(pairs, draw_weights(len(pairs.joined)))
    return Together(tau, len(distinct), len(set(found)), quality, strangers)


def methods(embedder: Embedder, others: Sequence[str]) -> list[Method]:
    """The default model in three forms of the text, the baselines, and other embedders."""
    found = [
        Method(embedder.name, form, embedder.embed) for form in (MERGED, "name", "description")
    ]
    found += [Method(name, MERGED, functools.partial(n_grams, name)) for name in N_GRAMS]
    found.append(Method("equal names", "name", None))
    for spec in others:
        other = make_embedder(spec)
        found.append(Method(other.name, MERGED, other.embed))
    return found


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure merging against the criteria bank.")
    parser.add_argument("--embedder", nargs="+", default=[], metavar="NAME_OR_PATH")
    parser.add_argument("--seeds", type=int, default=50, help="seeds of the critic per mode")
    parser.add_argument("--quick", action="store_true", help="20 seeds, fewer resamples")
    parser.add_argument("--recorded", type=Path, help="folder of recorded critic replies")
    return parser.parse_args()


def unique(
    wanted: argparse.Namespace, embedder: Embedder, taus: Sequence[float]
) -> dict[str, ModeCurves]:
    """Curves of the embedded critic and, when a folder is given, of recorded replies."""
    seeds = min(wanted.seeds, 20) if wanted.quick else wanted.seeds
    proposals = propose(TASK, embedder, seeds, OUT)
    curves = {mode: mode_curves(sets, embedder) for mode, sets in proposals.items()}
    draw_curves(curves, OUT / "unique_criteria.png")
    print_curves(curves)
    for mode, sets in proposals.items():
        everything = [c for criteria in sets for c in criteria]
        print_together(f"{mode} proposals", [together(everything, embedder, t) for t in taus])
    if wanted.recorded is not None:
        sets, failed = recorded(wanted.recorded)
        print(f"\nrecorded: {len(sets)} replies read, {len(failed)} could not be read")
        print("".join(f"  {line}\n" for line in failed), end="")
        curves["recorded"] = mode_curves(sets, embedder)
        print_curves({"recorded": curves["recorded"]})
        print_joined(sets, embedder, taus)
    return curves


def main() -> int:
    """Measure, print, draw; the last line is JSON."""
    wanted = options()
    start = time.perf_counter()
    resamples = 500 if wanted.quick else RESAMPLES
    OUT.mkdir(exist_ok=True)
    bank, embedder = load_bank(), make_embedder(None)
    choose, shown = Half.of(bank, "choose"), Half.of(bank, "print")
    print(
        f"bank: {len(bank)} concepts; τ chosen on {choose.n} of them ({len(choose.criteria)} "
        f"phrasings), measured on the other {shown.n} ({len(shown.criteria)} phrasings)"
    )
    results = []
    for method in methods(embedder, wanted.embedder):
        results.append(measured(method, choose, shown, resamples))
        print_result(results[-1])
    first, default = results[0], embedder.default_tau
    verdict = judge_default(first, default, resamples)
    taus = sorted({default, *([] if first.chosen is None else [first.chosen])}, reverse=True)
    whole = [together([*choose.criteria, *shown.criteria], embedder, tau) for tau in taus]
    print_together("whole bank, both halves", whole)
    draw_quality(results, default, OUT / "merge_quality.png")
    curves = unique(wanted, embedder, taus)
    done: dict[str, Any] = {
        "concepts": {"choose": choose.n, "print": shown.n},
        "tau": verdict,
        "methods": [row(r) for r in results],
        "whole_bank": [asdict(t) for t in whole],
        "curves": {mode: curve_row(c) for mode, c in curves.items()},
        "seconds": round(time.perf_counter() - start, 1),
    }
    return finish("merge_quality", figures(results, default), **done)


def figures(results: Sequence[Result], default: float) -> list[Row]:
    """The default embedder at its threshold, and the best baseline at the one chosen for it."""
    own, others = results[0], [r for r in results if r.method.name in N_GRAMS]
    at = min(own.table, key=lambda tau: abs(tau - default))
    rows = [_quality_row(f"{own.method.name} at {at:g}", own.table[at])]
    chosen = [(r, r.table[r.chosen]) for r in others if r.chosen is not None]
    if chosen:
        best, quality = max(chosen, key=lambda pair: pair[1].f1.value or 0.0)
        rows.append(_quality_row(f"best baseline, {best.method.name} at {best.chosen:g}", quality))
    return rows


def _quality_row(what: str, found: Quality) -> Row:
    shares = (found.precision, found.recall, found.f1)
    precision, recall, f1 = ("-" if s.value is None else f"{s.value:.2f}" for s in shares)
    return Row(f"merging by {what}", f"precision {precision}, recall {recall}, F1 {f1}")


if __name__ == "__main__":
    sys.exit(main())
