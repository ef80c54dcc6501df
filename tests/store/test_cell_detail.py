"""A cell read in the short way says what the whole Result says, and refuses the same damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.errors import StoreError
from agenteval.records import CallRecord, CellKey, Failure, Score
from agenteval.store import Store
from agenteval.store.rows import cell_detail, result_row
from tests.store.making import ScriptedJudge, criteria, items

KEY = CellKey(run="r" * 64, criterion="c" * 64, source="s" * 64, repeat=0)
TEXT = st.text(max_size=20)
SCORES = st.builds(
    Score,
    key=st.just(KEY),
    criterion_id=st.just("clarity"),
    status=st.sampled_from(["scored", "degenerate", "not_applicable"]),
    label=st.none() | TEXT,
    value=st.none() | st.floats(0, 1),
    explanation=st.none() | TEXT,
    evidence=st.dictionaries(TEXT, st.none() | st.integers(-9, 9) | TEXT, max_size=2),
)
FAILURES = st.builds(
    Failure,
    key=st.just(KEY),
    criterion_id=st.just("clarity"),
    status=st.sampled_from(["unscored:parse", "error:timeout", "unscored:refusal"]),
    message=TEXT,
)


def columns(result: Score | Failure, **changed: Any) -> tuple[Any, ...]:
    row = {**result_row("call", result, 0), **changed}
    names = ("item_key", "variant", "criterion_key", "repeat", "status", "label", "value", "detail")
    return tuple(row[name] for name in names)


@given(SCORES | FAILURES)
def test_it_says_what_the_result_says(result: Score | Failure) -> None:
    evidence, message = cell_detail(columns(result))
    assert dict(evidence) == (result.evidence if isinstance(result, Score) else {})
    assert message == (result.message if isinstance(result, Failure) else "")


SCORE = Score(key=KEY, criterion_id="clarity", label="good", value=0.5)
FAILURE = Failure(key=KEY, criterion_id="clarity", status="unscored:parse", message="no")
DAMAGE: list[tuple[Score | Failure, dict[str, Any]]] = [
    (SCORE, {"value": 1.5}),
    (SCORE, {"value": -0.1}),
    (SCORE, {"value": "high"}),
    (SCORE, {"label": 3}),
    (SCORE, {"status": "guessed"}),
    (SCORE, {"detail": "{"}),
    (SCORE, {"detail": "[]"}),
    (SCORE, {"detail": '{"evidence": []}'}),
    (SCORE, {"detail": None}),
    (FAILURE, {"value": 0.5}),
    (FAILURE, {"status": "unscored:other"}),
    (FAILURE, {"detail": '{"message": 1}'}),
]


@pytest.mark.parametrize(("result", "damage"), DAMAGE)
def test_a_damaged_row_is_refused(result: Score | Failure, damage: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="damaged in the store"):
        cell_detail(columns(result, **damage))


def test_cells_come_in_order_and_by_variant(tmp_path: Path) -> None:
    judge, runs, two = ScriptedJudge(), items(3), criteria(2)
    with Store(tmp_path / "s.db") as store:
        store.register(runs, two, judge.source)
        for variant in ("original", "drop:1"):
            for run, view in reversed(runs):
                unit = JudgeUnit(run, view, tuple(two), 0, variant)
                found = tuple(
                    Score(key=cell_key(unit, c, judge.source.sha256), criterion_id=c.id, value=0.5)
                    for c in two
                )
                outcome = Outcome(found, CallRecord())
                store.save_soon(outcome.results, outcome.call)
        store.register([], [], judge.source)
        key = judge.source.sha256
        everything = list(store.cells(key))
        assert len(everything) == 12
        assert everything == sorted(everything, key=lambda cell: cell[:4])
        some = list(store.cells(key, variant="drop:1"))
        assert some == [cell for cell in everything if cell[1] == "drop:1"]
        found = store.states(judge.source.sha256)
        states = {
            (run, criterion, n): s.status
            for (run, variant, criterion, n), s in found
            if variant == "drop:1"
        }
        assert states == {(cell[0], cell[2], cell[3]): "scored" for cell in some}
