"""A few hostile files at every door of the command line: one line of error, or the same result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.cli.main import main
from agenteval.errors import InputError
from agenteval.files import write_atomically
from benchmarks.hostile_files.__main__ import rows, run
from benchmarks.hostile_files.doors import DOORS, Door, missing, world
from benchmarks.hostile_files.inputs import Hostile
from benchmarks.hostile_files.run import Told, here, problem
from tests.thorough import often

pytestmark = pytest.mark.slow


def test_every_option_that_names_a_file_has_a_door() -> None:
    assert missing() == []


def test_a_few_files_at_the_doors() -> None:
    """Every fourth door in the usual profile: a clean file and two hostile ones take a while."""
    doors = DOORS[:: often(4, 1)]
    tally = run(doors, often(2, 40), 0, children=False)
    assert tally.problems == []
    assert tally.total("files") >= 2 * len(doors)
    assert tally.total("refused") > 0
    assert all(row.met is not False for row in rows(tally, []))


DOOR = Door("c", "f", "x.json", "json", ())
FILE = Hostile("JSON", "n", lambda path: None, "refused")
CLEAN = Told(0, "table", "")


@pytest.mark.parametrize(
    ("told", "left", "says"),
    [
        (Told(2, "", "agenteval: x.json: broken\n"), [], ""),
        (Told(2, "", "agenteval: x.json: broken\n"), ["made"], "left behind: made"),
        (Told(2, "", "agenteval: broken\n"), [], "does not name the file"),
        (Told(2, "", "Usage: agenteval\n"), [], "0 lines of error"),
        (Told(2, "", "agenteval: x.json: a\nagenteval: x.json: b\n"), [], "2 lines of error"),
        (Told(3, "", "agenteval: x.json: broken\n"), [], "exit code 3"),
        (Told(2, "", "agenteval: x.json: " + "y" * 4000), [], "a line of 4,0"),
        (Told(1, "", "", crash="Traceback\nKeyError: 'x'"), [], "KeyError"),
        (Told(0, "", "", hung=True), [], "hangs"),
        (CLEAN, [], "accepted"),
    ],
)
def test_what_counts_as_wrong(told: Told, left: list[str], says: str) -> None:
    found = problem(DOOR, FILE, told, CLEAN, left)
    assert says in found
    assert bool(says) == bool(found)


def test_another_result_than_that_of_the_clean_file_is_wrong() -> None:
    same = Hostile("encodings", "BOM", lambda path: None, "clean")
    assert problem(DOOR, same, CLEAN, CLEAN, []) == ""
    assert "another one" in problem(DOOR, same, Told(0, "other", ""), CLEAN, [])


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("agenteval: ")]
    return line


def test_the_file_that_is_read_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world(tmp_path)
    scores, suite = str(tmp_path / "scores.csv"), str(tmp_path / "suite.jsonl")
    link = tmp_path / "link.html"
    link.symlink_to(scores)
    before = Path(scores).read_bytes()
    for output in (scores, str(link), f"{tmp_path}/t/../scores.csv"):
        told = refused(["report", "--scores", scores, "-o", output], capsys)
        assert "the command reads this file; name another one to write" in told
    assert "the command reads this file" in refused(["plan", "report", suite, "-o", suite], capsys)
    assert "the command reads this file" in refused(
        ["trace", "report", f"{tmp_path}/trace.json", "-o", f"{tmp_path}/trace.json"], capsys
    )
    assert Path(scores).read_bytes() == before


def test_places_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world(tmp_path)
    scores = str(tmp_path / "scores.csv")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for output, says in (
        (tmp_path, "Is a directory"), (tmp_path / "pipe", "a pipe or a device"),
        (tmp_path / "circle", "lead in a circle"), (tmp_path / "scores.csv" / "x", "cannot write"),
    ):  # fmt: skip
        assert says in refused(["report", "--scores", scores, "-o", str(output)], capsys)
    assert (tmp_path / "pipe").is_fifo()
    assert here(["report", "--scores", scores, "-o", f"{tmp_path}/new/folder/r.html"]).code == 0
    assert (tmp_path / "new/folder/r.html").stat().st_size > 1000
    assert not list(tmp_path.rglob("*.partial"))


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    """/dev/null in the place of a file would be a file afterwards, for everybody."""
    with pytest.raises(InputError, match="a pipe or a device"):
        write_atomically(_device(tmp_path), "x")


def _device(folder: Path) -> Path:
    """A node like /dev/null where this user may make one, else a pipe."""
    path = folder / "null"
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except (OSError, AttributeError):
        os.mkfifo(path)
    return path
