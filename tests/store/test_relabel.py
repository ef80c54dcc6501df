"""A corrected order: stored ratings get the values that follow from it, and nobody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.records import CallRecord, CellKey, Criterion, Failure, Score
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import ScriptedJudge, items

JUDGE = ScriptedJudge()
WORDS = ("bad", "fair", "good")


def criterion(levels: tuple[str, ...] = WORDS, **changes: Any) -> Criterion:
    return Criterion(name="Quality", accepted_values=levels, **changes)


UP, DOWN = criterion(), criterion(WORDS[::-1])
UNCLEAR = criterion(order="unclear")
KINDS = criterion(scale="nominal", order="unclear")
MOVED = criterion(("fair", "bad", "good"))
RANGE: dict[str, Any] = {"scale": "numeric", "numeric_range": (0, 10)}


def whole(part: Criterion, **changes: Any) -> Criterion:
    steady = Criterion(name="Steady", accepted_values=("no", "yes"), allow_na=True)
    return Criterion(name="Whole", sub_criteria=(part, steady), **changes)


def parts(quality: str, steady: str, **more: Any) -> dict[str, Any]:
    return {"parts": {"whole/quality": quality, "whole/steady": steady}, **more}


LIKELY = {"bad": 0.1, "fair": 0.2, "good": 0.7}  # expected value .8 upwards, .2 downwards
CASES: list[tuple[str, Criterion, Criterion, dict[str, Any], Any]] = [
    # (what, stored under, corrected to, stored rating, label and value afterwards)
    ("reversed", UP, DOWN, {"label": "good", "value": 1.0}, ("good", 0.0)),
    ("reversed, the middle", UP, DOWN, {"label": "fair", "value": 0.5}, None),
    ("a level moved", UP, MOVED, {"label": "fair", "value": 0.5}, ("fair", 0.0)),
    ("known at last", UNCLEAR, DOWN, {"label": "bad", "value": None}, ("bad", 1.0)),
    ("unclear now", UP, UNCLEAR, {"label": "good", "value": 1.0}, ("good", None)),
    ("kinds are grades", KINDS, UP, {"label": "good", "value": None}, ("good", 1.0)),
    ("grades are kinds", UP, KINDS, {"label": "good", "value": 1.0}, ("good", None)),
    (
        "probabilities",
        UP,
        DOWN,
        {"label": "good", "value": 0.8, "probabilities": LIKELY},
        ("good", 0.2),
    ),
    (
        "probabilities, known at last",
        UNCLEAR,
        UP,
        {"label": "good", "value": None, "probabilities": LIKELY},
        ("good", 0.8),
    ),
    ("degenerate", UP, DOWN, {"label": "bad", "value": 0.0, "status": "degenerate"}, ("good", 0.0)),
    (
        "degenerate, unclear now",
        UP,
        UNCLEAR,
        {"label": "bad", "value": 0.0, "status": "degenerate"},
        (None, None),
    ),
    ("not applicable", UP, DOWN, {"label": None, "value": None, "status": "not_applicable"}, None),
    (
        "numbers, known at last",
        criterion((), order="unclear", **RANGE),
        criterion((), **RANGE),
        {"label": "7", "value": None},
        ("7", 0.7),
    ),
    # computed from the text, not read off a label: the value stays, the level follows
    (
        "computed",
        UP,
        DOWN,
        {"label": "good", "value": 0.9, "match": None, "evidence": {"statistic": "x"}},
        ("bad", 0.9),
    ),
    (
        "computed, at the end",
        UP,
        DOWN,
        {"label": "good", "value": 1.0, "match": None, "evidence": {"statistic": "x"}},
        ("bad", 1.0),
    ),
    ("parts", whole(UP), whole(DOWN), {"value": 0.5, "evidence": parts("good", "no")}, (None, 0.0)),
    (
        "parts, one does not apply",
        whole(UP),
        whole(DOWN),
        {"value": 1.0, "evidence": parts("good", "not applicable")},
        (None, 0.0),
    ),
    (
        "parts, the least",
        whole(UP, aggregation="min"),
        whole(DOWN, aggregation="min"),
        {"value": 0.5, "evidence": parts("fair", "yes")},
        None,
    ),
    (
        "parts with probabilities",
        whole(UP),
        whole(DOWN),
        {"value": 0.9, "evidence": parts("good", "yes", probabilities={"whole/quality": LIKELY})},
        (None, 0.6),
    ),
    # what cannot be made anew is judged again
    (
        "parts without their probabilities",
        whole(UP),
        whole(DOWN),
        {"value": 0.9, "evidence": parts("good", "yes")},
        "dropped",
    ),
    (
        "no order was known",
        whole(UNCLEAR),
        whole(UP),
        {"status": "unscored:unsupported"},
        "dropped",
    ),
    ("another failure", UP, DOWN, {"status": "unscored:parse"}, None),
]


def store_one(store: Store, own: Criterion, rating: dict[str, Any]) -> CellKey:
    ((run, view),) = items(1)
    store.register([(run, view)], [own], JUDGE.source)
    key = CellKey(run=view.sha256, criterion=own.sha256, source=JUDGE.source.sha256, repeat=0)
    result: Score | Failure
    if ":" in rating.get("status", ""):
        result = Failure(key=key, criterion_id=own.id, **rating)
    else:
        result = Score(key=key, criterion_id=own.id, **{"match": "exact", **rating})
    store.save_soon([result], CallRecord()).result()
    return key


@pytest.mark.parametrize(
    ("old", "new", "rating", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_corrected_order_gives_stored_ratings_their_values(
    tmp_path: Path, old: Criterion, new: Criterion, rating: dict[str, Any], expected: Any
) -> None:
    assert old.sha256 == new.sha256
    with Store(tmp_path / "s.db") as store:
        store_one(store, old, rating)
        before = list(store.results(JUDGE.source.sha256))
        (told,) = store.relabel([new])
        untouched = rating.get("status") in ("not_applicable", "unscored:parse")
        dropped = int(expected == "dropped")
        assert (told.ratings, told.dropped) == (int(not untouched and not dropped), dropped)
        after = list(store.results(JUDGE.source.sha256))
        if expected == "dropped":
            assert after == []
            assert "1 must be judged again" in told.line
        elif expected is None:
            assert after == before
        else:
            (score,) = after
            assert isinstance(score, Score)
            assert (score.label, score.value) == (
                expected[0],
                None if expected[1] is None else pytest.approx(expected[1]),
            )
            same = {"label", "value"}
            assert score.model_dump(exclude=same) == before[0].model_dump(exclude=same)
        assert store.criteria_of(JUDGE.source.sha256).get(new.sha256) in (
            [None] if expected == "dropped" else [new]
        )
        assert store.relabel([new]) == []  # once is enough
        # ... and back again
        if expected not in (None, "dropped") and old.ordered and new.ordered:
            store.relabel([old])
            (again,) = store.results(JUDGE.source.sha256)
            assert (getattr(again, "label", None), getattr(again, "value", None)) == (
                rating.get("label"),
                pytest.approx(rating["value"]),
            )


def test_registering_relabels_what_others_rated(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        key = store_one(store, UP, {"label": "good", "value": 1.0})
        other = Criterion(name="Other", accepted_values=WORDS)
        store_one(store, other, {"label": "good", "value": 1.0})
        rated = JudgeEvaluator.of(ScriptedJudge(seed=9), [], [DOWN, other])
        assert len(rated.register(store)) == 1
        values = {r.key.criterion: getattr(r, "value", None) for r in store.results(key.source)}
        assert values == {UP.sha256: 0.0, other.sha256: 1.0}
        assert store.relabel([DOWN, other]) == []


def test_bare_numbers_shown_against_their_nature_are_another_question(tmp_path: Path) -> None:
    numbers = ("1", "2", "3")
    with Store(tmp_path / "s.db") as store:
        store_one(store, criterion(numbers), {"label": "3", "value": 1.0})
        assert store.relabel([criterion(numbers[::-1])]) == []
        (told,) = store.relabel([criterion(numbers, order="unclear")])
        assert told.ratings == 1
