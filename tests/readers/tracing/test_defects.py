"""Defective traces: read as far as can be, with one warning for each kind of defect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.traces import read_traces
from tests.readers.tracing.samples import ROOT, TRACE, read


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
