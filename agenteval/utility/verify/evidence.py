"""What the checks look at: the ratings of one criterion, split into originals and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.records.verification import JudgeEvidence, Standing
from agenteval.stats import Interval
from agenteval.stats.scores import ORIGINAL, Matrix, ScoreTable

Floats = NDArray[np.float64]
Lengths = Mapping[tuple[str, str], int]
"""Characters of the text that a judge saw, by (run id, variant); what nobody knows is missing."""


@dataclass(frozen=True)
class Pairs:
    """Originals beside their copies by one perturbation, one entry per pair.

    `before` and `after` are means over repeats, NaN where there is no value; `run`, `case` and
    `system` are codes of the table's columns.
    """

    run: NDArray[np.int32]
    case: NDArray[np.int32]
    system: NDArray[np.int32]
    before: Floats
    after: Floats

    @property
    def both(self) -> NDArray[np.bool_]:
        """Pairs of which both have a value."""
        return ~np.isnan(self.before) & ~np.isnan(self.after)


@dataclass(frozen=True)
class Evidence:
    """Everything about one criterion: `ratings` of originals and copies, failures included.

    `unchanged` names, by variant, the runs whose copy equals the original.
    """

    criterion: Criterion
    ratings: ScoreTable
    lengths: Lengths
    unchanged: Mapping[str, Sequence[str]]

    @cached_property
    def table(self) -> ScoreTable:
        """The ratings of the originals."""
        return self.ratings.of(variant=ORIGINAL)

    @cached_property
    def originals(self) -> Matrix:
        """Their values as runs × repeats."""
        return self.table.matrix()

    @cached_property
    def known(self) -> Floats:
        """Their values, failures left out (n,)."""
        return self.table.value[~np.isnan(self.table.value)]

    @cached_property
    def rated(self) -> NDArray[np.bool_]:
        """Runs (rows of `originals`) with at least one value."""
        return ~np.isnan(self.originals.mean)

    @cached_property
    def cases(self) -> int:
        """Cases with a value: the independent units."""
        return len(np.unique(self.originals.case[self.rated]))

    @cached_property
    def asked(self) -> int:
        """Cases that were to be rated, with a value or without."""
        return len(np.unique(self.originals.case))

    @property
    def variants(self) -> list[str]:
        """Variants of the copies, those among them whose copies all equal their original."""
        return sorted({*self.ratings.present("variant"), *self.unchanged} - {ORIGINAL})

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """Originals and copies by variant, matched by run; copies that equal their original were
        not judged and are left out."""
        originals, names, pairs = self.originals, self.ratings.run.names, {}
        before = originals.mean
        for variant in self.variants:
            copies = self.ratings.of(variant=variant).matrix()
            same = set(self.unchanged.get(variant, ()))
            equal = [i for i, name in enumerate(names) if name in same] if same else []
            row = np.searchsorted(originals.run, copies.run)
            there = np.isin(copies.run, originals.run) & ~np.isin(copies.run, equal)
            at = row[there]
            pairs[variant] = Pairs(
                originals.run[at],
                originals.case[at],
                originals.system[at],
                before[at],
                copies.mean[there],
            )
        return pairs

    @cached_property
    def repeated(self) -> Floats:
        """Values of the runs that have two or more (runs, repeats)."""
        values = self.originals.values
        return np.asarray(values[(~np.isnan(values)).sum(axis=1) > 1])

    @cached_property
    def differing(self) -> int:
        """How many original runs have repeats of different value."""
        if not len(self.repeated):
            return 0
        return int((np.nanmax(self.repeated, 1) > np.nanmin(self.repeated, 1)).sum())

    def crowded(self, share: float) -> str | None:
        """ "top" or "bottom" when more than `share` of the ratings stand there, else None."""
        for name, level in (("top", 1.0), ("bottom", 0.0)):
            if len(self.known) and float((np.abs(self.known - level) < 1e-9).mean()) > share:
                return name
        return None


def claim(
    name: str,
    standing: Standing,
    reason: str,
    step: str = "",
    unit: str = "",
    figure: Interval | None = None,
) -> JudgeEvidence:
    """One kind of evidence on the judge, with its figure where one says it all."""
    if figure is None:
        return JudgeEvidence(name=name, standing=standing, reason=reason, next_step=step)
    return JudgeEvidence(
        name=name,
        standing=standing,
        reason=reason,
        next_step=step,
        unit=unit,
        estimate=figure.mean,
        low=figure.low,
        high=figure.high,
        n=figure.n if figure.n_clusters is None else figure.n_clusters,
    )


def gather(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    *,
    lengths: Lengths | None = None,
    unchanged: Mapping[str, Sequence[str]] | None = None,
) -> list[Evidence]:
    """The evidence on every criterion whose originals have ratings, in the order of `criteria`."""
    every = [
        Evidence(c, table.of(criterion=c.id), lengths or {}, unchanged or {}) for c in criteria
    ]
    return [evidence for evidence in every if len(evidence.table)]
