"""The figures of all benchmarks: kept in results.json, shown as a table and as results.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from agenteval.files import write_atomically

RESULTS = Path(__file__).with_name("results.json")
_VERDICTS = {True: "met", False: "MISSED", None: ""}


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's rows (see outcome.Row), how long it took, the day, and why it failed."""

    name: str
    rows: tuple[dict[str, Any], ...]
    seconds: float
    day: str
    failed: str | None = None


def load_results(path: Path = RESULTS) -> dict[str, Result]:
    """What is kept, by name; empty without the file."""
    if not path.exists():
        return {}
    return {
        name: Result(name, tuple(one.pop("rows")), **one)
        for name, one in json.loads(path.read_text("utf-8")).items()
    }


def save_results(results: Mapping[str, Result], order: Sequence[str], path: Path = RESULTS) -> None:
    """Keep them, those of `order` only and in it, and write the Markdown beside."""
    kept = [results[name] for name in order if name in results]
    body = {}
    for result in kept:
        one = asdict(result)
        one["seconds"] = round(one["seconds"])
        body[one.pop("name")] = one
    write_atomically(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    missing = [name for name in order if name not in results]
    write_atomically(path.with_suffix(".md"), markdown(kept, missing))


def table(results: Iterable[Result]) -> Table:
    """One line per figure, for a terminal."""
    shown = Table(title="What was measured")
    for head in ("benchmark", "figure", "measured", "target", ""):
        shown.add_column(head, overflow="fold")
    for result in results:
        for name, row in _named(result):
            verdict = _VERDICTS[row["met"]]
            style = {"met": "green", "MISSED": "bold red"}.get(verdict)
            shown.add_row(
                name,
                row["what"],
                row["measured"],
                row["target"] or "",
                verdict,
                style=style if verdict == "MISSED" else None,
            )
        if result.failed:
            shown.add_row(
                "" if result.rows else result.name,
                "FAILED",
                result.failed,
                "",
                "",
                style="bold red",
            )
    return shown


def markdown(results: Sequence[Result], missing: Sequence[str] = ()) -> str:
    """The same as a Markdown page, with seconds and day of each benchmark."""
    lines = [
        "# Results of the benchmarks",
        "",
        "Written by `make bench` (`python -m benchmarks`); what each figure means stands in",
        "[README.md](README.md). Times belong to one machine with two cores; what counts are",
        "ratios, taken within one run.",
        "",
        "| benchmark | figure | measured | target | verdict |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        for name, row in _named(result):
            cells = [name, row["what"], row["measured"], row["target"] or "", ""]
            cells[4] = _VERDICTS[row["met"]]
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        if result.failed:
            lines.append(f"| {result.name} | failed | {_cell(result.failed)} | | FAILED |")
    lines += ["", "| benchmark | seconds | measured on |", "|---|---|---|"]
    lines += [f"| {r.name} | {r.seconds:.0f} | {r.day} |" for r in results]
    if missing:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _named(result: Result) -> list[tuple[str, dict[str, Any]]]:
    """The rows, the first of them with the name of the benchmark."""
    return [(result.name if i == 0 else "", row) for i, row in enumerate(result.rows)]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
