"""A fiftieth of the soak: nothing lost, nothing paid twice, the same tables a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import QUICK, run

pytestmark = pytest.mark.slow


def test_two_thousand_cells_against_a_faulty_server(tmp_path: Path) -> None:
    assert QUICK.cells == 2000
    rows, about = run(QUICK, tmp_path)
    assert [(row.what, row.measured) for row in rows if row.met is False] == []
    found = {row.what: row.measured for row in rows}
    assert found["cells stored"] == "2000 of 2000"
    assert found["cells lost"] == found["answered well twice"] == "0"
    # of 50 runs × 10 repeats × 4 criteria, number 7 fails for ever, 13 is refused, 41 filtered,
    # 29 answered with prose; others are refused or filtered by chance
    results = about["results"]
    assert results["error:infrastructure"] == 40
    assert results["unscored:parse"] >= 40
    assert results["unscored:refusal"] >= 80
    assert sum(results.values()) == 2000
    assert results["scored"] >= 1700
    assert found["calls a resume makes"] == "10"
