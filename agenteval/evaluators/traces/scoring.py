"""One finder against gold by both scorers, with predictors that read nothing beside it.

Naming every LLM span with the commonest kinds beats every published model on TRAIL's official
location and joint accuracy, because these are recall only. Their figures belong beside any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from agenteval.evaluators.traces.annotation_files import pair_up
from agenteval.evaluators.traces.annotations import Annotation
from agenteval.evaluators.traces.grades import (
    GradeScore,
    LengthScore,
    levels_against_length,
    score_grades,
)
from agenteval.evaluators.traces.official import (
    CATEGORIES,
    OfficialCase,
    OfficialScores,
    Said,
    normalize,
    official_case,
    score_official,
)
from agenteval.evaluators.traces.scorer import Case, Scores, Scoring, make_case, score
from agenteval.evaluators.traces.tallies import Claims
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Span
from agenteval.records.run import SpanKind


@dataclass(frozen=True)
class Baseline:
    """Names every span of some kinds with every one of some categories."""

    name: str
    kinds: tuple[SpanKind, ...]
    categories: tuple[str, ...]

    def spans(self, spans: Sequence[Span]) -> frozenset[str]:
        """Ids of the spans it names."""
        return frozenset(span.id for span in spans if span.kind in self.kinds)

    def claims(self, spans: Sequence[Span]) -> Claims:
        """What it says of a trace; the sets of all categories are one and the same."""
        named = self.spans(spans)
        if not named:
            return Claims({}, 0)
        return Claims(dict.fromkeys(self.categories, named), len(named) * len(self.categories))


def trivial(gold: Iterable[Claims], taxonomy: Taxonomy) -> tuple[Baseline, ...]:
    """The three predictors, the last two with the commonest categories of the gold given.

    Frequency counts pairs of span and category; ties go by the order of the taxonomy. They know
    the gold's frequencies, which a finder does not: their figures are a little too good.
    """
    every = tuple(leaf.name for leaf in taxonomy.assigned)
    counts: Counter[str] = Counter()
    for one in gold:
        counts.update({label: len(spans) for label, spans in one.spans.items() if label in every})
    common = tuple(sorted((c for c in every if counts[c]), key=lambda c: -counts[c]))
    baselines = [Baseline(f"LLM and tool spans x {len(every)}", ("llm", "tool"), every)]
    for most in (8, 3):
        if common:
            chosen = common[:most]
            baselines.append(Baseline(f"LLM spans x {len(chosen)} commonest", ("llm",), chosen))
    return tuple(baselines)


def with_baseline(cases: Iterable[Case], baseline: Baseline) -> list[Case]:
    """The cases whose spans are known, with the baseline's prediction in place of their own."""
    return [
        replace(case, predicted=baseline.claims(case.spans), status=None)
        for case in cases
        if case.spans is not None
    ]


def gold_as_prediction(cases: Iterable[Case]) -> list[Case]:
    """The upper bound of the metrics."""
    return [replace(case, predicted=case.gold, status=None) for case in cases]


def official_with_baseline(
    cases: Iterable[OfficialCase], spans: Mapping[str, Sequence[Span]], baseline: Baseline
) -> list[OfficialCase]:
    """The same for the official scorer: traces with readable gold and known spans.

    Of the pairs a baseline names only those in gold are made: no other can be a hit.
    """
    made = []
    labels = frozenset(normalize(category) for category in baseline.categories)
    for case in cases:
        if case.gold is None or case.trace not in spans:
            continue
        named = baseline.spans(spans[case.trace])
        pairs = frozenset(
            pair for pair in case.gold.pairs if pair[0] in named and pair[1] in labels
        )
        made.append(
            OfficialCase(
                case.trace, case.gold, Said(named, pairs, labels if named else frozenset())
            )
        )
    return made


GOLD = "gold itself (upper bound)"


@dataclass(frozen=True)
class Beside:
    """A predictor that reads nothing, or gold itself, by both scorers."""

    name: str
    scores: Scores
    official: OfficialScores | None


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
    """Figures of `predicted` against `gold`.

    `spans` by trace (see `tolerance.skeleton`) serve tolerance and the trivial predictors,
    `tokens` by trace the scores against length. Gold that could not be read is left out and
    told. Raises ValueError where no gold is readable or two gold files annotate one trace.
    """
    how, spans = how or Scoring(), spans or {}
    pairing = pair_up(gold, predicted)
    readable = [(g, p) for g, p in pairing.pairs if g.findings.status is None]
    if not readable:
        raise ValueError("no readable gold annotation")
    cases = [
        make_case(g.findings, p.findings if p else None, how.taxonomy, spans.get(g.trace))
        for g, p in readable
    ]
    texts = [official_case(g.trace, g.text, p.text if p else None) for g, p in pairing.pairs]
    applies = _is_trail(how.taxonomy)
    scores = score(cases, how)
    return Result(
        how=how,
        scores=scores,
        grades=score_grades([(g.findings, p.findings if p else None) for g, p in readable], how),
        official=_official(texts, how) if applies else None,
        penalised=_official(_as_empty(texts), how) if applies else None,
        beside=_beside(cases, texts if applies else None, spans, how),
        lengths=levels_against_length(scores, tokens, how) if tokens else (),
        notes=tuple(
            _notes(pairing.pairs, [p.name for p in pairing.without_gold], cases, how, applies)
        ),
    )


def _official(cases: Sequence[OfficialCase], how: Scoring) -> OfficialScores:
    return score_official(cases, seed=how.seed, resamples=how.resamples)


def _as_empty(cases: Sequence[OfficialCase]) -> list[OfficialCase]:
    nothing = Said(frozenset(), frozenset(), frozenset())
    return [
        replace(case, predicted=case.predicted or nothing, skipped=None)
        for case in cases
        if case.gold
    ]


def _is_trail(taxonomy: Taxonomy) -> bool:
    return {leaf.name for leaf in taxonomy.leaves} <= set(CATEGORIES)


def _beside(
    cases: Sequence[Case],
    texts: Sequence[OfficialCase] | None,
    spans: Mapping[str, Sequence[Span]],
    how: Scoring,
) -> tuple[Beside, ...]:
    made = []
    known = any(case.spans is not None for case in cases)
    for one in trivial((case.gold for case in cases), how.taxonomy) if known else ():
        official = None
        if texts is not None:
            official = _official(official_with_baseline(texts, spans, one), how)
        made.append(Beside(one.name, score(with_baseline(cases, one), how), official))
    best = None
    if texts is not None:
        best = _official([replace(t, predicted=t.gold, skipped=None) for t in texts if t.gold], how)
    return (*made, Beside(GOLD, score(gold_as_prediction(cases), how), best))


def _notes(
    pairs: Sequence[tuple[Annotation, Annotation | None]],
    without_gold: Sequence[str],
    cases: Sequence[Case],
    how: Scoring,
    applies: bool,
) -> list[str]:
    notes = []
    unread = [g.name for g, _ in pairs if g.findings.status is not None]
    if unread:
        notes.append(f"{len(unread)} gold files could not be read: {_some(unread)}")
    if without_gold:
        notes.append(f"{len(without_gold)} predictions have no gold: {_some(without_gold)}")
    with_spans = sum(case.spans is not None for case in cases)
    if not with_spans:
        notes.append("no traces given: the trivial predictors cannot be made")
        if how.tolerance:
            notes.append("tolerance asked for, but no traces given: hits are exact")
    elif with_spans < len(cases):
        notes.append(
            f"{len(cases) - with_spans} of {len(cases)} traces have no spans here: the trivial "
            "predictors are scored on the others"
        )
        if how.tolerance:
            notes.append("hits are exact in traces without spans")
    lost = _nowhere(cases)
    if lost:
        notes.append(f"{lost} places in gold are no span of their trace: they cannot be found")
    if not applies:
        notes.append("no official figures: they are for TRAIL's categories only")
    return notes


def _nowhere(cases: Sequence[Case]) -> int:
    count = 0
    for case in cases:
        if case.spans is not None:
            count += len(case.gold.locations - {""} - {span.id for span in case.spans})
    return count


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def as_json(result: Result) -> dict[str, Any]:
    """All numbers of `result` as JSON holds them: None for what is unknown, no NaN.

    Figures of single traces are given for the finder only, not for what stands beside it.
    """
    found = _plain(replace(result, beside=()))
    assert isinstance(found, dict)
    beside = [_plain(one) for one in result.beside]
    for one in beside:
        one["scores"].pop("per_trace")
        if one["official"] is not None:
            one["official"].pop("per_trace")
    return found | {"beside": beside}


def _plain(value: Any) -> Any:
    if isinstance(value, Taxonomy):
        return {"name": value.name, "version": value.version, "sha256": value.sha256}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
