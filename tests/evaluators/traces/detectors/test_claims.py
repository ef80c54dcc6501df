"""Calls that were claimed and never made; answers of tools that the model wrote itself."""

from __future__ import annotations

import pytest

from agenteval.records import Message, ToolCall
from tests.evaluators.traces.detectors.conftest import Trace, tool_spec

TOOLS = (tool_spec("search_web"), tool_spec("get_weather"), tool_spec("lookup"))


@pytest.mark.parametrize(
    "reply",
    [
        "I called search_web and it returned three pages.",
        "I have used the `search_web` tool: Rome has 2.8 million inhabitants.",
        "I've queried search_web() for this. It says 42.",
        "search_web returned: 42.",
        "According to search_web, the answer is 42.",
        "Based on the results from search_web, it is Rome.",
        "The `search_web` tool confirmed that it is Rome.",
    ],
)
def test_claims_without_a_call(reply: str) -> None:
    trace = Trace(tools=TOOLS)
    at = trace.ask(reply)
    (finding,) = trace.found()
    assert (finding.source, finding.category, finding.span) == (
        "detector:claimed-call", "Tool-related", at,
    )  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        "I have not called search_web.",
        "I could have used search_web, but it was not needed.",
        "I will call search_web next.",
        "Should I say that search_web returned nothing?",
        "If search_web returned nothing, try again.",
        "You said that search_web returned 42.",
        "I used the lookup table in my head.",  # an ordinary word
        "```\nI called search_web\n```",
        "The tool search_web returns pages.",
        "Use search_web to find more.",
    ],
)
def test_words_about_tools_that_claim_nothing(reply: str) -> None:
    trace = Trace(tools=TOOLS)
    trace.ask(reply)
    assert trace.found() == []


def test_calls_that_were_made_somewhere() -> None:
    said = "I called search_web and it returned three pages."
    asked = Trace(tools=TOOLS)
    asked.step("search_web", {}, "three pages")
    asked.ask(said)
    assert asked.found() == []
    only_span = Trace(tools=TOOLS)
    only_span.add(kind="tool", tool="search_web", output="three pages", status="ok")
    only_span.ask(said)
    assert only_span.found() == []
    before = Trace(tools=TOOLS)  # the call was made before the trace begins
    before.messages.append(
        Message(role="assistant", tool_calls=(ToolCall(name="search_web", id="x"),))
    )
    before.messages.append(Message(role="tool", content="three pages", tool_call_id="x"))
    before.ask(said)
    assert before.found() == []
    code = Trace(tools=TOOLS)  # an agent that calls tools in code
    code.ask("```py\npages = search_web('rome')\n```")
    code.user("Observation: three pages")
    code.ask(said)
    assert code.found() == []
    told = Trace(user="My colleague says: search_web returned three pages.", tools=TOOLS)
    told.ask("According to search_web, there are three.")
    assert told.found() == []
    unknown = Trace()  # the trace does not say which tools there were
    unknown.ask(said)
    assert unknown.found() == []


REACT = (
    "Thought: I look.\nAction: search\nAction Input: rome\nObservation: Rome is old.\nThought: ok"
)


def test_observations_that_the_model_wrote() -> None:
    trace = Trace(system="Use Action and Action Input. You will then see the result.")
    at = trace.ask(REACT)
    (finding,) = trace.found()
    assert (finding.source, finding.span) == ("detector:invented-observation", at)
    assert finding.evidence == "Observation: Rome is old."
    tagged = Trace()
    tagged.ask(
        '<tool_call>\n{"name": "f"}\n</tool_call>\n<tool_response>\n{"a": 1}\n</tool_response>'
    )
    assert tagged.names() == ["invented-observation"]


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: I look.\nAction: search\nAction Input: rome",
        "Thought: I look.\nAction: search\nAction Input: rome\nObservation:",
        "Observation: the sky is blue.",
        "My action: I looked. My observation: it rains.",
        f"This is the form:\n```\n{REACT}\n```\n",
    ],
)
def test_observations_that_it_did_not(reply: str) -> None:
    trace = Trace()
    trace.ask(reply)
    assert trace.found() == []


def test_a_question_about_the_form() -> None:
    trace = Trace(user="Show me an example of a ReAct trace.")
    trace.ask(REACT)
    assert trace.found() == []
