"""Replies in many formats, whose reading was written down before any reader saw them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.evaluators.utility.reading import read_text
from agenteval.records import Criterion
from benchmarks.malformed.corpus import outcome

FOLDER = Path(__file__).parents[2] / "data" / "formats"
CRITERIA = {
    criterion["id"]: Criterion.model_validate(criterion)
    for criterion in json.loads((FOLDER / "criteria.json").read_text("utf-8"))
}
ROWS = [json.loads(line) for line in (FOLDER / "replies.jsonl").read_text("utf-8").splitlines()]
LOST = {"lines-31"}  # a sentence about several criteria


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_reply_gives_the_level_that_was_written_down_or_none(row: dict[str, Any]) -> None:
    asked = [CRITERIA[name] for name in row["criteria"]]
    read = outcome(read_text(row["reply"], asked, row.get("finish", "stop"))[0])
    levels = {path: None if said.startswith("unscored") else said for path, said in read.items()}
    if row["id"] in LOST:
        assert set(levels.values()) == {None}
    else:
        assert levels == row["expect"]
