"""Defective traces: read as far as can be, with one warning for each kind of defect."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.traces import read_traces
from tests.readers.tracing.samples import (
    ROOT,
    TRACE,
    read,
)


def test_deep_attributes(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(3000):
        deep = {"a": [deep, 1]}
    text = '{"trace_id": "%s", "spans": [{"span_id": "%s", "span_attributes": {"d": %s}}]}'
    inner = '{"a": [' * 3000 + '"x"' + ", 1]}" * 3000
    (one,) = read(tmp_path, text % (TRACE, ROOT, inner)).runs[0].spans
    assert "[nested deeper than 64 levels]" in json.dumps(one.attributes)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1200, 6000])
def test_deep_trees(tmp_path: Path, depth: int) -> None:
    opened = (f'{{"span_id": "s{i}", "child_spans": [' for i in range(depth))
    text = f'{{"trace_id": "{TRACE}", "spans": [{"".join(opened)}{"]}" * depth}]}}'
    for reader in (read_traces, read_runs):
        (tmp_path / "t.json").write_text(text)
        run = reader(tmp_path / "t.json").runs[0]
        assert [s.id for s in run.spans] == [f"s{i}" for i in range(depth)]
        assert run.spans[-1].parent_id == f"s{depth - 2}"


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(json.dumps({"trace_id": f"{i + 1:032x}", "span_id": ROOT}) + "\n" for i in range(5))
    )
    monkeypatch.setattr("agenteval.readers.strict_json.LINES", 100)
    for reader in (read_traces, read_runs):
        with pytest.raises(InputError, match="larger than 100 bytes"):
            reader(path)
    monkeypatch.undo()
    path.write_bytes(b'{"span_id": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8"):
        read_traces(path)


@pytest.mark.slow
def test_time_grows_with_the_number_of_spans(tmp_path: Path) -> None:
    def lines(count: int) -> list[str]:
        """A chain whose children come first, with every hundredth id given twice."""
        made = [
            json.dumps(
                {
                    "trace_id": TRACE,
                    "span_id": f"{i:016x}",
                    "parent_id": f"{i - 1:016x}",
                    "attributes": {"tool.name": "x"},
                }
            )
            for i in range(count, 0, -1)
        ]
        return made + made[::100]

    seconds = []
    for count in (1_000, 10_000):
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(lines(count)))
        began = time.process_time()
        result = read_traces(path)
        seconds.append(time.process_time() - began)
        assert [s.id for s in result.runs[0].spans] == [f"{i:016x}" for i in range(1, count + 1)]
        assert len(result.warnings) == 1
    assert seconds[1] < 40 * seconds[0]  # ten times the spans; a square would be a hundred


def test_lines_of_spans_take_at_most_three_and_a_half_times_their_size(tmp_path: Path) -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "output.value": "text " * 100,
        "llm.token_count.prompt": 100,
        "llm.input_messages.0.message.role": "user",
    }
    path = tmp_path / "t.jsonl"
    with path.open("w") as file:
        for i in range(1000):
            span = {"trace_id": f"{i // 50:032x}", "span_id": f"{i:016x}", "name": "chat"}
            said = {"llm.input_messages.0.message.content": f"question {i}"}
            file.write(json.dumps({**span, "attributes": attributes | said}) + "\n")
    read_traces(path)  # what is made once
    tracemalloc.start()
    try:
        assert len(read_traces(path).runs) == 20
        assert tracemalloc.get_traced_memory()[1] < 3.5 * path.stat().st_size
    finally:
        tracemalloc.stop()
