"""Commands on hostile data: what reaches a terminal, a spreadsheet, a CI system, and a machine."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Et

from benchmarks.pages.check import hidden_in
from benchmarks.pages.payloads import Swap, payloads
from benchmarks.pages.worlds import flows_material, planning_material, utility_store

_BLANK = (
    "".join(
        chr(c)
        for c in (*range(0x21), *range(0x7F, 0xA1), *range(0x200B, 0x2010), 0x2028, 0x2029, 0x202F)
    )
    + "\u2060\ufeff\u3000"
)
_RUNS = "=+-@\uff1d\uff0b\uff0d\uff20"


@dataclass
class Terminal:
    """What commands printed that they should not have."""

    commands: int = 0
    controls: list[str] = field(default_factory=list)  # characters let through, by command
    broken: list[str] = field(default_factory=list)  # crashes, unreadable JSON or XML, markup
    formulas: list[str] = field(default_factory=list)  # cells that a spreadsheet would run
    cells: int = 0

    def add(self, other: Terminal) -> None:
        """Count the other's as well."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def terminal(turn: int, folder: Path, errors: Sequence[str] | None = None) -> Terminal:
    """Every command that shows stored or given data, on one turn of the payloads; and errors about
    files and runs named so (names of payloads; None for all)."""
    found = Terminal()
    swap = Swap(turn, hostile=True)
    store = folder / "a.db"
    utility_store(store, swap)
    runs = [swap.given[f"run {i}"] for i in range(9)]
    systems = [swap.given[f"system {i}"] for i in range(3)]
    at = ("--store", str(store))
    for more in ((), ("--json",)):
        _command(found, "show", *at, *more)
        _command(found, "show", "--sources", *at, *more)
        gates = ("--fail-on-regression", "--junit", str(folder / "gates.xml"))
        # a name may begin as an option does
        _command(found, "compare", *at, *more, *gates, "--", systems[0], systems[1])
        _command(found, "agree", "--audit", *at, *more)
        for run in runs[::3]:
            _command(found, "show", f"--run={run}", *at, *more)
        _tables(found, turn, as_json=bool(more))
    _command(found, "show", "--levels", *at)
    if errors is None:  # the page itself is looked at elsewhere
        _command(found, "report", *at, "-o", str(folder / "r.html"))
    _well_formed(found, folder / "gates.xml")
    for kind in ("jsonl", "csv", "parquet"):
        _command(found, "export", str(folder / f"all.{kind}"), *at)
    _exports(found, folder)
    _refused(found, folder, errors)
    _traces(found, turn, folder)
    return found


def _command(found: Terminal, *words: str) -> None:
    """Run one; its output must act on no terminal, and be JSON where it was asked for."""
    from agenteval.cli.console import Verbosity
    from agenteval.cli.main import main

    Verbosity.level = 0
    with _captured() as (out, err):
        try:
            main([_utf8(w) for w in words])
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        except Exception as error:  # noqa: BLE001  a crash is what is counted
            code = None
            found.broken.append(f"{words[0]}: {type(error).__name__}: {error}"[:200])
    _judge(found, " ".join(words[:2]), out.getvalue(), err.getvalue())
    if "--json" in words and code in (0, 1, 4):
        _read(found, words[0], out.getvalue())


def _judge(found: Terminal, name: str, *outputs: str) -> None:
    found.commands += 1
    for text in outputs:
        for char in sorted(hidden_in(text)):
            found.controls.append(f"{name}: U+{ord(char):04X}")


def _read(found: Terminal, name: str, text: str) -> None:
    try:
        json.loads(text)
    except ValueError as error:
        found.broken.append(f"{name} --json: {error}")


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def _tables(found: Terminal, turn: int, *, as_json: bool) -> None:
    """What `plan report`, `flow report` and `trace report` print of the material of their pages."""
    import typer

    from agenteval.api.planning import PlanReport, trial_rows
    from agenteval.api.workflow_report import trials_report
    from agenteval.cli.command import finish
    from agenteval.cli.options import OutputOptions
    from agenteval.evaluators.planning.tables import planning_tables
    from agenteval.evaluators.traces.tables import finding_tables
    from agenteval.report.report import Report
    from benchmarks.pages.worlds import traces_material

    def show(report: Report, output: OutputOptions) -> None:
        with contextlib.suppress(typer.Exit):
            finish(report, output)

    attempts, causes = planning_material(Swap(turn, hostile=True))
    sessions, turns = flows_material(Swap(turn, hostile=True))
    with _captured() as (out, err):
        report = PlanReport(
            title="Planning tests",
            tables=planning_tables(attempts, causes),
            data={"trials": trial_rows(attempts)},
        )
        show(report, OutputOptions(as_json, all=True))
    _judge(found, "plan report", out.getvalue(), err.getvalue())
    with _captured() as (more, err):
        show(trials_report(sessions, turns, ()), OutputOptions(as_json=as_json, all=True))
    _judge(found, "flow report", more.getvalue(), err.getvalue())
    if as_json:
        _read(found, "plan report", out.getvalue())
        _read(found, "flow report", more.getvalue())
        return
    with _captured() as (out, err):
        material = traces_material(Swap(turn, hostile=True))
        tables = finding_tables(material.finders, material.taxonomy, len(material.traces))
        show(Report(title="", tables=(*tables, *material.scores)), OutputOptions(all=True))
    _judge(found, "trace report", out.getvalue(), err.getvalue())


def _well_formed(found: Terminal, path: Path) -> None:
    try:
        Et.parse(path)
    except (OSError, Et.ParseError) as error:
        found.broken.append(f"JUnit: {error}")


def _exports(found: Terminal, folder: Path) -> None:
    """CSV runs nothing and has the rows of the JSON lines, which are unchanged data."""
    lines = (folder / "all.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    with (folder / "all.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file, strict=True))
    if len(read) != len(rows) + 1:
        found.broken.append(f"CSV has {len(read)} rows for {len(rows)} results")
    for row in read:
        found.cells += len(row)
        found.formulas += [cell[:60] for cell in row if runs_in_spreadsheet(cell)]
    for told, row in zip(read[1:], rows, strict=False):
        named = dict(zip(read[0], told, strict=True))
        for name in ("run_id", "system", "label", "explanation"):
            plain = _utf8(row[name] or "")
            if named[name] not in (plain, f"'{plain}"):
                found.broken.append(f"CSV {name}: {named[name][:60]!a}")


def _utf8(text: str) -> str:
    """As the store keeps it: half characters become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def runs_in_spreadsheet(cell: str) -> bool:
    """Whether a program that trims blanks would take the cell for a formula; numbers are none."""
    if cell[:1] in ("\t", "\r", "\n"):
        return True
    bare = cell.lstrip(_BLANK)
    return bare[:1] in (*_RUNS, "|") and not re.fullmatch(r"[-+]?[\d.]+(e-?\d+)?", bare)


def _refused(found: Terminal, folder: Path, errors: Sequence[str] | None) -> None:
    """Errors that name files, options and ids of somebody else."""
    for name, text in payloads().items():
        unfit = "\0" in text or len(text) > 200 or name.startswith("surrogate")
        if unfit or (errors is not None and name not in errors):
            continue
        bad = "x" + text.replace("/", "_")
        path = folder / f"{bad}.jsonl"
        _command(found, "quantify", str(path), "--task", "math")
        _command(found, "show", "--store", str(folder / "a.db"), "--run", bad)
        with contextlib.suppress(OSError):
            path.write_text('{"id": "a", "output": ' + json.dumps(text) + "}\n{no json\n")
            _command(
                found, "quantify", str(path), "--task", "math", "--dry-run", "--model", "embedded"
            )
            _command(found, "report", "--scores", str(path), "-o", str(folder / "s.html"))
            path.unlink()


def _traces(found: Terminal, turn: int, folder: Path) -> None:
    """Trace files with payloads in every text of their spans, through the real reader."""
    from tests.cli.traces import error, limited, write

    swap = Swap(turn, hostile=True)
    made = limited()

    def change(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: change(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [change(v, key) for v in value]
        if isinstance(value, str) and key in _FREE:
            return _utf8(swap(value))
        return value

    hostile = change(made)
    path = write(folder / "traces", hostile)
    said = folder / "found" / path.name
    said.parent.mkdir()
    mark = error(swap("category"), made["spans"][0]["span_id"], swap("evidence"))
    said.write_text(json.dumps({"errors": [mark], "scores": []}), encoding="utf-8")
    for more in ((), ("--json",)):
        _command(found, "trace", "show", str(path), "--findings", str(said.parent), *more)
        _command(found, "trace", "stats", str(path), *more)
        _command(found, "trace", "report", str(path), "--findings", str(said.parent), *more)
    os.remove(path)
    assert all(unicodedata.category(c) != "Cs" for c in path.name)


_FREE = frozenset(
    {"span_name", "tool.name", "input.value", "output.value", "llm.model_name", "status_message",
     "exception.message", "exception.type", "llm.input_messages.0.message.content",
     "llm.output_messages.0.message.content"}
)  # fmt: skip
