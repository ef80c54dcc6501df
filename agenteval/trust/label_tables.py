"""The tables of what labels are worth: corrected means, calibration, and whether a judge may stand
in for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.records.table import Cell, Column, Estimate, Table, cells_of
from agenteval.stats.alttest import AltTest
from agenteval.text import plural
from agenteval.trust.labelled_means import Calibration, LabelledMean

_JUDGE, _RATER = Column("judge", "judge", hidden=True), Column("rater", "rater", hidden=True)
_ID = Column("criterion_id", "criterion id", hidden=True)
_PAIR = (Column("pair", "judge / rater"), _JUDGE, _RATER, _ID, Column("criterion", "criterion"))
ALL = "all criteria"


@dataclass(frozen=True)
class LabelledBy:
    """What one rater's labels say of one judge."""

    judge: str
    rater: str
    means: tuple[LabelledMean, ...]
    calibrations: tuple[Calibration, ...]

    def about(self, criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
        """The cells that say of whom and what a row is."""
        return {
            "pair": f"{self.judge} / {self.rater}", "judge": self.judge, "rater": self.rater,
            "criterion_id": criterion, "criterion": names.get(criterion, criterion),
        }  # fmt: skip


@dataclass(frozen=True)
class Replacing:
    """The alternative annotator test of one judge: by criterion id, and over all of them."""

    judge: str
    raters: tuple[str, ...]
    tests: Mapping[str, AltTest]


def label_tables(
    found: Sequence[LabelledBy], replacing: Sequence[Replacing], names: Mapping[str, str]
) -> tuple[Table, ...]:
    """Corrected means, calibration, bias by system, and the tests, as far as there are some."""
    tables = [_means(found, names), _calibration(found, names), _bins(found, names),
              _systems(found, names), _tests(replacing, names)]  # fmt: skip
    return tuple(table for table in tables if table.rows or table.notes)


def _means(found: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    columns = (
        *_PAIR,
        Column("judge_mean", "by the judge", "number", "mean of all runs that it rated"),
        Column("people_mean", "by people", "number", "mean of the labels alone"),
        Column("corrected", "both: corrected", "number", "the judge's mean without its bias"),
        Column("labelled", "labels", "count", "runs with a label and a rating"),
        Column("n", "of runs", "count", "runs that the judge rated"),
        Column("worth", "worth\nlabels", "count", "labels alone that would say as much"),
        Column("power", "weight of\nthe judge", "number", hidden=True),
    )
    rows, notes = [], dict[str, list[str]]()
    for own in found:
        for m in own.means:
            about = own.about(m.criterion_id, names)
            whose = str(about["criterion"])
            if m.mean is None:
                notes.setdefault(f"not corrected: {m.reason}", []).append(whose)
                continue
            rows.append(cells_of(
                m, columns, **about, judge_mean=Estimate.of(m.mean.judge),
                people_mean=Estimate.of(m.mean.people), corrected=Estimate.of(m.mean.corrected),
                worth=None if m.mean.worth is None else round(m.mean.worth), power=m.mean.power,
            ))  # fmt: skip
            if m.mean.corrected.reason:
                notes.setdefault(m.mean.corrected.reason, []).append(whose)
            elif not m.mean.power and m.labelled < m.n:
                notes.setdefault("the judge's ratings say nothing about the labels", []).append(
                    whose
                )
            for count, what in (
                (m.unlabelled, "of the sample without a label yet"),
                (m.unrated, "with a label but no rating by the judge"),
            ):
                if count:
                    notes.setdefault(f"{plural(count, 'run')} {what}", []).append(whose)
    return Table(
        "means", "Means: the judge's, people's, and both together", columns, tuple(rows),
        _by_criterion(notes, names), group="pair",
    )  # fmt: skip


def _calibration(found: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    columns: tuple[Column, ...] = (
        *_PAIR,
        Column("error", "calibration\nerror", "number",
               "expected: mean distance of the labels' mean from the judge's value"),
        Column("squared", "squared error", "number",
               "mean; the Brier score where labels are yes or no"),
        Column("n", "runs", "count"),
    )  # fmt: skip
    if any(c.brier for own in found for c in own.calibrations):
        columns += (
            Column("brier", "Brier score", "number", "of the levels' probabilities, 0 to 2"),
            Column("level_error", "error of the\nprobability", "number",
                   "how far that of the likeliest level is from how often it is the label"),
        )  # fmt: skip
    rows = [
        cells_of(c, columns, **own.about(c.criterion_id, names))
        for own in found for c in own.calibrations
    ]  # fmt: skip
    title = "Calibration: can the judge's value be read as what people say?"
    return Table("calibration", title, columns, tuple(rows), group="pair", detail=True)


def _bins(found: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    columns = (
        *_PAIR,
        Column("judge_value", "judge", "number", "mean value of the judge"),
        Column("label", "labels", "number", "mean of the labels of these runs"),
    )
    rows = [
        cells_of(one, columns, **own.about(c.criterion_id, names), judge_value=one.judge)
        for own in found for c in own.calibrations for one in c.bins
    ]  # fmt: skip
    title = "Reliability: labels by the judge's value"
    return Table("reliability", title, columns, tuple(rows), group="pair", detail=True)


def _systems(found: Sequence[LabelledBy], names: Mapping[str, str]) -> Table:
    columns = (
        *_PAIR,
        Column("system", "system"),
        Column("bias", "judge − labels", "signed", "above 0 the judge is kinder than people"),
    )
    rows: list[dict[str, Cell]] = [
        {**own.about(c.criterion_id, names), "system": system, "bias": Estimate.of(bias)}
        for own in found for c in own.calibrations if len(c.systems) > 1
        for system, bias in c.systems
    ]  # fmt: skip
    title = "Bias by system: does the judge favour one?"
    return Table("bias", title, columns, tuple(rows), group="pair", detail=True)


def _tests(replacing: Sequence[Replacing], names: Mapping[str, str]) -> Table:
    columns = (
        _JUDGE, _ID, Column("criterion", "criterion"),
        Column("verdict", "may replace\na person"),
        Column("winning_rate", "raters\nbeaten", "share", "adjusted p up to .05; half must be"),
        Column("mean_advantage", "agrees at\nleast as well", "share",
               "runs on which the judge agrees with the others as well as the one left out"),
        Column("raters", "runs shared, by rater"),
    )  # fmt: skip
    rows, notes = [], dict[str, list[str]]()
    for own in replacing:
        for criterion, test in own.tests.items():
            name = names.get(criterion, criterion)
            verdict = {None: "cannot tell", True: "yes", False: "no"}[test.passes]
            shared = ", ".join(
                f"{rater} {n}" for rater, n in zip(own.raters, test.items, strict=True)
            )
            rows.append(cells_of(
                test, columns, judge=own.judge, criterion_id=criterion, criterion=name,
                verdict=verdict, raters=shared,
            ))  # fmt: skip
            if test.reason:
                notes.setdefault(test.reason, []).append(name)
    title = "Alternative annotator test: may the judge stand in for one of these people?"
    judges = ", ".join(dict.fromkeys(own.judge for own in replacing))
    return Table(
        "alternative", f"{title} ({judges})", columns, tuple(rows),
        _by_criterion(notes, {**names, ALL: ALL}),
    )  # fmt: skip


def _by_criterion(notes: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each thing to be said, with the criteria that it is said of."""
    lines = []
    for line, those in notes.items():
        few = list(dict.fromkeys(those))
        every = len(few) > 3 and len(few) >= len(names)
        lines.append(f"{'all criteria' if every else ', '.join(few)}: {line}")
    return tuple(lines)
