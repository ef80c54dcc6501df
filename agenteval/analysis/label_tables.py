"""Tables about labels: corrected means, calibration, and the test whether a judge can replace
people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.labelled_means import Calibration, LabelledMean
from agenteval.analysis.panel import ALL
from agenteval.analysis.table_parts import (
    JudgeCriterionColumns,
    PairColumns,
    criterion_cells,
    criterion_lines,
    pair_cells,
)
from agenteval.records.table import Table, column, table_of
from agenteval.stats import Interval
from agenteval.stats.alttest import AltTest
from agenteval.text import plural

_ADVANTAGE = (
    "runs where the judge agrees with the other raters at least as well as the rater left out"
)


@dataclass(frozen=True)
class _LabelledMeanColumns(PairColumns):
    judge_mean: Interval = column("by the judge", "number", "mean over all runs it rated")
    people_mean: Interval = column("by people", "number", "mean of the labels")
    corrected: Interval = column("both: corrected", "number", "the judge's mean without its bias")
    labelled: int = column("labels", "count", "runs with a label and a rating")
    n: int = column("of runs", "count", "runs that the judge rated")
    worth: int | None = column(
        "worth\nlabels", "count", "number of labels alone with the same precision"
    )
    power: float = column("weight of\nthe judge", "number", hidden=True)


@dataclass(frozen=True)
class _CalibrationColumns(PairColumns):
    error: Interval = column(
        "calibration\nerror",
        "number",
        "expected: mean distance of the labels' mean from the judge's value",
    )
    squared: Interval = column(
        "squared error", "number", "mean; the Brier score where labels are yes or no"
    )
    n: int = column("runs", "count")
    brier: Interval | None = column("Brier score", "number", "of the level probabilities, 0 to 2")
    level_error: Interval | None = column(
        "error of the\nprobability",
        "number",
        "difference between the top level's probability and how often it is the label",
    )


@dataclass(frozen=True)
class _BinColumns(PairColumns):
    judge_value: Interval = column("judge", "number", "mean value of the judge")
    label: Interval = column("labels", "number", "mean of the labels of these runs")


@dataclass(frozen=True)
class _BiasColumns(PairColumns):
    system: str = column("system")
    bias: Interval = column(
        "judge − labels", "signed", "above 0, the judge is more lenient than people"
    )


@dataclass(frozen=True)
class _ReplacingColumns(JudgeCriterionColumns):
    verdict: str = column("may replace\na person")
    winning_rate: Interval = column("raters\nbeaten", "share", "adjusted p up to .05; half must be")
    mean_advantage: Interval = column("agrees at\nleast as well", "share", _ADVANTAGE)
    raters: str = column("runs shared, by rater")


@dataclass(frozen=True)
class LabelledBy:
    """Results of one judge with the labels of one rater."""

    judge: str
    rater: str
    means: tuple[LabelledMean, ...]
    calibrations: tuple[Calibration, ...]


@dataclass(frozen=True)
class Replacing:
    """The alternative annotator test of one judge: by criterion id, and over all of them."""

    judge: str
    raters: tuple[str, ...]
    tests: Mapping[str, AltTest]


def label_tables(
    labelled: Sequence[LabelledBy], replacing: Sequence[Replacing], names: Mapping[str, str]
) -> tuple[Table, ...]:
    """Return the available tables: corrected means, calibration, bias by system, and tests."""
    tables = [_means(labelled, names), *_calibration(labelled, names), _tests(replacing, names)]
    return tuple(table for table in tables if table.rows or table.notes)


def _means(labelled: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    rows, remarks = [], defaultdict[str, list[str]](list)
    for pair, row in [(labels, mean) for labels in labelled for mean in labels.means]:
        mean, lines = row.mean, list[str]()
        if mean is None:
            lines.append(f"not corrected: {row.reason}")
        else:
            cells = {
                **pair_cells(pair.judge, pair.rater, row.criterion_id, names),
                "judge_mean": mean.judge,
                "people_mean": mean.people,
                "corrected": mean.corrected,
                "worth": None if mean.worth is None else round(mean.worth),
                "power": mean.power,
            }
            rows.append((row, cells))
            if mean.corrected.reason:
                lines.append(mean.corrected.reason)
            elif not mean.power and row.labelled < row.n:
                lines.append("the judge's ratings are not informative about the labels")
            if row.unlabelled:
                lines.append(f"{plural(row.unlabelled, 'run')} of the sample without a label yet")
            if row.unrated:
                unrated = plural(row.unrated, "run")
                lines.append(f"{unrated} with a label but no rating by the judge")
        for remark in lines:
            remarks[remark].append(names.get(row.criterion_id, row.criterion_id))
    notes = criterion_lines(remarks, len(names), at_least=4)
    title = "Means: judge, labels, and both combined"
    return table_of(_LabelledMeanColumns, "means", title, rows, notes=notes, group="pair")


def _calibration(labelled: Sequence[LabelledBy], names: Mapping[str, str]) -> Iterator[Table]:
    """Yield the tables of calibration, its bins, and the bias by system."""
    calibrations = [
        (c, pair_cells(pair.judge, pair.rater, c.criterion_id, names))
        for pair in labelled
        for c in pair.calibrations
    ]
    yield table_of(
        _CalibrationColumns,
        "calibration",
        "Calibration: does the judge's value match the labels?",
        calibrations,
        group="pair",
        detail=True,
        drop_empty=("brier", "level_error"),
    )
    yield table_of(
        _BinColumns,
        "reliability",
        "Reliability: labels by the judge's value",
        [(b, {**cells, "judge_value": b.judge}) for c, cells in calibrations for b in c.bins],
        group="pair",
        detail=True,
    )
    yield table_of(
        _BiasColumns,
        "bias",
        "Bias by system: does the judge favor a system?",
        [
            {**cells, "system": system, "bias": bias}
            for c, cells in calibrations
            if len(c.systems) > 1
            for system, bias in c.systems
        ],
        group="pair",
        detail=True,
    )


def _tests(replacing: Sequence[Replacing], names: Mapping[str, str]) -> Table:
    rows, remarks = [], defaultdict[str, list[str]](list)
    for of_judge in replacing:
        for criterion, test in of_judge.tests.items():
            shared = zip(of_judge.raters, test.items, strict=True)
            cells = {
                **criterion_cells(criterion, names),
                "judge": of_judge.judge,
                "verdict": {None: "cannot tell", True: "yes", False: "no"}[test.passes],
                "raters": ", ".join(f"{rater} {n}" for rater, n in shared),
            }
            rows.append((test, cells))
            if test.reason:
                remarks[test.reason].append(names.get(criterion, criterion))
    title = "Alternative annotator test: can the judge replace one of these raters?"
    judges = ", ".join(dict.fromkeys(of_judge.judge for of_judge in replacing))
    notes = criterion_lines(remarks, len({*names, ALL}), at_least=4)
    return table_of(_ReplacingColumns, "alternative", f"{title} ({judges})", rows, notes=notes)
