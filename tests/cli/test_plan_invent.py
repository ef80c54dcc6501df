"""agenteval plan synth --invent: what is asked, said and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.console import Verbosity
from agenteval.cli.plan_invent import invent_lexicon
from agenteval.errors import InputError, ModelError
from agenteval.models.embeddings import DEFAULT_MODEL
from agenteval.testing import serve
from tests.cli.conftest import ENVIRONMENT, Cli
from tests.evaluators.planning.inventing import KEEPER, professions, replies

pytestmark = pytest.mark.xdist_group("local")  # most load the embedder
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


def test_cases_of_an_invented_profession(cli: Cli, folder: Path) -> None:
    options = ["--lexicon", FILE, "--count", 5, "-o", "suite.jsonl"]
    with serve(answer=replies(GOOD)) as server:
        done = cli("plan", "synth", "--invent", 1, "--model", "parrot",
                   "--base-url", server.base_url, *options)  # fmt: skip
        assert done.code == 0, done.err
        assert server.count == 1
    assert "parrot: 1 requests, at most 2 with repairs" in done.err
    assert "kept professions, with activities: Lighthouse Keeper (20)" in done.out
    assert "nobody has reviewed order and overlap" in done.err
    assert json.loads(FILE.read_text())["topics"][0]["role"] == "Lighthouse Keeper"
    first = (folder / "suite.jsonl").read_bytes()
    assert {json.loads(line)["topic"] for line in first.splitlines()} == {"Lighthouse Keeper"}
    again = cli("plan", "synth", *options)  # from the file alone
    assert again.code == 0, again.err
    assert (folder / "suite.jsonl").read_bytes() == first


def test_what_is_refused_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = professions(("Lighthouse Keeper", [*KEEPER[:18], "Lamp", "tea"]), ("Nurse", KEEPER))
    with serve(answer=replies(jobs)) as server:
        invent_lexicon(2, FILE, "parrot", server.base_url)
    told = capsys.readouterr()
    assert "Lighthouse Keeper (18)" in told.out
    assert "refused: 3" in told.err
    assert "Lighthouse Keeper: activity 'tea': has 1 words, 2 to 5 are wanted" in told.err
    assert "profession 'Nurse': is there already, as 'Nurse'" in told.err
    assert "1 of the 2 professions asked for were kept" in told.err
    assert len(json.loads(FILE.read_text())["refused"]) == 3


def test_a_second_run_takes_the_replies_from_the_store() -> None:
    with serve(answer=replies(GOOD)) as server:
        invent_lexicon(1, FILE, "parrot", server.base_url)
        first = FILE.read_bytes()
        FILE.unlink()
        invent_lexicon(1, FILE, "parrot", server.base_url)
        assert server.count == 1
    assert FILE.read_bytes() == first


def test_nothing_kept_is_an_error_and_leaves_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answer=replies(professions(("Nurse", KEEPER)))) as server:
        url = server.base_url
        with pytest.raises(ModelError, match="nothing was written"):
            invent_lexicon(1, FILE, "parrot", url)
    assert not FILE.exists()
    assert "profession 'Nurse': is there already" in capsys.readouterr().err


def test_a_failed_request_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answer=replies("?", "??", GOOD)) as server:
        invent_lexicon(5, FILE, "parrot", server.base_url)
    told = capsys.readouterr().err
    assert "professions, request 1: unscored:parse: no object or list" in told
    assert "1 of the 5 professions asked for were kept" in told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, None, "openai:x", None), "--lexicon: --invent needs a file to write to"),
        ((1, FILE, "openai:x", None), "openai needs a key"),
        ((1, FILE, None, None), "--model: inventing needs a chat model: PROVIDER:MODEL, or --base"),
        ((1, FILE, "embedded", None), "--model: inventing needs a chat model"),
        ((1, Path("there.json"), "ollama:x", None), "--lexicon: there.json exists; leave out"),
    ],
)
def test_wrong_use_asks_nothing(folder: Path, given: tuple[Any, ...], message: str) -> None:
    (folder / "there.json").write_text("{}")
    with pytest.raises(InputError, match=message):
        invent_lexicon(*given)
    assert not FILE.exists()
    assert not (folder / "agenteval.db").exists()


def test_a_missing_embedder_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as if not installed
    with serve(answer=replies(GOOD)) as server:
        invent_lexicon(1, FILE, "parrot", server.base_url)
    assert "closeness in meaning is not checked" in capsys.readouterr().err
    assert DEFAULT_MODEL not in json.loads(FILE.read_text())["meaning"]


def test_a_dry_run_asks_nothing_and_knows_what_is_stored(cli: Cli, folder: Path) -> None:
    with serve(answer=replies(GOOD, GOOD)) as server:
        asked = ("plan", "synth", "--invent", 6, "--lexicon", FILE, "--model", "parrot",
                 "--base-url", server.base_url)  # fmt: skip
        fresh = cli(*asked, "--dry-run")
        assert (fresh.code, server.count) == (0, 0)
        assert not list(folder.iterdir())
        assert cli(*asked, "-o", "suite.jsonl").code == 0
        assert 2 <= server.count <= 4
        FILE.unlink()
        again = cli(*asked, "--dry-run")
    # four professions in a request, each of which may be repaired once
    assert "requests: at least 2, at most 4" in fresh.out
    assert "requests: 0" in again.out
    alone = cli("plan", "synth", "--dry-run")
    assert (alone.code, "no requests, no cost" in alone.out) == (0, True)
