"""What is said of one trace, as sets, and how it agrees with gold: hits, predicted, gold.

Three levels: `location`, the spans named; `category`, the kinds named anywhere in the trace;
`joint`, the pairs of span and kind. Duplicates count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.evaluators.traces.tolerance import Nearness
from agenteval.records import Findings

Level = Literal["location", "category", "joint"]
LEVELS: tuple[Level, ...] = ("location", "category", "joint")

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Claims:
    """What is said of one trace.

    `spans` of each category by its name; findings without a category stand under "", those
    without a place have the span "". `entries` counts the findings as they were given. `unknown`
    counts labels that the taxonomy does not know; they are categories of their own. Sets may be
    shared: a predictor that names every span 20 times costs no more than one that does once.
    """

    spans: Mapping[str, frozenset[str]]
    entries: int
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def locations(self) -> frozenset[str]:
        """All spans named ("" among them where an error has no place)."""
        return _NOTHING.union(*{id(one): one for one in self.spans.values()}.values())

    @property
    def categories(self) -> frozenset[str]:
        """All categories named."""
        return frozenset(self.spans) - {""}


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one level in one or more traces."""

    hits: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.hits + other.hits, self.predicted + other.predicted, self.gold + other.gold
        )

    @property
    def precision(self) -> float | None:
        """hits / predicted; None where nothing is predicted."""
        return self.hits / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """hits / gold; None where there is no gold."""
        return self.hits / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """2 hits / (predicted + gold); None where both are empty."""
        total = self.predicted + self.gold
        return 2 * self.hits / total if total else None


def claims(findings: Findings, taxonomy: Taxonomy) -> Claims:
    """The sets of `findings`; labels by the taxonomy's names and aliases, never by substrings."""
    spans: dict[str, set[str]] = {}
    unknown: Counter[str] = Counter()
    for one in findings.findings:
        leaf = taxonomy.find(one.category)
        label = leaf.name if leaf else " ".join(one.category.casefold().split())
        if leaf is None and label:
            unknown[label] += 1
        spans.setdefault(label, set()).add(one.span)
    named = {label: frozenset(found) for label, found in spans.items()}
    return Claims(named, len(findings.findings), dict(unknown))


def tally(gold: Claims, predicted: Claims, near: Nearness | None = None) -> dict[Level, Tally]:
    """Counts of one trace. With `near`, close spans are hits too, one to one (see `matched`).

    Gold errors without a place are no gold for location and joint, those without a category none
    for category and joint; a prediction without either is a wrong one.
    """
    g, p = gold.locations - {""}, predicted.locations
    kinds = gold.categories, predicted.categories
    joint = sum(by_category(gold, predicted, near).values(), Tally())
    without_kind = len(predicted.spans.get("", _NOTHING))
    return {
        "location": Tally(matched(g, p, near), len(p), len(g)),
        "category": Tally(len(kinds[0] & kinds[1]), len(kinds[1]), len(kinds[0])),
        "joint": joint + Tally(predicted=without_kind),
    }


def by_category(gold: Claims, predicted: Claims, near: Nearness | None = None) -> dict[str, Tally]:
    """Counts of pairs of one trace for every category that gold or prediction name."""
    tallies = {}
    for label in sorted(gold.categories | predicted.categories):
        g = gold.spans.get(label, _NOTHING) - {""}
        p = predicted.spans.get(label, _NOTHING)
        tallies[label] = Tally(matched(g, p, near), len(p), len(g))
    return tallies


def matched(gold: frozenset[str], predicted: frozenset[str], near: Nearness | None) -> int:
    """How many gold spans are hit.

    Exact: the size of the intersection. With `near`: the size of a maximum matching of gold and
    predicted spans that are close, so that one prediction hits one error at most and precision
    stays within 1 (Hopcroft and Karp, SIAM J. Comput. 2, 1973).
    """
    if near is None:
        return len(gold & predicted)
    rows = [sorted(near.near(span) & predicted) for span in sorted(gold)]
    return _matching(rows)


def _matching(rows: Sequence[Sequence[str]]) -> int:
    columns = {name: i for i, name in enumerate(dict.fromkeys(n for row in rows for n in row))}
    if not columns:
        return 0
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    row = np.array([r for r, names in enumerate(rows) for _ in names], dtype=np.intp)
    column = np.array([columns[n] for names in rows for n in names], dtype=np.intp)
    ones = np.ones(len(row), dtype=np.int8)
    edges = csr_matrix((ones, (row, column)), shape=(len(rows), len(columns)))
    return int((maximum_bipartite_matching(edges, perm_type="column") >= 0).sum())


def total(tallies: Iterable[Tally]) -> Tally:
    """Their sum."""
    return sum(tallies, Tally())
