"""The stored ratings that a notebook reads, made anew from a store.

    python notebooks/make_data.py scores STORE.db tasks/math/embedded_scores.jsonl

`scores` writes the ratings of the one judge in a store, a line each, with the fields that
`agenteval.readers.scores.read_scores` reads. `agenteval export` gives more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from agenteval.analysis.scores import scores_from_store
from agenteval.errors import AgentevalError, InputError
from agenteval.files import replacing
from agenteval.stats.scores import NAMED, ScoreTable
from agenteval.store import Store

CASE = 12  # characters of a case's hash: enough to tell cases apart
PLAIN = {"variant": "original", "status": "scored"}  # what read_scores assumes, so not written


def rows(table: ScoreTable) -> Iterator[dict[str, Any]]:
    """A rating each; what is unknown, and what `PLAIN` says, is left out."""
    for i in range(len(table)):
        row: dict[str, Any] = {}
        for name in NAMED:
            column = getattr(table, name)
            if (code := column.codes[i]) >= 0 and column.names[code] != PLAIN.get(name):
                row[name] = column.names[code]
        row["case"] = row["case"][:CASE]
        row["repeat"] = int(table.repeat[i])
        if not np.isnan(table.value[i]):
            row["value"] = round(float(table.value[i]), 6)
        if table.success[i] >= 0:
            row["success"] = bool(table.success[i])
        yield row


def scores(store: Path) -> Iterator[dict[str, Any]]:
    """Every rating of the store's judge, by run, criterion, variant and repeat.

    Raises InputError for a store of several judges.
    """
    with Store(store, create=False) as opened:
        judges = [key for key, _ in opened.sources()]
        if len(judges) != 1:
            raise InputError(f"holds {len(judges)} judges; one is wanted", str(store))
        known = opened.runs()
        table = scores_from_store(
            opened,
            judges[0],
            criteria=set(opened.criteria_of(judges[0])),
            runs={run["origin"] or key for key, run in known.items()},
        )

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["run"], row["criterion"], row.get("variant", ""), row["repeat"]

    yield from sorted(rows(table), key=key)


def main(words: list[str]) -> int:
    """Write what is asked for; 2 for a wrong command, 3 where it cannot be made."""
    try:
        match words:
            case ["scores", store, target]:
                lines = [json.dumps(row, ensure_ascii=False) for row in scores(Path(store))]
            case _:
                print((__doc__ or "").split("\n\n")[1], file=sys.stderr)
                return 2
        with replacing(Path(target)) as fresh:
            fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except AgentevalError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
