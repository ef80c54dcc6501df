"""agenteval plan synth --invent: what is asked, said and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.cli.console import Verbosity
from agenteval.errors import InputError
from agenteval.planning.suite_api import SuiteReport, plan_suite
from agenteval.testing import serve
from tests.cli.conftest import ENVIRONMENT, Cli
from tests.planning.inventing import KEEPER, professions, replies

FILE = Path("mine.json")
GOOD = professions(("Lighthouse Keeper", KEEPER))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, nothing configured, everything told."""
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    Verbosity.level = 0
    return tmp_path


def invented(
    count: int, url: str | None, *, model: str | None = "parrot", file: Path | None = FILE
) -> SuiteReport:
    return plan_suite(1, invent=count, lexicon=file, model=model, base_url=url)


def test_cases_of_an_invented_profession(cli: Cli, folder: Path) -> None:
    options = ["--lexicon", FILE, "--count", 5, "-o", "suite.jsonl"]
    with serve(answer=replies(GOOD)) as server:
        done = cli(
            "plan",
            "synth",
            "--invent",
            1,
            "--model",
            "parrot",
            "--base-url",
            server.base_url,
            *options,
        )
        assert done.code == 0, done.err
        assert server.count == 1
    assert "parrot: 1 request, at most 2 with repairs" in done.err
    assert "Lighthouse Keeper (20)" in done.out
    assert json.loads(FILE.read_text())["topics"][0]["role"] == "Lighthouse Keeper"
    first = (folder / "suite.jsonl").read_bytes()
    assert {json.loads(line)["topic"] for line in first.splitlines()} == {"Lighthouse Keeper"}
    again = cli("plan", "synth", *options)  # from the file alone
    assert again.code == 0, again.err
    assert (folder / "suite.jsonl").read_bytes() == first


def test_what_is_refused_is_told() -> None:
    jobs = professions(("Lighthouse Keeper", [*KEEPER[:18], "Lamp", "tea"]), ("Nurse", KEEPER))
    with serve(answer=replies(jobs)) as server:
        told = "\n".join(invented(2, server.base_url).notes)
    assert "Lighthouse Keeper (18)" in told
    assert "refused: 3" in told
    assert "activity 'tea'" in told
    assert "1 of 2 professions" in told
    assert len(json.loads(FILE.read_text())["refused"]) == 3


@pytest.mark.parametrize(
    ("file", "model", "message"),
    [
        (None, "openai:x", "--lexicon: --invent needs a file to write to"),
        (FILE, "openai:x", "openai needs a key"),
        (FILE, None, "--model: inventing needs a chat model: PROVIDER:MODEL, or --base"),
        (FILE, "embedded", "--model: inventing needs a chat model"),
        (Path("there.json"), "ollama:x", "--lexicon: there.json exists; remove"),
    ],
)
def test_wrong_use_asks_nothing(
    folder: Path, file: Path | None, model: str | None, message: str
) -> None:
    (folder / "there.json").write_text("{}")
    with pytest.raises(InputError, match=message):
        invented(1, None, model=model, file=file)
    assert not FILE.exists()
    assert not (folder / "agenteval.db").exists()


def test_a_dry_run_asks_nothing_and_knows_what_is_stored(cli: Cli, folder: Path) -> None:
    with serve(answer=replies(GOOD, GOOD)) as server:
        asked = (
            "plan",
            "synth",
            "--invent",
            6,
            "--lexicon",
            FILE,
            "--model",
            "parrot",
            "--base-url",
            server.base_url,
        )
        fresh = cli(*asked, "--dry-run")
        assert (fresh.code, server.count) == (0, 0)
        assert not list(folder.iterdir())
        assert cli(*asked, "-o", "suite.jsonl").code == 0
        assert 2 <= server.count <= 4
        FILE.unlink()
        again = cli(*asked, "--dry-run")
    # four professions in a request, each of which may be repaired once
    assert "requests: at least 1, at most 4" in fresh.out
    assert "requests: 0" in again.out
    alone = cli("plan", "synth", "--dry-run")
    assert (alone.code, "no requests, no cost" in alone.out) == (0, True)
