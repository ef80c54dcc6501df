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
    result, call = schema.results.c, schema.calls.c
    items, shown_as = schema.items.alias(), schema.items.alias()
    query = (
        select(
            result.item_key, result.criterion_key, result.value, call.record,
            shown_as.c.id, items.c.case_key,
        )
        .join(schema.calls, call.call_id == result.call_id)
        .join(shown_as, shown_as.c.item_key == result.criterion_key)
        .join(items, items.c.item_key == result.item_key)
        .where(result.source_key == source_key, result.variant == ORIGINAL)
        .where(result.status == "scored", result.value.is_not(None), result.repeat < repeats)
        .order_by(result.item_key, result.criterion_key, result.repeat)
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
