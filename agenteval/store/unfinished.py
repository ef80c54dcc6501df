"""What was begun and is not all there: told beside every result, so that half is not taken for
whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.store.connect import reading
from agenteval.store.lock import holder
from agenteval.store.notes import Note, open_notes, short
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.store.store import Store

_ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An experiment of which `stored` of `planned` cells or trials need not be done again.

    `at_work` names the process that works on it now, None where nobody does.
    """

    note: Note
    planned: int
    stored: int
    at_work: str | None

    @property
    def line(self) -> str:
        """One sentence, with what is to be done."""
        what = f"planned {self.note.what}"
        if self.note.what == "trials":
            what += f" ({self.note.evaluator}) of {self.note.name}"
        far = f"{self.stored:,} of {self.planned:,} {what} are done ({self._extent()})"
        if self.at_work is not None:
            return f"in progress: {far}; {self.at_work} works on it"
        return f"not finished: {far}; run the same command again to finish"

    def json(self) -> dict[str, Any]:
        """The same as a JSON value: the key of the source or system, numbers, `in_progress`, and
        the note's key in the table `meta`."""
        note = self.note
        whose = (
            {"source": note.owner}
            if note.what == "cells"
            else {"system": note.owner, "name": note.name, "evaluator": note.evaluator}
        )
        return {
            **whose,
            "what": note.what,
            "planned": self.planned,
            "done": self.stored,
            "in_progress": self.at_work is not None,
            "note": note.key,
        }

    def _extent(self) -> str:
        """What is planned, as a product."""
        grids = self.note.grids
        repeats = max(grid.repeats for grid in grids)
        if self.note.what == "trials":
            rows = plural(sum(len(grid.rows) for grid in grids), "case")
            return f"{rows} × {plural(repeats, 'trial')}"
        originals = sum(len(grid.rows) for grid in grids if grid.variant == _ORIGINAL)
        copies = sum(len(grid.rows) for grid in grids) - originals
        rows = " and ".join(
            plural(n, word) for n, word in ((originals, "run"), (copies, "copy")) if n
        )
        criteria = plural(max(len(grid.criteria) for grid in grids), "criterion")
        return f"{rows} × {criteria} × {plural(repeats, 'repeat')}"


def unfinished_cells(
    store: Store, sources: Iterable[str], runs: Iterable[str] | None = None
) -> list[Unfinished]:
    """Experiments of these sources (keys) that are begun and not all stored; with `runs` (keys of
    views) only what plans one of them.

    Where none is open this is one look into an index; else what is stored is counted there.
    Raises StoreError for a damaged note.
    """
    return _unfinished(store, _with_rows(open_notes(store, "cells", list(sources)), runs))


def unfinished_trials(
    store: Store, evaluators: Iterable[str], cases: Iterable[str] | None = None
) -> list[Unfinished]:
    """The same of trials under evaluators of these names, or whose names go on from one of these
    with a dot; with `cases` (keys) only what plans one of them."""
    names = tuple(evaluators)
    notes = [
        note
        for note in open_notes(store, "trials")
        if any(note.evaluator == n or note.evaluator.startswith(f"{n}.") for n in names)
    ]
    return _unfinished(store, _with_rows(notes, cases))


def _with_rows(notes: list[Note], keys: Iterable[str] | None) -> list[Note]:
    """The notes that plan one of these rows; all without any keys."""
    if keys is None:
        return notes
    wanted = set(short(keys))
    return [n for n in notes if any(wanted.intersection(grid.rows) for grid in n.grids)]


def _unfinished(store: Store, notes: Iterable[Note]) -> list[Unfinished]:
    found = []
    for note in notes:
        with reading(store.engine) as connection:
            stored = note.stored(connection)
        # Killed between the last result and the end of the note: nothing is missing.
        if stored < note.planned:
            found.append(Unfinished(note, note.planned, stored, holder(store.path, note.lock)))
    return found
