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


BROKEN = [
    # content, suffix, text the message must hold, place it must name
    (b'{"output": 1}\n{"output": 2,}\n', "jsonl", "broken JSON", "x.jsonl:2:14"),
    (b'{"output": "a"}\n\n{"output": "b', "jsonl", "broken JSON", "x.jsonl:3:12"),
    (b'{\n "output": "a"\n "input": 1}', "json", "broken JSON", "x.json:3:2"),
    (b'\n\n{"output": "a" "b"}', "json", "broken JSON", "x.json:3:16"),
    (b'{"output": "a", "m": {"k": NaN}}', "jsonl", "NaN is no JSON number (key m.k)", "x.jsonl:1"),
    (
        b'{"output": [1, -Infinity]}',
        "json",
        "-Infinity is no JSON number (key output[1])",
        "x.json",
    ),
    (b'{"output": "a", "t": 1e999}', "jsonl", "1e999 is no JSON number (key t)", "x.jsonl:1"),
    (b'{"output": "a", "k": {"b": 1, "b": 2}}', "json", "'b' occurs twice", "x.json"),
    (b'{"output": "a"}\n{"output": "caf\xe9"}', "jsonl", "byte offset 31", "x.jsonl"),
    (b'\xef\xbb\xbf{"output": "\xff"}', "json", "byte offset 15", "x.json"),
    ('{"output": "a"}'.encode("utf-16"), "json", "this is UTF-16", "x.json"),
    (b'{"output": ' + b"[" * 64 + b"]" * 64 + b"}", "json", "deeper than 64", "x.json"),
    (b"[" * 100_000, "json", "deeper than 64", "x.json"),
    (b'{"output": ' + b"9" * 5000 + b"}", "json", "4300 digits", "x.json"),
    (b'{"output": "a\x01"}', "jsonl", "broken JSON", "x.jsonl:1"),
    (b"", "jsonl", "no runs found", "x.jsonl"),
    (b" \r\n\n", "json", "no runs found", "x.json"),
    (b"[]", "json", "no runs found", "x.json"),
    (b"hello", "txt", "broken JSON", "x.txt:1:1"),
    (b'{"colour": "red"}', "json", "no known form of a run", "x.json"),
    (b'{"input": "a question, no answer"}', "jsonl", "no known form of a run", "x.jsonl:1"),
    (b'{"output": "a"}\n7\n', "jsonl", "a number", "x.jsonl:2"),
    (b'[{"output": "a"}, null]', "json", "null", "x.json[1]"),
    (b'{"role": "user", "content": "hi"}\n', "jsonl", "no known form", "x.jsonl:1"),
    (b'{"id": 1.5, "output": "a"}', "json", "'id' is 1.5", "x.json"),
    (b'{"id": "a\\u0007", "output": "a"}', "json", "control characters", "x.json"),
    (b'{"output": "a", "spans": [{"name": "n"}]}', "json", "spans.0.id", "x.json"),
    (b'{"output": "a", "spans": {"name": "n"}}', "json", "'spans' is no list", "x.json"),
    (b'{"messages": {"a": 1}}', "json", "'messages' is neither", "x.json"),
    (b'{"messages": [{"role": "wizard"}]}', "json", "messages[0] has no known role", "x.json"),
    (b'{"messages": [{"role": "assistant", "tool_calls": 3}]}', "json", "tool_calls", "x.json"),
]


@pytest.mark.parametrize(("content", "suffix", "says", "place"), BROKEN)
def test_bad_files_are_refused_with_their_place(
    tmp_path: Path, content: bytes, suffix: str, says: str, place: str
) -> None:
    path = put(tmp_path / f"x.{suffix}", content)
    with pytest.raises(InputError) as caught:
        read_runs(path)
    assert says in str(caught.value)
    assert str(tmp_path / place) in str(caught.value)


def test_depth_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    nested = "[" * 63 + "]" * 63  # with the object around it: 64 levels
    runs = read_runs(put(tmp_path / "x.json", f'{{"output": "a", "deep": {nested}}}')).runs
    assert json.dumps(runs[0].metadata["deep"]) == nested


@pytest.mark.parametrize(
    ("bound", "most", "says"),
    [
        ("strict_json.LINE", 40, ":2: line longer than 40 bytes"),
        ("strict_json.LINES", 60, "larger than 60 bytes"),
        ("runs.MOST_RUNS", 1, "more than 1 runs"),
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


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json"])
def test_bom_crlf_and_blank_lines(tmp_path: Path, suffix: str) -> None:
    text = (
        b'\xef\xbb\xbf{"id": "a", "output": "\xc3\xa9\\r\\n"}\r\n\r\n{"id": "b", "output": "2"}\r\n'
    )
    runs = read_runs(put(tmp_path / f"x.{suffix}", text)).runs
    assert [(r.id, r.output) for r in runs] == [("a", "é\r\n"), ("b", "2")]


def test_lone_surrogates_are_replaced_and_reported(tmp_path: Path) -> None:
    text = '{"output": "a\\ud83dz"}\n{"output": "\\uD83D\\uDE00"}\n{"output": "\\udc00"}\n'
    result = read_runs(put(tmp_path / "x.jsonl", text))
    assert [r.output for r in result.runs] == ["a\ufffdz", "😀", "\ufffd"]
    assert len(result.warnings) == 1
    assert "x.jsonl:1: lone surrogates" in result.warnings[0]
    assert "(and 1 more)" in result.warnings[0]


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


def test_broken_file_in_a_folder_is_an_error(tmp_path: Path) -> None:
    put(tmp_path / "a.json", ONE)
    put(tmp_path / "b.json", "{")
    with pytest.raises(InputError, match=r"b\.json:1:2"):
        read_runs(tmp_path)


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


IDS = [
    # lines of one file, ids expected
    ([{"id": "a"}, {"run_id": 7}, {}], ["a", "7", "x:3"]),
    ([{"task_id": "t1"}, {"task_id": "t2"}], ["t1", "t2"]),
    ([{"task_id": "t1"}, {"task_id": "t1"}], ["x:1", "x:2"]),
    ([{"task_id": "t1"}, {}], ["x:1", "x:2"]),
    ([{"task_id": "t1", "id": "r1"}, {"task_id": "t1", "id": "r2"}], ["r1", "r2"]),
    ([{"task_id": "t1"}], ["x:1"]),
]


@pytest.mark.parametrize(("records", "ids"), IDS)
def test_ids_of_lines(tmp_path: Path, records: list[dict[str, object]], ids: list[str]) -> None:
    lines = "".join(json.dumps({**r, "output": "a"}) + "\n" for r in records)
    assert [r.id for r in read_runs(put(tmp_path / "x.jsonl", lines)).runs] == ids


def test_case_ids_in_a_folder_keep_the_file_in_the_id(tmp_path: Path) -> None:
    lines = '{"task_id": 1, "output": "a"}\n{"task_id": 2, "output": "a"}\n'
    put(tmp_path / "s1.jsonl", lines)
    put(tmp_path / "s2.jsonl", lines)
    result = read_runs(tmp_path)
    assert [r.id for r in result.runs] == ["s1:1", "s1:2", "s2:1", "s2:2"]
    assert [r.metadata["task_id"] for r in result.runs] == [1, 2, 1, 2]


def test_double_ids_name_both_places(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", '{"id": "r", "output": "a"}\n')
    put(tmp_path / "b.jsonl", '{"output": "a"}\n{"id": "r", "output": "a"}\n')
    with pytest.raises(InputError) as caught:
        read_runs(tmp_path)
    assert "a.jsonl:1" in str(caught.value)
    assert "b.jsonl:2" in str(caught.value)
    assert "'r'" in str(caught.value)
