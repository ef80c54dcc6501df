"""Failures of execution by kind: what a failed span says of itself, where it began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from agenteval.evaluators.traces.detectors.failures import Fact, Kind, Verdict, all_facts, classify
from agenteval.evaluators.traces.detectors.registry import Hit, TraceView, quote, rule
from agenteval.records import Impact

_RULES: dict[Kind, tuple[str, str, Impact, str]] = {
    "rate": (
        "rate-limit", "Rate Limiting", "MEDIUM",
        "The failed span names HTTP 429, a provider's type or code for it, or says that a rate "
        "limit was reached; limits that a client waits out without an error are not seen.",
    ),
    "auth": (
        "authentication", "Authentication Errors", "HIGH",
        "The failed span names HTTP 401 or 403 or a provider's type for it; a refusal that is a "
        "normal answer of a tool is not seen.",
    ),
    "missing": (
        "not-found", "Resource Not Found", "MEDIUM",
        "The failed span names HTTP 404 or 410 or a type for it; an empty search result is none, "
        "nor a file that the model's code did not find.",
    ),
    "service": (
        "service", "Service Errors", "HIGH",
        "The failed span names HTTP 5xx or a type for it, or could not reach the service; one "
        "that answers nonsense with 200 is not seen.",
    ),
    "timeout": (
        "timeout", "Timeout Issues", "MEDIUM",
        "The failed span names a timeout by type, HTTP 408 or 504, or its library's words; a span "
        "that was only slow is none.",
    ),
    "exhausted": (
        "exhaustion", "Resource Exhaustion", "HIGH",
        "The failed span names memory, disk or handles that ran out, by type or errno; a process "
        "that was killed without a word is not seen.",
    ),
    "context": (
        "context-overflow", "Context Handling Failures", "HIGH",
        "The provider refused the request because it does not fit into the model's context; text "
        "that was cut or forgotten silently is not seen.",
    ),
}  # fmt: skip


class Failures:
    """The failures of a trace by kind; each stands at the span where it began."""

    def __init__(self, view: TraceView) -> None:
        self.view = view
        self.own: list[dict[Kind, tuple[Fact, Verdict]]] = [
            _verdicts(facts) for facts in view.once(all_facts)
        ]
        self.below: list[set[Kind]] = [set() for _ in view.spans]
        for i in range(len(view.spans) - 1, -1, -1):
            above = view.parents[i]
            if above is not None:
                self.below[above] |= self.below[i] | self.own[i].keys()

    def origins(self, kind: Kind) -> Iterator[int]:
        """Positions of the spans where a failure of a kind began, in order."""
        for i, own in enumerate(self.own):
            if kind in own and kind not in self.below[i] and not self._handled(i):
                yield self._outer(i, kind)

    def _handled(self, i: int) -> bool:
        """A step inside a tool or request that did well all the same was caught by design."""
        doer = self.view.doers[i]
        if self.view.spans[i].kind in ("llm", "tool") or doer is None:
            return False
        outer = self.view.spans[doer]
        return outer.kind in ("llm", "tool") and not self.own[doer] and outer.status != "error"

    def _outer(self, i: int, kind: Kind) -> int:
        """The outermost of nested spans that trace the same execution and say the same."""
        span, doer = self.view.spans[i], self.view.doers[i]
        while doer is not None and kind in self.own[doer]:
            outer = self.view.spans[doer]
            if outer.kind != span.kind or outer.tool != span.tool:
                break
            i, doer = doer, self.view.doers[doer]
        return i

    def spreads(self, i: int, kind: Kind) -> bool:
        """Whether the failure also ended the span above."""
        above = self.view.parents[i]
        return above is not None and kind in self.own[above]


def _verdicts(facts: Sequence[Fact]) -> dict[Kind, tuple[Fact, Verdict]]:
    verdicts: dict[Kind, tuple[Fact, Verdict]] = {}
    for fact in facts:
        verdict = classify(fact)
        if verdict is not None:
            verdicts.setdefault(verdict.kind, (fact, verdict))
            break  # the first fact that says a kind; later ones repeat it in other words
    return verdicts


def _failed_by(view: TraceView, kind: Kind) -> Iterator[Hit]:
    """The first failure of a kind of each tool or model."""
    known, seen = view.once(Failures), set()
    for i in known.origins(kind):
        span = view.spans[i]
        actor = (span.kind, span.tool or span.model or span.name)
        if actor in seen:
            continue
        seen.add(actor)
        fact, verdict = known.own[i][kind]
        words = quote(span, fact.message, verdict.words, fact.type, span.output)
        what = f"{span.kind} {span.tool or span.model or span.name or span.id!r}"
        yield Hit(
            span,
            words or quote(span, span.status_message, span.name),
            f"{what} failed: {fact.type or verdict.words or f'HTTP {fact.code}'}",
            "HIGH" if known.spreads(i, kind) else None,
        )


for _kind, (_name, _category, _impact, _certain) in _RULES.items():
    rule(_name, _category, _impact, _certain)(partial(_failed_by, kind=_kind))
