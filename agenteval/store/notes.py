"""Notes in the store that an experiment was begun: who finds one knows that it was broken off.

A note stands in the table `meta` from before the first result until everything planned is stored.
Older programs leave it alone: of that table they read version and secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, bindparam, delete, select, text
from sqlalchemy.dialects.sqlite import insert

from agenteval.errors import StoreError
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store.connect import reading
from agenteval.store.rows import decode, encode
from agenteval.store.schema import meta
from agenteval.store.writer import Writes

if TYPE_CHECKING:
    from agenteval.store.store import Store

_OPEN = "open:"
_SHORT = 16  # characters that a note keeps of a hash: 64 bits tell a million rows apart

_ADD = insert(meta).on_conflict_do_nothing(index_elements=["key"])
_DROP = delete(meta).where(meta.c.key == bindparam("note"))

# By the start of a key, in the index of the primary key. Keys are hashes in hexadecimal, so "g"
# comes after all that start the same. What failed for the infrastructure is still to be done.
_CELLS = text(
    """SELECT count(*) FROM json_each(:rows) AS r CROSS JOIN cells AS c
    WHERE c.source_key = :owner AND c.run_key >= r.value AND c.run_key < r.value || 'g'
    AND c.variant = :variant AND c.repeat < :repeats
    AND c.criterion_key IN (SELECT value FROM json_each(:criteria))
    AND c.status NOT IN (SELECT value FROM json_each(:undone))"""
)
_TRIALS = text(
    """SELECT count(*) FROM json_each(:rows) AS r CROSS JOIN trials AS t
    WHERE t.evaluator = :evaluator AND t.system_key = :owner
    AND t.case_key >= r.value AND t.case_key < r.value || 'g' AND t.trial < :repeats
    AND t.status NOT IN (SELECT value FROM json_each(:undone))"""
)


@dataclass(frozen=True, slots=True)
class Grid:
    """What is planned of one kind: every row, so often, on every criterion.

    Rows are runs of a variant, or cases, which have no criteria; see `short`.
    """

    rows: tuple[str, ...]
    repeats: int
    variant: str = ""
    criteria: tuple[str, ...] = ()

    @property
    def planned(self) -> int:
        """Number of cells or trials."""
        return len(self.rows) * self.repeats * (len(self.criteria) or 1)

    def covers(self, other: Grid) -> bool:
        """Whether all of the other is planned here as well."""
        return (
            self.variant == other.variant
            and self.repeats >= other.repeats
            and set(self.criteria) >= set(other.criteria)
            and set(self.rows) >= set(other.rows)
        )


def short(keys: Iterable[str]) -> tuple[str, ...]:
    """The rows of a grid by their keys: each once, as much of it as a note keeps, in order."""
    return tuple(sorted({key[:_SHORT] for key in keys}))


@dataclass(frozen=True, slots=True)
class Note:
    """One experiment that was begun.

    `owner` is the key of a source, or of a system under test, then `evaluator` names who tests it;
    `name` is that of the source's model or of the system. `lock` is the experiment that its worker
    holds (`Store.lock`).
    """

    what: Literal["cells", "trials"]
    owner: str
    name: str
    lock: str
    grids: tuple[Grid, ...]
    evaluator: str = ""

    @property
    def place(self) -> str:
        """The start of its key in `meta`: notes of the same owner share it."""
        return f"{_OPEN}{self.owner}:{self.evaluator}:"

    @property
    def key(self) -> str:
        """Its key in `meta`."""
        return str(self._row()["key"])

    @property
    def planned(self) -> int:
        """Number of cells or trials."""
        return sum(grid.planned for grid in self.grids)

    def covers(self, other: Note) -> bool:
        """Whether all of the other is planned here as well."""
        return all(any(mine.covers(grid) for mine in self.grids) for grid in other.grids)

    def stored(self, connection: Connection) -> int:
        """How much of it need not be done again: results, and failures of the content."""
        return sum(self._stored(connection, grid) for grid in self.grids)

    def _stored(self, connection: Connection, grid: Grid) -> int:
        values: dict[str, Any] = {
            "rows": encode(grid.rows), "owner": self.owner, "repeats": grid.repeats,
            "undone": encode(sorted(INFRASTRUCTURE)),
        }  # fmt: skip
        if self.what == "cells":
            values |= {"variant": grid.variant, "criteria": encode(grid.criteria)}
            return int(connection.execute(_CELLS, values).scalar_one())
        values["evaluator"] = self.evaluator
        return int(connection.execute(_TRIALS, values).scalar_one())

    def _row(self) -> dict[str, Any]:
        grids = [{f.name: getattr(grid, f.name) for f in fields(Grid)} for grid in self.grids]
        own = {f.name: getattr(self, f.name) for f in fields(Note)}
        value = encode({**own, "grids": grids}).encode()
        return {"key": self.place + hashlib.sha256(value).hexdigest()[:16], "value": value}


@dataclass(frozen=True, slots=True)
class Begun:
    """What `finish` takes: the place of an experiment's note, and what is being written of it."""

    place: str
    written: Future[None] | None

    def wait(self) -> None:
        """Until the note is durable. Raises StoreError when it cannot be kept."""
        if self.written is not None:
            self.written.result()


def begin(store: Store, note: Note, *, idle: bool = False) -> Begun:
    """Note that the experiment is open; the note is queued before whatever is written later.

    One that is noted already, alone or within a larger one, is not noted again; a smaller one that
    it holds gives way to it. Nothing is noted of one that is `idle`: it has nothing left to do.
    """
    row = note._row()
    found = _found(store, note.place)
    if row["key"] in found:
        return Begun(note.place, None)
    known = {key: _note(key, value) for key, value in found.items()}
    if idle or any(one.covers(note) for one in known.values()):
        return Begun(note.place, None)
    writes: Writes = [
        (_ADD, [row]),
        (_DROP, [{"note": key} for key, one in known.items() if note.covers(one)]),
    ]
    return Begun(note.place, store.submit(writes))


def finish(store: Store, begun: Begun) -> None:
    """Take the note away if everything planned is stored; waits until that is durable.

    So goes every other note of the same owner of which nothing is missing any more.
    """
    found = {key: _note(key, value) for key, value in _found(store, begun.place).items()}
    with reading(store.engine) as connection:
        done = [
            {"note": key} for key, one in found.items() if one.stored(connection) >= one.planned
        ]
    if done:
        store.submit([(_DROP, done)]).result()


def open_notes(store: Store, what: str, owners: Sequence[str] | None = None) -> list[Note]:
    """All notes of cells or of trials, of these owners (all unless told), ordered by key.

    Raises StoreError for a damaged one.
    """
    places = [_OPEN] if owners is None else [f"{_OPEN}{owner}:" for owner in owners]
    found = [_note(*item) for place in places for item in _found(store, place).items()]
    return [note for note in found if note.what == what]


def _found(store: Store, place: str) -> dict[str, bytes]:
    """Notes by key; one look into the index of `meta` where there are none."""
    after = place[:-1] + chr(ord(place[-1]) + 1)
    query = select(meta.c.key, meta.c.value).where(meta.c.key >= place, meta.c.key < after)
    with reading(store.engine) as connection:
        return {row.key: row.value for row in connection.execute(query.order_by(meta.c.key))}


def _note(key: str, value: bytes) -> Note:
    about = f"the note of an open experiment, {key!r},"
    try:
        own = decode(bytes(value).decode(), about)
        grids = tuple(_grid(_known(Grid, grid)) for grid in own["grids"])
        return Note(**{**_known(Note, own), "grids": grids})
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{about} is damaged; delete this row of the table meta") from error


def _grid(own: dict[str, Any]) -> Grid:
    return Grid(**{**own, "rows": tuple(own["rows"]), "criteria": tuple(own["criteria"])})


def _known(kind: type[Grid | Note], own: dict[str, Any]) -> dict[str, Any]:
    """Without what a later version may add."""
    return {f.name: own[f.name] for f in fields(kind) if f.name in own}
