"""Sources of the spread of ratings, and the effect of more cases or more repeats."""

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
_LEAST_CASES = 10
WIDEST = 0.25  # maximum variance of values in [0, 1]: half are 0, half are 1


@dataclass(frozen=True)
class Spread:
    """Variance components of one criterion, with `cases` cases of a system judged `repeats` times.

    `reliability` is the intraclass correlation of single ratings, ICC(1,1): the share of the
    variance that is between runs rather than repeats. Half-widths are those of 95% intervals of one
    system's mean; `more_repeats` is None if there is only one repeat.
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

    def half_width(self, *, cases: int = 0, repeats: int = 0) -> float:
        """Return the half-width with this many additional cases and repeats."""
        within = self.components.repeat or 0.0
        return half_width(self.between, within, self.cases + cases, self.repeats + repeats)

    @property
    def more_repeats(self) -> float | None:
        """Half-width with two more repeats."""
        return None if self.components.repeat is None else self.half_width(repeats=MORE_REPEATS)


def half_width(between: float, within: float, cases: int, repeats: int) -> float:
    """Return the half-width of a normal 95% interval of the mean over cases: 1.96 sqrt((between +
    within / K) / n)."""
    return normal_quantile(0.975) * math.sqrt((between + within / repeats) / cases)


def spreads(table: ScoreTable, criteria: Sequence[Criterion]) -> list[Spread]:
    """Return the spread of each ordered criterion with values for at least two cases."""
    rated = table.of(variant=ORIGINAL)
    results = []
    for criterion in criteria:
        ratings = rated.of(criterion=criterion.id)
        ratings = ratings.where(~np.isnan(ratings.value))
        if not criterion.ordered or len(np.unique(ratings.case.codes)) < 2:
            continue
        several = len(np.unique(ratings.system.codes)) > 1
        components = variance_components(
            ratings.value,
            ratings.case.codes.tolist(),
            ratings.system.codes.tolist() if several else None,
        )
        if components.case is None:  # no shared cases: subtract the systems' means
            systems = ratings.system.codes
            mean = np.bincount(systems, ratings.value) / np.bincount(systems)
            centred = ratings.value - mean[systems]
            alone = variance_components(centred, ratings.case.codes.tolist())
            components = replace(alone, reason=components.reason)
        if components.case is None:
            continue
        matrix = ratings.matrix().values
        complete = matrix[~np.isnan(matrix).any(axis=1)]
        pairs = np.unique(np.column_stack([ratings.system.codes, ratings.case.codes]), axis=0)
        cases = round(len(pairs) / len(np.unique(pairs[:, 0])))
        results.append(Spread(criterion.id, components, icc(complete), cases, matrix.shape[1]))
    return results


def spread_line(found: Sequence[Spread]) -> str | None:
    """Return a sentence on the effect of more cases or repeats, as medians over the criteria.

    None below `_LEAST_CASES` cases, because a normal interval would be much too narrow.
    """
    usable = [spread for spread in found if spread.cases >= _LEAST_CASES]
    if not any(spread.half_width() > 1e-9 for spread in usable):
        return None
    now, cases = (
        np.median([spread.half_width(cases=more) for spread in usable]) for more in (0, MORE_CASES)
    )
    text = (
        f"the mean of a system is known to about ±{now:.3f}; {MORE_CASES} more cases: ±{cases:.3f}"
    )
    repeats = [spread.more_repeats for spread in usable if spread.more_repeats is not None]
    if repeats:
        return f"{text}; two more repeats: ±{np.median(repeats):.3f}"
    return f"{text}; use --repeats 2 to estimate the effect of repeats"


@dataclass(frozen=True)
class _SpreadColumns(CriterionColumns):
    case: float | None = column("cases", "number", "standard deviation between cases")
    system: float | None = column("systems", "number", "between systems")
    case_system: float | None = column(
        "system\non a case", "number", "interaction of system and case"
    )
    repeat: float | None = column("repeats", "number", "between repeats of the same")
    reliability: Interval = column("ICC", "number", "ICC(1,1) of single ratings")
    now: float = column("± now", "precise", "half-width of a system's 95% interval")
    more_cases: float = column(f"{MORE_CASES} more\ncases", "precise")
    more_repeats: float | None = column("2 more\nrepeats", "precise")


def spread_table(found: Sequence[Spread], names: Mapping[str, str]) -> Table:
    """Return a table of standard deviations by source, reliability, and half-widths."""
    rows: list[tuple[Spread, dict[str, Cell]]] = []
    notes = defaultdict[str, list[str]](list)
    for spread in found:
        deviations: dict[str, Cell] = {
            name: None if (v := getattr(spread.components, name)) is None else math.sqrt(v)
            for name in ("case", "system", "case_system", "repeat")
        }
        criterion = criterion_cells(spread.criterion_id, names)
        widths: dict[str, Cell] = {
            "now": spread.half_width(),
            "more_cases": spread.half_width(cases=MORE_CASES),
        }
        rows.append((spread, criterion | deviations | widths))
        if spread.components.reason:
            notes[spread.components.reason].append(str(criterion["criterion"]))
    lines = criterion_lines(notes, len(found))
    title = "Sources of the spread (standard deviations), and the effect of more cases or repeats"
    return table_of(_SpreadColumns, "spread", title, rows, notes=lines, detail=True)


@dataclass(frozen=True)
class _Design:
    cases: int = column("cases", "count")
    repeats: int = column("repeats", "count")
    calls: int = column("calls", "count", "one call judges a run on all criteria")
    cost: float | None = column("cost", "money")
    half: float = column("±", "precise", "half-width of the 95% interval of a system's mean")
    difference: float | None = column(
        "difference\nthat shows", "precise", "of two systems, power .8"
    )


def design_table(  # noqa: PLR0913  parameters of the design
    between: float,
    within: float,
    cases: Sequence[int],
    repeats: Sequence[int],
    *,
    apart: float | None = None,
    systems: int = 1,
    price: float | None = None,
) -> Table:
    """Return a table of cost and precision by number of cases and repeats: calls, cost, half-width
    of a mean, and the difference detected with 80% power if `apart` (the variance over cases of the
    difference of two systems) is given."""
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
    """Return the number of cases at which the 95% interval of a mean is `width` wide."""
    spread = between + within / repeats
    return max(2, math.ceil((2 * normal_quantile(0.975) / width) ** 2 * spread - 1e-9))
