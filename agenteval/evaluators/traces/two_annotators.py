"""Agreement of two annotators of the same traces: on spans, on categories, and on both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Finding, Findings
from agenteval.stats import Bootstrap, Interval, bootstrap_sums, cohen_kappa

Spans = Mapping[str, Collection[str]]


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
    unknown_spans: tuple[str, ...] = field(default=())


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
    one, other = _by_trace(first), _by_trace(second)
    shared = [trace for trace in one if trace in other]
    done = [t for t in shared if one[t].status is None and other[t].status is None]
    if not done:
        raise InputError("there is no trace that both annotators did")
    a = {t: _marks(one[t].findings, taxonomy) for t in done}
    b = {t: _marks(other[t].findings, taxonomy) for t in done}
    places_a = {t: {span for span, _ in a[t]} for t in done}
    places_b = {t: {span for span, _ in b[t]} for t in done}
    known = None if spans is None else {t: set(spans[t]) for t in done if t in spans}
    how = Bootstrap(np.random.default_rng(seed))
    return TwoAnnotators(
        traces=len(done),
        only_first=len(one) - len(shared),
        only_second=len(other) - len(shared),
        failed=len(shared) - len(done),
        spans=_overlap([(places_a[t], places_b[t]) for t in done], how, _rest(done, known)),
        pairs=_overlap([(a[t], b[t]) for t in done], how, None),
        labels=_labels([(a[t], b[t]) for t in done]),
        categories=_categories([(a[t], b[t]) for t in done], taxonomy, how),
        unknown_spans=tuple(
            f"{t}: {span}"
            for t in (known or {})
            for span in sorted((places_a[t] | places_b[t]) - (known or {})[t])
        ),
    )


Marks = set[tuple[str, str]]


def _by_trace(all_of: Iterable[Findings]) -> dict[str, Findings]:
    found: dict[str, Findings] = {}
    for one in all_of:
        if one.trace in found:
            raise InputError("this annotator has two annotations of the same trace", one.trace)
        found[one.trace] = one
    return found


def _marks(findings: Sequence[Finding], taxonomy: Taxonomy | None) -> Marks:
    def name(category: str) -> str:
        leaf = taxonomy.find(category) if taxonomy else None
        return leaf.name if leaf else category

    return {(f.span, name(f.category)) for f in findings}


def _rest(done: Sequence[str], known: Mapping[str, set[str]] | None) -> list[set[str]] | None:
    """The spans of each trace, None when those of one trace are unknown."""
    if known is None or any(t not in known for t in done):
        return None
    return [known[t] for t in done]


def _overlap(
    sides: Sequence[tuple[Collection[Hashable], Collection[Hashable]]],
    how: Bootstrap,
    candidates: Sequence[set[str]] | None,
) -> Overlap:
    """Overlap of (first, second) sets, one pair for each trace."""
    counts = np.zeros((len(sides), 3))
    table: Counter[tuple[bool, bool]] = Counter()
    for i, (first, second) in enumerate(sides):
        x, y = set(first), set(second)
        counts[i] = len(x & y), len(x - y), len(y - x)
        if candidates is not None:
            table.update((c in x, c in y) for c in candidates[i])
    both, only_first, only_second = counts.sum(axis=0).astype(int).tolist()
    return Overlap(
        both,
        only_first,
        only_second,
        table[False, False] if candidates is not None else None,
        _positive(counts, how),
        _kappa(table) if candidates is not None else None,
    )


def _positive(
    counts: np.ndarray[tuple[int, int], np.dtype[np.float64]], how: Bootstrap
) -> Interval:
    def share(
        totals: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        marked = 2 * totals[:, 0] + totals[:, 1] + totals[:, 2]
        result = np.full(len(totals), np.nan)
        np.divide(2 * totals[:, 0], marked, out=result, where=marked > 0)
        return result

    return bootstrap_sums(counts, share, how=how, n=int(counts.sum()))


def _kappa(table: Counter[tuple[bool, bool]]) -> float | None:
    rows = [pair for pair, n in table.items() for _ in range(n)]
    if not rows:
        return None
    return cohen_kappa(np.array(rows, dtype=np.float64), categories=(0, 1)).coefficient.mean


def _labels(sides: Sequence[tuple[Marks, Marks]]) -> Labels:
    pairs: list[tuple[str, str]] = []
    for first, second in sides:
        x, y = _single(first), _single(second)
        pairs += [(x[span], y[span]) for span in sorted(x.keys() & y.keys())]
    names = sorted({name for pair in pairs for name in pair})
    codes = np.array([[names.index(p), names.index(q)] for p, q in pairs], dtype=np.float64)
    kappa = cohen_kappa(codes).coefficient.mean if pairs else None
    mixed = Counter(pair for pair in pairs if pair[0] != pair[1])
    common = sorted(mixed.items(), key=lambda item: (-item[1], item[0]))[:10]
    return Labels(
        len(pairs),
        sum(p == q for p, q in pairs),
        kappa,
        tuple((p, q, n) for (p, q), n in common),
    )


def _single(marks: Marks) -> dict[str, str]:
    often = Counter(span for span, _ in marks)
    return {span: category for span, category in marks if often[span] == 1}


def _categories(
    sides: Sequence[tuple[Marks, Marks]], taxonomy: Taxonomy | None, how: Bootstrap
) -> dict[str, Overlap]:
    """Presence of each category in a trace: in the taxonomy's order, then by name."""
    used = {category for pair in sides for marks in pair for _, category in marks}
    listed = [leaf.name for leaf in taxonomy.leaves if leaf.name in used] if taxonomy else []
    found = {}
    for name in [*listed, *sorted(used - set(listed))]:
        present = [tuple({"x"} if any(c == name for _, c in m) else set() for m in pair)
                   for pair in sides]  # fmt: skip
        found[name] = _overlap([(p[0], p[1]) for p in present], how, [{"x"}] * len(sides))
    return found
