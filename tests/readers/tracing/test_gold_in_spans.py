"""Gold in spans is withheld in every form in which programs write it; what a model wrote stays."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.readers.gold import MARK, without_gold
from agenteval.readers.traces import read_traces
from agenteval.records import Message, Run, Span, SpanEvent, ToolCall
from agenteval.traces.condense import Options, condense
from agenteval.traces.outline import trace_key
from tests.readers.tracing.test_assignment import DEV

ROW = {"question": "q", "true_answer": "It's 1954", "n": 3}
GONE = {**ROW, "true_answer": MARK}
LEAKING = '{"true_answer": "1954", "is_correct": true}'


def cleaned(text: str, kind: Any = "tool") -> str:
    """The output of a span after the agent began, without gold."""
    run = Run(id="r", spans=(Span(id="a", kind="agent"), Span(id="s", kind=kind, output=text)))
    return without_gold(run).spans[1].output


TEXTS = {
    "json": (json.dumps(ROW), json.dumps(GONE)),
    "json in json": (json.dumps({"row": json.dumps(ROW)}), json.dumps({"row": json.dumps(GONE)})),
    "a Python dictionary in prose": (
        f"Working on {ROW}.",
        f"Working on {GONE}.".replace(f"'{MARK}'", f'"{MARK}"'),
    ),
    "a Python dictionary in json": (
        json.dumps([str({"true_answer": "a 'b' \"c\"", "n": 1})]),
        json.dumps([str({"true_answer": MARK, "n": 1})]),
    ),
    "an object as Python prints it": ("Row(true_answer='1954', n=1)", "Row(true_answer='#', n=1)"),
    "a list": ('{"FAIL_TO_PASS": ["a", {"b": "]"}], "n": 1}', '{"FAIL_TO_PASS": "#", "n": 1}'),
    "a number": ('{"ground_truth": -1.5e3, "n": 1}', '{"ground_truth": "#", "n": 1}'),
    "a name in words": ('{"Annotator Metadata": {"Steps": "1"}}', '{"Annotator Metadata": "#"}'),
    "broken off": ('{"test_patch": "diff --git', '{"test_patch": "#"'),
    "beside gold": ('{"patch": "+1", "test_patch": "+2"}', '{"patch": "#", "test_patch": "#"}'),
    "not beside gold": ('{"patch": "+1", "hints": "x"}', '{"patch": "+1", "hints": "x"}'),
    "names of columns": ("['question', 'true_answer']", "['question', 'true_answer']"),
    "a form to fill in": ('{"is_correct": <true or false>}', '{"is_correct": <true or false>}'),
    "nothing": ('{"ground_truth": null}', '{"ground_truth": null}'),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_value_goes_and_the_rest_of_the_text_stays(name: str) -> None:
    text, expected = TEXTS[name]
    assert cleaned(text) == expected.replace("#", MARK)


def test_a_step_that_scores_tells_neither_gold_nor_verdict() -> None:
    said = '{"prediction": "20", "expected": "41", "correct": false}'
    assert cleaned(said, "chain") == '{"prediction": "20"}'
    assert cleaned(said, "tool") == said  # a tool's own result


_ANY = st.text(st.sampled_from("ab\\\"'{}[]:, \n"), max_size=12)


@given(_ANY, _ANY, _ANY, st.integers(0, 3))
def test_any_text_is_found_at_any_depth_of_quoting(
    gold: str, before: str, after: str, deep: int
) -> None:
    row = {"before": before, "true_answer": f"x{gold}", "after": after}
    text = json.dumps(row)
    for _ in range(deep):
        text = json.dumps({"row": text})
    clean = cleaned(text)
    for _ in range(deep):
        clean = json.loads(clean)["row"]
    assert json.loads(clean) == {**row, "true_answer": MARK}


def test_what_was_there_before_the_models_is_the_users_and_their_words_are_theirs() -> None:
    row = json.dumps({"question": "q", "answer": "1954"})
    said = Message(
        role="assistant", content=LEAKING, tool_calls=(ToolCall(name="t", arguments=LEAKING),)
    )
    spans = (
        Span(id="main", input=row, output=row),
        Span(
            id="load",
            parent_id="main",
            output=row,
            attributes={"example.true_answer": 1954, "rows": [{"gold_patch": "+1", "n": 2}]},
        ),
        Span(id="agent", kind="agent", parent_id="main", input=row, output=row),
        Span(
            id="model",
            kind="llm",
            parent_id="agent",
            output=LEAKING,
            reply=(said,),
            messages=(Message(role="user", content=LEAKING), said),
        ),
        Span(
            id="eval",
            output='{"score": 0, "by": "x"}',
            attributes={"openinference.span.kind": "EVALUATOR"},
        ),
        Span(
            id="tool",
            kind="tool",
            parent_id="agent",
            input=LEAKING,
            output=LEAKING,
            events=(SpanEvent(name="e", attributes={"row": LEAKING}),),
        ),
    )
    run = without_gold(Run(id="r", spans=spans))
    broken = Span(id="b", attributes={"rows": ["{'true_answer': 'abc", "more"]})
    assert "abc" not in str(without_gold(Run(id="r", spans=(broken,))).spans)
    main, load, agent, model, evaluated, tool = run.spans
    gone = f'{{"true_answer": "{MARK}", "is_correct": "{MARK}"}}'
    assert (main.input, main.output) == ('{"question": "q"}', row)  # the output is the system's
    assert load.output == agent.input == '{"question": "q"}'
    assert load.attributes == {"example.true_answer": MARK, "rows": [{"n": 2}]}
    assert (agent.output, evaluated.output) == (row, '{"by": "x"}')
    assert (model.output, model.reply, model.messages[1]) == (LEAKING, (said,), said)
    assert model.messages[0].content == gone
    assert (tool.input, tool.output, tool.events[0].attributes["row"]) == (LEAKING, gone, gone)
    assert run.metadata["withheld"] == {
        "spans.main.input.answer": "1954",
        "spans.load.output.answer": "1954",
        "spans.load.attributes.example.true_answer": 1954,
        "spans.load.attributes.rows[0].gold_patch": "+1",
        "spans.agent.input.answer": "1954",
        "spans.model.messages.true_answer": "1954",
        "spans.model.messages.is_correct": "true",
        "spans.eval.output.score": 0,
        "spans.tool.output.true_answer": "1954",
        "spans.tool.output.is_correct": "true",
        "spans.tool.events.row.true_answer": "1954",
        "spans.tool.events.row.is_correct": "true",
    }
    assert without_gold(run) is run


@pytest.mark.parametrize(
    "text",
    [
        "\\\\" * 300_000,
        '"true_answer": {' * 50_000,
        "'true_answer': '" * 50_000,
        '"true_answer": "x' + '\\\\" ' * 100_000,
        '"' * 500_000,
        "true_answer=" * 50_000,
        '"true_answer"' + " " * 500_000,
        '{"a":' * 50_000,
    ],
)
def test_hostile_texts_take_no_more_than_their_length(text: str) -> None:
    started = time.process_time()
    cleaned(text)
    cleaned(text, "chain")
    assert time.process_time() - started < 3


@pytest.mark.slow
@pytest.mark.skipif(not DEV.is_dir(), reason="needs ../shared/reference")
def test_no_gold_of_the_development_traces_is_left_and_no_evidence_goes() -> None:
    for path in sorted(DEV.glob("*/traces/*.json")):
        shown, whole = read_traces(path).runs[0], read_traces(path, with_gold=True).runs[0]
        kept = shown.metadata["withheld"]
        assert {k.rpartition(".")[2] for k in kept} >= (
            {"true_answer", "Annotator Metadata"}
            if "gaia" in path.parts
            else {"patch", "test_patch", "FAIL_TO_PASS", "PASS_TO_PASS"}
        )
        pieces = condense(shown, Options(budget=None, piece=10**6)).pieces
        text = "\n".join(p.text for p in pieces if p.kind == "chain")
        for value in kept.values():
            long = str(value)[:60]  # "41" may stand anywhere
            assert len(long) < 60 or json.dumps(long, ensure_ascii=False)[1:-1] not in text
        changed = [a.kind for a, b in zip(shown.spans, whole.spans, strict=True) if a != b]
        assert set(changed) == {"chain"}  # annotators quote models and tools
        assert trace_key(shown) == trace_key(whole)
