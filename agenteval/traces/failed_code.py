"""Finds steps that failed because of the code or the call that the model wrote, without a model.

This is the only rule that is better than chance on annotated traces; twelve others were tried and
removed (`python -m benchmarks.detectors` measures it).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agenteval.records import Finding, Run, Span
from agenteval.traces.service_failures import is_service_failure
from agenteval.traces.span_failures import Fact, facts, failed
from agenteval.traces.spans import SpanTree, quote

# Share of right findings in a trace that was left out, averaged over the 21 of 40 annotated traces
# with findings (`python -m benchmarks.detectors`).
CONFIDENCE = 0.59

# Python's complaints about the code itself, by type or in the last line of a message
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
    """A step whose code or call could not be run.

    `writer` is the model request that wrote it, `reader` the agent's next request, if any, which
    was the first to see the failure, `fact` the failure as the failed span describes it.
    """

    writer: Span
    reader: Span | None
    fact: Fact


def find(run: Run, category: str) -> Iterator[Finding]:
    """Yield one finding of this category per failed step, in the order of the steps.

    A finding is at the agent's next request, where annotators mark it because it is the first that
    sees the failure; without a next request, at the request that wrote the code.
    """
    for step in failed_steps(run):
        yield _finding(step, category)


def _finding(step: FailedStep, category: str) -> Finding:
    span, message = step.reader or step.writer, step.fact.message.strip()
    last_line = message.rpartition("\n")[2]
    what = "what the step before wrote failed" if step.reader else "what was written here failed"
    return Finding(
        span=span.id,
        category=category,
        evidence=quote(span, message, last_line, span.output, span.name),
        description=f"{what}: {(last_line or step.fact.type or 'the step failed')[:300]}",
        impact="MEDIUM",
        confidence=CONFIDENCE,
    )


def failed_steps(run: Run) -> Iterator[FailedStep]:
    """Yield the steps in which a model request ended well and what it wrote failed, each once.

    A step is a chain span around the request, or the span of a tool that was given code or wrong
    arguments. What a provider or service refused, or took too long for, is not such a failure.
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
    """Return whether a tool failed because of the code or the arguments that it was given."""
    for fact in tool_facts:
        last_line = fact.message.strip().rpartition("\n")[2]
        if _SIGNATURE.search(last_line):
            return True
        if _LANGUAGE.search(f"{fact.type}: {last_line}") and _CODE.search(tool.input):
            return True
    return False
