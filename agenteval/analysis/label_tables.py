"""The tables of what labels are worth: corrected means, calibration, and whether a judge may stand
in for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.labelled_means import Calibration, LabelledMean
from agenteval.analysis.table_parts import (
    CRITERION,
    JUDGE,
    PAIR,
    criterion_cells,
    criterion_lines,
    pair_cells,
    table_of,
)
from agenteval.records.table import Cell, Column, Estimate, Table, cells_of
from agenteval.stats.alttest import AltTest
from agenteval.text import plural

ALL = "all criteria"

_ADVANTAGE = (
    "runs where the judge agrees with the other raters at least as well as the rater left out"
)
_CALIBRATION = (
    Column(
        "error",
        "calibration\nerror",
        "number",
        "expected: mean distance of the labels' mean from the judge's value",
    ),
    Column(
        "squared", "squared error", "number", "mean; the Brier score where labels are yes or no"
    ),
    Column("n", "runs", "count"),
)
_PROBABILITIES = (
    Column("brier", "Brier score", "number", "of the level probabilities, 0 to 2"),
    Column(
        "level_error",
        "error of the\nprobability",
        "number",
        "difference between the top level's probability and how often it is the label",
    ),
)


@dataclass(frozen=True)
class LabelledBy:
    """What one rater's labels say of one judge."""

    judge: str
    rater: str
    means: tuple[LabelledMean, ...]
    calibrations: tuple[Calibration, ...]

    def cells(self, criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
        """The cells that name a row: judge, rater and criterion."""
        return pair_cells(self.judge, self.rater, criterion, names)


@dataclass(frozen=True)
class Replacing:
    """The alternative annotator test of one judge: by criterion id, and over all of them."""

    judge: str
    raters: tuple[str, ...]
    tests: Mapping[str, AltTest]


def label_tables(
    labelled: Sequence[LabelledBy], replacing: Sequence[Replacing], names: Mapping[str, str]
) -> tuple[Table, ...]:
    """Corrected means, calibration, bias by system, and the tests, as far as there are some."""
    tables = [
        _means(labelled, names),
        *_calibration(labelled, names),
        _tests(replacing, names),
    ]
    return tuple(table for table in tables if table.rows or table.notes)


def _means(labelled: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    columns = (
        *PAIR,
        Column("judge_mean", "by the judge", "number", "mean over all runs it rated"),
        Column("people_mean", "by people", "number", "mean of the labels"),
        Column("corrected", "both: corrected", "number", "the judge's mean without its bias"),
        Column("labelled", "labels", "count", "runs with a label and a rating"),
        Column("n", "of runs", "count", "runs that the judge rated"),
        Column("worth", "worth\nlabels", "count", "number of labels alone with the same precision"),
        Column("power", "weight of\nthe judge", "number", hidden=True),
    )
    rows, remarks = [], defaultdict[str, list[str]](list)
    for pair, row in [(labels, mean) for labels in labelled for mean in labels.means]:
        name = names.get(row.criterion_id, row.criterion_id)
        mean = row.mean
        if mean is None:
            remarks[f"not corrected: {row.reason}"].append(name)
            continue
        cells = {
            **pair.cells(row.criterion_id, names),
            "judge_mean": Estimate.of(mean.judge),
            "people_mean": Estimate.of(mean.people),
            "corrected": Estimate.of(mean.corrected),
            "worth": None if mean.worth is None else round(mean.worth),
            "power": mean.power,
        }
        rows.append(cells_of(row, columns, **cells))
        if mean.corrected.reason:
            remarks[mean.corrected.reason].append(name)
        elif not mean.power and row.labelled < row.n:
            remarks["the judge's ratings are not informative about the labels"].append(name)
        if row.unlabelled:
            remarks[f"{plural(row.unlabelled, 'run')} of the sample without a label yet"].append(
                name
            )
        if row.unrated:
            without = f"{plural(row.unrated, 'run')} with a label but no rating by the judge"
            remarks[without].append(name)
    notes = criterion_lines(remarks, len(names), at_least=4)
    title = "Means: judge, labels, and both combined"
    return Table("means", title, columns, tuple(rows), notes, group="pair")


def _calibration(labelled: Sequence[LabelledBy], names: Mapping[str, str]) -> Iterator[Table]:
    """Calibration, its bins, and the bias by system."""
    calibrations = [
        (c, pair.cells(c.criterion_id, names)) for pair in labelled for c in pair.calibrations
    ]

    yield table_of(
        "calibration",
        "Calibration: does the judge's value match the labels?",
        (*PAIR, *_CALIBRATION, *(_PROBABILITIES if any(c.brier for c, _ in calibrations) else ())),
        calibrations,
        group="pair",
    )
    yield table_of(
        "reliability",
        "Reliability: labels by the judge's value",
        (
            *PAIR,
            Column("judge_value", "judge", "number", "mean value of the judge"),
            Column("label", "labels", "number", "mean of the labels of these runs"),
        ),
        [(b, {**cells, "judge_value": b.judge}) for c, cells in calibrations for b in c.bins],
        group="pair",
    )
    yield table_of(
        "bias",
        "Bias by system: does the judge favour a system?",
        (
            *PAIR,
            Column("system", "system"),
            Column(
                "bias", "judge − labels", "signed", "above 0, the judge is more lenient than people"
            ),
        ),
        [
            (None, {**cells, "system": system, "bias": Estimate.of(bias)})
            for c, cells in calibrations
            if len(c.systems) > 1
            for system, bias in c.systems
        ],
        group="pair",
    )


def _tests(replacing: Sequence[Replacing], names: Mapping[str, str]) -> Table:
    columns = (
        JUDGE,
        *CRITERION,
        Column("verdict", "may replace\na person"),
        Column("winning_rate", "raters\nbeaten", "share", "adjusted p up to .05; half must be"),
        Column("mean_advantage", "agrees at\nleast as well", "share", _ADVANTAGE),
        Column("raters", "runs shared, by rater"),
    )
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
            rows.append(cells_of(test, columns, **cells))
            if test.reason:
                remarks[test.reason].append(names.get(criterion, criterion))
    title = "Alternative annotator test: can the judge replace one of these raters?"
    judges = ", ".join(dict.fromkeys(of_judge.judge for of_judge in replacing))
    notes = criterion_lines(remarks, len({*names, ALL}), at_least=4)
    return Table("alternative", f"{title} ({judges})", columns, tuple(rows), notes)
