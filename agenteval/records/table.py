"""Tables of results, independent of the output: terminal, page, JSON or export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

Form = Literal["text", "count", "number", "precise", "signed", "share", "p", "money", "seconds"]
Mark = Literal["", "passed", "failed", "unknown"]

MARKS = {"": "", "passed": " ✓", "failed": " ✗", "unknown": " ?"}
MISSING = "–"


class _Interval(Protocol):
    """The part of `stats.Interval` that a cell needs."""

    @property
    def mean(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def n_clusters(self) -> int | None: ...
    @property
    def reason(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95% interval, from `n` values; `value` is None if unknown.

    `reason` says why value or interval is missing, `mark` whether a check on it passed. `units`
    counts independent units, such as cases, if they differ from the values.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reason: str = ""
    mark: Mark = ""
    units: int | None = None

    @classmethod
    def of(cls, interval: _Interval, *, mark: Mark = "") -> Estimate:
        """Convert an interval of `stats`."""
        return cls(
            interval.mean,
            interval.low,
            interval.high,
            interval.n,
            interval.reason or "",
            mark,
            interval.n_clusters,
        )


Cell = str | int | float | bool | None | Estimate


@dataclass(frozen=True, slots=True)
class Column:
    """A column:

    `key` is its name in JSON and exports, `head` its heading, `hint` an explanation. `form` is the
    format of its cells: "share" shows a fraction as a percentage. A `hidden` column, such as an id,
    appears only in JSON and exports.
    """

    key: str
    head: str
    form: Form = "text"
    hint: str = ""
    hidden: bool = False

    @property
    def number(self) -> bool:
        """Whether cells are numbers, which are right-aligned and sorted by value."""
        return self.form != "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows by column key; the first visible column names the row. Missing cells are
    empty.

    `group` is the key of a column that is shown as a heading above the rows with the same value.
    `detail` tables appear on a terminal only with --all. `notes` are shown with the table, each one
    sentence or line.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    notes: tuple[str, ...] = ()
    group: str | None = None
    detail: bool = False

    def __post_init__(self) -> None:
        keys = {column.key for column in self.columns}
        unknown = {key for row in self.rows for key in row} - keys
        if unknown or (self.group is not None and self.group not in keys):
            raise ValueError(f"table {self.key}: no such column: {sorted(unknown) or self.group}")

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The visible columns, without hidden ones and the `group` column."""
        return tuple(c for c in self.columns if c.key != self.group and not c.hidden)

    def grouped(self) -> Iterator[tuple[str, Sequence[Mapping[str, Cell]]]]:
        """Yield each group with its rows, in order of first appearance; "" without groups."""
        if self.group is None:
            yield "", self.rows
            return
        groups: dict[str, list[Mapping[str, Cell]]] = {}
        for row in self.rows:
            groups.setdefault(shown(row.get(self.group)), []).append(row)
        yield from groups.items()

    def to_json(self) -> dict[str, Any]:
        """Return title, heads by key, rows and notes as plain values; an estimate is an object."""
        return {
            "title": self.title,
            "columns": {column.key: column.head.replace("\n", " ") for column in self.columns},
            "rows": [{c.key: _plain(row.get(c.key)) for c in self.columns} for row in self.rows],
            "notes": list(self.notes),
        }

    def records(self) -> list[dict[str, str | int | float | bool | None]]:
        """Return flat rows for a data frame; an estimate gives KEY, KEY_low, KEY_high and KEY_n."""
        estimated = {
            k for row in self.rows for k, cell in row.items() if isinstance(cell, Estimate)
        }
        records = []
        for row in self.rows:
            flat: dict[str, str | int | float | bool | None] = {}
            for column in self.columns:
                cell = row.get(column.key)
                if column.key in estimated:
                    estimate = cell if isinstance(cell, Estimate) else Estimate(None)
                    flat[column.key] = estimate.value
                    flat[f"{column.key}_low"] = estimate.low
                    flat[f"{column.key}_high"] = estimate.high
                    flat[f"{column.key}_n"] = estimate.n
                elif not isinstance(cell, Estimate):
                    flat[column.key] = cell
            records.append(flat)
        return records


def column(
    head: str,
    form: Form = "text",
    hint: str = "",
    *,
    hidden: bool = False,
    default: Any = NO_DEFAULT,
) -> Any:
    """Declare a field of a row dataclass as a column; the name of the field is its key."""
    return field(default=default, metadata={"column": (head, form, hint, hidden)})


def columns_of(kind: type) -> tuple[Column, ...]:
    """Return the columns declared by the fields of a row dataclass, in order."""
    return tuple(
        Column(f.name, *f.metadata["column"]) for f in fields(kind) if "column" in f.metadata
    )


def columns_headed(
    heads: Mapping[str, str], form: Form = "text", hint: str = ""
) -> tuple[Column, ...]:
    """Return columns that depend on the data and differ only in key and head."""
    return tuple(Column(key, head, form, hint) for key, head in heads.items())


def table_of(  # noqa: PLR0913  the parts of a table
    kind: type,
    key: str,
    title: str,
    rows: Iterable[object],
    *,
    notes: Iterable[str] = (),
    group: str | None = None,
    detail: bool = False,
    drop_empty: Iterable[str] = (),
    more: Iterable[Column] = (),
) -> Table:
    """Return a table of `rows` with the fields of `kind` (see `column`) and then `more` as columns.

    A row is an object with these attributes (of `kind` or another class), a mapping of cells, or a
    tuple of an object and cells that override its attributes. Intervals become estimates. Columns
    in `drop_empty` are omitted if no row has a value.
    """
    columns = (*columns_of(kind), *more)
    cell_rows = []
    for row in rows:
        value, cells_before = row if type(row) is tuple else (row, {})
        if isinstance(value, Mapping):
            value, cells_before = None, value
        cell_rows.append(cells_of(value, columns, **cells_before))
    empty = {k for k in drop_empty if all(row.get(k) is None for row in cell_rows)}
    columns = tuple(c for c in columns if c.key not in empty)
    cells = tuple({k: cell for k, cell in row.items() if k not in empty} for row in cell_rows)
    return Table(key, title, columns, cells, tuple(notes), group, detail)


def cells_of(value: object, columns: Iterable[Column], **more: Any) -> dict[str, Cell]:
    """Return a row of the cells in `more` and, for other columns, the attributes of `value`.
    Intervals become estimates."""
    keys = [c.key for c in columns if c.key not in more and hasattr(value, c.key)]
    cells = {key: getattr(value, key) for key in keys} | more
    return {k: Estimate.of(v) if hasattr(v, "n_clusters") else v for k, v in cells.items()}


def shown(cell: Cell, form: Form = "text") -> str:
    """Format a cell, with a dash for an unknown value. An interval of zero width is omitted,
    because it does not express certainty."""
    if isinstance(cell, Estimate):
        if cell.value is None:
            return MISSING + MARKS[cell.mark]
        text = _figure(cell.value, form)
        if cell.low is not None and cell.high is not None and cell.low != cell.high:
            text += f" [{_figure(cell.low, form)}, {_figure(cell.high, form)}]"
        return text + MARKS[cell.mark]
    if cell is None:
        return MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    return _figure(cell, form)


def sort_key(cell: Cell) -> float | str | None:
    """Return the sort key of a cell; None goes last."""
    return cell.value if isinstance(cell, Estimate) else cell


def _figure(value: float, form: Form) -> str:
    """Format a number. Zero has no sign; a share is never rounded to 0% or 100%."""
    if form == "share":
        text = f"{value:.0%}"
        if (value < 1 and text == "100%") or (value > 0 and text == "0%"):
            text = f"{value:.1%}" if 0.0005 <= value < 0.9995 else f"{value:.3%}"
        return text
    if form == "p" and value < 0.001:
        return "< .001"
    written = {
        "text": f"{value:g}",
        "count": f"{value:,.0f}",
        "number": f"{value:.2f}",
        "precise": f"{value:.3f}",
        "signed": f"{value:+.2f}",
        "p": f"{value:.3f}",
        "money": f"{value:,.4f}" if abs(value) < 100 else f"{value:,.0f}",
        "seconds": f"{value:,.1f}",
    }[form]
    return re.sub(r"^[+-](0(?:\.0+)?)$", r"\1", written).replace("-", "−")


def _plain(cell: Cell) -> Any:
    if not isinstance(cell, Estimate):
        return cell
    plain = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
    if cell.units is not None:
        plain |= {"units": cell.units}
    if cell.reason:
        plain |= {"reason": cell.reason}  # type: ignore[dict-item]
    if cell.mark:
        plain |= {"mark": cell.mark}  # type: ignore[dict-item]
    return plain
