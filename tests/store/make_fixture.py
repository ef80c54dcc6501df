"""Write the store in `data/store.db.gz` and what the reading commands print of it.

`python -m tests.store.make_fixture store` makes the store (it asks loopback servers only), and
without `store` the outputs. The committed store was made at commit 0f3483b, in layout 5; do not
make it anew with later code.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shlex
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from agenteval.testing import serve
from tests.golden import answers
from tests.golden.cases import PLACES
from tests.golden.freeze import _no_variables, call

DATA = Path(__file__).with_name("data")
STORE = DATA / "store.db.gz"
OUTPUTS = DATA / "outputs.json"

MATH = "{data}/runs_math_20.jsonl --task math --model m --base-url {url}"
MAKING = (
    (answers.troubled_judge, f"quantify {MATH} --repeats 2 --limit 4 --max-unscored 1"),
    (answers.recorded_judge, f"verify {MATH} --limit 2 -o verified.json"),
    (
        answers.in_turn,
        "plan test {data}/suite.jsonl --agent openai --model m --base-url {url} --limit 3",
    ),
    (answers.in_turn, "plan test {data}/suite.jsonl --agent scripted:random --limit 3 --trials 2"),
    (answers.locator, "trace locate {tasks}/traces/traces --model m --base-url {url} --limit 3"),
    (
        answers.assistant,
        "flow session meeting_rooms --agent scripted:perfect --user scripted"
        " --judge m --judge-url {url} --limit 3",
    ),
    (
        answers.assistant,
        "flow session meeting_rooms --agent openai --model m --base-url {url}"
        " --user scripted --judge m --judge-url {url} --limit 3",
    ),
)
# Starts of the hashes in the committed store: quantifier with failures, verified quantifier, plan
# agent, locator, session agent. The first four and the last one hold the port of their server.
SOURCES = ("9534b37bed1e", "7ee3b8981811", "6c1bad638a4a", "cd1de42c1769", "4d584f5d0539")
# Each prints JSON, or writes the rows of a file where one is named.
READING = (
    "show --store s.db --sources --json",
    *(f"show --store s.db --json --all --source {source}" for source in SOURCES),
    f"show --store s.db --run math-01-duo --json --source {SOURCES[0]}",
    f"report --store s.db --json -o page.html --source {SOURCES[0]}",
    f"report --store s.db --json -o page.html --source {SOURCES[1]}",
    "plan report --store s.db --json",
    "trace report --store s.db --json",
    "flow report --store s.db --json",
    "export scores.jsonl --store s.db",
)


def outputs(folder: Path) -> dict[str, Any]:
    """Return exit code and JSON of every reading command on the store `s.db` in this folder."""
    found = {}
    with contextlib.chdir(folder), _no_variables():
        for line in READING:
            done = call(shlex.split(line), folder)
            text = done.out
            if line.startswith("export"):
                rows = (folder / done.words[1]).read_text("utf-8") if done.code == 0 else ""
                text = f"[{','.join(rows.splitlines())}]"
            found[line] = {"code": done.code, "output": json.loads(text or "null")}
    return found


def make(folder: Path) -> None:
    """Run the commands that fill `s.db` in this folder. Raises AssertionError when one fails."""
    with contextlib.chdir(folder), _no_variables():
        for answer, line in MAKING:
            with serve(answer) as server:
                words = [w.format(url=server.base_url, **PLACES) for w in shlex.split(line)]
                done = call([*words, "--store", "s.db", "-j", "1", "-q"], folder)
            assert done.code in (0, 1), f"{line}\nexit code {done.code}\n{done.err}"


def write_outputs() -> None:
    """Write what the reading commands print of the committed store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "s.db").write_bytes(gzip.decompress(STORE.read_bytes()))
        text = json.dumps(outputs(folder), indent=1, ensure_ascii=False)
        OUTPUTS.write_text(text + "\n", encoding="utf-8")


def write_store() -> None:
    """Make the store; `SOURCES` must then name its judges."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make(folder)
        with contextlib.closing(sqlite3.connect(folder / "s.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        DATA.mkdir(exist_ok=True)
        STORE.write_bytes(gzip.compress((folder / "s.db").read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    write_store() if "store" in sys.argv else write_outputs()
