"""Where each criterion stood in the prompt of each rating."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store, schema
from agenteval.store.connect import reading


@dataclass(frozen=True)
class Placed:
    """Ratings with their places, one entry per rating in each array.

    `place` counts from 0 among the `of` criteria of the call; `group` numbers pairs of run and
    criterion, `case` and `criterion` are codes.
    """

    value: NDArray[np.float64]
    place: NDArray[np.int64]
    of: NDArray[np.int64]
    group: NDArray[np.int64]
    case: NDArray[np.int64]
    criterion: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.value)


def placed_ratings(
    store: Store,
    source_key: str,
    *,
    criteria: Collection[str],
    runs: Collection[str],
    repeats: int,
) -> Placed:
    """Scored ratings of the originals `runs` (run keys) on `criteria` (content hashes).

    The place is the one in the call that gave the rating. A criterion that was shown through its
    parts has no place of its own and is left out. Raises StoreError for a damaged store.
    """
    cell, call = schema.cells.c, schema.calls.c
    query = (
        select(
            cell.run_key, cell.criterion_key, cell.value, call.record,
            schema.criteria.c.criterion_id, schema.runs.c.case_key,
        )
        .join(schema.calls, call.call_id == cell.call_id)
        .join(schema.criteria, schema.criteria.c.criterion_key == cell.criterion_key)
        .join(schema.runs, schema.runs.c.run_key == cell.run_key)
        .where(cell.source_key == source_key, cell.variant == ORIGINAL, cell.status == "scored")
        .where(cell.value.is_not(None), cell.repeat < repeats)
        .order_by(cell.run_key, cell.criterion_key, cell.repeat)
    )  # fmt: skip
    codes: dict[tuple[str, ...], int] = {}
    rows: list[tuple[float, int, int, int, int, int]] = []
    with reading(store.engine) as connection:
        for run, criterion, value, record, name, case in connection.execute(query):
            shown = json.loads(record).get("shown", [])
            if run not in runs or criterion not in criteria or name not in shown:
                continue
            coded = [
                codes.setdefault(key, len(codes))
                for key in (("group", run, criterion), ("case", case), ("criterion", criterion))
            ]
            rows.append((value, shown.index(name), len(shown), coded[0], coded[1], coded[2]))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    whole = [np.array(c, dtype=np.int64) for c in columns[1:]]
    return Placed(np.array(columns[0], dtype=np.float64), *whole)
