"""Gold and verdicts inside structured outputs and messages: withheld, or named as left visible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers import ReadResult, find_leaks, make_view, read_runs

# Every value is told apart by its text, so that what the judge sees can be searched for it.
OUTPUT = {
    "answer": "x", "expected": "SAID-E", "gold": "SAID-G", "target": "T", "score": "SAID-S",
    "reference": "SAID-R", "grade": "SAID-Q", "verdict": "SAID-V", "passed": True,
    "success": False, "correct_answer": "SAID-A", "expected_output": "SAID-O",
    "ground_truth": "SAID-U",
}  # fmt: skip


def read(folder: Path, *records: Any) -> ReadResult:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return read_runs(path)


def seen(folder: Path, record: Any) -> tuple[str, list[tuple[str, str, str]]]:
    """What the judge reads, and the leaks as (kind, place, excerpt)."""
    (run,) = read(folder, record).runs
    view = make_view(run)
    return view.trajectory, [(k.kind, k.where, k.excerpt) for k in find_leaks(run, view)]


def test_beside_an_answer_gold_and_verdicts_are_withheld_and_named(tmp_path: Path) -> None:
    result = read(tmp_path, {"id": "1", "output": OUTPUT})
    (run,) = result.runs
    assert json.loads(run.output) == {"answer": "x", "target": "T"}
    withheld = {f"output.{key}": OUTPUT[key] for key in OUTPUT if key not in ("answer", "target")}
    assert run.metadata["withheld"] == withheld
    (line,) = result.warnings
    assert line.endswith(f"x.jsonl:1: gold keys withheld: {', '.join(sorted(withheld))}")
    (leak,) = find_leaks(run, make_view(run))
    assert (leak.kind, leak.where, leak.excerpt) == ("gold_key", "output", "the key 'target'")


@pytest.mark.parametrize("key", [
    "expected", "gold", "reference", "success", "isSuccess", "correct", "passed", "pass",
    "verdict", "grade", "grades", "score", "scores", "reward",
])  # fmt: skip
def test_everyday_words_stay_where_they_may_be_the_answer_and_are_told(
    tmp_path: Path, key: str
) -> None:
    shown, leaks = seen(tmp_path, {"output": {"thought": "t", key: "SAID"}})
    assert "SAID" in shown
    assert [(where, text) for _, where, text in leaks] == [("output", f"the key {key!r}")]
    shown, leaks = seen(tmp_path, {"output": {"answer": "t", key: "SAID"}})
    assert "SAID" not in shown
    assert leaks == []
    nested = {"answer": "t", "sources": [{"text": "a", key: "SAID"}, {"text": "b", key: "SAID"}]}
    shown, leaks = seen(tmp_path, {"output": nested})
    assert shown.count("SAID") == 2  # inside, it is a part of the answer as often
    assert [where for _, where, _ in leaks] == ["output.sources[]"]


@pytest.mark.parametrize("key", ["target", "ideal", "solution", "label", "resolved", "evaluation",
                                 "rubric", "metrics", "assertions"])  # fmt: skip
def test_doubtful_words_are_told_beside_an_answer_only(tmp_path: Path, key: str) -> None:
    shown, leaks = seen(tmp_path, {"output": {"thought": "t", key: "SAID"}})
    assert "SAID" in shown
    assert leaks == []
    shown, leaks = seen(tmp_path, {"output": {"answer": "t", key: "SAID"}})
    assert "SAID" in shown
    assert [text for _, _, text in leaks] == [f"the key {key!r}"]


def test_what_the_agent_wrote_as_text_is_its_own(tmp_path: Path) -> None:
    text = json.dumps({"label": "spam", "score": 0.9, "verdict": "spam"})
    assert seen(tmp_path, {"output": text}) == (text, [])


LOG = {
    "problem": "What is 2 + 2?", "level": "Level 1", "solution": "SAID-SOLUTION",
    "response_with_ans": "It is 4.", "messages": [{"role": "assistant", "content": "It is 4."}],
}  # fmt: skip


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
@pytest.mark.parametrize(
    ("log", "gone"),
    [
        (LOG, {"solution"}),
        ({"question": "q", "answer": "a", "solution": "SAID-S"}, {"solution"}),
        ({"answer": "a", "solution": "SAID-S", "correct_ans": "SAID-C"},
         {"solution", "correct_ans"}),
        ({**LOG, "is_correct": "SAID-I", "check_result": "SAID-K", "correct_ans": "SAID-C"},
         {"solution", "is_correct", "check_result", "correct_ans"}),
        ({"final_answer": "a", "ground_truth": "SAID-G"}, {"ground_truth"}),
        ({"answer": "a", "solution": "my own steps"}, set()),
        ({"problem": "p", "solution": "my own steps"}, set()),  # nothing else answers
        ({"problem": "p", "code": 1}, set()),
    ],
)  # fmt: skip
def test_a_log_in_an_output_loses_its_solution(
    tmp_path: Path, log: dict[str, Any], gone: set[str], as_text: bool
) -> None:
    (run,) = (result := read(tmp_path, {"output": json.dumps(log) if as_text else log})).runs
    assert "SAID" not in make_view(run).trajectory
    assert set(run.metadata.get("withheld", {})) == {f"output.{key}" for key in gone}
    assert json.loads(run.output) == {key: log[key] for key in log if key not in gone}
    assert bool(result.warnings) == bool(gone)


def test_a_quiz_that_the_agent_wrote_as_text_is_its_own(tmp_path: Path) -> None:
    text = json.dumps({"question": "What is 2 + 2?", "correct_answer": "4"})
    (run,) = read(tmp_path, {"output": text}).runs
    assert (run.output, run.metadata) == (text, {})


def test_a_log_deep_in_an_output_loses_it_as_well(tmp_path: Path) -> None:
    (run,) = read(tmp_path, {"output": {"logs": [LOG, LOG]}}).runs
    assert set(run.metadata["withheld"]) == {"output.logs[0].solution", "output.logs[1].solution"}


def test_an_opened_envelope_shows_nothing_beside_its_text(tmp_path: Path) -> None:
    shown, leaks = seen(tmp_path, {"output": {"output": "said", "label": "L", "model": "m"}})
    assert (shown, leaks) == ("said", [])


def test_structured_messages_are_searched(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": {"thought": "hi", "expected": "E", "isCorrect": False}},
        {"role": "tool", "content": {"success": True, "rows": 3}},  # of the tool, no verdict
        {"role": "tool", "content": [{"rows": 3, "gold": "G"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done", "expected": "unseen"}]},
    ]
    _, leaks = seen(tmp_path, {"input": "q", "messages": messages})
    assert leaks == [
        ("gold_key", "messages[1].content", "the key 'expected'"),
        ("verdict", "messages[1].content", "the key 'isCorrect'"),
        ("gold_key", "messages[3].content", "the key 'gold'"),
    ]


def test_structured_agentchat_messages_are_searched(tmp_path: Path) -> None:
    messages = [
        {"source": "user", "type": "TextMessage", "content": "q"},
        {"source": "bot", "type": "StructuredMessage", "content": {"said": "a", "verdict": "good"}},
    ]
    _, leaks = seen(tmp_path, {"messages": messages, "stop_reason": None})
    assert leaks == [("verdict", "messages[1].content", "the key 'verdict'")]


def test_a_key_is_told_once(tmp_path: Path) -> None:
    """`is_correct` in a message is found in the text already."""
    message = {"role": "assistant", "content": {"said": "hi", "is_correct": True}}
    (run,) = read(tmp_path, {"input": "q", "output": "o", "messages": [message]}).runs
    assert [leak.kind for leak in find_leaks(run, make_view(run))] == ["verdict"]


def test_the_warning_outlives_a_dump(tmp_path: Path) -> None:
    (run,) = read(tmp_path, {"output": {"thought": "t", "score": 1}}).runs
    assert len(find_leaks(run, make_view(run))) == 1
    (again,) = read(tmp_path, run.model_dump(mode="json")).runs
    assert find_leaks(again, make_view(again)) == find_leaks(run, make_view(run))
