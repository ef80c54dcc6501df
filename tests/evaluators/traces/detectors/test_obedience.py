"""Markers, JSON and lengths that prompts demand, and those that they only mention."""

from __future__ import annotations

import json

import pytest

from agenteval.evaluators.traces.detectors.demands import demands
from agenteval.evaluators.traces.detectors.obedience import holds_json
from agenteval.records import Message, ToolCall
from tests.evaluators.traces.detectors.conftest import Trace, usage


def marker(text: str) -> list[str]:
    return [d.marker for d in demands(text) if d.kind == "marker"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Always end your reply with the word TERMINATE.", "TERMINATE"),
        ("You help. End every answer with '[END]'.", "[END]"),
        ("Your response must end with the line \"-- over and out\".", "-- over and out"),
        ("1. Do the task.\n2. Finish each message with <done/>.", "<done/>"),
        ("After writing the final step of the plan, write the '\\n<end_plan>' tag and stop there.",
         "<end_plan>"),
        ("The code sequence must end with '<end_code>' sequence.", "<end_code>"),
        ("Finish your answer with the following template: \"FINAL ANSWER: [YOUR FINAL ANSWER]\"",
         "FINAL ANSWER:"),
        ("Every reply should end with the token `##OVER##`", "##OVER##"),
        ("Please conclude your final answer with the phrase \"That is all.\"", "That is all."),
        ("Make sure to end your output with a line saying 'SIGNED: {name}'.", "SIGNED:"),
    ],
)  # fmt: skip
def test_markers_that_are_demanded(prompt: str, expected: str) -> None:
    assert marker(prompt) == [expected]


@pytest.mark.parametrize(
    "prompt",
    [
        "When the task is done, end your reply with TERMINATE.",
        "End your reply with TERMINATE once everything is solved.",
        "If you cannot answer, end your reply with the word HELP.",
        "Do not end your reply with the word TERMINATE.",
        "Never end an answer with 'Regards'.",
        "You may end your reply with 'Cheers'.",
        'End your reply with a "call to action".',
        "End your reply with JSON.",
        "End your answer with a friendly question.",
        "The user said: \"end your reply with 'DONE'\".",
        "```\nEnd your reply with 'DONE'.\n```",
        "> End your reply with 'DONE'.",
        "<document>\nEnd your reply with 'DONE'.\n</document>",
        "Their letters end with 'Yours'. Answer in the same spirit.",
        "End with a bang.",
        'End your reply with "..."',
    ],
)
def test_markers_that_are_not_demanded(prompt: str) -> None:
    assert marker(prompt) == []


def test_a_reply_without_its_marker() -> None:
    trace = Trace(system="Help. End every reply with the word OVER.")
    first = trace.ask("Rome.")
    trace.user("And Spain?")
    trace.ask("Madrid.")
    (finding,) = trace.found()
    assert (finding.source, finding.category, finding.span, finding.impact, finding.evidence) == (
        "detector:end-marker", "Instruction Non-compliance", first, "LOW", "Rome.",
    )  # fmt: skip


@pytest.mark.parametrize("reply", ["Rome. OVER", "Rome.\n**over**", "OVER is not the end"])
def test_a_reply_with_its_marker(reply: str) -> None:
    trace = Trace(system="Help. End every reply with the word OVER.")
    trace.ask(reply)
    assert trace.found() == []


def test_replies_of_which_no_marker_is_expected() -> None:
    system = "End every reply with '<end_plan>'."
    calling = Trace(system=system)
    calling.ask("I look.", ("find", {}))
    assert calling.found("end-marker") == []
    cut = Trace(system=system)
    cut.ask("I would", finish="length")
    assert cut.found("end-marker") == []
    for attributes in (
        {"llm.invocation_parameters": json.dumps({"stop": ["<end_plan>", "Observation:"]})},
        {"llm.invocation_parameters": json.dumps({"stop_sequences": ["<end_plan>"]})},
        {"gen_ai.request.stop_sequences": ["<end_plan>"]},
    ):
        stopped = Trace(system=system)  # the provider takes a stop sequence away
        stopped.ask("The plan.", attributes=attributes)
        assert stopped.found() == []
    stopped = Trace(system=system)
    stopped.ask("The plan.", input=json.dumps({"messages": [], "stop": "<end_plan>"}))
    assert stopped.found() == []
    old = Trace(user="End your reply with the word OVER.")  # a demand of another turn
    old.ask("Good. OVER")
    old.user("And now as you like.")
    old.ask("Fine.")
    assert old.found() == []


def test_the_demand_holds_over_calls() -> None:
    trace = Trace(user="Find it. End your answer with the word OVER.")
    trace.step("find", {}, "a result that ends with the word OVER")
    at = trace.ask("Found.")
    assert [(f.source, f.span) for f in trace.found()] == [("detector:end-marker", at)]


def test_a_step_in_words_is_a_call_and_no_answer() -> None:
    trace = Trace(system="End every reply with the word OVER.")
    trace.ask("Thought: I look.\nAction: find\nAction Input: {}")
    trace.user("Observation: a result")
    at = trace.ask("Final Answer: found.")
    assert [(f.source, f.span) for f in trace.found()] == [("detector:end-marker", at)]


def test_final_answers_and_code() -> None:
    final = Trace(system="End your final answer with the word OVER.")
    final.ask("I think first.")
    final.user("Go on.")
    last = final.ask("Rome.")
    assert [f.span for f in final.found()] == [last]
    code = Trace(system="The code sequence must end with '<end_code>' sequence.")
    code.ask("Only words, no code.")
    code.user("Go on.")
    at = code.ask("Thought: now.\n```py\nprint(1)\n```")
    assert [f.span for f in code.found()] == [at]


def lengths(text: str) -> list[tuple[str, int]]:
    return [(d.kind, d.most) for d in demands(text) if d.kind in ("words", "characters")]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Answer in at most 20 words.", ("words", 20)),
        ("Please reply with no more than 1,000 characters.", ("characters", 1000)),
        ("Your answer must not exceed 50 words.", ("words", 50)),
        ("Keep your reply under 30 words.", ("words", 30)),
        ("Keep every response to 280 characters.", ("characters", 280)),
        ("Respond in 15 words or fewer.", ("words", 15)),
        ("The whole answer must be at most 40 words.", ("words", 40)),
    ],
)
def test_lengths_that_are_demanded(prompt: str, expected: tuple[str, int]) -> None:
    assert lengths(prompt) == [expected]


@pytest.mark.parametrize(
    "prompt",
    [
        "Write a summary of at most 50 words, then list the sources.",
        "Keep each bullet under 10 words.",
        "Keep every thought under 20 words.",
        "Your answer must have at least 50 words.",
        "If asked for a tweet, answer in at most 280 characters.",
        'The review says: "answer in at most 5 words".',
        "Your answer must be 50 words long.",
        "The title of your answer must have at most 5 words.",
    ],
)
def test_lengths_that_are_not(prompt: str) -> None:
    assert lengths(prompt) == []


def test_a_reply_that_is_too_long() -> None:
    trace = Trace(user="What is it? Answer in at most 10 words.")
    at = trace.ask("word " * 12)
    assert [(f.source, f.span) for f in trace.found()] == [("detector:length-limit", at)]
    close = Trace(user="What is it? Answer in at most 10 words.")
    close.ask("one two three - four five six - seven eight nine ten eleven")  # 11, within a tenth
    assert close.found() == []


@pytest.mark.parametrize(
    "system",
    [
        "Reply with JSON only.",
        "Respond only with a valid JSON object.",
        'Return just JSON: {"a": 1}',
        "Your reply must be valid JSON.",
        "Answer with nothing but a JSON array.",
    ],
)
def test_json_that_was_demanded(system: str) -> None:
    for reply, expected in (
        ("It is Rome.", ["no-json"]),
        ('{"city": "Rome', ["no-json"]),
        ('{"city": "Rome"}', []),
        ('```json\n{"city": "Rome"}\n```', []),
        ('Here you are: {"city": "Rome"}', []),
        ("[1, 2]", []),
    ):
        trace = Trace(system=system)
        trace.ask(reply)
        assert trace.names() == expected, reply


@pytest.mark.parametrize(
    "system",
    [
        "If the user asks for data, reply with JSON only.",
        "Do not reply with JSON only.",
        'You convert text. An example of a bad prompt is "reply with JSON only".',
        "Answer questions about JSON only.",
        "Tools return only JSON. Explain it in words.",
    ],
)
def test_json_that_was_not(system: str) -> None:
    trace = Trace(system=system)
    trace.ask("It is Rome.")
    assert trace.found() == []


def test_the_response_format() -> None:
    given = json.dumps({"response_format": {"type": "json_object"}})
    trace = Trace()
    at = trace.ask("It is Rome.", attributes={"llm.invocation_parameters": given})
    (finding,) = trace.found()
    assert (finding.source, finding.span) == ("detector:no-json", at)
    text = json.dumps({"response_format": {"type": "text"}})
    other = Trace()
    other.ask("It is Rome.", attributes={"llm.invocation_parameters": text})
    other.ask("", ("f", {}), attributes={"llm.invocation_parameters": given})
    assert other.found() == []


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "no", "[city]", "{" * 5000])
def test_texts_without_json(text: str) -> None:
    assert not holds_json(text)


def test_limits_of_tokens() -> None:
    trace = Trace()
    at = trace.ask("The answer is", finish="length", limit=100, usage=usage(100))
    (finding,) = trace.found()
    assert (finding.source, finding.span, finding.confidence) == ("detector:cut-answer", at, 0.6)
    full = Trace()
    at = full.ask("The answer is", finish="length", limit=100, usage=usage(40))
    assert [(f.source, f.span) for f in full.found()] == [("detector:context-full", at)]
    said = Trace()
    said.ask("The answer is", finish="model_context_window_exceeded")
    assert said.names() == ["context-full"]
    fine = Trace()
    fine.ask("It is as long as allowed.", limit=6, usage=usage(6))
    fine.ask("No numbers.", finish="stop")
    assert fine.found() == []
    mended = Trace()  # cut, and asked to go on
    mended.ask("The ans", finish="length", limit=3, usage=usage(3))
    mended.user("Go on.")
    mended.ask("wer is 4.")
    assert mended.found() == []


def test_prompts_of_a_conversation_that_ends_with_results() -> None:
    from agenteval.evaluators.traces.detectors.obedience import prompts

    talk = (
        Message(role="system", content="s1"),
        Message(role="system", content="s2"),
        Message(role="user", content="old"),
        Message(role="assistant", content="answer"),
        Message(role="user", content="a"),
        Message(role="user", content="b"),
        Message(role="assistant", tool_calls=(ToolCall(name="f"),)),
        Message(role="tool", content="r"),
    )
    assert [m.content for m in prompts(talk)] == ["s1", "s2", "a", "b"]
