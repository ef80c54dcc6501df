"""The default scorer: precision, recall and F1 of findings against gold, with intervals.

The official figures of TRAIL are recall only (see `official`); these also count what was said
wrongly. A prediction that is missing or unreadable is an empty one, and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.traces.tallies import (
    LEVELS,
    Claims,
    Level,
    Tally,
    by_category,
    claims,
    tally,
    total,
)
from agenteval.evaluators.traces.taxonomy import Taxonomy, built_in
from agenteval.evaluators.traces.tolerance import Nearness, Relation
from agenteval.records import Findings, Span
from agenteval.stats.bootstrap import Bootstrap, bootstrap_mean, bootstrap_sums
from agenteval.stats.interval import Interval

WithoutErrors = Literal["correct", "zero", "leave_out"]
Missing = Literal["empty", "leave_out"]
Part = Literal["precision", "recall", "f1"]
PARTS: tuple[Part, ...] = get_args(Part)

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scoring:
    """How to score.

    `without_errors`: a trace without gold errors is worth 1 where the prediction was made and is
    empty, else 0 (`correct`); always 0, as in the official scorer (`zero`); or is left out.
    `missing`: a prediction that is missing or unreadable counts as an empty one, or its trace is
    left out (as in the official scorer, which flatters finders that fail on long traces).
    `tolerance`: relations of spans that are hits beside equality; needs the spans of the traces.
    Intervals: bootstrap over traces, `resamples` draws from `seed`.
    """

    taxonomy: Taxonomy = field(default_factory=built_in)
    without_errors: WithoutErrors = "correct"
    missing: Missing = "empty"
    tolerance: tuple[Relation, ...] = ()
    seed: int = 0
    resamples: int = 2000

    def how(self) -> Bootstrap:
        """A bootstrap that begins at the seed."""
        return Bootstrap(np.random.default_rng(self.seed), self.resamples)


@dataclass(frozen=True)
class Case:
    """One trace: gold, what a finder said (None: no prediction), and its spans if at hand."""

    trace: str
    gold: Claims
    predicted: Claims | None
    status: str | None = None  # why there is no prediction, where there is none
    spans: Sequence[Span] | None = None


@dataclass(frozen=True)
class TraceScore:
    """One trace: counts by level and category; `worth` is its part in the macro average.

    `named` are the categories that gold and prediction name.
    """

    trace: str
    levels: Mapping[Level, Tally]
    categories: Mapping[str, Tally]
    worth: Mapping[Level, Mapping[Part, float | None]]
    named: tuple[frozenset[str], frozenset[str]]
    entries: int
    answered: bool


@dataclass(frozen=True)
class Measure:
    """Precision, recall and F1 in [0, 1], each with its interval over traces."""

    precision: Interval
    recall: Interval
    f1: Interval


@dataclass(frozen=True)
class LevelScore:
    """One level: `micro` over all errors, `macro` the mean over traces, and the counts."""

    level: Level
    micro: Measure
    macro: Measure
    counts: Tally


@dataclass(frozen=True)
class CategoryScore:
    """One category: pairs of span and category, and the traces it stands in."""

    category: str
    pairs: Tally
    traces: Tally
    f1: Interval


@dataclass(frozen=True)
class Coverage:
    """Gold traces, those with a readable prediction, and the others by reason."""

    traces: int
    answered: int
    lost: Mapping[str, int]
    without_errors: int
    left_out: int
    without_spans: int


@dataclass(frozen=True)
class Scores:
    """All figures of one finder. `unknown` labels by text: in gold, in predictions."""

    levels: tuple[LevelScore, ...]
    categories: tuple[CategoryScore, ...]
    coverage: Coverage
    per_trace: tuple[TraceScore, ...]
    predictions: Interval  # findings per trace, over the traces with a prediction
    unknown: tuple[Mapping[str, int], Mapping[str, int]]


def make_case(
    gold: Findings,
    predicted: Findings | None,
    taxonomy: Taxonomy,
    spans: Sequence[Span] | None = None,
) -> Case:
    """A case of two Findings. Raises ValueError where gold has a status: then nothing is gold."""
    if gold.status is not None:
        raise ValueError(f"{gold.trace}: gold is {gold.status} and cannot be scored against")
    truth = claims(gold, taxonomy)
    if predicted is None:
        return Case(gold.trace, truth, None, "missing", spans)
    if predicted.status is not None:
        return Case(gold.trace, truth, None, predicted.status, spans)
    return Case(gold.trace, truth, claims(predicted, taxonomy), None, spans)


def score(cases: Iterable[Case], how: Scoring | None = None) -> Scores:
    """Scores of one finder over `cases` (one per gold trace, in any order).

    The order of the cases changes nothing. Raises ValueError for two cases of one trace.
    """
    how = how or Scoring()
    every = sorted(cases, key=lambda case: case.trace)
    twice = [t for t, n in Counter(case.trace for case in every).items() if n > 1]
    if twice:
        raise ValueError(f"two cases of trace {twice[0]!r}")
    kept = [case for case in every if _kept(case, how)]
    per_trace = tuple(_trace_score(case, how) for case in kept)
    made = [float(one.entries) for one in per_trace if one.answered]
    return Scores(
        levels=tuple(_level(level, per_trace, how) for level in LEVELS),
        categories=_categories(per_trace, how),
        coverage=_coverage(every, len(kept), how),
        per_trace=per_trace,
        predictions=bootstrap_mean(made, how=how.how()),
        unknown=(
            _counts(case.gold.unknown for case in kept),
            _counts(case.predicted.unknown for case in kept if case.predicted is not None),
        ),
    )


def _kept(case: Case, how: Scoring) -> bool:
    if how.missing == "leave_out" and case.predicted is None:
        return False
    return not (how.without_errors == "leave_out" and not case.gold.entries)


def _coverage(cases: Sequence[Case], kept: int, how: Scoring) -> Coverage:
    lost = Counter(case.status or "missing" for case in cases if case.predicted is None)
    return Coverage(
        traces=len(cases),
        answered=len(cases) - sum(lost.values()),
        lost=dict(sorted(lost.items())),
        without_errors=sum(not case.gold.entries for case in cases),
        left_out=len(cases) - kept,
        without_spans=sum(case.spans is None for case in cases) if how.tolerance else 0,
    )


def _trace_score(case: Case, how: Scoring) -> TraceScore:
    near = Nearness(case.spans, how.tolerance) if how.tolerance and case.spans else None
    predicted = case.predicted or Claims({}, 0)
    levels = tally(case.gold, predicted, near)
    answered = case.predicted is not None
    return TraceScore(
        trace=case.trace,
        levels=levels,
        categories=by_category(case.gold, predicted, near),
        worth={level: _worth(levels[level], case.gold.entries, answered, how) for level in LEVELS},
        named=(case.gold.categories, predicted.categories),
        entries=predicted.entries,
        answered=answered,
    )


def _worth(
    counts: Tally, gold_entries: int, answered: bool, how: Scoring
) -> Mapping[Part, float | None]:
    """What one trace adds to the macro average; None where this level has no gold to meet."""
    if not gold_entries:
        right = how.without_errors == "correct" and answered and not counts.predicted
        return dict.fromkeys(PARTS, 1.0 if right else 0.0)
    if not counts.gold:
        return dict.fromkeys(PARTS, None)
    # silence about errors that are there is not precise: 0, as sklearn's zero_division=0
    return {
        "precision": counts.precision or 0.0,
        "recall": counts.recall or 0.0,
        "f1": counts.f1 or 0.0,
    }


def _level(level: Level, traces: Sequence[TraceScore], how: Scoring) -> LevelScore:
    counts = [one.levels[level] for one in traces]

    def macro(part: Part) -> Interval:
        values = [value for one in traces if (value := one.worth[level][part]) is not None]
        return bootstrap_mean(values, how=how.how())

    return LevelScore(
        level=level,
        micro=Measure(*(ratio(counts, part, how.how()) for part in PARTS)),
        macro=Measure(*(macro(part) for part in PARTS)),
        counts=total(counts),
    )


def ratio(counts: Sequence[Tally], part: Part, how: Bootstrap) -> Interval:
    """A ratio of sums over traces, resampled by traces; None where its denominator is 0."""
    parts = np.array([[c.hits, c.predicted, c.gold] for c in counts], dtype=np.float64)
    return bootstrap_sums(parts.reshape(-1, 3), _RATIOS[part], how=how)


def _precision(totals: _Floats) -> _Floats:
    return _divided(totals[:, 0], totals[:, 1])


def _recall(totals: _Floats) -> _Floats:
    return _divided(totals[:, 0], totals[:, 2])


def _f1(totals: _Floats) -> _Floats:
    return _divided(2 * totals[:, 0], totals[:, 1] + totals[:, 2])


def _divided(above: _Floats, below: _Floats) -> _Floats:
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=below > 0)
    return found


_RATIOS: dict[Part, Callable[[_Floats], _Floats]] = {
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
}


def _categories(traces: Sequence[TraceScore], how: Scoring) -> tuple[CategoryScore, ...]:
    """In the order of the taxonomy, then unknown labels; those that nobody named are left out."""
    named = {label for one in traces for label in one.categories}
    known = [leaf.name for leaf in how.taxonomy.leaves if leaf.name in named]
    scores = []
    for label in (*known, *sorted(named - set(known))):
        rows = [one.categories.get(label, Tally()) for one in traces]
        presence = total(_presence(label, one) for one in traces)
        f1 = ratio(rows, "f1", how.how())
        scores.append(CategoryScore(label, total(rows), presence, f1))
    return tuple(scores)


def _presence(label: str, one: TraceScore) -> Tally:
    gold, predicted = (label in names for names in one.named)
    return Tally(int(gold and predicted), int(predicted), int(gold))


def _counts(many: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for one in many:
        counts.update(one)
    return dict(sorted(counts.items()))
