"""One finder against gold: precision, recall and F1 with intervals, and what belongs beside them.

The official figures of TRAIL are recall only (see `official`); these also count what was said
wrongly. A prediction that is missing or unreadable is an empty one, and is counted. Naming every
LLM span with the commonest kinds beats every published model on TRAIL's location and joint
accuracy: predictors that read nothing stand beside every result.

Three levels: `location`, the spans named; `category`, the kinds named anywhere in the trace;
`joint`, the pairs of span and kind. Duplicates count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise, product
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Findings, Span
from agenteval.records.run import SpanKind
from agenteval.stats.bootstrap import Bootstrap, bootstrap_mean, bootstrap_sums
from agenteval.stats.interval import Interval
from agenteval.traces.annotation_files import Pairing, pair_up
from agenteval.traces.annotations import Annotation
from agenteval.traces.grades import (
    GradeScore,
    LengthScore,
    against_length,
    score_grades,
)
from agenteval.traces.official import (
    CATEGORIES,
    NOTHING,
    AnnotationSets,
    OfficialCase,
    OfficialScores,
    normalize,
    official_case,
    score_official,
)
from agenteval.traces.taxonomy import Taxonomy, built_in

Level = Literal["location", "category", "joint"]
LEVELS: tuple[Level, ...] = get_args(Level)
Part = Literal["precision", "recall", "f1"]
PARTS: tuple[Part, ...] = get_args(Part)
GOLD = "gold itself (upper bound)"
_NO_SPANS: frozenset[str] = frozenset()

_Floats = NDArray[np.float64]
_Prediction = Callable[[OfficialCase], AnnotationSets | None]


@dataclass(frozen=True)
class Scoring:
    """How to score.

    `without_errors`: a trace without gold errors is worth 1 where the prediction was made and is
    empty, else 0 (`correct`); always 0, as in the official scorer (`zero`); or is left out.
    `missing`: a prediction that is missing or unreadable counts as an empty one, or its trace is
    left out (as in the official scorer, which flatters finders that fail on long traces).
    Intervals: bootstrap over traces, `resamples` draws from `seed`.
    """

    taxonomy: Taxonomy = field(default_factory=built_in)
    without_errors: Literal["correct", "zero", "leave_out"] = "correct"
    missing: Literal["empty", "leave_out"] = "empty"
    seed: int = 0
    resamples: int = 2000

    def how(self) -> Bootstrap:
        """A bootstrap that begins at the seed."""
        return Bootstrap(np.random.default_rng(self.seed), self.resamples)


@dataclass(frozen=True)
class LabelSets:
    """What is said of one trace.

    `spans` of each category by its name; findings without a category stand under "", those
    without a place have the span "". `entries` counts the findings as they were given. `unknown`
    counts labels that the taxonomy does not know; they are categories of their own. Sets may be
    shared: a predictor that names every span 20 times costs no more than one that does once.
    """

    spans: Mapping[str, frozenset[str]]
    entries: int
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def locations(self) -> frozenset[str]:
        """All spans named ("" among them where an error has no place)."""
        return _NO_SPANS.union(*{id(spans): spans for spans in self.spans.values()}.values())

    @property
    def categories(self) -> frozenset[str]:
        """All categories named."""
        return frozenset(self.spans) - {""}


def claims(findings: Findings, taxonomy: Taxonomy) -> LabelSets:
    """The sets of `findings`; labels by the taxonomy's names and aliases, never by substrings."""
    spans: dict[str, set[str]] = {}
    unknown: Counter[str] = Counter()
    for finding in findings.findings:
        leaf = taxonomy.find(finding.category)
        label = leaf.name if leaf else " ".join(finding.category.casefold().split())
        if leaf is None and label:
            unknown[label] += 1
        spans.setdefault(label, set()).add(finding.span)
    named = {label: frozenset(of) for label, of in spans.items()}
    return LabelSets(named, len(findings.findings), dict(unknown))


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """Counts of one level in one or more traces; a ratio is None where its denominator is 0."""

    hits: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        return ScoreCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

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
    """One trace: gold, what a finder said (None: no prediction), and its spans if at hand."""

    trace: str
    gold: LabelSets
    predicted: LabelSets | None
    status: str | None = None  # why there is no prediction, where there is none
    spans: Sequence[Span] | None = None


@dataclass(frozen=True)
class TraceScore:
    """One trace: counts by level, of pairs by category, and of presence by category; `worth` is
    its part in the macro average."""

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
    """One level: `micro` over all errors, `macro` the mean over traces, and the counts."""

    level: Level
    micro: Measure
    macro: Measure
    counts: ScoreCounts


@dataclass(frozen=True)
class CategoryScore:
    """One category: pairs of span and category, and the traces it stands in."""

    category: str
    pairs: ScoreCounts
    traces: ScoreCounts
    f1: Interval


@dataclass(frozen=True)
class Coverage:
    """Gold traces, those with a readable prediction, and the others by reason."""

    traces: int
    answered: int
    lost: Mapping[str, int]
    without_errors: int
    left_out: int


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
) -> ScoredTrace:
    """A case of two Findings. Raises ValueError where gold has a status: then nothing is gold."""
    if gold.status is not None:
        raise ValueError(f"{gold.trace}: gold is {gold.status} and cannot be scored against")
    truth = claims(gold, taxonomy)
    status = "missing" if predicted is None else predicted.status
    if predicted is None or status is not None:
        return ScoredTrace(gold.trace, truth, None, status, spans)
    return ScoredTrace(gold.trace, truth, claims(predicted, taxonomy), None, spans)


def score(cases: Iterable[ScoredTrace], how: Scoring | None = None) -> Scores:
    """Scores of one finder over `cases` (one per gold trace, in any order).

    The order of the cases changes nothing. Raises ValueError for two cases of one trace.
    """
    how = how or Scoring()
    every = sorted(cases, key=lambda case: case.trace)
    for case, after in pairwise(every):
        if case.trace == after.trace:
            raise ValueError(f"two cases of trace {case.trace!r}")
    scored = [
        case
        for case in every
        if not (how.missing == "leave_out" and case.predicted is None)
        and not (how.without_errors == "leave_out" and not case.gold.entries)
    ]
    per_trace = tuple(_trace_score(case, how) for case in scored)
    lost = Counter(case.status or "missing" for case in every if case.predicted is None)
    unknown_gold, unknown_predicted = Counter[str](), Counter[str]()
    for case in scored:
        unknown_gold.update(case.gold.unknown)
        unknown_predicted.update(case.predicted.unknown if case.predicted else {})
    return Scores(
        levels=tuple(_level(level, per_trace, how) for level in LEVELS),
        categories=tuple(_categories(per_trace, how)),
        coverage=Coverage(
            traces=len(every),
            answered=len(every) - lost.total(),
            lost=dict(sorted(lost.items())),
            without_errors=sum(not case.gold.entries for case in every),
            left_out=len(every) - len(scored),
        ),
        per_trace=per_trace,
        predictions=bootstrap_mean(
            [float(trace.entries) for trace in per_trace if trace.answered], how=how.how()
        ),
        unknown=(dict(sorted(unknown_gold.items())), dict(sorted(unknown_predicted.items()))),
    )


def _trace_score(case: ScoredTrace, how: Scoring) -> TraceScore:
    """Counts of one trace. Gold errors without a place are no gold for location and joint, those
    without a category none for category and joint; a prediction without either is a wrong one."""
    gold, predicted = case.gold, case.predicted or LabelSets({}, 0)

    def tally(truth: frozenset[str], named: frozenset[str]) -> ScoreCounts:
        truth = truth - {""}
        return ScoreCounts(len(truth & named), len(named), len(truth))

    pairs, presence = {}, {}
    for label in sorted(gold.categories | predicted.categories):
        truth, named = (side.spans.get(label) for side in (gold, predicted))
        pairs[label] = tally(truth or _NO_SPANS, named or _NO_SPANS)
        presence[label] = ScoreCounts(bool(truth and named), bool(named), bool(truth))
    without_kind = ScoreCounts(predicted=len(predicted.spans.get("", _NO_SPANS)))
    levels: dict[Level, ScoreCounts] = {
        "location": tally(gold.locations, predicted.locations),
        "category": _total(presence.values()),
        "joint": _total([*pairs.values(), without_kind]),
    }
    return TraceScore(
        trace=case.trace,
        levels=levels,
        categories=pairs,
        presence=presence,
        worth={level: _worth(levels[level], case, how) for level in LEVELS},
        entries=predicted.entries,
        answered=case.predicted is not None,
    )


def _worth(counts: ScoreCounts, case: ScoredTrace, how: Scoring) -> Mapping[Part, float | None]:
    """What one trace adds to the macro average; None where this level has no gold to meet."""
    if not case.gold.entries:
        answered = case.predicted is not None
        right = how.without_errors == "correct" and answered and not counts.predicted
        return dict.fromkeys(PARTS, 1.0 if right else 0.0)
    if not counts.gold:
        return dict.fromkeys(PARTS, None)
    # silence about errors that are there is not precise: 0, as sklearn's zero_division=0
    return {part: getattr(counts, part) or 0.0 for part in PARTS}


def _level(level: Level, traces: Sequence[TraceScore], how: Scoring) -> LevelScore:
    counts = [trace.levels[level] for trace in traces]
    worth = {
        part: [value for trace in traces if (value := trace.worth[level][part]) is not None]
        for part in PARTS
    }
    return LevelScore(
        level=level,
        micro=Measure(*(_ratio(counts, part, how) for part in PARTS)),
        macro=Measure(*(bootstrap_mean(worth[part], how=how.how()) for part in PARTS)),
        counts=_total(counts),
    )


def _categories(traces: Sequence[TraceScore], how: Scoring) -> Iterator[CategoryScore]:
    """In the order of the taxonomy, then unknown labels; those that nobody named are left out."""
    named = {label for trace in traces for label in trace.categories}
    ordered = [leaf.name for leaf in how.taxonomy.leaves if leaf.name in named]
    for label in (*ordered, *sorted(named - set(ordered))):
        pairs = [trace.categories.get(label, ScoreCounts()) for trace in traces]
        presence = [trace.presence.get(label, ScoreCounts()) for trace in traces]
        f1 = _ratio(pairs, "f1", how)
        yield CategoryScore(label, _total(pairs), _total(presence), f1)


def _total(counts: Iterable[ScoreCounts]) -> ScoreCounts:
    return sum(counts, ScoreCounts())


def _ratio(counts: Sequence[ScoreCounts], part: Part, how: Scoring) -> Interval:
    """A ratio of sums over traces, resampled by traces; None where its denominator is 0."""
    parts = np.array([[c.hits, c.predicted, c.gold] for c in counts], dtype=np.float64)
    above, below = _RATIOS[part]

    def statistic(totals: _Floats) -> _Floats:
        denominator = totals @ below
        ratios: _Floats = np.full(len(totals), np.nan)
        np.divide(totals @ above, denominator, out=ratios, where=denominator > 0)
        return ratios

    return bootstrap_sums(parts.reshape(-1, 3), statistic, how=how.how())


# numerator and denominator as weights of hits, predicted, gold
_RATIOS: Mapping[Part, tuple[_Floats, _Floats]] = {
    "precision": (np.array([1.0, 0, 0]), np.array([0.0, 1, 0])),
    "recall": (np.array([1.0, 0, 0]), np.array([0.0, 0, 1])),
    "f1": (np.array([2.0, 0, 0]), np.array([0.0, 1, 1])),
}


# -- beside predictors that read nothing -----------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """Names every span of some kinds with every one of some categories."""

    name: str
    kinds: tuple[SpanKind, ...]
    categories: tuple[str, ...]

    def claims(self, spans: Sequence[Span]) -> LabelSets:
        """Return what it says of a trace; the sets of all categories are one and the same."""
        named = frozenset(span.id for span in spans if span.kind in self.kinds)
        labels = self.categories if named else ()
        return LabelSets(dict.fromkeys(labels, named), len(named) * len(labels))

    def official(self, spans: Sequence[Span]) -> AnnotationSets:
        """Return the same for the official scorer."""
        named = self.claims(spans)
        labels = frozenset(map(normalize, named.categories))
        return AnnotationSets(named.locations, frozenset(product(named.locations, labels)), labels)


def trivial(gold: Iterable[LabelSets], taxonomy: Taxonomy) -> tuple[Baseline, ...]:
    """Return the three predictors, the last two with the commonest categories of the gold given.

    Frequency counts pairs of span and category; ties go by the order of the taxonomy. They know
    the gold's frequencies, which a finder does not: their figures are a little too good.
    """
    every = tuple(leaf.name for leaf in taxonomy.assigned)
    counts: Counter[str] = Counter()
    for truth in gold:
        counts.update({label: len(spans) for label, spans in truth.spans.items() if label in every})
    common = tuple(sorted((c for c in every if counts[c]), key=lambda c: -counts[c]))
    chosen = [common[:most] for most in (8, 3) if common]
    return (
        Baseline(f"LLM and tool spans x {len(every)}", ("llm", "tool"), every),
        *(Baseline(f"LLM spans x {len(some)} commonest", ("llm",), some) for some in chosen),
    )


@dataclass(frozen=True)
class Beside:
    """A predictor that reads nothing, or gold itself, by both scorers."""

    name: str
    scores: Scores
    official: OfficialScores | None


# -- everything ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """All figures of one finder.

    `official` is None where the taxonomy is not TRAIL's; `penalised` are the same figures with
    missing and unreadable predictions as empty ones. `beside` holds the trivial predictors
    (only with the spans of traces) and gold itself. `notes` say what was left out and why.
    """

    how: Scoring
    scores: Scores
    grades: tuple[GradeScore, ...]
    official: OfficialScores | None
    penalised: OfficialScores | None
    beside: tuple[Beside, ...]
    lengths: tuple[LengthScore, ...]
    notes: tuple[str, ...]


def evaluate(
    gold: Sequence[Annotation],
    predicted: Sequence[Annotation],
    how: Scoring | None = None,
    spans: Mapping[str, Sequence[Span]] | None = None,
    tokens: Mapping[str, int] | None = None,
) -> Result:
    """Return the figures of `predicted` against `gold`.

    `spans` by trace serve the trivial predictors, `tokens` by trace the scores against length.
    Gold that could not be read is left out and reported in the notes.

    Raises ValueError where no gold is readable or two gold files annotate one trace.
    """
    how, spans = how or Scoring(), spans or {}
    pairing = pair_up(gold, predicted)
    readable = [
        (g.findings, p.findings if p else None)
        for g, p in pairing.pairs
        if g.findings.status is None
    ]
    if not readable:
        raise ValueError("no readable gold annotation")
    cases = [make_case(g, p, how.taxonomy, spans.get(g.trace)) for g, p in readable]
    applies = {leaf.name for leaf in how.taxonomy.leaves} <= set(CATEGORIES)
    texts = [official_case(g.trace, g.text, p.text if p else None) for g, p in pairing.pairs]
    in_form = [case for case in texts if case.gold]

    def official(
        some: Iterable[OfficialCase], prediction: _Prediction | None = None
    ) -> OfficialScores | None:
        """The official figures, with another prediction if one is given."""
        if not applies:
            return None
        if prediction is not None:
            some = [replace(case, predicted=prediction(case), skipped=None) for case in some]
        return score_official(some, seed=how.seed, resamples=how.resamples)

    def reading_nothing(baseline: Baseline) -> Beside:
        naming = [
            replace(case, predicted=baseline.claims(case.spans or ()), status=None)
            for case in with_spans
        ]
        seen = [case for case in in_form if case.trace in spans]
        figures = official(seen, lambda case: baseline.official(spans[case.trace]))
        return Beside(baseline.name, score(naming, how), figures)

    with_spans = [case for case in cases if case.spans is not None]
    baselines = trivial((case.gold for case in cases), how.taxonomy) if with_spans else ()
    beside = [*map(reading_nothing, baselines)]
    best = [replace(case, predicted=case.gold, status=None) for case in cases]
    beside.append(Beside(GOLD, score(best, how), official(in_form, lambda case: case.gold)))
    scores = score(cases, how)
    return Result(
        how=how,
        scores=scores,
        grades=score_grades(readable, how.how),
        official=official(texts),
        penalised=official(in_form, lambda case: case.predicted or NOTHING),
        beside=tuple(beside),
        lengths=tuple(_lengths(scores, tokens, how)) if tokens else (),
        notes=tuple(_notes(pairing, cases, applies=applies)),
    )


def _lengths(scores: Scores, tokens: Mapping[str, int], how: Scoring) -> Iterator[LengthScore]:
    """F1 of location, category and joint per trace against length."""
    answered = {score.trace: score.answered for score in scores.per_trace}
    for level in LEVELS:
        worth = {trace.trace: trace.worth[level]["f1"] for trace in scores.per_trace}
        values = {trace: value for trace, value in worth.items() if value is not None}
        yield against_length(f"{level} F1", values, tokens, answered, how.how)


def _notes(pairing: Pairing, cases: Sequence[ScoredTrace], *, applies: bool) -> Iterator[str]:
    if unread := [g.name for g, _ in pairing.pairs if g.findings.status is not None]:
        yield f"{len(unread)} gold files could not be read: {_some(unread)}"
    if without_gold := [p.name for p in pairing.without_gold]:
        yield f"{len(without_gold)} predictions have no gold: {_some(without_gold)}"
    ids = [(case, {span.id for span in case.spans}) for case in cases if case.spans is not None]
    if not ids:
        yield "no traces given: the trivial predictors cannot be made"
    elif len(ids) < len(cases):
        yield (
            f"{len(cases) - len(ids)} of {len(cases)} traces have no spans here: the trivial "
            "predictors are scored on the others"
        )
    if lost := sum(len(case.gold.locations - {""} - spans) for case, spans in ids):
        yield f"{lost} places in gold are no span of their trace: they cannot be found"
    if not applies:
        yield "no official figures: they are for TRAIL's categories only"


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def as_json(result: Result) -> dict[str, Any]:
    """All numbers of `result` as JSON holds them: None for what is unknown, no NaN.

    Figures of single traces are given for the finder only, not for what stands beside it.
    """
    figures: dict[str, Any] = _plain(result)
    for predictor in figures["beside"]:
        predictor["scores"].pop("per_trace")
        if predictor["official"] is not None:
            predictor["official"].pop("per_trace")
    return figures


def _plain(value: Any) -> Any:
    if isinstance(value, Taxonomy):
        return {"name": value.name, "version": value.version, "sha256": value.sha256}
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
