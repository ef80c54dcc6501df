"""Commands that read while another process commits: what they tell is of one state.

Before the n-th query of a command the work of another process arrives in the store: for every n, or
for the first, the one in the middle and the last. What is told must be what is told before that
work, or after it, to the letter.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from agenteval.testing import serve
from tests.cli.conftest import CRITERIA, Cli
from tests.cli.test_quantify import answer
from tests.store.making import TABLES

STORE = "s.db"


@contextmanager
def before_query(
    number: int, act: Callable[[], None], words: str = "SELECT"
) -> Iterator[list[str]]:
    """Call `act` once, before the query with these words of this number; gives those so far."""
    seen: list[str] = []

    def asked(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith("SELECT") and words in statement:
            seen.append(statement)
            if len(seen) == number:
                act()

    event.listen(Engine, "before_cursor_execute", asked)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", asked)


def arrive(new: Path) -> None:
    """Make the store what `new` is, in one transaction over another connection."""
    with closing(sqlite3.connect(STORE, isolation_level=None)) as db:
        db.execute("ATTACH ? AS new", (str(new),))
        db.execute("BEGIN IMMEDIATE")
        for table in sorted(TABLES - {"meta"}):
            db.execute(f"DELETE FROM main.{table}")
            db.execute(f"INSERT INTO main.{table} SELECT * FROM new.{table}")
        db.execute("COMMIT")


@dataclass(frozen=True)
class Told:
    """What a command leaves behind; `err` only of commands that do nothing but read."""

    code: int
    out: str
    err: str
    file: str


@dataclass
class Desk:
    """A folder with the store before the other's work and after it."""

    cli: Cli
    folder: Path

    def keep(self, name: str) -> Path:
        with closing(sqlite3.connect(STORE)) as db:
            db.execute("VACUUM INTO ?", (name,))
        return self.folder / name

    def told(self, words: tuple[str, ...], state: Path) -> Told:
        for path in self.folder.glob(f"{STORE}*"):
            path.unlink()
        shutil.copy(state, STORE)
        for path in self.folder.glob("out.*"):
            path.unlink()
        done = self.cli(*words, "--store", STORE)
        assert "Traceback" not in done.err, done.err
        reads_only = not {"quantify", "verify", "test", "session", "locate"} & set(words)
        file = "".join(p.read_text(encoding="utf-8") for p in self.folder.glob("out.*"))
        return Told(done.code, done.out, done.err if reads_only else "", file)

    def check(self, words: tuple[str, ...], old: Path, new: Path, *, few: bool = False) -> None:
        """For every query of the command; the first, one in the middle and the last with `few`."""
        after = self.told(words, new)
        with before_query(0, lambda: None) as asked:
            before = self.told(words, old)
        assert before != after, words
        numbers = range(1, len(asked) + 1)
        chosen = [numbers[i * (len(asked) - 1) // 2] for i in range(3)] if few else numbers
        for number in chosen:
            with before_query(number, lambda: arrive(new)) as seen:
                told = self.told(words, old)
            query = seen[number - 1]
            assert told in (before, after), f"{words}, query {number}: {query}"
            if number == 1:
                assert told == after, f"{words}: opened before the first query"
        assert told == before, f"{words}: the last query saw what arrived just before it"


@pytest.fixture
def desk(cli: Cli, tmp_path: Path) -> Desk:
    return Desk(cli, tmp_path)


@dataclass
class Judge:
    """One that is not in form about one problem, while it is confused."""

    confused: bool = True

    def __call__(self, body: dict[str, Any], n: int) -> str:
        lost = self.confused and "What is 2 + 2?" in json.dumps(body)
        return "what?" if lost else answer(body, n)


@pytest.mark.slow
def test_scores(desk: Desk, project: Path) -> None:
    lines = (project / "runs.jsonl").read_text().splitlines(keepends=True)
    (project / "half.jsonl").write_text("".join(lines[:5]))
    other = [{**CRITERIA[0], "accepted_values": ["unclear", "clear"]}, CRITERIA[1]]
    (project / "other.json").write_text(json.dumps(other))

    def quantify(url: str, runs: str, *more: str) -> tuple[str, ...]:
        return ("quantify", runs, "--model", "m", "--base-url", url, "--max-unscored", "1", *more)

    who = Judge()
    with serve(who) as one, serve(answer) as two:
        base = f"verify half.jsonl --model m --base-url {one.base_url} --json --repeats 1"
        verify = (*base.split(), "--perturb", "drop_sentences")
        for words in (quantify(one.base_url, "half.jsonl"), verify):
            assert desk.cli(*words, "--store", STORE).code == 0
        old = desk.keep("old.db")
        who.confused = False
        for words in (
            quantify(one.base_url, "runs.jsonl", "--retry-failed"),
            (*verify, "--retry-failed"),
            quantify(one.base_url, "runs.jsonl", "--criteria", "other.json"),
            quantify(two.base_url, "half.jsonl", "--seed", "1"),
        ):
            assert desk.cli(*words, "--store", STORE).code == 0
        new = desk.keep("new.db")
        desk.check(("show", "--json"), old, new)
        for words in (
            ("show",),
            ("show", "--run", "alpha-2"),
            ("show", "--sources"),
            ("export", "out.jsonl"),
            ("doctor", "--json"),
            ("agree", "--audit", "--json"),
            ("compare", "alpha", "beta", "--min-cases", "2"),
            quantify(one.base_url, "half.jsonl", "--json"),
            verify,
        ):
            desk.check(words, old, new, few=True)
    # A page takes a second: once, with a run of the other's that no page of the old state knows.
    desk.told(("doctor",), old)
    with before_query(1, lambda: arrive(new), "FROM results") as seen:
        assert desk.cli("report", "-o", "page.html", "--store", STORE).code == 0
    page = (project / "page.html").read_text(encoding="utf-8")
    assert len(seen) > 1
    assert "beta-2" in page
    assert "beta-3" not in page
