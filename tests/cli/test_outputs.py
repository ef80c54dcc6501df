"""What a command writes must not be what it reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agenteval.store import Store
from tests.cli.conftest import Cli

NOWHERE = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")


TARGETS = [
    ("report", "-o"),
    ("export",),
    ("export", "--otlp"),
    ("criteria", "--task", "sums", *NOWHERE, "-o"),
    ("verify", "runs.jsonl", "--task", "sums", *NOWHERE, "-o"),
    ("perturb", "runs.jsonl", "-o"),
    ("compare", "alpha", "beta", "--fail-on-regression", "--junit"),
    ("init", "new", "--folder"),
    ("demo", "--dir"),
    ("plan", "synth", "--count", "1", "-o"),
    ("plan", "synth", "--invent", "1", *NOWHERE, "--lexicon"),
    ("plan", "test", "suite.jsonl", "--agent", "template", "--runs"),
    ("plan", "report", "--runs"),
    ("flow", "session", "--judgements"),
    ("flow", "report", "--figure"),
    ("trace", "locate", "runs.jsonl", "--detectors-only", "-o"),
    ("trace", "report", "-o"),
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
    told = "this file is the store; choose another output file"
    if "init" in arguments:
        told = "cannot write \\(Not a directory\\)"
    elif "demo" in arguments:
        told = "cannot write \\(File exists\\)"
    elif "--invent" in arguments and Path(str(arguments[-1])).exists():
        told = r"--lexicon: .* exists; remove --invent to use it, or choose another file"
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


def test_a_link_to_a_store_is_the_store(cli: Cli, project: Path) -> None:
    stored(project / "agenteval.db")
    (project / "page.html").symlink_to("agenteval.db")
    refused(cli, project, "report", "-o", "page.html")


def test_what_is_read_is_not_written_over(cli: Cli, project: Path) -> None:
    before = files(project)
    for command in (
        ("perturb", "runs.jsonl", "-o", "./runs.jsonl"),
        ("verify", "runs.jsonl", "--task", "sums", *NOWHERE, "-o", "runs.jsonl"),
        ("report", "runs.jsonl", "-o", project / "runs.jsonl"),
    ):
        done = cli(*command)
        assert done.code == 2, done
        assert "runs.jsonl: the command also reads this file" in done.err
        assert files(project) == before
