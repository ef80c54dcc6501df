"""The report of pairwise judging and its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Self

from agenteval.analysis.gates import Gate, Outcome
from agenteval.errors import InputError
from agenteval.records.table import Estimate, Table, column, table_of
from agenteval.records.verification import JudgeVerdict
from agenteval.reporting.report import Report
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.bradley_terry import strength_intervals
from agenteval.stats.interval import Interval
from agenteval.utility.pairwise.outcomes import (
    PairOutcome,
    position_bias,
    win_rate,
    wins_by_case,
)

FLIPS = "flip: the two orders gave different answers; in the win rate it counts as half a win"


@dataclass(frozen=True)
class PreferenceRow:
    """System A against system B on one criterion; counts are of comparisons in both orders."""

    criterion: str = column("criterion")
    system: str = column("system")
    against: str = column("against")
    cases: int = column("cases", "count", "cases with a result")
    win_rate: Interval = column("win rate\n[95% CI]", "number", "ties and flips count as half")
    without_flips: Interval = column("without flips\n[95% CI]", "number", "ties count as half")
    wins: int = column("wins", "count", hidden=True)
    losses: int = column("losses", "count", hidden=True)
    ties: int = column("ties", "count", hidden=True)
    flips: int = column("flips", "count", hidden=True)
    missing: int = column("missing", "count", hidden=True)


@dataclass(frozen=True)
class _CountsRow:
    criterion: str = column("criterion")
    system: str = column("system")
    against: str = column("against")
    wins: int = column("wins", "count")
    losses: int = column("losses", "count")
    ties: int = column("ties", "count")
    flips: int = column("flips", "count", "the two orders gave different answers")
    missing: int = column("missing", "count", "a judgment has no result; never a loss")


@dataclass(frozen=True)
class PositionRow:
    """How often the first position was preferred, on one criterion."""

    criterion: str = column("criterion")
    first: int = column("first", "count", "judgments that preferred the first response")
    second: int = column("second", "count")
    tie: int = column("tie", "count")
    bias: Interval = column(
        "bias [95% CI]", "signed", "share of the first position minus 1/2, ties as halves"
    )


@dataclass(frozen=True)
class RankRow:
    """Strength of one system among several, on one criterion."""

    criterion: str = column("criterion")
    system: str = column("system")
    win_rate: Interval = column("win rate against\nthe others", "number", "95% over cases")
    strength: Interval = column(
        "strength\n[95% CI]", "signed", "Bradley-Terry, natural log odds, mean 0, ties as halves"
    )


@dataclass(frozen=True, kw_only=True)
class PreferenceReport(Report):
    """Which system is preferred, from comparisons in both orders.

    `outcomes` has every comparison. `judge` is the verdict on the judge, None unless it was
    verified.
    """

    outcomes: tuple[PairOutcome, ...]
    judge: JudgeVerdict | None = None

    @property
    def rows(self) -> list[PreferenceRow]:
        """Figures by criterion and pair of systems."""
        return preference_rows(self.outcomes)

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


def preference_rows(outcomes: Sequence[PairOutcome]) -> list[PreferenceRow]:
    """Return a row for each criterion and pair of systems."""
    rows = []
    for (criterion, a, b), group in _grouped(outcomes, lambda o: (o.criterion, o.a, o.b)):
        counts = Counter(o.outcome for o in group)
        rate, without = win_rate(group), win_rate(group, flips=False)
        rows.append(
            PreferenceRow(
                criterion=criterion,
                system=a,
                against=b,
                cases=rate.n,
                wins=counts["win"],
                losses=counts["loss"],
                ties=counts["tie"],
                flips=counts["flip"],
                missing=counts["missing"],
                win_rate=rate,
                without_flips=without,
            )
        )
    return rows


def preference_tables(outcomes: Sequence[PairOutcome], systems: Sequence[str]) -> list[Table]:
    """Return preferences, the ranking of more than two systems, and the bias of positions."""
    rows = preference_rows(outcomes)
    notes = [FLIPS] if any(row.flips for row in rows) else []
    if any(o.repeat for o in outcomes):
        notes.append("repeats of a case are counted one by one, and averaged for the win rate")
    tables = [
        table_of(PreferenceRow, "preferences", "", rows, group="criterion"),
        table_of(_CountsRow, "counts", "comparisons", rows, notes=notes, group="criterion"),
        *([_ranking(outcomes, systems)] if len(systems) > 2 else ()),
    ]
    positions = []
    for criterion, group in _grouped(outcomes, lambda o: o.criterion):
        firsts = [
            value
            for o in group
            if o.shown_first is not None and o.shown_second is not None
            for value in (o.shown_first, 1 - o.shown_second)
        ]
        signs = Counter((value > 0.5) - (value < 0.5) for value in firsts)
        if firsts:
            bias = position_bias(group)
            positions.append(PositionRow(criterion, signs[1], signs[-1], signs[0], bias))
    if positions:
        tables.append(table_of(PositionRow, "position", "preferred position", positions))
    return tables


def _ranking(outcomes: Sequence[PairOutcome], systems: Sequence[str]) -> Table:
    rows, reasons = [], list[str]()
    for criterion, group in _grouped(outcomes, lambda o: o.criterion):
        wins = wins_by_case(group, systems)
        strengths = strength_intervals(wins)
        games = (wins + wins.swapaxes(1, 2)).sum(axis=2)
        for i, name in enumerate(systems):
            played = games[:, i] > 0
            rates = wins[played, i].sum(axis=1) / games[played, i]
            rate = bounded_interval(rates, (0.0, 1.0))
            rows.append(RankRow(criterion, name, rate, strengths[i]))
        if strengths[0].reason:
            reasons.append(f"{criterion}: strengths have no interval: {strengths[0].reason}")
    rows.sort(key=lambda row: (row.criterion, -(row.strength.mean or 0.0)))
    return table_of(RankRow, "ranking", "ranking", rows, notes=reasons, group="criterion")


@dataclass(frozen=True)
class _CountRow:
    reason: str = column("without a pair")
    cases: int = column("cases", "count")


@dataclass(frozen=True)
class _FigureRow:
    figure: str = column("figure")
    value: Estimate = column("value [95% CI]", "number")
    n: int = column("n", "count")


def left_out_table(left_out: Mapping[str, int]) -> Table:
    """Return how many cases of two systems have no pair, by reason."""
    return table_of(
        _CountRow, "left_out", "not compared", [_CountRow(*x) for x in left_out.items()]
    )


def figure_table(key: str, title: str, figures: Mapping[str, Interval]) -> Table:
    """Return a row for each named figure."""
    rows = [_FigureRow(name, Estimate.of(x), x.n) for name, x in figures.items()]
    return table_of(_FigureRow, key, title, rows)
