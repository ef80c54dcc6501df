"""Files, folders, patterns, encodings, limits: what is refused and where the message points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs

ONE = '{"input": "q", "output": "a"}'


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("bound", "most", "says"),
    [
        ("strict_json.LINE", 40, ":2: line longer than 40 bytes"),
        ("strict_json.LINES", 60, "larger than 60 bytes"),
    ],
)
def test_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, says: str
) -> None:
    path = put(tmp_path / "x.jsonl", f'{ONE}\n{{"input": "q", "output": "a longer answer"}}\n')
    assert len(read_runs(path).runs) == 2
    monkeypatch.setattr(f"agenteval.readers.{bound}", most)
    with pytest.raises(InputError, match=says):
        read_runs(path)


def test_a_document_has_its_own_bound_and_may_be_one_long_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "x.json", json.dumps({"output": "a" * 1000}))
    monkeypatch.setattr("agenteval.readers.strict_json.LINE", 100)
    assert len(read_runs(path).runs[0].output) == 1000
    monkeypatch.setattr("agenteval.readers.strict_json.LARGE", 999)
    with pytest.raises(InputError, match="a JSON document larger than 999 bytes"):
        read_runs(path)


def test_folder_ids_order_and_skipped(tmp_path: Path) -> None:
    for name in ("b/1.json", "b/0.json", "a/0.json"):
        put(tmp_path / name, ONE)
    put(tmp_path / "lines.jsonl", f"{ONE}\n{ONE}\n")
    put(tmp_path / "a/log.txt", "Problem 0 | Is_correct True")
    put(tmp_path / "package.json", '{"name": "x"}')
    put(tmp_path / "blank.json", "")
    put(tmp_path / ".hidden.json", "broken")
    put(tmp_path / ".git/x.json", "broken")
    result = read_runs(tmp_path)
    assert [r.id for r in result.runs] == ["a/0", "b/0", "b/1", "lines:1", "lines:2"]
    skipped = {Path(s.path).name: s.reason for s in result.skipped}
    assert set(skipped) == {"log.txt", "package.json", "blank.json"}
    assert "not one of .json" in skipped["log.txt"]
    assert "no known form" in skipped["package.json"]
    assert skipped["blank.json"] == "empty"


def test_pattern(tmp_path: Path) -> None:
    for name in ("one/0.json", "two/0.json", "two/deep/1.json"):
        put(tmp_path / name, ONE)
    put(tmp_path / "two/notes.md", "x")
    shallow = read_runs(f"{tmp_path}/*/*")
    assert [r.id for r in shallow.runs] == ["one/0", "two/0"]
    assert sorted(Path(s.path).name for s in shallow.skipped) == ["deep", "notes.md"]
    assert [r.id for r in read_runs(f"{tmp_path}/**/*.json").runs] == [
        "one/0",
        "two/0",
        "two/deep/1",
    ]
    with pytest.raises(InputError, match="matches no file"):
        read_runs(f"{tmp_path}/*.jsonl")


def test_links(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside/secret.json", ONE)
    root = tmp_path / "root"
    put(root / "real.json", ONE)
    (root / "away.json").symlink_to(outside)
    (root / "inside.json").symlink_to(root / "real.json")
    (root / "broken.json").symlink_to(root / "nothing.json")
    (root / "loop.json").symlink_to(root / "loop.json")
    (root / "up").symlink_to(tmp_path)
    result = read_runs(root)
    assert [r.id for r in result.runs] == ["inside", "real"]
    assert {Path(s.path).name: s.reason for s in result.skipped} == {
        "away.json": "a link that leaves the folder",
        "broken.json": "a broken link",
        "loop.json": "a broken link",
        "up": "a link to a folder",
    }


def test_a_pipe_is_no_file_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for source in (tmp_path / "pipe.json", tmp_path):
        with pytest.raises(InputError, match=r"pipe\.json: this is no file but a pipe"):
            read_runs(source)


@pytest.mark.parametrize("source", ["", "a\0b", "nothing/here.json", "x" * 5000])
def test_names_of_nothing(source: str) -> None:
    with pytest.raises(InputError):
        read_runs(source)


def test_standard_input_through_a_real_pipe() -> None:
    code = "from agenteval.readers import read_runs; print(read_runs('-').runs[1].output)"
    pretty = json.dumps([{"output": "1"}, {"output": "second"}], indent=2)
    done = subprocess.run(
        [sys.executable, "-c", code], input=pretty, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "second"
