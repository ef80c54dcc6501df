"""Two systems, two judges or two experiments on the cases that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from agenteval.analysis.compared_ratings import (
    ComparedRatings,
    RatingQuery,
    compared_stores,
    compared_tables,
)
from agenteval.analysis.comparison import CompareOptions, Comparison, ComparisonRow
from agenteval.analysis.comparison import compare as compare_tables
from agenteval.analysis.gates import FailIf, regression_gates, under_gate
from agenteval.analysis.means import cases_answered_twice, lines_on_failed_runs
from agenteval.app.agreement import known_criteria
from agenteval.cli.running import opened
from agenteval.errors import InputError
from agenteval.files import same_file
from agenteval.records.table import Column, Estimate, Table, cells_of, shown
from agenteval.reporting.junit import junit_xml
from agenteval.reporting.report import Report
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store, default_path
from agenteval.utility.judging import Criteria

_JUDGES = {"better": "higher", "worse": "lower"}  # a judge that rates higher is not better for it
_FEW = 3  # cases behind a difference that the first table names
_UNEVEN = 0.05  # difference of the shares not rated that is worth a warning


@dataclass(frozen=True, kw_only=True)
class ComparisonReport(Report):
    """Of every criterion, and of success, whether B is better than A, as far as that can be known.

    `comparison` holds the figures, `names` what A and B are.
    """

    comparison: Comparison
    names: tuple[str, str]
    undecided_passes: bool = False

    @property
    def rows(self) -> Mapping[str, ComparisonRow]:
        """The figures by criterion; `success` is the success rate."""
        return {row.criterion: row for row in self.comparison.rows}

    def verdict(self, criterion: str) -> str:
        """better, worse, no difference, identical or cannot tell; of two judges higher or lower.
        Raises KeyError."""
        return _verdict(self.comparison, self.rows[criterion])

    def junit(self) -> str:
        """The gates as JUnit XML, with the figures of every row."""
        about = {
            "A": self.names[0],
            "B": self.names[1],
            "about": "; ".join(self.data["about"]),
            "common cases": len(self.comparison.common),
            "cases only in A": len(self.comparison.only_first),
            "cases only in B": len(self.comparison.only_second),
            "margin": f"{self.comparison.options.margin:g}",
            "tests": self.comparison.about_tests,
        }
        figures = {row.criterion: self._figures(row) for row in self.comparison.rows}
        return junit_xml(
            self.gates,
            f"agenteval compare: B = {self.names[1]}, A = {self.names[0]}",
            about | {f"{name}.{k}": v for name, own in figures.items() for k, v in own.items()},
            {name: "; ".join(f"{k} {v}" for k, v in own.items()) for name, own in figures.items()},
            undecided_passes=self.undecided_passes,
        )

    def _figures(self, row: ComparisonRow) -> dict[str, str]:
        numbers = {
            "A": row.first.mean,
            "B": row.second.mean,
            "difference": row.difference.mean,
            "low": row.difference.low,
            "high": row.difference.high,
            "wins": row.wins,
            "ties": row.ties,
            "losses": row.losses,
            "p": row.p,
            "p_holm": row.p_holm,
            "detectable": row.detectable,
        }
        known = {name: f"{value:.6g}" for name, value in numbers.items() if value is not None}
        return {"pairs": str(row.n), **known, "verdict": _verdict(self.comparison, row)}


def compare(
    a: str | None = None,
    b: str | None = None,
    *,
    store: str | Path | Store | None = None,
    scores: str | Path | ScoreTable | None = None,
    other: str | Path | Store | ScoreTable | None = None,
    judges: str | Sequence[str] = (),
    task: str | None = None,
    criteria: Criteria | None = None,
    only: Sequence[str] | None = None,
    margin: float = 0.05,
    min_cases: int = 20,
    planned: int | None = None,
    fail_under: Mapping[str, float] | Iterable[tuple[str, float]] = (),
    fail_if: FailIf | None = None,
    undecided_passes: bool = False,
    seed: int = 0,
) -> ComparisonReport:
    """B against A, paired by case: difference with interval, verdict and gates of every criterion.

    `a` and `b` are systems rated by one judge (default: the latest of the store). Without them two
    `judges` of the same runs are compared, or two experiments: `store` and `other`, or the files or
    tables of ratings `scores` and `other`; one system alone is compared in both. `judges` are
    models or starts of hashes, of files raters. `criteria` are needed for ratings that are labels
    without values; `only` restricts the rows by id.

    Differences are B minus A in shares of the scale (0 worst, 1 best). Up to `margin` one does not
    matter; below `min_cases` common cases nothing is decided. Who looks while cases still come in,
    in random order, says how many are `planned`: then verdicts and intervals hold at all looks
    together. `fail_under` sets a gate that B's mean on a criterion is not below a value, `fail_if`
    ("surely-worse", "not-surely-as-good") one on every row. Gates set `exit_code`: 1 missed, 4
    undecided unless `undecided_passes`.

    Raises InputError for what cannot be compared, StoreError for a store that cannot be read.
    """
    judges = (judges,) if isinstance(judges, str) else tuple(judges)
    systems = tuple(name for name in (a, b) if name is not None)
    _check(systems, judges, store if scores is None else scores, other)
    pair = _paired(systems, judges, store, scores, other, task, criteria)
    comparison = compare_tables(
        pair.first,
        pair.second,
        pair_by=pair.pair_by,
        criteria=only,
        options=CompareOptions(margin=margin, min_cases=min_cases, seed=seed, planned=planned),
    )
    limits = fail_under.items() if isinstance(fail_under, Mapping) else fail_under
    gates = [under_gate(comparison, name, value) for name, value in limits]
    if fail_if is not None:
        gates += regression_gates(comparison, fail_if)
        if not gates:
            why = "; ".join(f"{row.criterion}: {row.reason}" for row in comparison.rows)
            raise InputError(f"no row has a mean, so no gate could fail ({why})", "--fail-if")
    warnings = _warnings(pair, comparison)
    report = ComparisonReport(
        title=f"A = {pair.names[0]}, B = {pair.names[1]}",
        tables=_tables(pair, comparison),
        notes=warnings,
        unfinished=pair.unfinished,
        data={
            "a": pair.names[0],
            "b": pair.names[1],
            "about": list(pair.about),
            "warnings": list(warnings),
            "pair_by": comparison.pair_by,
            "options": asdict(comparison.options),
            "common": list(comparison.common),
            "only_first": list(comparison.only_first),
            "only_second": list(comparison.only_second),
            "unmatched": comparison.unmatched,
            "family": list(comparison.family),
            "no_answer": {
                "a": pair.first.runs_by_status("no_answer:"),
                "b": pair.second.runs_by_status("no_answer:"),
            },
            "on_undecided": "pass" if undecided_passes else "fail",
        },
        comparison=comparison,
        names=pair.names,
        undecided_passes=undecided_passes,
    )
    return report.gated(*gates, undecided_passes=undecided_passes)


def _check(systems: tuple[str, ...], judges: tuple[str, ...], here: object, other: object) -> None:
    if len(judges) > 2:
        raise InputError("at most two judges can be compared", "--source")
    if len(set(systems)) == 2 and len(judges) == 2:
        raise InputError("two systems and two judges at once: a difference could come from either")
    if len(systems) == 2 and systems[0] == systems[1] and other is None:
        raise InputError(f"{systems[0]!r} is compared with itself", "compare")
    if len(systems) < 2 and other is None and len(judges) < 2:
        raise InputError(
            "say what to compare: two systems, two judges (--source twice), or a second store or "
            "score file (--with)",
            "compare",
        )
    if isinstance(here, str | Path) and isinstance(other, str | Path):
        _not_the_same(here, other)


def _not_the_same(here: str | Path, other: str | Path) -> None:
    if same_file(Path(here), Path(other)):
        raise InputError(f"{other} is compared with itself", "--with")


def _paired(
    systems: tuple[str, ...],
    judges: tuple[str, ...],
    store: str | Path | Store | None,
    scores: str | Path | ScoreTable | None,
    other: str | Path | Store | ScoreTable | None,
    task: str | None,
    criteria: Criteria | None,
) -> ComparedRatings:
    if scores is not None:
        if store is not None:
            raise InputError("give --store or --scores, not both", "--scores")
        if isinstance(other, Store):
            raise InputError("ratings are compared with ratings, a store with a store", "other")
        known, _ = known_criteria(criteria, task)
        ratings = [Path(p) if isinstance(p, str) else p for p in (scores, other or scores)]
        names = ["the ratings" if isinstance(p, ScoreTable) else str(p) for p in ratings]
        query = RatingQuery(systems, judges, task, other is not None, (names[0], names[1]))
        return compared_tables(query, ratings, known)
    if isinstance(other, ScoreTable):
        raise InputError("ratings are compared with ratings, a store with a store", "other")
    with ExitStack() as stack:
        stores = [
            stack.enter_context(opened(place, create=False))
            for place in ([store] if other is None else [store, other])
        ]
        if len(stores) == 2 and isinstance(other, str | Path):
            _not_the_same(stores[0].shown, other)
        for each in stores:
            stack.enter_context(each.snapshot())
        first, second = stores[0], stores[-1]
        places = (_place(store), _place(store if other is None else other))
        query = RatingQuery(systems, judges, task, other is not None, places)
        return compared_stores(query, (first, second))


def _place(store: str | Path | Store | None) -> str:
    return store.shown if isinstance(store, Store) else str(store or default_path())


# ---- what is shown -------------------------------------------------------------------------------


def _verdict(comparison: Comparison, row: ComparisonRow) -> str:
    word: str = row.verdict
    return _JUDGES.get(word, word) if comparison.pair_by == "run" else word


def _warnings(pair: ComparedRatings, comparison: Comparison) -> tuple[str, ...]:
    """What a reader must know before the figures."""
    lines = [f"not compared: {name}: {why}" for name, why in pair.left_out.items()]
    sides_of = {"A": pair.first.of(variant=ORIGINAL), "B": pair.second.of(variant=ORIGINAL)}
    for side, cases in (("A", comparison.only_first), ("B", comparison.only_second)):
        if cases:
            # cases of a store are named by a hash
            some = ", ".join(case if len(case) <= 24 else case[:12] for case in cases[:3])
            more = ", ..." if len(cases) > 3 else ""
            lines.append(f"left out: {len(cases)} cases only in {side} ({some}{more})")
        lines += [f"{side}: {line}" for line in lines_on_failed_runs(sides_of[side])]
        failed = sides_of[side].runs_by_status("no_answer:")
        if names := sorted({name for runs in failed.values() for name in runs}):
            more = f" and {len(names) - 20} more" if names[20:] else ""
            lines.append(f"{side}: missing because the run failed: {', '.join(names[:20])}{more}")
    if comparison.unmatched:
        lines.append(
            f"left out: {comparison.unmatched} {comparison.pair_by}s of common cases that only one "
            "side has"
        )
    if comparison.pair_by != "run":
        entries = pair.first.entries() | pair.second.entries()
        answers = sorted((entry.system or "", entry.case, entry.run) for entry in entries)
        lines += cases_answered_twice(answers)
    least = comparison.options.min_cases
    if len(comparison.common) < least:
        lines.append(f"{len(comparison.common)} common cases: below {least} nothing is decided")
    for row in comparison.rows:
        missing = [1 - c.rated / c.ratings if c.ratings else 1.0 for c in row.counts]
        if row.lost and abs(missing[0] - missing[1]) > _UNEVEN:
            lines.append(
                f"{row.criterion}: {missing[0]:.0%} of A and {missing[1]:.0%} of B are not rated; "
                "what is missing may differ from the rest"
            )
    return tuple(lines)


def _tables(pair: ComparedRatings, comparison: Comparison) -> tuple[Table, ...]:
    within = {
        "case": "runs and repeats averaged",
        "system": "per system, repeats averaged; then the mean over systems",
        "run": "the same runs, repeats averaged",
    }[comparison.pair_by]
    columns = (
        Column("criterion", "criterion"),
        Column("a", "A", "number", "mean of A, 0 worst, 1 best"),
        Column("b", "B", "number", "mean of B"),
        Column("difference", "B − A [95%]", "signed", "share of the scale, paired by case"),
        Column("n", "pairs", "count", "cases with a value on both sides"),
        Column("verdict", "verdict\non B"),
    )
    rows = [
        cells_of(
            row, columns, a=row.first.mean, b=row.second.mean, verdict=_verdict(comparison, row)
        )
        for row in comparison.rows
    ]
    verdicts: dict[tuple[str, str], list[str]] = {}
    for row in comparison.rows:
        verdicts.setdefault((_verdict(comparison, row), row.reason), []).append(row.criterion)
    notes = [f"{', '.join(of)}: {verdict}, {why}" for (verdict, why), of in verdicts.items()]
    runs = _runs_of_cases(pair.second)
    notes += [_largest(row, runs) for row in comparison.rows if row.differs]
    title = f"{len(comparison.common)} common cases, one pair each ({within})"
    notes += [comparison.about_tests, *_missing(comparison), *pair.about]
    return (
        Table("rows", title, columns, tuple(rows), tuple(notes)),
        _cases(comparison, runs),
        _tests(comparison),
        _both_table(comparison),
    )


def _runs_of_cases(table: ScoreTable) -> dict[str, str]:
    """The name of each case for people, by case: its run, or the first of several."""
    runs: dict[str, set[str]] = {}
    for entry in table.entries():
        runs.setdefault(entry.case, set()).add(entry.run)
    return {
        case: min(own) + (f" and {len(own) - 1} more" if len(own) > 1 else "")
        for case, own in runs.items()
    }


def _largest(row: ComparisonRow, runs: Mapping[str, str]) -> str:
    """One line on the cases that moved most in the direction of the difference."""
    sign = 1 if (row.difference.mean or 0) > 0 else -1
    moved = [pair for pair in row.pairs if pair.difference * sign > 0]
    some = ", ".join(f"{runs[p.case]} {shown(p.difference, 'signed')}" for p in moved[:_FEW])
    more = ", ... (--all lists them)" if len(moved) > _FEW else ""
    direction = "higher" if sign > 0 else "lower"
    return f"{row.criterion}: {direction} in {len(moved)} of {row.n} cases: {some}{more}"


def _cases(comparison: Comparison, runs: Mapping[str, str]) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("case", "case", hidden=True),
        Column("run", "run of B"),
        Column("a", "A", "number"),
        Column("b", "B", "number"),
        Column("difference", "B − A", "signed"),
    )
    rows = [
        cells_of(pair, columns, criterion=row.criterion, run=runs[pair.case])
        for row in comparison.rows
        for pair in row.pairs
    ]
    title = "Cases that differ, largest difference first"
    return Table("cases", title, columns, tuple(rows), group="criterion", detail=True)


def _missing(comparison: Comparison) -> list[str]:
    """What has no value, by criterion and side; criteria of which the same is to be said share a
    line."""
    lines = []
    missing: dict[tuple[str, str], list[str]] = {}
    for row in comparison.rows:
        sides_by_counts: dict[str, list[str]] = {}
        for side, counts in zip("AB", row.counts, strict=True):
            if row.unordered:
                listed = ", ".join(f"{label} {n}" for label, n in counts.labels.items())
                lines.append(f"counted: {row.criterion}, {side}: {listed or 'none'}")
            if counts.rated < counts.ratings:
                kinds = [f"{n} {s.partition(':')[2] or s}" for s, n in counts.failures.items()]
                if counts.not_applicable:
                    kinds.append(f"{counts.not_applicable} not applicable")
                told = f"{', '.join(kinds)} of {counts.ratings}"
                sides_by_counts.setdefault(told, []).append(side)
        for told, of_sides in sides_by_counts.items():
            missing.setdefault((" and ".join(of_sides), told), []).append(row.criterion)
    lines += [f"not rated: {', '.join(of)}, {side}: {told}" for (side, told), of in missing.items()]
    return lines


def _tests(comparison: Comparison) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("wins", "wins", "count", "cases in which B is higher"),
        Column("ties", "ties", "count"),
        Column("losses", "losses", "count"),
        Column("p", "p", "p", "two-sided"),
        Column("p_holm", "p\nHolm", "p", "corrected over the rows that could differ"),
        Column(
            "p_regression",
            "p of a\nregression",
            "p",
            "one-sided: B is lower by more than the margin",
        ),
        Column("p_regression_holm", "Holm", "p"),
        Column("correlation", "r of\npairs", "number"),
        Column("detectable", "detectable\nat 80%", "number", "true difference that shows"),
        Column("cases_to_decide", "cases to\ndecide", "count"),
        Column("lost", "lost to\nfailures", "count", "common cases without a pair"),
        Column("inapplicable", "without\nvalue", "count", "common cases without a pair"),
        Column("test", "test"),
        Column("reason", "reason"),
    )
    rows = tuple(cells_of(row, columns) for row in comparison.rows)
    return Table("tests", "Tests", columns, rows, detail=True)


def _both_table(comparison: Comparison) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("side", "side"),
        Column("mean", "mean [95%]", "number"),
        Column("ratings", "ratings", "count"),
        Column("rated", "rated", "count"),
        Column("not_applicable", "not\napplicable", "count"),
        Column("failures", "failures"),
        Column("labels", "labels"),
    )
    rows = [
        cells_of(
            counts,
            columns,
            criterion=row.criterion,
            side=side,
            mean=Estimate.of(mean),
            failures=", ".join(f"{s} {n}" for s, n in counts.failures.items()),
            labels=", ".join(f"{label} {n}" for label, n in counts.labels.items()),
        )
        for row in comparison.rows
        for side, mean, counts in zip("AB", (row.first, row.second), row.counts, strict=True)
    ]
    title = "Both sides on the common cases"
    return Table("sides", title, columns, tuple(rows), detail=True)
