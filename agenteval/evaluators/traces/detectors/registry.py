"""Rules and their register; `detect` applies them to a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from agenteval.errors import InputError
from agenteval.evaluators.traces.detectors.view import TraceView
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Finding, Impact, Run, Span


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found: the span, words of it, what is wrong. `impact` None: that of the rule."""

    span: Span
    evidence: str
    description: str
    impact: Impact | None = None
    confidence: float | None = None


Check = Callable[[TraceView], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One detector. `certain` says what makes it certain and what it does not cover.

    `confidence` is the share of its findings expected to be right by their form, as judged by its
    author; it is no measurement.
    """

    name: str
    category: str
    impact: Impact
    confidence: float
    certain: str
    check: Check

    def __call__(self, view: TraceView) -> Iterator[Finding]:
        """Findings of one trace, in no particular order."""
        for hit in self.check(view):
            yield Finding(
                span=hit.span.id,
                category=self.category,
                evidence=hit.evidence,
                description=hit.description,
                impact=hit.impact or self.impact,
                confidence=self.confidence if hit.confidence is None else hit.confidence,
                source=f"detector:{self.name}",
            )


RULES: dict[str, Rule] = {}


def rule(
    name: str, category: str, impact: Impact, certain: str, confidence: float = 1.0
) -> Callable[[Check], Check]:
    """Register a function as the rule `name`; ValueError when the name is taken."""

    def register(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"two detectors are named {name!r}")
        RULES[name] = Rule(name, category, impact, confidence, certain, check)
        return check

    return register


def detect(
    run: Run, taxonomy: Taxonomy | None = None, only: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Findings of all rules (or of those named in `only`), in the order of the spans, then rules.

    With a taxonomy, a rule whose category it does not know is left out, and findings carry the
    name of the leaf. Raises InputError for a name in `only` that no rule has.
    """
    unknown = sorted(set(only or ()) - RULES.keys())
    if unknown:
        raise InputError(f"no detector {unknown[0]!r} (there are: {', '.join(sorted(RULES))})")
    view = TraceView(run)
    found: list[tuple[int, int, int, Finding]] = []
    for order, each in enumerate(RULES.values()):
        if only is not None and each.name not in only:
            continue
        leaf = None if taxonomy is None else taxonomy.find(each.category)
        if taxonomy is not None and (leaf is None or not leaf.assigned):
            continue
        for number, finding in enumerate(each(view)):
            if leaf is not None and leaf.name != finding.category:
                finding = finding.model_copy(update={"category": leaf.name})
            found.append((view.position[finding.span], order, number, finding))
    found.sort(key=lambda row: row[:3])
    return tuple(row[3] for row in found)
