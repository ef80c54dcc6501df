"""The commands that `faults.py` runs, what they need, and what they must leave behind."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.app.main import main
from agenteval.cli.console import Verbosity
from agenteval.store.store import Store
from agenteval.testing import DEFAULT
from agenteval.testing.engine import Default
from benchmarks.folders import ROOT

STORE = "agenteval.db"
OLD = "what stood here before\n"
_TASK = "name: sums\ndescription: Add the numbers and explain the result.\n"
_SCALES = {
    "clarity": ["unclear", "partly clear", "clear"],
    "accuracy": ["incorrect", "partially correct", "correct"],
}
_TRIALS = """SELECT id, repeat, status, outcome, check_key, tries, verdict
    FROM calls JOIN items USING (item_key) WHERE status IS NOT NULL ORDER BY item_key, repeat"""
_LOGS = """SELECT id, repeat, status, record
    FROM calls JOIN items USING (item_key) WHERE status IS NOT NULL ORDER BY item_key, repeat"""
_TRACE = f"{1:032x}"  # the id of the trace that is searched
_ROLE = str(ROOT / "tasks" / "flows" / "hotel_reception")


@dataclass(frozen=True)
class Operation:
    """A command, the files it writes, and how its final table is read from the store.

    `cells` is how many results every stored call has; 0 where there are no calls.
    """

    name: str
    command: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    table: Callable[[Path], str] = lambda _: ""
    cells: int = 0


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code (None: it broke with a traceback), and what it said."""

    code: int | None
    out: str
    err: str

    @property
    def clean(self) -> bool:
        """A failure as promised: one line that says why, and exit code 3, or 2 for the file.

        SQLite takes a read that fails for a damaged file, and, where no descriptor is left to open
        one for writing, opens it for reading only.
        """
        said = [line for line in self.err.splitlines() if line.startswith("agenteval: ")]
        of_the_file = ("cannot read (", ": damaged (", ": must not be written (")
        expected = 2 if said and any(words in said[0] for words in of_the_file) else 3
        return self.code == expected and len(said) == 1 and "Traceback" not in self.err


def call(folder: Path, *arguments: str) -> Ran:
    """Run a command of agenteval in this process, in that folder."""
    out, err = io.StringIO(), io.StringIO()
    Verbosity.level = 0
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
            return Ran(code, out.getvalue(), err.getvalue())
        except Exception as error:  # noqa: BLE001  what a person would see as a traceback
            return Ran(None, out.getvalue(), f"{err.getvalue()}{type(error).__name__}: {error}")
    raise AssertionError("main always exits")


# ---- final tables --------------------------------------------------------------------------------


def exported(folder: Path) -> str:
    """Every result as `agenteval export` writes it."""
    target = folder / "exported.jsonl"
    ran = call(folder, "export", target.name)
    if ran.code != 0:
        raise RuntimeError(f"cannot export: {ran.err}")
    text = target.read_text(encoding="utf-8")
    target.unlink()
    return text


def trials(folder: Path) -> str:
    """Every trial without its times."""
    with contextlib.closing(sqlite3.connect(folder / STORE)) as db:
        return json.dumps(db.execute(_TRIALS).fetchall(), indent=0)


def logs(folder: Path) -> str:
    """What was found in every trace."""
    with contextlib.closing(sqlite3.connect(folder / STORE)) as db:
        return json.dumps(db.execute(_LOGS).fetchall(), indent=0)


OPERATIONS = (
    Operation(
        "quantify",
        ("quantify", "runs.jsonl", "--model", "replay:said.jsonl"),
        table=exported,
        cells=2,
    ),
    Operation(
        "verify",
        (
            "verify",
            "runs.jsonl",
            "--limit",
            "3",
            "--model",
            "replay:verified.jsonl",
            "--perturb",
            "pad",
            "--repeats",
            "1",
            "-o",
            "verified.json",
        ),
        ("verified.json",),
        exported,
        2,
    ),
    Operation(
        "criteria",
        (
            "criteria",
            "--task",
            "sums",
            "--model",
            "replay:proposed.jsonl",
            "--store",
            STORE,
            "--tau",
            "1",
            "--seeds",
            "2",
            "-o",
            "proposed.json",
        ),
        ("proposed.json",),
    ),
    Operation("export", ("export", "cells.csv"), ("cells.csv",), exported, 2),
    Operation("report", ("report", "-o", "page.html"), ("page.html",), exported, 2),
    Operation(
        "plan",
        ("plan", "test", "suite.jsonl", "--agent", "scripted:perfect", "--trials", "2"),
        (),
        trials,
    ),
    Operation(
        "session",
        (
            "flow",
            "session",
            _ROLE,
            "--agent",
            "recorded:perfect",
            "--user",
            "scripted",
            "--limit",
            "1",
        ),
        (),
        trials,
    ),
    Operation(
        "locate",
        ("trace", "locate", "trace.json", "--model", "replay:located.jsonl", "-o", "found"),
        (f"found/{_TRACE}.json",),
        logs,
    ),
)


# ---- what they need ------------------------------------------------------------------------------


def answer(body: dict[str, Any], _: int) -> str | Default:
    """A critic's or a judge's reply; a judge's levels follow from the problem alone. A finder gets
    the server's own."""
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    if set(fields) != set(_SCALES) and "criteria" not in fields:
        return DEFAULT
    if set(fields) != set(_SCALES):
        return json.dumps(
            {
                "criteria": [
                    {
                        "name": name,
                        "description": f"How good is the {name}?",
                        "accepted_values": levels,
                    }
                    for name, levels in _SCALES.items()
                ]
            }
        )
    text = json.dumps(body["messages"])
    start = text.index("What is ")
    digest = hashlib.sha256(text[start : start + 13].encode()).digest()
    return json.dumps(
        {
            name: {"explanation": f"It is {levels[digest[0] % 3]}.", "label": levels[digest[0] % 3]}
            for name, levels in _SCALES.items()
        }
    )


def prepare(folder: Path) -> None:
    """A folder with a task, criteria, runs, a suite and recorded replies, and a full store in
    `full`. Raises RuntimeError when a command fails."""
    from agenteval.testing import serve
    from tests.support.long_trace import LongTrace, write

    task = folder / "tasks" / "sums"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text(_TASK)
    (folder / "criteria").mkdir()
    named = [
        {"name": n, "description": f"How good is the {n}?", "accepted_values": levels}
        for n, levels in _SCALES.items()
    ]
    (folder / "criteria" / "sums.json").write_text(json.dumps(named))
    runs = [
        {
            "id": f"{system}-{i}",
            "task": "sums",
            "system": system,
            "input": f"What is {i} + {i}?",
            "output": f"The sum of {i} and {i} is {2 * i}. So {system} says, by adding.",
            "success": i != 2,
        }
        for system in ("alpha", "beta")
        for i in (1, 2, 3)
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    with (folder / "trace.json").open("w", encoding="utf-8") as file:
        write(LongTrace(1500), file)
    recordings = {
        "quantify": "said",
        "verify": "verified",
        "criteria": "proposed",
        "locate": "located",
    }
    with serve(answer) as server:
        for operation in (o for o in OPERATIONS if o.name in recordings):
            command = [*operation.command, "--base-url", server.base_url]
            at = command.index("--model")
            command[at + 1] = "openai:judge"
            _must(folder, *command, *(() if "--store" in command else ("--store", STORE)))
            _must(
                folder,
                "export",
                "--replies",
                f"{recordings[operation.name]}.jsonl",
                "--store",
                STORE,
            )
            if operation.name == "quantify":
                (folder / "full").mkdir()
                shutil.move(folder / STORE, folder / "full" / STORE)
            (folder / STORE).unlink(missing_ok=True)
    synth = ("--n", "3", "--count", "3", "--seed", "1", "-o", "suite.jsonl")
    _must(folder, "plan", "synth", *synth)
    for left in ("recorded.jsonl", "verified.json", "proposed.json"):
        (folder / left).unlink(missing_ok=True)
    for left_folder in (f".{STORE}.locks", "found"):
        shutil.rmtree(folder / left_folder, ignore_errors=True)


def _must(folder: Path, *arguments: str) -> None:
    ran = call(folder, *arguments)
    if ran.code != 0:
        raise RuntimeError(f"agenteval {' '.join(arguments)}: {ran.code}: {ran.err}")


def copied(template: Path, folder: Path, operation: Operation) -> Path:
    """A folder for one try, with old outputs; export and report find the full store in it."""
    shutil.copytree(template, folder)
    for name in operation.outputs:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(OLD)
    if operation.name in ("export", "report"):
        shutil.copy(folder / "full" / STORE, folder / STORE)
    return folder


# ---- what was acknowledged -----------------------------------------------------------------------

Acknowledged = list[tuple[str, dict[str, Any]]]


@contextlib.contextmanager
def noting() -> Iterator[Acknowledged]:
    """Every row that a store opened within the block has called durable, with its table."""
    acknowledged: Acknowledged = []
    submit = Store.submit

    def noting_submit(store: Store, writes: Any, *rest: Any) -> Future[None]:
        # An experiment that is open gives way to a larger one.
        rows = [
            (str(s.table.name), dict(row))
            for s, many in writes
            for row in many
            if s.is_insert and s.table.name != "experiments"
        ]
        done = submit(store, writes, *rest)
        done.add_done_callback(lambda f: None if f.exception() else acknowledged.extend(rows))
        return done

    Store.submit = noting_submit  # type: ignore[method-assign, assignment]
    try:
        yield acknowledged
    finally:
        Store.submit = submit  # type: ignore[method-assign]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """No model, store or key of the user's in what follows.

    Also a decorator. What it changes is put back, since tests call this within their own process.
    """
    names = [n for n in os.environ if n.startswith(("AGENTEVAL_", "OPENAI_"))]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)
