"""Steps that failed because of what the model wrote: code or a call that could not be run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agenteval.evaluators.traces.detectors.failures import Fact, all_facts, classify, failed
from agenteval.evaluators.traces.detectors.registry import Hit, TraceView, quote, rule
from agenteval.records import Span

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


class FailedStep(NamedTuple):
    """The request that wrote what failed, the next one of the same agent, which was told of the
    failure (None: there was none), and how the failed span puts it."""

    writer: Span
    reader: Span | None
    fact: Fact


def failed_steps(view: TraceView) -> Iterator[FailedStep]:
    """Steps in which a model's request did well and what it wrote failed, in order, each once.

    A step is a chain span around the request, or the span of a tool that was given code or wrong
    arguments. What a provider or service refused, or took too long for, is no such failure.
    """
    ends = list(range(len(view.spans)))  # position of the last span within each
    for i in range(len(ends) - 1, -1, -1):
        above = view.parents[i]
        if above is not None:
            ends[above] = max(ends[above], ends[i])
    requests: dict[int | None, list[int]] = {}
    for span in view.llms:
        requests.setdefault(view.agent_of(span), []).append(view.position[span.id])
    told, seen = view.once(all_facts), set[int]()
    for i, span in enumerate(view.spans):
        if span.kind not in ("chain", "tool") or not failed(span) or not told[i]:
            continue
        own = requests.get(view.agents[i], [])
        after = bisect_right(own, ends[i])
        if after == 0 or own[after - 1] in seen or failed(view.spans[own[after - 1]]):
            continue
        writer = own[after - 1]
        if (writer > i if span.kind == "chain" else _wrote(span, told[i])) and not any(
            map(classify, told[i])
        ):
            seen.add(writer)
            reader = view.spans[own[after]] if after < len(own) else None
            yield FailedStep(view.spans[writer], reader, told[i][0])


def _wrote(tool: Span, told: Sequence[Fact]) -> bool:
    """Whether a tool failed because of the code or the arguments that it was given."""
    for fact in told:
        last = fact.message.strip().rpartition("\n")[2]
        if _SIGNATURE.search(last):
            return True
        if _LANGUAGE.search(f"{fact.type}: {last}") and _CODE.search(tool.input):
            return True
    return False


@rule(
    "failed-code",
    "Formatting Errors",
    "MEDIUM",
    "A step failed with an exception after its model request had ended well: the code or call that "
    "the model wrote could not be run, or its reply could not be read. Refusals and timeouts of "
    "services are not covered, nor errors that the code itself caught.",
)
def failed_code(view: TraceView) -> Iterator[Hit]:
    """Each failed step, at the next request of the agent: there people mark it, since it is the
    first that is told of the failure. Without one, at the request that wrote the code."""
    for step in failed_steps(view):
        span, message = step.reader or step.writer, step.fact.message.strip()
        words = quote(span, message, message.rpartition("\n")[2], span.output, span.name)
        what = message.rpartition("\n")[2] or step.fact.type or "the step failed"
        yield Hit(span, words, f"what the step before wrote failed: {what[:300]}" if step.reader
                  else f"what was written here failed: {what[:300]}")  # fmt: skip
