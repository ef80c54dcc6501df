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
from tests.evaluators.planning.inventing import KEEPER, WORDS, professions, replies

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
    with serve(answer=replies([json.dumps(WORDS)], [GOOD])) as server:
        done = cli("plan", "synth", "--invent", 1, "--model", "parrot",
                   "--base-url", server.base_url, *options)  # fmt: skip
        assert done.code == 0, done.err
        assert server.count == 2
    assert "parrot: 2 requests, at most 4 with repairs" in done.err
    assert "wordings: 7 of 7 proposed were kept" in done.out
    assert "nobody has reviewed order and overlap" in done.err
    assert json.loads(FILE.read_text())["topics"][0]["role"] == "Lighthouse Keeper"
    first = (folder / "suite.jsonl").read_bytes()
    assert {json.loads(line)["topic"] for line in first.splitlines()} == {"Lighthouse Keeper"}
    again = cli("plan", "synth", *options)  # from the file alone
    assert again.code == 0, again.err
    assert (folder / "suite.jsonl").read_bytes() == first


def test_what_is_refused_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = WORDS | {"VP_none": [{"singular": "is skipped", "plural": "are skipped"}]}
    jobs = professions(("Lighthouse Keeper", [*KEEPER[:18], "Lamp", "tea"]), ("Nurse", KEEPER))
    with serve(answer=replies([json.dumps(words)], [jobs])) as server:
        invent_lexicon(2, FILE, "parrot", server.base_url)
    told = capsys.readouterr()
    assert "professions: 1 of 2 proposed were kept" in told.out
    assert "activities: 18 of 40 proposed were kept" in told.out
    assert "refused: 4" in told.err
    assert "VP_none: 'is skipped / are skipped': is not known" in told.err
    assert "activity: Lighthouse Keeper: 'tea': has 1 words, 2 to 5 are wanted" in told.err
    assert "profession: 'Nurse': is there already, as 'Nurse'" in told.err
    assert "1 of the 2 professions asked for were kept" in told.err
    assert len(json.loads(FILE.read_text())["refused"]) == 4


def test_a_second_run_takes_the_replies_from_the_store() -> None:
    with serve(answer=replies([json.dumps(WORDS)], [GOOD])) as server:
        invent_lexicon(1, FILE, "parrot", server.base_url)
        first = FILE.read_bytes()
        FILE.unlink()
        invent_lexicon(1, FILE, "parrot", server.base_url)
        assert server.count == 2
    assert FILE.read_bytes() == first


def test_nothing_kept_is_an_error_and_leaves_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = json.dumps({"P_prec": ["until"]})
    with serve(answer=replies([nothing], [professions(("Nurse", KEEPER))])) as server:
        url = server.base_url
        with pytest.raises(ModelError, match="nothing was written"):
            invent_lexicon(1, FILE, "parrot", url)
    assert not FILE.exists()
    assert "P_prec: 'until': 'until' is not among the words" in capsys.readouterr().err


def test_failures_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answer=replies(["?", "??"], [GOOD])) as server:
        invent_lexicon(1, FILE, "parrot", server.base_url)
    assert "wordings: unscored:parse: no object or list" in capsys.readouterr().err
    assert json.loads(FILE.read_text())["words"] is None


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
    with serve(answer=replies([json.dumps(WORDS)], [GOOD])) as server:
        invent_lexicon(1, FILE, "parrot", server.base_url)
    assert "closeness in meaning is not checked" in capsys.readouterr().err
    assert DEFAULT_MODEL not in json.loads(FILE.read_text())["meaning"]
