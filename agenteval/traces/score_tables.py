"""The figures of findings against gold as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agenteval.records.table import Column, Estimate, Table, cells_of, column, columns_of, table_of
from agenteval.stats.interval import Interval
from agenteval.traces.evaluation import Evaluation
from agenteval.traces.grades import GradeScore
from agenteval.traces.official import OfficialScores
from agenteval.traces.score import CategoryScore, Scores

THIS = "this result"


def score_tables(result: Evaluation, *, official: bool = False) -> tuple[Table, ...]:
    """Return the tables of `result`: the first has the figures, the others are details.

    By default the figures that count precision, and the official ones in one table; with
    `official` those alone, with their categories and correlations (none if they do not apply).
    The trivial predictors are in both.
    """
    figures = result.official
    if official:
        if figures is None:
            columns = (Column("predictor", "predictor"),)
            return (Table("official", "Official figures", columns, (), result.notes),)
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


@dataclass(frozen=True)
class _LevelRow:
    over: str = column("over")
    level: str = column("level")
    precision: Interval = column("precision", "precise")
    recall: Interval = column("recall", "precise")
    f1: Interval = column("F1", "precise")
    hits: int | None = column("hits", "count", default=None)
    predicted: int | None = column("predicted", "count", default=None)
    gold: int | None = column("gold", "count", default=None)


def _levels(result: Evaluation) -> Table:
    rows = []
    for level in result.scores.levels:
        rows.append(_LevelRow("errors", level.level, **vars(level.micro), **vars(level.counts)))
        rows.append(_LevelRow("traces", level.level, **vars(level.macro)))
    notes = (*_notes(result), *result.notes)
    return table_of(_LevelRow, "levels", "Findings against gold", rows, notes=notes, group="level")


def _notes(result: Evaluation) -> Iterator[str]:
    coverage, how = result.scores.coverage, result.how
    lost = ", ".join(f"{n} {status}" for status, n in coverage.lost.items())
    yield (
        f"{coverage.answered} of {coverage.traces} traces have a readable prediction"
        + (f" ({lost})" if lost else "")
    )
    if coverage.without_errors:
        yield f"{coverage.without_errors} traces have no errors in gold"
    if coverage.left_out:
        yield f"{coverage.left_out} traces are excluded"
    missing = {"empty": "count as empty", "leave_out": "are excluded"}[how.missing]
    without = {
        "correct": "score 1 if the prediction is empty, else 0",
        "zero": "score 0",
        "leave_out": "are excluded",
    }[how.without_errors]
    yield f"missing predictions {missing}; traces without errors {without} (mean over traces)"
    yield f"intervals: 95%, bootstrap over traces, {how.resamples} resamples, seed {how.seed}"
    for side, labels in zip(("gold", "predictions"), result.scores.unknown, strict=True):
        if labels:
            most = sorted(labels, key=lambda label: (-labels[label], label))
            some = ", ".join(f"{label!r} {labels[label]}" for label in most[:5])
            yield f"{sum(labels.values())} labels in {side} are not in the taxonomy: {some}"


@dataclass(frozen=True)
class _PredictorRow:
    predictor: str = column("predictor")
    location_f1: Interval = column("location F1", "precise")
    category_f1: Interval = column("category F1", "precise")
    joint_precision: Interval = column("joint precision", "precise")
    joint_recall: Interval = column("joint recall", "precise")
    joint_f1: Interval = column("joint F1", "precise")
    per_trace: float | None = column("findings\nper trace", "seconds")
    traces: int = column("traces", "count")

    @classmethod
    def of(cls, predictor: str, scores: Scores) -> _PredictorRow:
        location, category, joint = (level.micro for level in scores.levels)
        levels = (location.f1, category.f1, joint.precision, joint.recall, joint.f1)
        return cls(predictor, *levels, scores.predictions.mean, len(scores.per_trace))


def _beside(result: Evaluation) -> Table:
    every = [(THIS, result.scores), *((b.name, b.scores) for b in result.beside)]
    rows = [_PredictorRow.of(name, scores) for name, scores in every]
    note = (
        "over errors; the trivial predictors do not read traces but know the frequencies of "
        "gold's categories"
    )
    title = "Comparison with trivial predictors"
    return table_of(_PredictorRow, "beside", title, rows, notes=[note])


@dataclass(frozen=True)
class _CategoryRow:
    category: str = column("category")
    precision: float | None = column("precision", "precise")
    recall: float | None = column("recall", "precise")
    f1: Interval = column("F1", "precise")
    hits: int = column("hits", "count")
    predicted: int = column("predicted", "count")
    gold: int = column("gold", "count")
    traces_found: int = column("traces\nfound", "count")
    traces_predicted: int = column("traces\npredicted", "count")
    traces_gold: int = column("traces\nin gold", "count")

    @classmethod
    def of(cls, score: CategoryScore) -> _CategoryRow:
        pairs, traces = score.pairs, score.traces
        ratios = (pairs.precision, pairs.recall, score.f1)
        counts = (*vars(pairs).values(), *vars(traces).values())
        return cls(score.category, *ratios, *counts)


def _categories(scores: Scores) -> Table:
    rows = map(_CategoryRow.of, scores.categories)
    title = "By category (pairs of span and category)"
    return table_of(_CategoryRow, "by-category", title, rows)


@dataclass(frozen=True)
class _GradeRow:
    grade: str = column("grade")
    pearson: Interval = column("Pearson", "precise")
    mean_error: Interval = column("mean error", "precise")
    of_a_constant: float | None = column("constant", "precise")
    traces: int = column("traces", "count")
    missing: int = column("missing", "count")

    @classmethod
    def of(cls, score: GradeScore) -> _GradeRow:
        figures = (score.pearson, score.error, score.constant, score.error.n)
        return cls(score.grade, *figures, score.missing)


def _grades(result: Evaluation) -> Table:
    rows = map(_GradeRow.of, result.grades)
    note = "mean error in points; constant: the median of gold for every trace"
    return table_of(_GradeRow, "grades", "Grades of traces", rows, notes=[note])


@dataclass(frozen=True)
class _OfficialRow:
    predictor: str = column("predictor")
    category_f1: Interval = column("category F1", "precise")
    location: Interval = column("location", "precise")
    joint: Interval = column("joint", "precise")
    traces: int = column("traces", "count")
    skipped: int = column("skipped", "count")

    @classmethod
    def of(cls, predictor: str, scores: OfficialScores) -> _OfficialRow:
        figures = (scores.weighted_f1, scores.location, scores.joint, scores.traces)
        return cls(predictor, *figures, sum(scores.skipped.values()))


def _official(result: Evaluation, figures: OfficialScores) -> Table:
    rows = [_OfficialRow.of(THIS, figures)]
    if figures.skipped and result.penalised is not None:
        rows.append(_OfficialRow.of(f"{THIS}, missing as empty", result.penalised))
    rows += [_OfficialRow.of(b.name, b.official) for b in result.beside if b.official is not None]
    notes = [
        "official figures (TRAIL): recall only, skipped traces are not counted",
        "intervals: 95%, bootstrap over traces (not part of the official scorer)",
    ]
    if skipped := ", ".join(f"{n} {reason}" for reason, n in sorted(figures.skipped.items())):
        notes.append(f"skipped: {skipped}")
    notes += result.notes
    return table_of(_OfficialRow, "official", "Official figures", rows, notes=notes)


@dataclass(frozen=True)
class _OfficialCategoryRow:
    category: str = column("category")
    precision: float = column("precision", "precise")
    recall: float = column("recall", "precise")
    f1: float = column("F1", "precise")
    traces: int = column("traces", "count")


def _official_categories(figures: OfficialScores) -> Table:
    rows = [_OfficialCategoryRow(*vars(c).values()) for c in figures.categories if c.support]
    title = "Official figures by category (presence in a trace)"
    return table_of(_OfficialCategoryRow, "official-categories", title, rows)


@dataclass(frozen=True)
class _CorrelationRow:
    grade: str = column("grade")
    pearson: float | None = column("Pearson", "precise")
    traces: int = column("traces", "count")
    why: str | None = column("why not")


def _correlations(figures: OfficialScores) -> Table:
    rows = [_CorrelationRow(name, p.r, p.n, p.reason) for name, p in figures.pearson.items()]
    note = (
        "0, empty and non-numeric grades count as -1; predicted reliability is truncated to an "
        "integer"
    )
    title = "Official correlations of grades"
    return table_of(_CorrelationRow, "official-correlations", title, rows, notes=[note])


@dataclass(frozen=True)
class _LengthColumns:
    traces: int = column("traces", "count")
    answered: int = column("with a\nprediction", "count")


def _lengths(result: Evaluation) -> Iterator[Table]:
    for length in result.lengths:
        columns = (
            Column("tokens", "tokens"),
            Column("mean", f"mean {length.score}", "precise"),
            *columns_of(_LengthColumns),
        )
        rows = []
        for part in length.bins:
            tokens = f"{part.low:,} to {part.high:,}"
            rows.append(cells_of(part, columns, tokens=tokens, mean=part.score))
        notes = [f"Pearson {in_words(length.pearson)}, Spearman {in_words(length.spearman)}"]
        if length.unknown:
            notes.append(f"{length.unknown} traces of unknown length are excluded")
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
