"""A recording of replies among the runs is refused with its place, never read as runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.models.wire import Reply, Request
from agenteval.readers import read_runs

RUN = '{"id": "r", "input": "q", "output": "a"}\n'
SAYS = "these are recorded replies (replay:FILE), not runs"


@pytest.fixture
def recording() -> str:
    """Two lines of a recording: a reply, and the same request of another run."""
    first, second = (Request(({"role": "user", "content": "q"},), run_id=run) for run in "rs")
    lines = ({**first.described(), "reply": Reply("fine").to_json()}, second.described())
    return "".join(json.dumps(line) + "\n" for line in lines)


def refused(source: Path, place: str) -> None:
    with pytest.raises(InputError) as raised:
        read_runs(source)
    assert str(raised.value) == f"{place}: {SAYS}"


def test_as_a_file_in_a_folder_and_behind_runs(tmp_path: Path, recording: str) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.jsonl").write_text(RUN)
    rec = folder / "rec.jsonl"
    rec.write_text(recording)
    refused(rec, f"{rec}:1")
    refused(folder, f"{rec}:1")
    refused(Path(f"{folder}/*.jsonl"), f"{rec}:1")
    rec.write_text(RUN.replace('"r"', '"t"') + recording)
    refused(folder, f"{rec}:2")
    second = recording.splitlines(keepends=True)[1]  # names no reply, only the run
    assert "reply" not in json.loads(second)
    rec.write_text(second)
    refused(folder, f"{rec}:1")


def test_recordings_made_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for line in (
        {"run": "a", "repeat": 0, "role": "judge", "reply": {"text": "fine"}},
        {"key": "k", "reply": {"text": "fine"}},
        {"key": "k", "text": "fine"},
        {"run": "a", "repeat": 0, "text": "fine"},
    ):
        path.write_text(json.dumps(line) + "\n")
        refused(path, f"{path}:1")


def test_a_run_whose_output_is_a_reply_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"key": "k1", "input": "q", "reply": {"text": "said"}}\n'
                    '{"key": "k2", "reply": "said"}\n{"run": 3, "reply": "said"}\n')  # fmt: skip
    assert [run.output for run in read_runs(path).runs] == ["said"] * 3
