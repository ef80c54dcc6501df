"""Two systems, two judges or two experiments on the cases that both have."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Unpack

from agenteval.analysis.compared_ratings import (
    ComparedRatings,
    RatingQuery,
    compared_stores,
    compared_tables,
)
from agenteval.analysis.comparison import CompareOptions, Comparison, ComparisonRow
from agenteval.analysis.comparison import compare as compare_tables
from agenteval.analysis.comparison_tables import comparison_tables, comparison_warnings, verdict_of
from agenteval.analysis.gates import regression_gates, under_gate
from agenteval.app.agreement import known_criteria
from agenteval.app.options import ComparisonKeywords, ComparisonOptions
from agenteval.cli.options import read_options
from agenteval.cli.running import opened
from agenteval.errors import InputError
from agenteval.files import same_file
from agenteval.reporting.junit import junit_xml
from agenteval.reporting.report import Report
from agenteval.stats.scores import ScoreTable
from agenteval.store import Store, default_path


@dataclass(frozen=True, kw_only=True)
class ComparisonReport(Report):
    """Verdicts on whether B is better than A for every criterion and success. `comparison` has the
    figures, `names` the names of A and B."""

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
        return verdict_of(self.comparison, self.rows[criterion])

    def junit(self) -> str:
        """The gates as JUnit XML, with the figures of every row."""
        comparison = self.comparison
        figures = {row.criterion: self._figures(row) for row in comparison.rows}
        properties: dict[str, object] = {
            "A": self.names[0],
            "B": self.names[1],
            "about": "; ".join(self.data["about"]),
            "common cases": len(comparison.common),
            "cases only in A": len(comparison.only_first),
            "cases only in B": len(comparison.only_second),
            "margin": f"{comparison.options.margin:g}",
            "tests": comparison.about_tests(),
        }
        for name, values in figures.items():
            properties |= {f"{name}.{key}": value for key, value in values.items()}
        title = f"agenteval compare: B = {self.names[1]}, A = {self.names[0]}"
        texts = {n: "; ".join(f"{k} {v}" for k, v in vs.items()) for n, vs in figures.items()}
        passes = self.undecided_passes
        return junit_xml(self.gates, title, properties, texts, undecided_passes=passes)

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
        figures = {name: f"{value:.6g}" for name, value in numbers.items() if value is not None}
        return {"pairs": str(row.n), **figures, "verdict": verdict_of(self.comparison, row)}


def compare(
    a: str | None = None, b: str | None = None, **options: Unpack[ComparisonKeywords]
) -> ComparisonReport:
    """Compare B with A, paired by case: difference with interval, verdict and gates for each
    criterion.

    `a` and `b` are systems rated by one judge (default: the latest in the store). Without them, two
    `judges` of the same runs are compared, or two experiments: `store` and `other`, or `scores` and
    `other` (files or tables of ratings). With one system, it is compared in both. `judges` are
    models or starts of hashes, or raters for files. Ratings that are labels without values need
    `criteria`. `only` selects rows by id.

    Differences are B minus A as shares of the scale (0 worst, 1 best). Differences up to `margin`
    are ignored, and fewer than `min_cases` common cases give no verdict. To look while cases are
    still arriving in random order, pass their total number as `planned`: verdicts and intervals are
    then valid at all looks together. `fail_under` is a gate on B's mean of a criterion, `fail_if`
    ("surely-worse", "not-surely-as-good") a gate on every row. Gates set `exit_code`: 1 if missed,
    4 if undecided, unless `undecided_passes`. `agenteval.app.options.ComparisonOptions` lists all
    keywords.

    Returns a report with a row per criterion. Raises InputError when the sides cannot be compared,
    and StoreError when a store cannot be read.
    """
    settings = read_options(ComparisonOptions, options, compare)
    judges = (settings.judges,) if isinstance(settings.judges, str) else tuple(settings.judges)
    systems = tuple(name for name in (a, b) if name is not None)
    _check(
        systems,
        judges,
        settings.store if settings.scores is None else settings.scores,
        settings.other,
    )
    pair = _paired(systems, judges, settings)
    comparison = compare_tables(
        pair.first,
        pair.second,
        pair_by=pair.pair_by,
        criteria=settings.only,
        options=CompareOptions(
            margin=settings.margin,
            min_cases=settings.min_cases,
            seed=settings.seed,
            planned=settings.planned,
        ),
    )
    limits = settings.fail_under
    limits = limits.items() if isinstance(limits, Mapping) else limits
    gates = [under_gate(comparison, name, value) for name, value in limits]
    if settings.fail_if is not None:
        gates += regression_gates(comparison, settings.fail_if)
        if not gates:
            why = "; ".join(f"{row.criterion}: {row.reason}" for row in comparison.rows)
            raise InputError(f"no row has a mean, so no gate could be checked ({why})", "--fail-if")
    warnings = comparison_warnings(pair, comparison)
    report = ComparisonReport(
        title=f"A = {pair.names[0]}, B = {pair.names[1]}",
        tables=comparison_tables(pair, comparison),
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
            "on_undecided": "pass" if settings.undecided_passes else "fail",
        },
        comparison=comparison,
        names=pair.names,
        undecided_passes=settings.undecided_passes,
    )
    return report.gated(*gates, undecided_passes=settings.undecided_passes)


def _check(systems: tuple[str, ...], judges: tuple[str, ...], here: object, other: object) -> None:
    if len(judges) > 2:
        raise InputError("at most two judges can be compared", "--source")
    if len(set(systems)) == 2 and len(judges) == 2:
        raise InputError(
            "two systems and two judges cannot be compared at once: a difference "
            "could come from either"
        )
    if len(systems) == 2 and systems[0] == systems[1] and other is None:
        raise InputError(f"{systems[0]!r} is compared with itself", "compare")
    if len(systems) < 2 and other is None and len(judges) < 2:
        raise InputError(
            "choose what to compare: two systems, two judges (--source twice), or a second store "
            "or score file (--with)",
            "compare",
        )
    if isinstance(here, str | Path) and isinstance(other, str | Path):
        _not_the_same(here, other)


def _not_the_same(here: str | Path, other: str | Path) -> None:
    if same_file(Path(here), Path(other)):
        raise InputError(f"{other} is compared with itself", "--with")


def _paired(
    systems: tuple[str, ...], judges: tuple[str, ...], settings: ComparisonOptions
) -> ComparedRatings:
    store, scores, other, task = settings.store, settings.scores, settings.other, settings.task
    if scores is not None:
        if store is not None:
            raise InputError("give --store or --scores, not both", "--scores")
        if isinstance(other, Store):
            raise InputError("compare ratings with ratings, or a store with a store", "other")
        rated_criteria, _ = known_criteria(settings.criteria, task)
        ratings = [Path(p) if isinstance(p, str) else p for p in (scores, other or scores)]
        names = ["the ratings" if isinstance(p, ScoreTable) else str(p) for p in ratings]
        query = RatingQuery(systems, judges, task, other is not None, (names[0], names[1]))
        return compared_tables(query, ratings, rated_criteria)
    if isinstance(other, ScoreTable):
        raise InputError("compare ratings with ratings, or a store with a store", "other")
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
