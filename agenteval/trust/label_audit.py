"""Which success labels does the judge doubt? A list for a person to look at, not a correction.

A label that is wrong makes a good judge look bad. Where several criteria that do tell success from
failure all rate one run like the runs of the other label, the label deserves a second look.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.stats.discrimination import discrimination
from agenteval.stats.interval import Interval
from agenteval.stats.scores import ORIGINAL, ScoreTable

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

AUC = 0.6  # of a criterion that tells success from failure, without the audited case
MIN_GROUP = 5  # successes and failures that must remain without the audited case
OUTLYING = 0.95  # from here on a run is listed although no criterion is unanimous


@dataclass(frozen=True)
class Witness:
    """What one criterion says of a run; `auc` is that of the other cases.

    `low`, `mean`, `high` are over the `rated` of its `asked` repeats, in [0, 1]. `unanimous`: every
    repeat is against the label. `outlying` is the share of the other runs of the same label that
    the mean lies beyond, ties half: 1 for the worst of the successes or the best of the failures.
    """

    criterion_id: str
    auc: float
    low: float
    mean: float
    high: float
    rated: int
    asked: int
    unanimous: bool
    outlying: float


@dataclass(frozen=True)
class Suspect:
    """A run whose label the judge contradicts; `success` is the label.

    `against` are the criteria that are unanimous against it, `outlying` is the mean over all
    `witnesses`, the criteria that tell success from failure without this run's case.
    """

    run: str
    case: str
    system: str | None
    success: bool
    against: tuple[str, ...]
    outlying: float
    witnesses: tuple[Witness, ...]


@dataclass(frozen=True)
class WithAndWithout:
    """AUC of one criterion over all labelled runs, and without the suspects.

    The second must rise, since runs were left out because they lower it: it shows how much hangs
    on these labels, not how good the judge is.
    """

    criterion_id: str
    all_runs: Interval
    without: Interval


def audit(
    table: ScoreTable,
    *,
    auc: float = AUC,
    min_group: int = MIN_GROUP,
    outlying: float = OUTLYING,
) -> list[Suspect]:
    """Runs whose success label the judge contradicts, the most contradicted first.

    A run is audited on the criteria whose AUC, success against failure, is above `auc` when all
    runs of its case are left out, and `min_group` runs of either label remain. A criterion is
    unanimous against the label when every repeat rates the run on the other side: at least as good
    as the median run of the successes and better than that of the other failures for a run that
    is labelled failed, the mirror image for a success (run means, the audited case left out of
    both). For a judge that gives most successes the top level this is "all repeats at the top
    although failed", but it needs no judge that uses the ends of its scale. "Not applicable" among
    the repeats breaks unanimity, since it is an answer; so does a failure in half of them.

    Listed are runs with a criterion unanimous against their label, then those that lie beyond
    `outlying` of the runs of their own label on average; sorted by the number of unanimous
    criteria, `outlying`, and the run's name. Raises InputError when success is unknown everywhere
    or one of the labels does not occur.
    """
    table = table.of(variant=ORIGINAL)
    _check_labels(table)
    witnesses: dict[int, list[Witness]] = {}
    for name in table.present("criterion"):
        own = _Ratings(name, table.of(criterion=name))
        for run, witness in own.witnesses(auc, min_group):
            witnesses.setdefault(run, []).append(witness)
    first = {int(run): at for at, run in reversed(list(enumerate(table.run.codes)))}
    suspects = [_suspect(table, first[run], heard) for run, heard in witnesses.items()]
    listed = [s for s in suspects if s.against or s.outlying >= outlying]
    return sorted(listed, key=lambda s: (-len(s.against), -s.outlying, s.run))


def with_and_without(table: ScoreTable, suspects: Collection[str]) -> list[WithAndWithout]:
    """AUC per criterion with all labelled runs, and without the runs named."""
    table = table.of(variant=ORIGINAL)
    rows = []
    for name in table.present("criterion"):
        own = table.of(criterion=name)
        matrix = own.matrix()
        known = (matrix.success >= 0) & ~np.isnan(matrix.mean)
        named = np.array([own.run.names[i] in suspects for i in matrix.run], dtype=np.bool_)
        areas = []
        for kept in (known, known & ~named):
            good, bad = (matrix.mean[kept & (matrix.success == s)] for s in (1, 0))
            areas.append(discrimination(good, bad).auc)
        if known.any():
            rows.append(WithAndWithout(name, *areas))
    return rows


def _check_labels(table: ScoreTable) -> None:
    known = set(table.success.tolist()) - {-1}
    if not known:
        raise InputError("success is unknown for every run: there is no label to audit")
    if len(known) == 1:
        which = "successful" if known == {1} else "failed"
        raise InputError(f"every labelled run is {which}: nothing to compare with")


def _suspect(table: ScoreTable, row: int, witnesses: Sequence[Witness]) -> Suspect:
    system = int(table.system.codes[row])
    return Suspect(
        run=table.run.names[table.run.codes[row]],
        case=table.case.names[table.case.codes[row]],
        system=table.system.names[system] if system >= 0 else None,
        success=bool(table.success[row] == 1),
        against=tuple(w.criterion_id for w in witnesses if w.unanimous),
        outlying=sum(w.outlying for w in witnesses) / len(witnesses),
        witnesses=tuple(witnesses),
    )


class _Ratings:
    """Ratings of one criterion: the labelled runs that have a value."""

    def __init__(self, name: str, own: ScoreTable) -> None:
        self.name = name
        matrix = own.matrix()
        keep = (matrix.success >= 0) & ~np.isnan(matrix.mean)
        self.run, self.case = matrix.run[keep], matrix.case[keep]
        self.good = matrix.success[keep] == 1
        self.mean, values = matrix.mean[keep], matrix.values[keep]
        valued = ~np.isnan(values)
        self.low: Floats = np.where(valued, values, np.inf).min(axis=1, initial=np.inf)
        self.high: Floats = np.where(valued, values, -np.inf).max(axis=1, initial=-np.inf)
        self.rated = valued.sum(axis=1)
        length = len(own.run.names)
        self.asked = np.bincount(own.run.codes, minlength=length)[self.run]
        declined = own.status.codes == own.status.code("not_applicable")
        self.declined = np.bincount(own.run.codes[declined], minlength=length)[self.run]

    def witnesses(self, auc: float, min_group: int) -> list[tuple[int, Witness]]:
        """(run code, witness) for every run on which this criterion may be heard."""
        order = {side: self._ordered(side) for side in (True, False)}
        group = {side: self.mean[rows] for side, rows in order.items()}
        place = np.zeros(len(self.mean), dtype=np.intp)
        for rows in order.values():
            place[rows] = np.arange(len(rows))
        wins = self._wins(order)
        total = int(wins[self.good].sum())
        witnesses = []
        members = np.argsort(self.case, kind="stable")
        _, starts = np.unique(self.case[members], return_index=True)
        for rows in np.split(members, starts[1:]):
            gone = {side: np.sort(place[rows[self.good[rows] == side]]) for side in (True, False)}
            others = {side: _Others(group[side], gone[side]) for side in (True, False)}
            if min(group.size for group in others.values()) < min_group:
                continue
            # a pair within the case was taken off twice
            within = _doubled_wins(*(group[side][gone[side]] for side in (True, False)))
            left = total - int(wins[rows].sum()) + within
            area = left / (2 * others[True].size * others[False].size)
            if area > auc:
                witnesses += [
                    (int(self.run[row]), self._witness(row, area, others)) for row in rows
                ]
        return witnesses

    def _ordered(self, side: bool) -> Rows:
        """Rows of one label by ascending mean."""
        rows = np.flatnonzero(self.good == side)
        return rows[np.argsort(self.mean[rows], kind="stable")]

    def _wins(self, order: dict[bool, Rows]) -> NDArray[np.int64]:
        """Twice the pairs of each run with the other label that speak for the labels."""
        wins = np.zeros(len(self.mean), dtype=np.int64)
        for side in (True, False):
            own, other = self.mean[order[side]], self.mean[order[not side]]
            below = np.searchsorted(other, own, "left") + np.searchsorted(other, own, "right")
            wins[order[side]] = below if side else 2 * len(other) - below
        return wins

    def _witness(self, row: int, area: float, others: dict[bool, _Others]) -> Witness:
        success = bool(self.good[row])
        own, other = others[success], others[not success]
        mean, low, high = float(self.mean[row]), float(self.low[row]), float(self.high[row])
        share = own.doubled_below(mean) / (2 * own.size)
        if success:
            against = high <= other.median and high < own.median
        else:
            against = low >= other.median and low > own.median
        heard = not self.declined[row] and 2 * self.rated[row] > self.asked[row]
        return Witness(
            self.name, area, low, mean, high, int(self.rated[row]), int(self.asked[row]),
            bool(against and heard), 1 - share if success else share,
        )  # fmt: skip


class _Others:
    """The ascending means of one label without those at the ascending places `gone`."""

    def __init__(self, ascending: Floats, gone: Rows) -> None:
        self._values, self._gone = ascending, gone
        self.size = len(ascending) - len(gone)

    @cached_property
    def median(self) -> float:
        """Median of what is left (at least one value)."""
        return (self._at((self.size - 1) // 2) + self._at(self.size // 2)) / 2

    def _at(self, place: int) -> float:
        for gone in self._gone:
            if gone > place:
                break
            place += 1
        return float(self._values[place])

    def doubled_below(self, value: float) -> int:
        """Twice the number of values below, ties half."""
        below = np.searchsorted(self._values, value, "left")
        below += np.searchsorted(self._values, value, "right")
        removed = _doubled_wins(np.array([value]), self._values[self._gone])
        return int(below) - removed


def _doubled_wins(these: Floats, those: Floats) -> int:
    """Twice the pairs in which one of these is above one of those, ties half."""
    return int((np.sign(these[:, None] - those[None, :]) + 1).sum())
