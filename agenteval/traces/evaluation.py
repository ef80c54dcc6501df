"""All scores of one finder against gold, compared with trivial predictors.

Naming every LLM span with the most common categories beats every published model on TRAIL's
location and joint accuracy, so trivial predictors are scored with every result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from agenteval.records import Span
from agenteval.records.run import SpanKind
from agenteval.traces.annotations import Annotation, Pairing, pair_up
from agenteval.traces.grades import GradeScore, LengthScore, against_length, score_grades
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


@dataclass(frozen=True)
class Baseline:
    """Names every span of some kinds with each of some categories."""

    name: str
    kinds: tuple[SpanKind, ...]
    categories: tuple[str, ...]

    def labels(self, spans: Sequence[Span]) -> LabelSets:
        """Return its labels of a trace; all categories share one set of spans."""
        ids = frozenset(span.id for span in spans if span.kind in self.kinds)
        labels = self.categories if ids else ()
        return LabelSets(dict.fromkeys(labels, ids), len(ids) * len(labels))

    def official(self, spans: Sequence[Span]) -> AnnotationSets:
        """Return the same for the official scorer."""
        sets = self.labels(spans)
        labels = frozenset(map(normalize, sets.categories))
        return AnnotationSets(sets.locations, frozenset(product(sets.locations, labels)), labels)


def baselines(gold: Iterable[LabelSets], taxonomy: Taxonomy) -> tuple[Baseline, ...]:
    """Return the three predictors, the last two with the most common categories in gold.

    Frequency counts pairs of span and category; ties go by the order of the taxonomy. The
    predictors know the frequencies, which a finder does not: their figures are a little too good.
    """
    names = tuple(leaf.name for leaf in taxonomy.assigned)
    counts: Counter[str] = Counter()
    for truth in gold:
        counts.update({label: len(spans) for label, spans in truth.spans.items() if label in names})
    common = tuple(sorted((c for c in names if counts[c]), key=lambda c: -counts[c]))
    chosen = [common[:most] for most in (8, 3) if common]
    return (
        Baseline(f"LLM and tool spans x {len(names)}", ("llm", "tool"), names),
        *(Baseline(f"LLM spans x {len(some)} commonest", ("llm",), some) for some in chosen),
    )


@dataclass(frozen=True)
class ReferenceScore:
    """A predictor that reads nothing, or gold itself, by both scorers."""

    name: str
    scores: Scores
    official: OfficialScores | None


@dataclass(frozen=True)
class Evaluation:
    """All scores of one finder.

    `official` is None if the taxonomy is not TRAIL's; `penalised` are the same scores with missing
    and unreadable predictions as empty ones. `beside` has the trivial predictors (only with the
    spans of traces) and gold itself. `notes` list what was excluded and why.
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
    """Return the figures of `predicted` against `gold`.

    `spans` by trace serve the trivial predictors, `tokens` by trace the scores against length.
    Unreadable gold is left out and reported in the notes. Raises ValueError if no gold is readable
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
        """The official figures, optionally with another prediction."""
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
    """F1 of each level per trace against length."""
    answered = {score.trace: score.answered for score in scores.per_trace}
    for level in LEVELS:
        worth = {trace.trace: trace.worth[level]["f1"] for trace in scores.per_trace}
        values = {trace: value for trace, value in worth.items() if value is not None}
        yield against_length(f"{level} F1", values, tokens, answered, how.bootstrap)


def _notes(pairing: Pairing, cases: Sequence[ScoredTrace], *, applies: bool) -> Iterator[str]:
    if unread := [g.name for g, _ in pairing.pairs if g.findings.status is not None]:
        yield f"{len(unread)} gold files could not be read: {_some(unread)}"
    if without_gold := [p.name for p in pairing.without_gold]:
        yield f"{len(without_gold)} predictions are of traces without gold: {_some(without_gold)}"
    ids = [(case, {span.id for span in case.spans}) for case in cases if case.spans is not None]
    if not ids:
        yield "no traces were given, so the trivial predictors are not available"
    elif len(ids) < len(cases):
        yield (
            f"{len(cases) - len(ids)} of {len(cases)} traces have no spans here: the trivial "
            "predictors are scored on the rest"
        )
    if lost := sum(len(case.gold.locations - {""} - spans) for case, spans in ids):
        yield f"{lost} gold locations are not spans of their trace and cannot be found"
    if not applies:
        yield "no official scores: they are defined for TRAIL's categories only"


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return all numbers as JSON holds them: None for unknown, no NaN.

    Figures of single traces are given for the finder only, not for the reference predictors.
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
