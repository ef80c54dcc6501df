"""The figures of findings against gold, and of two annotators, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from agenteval.evaluators.traces.official import OfficialScores
from agenteval.evaluators.traces.score import Coverage, Result, Scores, Tally
from agenteval.records.table import Cell, Column, Estimate, Table
from agenteval.stats.interval import Interval

THIS = "this result"
_PREDICTOR = Column("predictor", "predictor")
_TRACES = Column("traces", "traces", "count")
_TALLY = (Column("hits", "hits", "count"), Column("predicted", "predicted", "count"),
          Column("gold", "gold", "count"))  # fmt: skip


def score_tables(result: Result, *, official: bool = False) -> tuple[Table, ...]:
    """What is shown of `result`: the first table has the figures, the others are details.

    By default the figures that count precision, and the official ones in one table; with
    `official` those alone, with their categories and correlations (none where they do not apply).
    The trivial predictors stand beside both.
    """
    figures = result.official
    if official:
        if figures is None:
            return (Table("official", "Official figures", (_PREDICTOR,), (), result.notes),)
        made = [_official(result, figures), _official_categories(figures), _correlations(figures)]
    else:
        made = [_levels(result), _beside(result), _categories(result.scores)]
        if result.grades:
            made.append(_grades(result))
        if figures is not None:
            made.append(_official(result, figures))
        made += _lengths(result)
    first, *rest = map(_with_reasons, made)
    return (first, *(replace(table, detail=True) for table in rest))


def _with_reasons(table: Table) -> Table:
    """Why figures or their intervals are missing is said once below."""
    reasons = dict.fromkeys(
        cell.reason
        for row in table.rows
        for cell in row.values()
        if isinstance(cell, Estimate) and cell.reason and cell.low is None
    )
    return replace(table, notes=(*table.notes, *(f"no interval: {why}" for why in reasons)))


def _figures(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name.lower().replace(" ", "_"), name, "precise") for name in names)


def _levels(result: Result) -> Table:
    rows = []
    for level in result.scores.levels:
        for over, measure in (("errors", level.micro), ("traces", level.macro)):
            row: dict[str, Cell] = {
                "level": level.level, "over": over, "precision": Estimate.of(measure.precision),
                "recall": Estimate.of(measure.recall), "f1": Estimate.of(measure.f1),
            }  # fmt: skip
            rows.append(row | (_counts(level.counts) if over == "errors" else {}))
    columns = (Column("over", "over"), Column("level", "level"),
               *_figures("precision", "recall", "F1"), *_TALLY)  # fmt: skip
    notes = [*_coverage(result.scores.coverage), *_how(result), *_unknown(result.scores)]
    return Table(
        "levels", "Findings against gold", columns, tuple(rows), (*notes, *result.notes), "level"
    )


def _counts(tally: Tally) -> dict[str, Cell]:
    return {"hits": tally.hits, "predicted": tally.predicted, "gold": tally.gold}


def _coverage(coverage: Coverage) -> Iterator[str]:
    lost = ", ".join(f"{n} {status}" for status, n in coverage.lost.items())
    yield (
        f"{coverage.answered} of {coverage.traces} traces have a readable prediction"
        + (f" ({lost})" if lost else "")
    )
    if coverage.without_errors:
        yield f"{coverage.without_errors} traces have no errors in gold"
    if coverage.left_out:
        yield f"{coverage.left_out} traces are left out"


def _how(result: Result) -> Iterator[str]:
    how = result.how
    missing = {"empty": "count as empty", "leave_out": "are left out"}[how.missing]
    without = {
        "correct": "are worth 1 if the prediction is empty, else 0",
        "zero": "are worth 0",
        "leave_out": "are left out",
    }[how.without_errors]
    yield f"missing predictions {missing}; traces without errors {without} (mean over traces)"
    yield f"intervals: 95%, bootstrap over traces, {how.resamples} resamples, seed {how.seed}"


def _unknown(scores: Scores) -> Iterator[str]:
    for side, labels in zip(("gold", "predictions"), scores.unknown, strict=True):
        if labels:
            most = sorted(labels, key=lambda label: (-labels[label], label))
            some = ", ".join(f"{label!r} {labels[label]}" for label in most[:5])
            yield f"{sum(labels.values())} labels in {side} are not in the taxonomy: {some}"


def _beside(result: Result) -> Table:
    columns = (
        _PREDICTOR,
        *_figures("location F1", "category F1", "joint precision", "joint recall", "joint F1"),
        Column("per_trace", "findings\nper trace", "seconds"), Column("traces", "traces", "count"),
    )  # fmt: skip
    every = [(THIS, result.scores), *((one.name, one.scores) for one in result.beside)]
    rows: list[dict[str, Cell]] = []
    for name, scores in every:
        location, category, joint = (level.micro for level in scores.levels)
        rows.append({
            "predictor": name, "location_f1": Estimate.of(location.f1),
            "category_f1": Estimate.of(category.f1),
            "joint_precision": Estimate.of(joint.precision),
            "joint_recall": Estimate.of(joint.recall), "joint_f1": Estimate.of(joint.f1),
            "per_trace": scores.predictions.mean, "traces": len(scores.per_trace),
        })  # fmt: skip
    note = (
        "over errors; the trivial predictors read nothing and know how frequent gold's categories "
        "are"
    )
    return Table("beside", "Beside predictors that read nothing", columns, tuple(rows), (note,))


def _categories(scores: Scores) -> Table:
    columns = (
        Column("category", "category"), *_figures("precision", "recall", "F1"), *_TALLY,
        Column("traces_found", "traces\nfound", "count"),
        Column("traces_predicted", "traces\npredicted", "count"),
        Column("traces_gold", "traces\nin gold", "count"),
    )  # fmt: skip
    rows = tuple(
        {"category": one.category, "precision": one.pairs.precision, "recall": one.pairs.recall,
         "f1": Estimate.of(one.f1), **_counts(one.pairs), "traces_found": one.traces.hits,
         "traces_predicted": one.traces.predicted, "traces_gold": one.traces.gold}
        for one in scores.categories
    )  # fmt: skip
    return Table("by-category", "By category (pairs of span and category)", columns, rows)


def _grades(result: Result) -> Table:
    columns = (Column("grade", "grade"), *_figures("Pearson", "mean error", "of a constant"),
               _TRACES, Column("missing", "missing", "count"))  # fmt: skip
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"grade": one.grade, "pearson": Estimate.of(one.pearson),
         "mean_error": Estimate.of(one.error), "of_a_constant": one.constant,
         "traces": one.error.n, "missing": one.missing}
        for one in result.grades
    )  # fmt: skip
    note = "mean error in points; of a constant: the median of gold, given to every trace"
    return Table("grades", "Grades of whole traces", columns, rows, (note,))


def _official(result: Result, figures: OfficialScores) -> Table:
    columns = (_PREDICTOR, *_figures("category F1", "location", "joint"),
               _TRACES, Column("skipped", "skipped", "count"))  # fmt: skip
    every = [(THIS, figures)]
    if figures.skipped and result.penalised is not None:
        every.append((f"{THIS}, missing as empty", result.penalised))
    every += [(one.name, one.official) for one in result.beside if one.official is not None]
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"predictor": name, "category_f1": Estimate.of(one.weighted_f1),
         "location": Estimate.of(one.location), "joint": Estimate.of(one.joint),
         "traces": one.traces, "skipped": sum(one.skipped.values())}
        for name, one in every
    )  # fmt: skip
    notes = [
        "official figures (TRAIL): recall only, skipped traces are not counted",
        "intervals: 95%, bootstrap over traces (not part of the official scorer)",
    ]
    if figures.skipped:
        notes.append("skipped: " + _named(figures.skipped))
    return Table("official", "Official figures", columns, rows, (*notes, *result.notes))


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))


def _official_categories(figures: OfficialScores) -> Table:
    columns = (Column("category", "category"), *_figures("precision", "recall", "F1"),
               Column("traces", "traces", "count"))  # fmt: skip
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"category": one.category, "precision": one.precision, "recall": one.recall, "f1": one.f1,
         "traces": one.support}
        for one in figures.categories
        if one.support
    )  # fmt: skip
    title = "Official figures by category (presence in a trace)"
    return Table("official-categories", title, columns, rows)


def _correlations(figures: OfficialScores) -> Table:
    columns = (Column("grade", "grade"), *_figures("Pearson"), Column("traces", "traces", "count"),
               Column("why", "why not"))  # fmt: skip
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"grade": name, "pearson": one.r, "traces": one.n, "why": one.reason}
        for name, one in figures.pearson.items()
    )
    notes = ("0, empty or no number is -1; predicted reliability is cut to an integer",)
    return Table("official-correlations", "Official correlations of grades", columns, rows, notes)


def _lengths(result: Result) -> Iterable[Table]:
    for one in result.lengths:
        columns = (
            Column("tokens", "tokens"), Column("mean", f"mean {one.score}", "precise"),
            Column("traces", "traces", "count"),
            Column("answered", "with a\nprediction", "count"),
        )  # fmt: skip
        rows: tuple[dict[str, Cell], ...] = tuple(
            {"tokens": f"{b.low:,} to {b.high:,}", "mean": Estimate.of(b.score),
             "traces": b.traces, "answered": b.answered}
            for b in one.bins
        )  # fmt: skip
        notes = [f"Pearson {in_words(one.pearson)}, Spearman {in_words(one.spearman)}"]
        if one.unknown:
            notes.append(f"{one.unknown} traces of unknown length are left out")
        key = f"length-{one.score.lower().replace(' ', '-')}"
        yield Table(key, f"{one.score} against length", columns, rows, tuple(notes))


def in_words(interval: Interval) -> str:
    """ "0.512 [0.401, 0.620]", or the mean and why there is no interval, or "n/a (reason)"."""
    if interval.mean is None:
        return f"n/a ({interval.reason})" if interval.reason else "n/a"
    mean = f"{interval.mean:.3f}"
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return f"{mean} ({interval.reason})" if interval.reason else mean
    return f"{mean} [{interval.low:.3f}, {interval.high:.3f}]"
