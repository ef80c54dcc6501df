"""Compute means, intervals, n and failures from stored results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.analysis.scores import newest_runs, run_names
from agenteval.records import RUBRIC, Criterion
from agenteval.records.run import no_answers
from agenteval.stats import Interval, mean_interval
from agenteval.stats.scores import ONLY_EMPTY, ScoreTable
from agenteval.store import Store, of_one_state
from agenteval.store.rows import cell_detail
from agenteval.text import plural

ALL = "all systems"


@dataclass(frozen=True, slots=True)
class Rating:
    """One result with data of its run. `value` is None unless it counts in a mean."""

    run_id: str
    system: str
    case: str
    success: bool | None
    criterion_id: str
    repeat: int
    status: str
    value: float | None
    label: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    run_key: str = ""
    criterion_key: str = ""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One row of the table: a criterion and a system.

    Intervals are over ratings with cases as clusters. There is no mean if all values were assigned
    by rule to empty replies (`degenerate`). `failures` counts cells by status.
    """

    criterion_id: str
    system: str
    overall: Interval
    success: Interval
    failed: Interval
    without_degenerate: Interval
    not_applicable: int
    degenerate: int
    failed_runs: int
    failures: Counter[str]
    labels: Counter[str]

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the mean with all failures at the worst and at the best level, or None without
        failures or mean.

        These bounds need no assumptions about why ratings are missing (Manski 1989, "Anatomy of the
        Selection Problem").
        """
        missing = self.failures.total()
        if not missing or self.overall.mean is None:
            return None
        total, every = self.overall.mean * self.overall.n, self.overall.n + missing
        return total / every, (total + missing) / every


def cases_answered_twice(answers: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a line for each system with several runs of one case; `answers` are (system, case, run
    id). Their ratings are pooled, which is wrong if the runs are of different versions."""
    runs: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for system, case, run in answers:
        runs[system][case].add(run)
    lines = []
    for system, by_case in sorted(runs.items()):
        several = [sorted(case_runs) for case_runs in by_case.values() if len(case_runs) > 1]
        if several:
            lines.append(
                f"{f'system {system!r}' if system else 'the system without a name'} answers "
                f"{plural(len(several), 'case')} more than once (first: "
                f"{' and '.join(min(several)[:2])}), which are averaged: give each version of a "
                "system its own name (--system, or the field `system`)"
            )
    return lines


def lines_on_failed_runs(table: ScoreTable) -> list[str]:
    """Return lines about runs whose system failed: not judged, or counted as the worst level."""
    lines = []
    if missing := no_answers(table.runs_by_status("no_answer:")):
        lines.append(f"{missing}; they are not judged")
    for runs in table.runs_by_status("failed_run").values():
        what = plural(len(runs), "failed run")
        lines.append(f"{what} counted as the worst level (--score-failed-runs worst)")
    return lines


@of_one_state
def load_ratings(
    store: Store,
    source_key: str,
    *,
    run_keys: Iterable[str] | None = None,
    criterion_keys: Iterable[str] | None = None,
    repeats: int | None = None,
) -> list[Rating]:
    """Return the ratings of a source on original runs, optionally of some runs and criteria only.

    Without `run_keys` or `criterion_keys`, only the latest version of each run or criterion is used
    (after an edited scale, or a run shown with its reference), so that old and new do not mix.
    """
    runs, name = store.items(), store.name_of(source_key)
    if criterion_keys is None:
        criteria = store.newest_criteria(source_key)
    else:
        asked_for, rated = set(criterion_keys), store.criteria_of(source_key)
        criteria = {k: c for k, c in rated.items() if k in asked_for}
    ids = {k: c.id for k, c in criteria.items()}
    rubrics = store.rubrics_of(source_key, store.criteria_of(source_key))
    intern = dict[str | None, str | None]().setdefault  # share equal strings of many cells
    if run_keys is None:
        chosen = newest_runs(runs, store.judged(source_key, variant="original"))
    else:
        chosen = set(run_keys)
    names = run_names(runs, chosen)
    by_run: dict[str, list[Rating]] = {}
    for cell in store.cells(source_key, variant="original"):
        run_key, _, criterion_key, repeat, status, label, value, _ = cell
        if criterion_key not in ids or run_key not in chosen:
            continue
        if repeats is not None and repeat >= repeats:
            continue
        if ids[criterion_key] == RUBRIC and rubrics[run_key] != criterion_key:
            continue  # judged by an earlier rubric
        evidence, message = cell_detail(cell)
        run = runs[run_key]
        rating = Rating(
            run_id=names[run_key],
            system=name if run["system"] is None else run["system"],
            case=run["case_key"],
            success=None if run["success"] is None else bool(run["success"]),
            criterion_id=ids[criterion_key],
            repeat=repeat,
            status=intern(status, status) or status,
            value=value,
            label=intern(label, label),
            evidence=evidence,
            message=message,
            run_key=run_key,
            criterion_key=intern(criterion_key, criterion_key) or criterion_key,
        )
        by_run.setdefault(run_key, []).append(rating)
    return [r for run_ratings in by_run.values() for r in run_ratings]


def summarize(ratings: Sequence[Rating], criteria: Sequence[Criterion]) -> list[ScoreRow]:
    """Return a row per criterion and system, followed by a row over all systems if there are
    several."""
    rows: list[ScoreRow] = []
    systems = sorted({r.system for r in ratings})
    by_criterion: dict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_criterion[rating.criterion_id].append(rating)
    for criterion in criteria:
        of_criterion = by_criterion.get(criterion.id, [])
        rows += [_row(criterion, s, [r for r in of_criterion if r.system == s]) for s in systems]
        if len(systems) > 1:
            rows.append(_row(criterion, ALL, of_criterion))
    return rows


def _row(criterion: Criterion, system: str, ratings: Sequence[Rating]) -> ScoreRow:
    valued = [r for r in ratings if r.value is not None and criterion.ordered]
    by_judge = [r for r in valued if r.status != "degenerate"]
    statuses = Counter(r.status for r in ratings)
    overall = _interval(valued)
    return ScoreRow(
        criterion_id=criterion.id,
        system=system,
        overall=overall,
        success=_interval([r for r in valued if r.success is True]),
        failed=_interval([r for r in valued if r.success is False]),
        without_degenerate=overall if len(by_judge) == len(valued) else _interval(by_judge),
        not_applicable=statuses["not_applicable"],
        degenerate=statuses["degenerate"],
        failed_runs=statuses["failed_run"],
        failures=Counter({s: n for s, n in statuses.items() if ":" in s}),
        labels=Counter(r.label for r in ratings if r.label is not None),
    )


def _interval(ratings: Sequence[Rating]) -> Interval:
    if ratings and all(r.status == "degenerate" for r in ratings):
        return Interval.missing(ONLY_EMPTY)
    values = [r.value for r in ratings if r.value is not None]
    return mean_interval(values, [r.case for r in ratings], bounds=(0.0, 1.0))
