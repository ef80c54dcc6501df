"""List success labels that the judge contradicts, for a person to review.

Wrong labels make a good judge look bad. If several criteria that separate success from failure rate
a run like the runs with the other label, the label should be checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.stats.discrimination import discrimination
from agenteval.stats.interval import Interval
from agenteval.stats.scores import ORIGINAL, ScoreTable

Floats = NDArray[np.float64]

AUC = 0.6  # minimum AUC (without the audited case) of a criterion used for the audit
MIN_GROUP = 5  # minimum successes and failures without the audited case
OUTLYING = 0.95  # a run is listed from this value on, even without a unanimous criterion


@dataclass(frozen=True)
class Witness:
    """The ratings of one run on one criterion; `auc` is computed from the other cases.

    `low`, `mean` and `high` are over the `rated` of the `asked` repeats, in [0, 1]. `unanimous`
    means that every repeat contradicts the label. `outlying` is the share of other runs with the
    same label that are less extreme, counting ties half: 1 for the worst success or the best
    failure.
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
    """A run with a contradicted label; `success` is the label.

    `against` are the criteria that unanimously contradict it. `outlying` is the mean over all
    `witnesses`, the criteria that separate success from failure on the other cases.
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

    The second is always higher, because the excluded runs lower the AUC. It shows how much depends
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
    """Return the runs with contradicted success labels, the most contradicted first.

    A run is audited on criteria whose AUC (success against failure, without the run's case) is
    above `auc`, if `min_group` runs of each label remain. A criterion unanimously contradicts a
    failure label if every repeat is at least as good as the median success and better than the
    median of the other failures; for a success label it is the reverse (medians of run means,
    without the audited case). For a judge that gives most successes the top level, this means "all
    repeats at the top although failed", but the judge need not use the ends of its scale. "Not
    applicable" in any repeat breaks unanimity, because it is an answer; so do failures in half of
    the repeats.

    The list has runs with a unanimous criterion, then runs whose mean `outlying` is at least
    `outlying`, sorted by the number of unanimous criteria, `outlying`, and name. Raises InputError
    if success is unknown for all runs or one of the labels does not occur.
    """
    table = table.of(variant=ORIGINAL)
    outcomes = set(table.success.tolist()) - {-1}
    if not outcomes:
        raise InputError("success is unknown for every run: there are no labels to audit")
    if len(outcomes) == 1:
        which = "successful" if outcomes == {1} else "failed"
        raise InputError(f"every labelled run is {which}: nothing to compare with")
    witnesses: dict[int, list[Witness]] = {}
    for name in table.present("criterion"):
        for run, witness in _witnesses(name, table.of(criterion=name), auc, min_group):
            witnesses.setdefault(run, []).append(witness)
    first = {int(run): at for at, run in reversed(list(enumerate(table.run.codes)))}
    suspects = []
    for run, of_run in witnesses.items():
        row = first[run]
        system = int(table.system.codes[row])
        suspect = Suspect(
            run=table.run.names[run],
            case=table.case.names[table.case.codes[row]],
            system=table.system.names[system] if system >= 0 else None,
            success=bool(table.success[row] == 1),
            against=tuple(w.criterion_id for w in of_run if w.unanimous),
            outlying=sum(w.outlying for w in of_run) / len(of_run),
            witnesses=tuple(of_run),
        )
        if suspect.against or suspect.outlying >= outlying:
            suspects.append(suspect)
    return sorted(suspects, key=lambda s: (-len(s.against), -s.outlying, s.run))


def with_and_without(table: ScoreTable, suspects: Collection[str]) -> list[WithAndWithout]:
    """Return the AUC per criterion with all labelled runs and without the suspects."""
    table = table.of(variant=ORIGINAL)
    rows = []
    for name in table.present("criterion"):
        ratings = table.of(criterion=name)
        matrix = ratings.matrix()
        usable = (matrix.success >= 0) & ~np.isnan(matrix.mean)
        unsuspected = np.array([ratings.run.names[i] not in suspects for i in matrix.run], bool)
        areas = []
        for included in (usable, usable & unsuspected):
            good, bad = (matrix.mean[included & (matrix.success == s)] for s in (1, 0))
            areas.append(discrimination(good, bad).auc)
        if usable.any():
            rows.append(WithAndWithout(name, *areas))
    return rows


def _witnesses(
    name: str, ratings: ScoreTable, auc: float, min_group: int
) -> Iterator[tuple[int, Witness]]:
    """Yield (run code, witness) for each run that can be audited on this criterion."""
    matrix = ratings.matrix()
    labelled = np.flatnonzero((matrix.success >= 0) & ~np.isnan(matrix.mean))
    order = labelled[np.argsort(matrix.mean[labelled], kind="stable")]
    run, case, mean, values = (
        part[order] for part in (matrix.run, matrix.case, matrix.mean, matrix.values)
    )
    good = matrix.success[order] == 1
    declined = ratings.status.codes == ratings.status.code("not_applicable")
    asked_for, not_applicable = (
        np.bincount(codes, minlength=len(ratings.run.names))[run]
        for codes in (ratings.run.codes, ratings.run.codes[declined])
    )
    rated = (~np.isnan(values)).sum(axis=1)
    for audited in np.unique(case):
        other_cases = case != audited
        group = {side: mean[other_cases & (good == side)] for side in (True, False)}  # ascending
        if min(map(len, group.values())) < min_group:
            continue
        area = _below(group[False], group[True]).sum() / (2 * len(group[True]) * len(group[False]))
        if area <= auc:
            continue
        median = {side: float(np.median(part)) for side, part in group.items()}
        for row in np.flatnonzero(~other_cases):
            success, repeats = bool(good[row]), values[row][~np.isnan(values[row])]
            sign = -1 if success else 1  # direction of the other label
            least = float((sign * repeats).min())
            against = least >= sign * median[not success] and least > sign * median[success]
            usable = not not_applicable[row] and 2 * rated[row] > asked_for[row]
            share = float(_below(group[success], mean[row])) / (2 * len(group[success]))
            witness = Witness(
                criterion_id=name,
                auc=float(area),
                low=float(repeats.min()),
                mean=float(mean[row]),
                high=float(repeats.max()),
                rated=int(rated[row]),
                asked=int(asked_for[row]),
                unanimous=bool(against and usable),
                outlying=1 - share if success else share,
            )
            yield int(run[row]), witness


def _below(ascending: Floats, values: Any) -> NDArray[np.intp]:
    """Return for each value twice the number of smaller values, counting ties half."""
    below = np.searchsorted(ascending, values, "left")
    return np.asarray(below + np.searchsorted(ascending, values, "right"))
