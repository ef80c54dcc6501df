"""The figures of findings against gold as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agenteval.records.table import Cell, Column, Estimate, Table, cells_of
from agenteval.stats.interval import Interval
from agenteval.traces.official import OfficialScores
from agenteval.traces.score import Result, ScoreCounts, Scores

THIS = "this result"
_COUNTS = tuple(Column(name, name, "count") for name in ("hits", "predicted", "gold"))
_TRACES = Column("traces", "traces", "count")
_PREDICTOR = Column("predictor", "predictor")


def score_tables(result: Result, *, official: bool = False) -> tuple[Table, ...]:
    """Return the tables of `result`: the first has the figures, the others are details.

    By default the figures that count precision, and the official ones in one table; with
    `official` those alone, with their categories and correlations (none where they do not apply).
    The trivial predictors are in both.
    """
    figures = result.official
    if official:
        if figures is None:
            return (Table("official", "Official figures", (_PREDICTOR,), (), result.notes),)
        tables = [_official(result, figures), _official_categories(figures), _correlations(figures)]
    else:
        tables = [_levels(result), _beside(result), _categories(result.scores)]
        if result.grades:
            tables.append(_grades(result))
        if figures is not None:
            tables.append(_official(result, figures))
        tables += _lengths(result)
    first, *details = map(_with_reasons, tables)
    return (first, *(replace(table, detail=True) for table in details))


def _with_reasons(table: Table) -> Table:
    """Add a note for each reason why intervals are missing."""
    cells = (cell for row in table.rows for cell in row.values() if isinstance(cell, Estimate))
    reasons = dict.fromkeys(cell.reason for cell in cells if cell.reason and cell.low is None)
    return replace(table, notes=(*table.notes, *(f"no interval: {why}" for why in reasons)))


def _figures(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name.lower().replace(" ", "_"), name, "precise") for name in names)


_PRF = _figures("precision", "recall", "F1")


def _levels(result: Result) -> Table:
    rows = []
    for level in result.scores.levels:
        counts = cells_of(level.counts, _COUNTS)
        rows.append(cells_of(level.micro, _PRF, level=level.level, over="errors", **counts))
        rows.append(cells_of(level.macro, _PRF, level=level.level, over="traces"))
    columns = (Column("over", "over"), Column("level", "level"), *_PRF, *_COUNTS)
    notes = (*_notes(result), *result.notes)
    return Table("levels", "Findings against gold", columns, tuple(rows), notes, "level")


def _notes(result: Result) -> Iterator[str]:
    coverage, how = result.scores.coverage, result.how
    lost = ", ".join(f"{n} {status}" for status, n in coverage.lost.items())
    yield (
        f"{coverage.answered} of {coverage.traces} traces have a readable prediction"
        + (f" ({lost})" if lost else "")
    )
    if coverage.without_errors:
        yield f"{coverage.without_errors} traces have no errors in gold"
    if coverage.left_out:
        yield f"{coverage.left_out} traces are left out"
    missing = {"empty": "count as empty", "leave_out": "are left out"}[how.missing]
    without = {
        "correct": "are worth 1 if the prediction is empty, else 0",
        "zero": "are worth 0",
        "leave_out": "are left out",
    }[how.without_errors]
    yield f"missing predictions {missing}; traces without errors {without} (mean over traces)"
    yield f"intervals: 95%, bootstrap over traces, {how.resamples} resamples, seed {how.seed}"
    for side, labels in zip(("gold", "predictions"), result.scores.unknown, strict=True):
        if labels:
            most = sorted(labels, key=lambda label: (-labels[label], label))
            some = ", ".join(f"{label!r} {labels[label]}" for label in most[:5])
            yield f"{sum(labels.values())} labels in {side} are not in the taxonomy: {some}"


def _beside(result: Result) -> Table:
    columns = (
        _PREDICTOR,
        *_figures("location F1", "category F1", "joint precision", "joint recall", "joint F1"),
        Column("per_trace", "findings\nper trace", "seconds"),
        _TRACES,
    )
    rows: list[dict[str, Cell]] = []
    for name, scores in [(THIS, result.scores), *((b.name, b.scores) for b in result.beside)]:
        location, category, joint = (level.micro for level in scores.levels)
        row: dict[str, Cell] = {f"joint_{key}": cell for key, cell in cells_of(joint, _PRF).items()}
        row |= {"location_f1": Estimate.of(location.f1), "category_f1": Estimate.of(category.f1)}
        row |= {"per_trace": scores.predictions.mean, "traces": len(scores.per_trace)}
        rows.append({"predictor": name, **row})
    note = (
        "over errors; the trivial predictors read nothing and know how frequent gold's categories "
        "are"
    )
    return Table("beside", "Beside predictors that read nothing", columns, tuple(rows), (note,))


def _categories(scores: Scores) -> Table:
    columns = (
        Column("category", "category"),
        *_PRF,
        *_COUNTS,
        Column("traces_found", "traces\nfound", "count"),
        Column("traces_predicted", "traces\npredicted", "count"),
        Column("traces_gold", "traces\nin gold", "count"),
    )

    def traces(counts: ScoreCounts) -> dict[str, Cell]:
        return {
            "traces_found": counts.hits,
            "traces_predicted": counts.predicted,
            "traces_gold": counts.gold,
        }

    rows = tuple(
        cells_of(c.pairs, columns, category=c.category, f1=Estimate.of(c.f1), **traces(c.traces))
        for c in scores.categories
    )
    return Table("by-category", "By category (pairs of span and category)", columns, rows)


def _grades(result: Result) -> Table:
    columns = (
        Column("grade", "grade"),
        *_figures("Pearson", "mean error", "of a constant"),
        _TRACES,
        Column("missing", "missing", "count"),
    )
    rows = []
    for grade in result.grades:
        more: dict[str, Cell] = {"mean_error": Estimate.of(grade.error)}
        more |= {"of_a_constant": grade.constant, "traces": grade.error.n}
        rows.append(cells_of(grade, columns, **more))
    note = "mean error in points; of a constant: the median of gold, given to every trace"
    return Table("grades", "Grades of whole traces", columns, tuple(rows), (note,))


def _official(result: Result, figures: OfficialScores) -> Table:
    columns = (
        _PREDICTOR,
        *_figures("category F1", "location", "joint"),
        _TRACES,
        Column("skipped", "skipped", "count"),
    )
    every = [(THIS, figures)]
    if figures.skipped and result.penalised is not None:
        every.append((f"{THIS}, missing as empty", result.penalised))
    every += [(b.name, b.official) for b in result.beside if b.official is not None]
    rows = []
    for name, scores in every:
        more: dict[str, Cell] = {"predictor": name, "category_f1": Estimate.of(scores.weighted_f1)}
        rows.append(cells_of(scores, columns, **more, skipped=sum(scores.skipped.values())))
    notes = [
        "official figures (TRAIL): recall only, skipped traces are not counted",
        "intervals: 95%, bootstrap over traces (not part of the official scorer)",
    ]
    if skipped := ", ".join(f"{n} {reason}" for reason, n in sorted(figures.skipped.items())):
        notes.append(f"skipped: {skipped}")
    return Table("official", "Official figures", columns, tuple(rows), (*notes, *result.notes))


def _official_categories(figures: OfficialScores) -> Table:
    columns = (Column("category", "category"), *_PRF, _TRACES)
    rows = tuple(cells_of(c, columns, traces=c.support) for c in figures.categories if c.support)
    title = "Official figures by category (presence in a trace)"
    return Table("official-categories", title, columns, rows)


def _correlations(figures: OfficialScores) -> Table:
    columns = (Column("grade", "grade"), *_figures("Pearson"), _TRACES, Column("why", "why not"))
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"grade": name, "pearson": pearson.r, "traces": pearson.n, "why": pearson.reason}
        for name, pearson in figures.pearson.items()
    )
    notes = ("0, empty or no number is -1; predicted reliability is cut to an integer",)
    return Table("official-correlations", "Official correlations of grades", columns, rows, notes)


def _lengths(result: Result) -> Iterator[Table]:
    for length in result.lengths:
        columns = (
            Column("tokens", "tokens"),
            Column("mean", f"mean {length.score}", "precise"),
            _TRACES,
            Column("answered", "with a\nprediction", "count"),
        )
        rows = []
        for part in length.bins:
            tokens = f"{part.low:,} to {part.high:,}"
            rows.append(cells_of(part, columns, tokens=tokens, mean=Estimate.of(part.score)))
        notes = [f"Pearson {in_words(length.pearson)}, Spearman {in_words(length.spearman)}"]
        if length.unknown:
            notes.append(f"{length.unknown} traces of unknown length are left out")
        key = f"length-{length.score.lower().replace(' ', '-')}"
        yield Table(key, f"{length.score} against length", columns, tuple(rows), tuple(notes))


def in_words(interval: Interval) -> str:
    """Return "0.512 [0.401, 0.620]", or the mean and why there is no interval, or "n/a (why)"."""
    if interval.mean is None:
        return f"n/a ({interval.reason})" if interval.reason else "n/a"
    mean = f"{interval.mean:.3f}"
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return f"{mean} ({interval.reason})" if interval.reason else mean
    return f"{mean} [{interval.low:.3f}, {interval.high:.3f}]"
