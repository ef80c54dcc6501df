"""ScoreTable: columns of ratings, masks, and the matrix of runs × repeats."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.stats.scores import score_table

A = {"run": "a", "case": "p", "system": "s", "success": True}
B = {"run": "b", "case": "p", "system": "t", "success": False}
ROWS: list[dict[str, Any]] = [
    {**A, "criterion": "x", "repeat": 0, "value": 0.5},
    {**B, "criterion": "x", "repeat": 1, "value": 1.0},
    {**B, "criterion": "x", "repeat": 0, "status": "unscored:parse"},
    {**A, "criterion": "y", "value": 0.0},
    {**A, "criterion": "x", "variant": "pad", "value": 0.25},
    {"run": "c", "criterion": "x", "repeat": 1, "status": "not_applicable"},
]


def test_what_is_left_out_has_a_plain_default() -> None:
    table = score_table(ROWS)
    assert len(table) == 6
    assert table.present("case") == ["p", "c"]
    assert table.present("system") == ["s", "t"]
    assert table.present("variant") == ["original", "pad"]
    assert table.present("label") == []
    assert table.success.tolist() == [1, 0, 0, 1, 1, -1]
    assert table.failed.tolist() == [False, False, True, False, False, False]
    assert table.statuses() == {"not_applicable": 1, "scored": 4, "unscored:parse": 1}


def test_two_ratings_of_one_cell_are_an_error() -> None:
    with pytest.raises(ValueError, match="choose criterion"):
        score_table(ROWS).matrix()


def test_a_name_that_does_not_occur_selects_nothing() -> None:
    empty = score_table(ROWS).of(criterion="z")
    assert len(empty) == 0
    assert empty.matrix().values.shape == (0, 0)
    assert len(score_table([])) == 0


cells = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3))


@given(st.dictionaries(cells, st.one_of(st.none(), st.floats(0, 1)), max_size=30), st.randoms())
def test_the_matrix_holds_every_rating_in_its_place(
    ratings: dict[tuple[int, int, int], float | None], random: Any
) -> None:
    keys = list(ratings)
    random.shuffle(keys)
    table = score_table(
        {
            "run": f"r{r}",
            "criterion": f"c{c}",
            "repeat": n,
            "value": ratings[r, c, n],
            "status": "scored" if ratings[r, c, n] is not None else "error:timeout",
        }
        for r, c, n in keys
    )
    for c in range(3):
        part = table.of(criterion=f"c{c}")
        matrix = part.matrix()
        runs = [part.run.names[code] for code in matrix.run]
        found = {
            (int(run[1:]), c, n): value
            for run, row in zip(runs, matrix.values.tolist(), strict=True)
            for n, value in zip(sorted(set(part.repeat.tolist())), row, strict=True)
            if not math.isnan(value)
        }
        assert found == {k: v for k, v in ratings.items() if k[1] == c and v is not None}
        assert sorted(runs) == sorted({f"r{r}" for r, own, _ in ratings if own == c})
