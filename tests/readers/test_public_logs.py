"""Files of public benchmarks and tools, made anew after their schema: what is read of each, or the
facts of the refusal. Gold is in every file that can have it, and never in a view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import make_view, read_runs
from agenteval.readers.scores import read_scores

GOLD = "GOLD-7391"


@dataclass(frozen=True)
class Case:
    """A file (rows are JSON lines, anything else one document), and what is read of it."""

    name: str
    content: Any
    system: str = "unnamed"
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    success: tuple[bool | None, ...] = ()
    gold: tuple[str | None, ...] = ()
    seen: str = ""  # by the judge, of the first run
    failed: tuple[str | None, ...] = ()
    warned: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)


def rows(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def event(number: int, sample: str, kind: str, **data: Any) -> dict[str, Any]:
    return {
        "run_id": "r",
        "event_id": number,
        "sample_id": sample,
        "type": kind,
        "data": data,
        "created_by": "",
        "created_at": "2024-01-01",
    }


MT_ANSWER = {
    "question_id": 81,
    "answer_id": "x",
    "model_id": "vicuna",
    "tstamp": 1.5,
    "choices": [{"index": 0, "turns": ["First.", "Second."]}],
}
MT_QUESTION = {
    "question_id": 81,
    "category": "writing",
    "turns": ["Q1", "Q2"],
    "reference": [GOLD, GOLD],
}
GAIA = {
    "task_id": "t1",
    "Question": "How many?",
    "Level": 1,
    "Final answer": GOLD,
    "file_name": "",
    "Annotator Metadata": {"Steps": GOLD},
}
SPEC = {"spec": {"completion_fns": ["gpt-3.5-turbo"], "eval_name": "e.test", "run_id": "r"}}
SAMPLE = {
    "doc_id": 0,
    "doc": {"question": "Q", "answer": GOLD},
    "target": GOLD,
    "filter": "strict-match",
    "arguments": [["Question: Q\nAnswer:", {"until": ["\n"]}]],
    "resps": [[" It is 4"]],
    "filtered_resps": ["4"],
    "metrics": ["exact_match"],
    "exact_match": 1.0,
}
STEPS = [
    {"role": "system", "content": "Fix it."},
    {"role": "user", "content": "demo", "is_demo": True},
    {"role": "user", "content": "The issue"},
    {"role": "assistant", "content": "I look."},
    {"role": "user", "content": "a.py", "message_type": "observation"},
]

READ = {
    "arena-hard 2": Case(
        "a.jsonl",
        rows(
            {
                "uid": "u",
                "ans_id": "a",
                "model": "gpt",
                "tstamp": 1.0,
                "metadata": {"token_len": 3},
                "messages": [
                    {"role": "user", "content": "Q?"},
                    {"role": "assistant", "content": {"answer": "The answer."}},
                ],
            }
        ),
        "gpt",
        ("Q?",),
        ("The answer.",),
        seen="[assistant]\nThe answer.",
    ),
    "arena-hard 0.1": Case(
        "a.jsonl",
        rows(
            {**MT_ANSWER, "choices": [{"index": 0, "turns": [{"content": "Text", "token_len": 1}]}]}
        ),
        "vicuna",
        ("",),
        ("Text",),
        seen="[assistant]\nText",
        warned="without their questions",
    ),
    "MT-bench answers with their questions": Case(
        "model_answer/vicuna.jsonl",
        rows(MT_ANSWER),
        "vicuna",
        ("USER: Q1\n\nUSER: Q2",),
        ("Second.",),
        gold=(json.dumps([GOLD, GOLD]),),
        seen="[user]\nQ1\n\n[assistant]\nFirst.\n\n[user]\nQ2\n\n[assistant]\nSecond.",
        beside={"question.jsonl": rows(MT_QUESTION)},
    ),
    "AlpacaEval outputs": Case(
        "a.json",
        [
            {"dataset": "d", "instruction": "Q", "output": "A", "generator": "davinci"},
            {"dataset": "d", "instruction": "R", "output": "B", "generator": "davinci"},
        ],
        "davinci",
        ("Q", "R"),
        ("A", "B"),
        seen="A",
    ),
    "WildBench answers": Case(
        "a.json",
        [
            {
                "session_id": "s",
                "chat_history": ["hi", "hello", "more?"],
                "model_input": "<s>hi",
                "output": ["An answer"],
                "generator": "gpt",
                "configs": {},
                "dataset": "wild",
            }
        ],
        "gpt",
        ("USER: hi\n\nASSISTANT: hello\n\nUSER: more?",),
        ("An answer",),
    ),
    "WildBench scores": Case(
        "a.json",
        [
            {
                "session_id": "s",
                "model_test": "gpt",
                "history": "USER: hi\n\n",
                "last_query": "more?",
                "model_output": "An answer",
                "prompt": f"Grade {GOLD}",
                "checklist": [GOLD],
                "result": GOLD,
                "parsed_result": {"score": "8"},
                "error": "N/A",
            }
        ],
        "gpt",
        ("USER: hi\n\nmore?",),
        ("An answer",),
        seen="An answer",
        failed=(None,),
    ),
    "GAIA rows with the agent's words": Case(
        "a.jsonl",
        rows({**GAIA, "answer": "41"}),
        inputs=("How many?",),
        outputs=("41",),
        gold=(GOLD,),
        seen="41",
    ),
    "GAIA as smolagents writes it": Case(
        "a.jsonl",
        rows(
            {
                "agent_name": "code",
                "question": "Q",
                "prediction": "41",
                "true_answer": GOLD,
                "task_id": "t1",
                "task": "1",
                "agent_error": None,
                "intermediate_steps": [],
            },
            {
                "agent_name": "code",
                "question": "R",
                "prediction": None,
                "true_answer": GOLD,
                "task_id": "t2",
                "task": "1",
                "agent_error": "boom",
                "intermediate_steps": [],
            },
        ),
        "code",
        ("Q", "R"),
        ("41", ""),
        gold=(GOLD, GOLD),
        failed=(None, "error"),
    ),
    "openai/evals": Case(
        "a.jsonl",
        rows(
            SPEC,
            {"final_report": {"accuracy": 0.5}},
            event(0, "e.0", "sampling", prompt=[{"role": "user", "content": "Q"}], sampled=["A"]),
            event(1, "e.0", "match", correct=True, expected=GOLD, picked="A"),
            event(2, "e.1", "sampling", prompt="R", sampled="B"),
            event(3, "e.1", "sampling", prompt=f"Grade {GOLD}", sampled="Yes"),
            event(4, "e.2", "error", type="RateLimitError", message="429"),
        ),
        "gpt-3.5-turbo",
        ("Q", "R", ""),
        ("A", "B", ""),
        (True, None, None),
        (GOLD, None, None),
        failed=(None, None, "error"),
    ),
    "lm-eval samples, a line for each filter": Case(
        "a.jsonl",
        rows(
            SAMPLE,
            {**SAMPLE, "filter": "flexible-extract", "exact_match": 0.0},
            {**SAMPLE, "doc_id": 1, "exact_match": 0.0},
        ),
        inputs=("Question: Q\nAnswer:",) * 2,
        outputs=(" It is 4",) * 2,
        success=(True, False),
        gold=(GOLD, GOLD),
        warned="differ in their filter alone",
    ),
    "deepeval": Case(
        "a.json",
        {
            "testFile": "t.py",
            "hyperparameters": {"model": "gpt"},
            "testCases": [
                {
                    "name": "test_case_0",
                    "input": "Q",
                    "actualOutput": "A",
                    "expectedOutput": GOLD,
                    "success": True,
                    "metricsData": [{"name": "Relevancy", "score": 0.9, "reason": GOLD}],
                }
            ],
            "conversationalTestCases": [
                {
                    "name": "talk",
                    "success": False,
                    "metricsData": [],
                    "expectedOutcome": GOLD,
                    "turns": [
                        {"role": "user", "content": "R", "order": 0},
                        {"role": "assistant", "content": "B", "order": 1},
                    ],
                }
            ],
        },
        "gpt",
        ("Q", "R"),
        ("A", "B"),
        (True, False),
        (GOLD, GOLD),
    ),
    "SWE-agent": Case(
        "django__1.traj",
        {
            "environment": "swe",
            "trajectory": [{"action": "ls", "observation": "a.py"}],
            "history": STEPS,
            "info": {"exit_status": "submitted", "submission": "diff --git"},
            "replay_config": json.dumps({"agent": {"model": {"name": "gpt-4o"}}}),
        },
        "gpt-4o",
        ("The issue",),
        ("diff --git",),
        seen="[system]\nFix it.\n\n[assistant]\nI look.\n\n[tool]\na.py"
        "\n\n[final output]\ndiff --git",
    ),
    "SWE-agent whose model was away": Case(
        "django__2.traj",
        {
            "environment": "swe",
            "trajectory": [],
            "history": STEPS[:1],
            "info": {"exit_status": "exit_api", "submission": None},
        },
        inputs=("",),
        outputs=("",),
        failed=("error",),
    ),
    "mini-swe-agent": Case(
        "m.json",
        {
            "trajectory_format": "mini-swe-agent-1",
            "instance_id": "d",
            "messages": STEPS[2:4],
            "info": {
                "exit_status": "Submitted",
                "submission": "diff",
                "config": {"model": {"model_name": "sonnet"}},
            },
        },
        "sonnet",
        ("The issue",),
        ("diff",),
    ),
    "SWE-bench predictions": Case(
        "a.jsonl",
        rows({"instance_id": "d", "model_name_or_path": "agent", "model_patch": "diff"}),
        "agent",
        ("",),
        ("diff",),
        seen="diff",
    ),
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_what_is_read(tmp_path: Path, case: Case) -> None:
    for name, content in case.beside.items():
        write(tmp_path, name, content)
    read = read_runs(write(tmp_path, case.name, case.content))
    runs = read.runs
    assert {run.system for run in runs} == {case.system}
    assert tuple(run.input for run in runs) == case.inputs
    assert tuple(run.output for run in runs) == case.outputs
    count = len(runs)
    assert tuple(run.success for run in runs) == (case.success or (None,) * count)
    assert tuple(run.reference for run in runs) == (case.gold or (None,) * count)
    kinds = tuple(run.failure.kind if run.failure else None for run in runs)
    assert kinds == (case.failed or (None,) * count)
    views = [make_view(run) for run in runs]
    assert not any(GOLD in view.model_dump_json() for view in views)
    assert case.seen in ("", views[0].trajectory)
    assert case.warned in "\n".join(read.warnings)
    assert bool(case.warned) == bool(read.warnings)


JUDGMENT = {
    "question_id": 81,
    "model": "v",
    "judge": ["gpt-4", "single-v1"],
    "user_prompt": "p",
    "judgment": "Rating: [[8]]",
    "score": 8,
    "turn": 1,
    "tstamp": 1.0,
}
REFUSED = {
    "tau-bench": (
        [{"task_id": 0, "reward": 1.0, "info": {}, "traj": [{"role": "user"}], "trial": 0}],
        ["tau-bench", "flow import"],
    ),
    "tau2-bench": ({"info": {}, "tasks": [], "simulations": []}, ["tau2-bench", "simulations"]),
    "MT-bench judgments": (rows(JUDGMENT), ["MT-bench", "--scores"]),
    "MT-bench questions": (rows(MT_QUESTION), ["questions", "model_answer/"]),
    "arena-hard judgments": (
        rows(
            {
                "uid": "u",
                "category": "c",
                "judge": "g",
                "model": "m",
                "baseline": "b",
                "games": [{"score": "A>B"}],
            }
        ),
        ["arena-hard", "model_answer/"],
    ),
    "AlpacaEval annotations": (
        [{"instruction": "Q", "output_1": "A", "output_2": "B", "preference": 2.0}],
        ["AlpacaEval", "two outputs"],
    ),
    "GAIA without an answer": (rows(GAIA), ["GAIA", "'Final answer'", "'answer'"]),
    "lm-eval log-likelihoods": (
        rows({**SAMPLE, "resps": [[[-1.0, False]]], "filtered_resps": [[-1.0, False]]}),
        ["lm-eval", "generate_until"],
    ),
    "openai/evals without samples": (rows(SPEC), ["openai/evals", "events"]),
}


@pytest.mark.parametrize(("content", "facts"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(tmp_path: Path, content: Any, facts: list[str]) -> None:
    path = write(tmp_path, "a.jsonl" if isinstance(content, str) else "a.json", content)
    with pytest.raises(InputError) as caught:
        read_runs(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert all(fact in message for fact in facts)


def test_judgements_are_ratings(tmp_path: Path) -> None:
    """From 1 to 10; -1 is how FastChat marks a reply that it could not read."""
    unread = {**JUDGMENT, "score": -1, "turn": 2}
    table = read_scores(write(tmp_path, "a.jsonl", rows(JUDGMENT, unread)))
    assert table.value[0] == pytest.approx(7 / 9)
    assert table.statuses() == {"scored": 1, "unscored:parse": 1}
    assert (table.present("criterion"), table.present("system")) == (["turn 1", "turn 2"], ["v"])
    scores = [
        {"session_id": "s", "model_test": "g", "parsed_result": {"score": "10"}},
        {"session_id": "t", "model_test": "g", "parsed_result": {"N/A": "N/A"}},
    ]
    table = read_scores(write(tmp_path, "b.json", scores))
    assert (table.value[0], table.statuses()) == (1.0, {"scored": 1, "unscored:parse": 1})


def test_metrics_of_deepeval_are_ratings(tmp_path: Path) -> None:
    metrics = [{"name": "Rel", "score": 0.9}, {"name": "Faith", "score": 0, "error": "no reply"}]
    tests = {"testCases": [{"name": "test_case_0", "metricsData": metrics}], "testPassed": 1}
    table = read_scores(write(tmp_path, "a.json", tests))
    assert (table.present("criterion"), table.value[0]) == (["Rel", "Faith"], 0.9)
    assert table.statuses() == {"scored": 1, "unscored:missing": 1}


def test_questions_beside_answers_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "question.jsonl", rows(MT_QUESTION))
    write(tmp_path, "model_answer/vicuna.jsonl", rows(MT_ANSWER))
    read = read_runs(tmp_path)
    assert [run.id for run in read.runs] == ["model_answer/vicuna:1"]
    (skipped,) = read.skipped
    assert "questions without answers" in skipped.reason


def mutations(value: Any) -> Any:
    """The value with each key of it gone, or with another type under it, two levels deep."""
    for key in value:
        yield {k: v for k, v in value.items() if k != key}
        for other in (None, [], {}, "x", 1, [None], [[]], [{}], {"a": 1}, ["x"]):
            yield {**value, key: other}
        if isinstance(value[key], dict):
            for inner in value[key]:
                for other in (None, [], "x", 1):
                    yield {**value, key: {**value[key], inner: other}}


@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_what_is_written_otherwise_is_read_or_refused_in_one_line(
    tmp_path: Path, case: Case
) -> None:
    content = case.content
    lines = content.splitlines() if isinstance(content, str) else None
    values = list(map(json.loads, lines)) if lines else content
    values = values if isinstance(values, list) else [values]
    path = tmp_path / "a.jsonl"
    for i, value in enumerate(values):
        for changed in mutations(value):
            path.write_text(rows(*values[:i], changed, *values[i + 1 :]))
            refusal = ""
            try:
                for run in read_runs(path).runs:
                    make_view(run)
            except InputError as error:
                refusal = str(error)
            assert "\n" not in refusal
