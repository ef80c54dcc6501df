"""Where the spread of ratings comes from, and what more cases or more repeats would buy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agenteval.analysis.table_parts import CriterionColumns, criterion_cells, criterion_lines
from agenteval.records import Criterion
from agenteval.records.table import Cell, Table, column, table_of
from agenteval.stats.interval import Interval
from agenteval.stats.reliability import icc
from agenteval.stats.sample_size import smallest_difference
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.stats.variance import VarianceComponents, variance_components
from agenteval.stats.vectors import normal_quantile

MORE_CASES, MORE_REPEATS = 20, 2
WIDEST = 0.25  # variance of values in [0, 1] of which half are 0 and half are 1


@dataclass(frozen=True)
class Spread:
    """Variance components of one criterion, with `cases` cases of a system judged `repeats` times.

    `reliability` is the intraclass correlation of single ratings, ICC(1,1): which share of the
    variance is between runs and not between repeats. The half-widths belong to 95% intervals of
    the mean of one system: `now`, with 20 more cases, and with two more repeats (None where one
    repeat says nothing about them).
    """

    criterion_id: str
    components: VarianceComponents
    reliability: Interval
    cases: int
    repeats: int

    @property
    def between(self) -> float:
        """Variance between cases of one system."""
        return (self.components.case or 0.0) + (self.components.case_system or 0.0)

    @property
    def now(self) -> float:
        """Half-width as it is."""
        return half_width(self.between, self.components.repeat or 0.0, self.cases, self.repeats)

    @property
    def more_cases(self) -> float:
        """Half-width with 20 more cases."""
        return half_width(
            self.between, self.components.repeat or 0.0, self.cases + MORE_CASES, self.repeats
        )

    @property
    def more_repeats(self) -> float | None:
        """Half-width with two more repeats."""
        within = self.components.repeat
        if within is None:
            return None
        return half_width(self.between, within, self.cases, self.repeats + MORE_REPEATS)


def half_width(between: float, within: float, cases: int, repeats: int) -> float:
    """Of a normal 95% interval of the mean over cases: 1.96 sqrt((between + within / K) / n)."""
    return normal_quantile(0.975) * math.sqrt((between + within / repeats) / cases)


def spreads(table: ScoreTable, criteria: Sequence[Criterion]) -> list[Spread]:
    """The components of every criterion with means that at least two cases have a value on."""
    rated = table.of(variant=ORIGINAL)
    found = []
    for criterion in criteria:
        own = rated.of(criterion=criterion.id)
        own = own.where(~np.isnan(own.value))
        if not criterion.ordered or len(np.unique(own.case.codes)) < 2:
            continue
        several = len(np.unique(own.system.codes)) > 1
        components = variance_components(
            own.value, own.case.codes.tolist(), own.system.codes.tolist() if several else None
        )
        if components.case is None:  # no case is shared: the systems' means are taken off
            mean = np.bincount(own.system.codes, own.value) / np.bincount(own.system.codes)
            rest = own.value - mean[own.system.codes]
            alone = variance_components(rest, own.case.codes.tolist())
            components = replace(alone, reason=components.reason)
        if components.case is None:
            continue
        matrix = own.matrix().values
        whole = matrix[~np.isnan(matrix).any(axis=1)]
        pairs = np.unique(np.column_stack([own.system.codes, own.case.codes]), axis=0)
        cases = round(len(pairs) / len(np.unique(pairs[:, 0])))
        found.append(Spread(criterion.id, components, icc(whole), cases, matrix.shape[1]))
    return found


def spread_line(found: Sequence[Spread]) -> str | None:
    """What more cases or repeats would buy, in a sentence; medians over the criteria."""
    if not any(one.now > 1e-9 for one in found):
        return None
    now, cases = (
        float(np.median([getattr(one, name) for one in found])) for name in ("now", "more_cases")
    )
    text = f"a system's mean is known to about ±{now:.3f}; {MORE_CASES} more cases: ±{cases:.3f}"
    known = [one.more_repeats for one in found if one.more_repeats is not None]
    if known:
        return f"{text}; two more repeats: ±{float(np.median(known)):.3f}"
    return f"{text}; what repeats would buy is not known from one"


@dataclass(frozen=True)
class _SpreadColumns(CriterionColumns):
    case: float | None = column("cases", "number", "standard deviation between cases")
    system: float | None = column("systems", "number", "between systems")
    case_system: float | None = column("system\non a case", "number", "what is special to both")
    repeat: float | None = column("repeats", "number", "between repeats of the same")
    reliability: Interval = column("ICC", "number", "ICC(1,1) of single ratings")
    now: float = column("± now", "precise", "half of a system's 95% interval")
    more_cases: float = column(f"{MORE_CASES} more\ncases", "precise")
    more_repeats: float | None = column("2 more\nrepeats", "precise")


def spread_table(found: Sequence[Spread], names: Mapping[str, str]) -> Table:
    """Standard deviations by source, reliability, and the half-widths."""
    rows: list[tuple[Spread, dict[str, Cell]]] = []
    notes = defaultdict[str, list[str]](list)
    for spread in found:
        deviations: dict[str, Cell] = {
            name: None if (v := getattr(spread.components, name)) is None else math.sqrt(v)
            for name in ("case", "system", "case_system", "repeat")
        }
        criterion = criterion_cells(spread.criterion_id, names)
        rows.append((spread, criterion | deviations))
        if spread.components.reason:
            notes[spread.components.reason].append(str(criterion["criterion"]))
    lines = criterion_lines(notes, len(found))
    title = "Where the spread comes from (standard deviations), and what more would buy"
    return table_of(_SpreadColumns, "spread", title, rows, notes=lines, detail=True)


@dataclass(frozen=True)
class _Design:
    cases: int = column("cases", "count")
    repeats: int = column("repeats", "count")
    calls: int = column("calls", "count", "a call judges all criteria of a run")
    cost: float | None = column("cost", "money")
    half: float = column("±", "precise", "half of the 95% interval of a system's mean")
    difference: float | None = column(
        "difference\nthat shows", "precise", "of two systems, power .8"
    )


def design_table(  # noqa: PLR0913  each is a number of the design
    between: float,
    within: float,
    cases: Sequence[int],
    repeats: Sequence[int],
    *,
    apart: float | None = None,
    systems: int = 1,
    price: float | None = None,
) -> Table:
    """What numbers of cases and repeats cost and give: calls, money, half-width of a mean and,
    where `apart`, the variance of the difference of two systems over cases, is known, the
    difference that shows with 80% power."""
    rows = [
        _Design(
            cases=n,
            repeats=k,
            calls=n * k * systems,
            cost=None if price is None else n * k * systems * price,
            half=half_width(between, within, n, k),
            difference=None if apart is None else smallest_difference(apart, within, k, n),
        )
        for n in cases
        for k in repeats
    ]
    title, optional = "Cases × repeats → width", ("cost", "difference")
    return table_of(_Design, "design", title, rows, drop_empty=optional)


def cases_for_width(width: float, between: float, within: float, repeats: int) -> int:
    """Cases from which on the 95% interval of a mean is at most `width` wide."""
    spread = between + within / repeats
    return max(2, math.ceil((2 * normal_quantile(0.975) / width) ** 2 * spread - 1e-9))
