"""Reports of experiments and store queries: tables with notes, gates and exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from agenteval.analysis.gates import Gate, exit_code, gate_lines
from agenteval.engine import CostEstimate
from agenteval.errors import InputError
from agenteval.files import write_atomically
from agenteval.records.export import SUFFIXES, column_types, write_rows
from agenteval.records.table import Table
from agenteval.reporting.estimate import print_estimate
from agenteval.reporting.page import report_page
from agenteval.reporting.terminal import print_table
from agenteval.text import plural, replace_unencodable, visible_line


@dataclass(frozen=True, kw_only=True)
class Report:
    """Tables with notes, gates and an exit code. The first table answers the question.

    `title` is a one-line description. `notes` are needed to read the figures correctly, and
    `unfinished` describes interrupted or running work; each is printed once. `data` is added to the
    tables in JSON. `gates` are requirements on the figures (see `gated`). `exit_code` is that of
    the command: 0 success, 1 a gate was missed, 3 infrastructure or too many unscored, 4 not enough
    data, 5 the judge is not trustworthy. After a dry run there are no tables, and `estimate` has
    the planned requests.
    """

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    exit_code: int = 0
    estimate: CostEstimate | None = None

    def __init_subclass__(cls) -> None:
        cls.__repr__ = Report.__repr__  # type: ignore[method-assign]  # dataclasses would add one

    def __repr__(self) -> str:
        """Return one line: the kind of report, its title, tables and exit code."""
        rows = (f"{table.key} ({plural(len(table.rows), 'row')})" for table in self.tables)
        tables = ", ".join(rows) or "no tables"
        return f"<{type(self).__name__} {self.title!r}: {tables}; exit code {self.exit_code}>"

    def _repr_html_(self) -> str:
        """Return what `print` shows, for a notebook."""
        console = Console(
            record=True, file=io.StringIO(), width=120, color_system="standard", highlight=False
        )
        self.print(console=console)
        style = "line-height: 1.25; overflow-x: auto; white-space: pre"
        shown = f'<pre style="{style}">{{code}}</pre>'
        return console.export_html(inline_styles=True, code_format=shown)

    def gated(self, *gates: Gate, undecided_passes: bool = False) -> Self:
        """Return the report with these gates and the resulting exit code. The code of interrupted
        work has precedence."""
        code = self.exit_code or exit_code(gates, undecided_passes=undecided_passes)
        return replace(self, gates=(*self.gates, *gates), exit_code=code)

    def __getitem__(self, key: str) -> Table:
        """Return the table with this key. Raises KeyError, naming the existing keys."""
        for table in self.tables:
            if table.key == key:
                return table
        raise KeyError(f"no table {key!r}; choose from {', '.join(t.key for t in self.tables)}")

    def print(self, *, all: bool = False, console: Console | None = None) -> None:
        """Print title, notes and tables to standard output or `console`, with `all` also the detail
        tables. After a dry run, print the estimate."""
        if console is None:
            replace_unencodable(sys.stdout)
            console = Console(highlight=False, emoji=False)
        if self.estimate is not None:
            print_estimate(self.estimate, console)
            return
        if self.title:
            console.print(Text(visible_line(self.title), "bold"))
        for line in dict.fromkeys((*self.unfinished, *self.notes)):
            console.print(Text(visible_line(line), "yellow"), soft_wrap=True)
        omitted = 0
        for table in self.tables:
            if table.detail and not all:
                omitted += 1
            elif table.rows or table.notes:
                print_table(table, console)
        for line in gate_lines(self.gates):
            console.print(Text(visible_line(line)))
        if omitted:
            console.print(Text(f"{plural(omitted, 'table')} more with --all", "dim"))

    def to_json(self) -> dict[str, Any]:
        """Return plain values: `tables` by key (see `Table.to_json`), notes, gates, exit code and
        `data`, or the estimate after a dry run."""
        if self.estimate is not None:
            return self.estimate.to_json()
        return {
            "title": self.title,
            "tables": {table.key: table.to_json() for table in self.tables},
            "notes": list(dict.fromkeys(self.notes)),
            "unfinished": list(self.unfinished),
            "gates": [asdict(gate) for gate in self.gates],
            "exit_code": self.exit_code,
            **self.data,
        }

    def records(self) -> list[dict[str, Any]]:
        """Return flat rows for an export: those of the first table, or finer ones for some kinds of
        reports (one row per rating)."""
        return [dict(row) for row in self.tables[0].records()] if self.tables else []

    def to_frame(self, table: str | None = None) -> Any:
        """Return `records`, or one table by its key, as a pandas DataFrame. Raises InputError
        without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise InputError("pandas is not installed: pip install pandas", "to_frame") from error
        return pandas.DataFrame(self.records() if table is None else self[table].records())

    def page(self) -> str:
        """Return the report as one self-contained HTML page."""
        return report_page(self.title, self.tables, self.notes, self.unfinished)

    def save(self, path: str | Path) -> Path:
        """Write .html (`page`), .json (everything), .csv, .jsonl or .parquet (`records`) and return
        the path.

        The file is replaced atomically. Raises InputError for another suffix.
        """
        path = Path(path)
        if path.suffix.lower() == ".html":
            write_atomically(path, self.page())
        elif path.suffix.lower() == ".json":
            text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
            write_atomically(path, text + "\n")
        elif path.suffix.lower() in SUFFIXES:
            rows = self.records()
            write_rows(path, rows, column_types(rows))
        else:
            suffixes = ", ".join((".html", ".json", *SUFFIXES))
            raise InputError(f"the name must end in {suffixes}", str(path))
        return path
