"""Recorded sessions of other tools: small files by hand after each published schema.

Expected values are by hand, from what the tool's own viewer or SDK shows of such a file.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import make_view, read_runs
from agenteval.readers.sessions import FORMATS, session_format
from agenteval.readers.traces import read_traces
from agenteval.traces.outline import outline
from tests.readers.test_cases import ODD, places
from tests.thorough import often

SAMPLES = [
    json.loads(line) for line in (Path(__file__).parent / "samples.jsonl").read_text().splitlines()
]
IDS = [f"{sample['format']}: {sample['source']}" for sample in SAMPLES]


def written(folder: Path, sample: dict[str, Any], name: str = "session") -> Path:
    lines = sample.get("lines")
    path = folder / f"{name}{'.json' if lines is None else '.jsonl'}"
    rows = [sample["json"]] if lines is None else lines
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_read_as_the_tool_shows_it(tmp_path: Path, sample: dict[str, Any]) -> None:
    expect = sample["expect"]
    path = written(tmp_path, sample)
    (run,) = read_traces(path).runs
    assert (run.input, run.output) == (expect["task"], expect["ending"])
    assert sum(span.kind == "llm" for span in run.spans) == expect["turns"]
    tools = [
        (span.tool or span.name, span.input, span.output, span.status == "error")
        for span in run.spans
        if span.kind == "tool"
    ]
    assert len(tools) == len(expect["tools"])
    for read, (name, arguments, output, failed) in zip(tools, expect["tools"], strict=True):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        assert read == (name, "" if arguments is None else text, output, failed)
    shown = outline(run)
    assert (shown.tokens, shown.cost) == (expect.get("tokens"), expect.get("cost"))
    assert run.metadata["recorded_as"] == sample["format"]
    assert run.metadata.get("ended", "") == expect.get("ended", "")
    assert (run.success, run.reference) == (expect.get("success"), expect.get("reference"))
    for key in ("id", "system"):
        assert key not in expect or getattr(run, key) == expect[key]
    for span_id, name in expect.get("spans", {}).items():
        assert next(s.name for s in run.spans if s.id == span_id) == name
    assert "GOLDEN-7391" not in make_view(run).model_dump_json()
    (as_run,) = read_runs(path).runs
    assert (as_run.input, as_run.output) == (run.input, run.output)


def test_every_format_has_a_sample_and_is_recognized_by_content_alone() -> None:
    named = {sample["format"] for sample in SAMPLES}
    assert named >= {form.name for form in FORMATS} - {"Gemini CLI prompts", "record of a run"}
    for sample in SAMPLES:
        values = sample.get("lines", [sample.get("json")])
        form = session_format(values)
        assert form is not None
        assert form.name == sample["format"]


def test_the_documentation_says_what_is_read_of_each_format() -> None:
    rows = (Path(__file__).parents[3] / "docs" / "logs.md").read_text().splitlines()
    start = rows.index("| format | what is read |") + 2
    table = rows[start : start + len(FORMATS) + 1]
    assert table == [*(f"| {form.name} | {form.reads} |" for form in FORMATS), ""]


def test_a_folder_of_all_formats(tmp_path: Path) -> None:
    seen = set()
    for i, sample in enumerate(SAMPLES):
        if sample["expect"].get("id", sample["format"]) not in seen:
            seen.add(sample["expect"].get("id", sample["format"]))
            written(tmp_path, sample, f"{i:02d}")
    files = len(list(tmp_path.iterdir()))
    assert files >= 10
    for read in (read_runs, read_traces):
        result = read(tmp_path)
        assert len(result.runs) == files
        assert not result.skipped


@pytest.mark.parametrize("read", [read_runs, read_traces])
def test_a_file_of_two_formats_is_refused_in_one_line(tmp_path: Path, read: Any) -> None:
    claude = next(s for s in SAMPLES if s["format"] == "Claude Code")
    codex = next(s for s in SAMPLES if s["format"] == "Codex CLI")
    path = written(tmp_path, {"lines": [*claude["lines"], codex["lines"][0]]})
    with pytest.raises(InputError) as refusal:
        read(path)
    text = str(refusal.value)
    assert f"session.jsonl:{len(claude['lines']) + 1}" in text
    assert "Codex CLI" in text
    assert "Claude Code" in text
    assert "\n" not in text


def test_a_tool_result_of_5_mb(tmp_path: Path) -> None:
    claude = next(s for s in SAMPLES if s["format"] == "Claude Code")
    lines = json.loads(json.dumps(claude["lines"]).replace("1 failed", "x" * 5_000_000, 1))
    path = written(tmp_path, {"lines": lines})
    (run,) = read_traces(path).runs
    assert max(len(span.output) for span in run.spans) == 5_000_000
    assert len(read_runs(path).runs) == 1


@pytest.mark.parametrize("usage", [{"prompt_tokens": -5}, {"prompt_tokens": "many"}, "none", []])
def test_usage_that_is_no_count_is_not_summed(tmp_path: Path, usage: Any) -> None:
    sample = json.loads(json.dumps(next(s for s in SAMPLES if s["format"] == "tau2-bench")))
    simulation = sample["json"]["simulations"][0]
    for message in simulation["messages"]:
        message["usage"] = usage
    (run,) = read_traces(written(tmp_path, sample)).runs
    assert outline(run).tokens is None


def test_a_resumed_session_is_one(tmp_path: Path) -> None:
    claude = next(s for s in SAMPLES if s["format"] == "Claude Code")["lines"]
    half = len(claude) // 2
    lines = [*claude[:half], *({**line, "sessionId": "s-9"} for line in claude[half:])]
    (run,) = read_traces(written(tmp_path, {"lines": lines})).runs
    assert run.id == "s-9"
    assert outline(run).tokens == 467


def test_agents_below_a_session_are_agents(tmp_path: Path) -> None:
    claude = next(s for s in SAMPLES if s["format"] == "Claude Code")["lines"]
    of_agent = [{**line, "isSidechain": True, "agentId": "a1"} for line in claude if "uuid" in line]
    lines = [*claude, *({**line, "uuid": f"x{line['uuid']}"} for line in of_agent)]
    (run,) = read_traces(written(tmp_path, {"lines": lines})).runs
    below = [span for span in run.spans if span.kind == "agent"]
    assert [span.name for span in below] == ["Claude Code", "agent-a1"]
    assert sum(span.parent_id == below[1].id and span.kind == "tool" for span in run.spans) == 2
    assert outline(run).tokens == 2 * 467
    (alone,) = read_traces(written(tmp_path, {"lines": of_agent}, "agent-a1")).runs
    assert alone.id == "s-1-agent-a1"


def test_systems_on_the_same_cases_are_told_apart(tmp_path: Path) -> None:
    for model in ("m-1", "m-2"):
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": model}]
        tau = [{"task_id": 0, "trial": 0, "reward": 1.0, "info": {}, "traj": turns}]
        swe = {"instance_id": "d-1", "trajectory": [], "history": turns, "info": {}}
        swe["replay_config"] = {"agent": {"model": {"name": model}}}
        for kind, value in (("tau", tau), ("swe", swe)):
            (tmp_path / kind).mkdir(exist_ok=True)
            (tmp_path / kind / f"{model}.json").write_text(json.dumps(value))
    for kind, id in (("tau", "0-0"), ("swe", "d-1")):
        for read in (read_runs, read_traces):
            assert [run.system for run in read(tmp_path / kind).runs] == ["m-1", "m-2"]
        assert [run.id for run in read_traces(tmp_path / kind).runs] == [id, f"m-2:{id}"]
    assert [run.id for run in read_runs(tmp_path / "tau").runs] == ["0-0", "0-0"]


def test_prompts_without_answers_are_refused_with_what_to_give(tmp_path: Path) -> None:
    rows = [{"sessionId": "s", "messageId": 0, "type": "user", "message": "Hi", "timestamp": "t"}]
    with pytest.raises(InputError, match=r"chats/session-\*\.json"):
        read_runs(written(tmp_path, {"json": rows}))


def test_a_record_with_messages_is_a_trace(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    rows = [{"id": "r", "messages": messages, "model": "m"}]
    (run,) = read_traces(written(tmp_path, {"lines": rows})).runs
    assert (run.id, run.system, run.input, run.output) == ("r", "m", "2 + 2?", "4")
    assert [span.kind for span in run.spans] == ["agent", "user", "llm"]


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_value_of_another_type_is_read_or_refused_in_one_line(
    tmp_path: Path, sample: dict[str, Any]
) -> None:
    rng = random.Random(7)
    rows = sample.get("lines") or [sample["json"]]
    paths, refusals = list(places(rows)), list[str]()
    for _ in range(often(15, 300)):
        changed = json.loads(json.dumps(rows))
        *path, last = rng.choice(paths)
        holder = changed
        for key in path:
            holder = holder[key]
        holder[last] = json.loads(json.dumps(rng.choice(ODD)))
        file = written(tmp_path, {"lines": changed})
        for read in (read_runs, read_traces):
            try:
                read(file)
            except InputError as error:
                refusals.append(str(error))
    assert not any("\n" in line for line in refusals)


@pytest.mark.parametrize(
    ("usage", "prompt"),
    [
        ({"output_tokens": 5}, None),
        ({"input_tokens": "many", "output_tokens": 5}, None),
        ({"input_tokens": -3, "cache_read_input_tokens": 7, "output_tokens": 5}, 7),
        ({"input_tokens": 2, "cache_read_input_tokens": 7, "output_tokens": 5}, 9),
    ],
)
def test_tokens_that_are_not_stated_are_unknown_and_not_zero(
    tmp_path: Path, usage: dict[str, object], prompt: int | None
) -> None:
    said = {"id": "m", "role": "assistant", "model": "c", "content": "Done.", "usage": usage}
    lines = [
        {"type": "user", "sessionId": "s", "uuid": "1", "message": {"content": "Do it."}},
        {"type": "assistant", "sessionId": "s", "uuid": "2", "parentUuid": "1", "message": said},
    ]
    (run,) = read_traces(written(tmp_path, {"lines": lines})).runs
    (span,) = [span for span in run.spans if span.kind == "llm"]
    assert span.usage is not None
    assert (span.usage.prompt_tokens, span.usage.completion_tokens) == (prompt, 5)
