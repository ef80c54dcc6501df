"""What the agent was asked and how it ended, in traces of several conventions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers.assignment import Passage, assignment
from agenteval.readers.traces import read_traces
from agenteval.records import Message, Run, Span

DEV = Path(__file__).parents[4] / "shared/reference/traces/trail_dev"


def said(role: Any, text: str) -> Message:
    return Message(role=role, content=text)


def span(
    id: str, kind: Any, parent: str | None = None, start: float | None = None, **more: Any
) -> Span:
    return Span(
        id=id, kind=kind, parent_id=parent, start=start, name=more.pop("name", kind), **more
    )


MODEL = {
    "messages": (said("system", "Be brief."), said("user", "Context: ...")),
    "reply": (said("assistant", "It is 4."),),
}
PYTHON = str({"question": "Why?", "answer": None})
LANGCHAIN = json.dumps(
    {"messages": [{"lc": 1, "type": "constructor", "kwargs": {"type": "human", "content": "Why?"}}]}
)

CASES = {
    "an agent's argument below an empty wrapper": (
        [
            span("w", "chain", input="{}", output="<null>"),
            span("a", "agent", "w", input='{"task": "2 + 2?", "stream": false}', output="4"),
            span("m", "llm", "a", **MODEL),
        ],
        ("2 + 2?", "a"),
        ("4", "a"),
        ("Be brief.", "m"),
    ),
    "an agent without output, whose helper spoke last": (
        [
            span("a", "agent", input="2 + 2?", output="null"),
            span("m", "llm", "a", **MODEL),
            span("b", "agent", "a", input="help", output="five"),
            span("n", "llm", "b", reply=(said("assistant", "five"),)),
        ],
        ("2 + 2?", "a"),
        ("It is 4.", "m"),
        ("Be brief.", "m"),
    ),
    "agents that tell nothing": (
        [span("w", "agent", name="flow"), span("a", "agent", "w"), span("m", "llm", "a", **MODEL)],
        ("Context: ...", "m"),
        ("It is 4.", "m"),
        ("Be brief.", "m"),
    ),
    "an agent that says nothing of a request it hands on in other words": (
        [
            span("a", "agent"),
            span("s", "chain", "a", name="step", output="a step's result"),
            span("m", "llm", "s", **MODEL),
            span("b", "agent", "s", name="helper", input="look up 2 + 2", output="four"),
        ],
        ("Context: ...", "m"),
        ("It is 4.", "m"),
        ("Be brief.", "m"),
    ),
    "messages on the agent itself": (
        [span("a", "agent", **MODEL), span("t", "tool", "a", input="1", output="2")],
        ("Context: ...", "a"),
        ("It is 4.", "a"),
        ("Be brief.", "a"),
    ),
    "a chain asked before the prompt was made of it": (
        [
            span(
                "c",
                "chain",
                input='{"question": "2 + 2?", "k": 3}',
                output='{"outputs": {"answer": "4"}, "kwargs": {}}',
            ),
            span("m", "llm", "c", **MODEL),
        ],
        ("2 + 2?", "c"),
        ("4", "c"),
        ("Be brief.", "m"),
    ),
    "a row of a data set around the model": (
        [
            span("c", "chain", input='{"item": {"id": 3}}', output="{}"),
            span("m", "llm", "c", **MODEL),
        ],
        ("Context: ...", "m"),
        ("It is 4.", "m"),
        ("Be brief.", "m"),
    ),
    "the first in time, not in the file": (
        [
            span("b", "agent", start=2.0, name="second", input="then this", output="two"),
            span("a", "agent", start=1.0, name="first", input="do this", output="one"),
        ],
        ("do this", "a"),
        ("one", "a"),
        ("", None),
    ),
    "an agent called again for the next turn": (
        [
            span("a", "agent", name="clerk", input="hello", output="hi"),
            span("b", "agent", name="clerk", input="my order?", output="sent"),
        ],
        ("hello", "a"),
        ("sent", "b"),
        ("", None),
    ),
    "an answer by a tool for answers": (
        [
            span("a", "agent", input="2 + 2?"),
            span("m", "llm", "a", reply=(said("assistant", ""),)),
            span("t", "tool", "a", tool="final_answer", output="4"),
        ],
        ("2 + 2?", "a"),
        ("4", "t"),
        ("", None),
    ),
    "a Python literal": (
        [span("c", "chain", "x", input=PYTHON), span("m", "llm", "c", **MODEL)],
        ("Why?", "c"),
        ("It is 4.", "m"),
        ("Be brief.", "m"),
    ),
    "messages as LangChain writes them": (
        [
            span(
                "c",
                "chain",
                input=LANGCHAIN,
                output='{"messages": [["human", "Why?"], ["ai", "So."]]}',
            )
        ],
        ("Why?", "c"),
        ("So.", "c"),
        ("", None),
    ),
    "nothing": (
        [span("c", "chain", input="{}", output="null")],
        ("", None),
        ("", None),
        ("", None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_task_ending_and_instructions_come_from_the_span_that_tells_them(name: str) -> None:
    spans, task, ending, instructions = CASES[name]
    told = assignment(Run(id="r", spans=tuple(spans)))
    assert (told.task, told.ending, told.instructions) == (
        Passage(*task),
        Passage(*ending),
        Passage(*instructions),
    )


def test_what_the_run_itself_says_counts_before_its_spans() -> None:
    spans, task, ending, _ = CASES["an agent's argument below an empty wrapper"]
    own = assignment(Run(id="r", input="Mine", output="My end", spans=tuple(spans)))
    assert (own.task, own.ending) == (Passage("Mine"), Passage("My end"))
    empty = assignment(Run(id="r", input="{}", output="<null>", spans=tuple(spans)))
    assert (empty.task, empty.ending) == (Passage(*task), Passage(*ending))


@pytest.mark.slow
@pytest.mark.skipif(not DEV.is_dir(), reason="needs ../shared/reference")
def test_every_development_trace_tells_its_agents_task_and_answer() -> None:
    for path in sorted(DEV.glob("*/traces/*.json")):
        run = read_traces(path).runs[0]
        told, agent = assignment(run), next(s for s in run.spans if s.kind == "agent")
        assert told.task == Passage(json.loads(agent.input)["task"], agent.id)
        assert run.input == told.task.text
        assert run.output == told.ending.text != ""
        assert told.ending.span == agent.id or not agent.output
