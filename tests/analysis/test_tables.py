"""Ratings as tables: what has no value gives no mean, and is told with its reason."""

from __future__ import annotations

from typing import Any

from agenteval.analysis.means import Rating
from agenteval.analysis.tables import outcomes, score_notes, score_tables
from agenteval.records import Criterion, Source

CLEAR = Criterion(name="Clarity", accepted_values=("unclear", "clear"))
STYLE = Criterion(name="Style", accepted_values=("plain", "ornate"), scale="nominal")


def rating(run: int, value: float | None, status: str = "scored", **more: Any) -> Rating:
    about: dict[str, Any] = {"success": None, "criterion_id": "clarity", "message": ""} | more
    return Rating(
        run_id=f"r{run}",
        system="bot",
        case=f"c{run}",
        repeat=0,
        status=status,
        value=value,
        **about,
    )


def test_empty_replies_alone_are_not_shown_as_a_mean() -> None:
    ratings = [rating(i, 0.0, "degenerate") for i in range(3)]
    means, unrated, *_ = score_tables(ratings, [CLEAR])
    assert means.rows == ()
    (row,) = unrated.rows
    assert row["mean"].value is None  # type: ignore[union-attr]
    assert row["missing"] == 3
    assert "no score: Clarity: not rated (3 empty replies)" in means.notes


def test_failures_are_counted_beside_the_mean_with_what_they_could_do_to_it() -> None:
    ratings = [
        rating(0, 1.0, label="clear"),
        rating(1, 0.0, label="unclear"),
        rating(2, None, "unscored:parse"),
        rating(3, None, "error:judge", message="ValueError: no (judge.py, line 3: raise)"),
        rating(4, None, "not_applicable"),
    ]
    tables = {table.key: table for table in score_tables(ratings, [CLEAR])}
    (row,) = tables["scores"].rows
    assert row["mean"].value == 0.5  # type: ignore[union-attr]
    assert (row["ratings"], row["cases"], row["missing"]) == (2, 2, 3)
    (bounds,) = tables["bounds"].rows
    assert (bounds["worst"], bounds["best"]) == (0.25, 0.75)
    counts = {r["status"]: r["cells"] for r in tables["missing"].rows}
    assert counts == {"unscored:parse": 1, "error:judge": 1, "not_applicable": 1}
    told = " ".join(tables["scores"].notes)
    assert "2 of 5 rated; not rated: 1 error:judge, 1 not applicable, 1 unscored:parse" in told
    assert "error:judge, the first: ValueError: no (judge.py, line 3: raise)" in told


def test_levels_count_from_0_everywhere() -> None:
    grades = Criterion(name="Clarity", accepted_values=("bad", "fair", "good"))
    ratings = [rating(0, 1.0, label="good"), rating(1, None, "unscored:parse")]
    tables = {table.key: table for table in score_tables(ratings, [grades], levels=True)}
    (row,) = tables["scores"].rows
    assert row["mean"].value == 2.0  # type: ignore[union-attr]
    (bounds,) = tables["bounds"].rows
    assert (bounds["worst"], bounds["best"]) == (1.0, 2.0)


def test_what_is_known_of_the_outcome_is_told_once() -> None:
    source = Source(evaluator="utility.quantifier", version=1, model="m")
    some = [rating(0, 1.0, success=True), rating(1, 1.0)]
    assert outcomes(some) == {"success": 1, "failed": 0, "unknown": 1}
    (note,) = score_notes(source, some)
    assert "success is known for 1 of 2 runs" in note
