"""`agenteval export`: events, by the commands of docs/opentelemetry.md, and replies to replay."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli, Result
from tests.cli.test_quantify import answer, means_of
from tests.support.collector import collecting, events_of

PAGE = (Path(__file__).parents[2] / "docs" / "opentelemetry.md").read_text(encoding="utf-8")
TRACE, ROOT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
JUDGE = """
def judge(run, criterion):
    return None if criterion.id == "tone" else ("good", "so it is")
"""


@pytest.fixture
def export(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`agenteval export` in a folder with a trace that was judged: one score, one failure."""
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    pairs = {
        "openinference.span.kind": "LLM",
        "input.value": "Hello?",
        "output.value": "Hello.",
        "gen_ai.response.id": "chatcmpl-1",
    }
    span = {
        "traceId": TRACE,
        "spanId": ROOT,
        "name": "answer",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in pairs.items()],
    }
    (tmp_path / "traces").mkdir()
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (tmp_path / "traces" / "one.json").write_text(json.dumps(document))
    criteria = [{"name": n, "accepted_values": ["bad", "good"]} for n in ("Clarity", "Tone")]
    (tmp_path / "criteria.json").write_text(json.dumps({"task": "t", "criteria": criteria}))
    (tmp_path / "mine.py").write_text(JUDGE)
    done = cli("quantify", "traces", "--criteria", "criteria.json", "--judge", "python:mine:judge")
    assert done.code == 3, done  # half of it has no score
    return lambda *arguments: cli("export", *arguments)


def test_the_page(export: Callable[..., Result], tmp_path: Path) -> None:
    (shell,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    with collecting() as collector:
        for line in shell.splitlines():
            words = shlex.split(line.replace("http://localhost:4318", collector.url))
            assert words[:2] == ["agenteval", "export"]
            done = export(*words[2:])
            assert done.code == 0, done
            assert "2 results sent as events to " in done.err
    (line,) = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [*collector.events, *events_of(json.loads(line))]
    assert [event.get("spanId") for event in events] == [None, None, ROOT, ROOT, None, None]
    assert [event.get("traceId") for event in events[2:4]] == [TRACE, TRACE]


def test_the_page_names_what_an_event_says(export: Callable[..., Result], tmp_path: Path) -> None:
    export("--otlp", "e.jsonl", "--traces", "traces", "-q")
    said = {
        name
        for line in (tmp_path / "e.jsonl").read_text().splitlines()
        for event in events_of(json.loads(line))
        for name in event["attributes"]
    }
    named = set()
    for row in re.findall(r"^\| (`[^|]*) \|", PAGE, re.M):
        first, *more = re.findall("`(.*?)`", row)
        stem = first.rpartition(".value")[0] or first.partition(".")[0]
        named |= {first, *(stem + name for name in more)}
    assert said <= named
    assert named - said == {"agenteval.way"}  # of judges asked in the plain way it says nothing


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
