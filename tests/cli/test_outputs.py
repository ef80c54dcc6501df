"""What a command writes is not what it reads: --record, told before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.cli.outputs import check_record
from agenteval.errors import InputError
from agenteval.models.replay import FileRecorder
from agenteval.models.wire import Reply, Request
from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer

NOWHERE = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("quantify", "runs.jsonl", *NOWHERE),
        ("quantify", ".", *NOWHERE),
        ("quantify", "*.jsonl", *NOWHERE),
        ("quantify", "other.jsonl", "--model", "replay:runs.jsonl"),
        ("verify", "runs.jsonl", *NOWHERE),
        ("verify", "--scores", "runs.jsonl"),
        ("criteria", "--task", "tasks/sums", *NOWHERE),
        ("trace", "locate", "runs.jsonl", *NOWHERE),
        ("flow", "score", "runs.jsonl", *NOWHERE),
    ],
    ids=" ".join,
)
def test_what_is_read_is_not_recorded_into(
    cli: Cli, project: Path, arguments: tuple[str, ...]
) -> None:
    # a first line that a recorder could have written, so that only its place tells
    line = {"key": "k", "role": "r", "reply": {"text": "t"}, "id": "a", "input": "i", "output": "o"}
    text = json.dumps(line) + "\n"
    (project / "runs.jsonl").write_text(text)
    (project / "tasks" / "sums" / "runs.jsonl").write_text(text)
    target = project / ("tasks/sums/runs.jsonl" if arguments[0] == "criteria" else "runs.jsonl")
    before = sorted(project.rglob("*"))
    done = cli(*arguments, "--record", target)
    assert done.code == 2
    assert done.err == f"agenteval: {target}: this file is read; name another one to write\n"
    assert target.read_text() == text
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    "text", ['{"id": "a", "input": "i", "output": "o", "text": "t"}\n', "run,value\n", "\n", "\0"]
)
def test_a_file_that_is_no_recording_is_left_alone(cli: Cli, project: Path, text: str) -> None:
    (project / "notes.jsonl").write_text(text)
    done = cli("quantify", "runs.jsonl", *NOWHERE, "--record", "notes.jsonl")
    assert done.code == 2
    assert done.err.startswith("agenteval: notes.jsonl: it is no recording")
    assert (project / "notes.jsonl").read_text() == text


def test_a_recording_goes_on_in_a_folder_that_is_made(cli: Cli, project: Path) -> None:
    record = project / "new" / "one" / "r.jsonl"
    with serve(answer) as server:
        arguments = ("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                     "--record", record)  # fmt: skip
        assert cli(*arguments).code == 0
        assert cli(*arguments, "--repeats", 2).code == 0
    assert len(record.read_text().splitlines()) == 12


def test_what_a_recorder_leaves_begins_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    FileRecorder(file).close()
    check_record(file, [])  # empty
    recorder = FileRecorder(file)
    recorder.record(Request(messages=({"role": "user", "content": "é"},)), Reply("ok"))
    recorder.close()
    check_record(file, [])
    for size in range(1, len(file.read_bytes())):  # it broke off anywhere
        file.write_bytes(file.read_bytes()[:-1])
        check_record(file, [])
        assert file.stat().st_size or size


@pytest.mark.parametrize(
    ("record", "source", "refused"),
    [
        ("d/new.jsonl", "d", True),
        ("d/e/new.jsonl", "d", True),
        ("d/new.txt", "d", False),  # never read as runs
        ("d/.hidden/new.jsonl", "d", False),
        ("d/.new.jsonl", "d", False),
        ("new.jsonl", "d", False),
        ("d/new.jsonl", "d/*.jsonl", True),
        ("d/e/new.jsonl", "d/*.jsonl", False),
        ("d/e/new.jsonl", "d/**/*.jsonl", True),
        ("d/new.jsonl", "d/r*.jsonl", False),
        ("d/new.jsonl", "d/runs.jsonl", False),
        ("d/new.jsonl", "nothing", False),  # told when it is read
    ],
)
def test_a_new_file_would_be_read_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str, source: str, refused: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "runs.jsonl").write_text("{}\n")
    (tmp_path / "d" / "e" / "runs.jsonl").write_text("{}\n")
    if not refused:
        check_record(Path(record), [], [source])
        return
    with pytest.raises(InputError, match="the next time"):
        check_record(Path(record), [], [source])
