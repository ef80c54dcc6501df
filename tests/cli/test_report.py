"""report from end to end: from a store, from ratings in a file, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer


@pytest.fixture
def judged(cli: Cli, project: Path) -> Path:
    with serve(answer) as server:
        done = cli("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                   "--repeats", 2, "--store", "a.db", "-q")  # fmt: skip
    assert done.code == 0, done.err
    return project


def test_a_page_of_the_store(cli: Cli, judged: Path) -> None:
    done = cli("report", "--store", "a.db", "-o", "out/page.html")
    assert done.code == 0, done.err
    assert "out/page.html" in done.out
    page = (judged / "out" / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "alpha-1" in page
    assert "not verified" in page
    cli("report", "--store", "a.db", "-o", "again.html")
    assert (judged / "again.html").read_text(encoding="utf-8") == page


def test_verdicts_after_verify(cli: Cli, judged: Path) -> None:
    with serve(answer) as server:
        done = cli("verify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                   "--store", "a.db", "--perturb", "drop_sentences", "--perturb", "whitespace",
                   "-q")  # fmt: skip
    assert done.code == 0, done.err
    assert cli("report", "--store", "a.db").code == 0
    page = (judged / "report.html").read_text(encoding="utf-8")
    assert "not enough data" in page
    assert "verdicts computed from the store" in page


def test_only_some_runs(cli: Cli, judged: Path) -> None:
    lines = (judged / "runs.jsonl").read_text().splitlines()
    (judged / "some.jsonl").write_text("\n".join(lines[:2]) + "\n")
    assert cli("report", "some.jsonl", "--store", "a.db").code == 0
    page = (judged / "report.html").read_text(encoding="utf-8")
    assert "alpha-1" in page
    assert "alpha-2" in page
    assert "alpha-3" not in page
    assert "beta" not in page


def ratings(path: Path, raters: tuple[str, ...] = ("A",)) -> None:
    rows = [
        {"run": f"r{i}", "criterion": c, "value": (i * k) % 3 / 2, "success": i % 2 == 0,
         "rater": rater}
        for rater in raters for i in range(24) for k, c in enumerate(("x", "y"), 1)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_ratings_made_elsewhere(cli: Cli, tmp_path: Path) -> None:
    ratings(tmp_path / "people.jsonl")
    assert cli("report", "--scores", "people.jsonl").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "made elsewhere, read from people.jsonl" in page
    assert "verdicts computed from the ratings" in page
    ratings(tmp_path / "two.jsonl", ("A", "B"))
    assert cli("report", "--scores", "two.jsonl").code == 2
    assert cli("report", "--scores", "two.jsonl", "--rater", "B").code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--store", "none.db"), "no store"),
        (("--store", "a.db", "--source", "zzz"), "--source"),
        (("--store", "a.db", "--task", "other"), "--task"),
        (("--store", "a.db", "--rater", "A"), "--rater"),
        (("--scores", "runs.jsonl", "--source", "a"), "--scores"),
        (("--store", "a.db", "--criteria", "none.json"), "none.json"),
        (("strange.jsonl", "--store", "a.db"), "RUNS"),
        (("--store", "a.db", "-o", "/dev/null/x.html"), "cannot write"),
    ],
)
def test_bad_use_is_one_line(cli: Cli, judged: Path, arguments: tuple[str, ...], word: str) -> None:
    (judged / "strange.jsonl").write_text('{"id": "q", "input": "a", "output": "b"}\n')
    done = cli("report", *arguments)
    assert done.code == 2
    assert word in done.err
    assert len(done.err.strip().splitlines()) == 1
