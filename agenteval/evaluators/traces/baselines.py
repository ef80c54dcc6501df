"""Predictors that read nothing: what every result on traces must be compared with.

Naming every LLM span with the commonest kinds beats every published model on TRAIL's official
location and joint accuracy, because these are recall only. Their figures belong beside any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.evaluators.traces.official import OfficialCase, Said, normalize
from agenteval.evaluators.traces.scorer import Case
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
