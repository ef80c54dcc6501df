"""Records of many tools to Runs. Expected values are written down by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import ReadResult, make_view, read_runs
from agenteval.records import Run, ToolCall


def read(tmp_path: Path, value: Any, **kwargs: Any) -> ReadResult:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value))
    return read_runs(path, **kwargs)


def one(tmp_path: Path, value: Any) -> Run:
    runs = read(tmp_path, value).runs
    assert len(runs) == 1
    return runs[0]


RECORDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "own names",
        {"id": "r", "task": "t", "system": "s", "input": "q", "output": "a", "success": False},
        {"id": "r", "task": "t", "system": "s", "input": "q", "output": "a", "success": False},
    ),
    (
        "DeepEval",
        {"input": "q", "actualOutput": "a", "expectedOutput": "g", "retrievalContext": ["c"]},
        {"input": "q", "output": "a", "reference": "g", "metadata": {"retrievalContext": ["c"]}},
    ),
    (
        "ragas",
        {"user_input": "q", "response": "a", "reference": "g", "retrieved_contexts": ["c"]},
        {"input": "q", "output": "a", "reference": "g"},
    ),
    (
        "pydantic-evals",
        {
            "name": "case", "inputs": {"question": "q"}, "output": "a", "expected_output": 4,
            "assertions": {"Equals": {"value": True}}, "scores": {}, "task_duration": 0.5,
        },
        {"id": "x", "input": "q", "output": "a", "reference": "4", "success": None},
    ),
    (
        "inspect_ai",
        {
            "id": 3, "input": [{"role": "user", "content": "q"}], "target": ["g"],
            "output": {"model": "m", "completion": "a",
                       "choices": [{"message": {"role": "assistant", "content": "a"}}]},
            "scores": {"match": {"value": "C"}},
        },
        {"id": "3", "input": "q", "output": "a", "reference": "g", "success": None},
    ),
    (
        "promptfoo",
        {
            "provider": {"id": "openai:m", "label": ""}, "prompt": {"raw": "q"},
            "response": {"output": "a", "tokenUsage": {}}, "success": True, "score": 1,
            "gradingResult": {"pass": True, "reason": "matches g"},
        },
        {"system": "openai:m", "input": "q", "output": "a", "success": True, "reference": None},
    ),
    (
        "OpenAI evals",
        {"input": [{"role": "system", "content": "short"}, {"role": "user", "content": "q"}],
         "ideal": ["g", "h"], "sampled": "a"},
        {"input": "q", "output": "a", "reference": '["g", "h"]'},
    ),
    (
        "Langfuse",
        {"input": {"query": "q", "expected_answer": "g"}, "output": {"content": "a"},
         "expectedOutput": "g"},
        {"input": "q", "output": "a", "reference": "g"},
    ),
    (
        "Alpaca",
        {"instruction": "Add the numbers.", "input": "17 and 25", "output": "42"},
        {"input": "Add the numbers.\n\n17 and 25", "output": "42"},
    ),
    (
        "question set with a prediction",
        {"question": "q", "answer": "g", "prediction": "a", "correct": 1},
        {"input": "q", "output": "a", "success": True, "metadata": {"answer": "g"}},
    ),
    ("answer alone is the output", {"question": "q", "answer": "a"}, {"input": "q", "output": "a"}),
    ("null loses", {"input": None, "query": "q", "output": None, "answer": "a"},
     {"input": "q", "output": "a"}),
    ("empty output", {"input": "q", "output": ""}, {"output": "", "messages": ()}),
    ("numbers and objects as text", {"input": {"a": 1, "b": [2]}, "output": 42.5},
     {"input": '{"a": 1, "b": [2]}', "output": "42.5"}),
    ("two verdicts: the first name counts", {"output": "a", "success": None, "label": "fail"},
     {"success": False}),
    ("a class label beside a verdict stays data", {"output": "a", "passed": True, "label": "cat"},
     {"success": True, "metadata": {"label": "cat"}}),
    ("a system prompt is no name", {"output": "a", "system": "You are\nkind.", "model": "m"},
     {"system": "m", "metadata": {"system": "You are\nkind."}}),
    ("transcript as one text", {"input": "q", "transcript": "A: hello"}, {"output": "A: hello"}),
    ("output as messages",
     {"input": "q", "output": [{"role": "assistant", "content": "a"}]}, {"output": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "expected"), [r[1:] for r in RECORDS], ids=[r[0] for r in RECORDS]
)
def test_records_of_other_tools(
    tmp_path: Path, record: dict[str, Any], expected: dict[str, Any]
) -> None:
    run = one(tmp_path, record)
    for name, value in expected.items():
        assert getattr(run, name) == value, name


GOLD = "GOLDEN-7391"
GOLD_KEYS = """
    reference expected expected_answer expectedAnswer ground_truth groundTruth gold gold_answer
    target ideal correct_ans correct_answer solution canonical_solution expected_output
    reference_answer check_result score scores grade gradingResult verdict evaluation rubric
"""


@pytest.mark.parametrize("key", GOLD_KEYS.split())
def test_gold_fields_never_reach_the_view(tmp_path: Path, key: str) -> None:
    record = {"input": {"text": "q", key: GOLD}, "output": "a", key: GOLD, "extra": GOLD}
    result = read(tmp_path, record)
    view = make_view(result.runs[0])
    assert GOLD not in view.model_dump_json()
    assert GOLD in result.runs[0].model_dump_json()  # kept, not lost
    assert f"input.{key}" in result.warnings[0]


def test_gold_inside_an_output_is_withheld_but_a_classifiers_answer_is_not(tmp_path: Path) -> None:
    output = {"label": "spam", "score": 0.9, "nested": {"ground_truth": GOLD, "is_correct": True}}
    run = one(tmp_path, {"input": "q", "output": output})
    assert json.loads(run.output) == {"label": "spam", "score": 0.9, "nested": {}}
    assert run.metadata["withheld"] == {
        "output.nested.ground_truth": GOLD,
        "output.nested.is_correct": True,
    }


VERDICTS = [
    (True, True), (False, False), (1, True), (0, False), ("true", True), ("False", False),
    ("PASS", True), ("failed", False), (" correct ", True), ("incorrect", False), ("1", True),
    (None, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), VERDICTS)
@pytest.mark.parametrize(
    "key", ["success", "is_correct", "correct", "passed", "label", "isCorrect"]
)
def test_verdicts(tmp_path: Path, key: str, value: Any, expected: bool | None) -> None:
    assert one(tmp_path, {"output": "a", key: value}).success is expected


@pytest.mark.parametrize("value", ["maybe", "B", 2, -1, 0.5, [], {"a": 1}, "truee"])
@pytest.mark.parametrize("key", ["success", "correct", "label"])
def test_other_verdicts_are_refused_by_name(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"'{key}' is "):
        read(tmp_path, {"output": "a", key: value})


def test_task_is_given_only_where_there_is_none(tmp_path: Path) -> None:
    runs = read(tmp_path, [{"output": "a"}, {"output": "b", "task": "own"}], task="math").runs
    assert [r.task for r in runs] == ["math", "own"]


OPENAI: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                 {"type": "image_url", "image_url": {"url": "data:..."}}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "see", "arguments": '{"zoom": 2}'}},
        {"id": "c2", "type": "function", "function": {"name": "see", "arguments": '{"zoom": '}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
    {"role": "function", "name": "old", "content": "ok"},
    {"role": "assistant", "content": "A cat.", "name": "eye", "reasoning_content": "fur"},
    {"role": "assistant", "content": "", "refusal": "I cannot say more."},
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"messages": m}, lambda m: [m]])
def test_openai_messages(tmp_path: Path, wrap: Any) -> None:
    run = one(tmp_path, wrap(OPENAI))
    assert run.input == "What is this?\n[image]"
    assert run.output == "I cannot say more."
    assert [m.role for m in run.messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant", "assistant",
    ]  # fmt: skip
    assert run.messages[2].tool_calls == (
        ToolCall(name="see", arguments={"zoom": 2}, id="c1"),
        ToolCall(name="see", arguments='{"zoom": ', id="c2"),
    )
    assert run.messages[3].tool_call_id == "c1"
    assert run.messages[4].tool_calls == (ToolCall(name="old", arguments={}),)
    assert run.messages[5].name == "old"
    assert run.messages[6].name == "eye"
    assert run.metadata["message_fields"] == {"6": {"reasoning_content": "fur"}}


def test_messages_of_relatives(tmp_path: Path) -> None:
    share = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}
    chain = {"history": [{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}]}
    parts = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "u", "name": "look", "input": {"at": "x"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "u",
             "content": [{"type": "text", "text": "seen"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    ]  # fmt: skip
    for value in (share, chain, parts):
        run = one(tmp_path, value)
        assert (run.input, run.output) == ("q", "a")
    assert [(m.role, m.content) for m in run.messages] == [
        ("user", "q"), ("assistant", ""), ("tool", "seen"), ("assistant", "a"),
    ]  # fmt: skip
    assert run.messages[1].tool_calls == (ToolCall(name="look", arguments={"at": "x"}, id="u"),)


LOG: dict[str, Any] = {
    "problem": "How long does a tank of 240 litres last at 3 litres an hour?",
    "level": "Level 1", "type": "Prealgebra", "solution": "240 / 3 = 80, so the answer is 80.",
    "correct_ans": "80", "problem_id": "7", "response_with_ans": "It lasts 80 hours.", "round": 1,
    "messages": [
        {"content": "How long does a tank of 240 litres last at 3 litres an hour?\nUse Python.",
         "role": "user"},
        {"content": "It lasts 80 hours.", "role": "assistant"},
        {"content": "", "role": "user"},
        {"content": "TERMINATE", "role": "assistant"},
    ],
    "time": 1.5, "check_result": "the two answers are equal", "is_correct": True, "trial": -1,
}  # fmt: skip


def test_autogen_log(tmp_path: Path) -> None:
    run = one(tmp_path, LOG)
    assert run.id == "x"  # problem_id repeats from folder to folder
    assert run.input == LOG["problem"]
    assert run.output == "It lasts 80 hours."
    assert (run.reference, run.success, run.system) == ("80", True, "unnamed")
    assert [m.role for m in run.messages] == ["user", "assistant", "user", "assistant"]
    assert run.metadata["solution"] == LOG["solution"]
    assert run.metadata["problem_id"] == "7"
    shown = make_view(run).model_dump_json()
    assert "the two answers are equal" not in shown
    assert "so the answer is 80" not in shown
    assert "[final output]" not in shown  # TERMINATE says nothing, so the output is the last word


def test_logs_of_a_single_call_and_of_a_react_agent(tmp_path: Path) -> None:
    """They have no messages; what the agent answered is `response_with_ans`."""
    single = {key: item for key, item in LOG.items() if key not in ("messages", "round", "trial")}
    steps = [
        [{"tool": "python", "tool_input": "240 / 3", "log": "I divide.\nAction: python"}, "80.0"],
        ["Thought: that is the answer", "ok"],
    ]
    react = {**single, "messages": [], "intermediate_steps": steps, "total_cost": 0.1}
    for log in (single, {**single, "messages": None}, react):
        run = one(tmp_path, log)
        assert (run.id, run.input, run.output) == ("x", LOG["problem"], "It lasts 80 hours.")
        assert (run.reference, run.success, run.metadata["problem_id"]) == ("80", True, "7")
        shown = make_view(run).model_dump_json()
        assert "the two answers are equal" not in shown
        assert "so the answer is 80" not in shown
    assert [(m.role, m.content) for m in run.messages] == [
        ("assistant", "I divide.\nAction: python"), ("tool", "80.0"),
        ("assistant", "Thought: that is the answer"), ("tool", "ok"),
    ]  # fmt: skip
    assert make_view(run).trajectory.endswith("[final output]\nIt lasts 80 hours.")
    strange = one(tmp_path, {**react, "intermediate_steps": "Action: python"})
    assert (strange.messages, strange.metadata["intermediate_steps"]) == ((), "Action: python")


def test_autogen_log_from_the_other_side(tmp_path: Path) -> None:
    other = {"user": "assistant", "assistant": "user"}
    turned = [{**m, "role": other[m["role"]]} for m in LOG["messages"]]
    run, straight = one(tmp_path, {**LOG, "messages": turned}), one(tmp_path, LOG)
    assert run.messages == straight.messages
    assert run.output == straight.output
    assert run.metadata["roles_exchanged"] is True
    assert "roles_exchanged" not in straight.metadata
