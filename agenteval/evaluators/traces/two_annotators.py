"""Agreement of two annotators of the same traces: on spans, on categories, and on both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Findings
from agenteval.stats import Bootstrap, Interval, bootstrap_sums, cohen_kappa

Spans = Mapping[str, Collection[str]]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Overlap:
    """What two annotators marked, of one sort of thing.

    `neither` counts what neither marked, None where it is not known what could have been marked.
    `positive` is positive agreement, 2 both / (2 both + one + other): the F1 of one annotator
    against the other, whichever is called right (Hripcsak and Rothschild, J. Am. Med. Inform.
    Assoc. 12, 2005), its interval over traces. `kappa` is Cohen's, None where `neither` is unknown
    or there is no variation.
    """

    both: int
    only_first: int
    only_second: int
    neither: int | None
    positive: Interval
    kappa: float | None


@dataclass(frozen=True)
class Labels:
    """Of spans to which both gave exactly one category: how often it is the same.

    `mixed` are the commonest pairs of different categories with their counts.
    """

    spans: int
    same: int
    kappa: float | None
    mixed: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class TwoAnnotators:
    """Agreement over the traces that both did; what one alone did is counted, not compared.

    `spans`: marked spans. `pairs`: (span, category). `categories`: by name, presence in a trace,
    where `neither` counts traces. `failed` traces have no annotation by one of the two.
    """

    traces: int
    only_first: int
    only_second: int
    failed: int
    spans: Overlap
    pairs: Overlap
    labels: Labels
    categories: dict[str, Overlap]
    unknown_spans: tuple[str, ...] = ()


def two_annotators(
    first: Iterable[Findings],
    second: Iterable[Findings],
    *,
    taxonomy: Taxonomy | None = None,
    spans: Spans | None = None,
    seed: int = 0,
) -> TwoAnnotators:
    """Compare two annotators.

    `taxonomy` maps spellings to leaves; a category outside of it stays as written. `spans` are the
    ids that could have been marked in each trace: with them the spans that neither marked are
    known, and with them kappa. Marks of a trace are sets: saying one thing twice counts once.
    A location that `spans` does not have is compared like any other, left out of the kappa of
    spans, and listed as "trace: span" in `unknown_spans`. Raises InputError when there is no trace
    that both did, or for two annotations of one trace by the same annotator.
    """
    mine, theirs = _by_trace(first, taxonomy), _by_trace(second, taxonomy)
    shared = [trace for trace in mine if trace in theirs]
    sides = {
        t: (a, b) for t in shared if (a := mine[t]) is not None and (b := theirs[t]) is not None
    }
    if not sides:
        raise InputError("there is no trace that both annotators did")
    places = {t: ({span for span, _ in a}, {span for span, _ in b}) for t, (a, b) in sides.items()}
    known = {t: set(spans[t]) for t in sides if t in spans} if spans else {}
    how = Bootstrap(np.random.default_rng(seed))
    candidates = list(known.values()) if len(known) == len(sides) else None
    return TwoAnnotators(
        traces=len(sides),
        only_first=len(mine) - len(shared),
        only_second=len(theirs) - len(shared),
        failed=len(shared) - len(sides),
        spans=_overlap(places.values(), how, candidates),
        pairs=_overlap(sides.values(), how),
        labels=_labels(sides.values()),
        categories=_categories(sides.values(), taxonomy, how),
        unknown_spans=tuple(
            f"{t}: {span}" for t in known for span in sorted(set.union(*places[t]) - known[t])
        ),
    )


Marks = set[tuple[str, str]]  # (span, category)


def _by_trace(
    annotations: Iterable[Findings], taxonomy: Taxonomy | None
) -> dict[str, Marks | None]:
    """The marks of each trace; None where the annotation could not be read."""
    marks: dict[str, Marks | None] = {}
    for annotation in annotations:
        if annotation.trace in marks:
            raise InputError(
                "this annotator has two annotations of the same trace", annotation.trace
            )
        leaves = {f.category: taxonomy and taxonomy.find(f.category) for f in annotation.findings}
        names = {category: leaf.name if leaf else category for category, leaf in leaves.items()}
        pairs = {(f.span, names[f.category]) for f in annotation.findings}
        marks[annotation.trace] = pairs if annotation.status is None else None
    return marks


def _overlap(
    sides: Iterable[tuple[Set[Hashable], Set[Hashable]]],
    how: Bootstrap,
    candidates: Sequence[Set[Hashable]] | None = None,
) -> Overlap:
    """Overlap of (first, second) sets, one pair for each trace; `candidates` are what could have
    been marked in each."""
    pairs = list(sides)
    counts = np.array([[len(x & y), len(x - y), len(y - x)] for x, y in pairs], dtype=np.float64)
    both, only_first, only_second = counts.sum(axis=0).astype(int).tolist()

    def positive(totals: _Floats) -> _Floats:
        marked = 2 * totals[:, 0] + totals[:, 1] + totals[:, 2]
        result = np.full(len(totals), np.nan)
        np.divide(2 * totals[:, 0], marked, out=result, where=marked > 0)
        return result

    rows = [(c in x, c in y) for (x, y), every in zip(pairs, candidates or (), strict=False)
            for c in every]  # fmt: skip
    table = np.array(rows, dtype=np.float64)
    return Overlap(
        both,
        only_first,
        only_second,
        None if candidates is None else rows.count((False, False)),
        bootstrap_sums(counts, positive, how=how, n=int(counts.sum())),
        cohen_kappa(table, categories=(0, 1)).coefficient.mean if rows else None,
    )


def _labels(sides: Iterable[tuple[Marks, Marks]]) -> Labels:
    pairs: list[tuple[str, str]] = []
    for marks in sides:
        often = [Counter(span for span, _ in side) for side in marks]
        x, y = ({span: category for span, category in side if count[span] == 1}
                for side, count in zip(marks, often, strict=True))  # fmt: skip
        pairs += [(x[span], y[span]) for span in sorted(x.keys() & y.keys())]
    names = sorted({name for pair in pairs for name in pair})
    codes = np.array([[names.index(p), names.index(q)] for p, q in pairs], dtype=np.float64)
    mixed = Counter(pair for pair in pairs if pair[0] != pair[1])
    common = sorted(mixed.items(), key=lambda item: (-item[1], item[0]))[:10]
    return Labels(
        len(pairs),
        len(pairs) - mixed.total(),
        cohen_kappa(codes).coefficient.mean if pairs else None,
        tuple((p, q, n) for (p, q), n in common),
    )


def _categories(
    sides: Collection[tuple[Marks, Marks]], taxonomy: Taxonomy | None, how: Bootstrap
) -> dict[str, Overlap]:
    """Presence of each category in a trace: in the taxonomy's order, then by name."""
    present = [({c for _, c in a}, {c for _, c in b}) for a, b in sides]
    used = set().union(*(a | b for a, b in present))
    listed = [leaf.name for leaf in taxonomy.leaves if leaf.name in used] if taxonomy else []
    return {
        name: _overlap([(a & {name}, b & {name}) for a, b in present], how,
                       [{name}] * len(present))
        for name in [*listed, *sorted(used - set(listed))]
    }  # fmt: skip
