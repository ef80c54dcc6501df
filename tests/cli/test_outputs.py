"""What a command writes is not what it reads: --record, told before anything is asked."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agenteval.cli.outputs import _READ, check_record
from agenteval.errors import InputError
from agenteval.files import write_atomically
from agenteval.models.replay import FileRecorder
from agenteval.models.wire import Reply, Request
from agenteval.store import Store
from tests.cli.conftest import Cli

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


def test_what_a_recorder_leaves_begins_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    FileRecorder(file)
    check_record(file, [])  # empty
    recorder = FileRecorder(file)
    recorder.record(Request(messages=({"role": "user", "content": "é"},)), Reply("ok"))
    check_record(file, [])
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"r\.jsonl:1: the last line broke off|no recording"):
        check_record(file, [])


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


# ---- Databases -----------------------------------------------------------------------------------

TARGETS = [
    ("report", "-o"),
    ("report", "--scores", "ratings.csv", "-o"),
    ("export",),
    ("export", "--otlp"),
    ("criteria", "--task", "sums", *NOWHERE, "-o"),
    ("verify", "runs.jsonl", "--task", "sums", *NOWHERE, "-o"),
    ("verify", "--scores", "ratings.csv", "-o"),
    ("perturb", "runs.jsonl", "-o"),
    ("compare", "alpha", "beta", "--fail-on-regression", "--junit"),
    ("init", "new", "--folder"),
    ("demo", "--dir"),
    ("plan", "synth", "--count", "1", "-o"),
    ("plan", "synth", "--invent", "1", *NOWHERE, "--lexicon"),
    ("plan", "test", "suite.jsonl", "--agent", "template", "--runs"),
    ("plan", "report", "-o"),
    ("plan", "report", "--runs"),
    ("flow", "turn", "--judgements"),
    ("flow", "session", "--judgements"),
    ("flow", "report", "-o"),
    ("flow", "report", "--figure"),
    ("trace", "locate", "runs.jsonl", "--detectors-only", "-o"),
    ("trace", "report", "-o"),
    ("quantify", "runs.jsonl", *NOWHERE, "--record"),
    ("criteria", "--task", "sums", *NOWHERE, "--record"),
    ("verify", "runs.jsonl", *NOWHERE, "--record"),
    ("trace", "locate", "runs.jsonl", *NOWHERE, "--record"),
    ("flow", "score", "runs.jsonl", *NOWHERE, "--record"),
]
ENDINGS = {("export",): ".csv", ("flow", "report", "--figure"): ".png"}
NO_STORE = {"init", "demo", "perturb"}  # commands that have none


def made(command: tuple[str, ...]) -> str:
    return " ".join(command).replace(" ".join(NOWHERE), "…")


def files(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(cli: Cli, project: Path, *arguments: object) -> None:
    before = files(project)
    done = cli(*arguments)
    assert done.code == 2, done
    assert done.out == ""
    told = "(this is the store|this is a database); name another file to write"
    if "init" in arguments:
        told = "cannot write \\(Not a directory\\)"
    elif "demo" in arguments:
        told = "cannot write \\(File exists\\)"
    elif "--invent" in arguments and Path(str(arguments[-1])).exists():
        told = r"--lexicon: .* exists; leave out --invent to use it, or name another file"
    assert re.fullmatch(rf"agenteval: (\S+: )?{told}\n", done.err), done.err
    assert files(project) == before


def stored(path: Path) -> Path:
    with Store(path):
        pass
    return path


@pytest.mark.parametrize("command", TARGETS, ids=made)
def test_no_command_writes_over_its_store(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    name = "agenteval.db"
    if ending := ENDINGS.get(command):  # else another rule refuses it
        name = f"other{ending}"
        monkeypatch.setenv("AGENTEVAL_STORE", name)
    stored(project / name)
    refused(cli, project, *command, name)


@pytest.mark.parametrize("command", TARGETS[::5], ids=made)
def test_no_command_writes_over_any_database(
    cli: Cli, project: Path, command: tuple[str, ...]
) -> None:
    stored(project / "agenteval.db")
    target = project / f"foreign{ENDINGS.get(command, '.db')}"
    with closing(sqlite3.connect(target)) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    refused(cli, project, *command, target)


@pytest.mark.parametrize(
    ("named", "command"),
    [
        pytest.param(named, command, id=f"{named}: {made(command)}")
        for named in ("by the environment", "by --store")
        for command in TARGETS
        if not NO_STORE & set(command) and not (named == "by --store" and "synth" in command)
    ],
)
def test_a_store_that_is_still_to_be_made_is_kept_free(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], named: str
) -> None:
    """Told before anything is paid for, not when the result is to be written."""
    ending = ENDINGS.get(command, ".db")
    name = f"new{ending}"
    if named == "by the environment":
        monkeypatch.setenv("AGENTEVAL_STORE", f"./{name}")
    else:
        at = len(command) - command[-1].startswith("-")  # before the option that takes the name
        command = (*command[:at], "--store", f"../{project.name}/{name}", *command[at:])
    refused(cli, project, *command, name)


def test_a_recording_and_a_result_are_two_files(cli: Cli, project: Path) -> None:
    done = cli("criteria", "--task", "sums", *NOWHERE, "--record", "new", "-o", "new")
    assert (done.code, done.err) == (2, f"agenteval: new: {_READ}\n")


def test_a_link_to_a_store_is_the_store(cli: Cli, project: Path) -> None:
    stored(project / "agenteval.db")
    (project / "page.html").symlink_to("agenteval.db")
    refused(cli, project, "report", "-o", "page.html")


@pytest.fixture
def scores(project: Path) -> Path:
    path = project / "scores.csv"
    path.write_text("run,criterion,value\nr0,accuracy,0\nr1,accuracy,1\n")
    return path


@pytest.mark.parametrize("output", ["scores.csv", "link.html", "tasks/../scores.csv"])
def test_the_file_that_is_read_is_not_written(cli: Cli, scores: Path, output: str) -> None:
    (scores.parent / "link.html").symlink_to(scores)
    before = scores.read_bytes()
    done = cli("report", "--scores", scores, "-o", output)
    assert done.code == 2
    assert "this file is read" in done.err
    assert scores.read_bytes() == before


def test_a_pipe_stays_a_pipe(cli: Cli, scores: Path) -> None:
    pipe = scores.parent / "pipe"
    os.mkfifo(pipe)
    done = cli("report", "--scores", scores, "-o", pipe)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert pipe.is_fifo()
    with pytest.raises(InputError):
        write_atomically(pipe, "x")


@pytest.mark.parametrize("output", [".", "circle", "scores.csv/x"])
def test_a_place_that_cannot_be_written_is_one_line(cli: Cli, scores: Path, output: str) -> None:
    (scores.parent / "circle").symlink_to("circle")
    done = cli("report", "--scores", scores, "-o", output)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert not list(scores.parent.rglob("*.partial"))
