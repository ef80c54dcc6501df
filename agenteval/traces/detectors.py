"""Finds steps that failed because of the code or the call that the model wrote, without a model.

This is the only rule that is better than chance on annotated traces; twelve others were tried and
removed (`python -m benchmarks.detectors` measures it).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.records import Finding, Message, Run, Span
from agenteval.traces.service_failures import is_service_failure
from agenteval.traces.span_failures import Fact, facts, failed
from agenteval.traces.taxonomy import Taxonomy

NAME = "failed-code"
CATEGORY = "Formatting Errors"
# Precision on 39 annotated traces, each left out in turn (`python -m benchmarks.detectors`).
CONFIDENCE = 0.7
VERSION = 1  # part of the key of stored findings; raise it when `detect` finds something else
_QUOTE = 300  # characters of evidence at most

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


def detect(run: Run, taxonomy: Taxonomy | None = None) -> tuple[Finding, ...]:
    """Return one finding per failed step, in the order of the steps.

    A finding is at the agent's next request, where annotators mark it because it is the first that
    sees the failure; without a next request, at the request that wrote the code. With a taxonomy,
    findings have the name of its leaf; there are none if it has no such leaf.
    """
    leaf = None if taxonomy is None else taxonomy.find(CATEGORY)
    if taxonomy is not None and (leaf is None or not leaf.assigned):
        return ()
    positions = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    findings = [
        _finding(step, CATEGORY if leaf is None else leaf.name) for step in failed_steps(run)
    ]
    return tuple(sorted(findings, key=lambda finding: positions[finding.span]))


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
        source=f"detector:{NAME}",
    )


class _Tree:
    """The spans of a run with their places in the tree, by position.

    Of several spans with one id the first counts. A parent that does not come before its child
    counts as missing, so that broken or circular links cannot mislead.
    """

    def __init__(self, run: Run) -> None:
        first: dict[str, Span] = {}
        for span in run.spans:
            first.setdefault(span.id, span)
        self.spans = list(first.values())
        self.parents: list[int | None] = []
        self.agents: list[int | None] = []  # nearest agent span at or above each span
        self._actors: list[int | None] = []  # nearest llm, tool or agent span above each span
        positions: dict[str, int] = {}
        for i, span in enumerate(self.spans):
            parent = None if span.parent_id is None else positions.get(span.parent_id)
            positions[span.id] = i
            self.parents.append(parent)
            passive = parent is not None and self.spans[parent].kind in ("chain", "user")
            self._actors.append(self._actors[parent] if parent is not None and passive else parent)
        clients = self._clients()
        for i, span in enumerate(self.spans):
            parent = self.parents[i]
            inherited = None if parent is None else self.agents[parent]
            self.agents.append(i if span.kind == "agent" and i not in clients else inherited)

    def _clients(self) -> set[int]:
        """Positions of agents that are a client around a model request: they run no tool."""
        around: set[int] = set()
        for i in range(len(self.spans) - 1, -1, -1):
            parent = self.parents[i]
            if parent is not None and (self.spans[i].kind == "tool" or i in around):
                around.add(parent)
        of_models = (i for i, s in enumerate(self.spans) if s.kind == "agent" and s.model)
        return {i for i in of_models if i not in around}

    def requests(self) -> dict[int | None, list[int]]:
        """Positions of the model requests by agent.

        A request that was traced twice (a client inside a wrapper) counts once, as the outer span;
        spans that say nothing of a request are left out.
        """
        requests: dict[int | None, list[int]] = {}
        for i, span in enumerate(self.spans):
            if span.kind == "llm" and _is_recorded(span) and not self._is_nested_request(i):
                requests.setdefault(self.agents[i], []).append(i)
        return requests

    def _is_nested_request(self, position: int) -> bool:
        actor = self._actors[position]
        if actor is None:
            return False
        span, outer = self.spans[position], self.spans[actor]
        return outer.kind == "llm" and outer.tool == span.tool and _is_recorded(outer)

    def ends(self) -> list[int]:
        """For each span, the position of the last span below it, or its own."""
        ends = list(range(len(self.spans)))
        for i in range(len(ends) - 1, -1, -1):
            parent = self.parents[i]
            if parent is not None:
                ends[parent] = max(ends[parent], ends[i])
        return ends


def failed_steps(run: Run) -> Iterator[FailedStep]:
    """Yield the steps in which a model request ended well and what it wrote failed, each once.

    A step is a chain span around the request, or the span of a tool that was given code or wrong
    arguments. What a provider or service refused, or took too long for, is not such a failure.
    """
    tree = _Tree(run)
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


def _is_recorded(request: Span) -> bool:
    return bool(request.messages or request.reply or request.finish)


def _wrote(tool: Span, tool_facts: Sequence[Fact]) -> bool:
    """Return whether a tool failed because of the code or the arguments that it was given."""
    for fact in tool_facts:
        last_line = fact.message.strip().rpartition("\n")[2]
        if _SIGNATURE.search(last_line):
            return True
        if _LANGUAGE.search(f"{fact.type}: {last_line}") and _CODE.search(tool.input):
            return True
    return False


def texts(span: Span) -> Iterator[str]:
    """Yield every text of a span that a finding may quote; its messages come last."""
    yield from (span.status_message, span.output, span.input, span.name, span.finish or "")
    yield span.tool or ""
    for message in span.reply:
        yield from _message_texts(message)
    for event in span.events:
        yield from _strings(event.attributes)
    yield from _strings(span.attributes)
    for tool in span.tools:
        yield tool.name
        yield tool.description
        yield json.dumps(tool.parameters, ensure_ascii=False)
    for message in span.messages:
        yield from _message_texts(message)


def _message_texts(message: Message) -> Iterator[str]:
    yield message.content
    for call in message.tool_calls:
        yield call.name
        arguments = call.arguments  # a text when the model's arguments were not JSON
        yield arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _strings(value: JsonValue) -> Iterator[str]:
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif item is not None:
            yield item if isinstance(item, str) else json.dumps(item)


def quote(span: Span, *candidates: str) -> str:
    """Return the first candidate, cut to 300 characters, that occurs in the span, or ""."""
    for candidate in candidates:
        cut = candidate.strip()[:_QUOTE].strip()
        if cut and any(cut in text for text in texts(span)):
            return cut
    return ""
