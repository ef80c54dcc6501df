"""Stopping rules that can be checked after every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.analysis.comparison import CompareOptions, ComparisonRow, compare
from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.records.table import Table, column, table_of
from agenteval.stats.interval import Interval
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.stats.sequential import confidence_sequence
from agenteval.text import plural

DECIDED = "decided"
_NO_RATINGS = "there are no ratings"


@dataclass(frozen=True)
class InterimAnalysis:
    """Result of a stopping rule after some cases: whether to stop, the reason, and the figures."""

    stop: bool
    reason: str
    table: Table


@dataclass(frozen=True)
class _MeanSoFar:
    criterion: str = column("criterion")
    system: str = column("system")
    mean: Interval = column("mean [95%]", "number", "valid at every look")
    cases: int = column("cases", "count")


@dataclass(frozen=True)
class _DifferenceSoFar:
    criterion: str = column("criterion")
    difference: Interval = column("B − A", "signed", "valid at every look up to the last case")
    n: int = column("cases", "count")
    verdict: str = column("verdict\non B")
    reason: str = column("why")


@dataclass(frozen=True)
class Until:
    """Stopping rule for judging cases in random order.

    With a `width`, stop when each always-valid 95% interval of a mean, by criterion and system, is
    at most this wide (as a share of the scale). With None, stop when it is settled for each
    criterion which of two systems is better, or that even all cases are unlikely to settle it;
    differences up to `margin` are ignored.
    """

    width: float | None
    margin: float = 0.05

    @classmethod
    def of(cls, text: str) -> Until:
        """Return the rule for "0.1" or "decided". Raises InputError."""
        if text == DECIDED:
            return cls(None)
        try:
            width = float(text)
        except ValueError:
            width = 0.0
        if not 0 < width < 1:
            raise InputError(
                f"{text!r} is neither a width between 0 and 1 nor {DECIDED!r}", "--until"
            )
        return cls(width)

    def check(self, systems: Sequence[str]) -> None:
        """Raise InputError if the rule cannot be applied to runs of these systems."""
        if self.width is None and len(systems) != 2:
            raise InputError(
                f"{DECIDED!r} needs two systems; these runs have {len(systems)}", "--until"
            )

    def look(
        self, table: ScoreTable, criteria: Sequence[Criterion], order: Sequence[str]
    ) -> InterimAnalysis:
        """Return the result after some of the cases; `order` lists all planned cases in the order
        in which they are judged."""
        rated = table.of(variant=ORIGINAL)
        ordered = [c for c in criteria if c.ordered and len(rated.of(criterion=c.id))]
        if self.width is None:
            return self._decided(rated, ordered, len(order))
        return self._narrow(rated, ordered, order, self.width)

    def _narrow(
        self, rated: ScoreTable, criteria: Sequence[Criterion], order: Sequence[str], width: float
    ) -> InterimAnalysis:
        place = {case: i for i, case in enumerate(order)}
        rows: list[_MeanSoFar] = []
        widest, where = 0.0, ""
        for criterion in criteria:
            for system in rated.present("system") or [""]:
                ratings = rated.of(criterion=criterion.id)
                values = _case_means(ratings.of(system=system) if system else ratings, place)
                if values:
                    interval = confidence_sequence(values)
                    rows.append(_MeanSoFar(criterion.name, system, interval, len(values)))
                    wide = (interval.high or 1.0) - (interval.low or 0.0)
                    if wide > widest:
                        widest, where = wide, f"{criterion.name}, {system}".rstrip(", ")
        reason = f"the widest always-valid interval is {widest:.3f} ({where}), target {width:g}"
        table = table_of(_MeanSoFar, "stopping", "Intervals that are valid at every look", rows)
        return InterimAnalysis(
            bool(rows) and widest <= width, reason if rows else _NO_RATINGS, table
        )

    def _decided(
        self, rated: ScoreTable, criteria: Sequence[Criterion], planned: int
    ) -> InterimAnalysis:
        names = {c.id: c.name for c in criteria}
        systems = sorted(rated.present("system"))
        rows: tuple[ComparisonRow, ...] = ()
        title = "Two systems"
        if len(systems) == 2:
            title = f"A = {systems[0]}, B = {systems[1]}"
        if len(systems) == 2 and names:
            a, b = (rated.of(system=name) for name in systems)
            options = CompareOptions(margin=self.margin, planned=planned)
            rows = compare(a, b, criteria=list(names), options=options).rows
        undecided = [r for r in rows if r.verdict == "cannot tell" and not r.hopeless]
        decided = [f"{names[r.criterion]} {r.verdict}" for r in rows if r.verdict != "cannot tell"]
        reason = "; ".join(decided) or "all cases are unlikely to settle it"
        if undecided:
            reason = f"open: {plural(len(undecided), 'criterion')}"
        cells = [(row, {"criterion": names[row.criterion]}) for row in rows]
        table = table_of(_DifferenceSoFar, "stopping", title, cells)
        return InterimAnalysis(bool(rows) and not undecided, reason if rows else _NO_RATINGS, table)


def _case_means(table: ScoreTable, place: dict[str, int]) -> list[float]:
    """Return the mean of each case with values, in the order of the cases."""
    rated = ~np.isnan(table.value)
    total = np.bincount(table.case.codes[rated], table.value[rated], len(table.case.names))
    count = np.bincount(table.case.codes[rated], minlength=len(table.case.names))
    case_means = [
        (place[name], total[i] / count[i])
        for i, name in enumerate(table.case.names)
        if count[i] and name in place
    ]
    return [float(value) for _, value in sorted(case_means)]
