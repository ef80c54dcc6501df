"""The detectors: rules that find errors in traces without a model.

There is one detector, `failed-code`: steps that failed because of the code or call that the model
wrote. It is the only rule that beats chance on annotated traces; twelve others were tried and
removed (`python -m benchmarks.detectors` measures it).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.records import Finding, Run, Span
from agenteval.traces.failures import Fact, facts, failed, is_service_failure
from agenteval.traces.spans import SpanTree, quote
from agenteval.traces.taxonomy import Taxonomy

# Precision on held-out traces, averaged over the 21 of 40 annotated traces with findings (`python
# -m benchmarks.detectors`).
CONFIDENCE = 0.59

# Python errors about the code itself, by type or by the last line of the message
_LANGUAGE = re.compile(
    r"(?:^|[\s:.(])(?:Syntax|Indentation|Tab|Name|UnboundLocal|Import|ModuleNotFound|Attribute)Error"
    r"(?=\b)"
)
_SIGNATURE = re.compile(
    r"got an unexpected keyword argument|got multiple values for (?:keyword )?argument"
    r"|missing \d+ required (?:positional|keyword-only) argument"
    r"|takes \d+ positional arguments? but"
)
_CODE = re.compile(r'"\w*(?:code|script|python|program)\w*"\s*:', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step with code or a call that could not be run.

    `writer` is the model request that wrote it; `reader` is the agent's next request, if any, which
    first sees the failure; `fact` is the failure as described by the failed span.
    """

    writer: Span
    reader: Span | None
    fact: Fact


def find_failed_code(run: Run, category: str) -> Iterator[Finding]:
    """Yield one finding of this category per failed step, in order.

    A finding is placed at the agent's next request, where annotators mark it because it is the
    first to see the failure; without a next request, at the request that wrote the code.
    """
    for step in failed_steps(run):
        span, message = step.reader or step.writer, step.fact.message.strip()
        last_line = message.rpartition("\n")[2]
        what = "what the step before wrote" if step.reader else "what was written here"
        failure = last_line or step.fact.type or "the step failed"
        yield Finding(
            span=span.id,
            category=category,
            evidence=quote(span, message, last_line, span.output, span.name),
            description=f"{what} failed: {failure[:300]}",
            impact="MEDIUM",
            confidence=CONFIDENCE,
            source="detector:failed-code",
        )


def failed_steps(run: Run) -> Iterator[FailedStep]:
    """Yield each step in which the model request succeeded but the code or call it wrote failed.

    A step is a chain span around the request, or the span of a tool that got code or wrong
    arguments. A refusal or timeout of a provider or service does not count.
    """
    tree = SpanTree(run)
    ends, requests = tree.ends(), tree.requests()
    reported: set[int] = set()
    for i, span in enumerate(tree.spans):
        if span.kind not in ("chain", "tool") or not failed(span):
            continue
        span_facts = facts(span)
        of_agent = requests.get(tree.agents[i], [])
        after = bisect_right(of_agent, ends[i])
        if not span_facts or after == 0:
            continue
        writer = of_agent[after - 1]
        if writer in reported or failed(tree.spans[writer]):
            continue
        wrote_it = writer > i if span.kind == "chain" else _wrote(span, span_facts)
        if wrote_it and not any(map(is_service_failure, span_facts)):
            reported.add(writer)
            reader = tree.spans[of_agent[after]] if after < len(of_agent) else None
            yield FailedStep(tree.spans[writer], reader, span_facts[0])


def _wrote(tool: Span, tool_facts: Sequence[Fact]) -> bool:
    """Return whether a tool failed because of the code or arguments passed to it."""
    for fact in tool_facts:
        last_line = fact.message.strip().rpartition("\n")[2]
        if _SIGNATURE.search(last_line):
            return True
        if _LANGUAGE.search(f"{fact.type}: {last_line}") and _CODE.search(tool.input):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Detector:
    """A rule that finds errors of one category.

    `find` takes a run and the name of the category, and yields findings. `version` is part of the
    key of stored findings: raise it when `find` changes.
    """

    name: str
    version: int
    category: str  # a leaf of the built-in taxonomy
    find: Callable[[Run, str], Iterable[Finding]]


DETECTORS = (Detector("failed-code", 2, "Formatting Errors", find_failed_code),)


def detect(run: Run, taxonomy: Taxonomy) -> tuple[Finding, ...]:
    """Return the findings of all detectors, in the order of their spans.

    Categories are named as in `taxonomy`; a detector finds nothing if its category is not in it.
    """
    findings: list[Finding] = []
    for detector in DETECTORS:
        leaf = taxonomy.find(detector.category)
        if leaf is not None and leaf.assigned:
            findings += detector.find(run, leaf.name)
    positions = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    return tuple(sorted(findings, key=lambda finding: positions[finding.span]))


def detectors_key() -> JsonValue:
    """Return the names and versions of the detectors, which are part of the key of findings."""
    return {detector.name: detector.version for detector in DETECTORS}
