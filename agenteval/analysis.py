"""From stored results to the table people read: mean, interval, n and failures side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval.records import Criterion, Failure, Result, Score
from agenteval.stats import Interval, mean_interval
from agenteval.store import Store

ALL = "all systems"


@dataclass(frozen=True, slots=True)
class Rating:
    """One result with what is known of its run. `value` is None unless it counts in a mean."""

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


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a criterion and a system.

    The intervals are over ratings with cases as clusters. `failures` counts cells by status;
    `relative` says that values are ranks among the runs of one problem.
    """

    criterion_id: str
    system: str
    overall: Interval
    success: Interval
    failed: Interval
    without_degenerate: Interval
    not_applicable: int
    degenerate: int
    failures: Counter[str]
    labels: Counter[str]
    relative: bool = False


def load_ratings(
    store: Store,
    source_key: str,
    *,
    run_keys: Iterable[str] | None = None,
    criterion_keys: Iterable[str] | None = None,
    repeats: int | None = None,
) -> list[Rating]:
    """Ratings of a source on the original runs, restricted to what is asked for.

    Evidence that is comparable only within a problem is turned into ranks here, among the runs
    that are asked for.
    """
    runs = store.runs()
    wanted_runs = set(runs) if run_keys is None else set(run_keys)
    wanted = None if criterion_keys is None else set(criterion_keys)
    ratings = [
        _rating(result, runs[result.key.run])
        for result in store.results(source_key, variant="original")
        if result.key.run in wanted_runs
        and (wanted is None or result.key.criterion in wanted)
        and (repeats is None or result.key.repeat < repeats)
    ]
    return rank_within_problems(ratings)


def _rating(result: Result, run: Mapping[str, Any]) -> Rating:
    score = result if isinstance(result, Score) else None
    return Rating(
        run_id=run["run_id"],
        system=run["system"],
        case=run["case_key"],
        success=None if run["success"] is None else bool(run["success"]),
        criterion_id=result.criterion_id,
        repeat=result.key.repeat,
        status=result.status,
        value=score.value if score else None,
        label=score.label if score else None,
        evidence=score.evidence if score else {},
        message=result.message if isinstance(result, Failure) else "",
    )


def rank_within_problems(ratings: Sequence[Rating]) -> list[Rating]:
    """Give `relative` ratings a value: the share of the other runs of the problem that are worse.

    Ties count half, so the mean over a problem is 1/2. A run with false arithmetic ranks below
    every run without. A problem with one run has nothing to compare: `unscored:unsupported`.
    """
    groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for i, rating in enumerate(ratings):
        if rating.status == "relative":
            groups[rating.criterion_id, rating.case, rating.repeat].append(i)
    result = list(ratings)
    for members in groups.values():
        keys = [_strength(ratings[i]) for i in members]
        for i, own in zip(members, keys, strict=True):
            if len(members) < 2:
                message = "unsupported: the problem has one run, and this evidence only compares"
                result[i] = replace(ratings[i], status="unscored:unsupported", message=message)
                continue
            worse = sum(1.0 if k < own else 0.5 if k == own else 0.0 for k in keys) - 0.5
            result[i] = replace(ratings[i], value=worse / (len(members) - 1))
    return result


def _strength(rating: Rating) -> tuple[bool, float]:
    clean = not rating.evidence.get("arithmetic_wrong")
    return clean, float(rating.evidence["number_loglik"])


def summarize(ratings: Sequence[Rating], criteria: Sequence[Criterion]) -> list[Row]:
    """One row per criterion and system, then one over all systems when there are several."""
    rows: list[Row] = []
    systems = sorted({r.system for r in ratings})
    for criterion in criteria:
        own = [r for r in ratings if r.criterion_id == criterion.id]
        rows.extend(_row(criterion, s, [r for r in own if r.system == s]) for s in systems)
        if len(systems) > 1:
            rows.append(_row(criterion, ALL, own))
    return rows


def _row(criterion: Criterion, system: str, ratings: Sequence[Rating]) -> Row:
    averaged = criterion.scale != "nominal" and criterion.order != "unclear"
    valued = [r for r in ratings if r.value is not None and averaged]
    return Row(
        criterion_id=criterion.id,
        system=system,
        overall=_interval(valued),
        success=_interval([r for r in valued if r.success is True]),
        failed=_interval([r for r in valued if r.success is False]),
        without_degenerate=_interval([r for r in valued if r.status != "degenerate"]),
        not_applicable=sum(r.status == "not_applicable" for r in ratings),
        degenerate=sum(r.status == "degenerate" for r in ratings),
        failures=Counter(r.status for r in ratings if ":" in r.status),
        labels=Counter(r.label for r in ratings if r.label is not None),
        relative=any(r.status == "relative" for r in ratings),
    )


def _interval(ratings: Sequence[Rating]) -> Interval:
    values = [r.value for r in ratings if r.value is not None]
    return mean_interval(values, [r.case for r in ratings], bounds=(0.0, 1.0))
