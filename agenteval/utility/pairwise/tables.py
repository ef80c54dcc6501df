"""The report of pairwise judging and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Self

from agenteval.analysis.gates import Gate, Outcome
from agenteval.errors import InputError
from agenteval.records.table import Estimate, Table, column, shown, table_of
from agenteval.records.verification import JudgeVerdict
from agenteval.reporting.report import Report
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.bradley_terry import strength_intervals
from agenteval.stats.interval import Interval
from agenteval.text import plural
from agenteval.utility.pairwise.pairs import PairOutcome, position_bias, win_rate, wins_by_case

_FLIPS = "a flip (the two orders gave different answers) counts as half a win"


@dataclass(frozen=True)
class PreferenceRow:
    """System A against system B on one criterion; counts are of comparisons in both orders."""

    criterion: str = column("criterion")
    system: str = column("system")
    against: str = column("against")
    cases: int = column("cases", "count", "cases with a result")
    wins: int = column("wins", "count")
    losses: int = column("losses", "count")
    ties: int = column("ties", "count")
    flips: int = column("flips", "count", "the two orders gave different answers")
    missing: int | None = column("missing", "count", "a judgment has no result; never a loss")
    win_rate: Interval = column("win rate\n[95% CI]", "number", "ties and flips count as half")
    without_flips: Interval = column("without flips", "number", hidden=True)

    @classmethod
    def of(cls, outcomes: Sequence[PairOutcome]) -> Self:
        """Return the row of some comparisons of the same systems."""
        n, rate = Counter(o.outcome for o in outcomes), win_rate(outcomes)
        return cls(
            outcomes[0].criterion,
            outcomes[0].a,
            outcomes[0].b,
            rate.n,
            *(n["win"], n["loss"], n["tie"], n["flip"]),
            missing=n["missing"] or None,
            win_rate=rate,
            without_flips=win_rate(outcomes, flips=False),
        )


@dataclass(frozen=True)
class _PositionRow:
    criterion: str = column("criterion")
    first: int = column("first", "count", "judgments that preferred the first response")
    second: int = column("second", "count")
    tie: int = column("tie", "count")
    bias: Interval = column(
        "bias [95% CI]", "signed", "share of the first position minus 1/2, ties as halves"
    )


@dataclass(frozen=True)
class _RankRow:
    criterion: str = column("criterion")
    system: str = column("system")
    win_rate: Interval = column("win rate against\nthe others", "number", "95% over cases")
    strength: Interval = column(
        "strength\n[95% CI]", "signed", "Bradley-Terry, natural log odds, mean 0, ties as halves"
    )


@dataclass(frozen=True, kw_only=True)
class PreferenceReport(Report):
    """Which system is preferred, from comparisons in both orders.

    `outcomes` has every comparison, `judge` the verdict on the judge if it was verified.
    """

    outcomes: tuple[PairOutcome, ...]
    judge: JudgeVerdict | None = None

    @property
    def rows(self) -> list[PreferenceRow]:
        """Figures by criterion and pair of systems."""
        groups = _grouped(self.outcomes, lambda o: (o.criterion, o.a, o.b))
        return [PreferenceRow.of(group) for _, group in groups]

    def judge_gate(self) -> Self:
        """Return the report with the exit code of the verdict on the judge: 5 where it is not
        trustworthy, 4 where data are missing, else 0. Raises InputError without a verdict."""
        if self.judge is None:
            raise InputError("the judge was not verified: add --verify", "--gate")
        code = self.judge.exit_code()
        outcome: Outcome = "met" if code == 0 else "undecided" if code == 4 else "missed"
        gate = Gate("judge", outcome, f"{self.judge.verdict}; {self.judge.reasons[0]}")
        return replace(self, gates=(*self.gates, gate), exit_code=self.exit_code or code)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each comparison."""
        return [{**asdict(o), "outcome": o.outcome, "score": o.score} for o in self.outcomes]


def _grouped(
    outcomes: Sequence[PairOutcome], key: Callable[[PairOutcome], Any]
) -> Iterator[tuple[Any, list[PairOutcome]]]:
    for value, group in groupby(sorted(outcomes, key=key), key):
        yield value, list(group)


def preference_report(
    outcomes: Sequence[PairOutcome],
    judge: str,
    systems: Sequence[str] = (),
    labels: Mapping[tuple[str, str], float] | None = None,
) -> PreferenceReport:
    """Return preferences, the ranking of more than two systems, the bias of the first position, and
    the agreement with `labels`, which are the right preferences by run and system."""
    systems = systems or list(dict.fromkeys(n for o in outcomes for n in (o.a, o.b)))
    report = PreferenceReport(
        title=" against ".join(systems) if len(systems) == 2 else "systems compared",
        tables=(),
        data={"systems": list(systems), "judge_model": judge},
        outcomes=tuple(outcomes),
    )
    notes = [_FLIPS] if any(row.flips for row in report.rows) else []
    notes += [
        f"without flips: {row.system} against {row.against} on {row.criterion}: "
        + shown(Estimate.of(row.without_flips), "number")
        for row in report.rows
        if row.flips
    ]
    if any(o.repeat for o in outcomes):
        notes.append("repeats are counted one by one, and averaged in the win rate of a case")
    tables = [
        table_of(
            PreferenceRow,
            "preferences",
            "",
            report.rows,
            notes=notes,
            group="criterion",
            drop_empty=["missing"],
        )
    ]
    tables += [_ranking(outcomes, systems)] if len(systems) > 2 else []
    positions = [
        _position(criterion, group)
        for criterion, group in _grouped(outcomes, lambda o: o.criterion)
        if any(len(o.preferences) == 2 for o in group)
    ]
    if positions:
        tables.append(table_of(_PositionRow, "position", "preferred position", positions))
    if labels:
        title = "agreement with the labels"
        rate, tied = _agreement(outcomes, labels)
        table = figure_table("labels", title, {"the labelled response wins": rate})
        note = f"left out: {plural(tied, 'comparison')} whose label is a tie"
        tables.append(replace(table, notes=(note,)) if tied else table)
    return replace(report, title=f"{report.title}, by {judge}", tables=tuple(tables))


def _position(criterion: str, outcomes: Sequence[PairOutcome]) -> _PositionRow:
    both = [o.preferences for o in outcomes if len(o.preferences) == 2]
    signs = Counter((value > 0.5) - (value < 0.5) for a, b in both for value in (a, 1 - b))
    return _PositionRow(criterion, signs[1], signs[-1], signs[0], position_bias(outcomes))


def _agreement(
    outcomes: Sequence[PairOutcome], labels: Mapping[tuple[str, str], float]
) -> tuple[Interval, int]:
    """Return the share of labels that the judge agrees with, and the number of tied labels, which
    are left out because neither response should win."""
    labelled = [
        (o, o.score, label)
        for o in outcomes
        if o.score is not None and (label := labels.get((o.run, o.a))) is not None
    ]
    right = [
        replace(o, shown_first=float((score - 0.5) * (label - 0.5) > 0), one_order=True)
        for o, score, label in labelled
        if label != 0.5
    ]
    return win_rate(right), len(labelled) - len(right)


def _ranking(outcomes: Sequence[PairOutcome], systems: Sequence[str]) -> Table:
    rows, reasons = [], list[str]()
    for criterion, group in _grouped(outcomes, lambda o: o.criterion):
        wins = wins_by_case(group, systems)
        games = (wins + wins.swapaxes(1, 2)).sum(axis=2)
        strengths = strength_intervals(wins)
        for i, name in enumerate(systems):
            played = games[:, i] > 0
            rates = wins[played, i].sum(axis=1) / games[played, i]
            rows.append(_RankRow(criterion, name, bounded_interval(rates, (0, 1)), strengths[i]))
        if why := strengths[0].reason:
            won, lost = wins.sum(axis=(0, 2)), wins.sum(axis=(0, 1))
            causes = [
                f"{name} {'won' if won[i] else 'lost'} every comparison"
                for i, name in enumerate(systems)
                if bool(won[i]) != bool(lost[i])
            ]
            what = "no intervals of strengths" if strengths[0].mean is not None else "no strengths"
            reasons.append(f"{criterion}: {what}: {', '.join(causes) or why}")

    def rank(row: _RankRow) -> tuple[str, float]:
        figure = row.win_rate if row.strength.mean is None else row.strength
        return row.criterion, -(figure.mean or 0.0)

    rows.sort(key=rank)
    return table_of(_RankRow, "ranking", "ranking", rows, notes=reasons, group="criterion")


@dataclass(frozen=True)
class _PairwiseFigureRow:
    figure: str = column("figure")
    value: Estimate = column("value [95% CI]", "number")
    n: int = column("n", "count")


def figure_table(key: str, title: str, figures: Mapping[str, Interval]) -> Table:
    """Return a row for each named figure."""
    rows = [_PairwiseFigureRow(name, Estimate.of(x), x.n) for name, x in figures.items()]
    return table_of(_PairwiseFigureRow, key, title, rows)
