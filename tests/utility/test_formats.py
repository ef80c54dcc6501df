"""Replies in many formats, whose reading was written down before any reader saw them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.records import Criterion
from agenteval.utility.reading import read_text
from benchmarks.malformed.corpus import outcome

FOLDER = Path(__file__).parents[1] / "data" / "formats"
CRITERIA = {
    criterion["id"]: Criterion.model_validate(criterion)
    for criterion in json.loads((FOLDER / "criteria.json").read_text("utf-8"))
}
ROWS = [
    json.loads(line)
    for name in ("replies", "hostile")
    for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
]
MOST_LOST = 16  # sentences about several criteria, quotations beside the answer, rare names


def read(row: dict[str, Any]) -> dict[str, str | None]:
    asked = [CRITERIA[name] for name in row["criteria"]]
    levels = outcome(read_text(row["reply"], asked, row.get("finish", "stop"))[0])
    return {path: None if said.startswith("unscored") else said for path, said in levels.items()}


def test_a_reply_gives_the_level_that_was_written_down_or_none() -> None:
    lost = set()
    for row in ROWS:
        for path, level in read(row).items():
            expected = row["expect"][path]
            assert level in (expected, None), (row["id"], path)
            if level != expected:
                lost.add(row["id"])
    assert len(lost) <= MOST_LOST, lost
