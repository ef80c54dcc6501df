"""`agenteval export --replies` writes what `replay:FILE` reads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer, means_of

JUDGED = ("quantify", "runs.jsonl", "--task", "sums")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def url(cli: Cli, project: Path) -> str:
    with serve(answer) as server:
        assert cli(*JUDGED, "--model", "m", "--base-url", server.base_url).code == 0
        return server.base_url


def test_a_judge_is_replayed_without_an_endpoint(cli: Cli, project: Path, url: str) -> None:
    assert cli("export", "--replies", "replies.jsonl").code == 0
    replayed = cli(*JUDGED, "--model", "replay:replies.jsonl", "--store", "b.db", "--json")
    assert replayed.code == 0, replayed.err
    stored = means_of(cli("show", "--json").json)
    assert means_of(replayed.json) == stored
    assert len(stored) > 0
    found = {(line["run"], line["repeat"], line["role"]) for line in lines(Path("replies.jsonl"))}
    assert len(found) == len(lines(Path("replies.jsonl"))) == 6


def test_two_models_are_never_mixed(cli: Cli, project: Path, url: str) -> None:
    def other(body: Any, number: int) -> str:
        return answer(body, number) + " "

    with serve(other) as server:
        assert cli(*JUDGED, "--model", "n", "--base-url", server.base_url).code == 0
    refused = cli("export", "--replies", "replies.jsonl")
    assert refused.code == 2
    assert "choose one with --model" in refused.err
    assert not Path("replies.jsonl").exists()
    assert cli("export", "--replies", "replies.jsonl", "--model", "n").code == 0
    assert len(lines(Path("replies.jsonl"))) == 6
    assert all(line["reply"]["text"].endswith(" ") for line in lines(Path("replies.jsonl")))
    none = cli("export", "--replies", "more.jsonl", "--model", "o")
    assert (none.code, "no reply of o is stored" in none.err) == (2, True)


def test_replies_of_an_earlier_version_do_not_name_their_request(
    cli: Cli, project: Path, url: str
) -> None:
    with closing(sqlite3.connect("agenteval.db")) as db, db:
        (key,) = db.execute("SELECT min(key) FROM replies").fetchone()
        changed = "UPDATE replies SET reply = json_remove(reply, '$.request')"
        db.execute(f"{changed} WHERE key = ?", (key,))
    done = cli("export", "--replies", "replies.jsonl")
    assert (done.code, len(lines(Path("replies.jsonl")))) == (0, 5)
    assert "1 reply stored by an earlier version" in done.err
    with closing(sqlite3.connect("agenteval.db")) as db, db:
        db.execute(changed)
    assert cli("export", "--replies", "replies.jsonl").code == 2
