"""Score findings against gold annotations and return tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.cli.running import Notify, Watch
from agenteval.errors import InputError
from agenteval.records import Span
from agenteval.records.table import Cell, Column, Estimate, Table, column, table_of
from agenteval.reporting.report import Report
from agenteval.stats.interval import Interval
from agenteval.traces.condense import source_tokens
from agenteval.traces.evaluation import Evaluation, LengthScore, as_json, evaluate
from agenteval.traces.input import TaxonomyLike, Traces, read_each, read_findings, read_taxonomy
from agenteval.traces.official import OfficialScores
from agenteval.traces.score import Scores, Scoring

_THIS = "this result"


@dataclass(frozen=True, kw_only=True)
class FindingsScoreReport(Report):
    """Scores of findings against gold; `result` has all scores."""

    result: Evaluation


def score_findings(
    gold: str | Path,
    findings: str | Path,
    *,
    traces: Traces | None = None,
    official: bool = False,
    without_errors: Literal["correct", "zero", "leave_out"] = "correct",
    leave_out_missing: bool = False,
    taxonomy: TaxonomyLike = None,
    seed: int = 0,
    gate: float | None = None,
    max_unscored: float = 0.1,
    notify: Notify | None = None,
) -> FindingsScoreReport:
    """Score a folder of findings against a folder of annotations.

    `official` reproduces TRAIL's scores exactly, including their quirks. A trace without gold
    errors scores 1 if its prediction is empty ("correct"), always 0 ("zero"), or is excluded
    ("leave_out"). Traces without a readable prediction count as empty, or are excluded with
    `leave_out_missing`. With `traces`, trivial predictors are scored for comparison. `gate` is the
    minimum joint F1 (official: joint accuracy), and `max_unscored` the share of traces that may
    lack a prediction.

    Returns a report with tables. Raises InputError for files that cannot be read or scored.
    """
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    how = Scoring(
        taxonomy=labels,
        without_errors=without_errors,
        missing="leave_out" if leave_out_missing else "empty",
        seed=seed,
    )
    truth = read_findings(gold, labels, watch, "gold")
    predicted = read_findings(findings, labels, watch, "findings")
    spans: dict[str, tuple[Span, ...]] = {}
    tokens: dict[str, int] = {}
    for run, _ in read_each(traces, watch) if traces else ():
        spans[run.id] = tuple(Span(id=s.id, parent_id=s.parent_id, kind=s.kind) for s in run.spans)
        tokens[run.id] = source_tokens(run)
    try:
        result = evaluate(truth, predicted, how, spans, tokens)
    except ValueError as error:
        raise InputError(str(error), str(gold)) from error
    if traces and not any(annotation.trace in spans for annotation in truth):
        watch.warn("none of these traces has gold annotations: the ids differ")
    if official and result.official is None:
        raise InputError("official scores are defined for TRAIL's categories only", "--taxonomy")
    coverage = result.scores.coverage
    lost, what = coverage.traces - coverage.answered, "traces have no readable prediction"
    gates = [unscored_gate(coverage.traces, lost, max_unscored, what)]
    if gate is not None and result.official is not None and official:
        gates.append(least_gate("joint", result.official.joint.mean, gate))
    elif gate is not None:
        joint = next(level for level in result.scores.levels if level.level == "joint")
        gates.append(least_gate("joint F1", joint.micro.f1.mean, gate))
    report = FindingsScoreReport(
        title="",
        tables=score_tables(result, official=official),
        notes=tuple(watch.notes),
        data=as_json(result),
        result=result,
    )
    return report.gated(*gates)


# -- tables ----------------------------------------------------------------------------------------


def score_tables(result: Evaluation, *, official: bool = False) -> tuple[Table, ...]:
    """Return the tables of `result`: the main scores first, then details.

    By default, these are scores that include precision, plus one table of official scores; with
    `official`, only official scores, with categories and correlations (none if they do not apply).
    Both include the trivial predictors.
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
        tables += map(_length, result.lengths)
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


def _beside(result: Evaluation) -> Table:
    rows = []
    for name, scores in [(_THIS, result.scores), *((b.name, b.scores) for b in result.beside)]:
        location, category, joint = (level.micro for level in scores.levels)
        levels = (location.f1, category.f1, joint.precision, joint.recall, joint.f1)
        rows.append(_PredictorRow(name, *levels, scores.predictions.mean, len(scores.per_trace)))
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


def _categories(scores: Scores) -> Table:
    rows = []
    for score in scores.categories:
        ratios = (score.pairs.precision, score.pairs.recall, score.f1)
        counts = (*vars(score.pairs).values(), *vars(score.traces).values())
        rows.append(_CategoryRow(score.category, *ratios, *counts))
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


def _grades(result: Evaluation) -> Table:
    rows = [
        _GradeRow(s.grade, s.pearson, s.error, s.constant, s.error.n, s.missing)
        for s in result.grades
    ]
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


def _official(result: Evaluation, figures: OfficialScores) -> Table:
    every = [(_THIS, figures)]
    if figures.skipped and result.penalised is not None:
        every.append((f"{_THIS}, missing as empty", result.penalised))
    every += [(b.name, b.official) for b in result.beside if b.official is not None]
    rows = [
        _OfficialRow(name, s.weighted_f1, s.location, s.joint, s.traces, sum(s.skipped.values()))
        for name, s in every
    ]
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


def _length(length: LengthScore) -> Table:
    columns = (
        Column("tokens", "tokens"),
        Column("mean", f"mean {length.score}", "precise"),
        Column("traces", "traces", "count"),
        Column("answered", "with a\nprediction", "count"),
    )
    rows: list[dict[str, Cell]] = []
    for part in length.bins:
        row: dict[str, Cell] = {
            "tokens": f"{part.low:,} to {part.high:,}",
            "mean": Estimate.of(part.score),
        }
        rows.append(row | {"traces": part.score.n, "answered": part.answered})
    notes = [f"Pearson {in_words(length.pearson)}, Spearman {in_words(length.spearman)}"]
    if length.unknown:
        notes.append(f"{length.unknown} traces of unknown length are excluded")
    key = f"length-{length.score.lower().replace(' ', '-')}"
    return Table(key, f"{length.score} against length", columns, tuple(rows), tuple(notes))


def in_words(interval: Interval) -> str:
    """Return "0.512 [0.401, 0.620]", or the mean and why there is no interval, or "n/a (why)"."""
    if interval.mean is None:
        return f"n/a ({interval.reason})" if interval.reason else "n/a"
    mean = f"{interval.mean:.3f}"
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return f"{mean} ({interval.reason})" if interval.reason else mean
    return f"{mean} [{interval.low:.3f}, {interval.high:.3f}]"
