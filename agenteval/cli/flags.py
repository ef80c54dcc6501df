"""Runs whose text seems to talk to the judge: one line under a table, and a list in JSON.

Computed from the texts whenever a table is made, never stored: a score does not depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean

if TYPE_CHECKING:
    from agenteval.locating import TraceCase
    from agenteval.records import Run, View
    from agenteval.store import Store

_NAMED = 5  # runs in a line
_CHUNK = 200  # texts read from the store at a time


@dataclass(frozen=True, slots=True)
class Flag:
    """A run, and the names of the signs in what the judge sees of it."""

    run: str
    system: str
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """What was found in `examined` runs."""

    found: tuple[Flag, ...] = ()
    examined: int = 0

    @property
    def line(self) -> str:
        """`3 of 40 runs hold text that seems to talk to the judge: ...`, "" when there is none."""
        if not self.found:
            return ""
        named = "; ".join(f"{f.run} ({', '.join(f.signs)})" for f in self.found[:_NAMED])
        more = len(self.found) - _NAMED
        systems = Counter(f.system for f in self.found)
        split = ", ".join(f"{name} {n}" for name, n in sorted(systems.items()))
        tail = f"; and {more} more" if more > 0 else ""
        return (
            f"{len(self.found)} of {self.examined} runs hold text that seems to talk to the judge "
            f"(by system: {split}): {named}{tail}"
        )

    def json(self) -> list[dict[str, Any]]:
        """One entry for each run with a sign."""
        return [{"run": f.run, "system": f.system, "signs": list(f.signs)} for f in self.found]


def flags_of(items: Iterable[tuple[Run, View]]) -> Flags:
    """The flags of runs and what the judge sees of them."""
    from agenteval.readers.injection import view_signs

    found, examined = [], 0
    for run, view in items:
        examined += 1
        if signs := view_signs(view):
            found.append(Flag(run.id, run.system, tuple(s.name for s in signs)))
    return Flags(tuple(found), examined)


def trace_flags(cases: Iterable[TraceCase]) -> Flags:
    """The flags of traces, from what came out of their spans; each is read once more for it."""
    from agenteval.readers import make_view

    return flags_of((run, make_view(run)) for run in (case.load() for case in cases))


def stored_flags(store: Store, run_ids: Collection[str], source_key: str) -> Flags:
    """The flags of original runs by their ids, from the texts that the source judged last."""
    from sqlalchemy import select

    from agenteval.readers.injection import texts_signs
    from agenteval.store import schema
    from agenteval.store.connect import reading

    c, cells = schema.runs.c, schema.cells.c
    judged = select(cells.run_key).where(
        cells.source_key == source_key, cells.variant == "original"
    )
    with reading(store.engine) as connection:
        rows = connection.execute(
            select(c.run_id, c.run_key).where(c.run_key.in_(judged)).order_by(c.used)
        ).all()
        newest = {row.run_id: row.run_key for row in rows if row.run_id in run_ids}
        keys = sorted(newest.values())
        found = []
        for start in range(0, len(keys), _CHUNK):
            query = select(c.run_id, c.system, c.problem, c.trajectory)
            part: Sequence[Any] = connection.execute(
                query.where(c.run_key.in_(keys[start : start + _CHUNK]))
            ).all()
            for row in part:
                if signs := texts_signs((row.problem, row.trajectory)):
                    found.append(Flag(row.run_id, row.system, tuple(s.name for s in signs)))
    return Flags(tuple(sorted(found, key=lambda f: f.run)), len(newest))


def printed(flags: Flags) -> str:
    """The line for a terminal, with its markup; "" when there is none."""
    return f"[yellow]{clean(flags.line)}[/yellow]" if flags.found else ""
