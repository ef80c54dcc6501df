"""Score one finder against gold and compare it with trivial predictors.

Marking every LLM span with the most common categories beats every published model on TRAIL's
location and joint accuracy, so trivial predictors are scored with every result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.records import GRADES, Findings, Span
from agenteval.records.run import SpanKind
from agenteval.stats.bootstrap import Bootstrap, bootstrap_interval, bootstrap_mean
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval
from agenteval.traces.annotations import OVERALL, Annotation, Pairing, pair_up
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
from agenteval.traces.score import LEVELS, LabelSets, ScoredTrace, Scores, Scoring, score
from agenteval.traces.taxonomy import Taxonomy

GOLD = "gold itself (upper bound)"
_Prediction = Callable[[OfficialCase], AnnotationSets | None]
_Floats = NDArray[np.float64]
How = Callable[[], Bootstrap]  # returns a freshly seeded bootstrap
_BINS = 4


@dataclass(frozen=True)
class Baseline:
    """A trivial predictor: marks every span of some kinds with each of some categories."""

    name: str
    kinds: tuple[SpanKind, ...]
    categories: tuple[str, ...]

    def labels(self, spans: Sequence[Span]) -> LabelSets:
        """Return its labels for a trace; all categories share one set of spans."""
        ids = frozenset(span.id for span in spans if span.kind in self.kinds)
        labels = self.categories if ids else ()
        return LabelSets(dict.fromkeys(labels, ids), len(ids) * len(labels))

    def official(self, spans: Sequence[Span]) -> AnnotationSets:
        """Return its labels for the official scorer."""
        sets = self.labels(spans)
        labels = frozenset(map(normalize, sets.categories))
        return AnnotationSets(sets.locations, frozenset(product(sets.locations, labels)), labels)


def baselines(gold: Iterable[LabelSets], taxonomy: Taxonomy) -> tuple[Baseline, ...]:
    """Return the three predictors, the last two with the most common categories in gold.

    Frequency counts pairs of span and category; ties follow the order of the taxonomy. The
    predictors know the frequencies in gold, unlike a finder, so their scores are slightly too high.
    """
    names = tuple(leaf.name for leaf in taxonomy.assigned)
    counts: Counter[str] = Counter()
    for truth in gold:
        counts.update({label: len(spans) for label, spans in truth.spans.items() if label in names})
    common = tuple(sorted((c for c in names if counts[c]), key=lambda c: -counts[c]))
    chosen = [common[:most] for most in (8, 3) if common]
    return (
        Baseline(f"LLM and tool spans x {len(names)}", ("llm", "tool"), names),
        *(Baseline(f"LLM spans x {len(some)} most common", ("llm",), some) for some in chosen),
    )


@dataclass(frozen=True)
class ReferenceScore:
    """Scores of a trivial predictor, or of gold itself, by both scorers."""

    name: str
    scores: Scores
    official: OfficialScores | None


@dataclass(frozen=True)
class Evaluation:
    """All scores of one finder.

    `official` is None if the taxonomy is not TRAIL's; `penalised` has the same scores with missing
    and unreadable predictions counted as empty. `beside` has the trivial predictors (only if spans
    are available) and gold itself. `notes` list what was excluded and why.
    """

    how: Scoring
    scores: Scores
    grades: tuple[GradeScore, ...]
    official: OfficialScores | None
    penalised: OfficialScores | None
    beside: tuple[ReferenceScore, ...]
    lengths: tuple[LengthScore, ...]
    notes: tuple[str, ...]


def evaluate(
    gold: Sequence[Annotation],
    predicted: Sequence[Annotation],
    how: Scoring | None = None,
    spans: Mapping[str, Sequence[Span]] | None = None,
    tokens: Mapping[str, int] | None = None,
) -> Evaluation:
    """Score `predicted` against `gold`.

    `spans` by trace are for the trivial predictors, `tokens` by trace for the scores by length.
    Unreadable gold is excluded and reported in the notes. Raises ValueError if no gold is readable
    or two gold files annotate one trace.
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
    cases = [ScoredTrace.of(g, p, how.taxonomy, spans.get(g.trace)) for g, p in readable]
    applies = {leaf.name for leaf in how.taxonomy.leaves} <= set(CATEGORIES)
    texts = [official_case(g.trace, g.text, p.text if p else None) for g, p in pairing.pairs]
    in_form = [case for case in texts if case.gold]

    def official(
        some: Iterable[OfficialCase], prediction: _Prediction | None = None
    ) -> OfficialScores | None:
        """Return the official scores, optionally of another prediction."""
        if not applies:
            return None
        if prediction is not None:
            some = [replace(case, predicted=prediction(case), skipped=None) for case in some]
        return score_official(some, seed=how.seed, resamples=how.resamples)

    def reference(baseline: Baseline) -> ReferenceScore:
        labelled = [
            replace(case, predicted=baseline.labels(case.spans or ()), status=None)
            for case in with_spans
        ]
        seen = [case for case in in_form if case.trace in spans]
        figures = official(seen, lambda case: baseline.official(spans[case.trace]))
        return ReferenceScore(baseline.name, score(labelled, how), figures)

    with_spans = [case for case in cases if case.spans is not None]
    trivial = baselines((case.gold for case in cases), how.taxonomy) if with_spans else ()
    references = [*map(reference, trivial)]
    best = [replace(case, predicted=case.gold, status=None) for case in cases]
    by_gold = official(in_form, lambda case: case.gold)
    references.append(ReferenceScore(GOLD, score(best, how), by_gold))
    scores = score(cases, how)
    return Evaluation(
        how=how,
        scores=scores,
        grades=score_grades(readable, how.bootstrap),
        official=official(texts),
        penalised=official(in_form, lambda case: case.predicted or NOTHING),
        beside=tuple(references),
        lengths=tuple(_lengths(scores, tokens, how)) if tokens else (),
        notes=tuple(_notes(pairing, cases, applies=applies)),
    )


def _lengths(scores: Scores, tokens: Mapping[str, int], how: Scoring) -> Iterator[LengthScore]:
    """Compare the F1 of each level per trace with length."""
    for level in LEVELS:
        worth = [(t.trace, t.worth[level]["f1"], t.answered) for t in scores.per_trace]
        rows = [(trace, f1, answered) for trace, f1, answered in worth if f1 is not None]
        yield against_length(f"{level} F1", rows, tokens, how.bootstrap)


def _notes(pairing: Pairing, cases: Sequence[ScoredTrace], *, applies: bool) -> Iterator[str]:
    if unread := [g.name for g, _ in pairing.pairs if g.findings.status is not None]:
        yield f"{len(unread)} gold files could not be read: {_some(unread)}"
    if without_gold := [p.name for p in pairing.without_gold]:
        yield f"{len(without_gold)} predictions are for traces without gold: {_some(without_gold)}"
    ids = [(case, {span.id for span in case.spans}) for case in cases if case.spans is not None]
    if not ids:
        yield "no traces were given, so the trivial predictors are not available"
    elif len(ids) < len(cases):
        yield (
            f"{len(cases) - len(ids)} of {len(cases)} traces have no spans: the trivial "
            "predictors are scored on the rest"
        )
    if lost := sum(len(case.gold.locations - {""} - spans) for case, spans in ids):
        yield f"{lost} gold locations are not spans of their trace, so no finder can match them"
    if not applies:
        yield "no official scores: they are defined for TRAIL's categories only"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(sorted(names)[:3]) + more


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return all numbers ready for JSON, with None instead of NaN.

    Scores of single traces are included for the finder only, not for the reference predictors.
    """
    taxonomy = evaluation.how.taxonomy
    figures = asdict(evaluation)
    figures["how"]["taxonomy"] = {
        "name": taxonomy.name,
        "version": taxonomy.version,
        "sha256": taxonomy.sha256,
    }
    for predictor in figures["beside"]:
        predictor["scores"].pop("per_trace")
        if predictor["official"] is not None:
            predictor["official"].pop("per_trace")
    return figures


# -- grades, and scores against length -------------------------------------------------------------


@dataclass(frozen=True)
class GradeScore:
    """One grade over the `pearson.n` traces that have it on both sides.

    `error` is the mean absolute difference in points; `constant` is the same for a grader that
    always answers the median of gold, which a useful grader must beat. `missing` counts traces with
    gold but no prediction, `no_gold` traces without gold. `pearson.mean` is None, with a reason, if
    a side does not vary.
    """

    grade: str
    pearson: Interval
    error: Interval
    constant: float | None
    missing: int
    no_gold: int


def values(findings: Findings | None) -> Mapping[str, float]:
    """Return the grades with a value; a missing `overall` is the mean of the other four."""
    grades = findings.grades if findings else {}
    by_name = {name: grade.value for name, grade in grades.items() if grade.value is not None}
    four = [by_name[name] for name in GRADES if name in by_name]
    if OVERALL not in by_name and len(four) == len(GRADES):
        by_name[OVERALL] = sum(four) / len(four)
    return by_name


def score_grades(
    pairs: Iterable[tuple[Findings, Findings | None]], how: How
) -> tuple[GradeScore, ...]:
    """Score each grade that occurs in gold, in any order of traces."""
    ordered = sorted(pairs, key=lambda pair: pair[0].trace)
    graded = [(values(gold), values(predicted)) for gold, predicted in ordered]
    scores = []
    for name in (*GRADES, OVERALL):
        with_gold = [(g[name], p.get(name)) for g, p in graded if name in g]
        if not with_gold:
            continue
        both = [(g, p) for g, p in with_gold if p is not None]
        gold, predicted = np.array(both, dtype=np.float64).reshape(-1, 2).T
        scores.append(
            GradeScore(
                grade=name,
                pearson=_correlation(gold, predicted, how),
                error=bootstrap_mean(np.abs(gold - predicted), how=how()),
                constant=float(np.abs(gold - np.median(gold)).mean()) if both else None,
                missing=len(with_gold) - len(both),
                no_gold=len(graded) - len(with_gold),
            )
        )
    return tuple(scores)


def _correlation(first: _Floats, second: _Floats, how: How) -> Interval:
    """Return Pearson's r with an interval over pairs; None, with a reason, if undefined."""
    n = len(first)
    if n < 3:
        return Interval(None, None, None, None, n, None, "none", f"{n} traces have both")
    if not (np.ptp(first) and np.ptp(second)):
        return Interval(None, None, None, None, n, None, "none", "constant")

    def pearson(first: _Floats, second: _Floats) -> float | None:
        a, b = first - first.mean(), second - second.mean()
        scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
        return float((a * b).sum()) / scale if scale > 1e-12 else None

    return bootstrap_interval(pearson, (first, second), how=how())


@dataclass(frozen=True)
class LengthBin:
    """Traces of `low` to `high` tokens (inclusive); `answered` have a readable prediction."""

    low: int
    high: int
    score: Interval
    answered: int


@dataclass(frozen=True)
class LengthScore:
    """One score by length; `unknown` counts traces of unknown length."""

    score: str
    pearson: Interval
    spearman: Interval
    bins: tuple[LengthBin, ...]
    unknown: int


def against_length(
    name: str, scores: Sequence[tuple[str, float, bool]], tokens: Mapping[str, int], how: How
) -> LengthScore:
    """Compare scores with the length of traces; `scores` are (trace, score, whether answered).

    Computes Pearson with a bootstrap interval, Spearman with Bonett and Wright's interval, and the
    mean in each quartile of length (equal lengths stay together).
    """
    ordered = sorted((tokens[row[0]], *row) for row in scores if row[0] in tokens)
    lengths = np.array([row[0] for row in ordered], dtype=np.float64)
    figures = np.array([row[2] for row in ordered], dtype=np.float64)
    bins = []
    for inside in _quarters(lengths):
        low, high = int(lengths[inside[0]]), int(lengths[inside[-1]])
        mean = bootstrap_mean(figures[inside], how=how())
        bins.append(LengthBin(low, high, mean, sum(ordered[i][3] for i in inside)))
    return LengthScore(
        score=name,
        pearson=_correlation(lengths, figures, how),
        spearman=spearman(lengths, figures),
        bins=tuple(bins),
        unknown=len(scores) - len(ordered),
    )


def _quarters(lengths: _Floats) -> Sequence[NDArray[np.intp]]:
    """Return the positions of each quartile of sorted lengths."""
    if not len(lengths):
        return []
    edges = np.quantile(lengths, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    places = np.searchsorted(edges, lengths, side="left")
    return [np.flatnonzero(places == place) for place in np.unique(places)]
