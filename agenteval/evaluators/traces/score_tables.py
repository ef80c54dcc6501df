"""The figures of a Result as plain tables: title, columns, rows of text, notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agenteval.evaluators.traces.official import OfficialScores
from agenteval.evaluators.traces.scorer import Coverage, Scores
from agenteval.evaluators.traces.scoring import Beside, Result
from agenteval.evaluators.traces.tallies import Tally
from agenteval.stats.interval import Interval

THIS = "this result"


@dataclass(frozen=True)
class PlainTable:
    """A table of text; every row has as many cells as there are columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def score_tables(result: Result, *, official: bool = False) -> tuple[PlainTable, ...]:
    """What is printed of `result`, the most important first.

    By default the figures that count precision, and the official ones in one table; with
    `official` those alone, with their categories and correlations (none where they do not apply).
    The trivial predictors stand beside both.
    """
    figures = result.official
    if official:
        if figures is None:
            return (PlainTable("Official figures", (), (), result.notes),)
        tables = [_official(result, figures), _official_categories(figures), _pearson(figures)]
        return tuple(tables)
    tables = [_levels(result), _beside(result), _categories(result.scores)]
    if result.grades:
        tables.append(_grades(result))
    if figures is not None:
        tables.append(_official(result, figures))
    return (*tables, *_lengths(result))


def _levels(result: Result) -> PlainTable:
    rows = []
    for level in result.scores.levels:
        for over, measure in (("errors", level.micro), ("traces", level.macro)):
            figures = (measure.precision, measure.recall, measure.f1)
            counts = level.counts
            cells = (str(counts.hits), str(counts.predicted), str(counts.gold))
            rows.append(
                (
                    level.level,
                    over,
                    *map(shown, figures),
                    *(cells if over == "errors" else [""] * 3),
                )
            )
    columns = ("level", "over", "precision", "recall", "F1", "hits", "predicted", "gold")
    notes = [*_coverage(result.scores.coverage), *_how(result), *_unknown(result.scores)]
    return PlainTable("Findings against gold", columns, tuple(rows), (*notes, *result.notes))


def _coverage(coverage: Coverage) -> list[str]:
    notes = [f"{coverage.answered} of {coverage.traces} traces have a readable prediction"]
    if coverage.lost:
        lost = ", ".join(f"{n} {status}" for status, n in coverage.lost.items())
        notes[0] += f" ({lost})"
    if coverage.without_errors:
        notes.append(f"{coverage.without_errors} traces have no errors in gold")
    if coverage.left_out:
        notes.append(f"{coverage.left_out} traces are left out")
    return notes


def _how(result: Result) -> list[str]:
    how = result.how
    missing = {"empty": "count as empty", "leave_out": "are left out"}[how.missing]
    without = {
        "correct": "are worth 1 if the prediction is empty, else 0",
        "zero": "are worth 0",
        "leave_out": "are left out",
    }[how.without_errors]
    notes = [
        f"missing predictions {missing}; traces without errors {without} (mean over traces)",
        f"intervals: 95 %, bootstrap over traces, {how.resamples} resamples, seed {how.seed}",
    ]
    if how.tolerance:
        notes.append(f"hits: the span or one close to it ({', '.join(how.tolerance)}), one to one")
    return notes


def _unknown(scores: Scores) -> list[str]:
    notes = []
    for side, labels in zip(("gold", "predictions"), scores.unknown, strict=True):
        if labels:
            most = sorted(labels, key=lambda label: (-labels[label], label))
            some = ", ".join(f"{label!r} {labels[label]}" for label in most[:5])
            notes.append(f"{sum(labels.values())} labels in {side} are not in the taxonomy: {some}")
    return notes


def _beside(result: Result) -> PlainTable:
    columns = ("predictor", "location F1", "category F1", "joint precision", "joint recall",
               "joint F1", "findings per trace", "traces")  # fmt: skip
    rows = [_row(THIS, result.scores), *(_row(one.name, one.scores) for one in result.beside)]
    notes = ("over errors; the trivial predictors read nothing and know how frequent gold's "
             "categories are",)  # fmt: skip
    return PlainTable("Beside predictors that read nothing", columns, tuple(rows), notes)


def _row(name: str, scores: Scores) -> tuple[str, ...]:
    location, category, joint = (level.micro for level in scores.levels)
    figures = (location.f1, category.f1, joint.precision, joint.recall, joint.f1)
    said = scores.predictions.mean
    per_trace = "-" if said is None else f"{said:.1f}"
    return (name, *map(shown, figures), per_trace, str(len(scores.per_trace)))


def _categories(scores: Scores) -> PlainTable:
    columns = ("category", "precision", "recall", "F1", "hits", "predicted", "gold",
               "traces found", "traces predicted", "traces in gold")  # fmt: skip
    rows = tuple(
        (
            one.category,
            _number(one.pairs.precision),
            _number(one.pairs.recall),
            shown(one.f1),
            *_counts(one.pairs),
            *_counts(one.traces),
        )
        for one in scores.categories
    )
    return PlainTable("By category (pairs of span and category)", columns, rows)


def _counts(tally: Tally) -> tuple[str, str, str]:
    return str(tally.hits), str(tally.predicted), str(tally.gold)


def _grades(result: Result) -> PlainTable:
    columns = ("grade", "Pearson", "mean error", "of a constant", "traces", "missing")
    rows = tuple(
        (
            one.grade,
            shown(one.pearson),
            shown(one.error),
            _number(one.constant),
            str(one.error.n),
            str(one.missing),
        )
        for one in result.grades
    )
    notes = ("mean error in points; of a constant: the median of gold, given to every trace",)
    return PlainTable("Grades of whole traces", columns, rows, notes)


def _official(result: Result, figures: OfficialScores) -> PlainTable:
    columns = ("predictor", "category F1", "location", "joint", "traces", "skipped")
    rows = [_official_row(THIS, figures)]
    if figures.skipped and result.penalised is not None:
        rows.append(_official_row(f"{THIS}, missing as empty", result.penalised))
    rows += [_official_row(one.name, one.official) for one in _with_official(result.beside)]
    notes = [
        "official figures (TRAIL): recall only, skipped traces are not counted",
        "intervals: 95 %, bootstrap over traces (not part of the official scorer)",
    ]
    if figures.skipped:
        notes.append("skipped: " + _named(figures.skipped))
    return PlainTable("Official figures", columns, tuple(rows), (*notes, *result.notes))


def _with_official(beside: Iterable[Beside]) -> Iterable[Beside]:
    return (one for one in beside if one.official is not None)


def _official_row(name: str, figures: OfficialScores | None) -> tuple[str, ...]:
    assert figures is not None
    means = (figures.weighted_f1, figures.location, figures.joint)
    skipped = str(sum(figures.skipped.values()))
    return (name, *map(shown, means), str(figures.traces), skipped)


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))


def _official_categories(figures: OfficialScores) -> PlainTable:
    rows = tuple(
        (one.category, *(f"{v:.3f}" for v in (one.precision, one.recall, one.f1)), str(one.support))
        for one in figures.categories
        if one.support
    )
    columns = ("category", "precision", "recall", "F1", "traces")
    return PlainTable("Official figures by category (presence in a trace)", columns, rows)


def _pearson(figures: OfficialScores) -> PlainTable:
    rows = tuple(
        (name, f"{one.r:.3f}" if one.r is not None else f"n/a ({one.reason})", str(one.n))
        for name, one in figures.pearson.items()
    )
    notes = ("0, empty or no number is -1; predicted reliability is cut to an integer",)
    return PlainTable(
        "Official correlations of grades", ("grade", "Pearson", "traces"), rows, notes
    )


def _lengths(result: Result) -> list[PlainTable]:
    tables = []
    for one in result.lengths:
        rows = tuple(
            (
                f"{bin_.low:,} to {bin_.high:,}",
                shown(bin_.score),
                str(bin_.traces),
                "-" if bin_.answered is None else str(bin_.answered),
            )
            for bin_ in one.bins
        )
        notes = [f"Pearson {shown(one.pearson)}, Spearman {shown(one.spearman)}"]
        if one.unknown:
            notes.append(f"{one.unknown} traces of unknown length are left out")
        columns = ("tokens", f"mean {one.score}", "traces", "with a prediction")
        tables.append(PlainTable(f"{one.score} against length", columns, rows, tuple(notes)))
    return tables


def shown(interval: Interval) -> str:
    """ "0.512 [0.401, 0.620]", or the mean and why there is no interval, or "n/a (reason)"."""
    if interval.mean is None:
        return f"n/a ({interval.reason})" if interval.reason else "n/a"
    mean = f"{interval.mean:.3f}"
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return f"{mean} ({interval.reason})" if interval.reason else mean
    return f"{mean} [{interval.low:.3f}, {interval.high:.3f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
