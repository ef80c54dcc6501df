"""What the tables of agreement share: the columns that name a row, and lines about criteria."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.records.table import Cell, Column, Table, cells_of

CRITERION = (
    Column("criterion_id", "criterion id", hidden=True),
    Column("criterion", "criterion"),
)
JUDGE = Column("judge", "judge", hidden=True)
RATER = Column("rater", "rater", hidden=True)
PAIR = (Column("pair", "judge / rater"), JUDGE, RATER, *CRITERION)


def criterion_cells(criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
    """Cells of the columns `CRITERION`; `names` by criterion id."""
    return {"criterion_id": criterion, "criterion": names.get(criterion, criterion)}


def pair_cells(judge: str, rater: str, criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
    """Cells of the columns `PAIR`."""
    pair = f"{judge} / {rater}"
    return {"pair": pair, "judge": judge, "rater": rater, **criterion_cells(criterion, names)}


def criterion_lines(
    criteria: Mapping[str, Sequence[str]], total: int, *, at_least: int = 2
) -> tuple[str, ...]:
    """A line for each remark, with the criteria that it is about: "all criteria" where these are
    all of `total`, and `at_least` so many."""
    lines = []
    for remark, repeated in criteria.items():
        names = list(dict.fromkeys(repeated))
        every = len(names) >= max(total, at_least)
        lines.append(f"{'all criteria' if every else ', '.join(names)}: {remark}")
    return tuple(lines)


def table_of(  # noqa: PLR0913  as a Table
    key: str,
    title: str,
    columns: tuple[Column, ...],
    rows: Iterable[tuple[object, Mapping[str, Cell]]],
    notes: tuple[str, ...] = (),
    *,
    group: str | None = None,
    detail: bool = True,
) -> Table:
    """A table whose rows are the attributes of an object, and the cells that it lacks."""
    cells = tuple(cells_of(value, columns, **more) for value, more in rows)
    return Table(key, title, columns, cells, notes, group=group, detail=detail)
