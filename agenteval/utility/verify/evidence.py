"""The ratings of one criterion, split into originals and copies for the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.stats.scores import ORIGINAL, Matrix, ScoreTable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CopyFacts:
    """Facts about perturbed copies that ratings do not show.

    `lengths` holds the characters of the text that a judge saw, by (run id, variant), as far as
    they are known; `unchanged` the ids of the runs whose copy equals the original, by variant.
    """

    lengths: Mapping[tuple[str, str], int] = field(default_factory=dict)
    unchanged: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pairs:
    """Originals paired with their copies by one perturbation, one entry per pair.

    `before` and `after` are means over repeats, NaN without a value; `run`, `case` and `system` are
    codes of the table's columns.
    """

    run: NDArray[np.int32]
    case: NDArray[np.int32]
    system: NDArray[np.int32]
    before: Floats
    after: Floats

    @property
    def both(self) -> NDArray[np.bool_]:
        """Pairs in which both sides have a value."""
        return ~np.isnan(self.before) & ~np.isnan(self.after)


@dataclass(frozen=True)
class Evidence:
    """All ratings of one criterion: originals and copies, including failures."""

    criterion: Criterion
    ratings: ScoreTable
    copies: CopyFacts

    @cached_property
    def table(self) -> ScoreTable:
        """The ratings of the originals."""
        return self.ratings.of(variant=ORIGINAL)

    @cached_property
    def originals(self) -> Matrix:
        """The values of the originals as runs × repeats."""
        return self.table.matrix()

    @cached_property
    def values(self) -> Floats:
        """The values of the originals, failures left out (n,)."""
        return self.table.value[~np.isnan(self.table.value)]

    @cached_property
    def rated(self) -> NDArray[np.bool_]:
        """Runs (rows of `originals`) with at least one value."""
        return ~np.isnan(self.originals.mean)

    @cached_property
    def cases(self) -> int:
        """Number of cases with a value: the independent units."""
        return len(np.unique(self.originals.case[self.rated]))

    @property
    def variants(self) -> list[str]:
        """Variants of the copies, including those whose copies all equal their original."""
        return sorted({*self.ratings.present("variant"), *self.copies.unchanged} - {ORIGINAL})

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """Originals and copies by variant, matched by run; unchanged copies are left out."""
        originals, pairs = self.originals, {}
        for variant in self.variants:
            copies = self.ratings.of(variant=variant).matrix()
            unchanged = set(self.copies.unchanged.get(variant, ()))
            codes = [i for i, name in enumerate(self.ratings.run.names) if name in unchanged]
            matched = np.isin(copies.run, originals.run) & ~np.isin(copies.run, codes)
            rows = np.searchsorted(originals.run, copies.run)[matched]
            pairs[variant] = Pairs(
                originals.run[rows],
                originals.case[rows],
                originals.system[rows],
                originals.mean[rows],
                copies.mean[matched],
            )
        return pairs

    @cached_property
    def repeated(self) -> Floats:
        """Values of the runs that have two or more (runs, repeats)."""
        values = self.originals.values
        return np.asarray(values[(~np.isnan(values)).sum(axis=1) > 1])

    @cached_property
    def differing(self) -> int:
        """Number of original runs whose repeats differ in value."""
        if not len(self.repeated):
            return 0
        return int((np.nanmax(self.repeated, 1) > np.nanmin(self.repeated, 1)).sum())

    def crowded(self, share: float) -> str | None:
        """Return "top" or "bottom" when more than `share` of the ratings are there, else None."""
        for name, level in (("top", 1.0), ("bottom", 0.0)):
            at_end = np.abs(self.values - level) < 1e-9
            if len(at_end) and float(at_end.mean()) > share:
                return name
        return None


def gather(
    table: ScoreTable, criteria: Sequence[Criterion], copies: CopyFacts | None = None
) -> list[Evidence]:
    """Return the evidence on every criterion with rated originals, in the order of `criteria`."""
    facts = copies or CopyFacts()
    evidence = [Evidence(c, table.of(criterion=c.id), facts) for c in criteria]
    return [item for item in evidence if len(item.table)]


def row_means(values: Floats) -> Floats:
    """Return the mean over the second axis, ignoring NaN; NaN if all are NaN."""
    present = ~np.isnan(values)
    count = present.sum(axis=1)
    mean: Floats = np.full(count.shape, np.nan)
    np.divide(np.where(present, values, 0.0).sum(axis=1), count, out=mean, where=count > 0)
    return mean


@dataclass(frozen=True)
class RunMeans:
    """Ratings of every run on all criteria: `means` (runs, criteria) over repeats, NaN for none.

    `run` and `system` are codes, `success` is 1, 0, or -1 where it is unknown.
    """

    run: NDArray[np.int32]
    system: NDArray[np.int32]
    success: NDArray[np.int8]
    means: Floats

    @classmethod
    def of(cls, evidence: Sequence[Evidence]) -> RunMeans:
        """Return the means of all runs of the evidence, in the order of their codes."""
        run = np.unique(np.concatenate([[], *(e.originals.run for e in evidence)])).astype(np.int32)
        system, success = np.full(len(run), -1, np.int32), np.full(len(run), -1, np.int8)
        means = np.full((len(run), len(evidence)), np.nan)
        for j, item in enumerate(evidence):
            rows = np.searchsorted(run, item.originals.run)
            means[rows, j] = item.originals.mean
            system[rows], success[rows] = item.originals.system, item.originals.success
        return cls(run, system, success, means)

    def overall(self, columns: Sequence[int] | None = None) -> Floats:
        """Return the mean of each run over its criteria (all, or these columns), NaN for none."""
        return row_means(self.means if columns is None else self.means[:, list(columns)])

    def sides(
        self, columns: Sequence[int] | None = None, *, system: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return the overall means of the successful and of the failed runs (of one system)."""
        overall = self.overall(columns)
        rated = ~np.isnan(overall)
        if system is not None:
            rated &= self.system == system
        return overall[rated & (self.success == 1)], overall[rated & (self.success == 0)]
