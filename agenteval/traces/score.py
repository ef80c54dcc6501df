"""Score findings against gold: precision, recall and F1 with intervals.

TRAIL's official scores are recall only (see `official`); these also count wrong findings. A missing
or unreadable prediction counts as empty.

There are three levels: `location` (the spans), `category` (the categories anywhere in the trace)
and `joint` (pairs of span and category). Duplicates count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Findings, Span
from agenteval.stats.bootstrap import Bootstrap, bootstrap_mean, bootstrap_sums
from agenteval.stats.interval import Interval
from agenteval.traces.taxonomy import Taxonomy, built_in

Level = Literal["location", "category", "joint"]
LEVELS: tuple[Level, ...] = get_args(Level)
Part = Literal["precision", "recall", "f1"]
PARTS: tuple[Part, ...] = get_args(Part)
_NO_SPANS: frozenset[str] = frozenset()

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scoring:
    """How to score.

    `without_errors`: a trace without gold errors scores 1 if the prediction is present and empty,
    else 0 (`correct`); always 0, as in the official scorer (`zero`); or is excluded. `missing`: a
    missing or unreadable prediction counts as empty, or its trace is excluded (as in the official
    scorer, which favours finders that fail on long traces). Intervals are bootstrap intervals over
    traces, with `resamples` draws from `seed`.
    """

    taxonomy: Taxonomy = field(default_factory=built_in)
    without_errors: Literal["correct", "zero", "leave_out"] = "correct"
    missing: Literal["empty", "leave_out"] = "empty"
    seed: int = 0
    resamples: int = 2000

    def bootstrap(self) -> Bootstrap:
        """Return a freshly seeded bootstrap."""
        return Bootstrap(np.random.default_rng(self.seed), self.resamples)


@dataclass(frozen=True)
class LabelSets:
    """The spans of each category in one trace.

    Findings without a category are under "", those without a location have the span "". `entries`
    counts the findings; `unknown` counts labels that are not in the taxonomy, which become their
    own categories. Sets may be shared, so a predictor that marks every span with 20 categories
    costs no more than one with a single category.
    """

    spans: Mapping[str, frozenset[str]]
    entries: int
    unknown: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, findings: Findings, taxonomy: Taxonomy) -> LabelSets:
        """Return the sets of `findings`; labels match names and aliases, never substrings."""
        spans: dict[str, set[str]] = {}
        unknown: Counter[str] = Counter()
        for finding in findings.findings:
            leaf = taxonomy.find(finding.category)
            label = leaf.name if leaf else " ".join(finding.category.casefold().split())
            if leaf is None and label:
                unknown[label] += 1
            spans.setdefault(label, set()).add(finding.span)
        frozen = {label: frozenset(ids) for label, ids in spans.items()}
        return cls(frozen, len(findings.findings), dict(unknown))

    @property
    def locations(self) -> frozenset[str]:
        """All spans (including "" for an error without a location)."""
        return _NO_SPANS.union(*{id(spans): spans for spans in self.spans.values()}.values())

    @property
    def categories(self) -> frozenset[str]:
        """All categories."""
        return frozenset(self.spans) - {""}


@dataclass(frozen=True)
class ScoreCounts:
    """Counts of one level over one or more traces; a ratio is None if its denominator is 0."""

    hits: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        return ScoreCounts(
            self.hits + other.hits, self.predicted + other.predicted, self.gold + other.gold
        )

    @property
    def precision(self) -> float | None:
        """hits / predicted."""
        return self.hits / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """hits / gold."""
        return self.hits / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """2 hits / (predicted + gold)."""
        total = self.predicted + self.gold
        return 2 * self.hits / total if total else None


@dataclass(frozen=True)
class ScoredTrace:
    """The labels of gold and of a finder (None without a prediction, with the reason in `status`),
    and the spans of the trace if known."""

    trace: str
    gold: LabelSets
    predicted: LabelSets | None
    status: str | None = None
    spans: Sequence[Span] | None = None

    @classmethod
    def of(
        cls,
        gold: Findings,
        predicted: Findings | None,
        taxonomy: Taxonomy,
        spans: Sequence[Span] | None = None,
    ) -> ScoredTrace:
        """Compare two Findings. Raises ValueError if gold has a status, and thus no findings."""
        if gold.status is not None:
            raise ValueError(f"{gold.trace}: gold is {gold.status} and cannot be scored against")
        status = "missing" if predicted is None else predicted.status
        labels = LabelSets.of(predicted, taxonomy) if predicted and status is None else None
        return cls(gold.trace, LabelSets.of(gold, taxonomy), labels, status, spans)


@dataclass(frozen=True)
class TraceScore:
    """Counts of one trace by level, of pairs by category, and of presence by category; `worth` is
    its contribution to the macro average."""

    trace: str
    levels: Mapping[Level, ScoreCounts]
    categories: Mapping[str, ScoreCounts]
    presence: Mapping[str, ScoreCounts]
    worth: Mapping[Level, Mapping[Part, float | None]]
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
    """Scores of one level: `micro` over all errors, `macro` the mean over traces, and the
    counts."""

    level: Level
    micro: Measure
    macro: Measure
    counts: ScoreCounts


@dataclass(frozen=True)
class CategoryScore:
    """Scores of one category: for pairs of span and category, and for traces with the category."""

    category: str
    pairs: ScoreCounts
    traces: ScoreCounts
    f1: Interval


@dataclass(frozen=True)
class Coverage:
    """Numbers of gold traces, of those with a readable prediction, and of the others by reason."""

    traces: int
    answered: int
    lost: Mapping[str, int]
    without_errors: int
    left_out: int


@dataclass(frozen=True)
class Scores:
    """All scores of one finder. `unknown` counts unknown labels in gold and in predictions."""

    levels: tuple[LevelScore, ...]
    categories: tuple[CategoryScore, ...]
    coverage: Coverage
    per_trace: tuple[TraceScore, ...]
    predictions: Interval  # findings per trace, over the traces with a prediction
    unknown: tuple[Mapping[str, int], Mapping[str, int]]


def score(cases: Iterable[ScoredTrace], how: Scoring | None = None) -> Scores:
    """Return the scores of one finder over `cases`, one per gold trace, in any order.

    Raises ValueError for two cases of one trace.
    """
    how = how or Scoring()
    ordered = sorted(cases, key=lambda case: case.trace)
    for case, after in pairwise(ordered):
        if case.trace == after.trace:
            raise ValueError(f"two cases of trace {case.trace!r}")
    scored = [
        case
        for case in ordered
        if not (how.missing == "leave_out" and case.predicted is None)
        and not (how.without_errors == "leave_out" and not case.gold.entries)
    ]
    per_trace = tuple(_trace_score(case, how) for case in scored)
    lost = Counter(case.status or "missing" for case in ordered if case.predicted is None)
    unknown_gold, unknown_predicted = Counter[str](), Counter[str]()
    for case in scored:
        unknown_gold.update(case.gold.unknown)
        unknown_predicted.update(case.predicted.unknown if case.predicted else {})
    entries = [float(trace.entries) for trace in per_trace if trace.answered]
    return Scores(
        levels=tuple(_level(level, per_trace, how) for level in LEVELS),
        categories=tuple(_categories(per_trace, how)),
        coverage=Coverage(
            traces=len(ordered),
            answered=len(ordered) - lost.total(),
            lost=dict(sorted(lost.items())),
            without_errors=sum(not case.gold.entries for case in ordered),
            left_out=len(ordered) - len(scored),
        ),
        per_trace=per_trace,
        predictions=bootstrap_mean(entries, how=how.bootstrap()),
        unknown=(dict(sorted(unknown_gold.items())), dict(sorted(unknown_predicted.items()))),
    )


def _trace_score(case: ScoredTrace, how: Scoring) -> TraceScore:
    """Score one trace. Gold errors without a location are ignored for location and joint, those
    without a category for category and joint. A prediction that lacks either is wrong."""
    gold, predicted = case.gold, case.predicted or LabelSets({}, 0)

    def tally(truth: frozenset[str], labels: frozenset[str]) -> ScoreCounts:
        truth = truth - {""}
        return ScoreCounts(len(truth & labels), len(labels), len(truth))

    pairs, presence = {}, {}
    for label in sorted(gold.categories | predicted.categories):
        truth, flagged = (side.spans.get(label, _NO_SPANS) for side in (gold, predicted))
        pairs[label] = tally(truth, flagged)
        presence[label] = ScoreCounts(bool(truth and flagged), bool(flagged), bool(truth))
    without_category = ScoreCounts(predicted=len(predicted.spans.get("", _NO_SPANS)))
    levels: dict[Level, ScoreCounts] = {
        "location": tally(gold.locations, predicted.locations),
        "category": _total(presence.values()),
        "joint": _total([*pairs.values(), without_category]),
    }

    def worth(counts: ScoreCounts) -> dict[Part, float | None]:
        """Return the trace's share of the macro average, or None if this level has no gold."""
        if not gold.entries:
            answered = case.predicted is not None
            right = how.without_errors == "correct" and answered and not counts.predicted
            return dict.fromkeys(PARTS, 1.0 if right else 0.0)
        if not counts.gold:
            return dict.fromkeys(PARTS, None)
        # Precision without findings is 0 if there are gold errors (sklearn's zero_division=0).
        return {part: getattr(counts, part) or 0.0 for part in PARTS}

    return TraceScore(
        trace=case.trace,
        levels=levels,
        categories=pairs,
        presence=presence,
        worth={level: worth(counts) for level, counts in levels.items()},
        entries=predicted.entries,
        answered=case.predicted is not None,
    )


def _level(level: Level, traces: Sequence[TraceScore], how: Scoring) -> LevelScore:
    counts = [trace.levels[level] for trace in traces]
    worth = {
        part: [value for trace in traces if (value := trace.worth[level][part]) is not None]
        for part in PARTS
    }
    return LevelScore(
        level=level,
        micro=Measure(*(_ratio(counts, part, how) for part in PARTS)),
        macro=Measure(*(bootstrap_mean(worth[part], how=how.bootstrap()) for part in PARTS)),
        counts=_total(counts),
    )


def _categories(traces: Sequence[TraceScore], how: Scoring) -> Iterator[CategoryScore]:
    """Yield used categories in taxonomy order, then unknown labels."""
    labels = {label for trace in traces for label in trace.categories}
    ordered = [leaf.name for leaf in how.taxonomy.leaves if leaf.name in labels]
    for label in (*ordered, *sorted(labels - set(ordered))):
        pairs = [trace.categories.get(label, ScoreCounts()) for trace in traces]
        presence = [trace.presence.get(label, ScoreCounts()) for trace in traces]
        f1 = _ratio(pairs, "f1", how)
        yield CategoryScore(label, _total(pairs), _total(presence), f1)


def _total(counts: Iterable[ScoreCounts]) -> ScoreCounts:
    return sum(counts, ScoreCounts())


# Numerator and denominator, as weights of hits, predicted, gold
_RATIOS: Mapping[Part, tuple[_Floats, _Floats]] = {
    "precision": (np.array([1.0, 0, 0]), np.array([0.0, 1, 0])),
    "recall": (np.array([1.0, 0, 0]), np.array([0.0, 0, 1])),
    "f1": (np.array([2.0, 0, 0]), np.array([0.0, 1, 1])),
}


def _ratio(counts: Sequence[ScoreCounts], part: Part, how: Scoring) -> Interval:
    """Bootstrap a ratio of sums over traces; None if its denominator is 0."""
    parts = np.array([[c.hits, c.predicted, c.gold] for c in counts], dtype=np.float64)
    above, below = _RATIOS[part]

    def statistic(totals: _Floats) -> _Floats:
        denominator = totals @ below
        ratios: _Floats = np.full(len(totals), np.nan)
        np.divide(totals @ above, denominator, out=ratios, where=denominator > 0)
        return ratios

    return bootstrap_sums(parts.reshape(-1, 3), statistic, how=how.bootstrap())
