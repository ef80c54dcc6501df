"""One request with the whole trace: what is sent, what counts, and what is no examination."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agenteval.engine.judging import classify
from agenteval.errors import ReplyError
from agenteval.models.client import Client, RetryPolicy
from agenteval.records import Findings, Run, Span
from agenteval.testing.scripted import ScriptedTransport
from agenteval.traces.locator_prompt import LocatorOptions
from agenteval.traces.whole import WholeTraceFinder
from tests.traces.locator_world import TAXONOMY

RUN = Run(
    id="t",
    spans=(Span(id="a1", kind="agent"), Span(id="b2", kind="llm", output="There are nine birds.")),
)
ERROR = {
    "category": "Invention",
    "location": "b2",
    "evidence": "nine birds",
    "description": "Nobody counted.",
    "impact": "HIGH",
}
SCORES = [{"reliability_score": 2, "reliability_reasoning": "made up", "overall": 3}]


def found(*replies: str, context: int = 8192) -> tuple[Findings, ScriptedTransport]:
    texts = iter(replies)
    transport = ScriptedTransport(lambda request: next(texts))
    client = Client(transport, retry=RetryPolicy(attempts=1))
    finder = WholeTraceFinder(client, TAXONOMY, LocatorOptions(mode="whole", context=context))
    return asyncio.run(finder.find(RUN)).findings, transport


def reply(*errors: Any) -> str:
    return json.dumps({"errors": list(errors), "scores": SCORES})


def test_errors_and_grades_are_read_in_the_published_layout() -> None:
    findings, transport = found(reply(ERROR))
    (finding,) = findings.findings
    assert (finding.span, finding.category, finding.impact) == ("b2", "Invention", "HIGH")
    grades = {name: grade.value for name, grade in findings.grades.items()}
    assert grades == {"reliability": 2, "overall": 3}
    assert findings.status is None
    (request,) = transport.requests
    assert "There are nine birds." in str(request.messages[1]["content"])
    assert "Old Label" not in str(request.messages[0]["content"])


def test_entries_on_unknown_spans_and_kinds_do_not_count() -> None:
    wrong = [ERROR | {"location": "zz"}, ERROR | {"category": "Bad Luck"}, ERROR]
    findings, _ = found(reply(*wrong))
    assert len(findings.findings) == 1
    assert ["'zz'" in row.why for row in findings.rejected] == [True, False]
    assert findings.message.startswith("2 of 3 ")


def test_a_trace_longer_than_the_context_is_not_examined_and_nothing_is_sent() -> None:
    findings, transport = found(context=512 + 1536)
    assert (findings.status, findings.findings) == ("unscored:too_long", ())
    assert "2,048" in findings.message
    assert transport.requests == []


@pytest.mark.parametrize(
    "text",
    [
        "I found nothing wrong.",
        '{"scores": []}',
        reply(ERROR)[:-120],
        reply(ERROR | {"location": "<span id>"}),
    ],
)
def test_a_reply_that_says_nothing_complete_is_no_clean_trace(text: str) -> None:
    with pytest.raises(ReplyError) as refusal:
        found(text, text)
    assert classify(refusal.value)[0] == "unscored:parse"
    findings, _ = found(text, reply())
    assert (findings.status, findings.findings) == (None, ())
