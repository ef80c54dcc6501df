"""A trial is stored with its results: one for each measure, as of any other source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agenteval.records import Criterion, Failure, Result, Score
from agenteval.records.trial import Trial
from agenteval.store import Store, Trials
from tests.store.trial_making import CHECK, SYSTEM, failed, known, trial

RIGHT = Criterion(id="right", name="right", accepted_values=("no", "yes"))
KIND = Criterion(id="kind", name="kind", accepted_values=("a", "b"), scale="nominal")


def measured(of: Trial, good: bool, kind: str = "a") -> list[Result]:
    return [
        Score(
            key=of.cell(RIGHT), criterion_id="right", label=("no", "yes")[good], value=float(good)
        ),
        Score(key=of.cell(KIND), criterion_id="kind", label=kind, explanation="because"),
    ]


def broken(of: Trial) -> list[Result]:
    return [
        Failure(key=of.cell(c), criterion_id=c.id, status="error:timeout", message="late")
        for c in (RIGHT, KIND)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.db") as opened:
        yield opened


def book(store: Store, cases: int) -> Trials:
    trials = known(store, cases)
    trials.add_system("planning", SYSTEM, (RIGHT, KIND))
    return trials


def write(store: Store, of: Trial, results: Sequence[Result]) -> None:
    store.save_soon(results, of).result(5)


def rows(store: Store) -> list[tuple[str, int, str, str | None, float | None]]:
    ((key, _),) = store.sources(trials=True)
    return sorted(
        (
            r.criterion_id,
            r.key.repeat,
            r.status,
            getattr(r, "label", None),
            getattr(r, "value", None),
        )
        for r in store.results(key)
    )


def test_a_failure_gives_way_with_all_its_results_and_work_done_never(store: Store) -> None:
    trials = book(store, 1)
    write(store, failed(0), broken(failed(0)))
    assert rows(store) == [
        ("kind", 0, "error:timeout", None, None),
        ("right", 0, "error:timeout", None, None),
    ]
    write(store, trial(0), measured(trial(0), True)[:1])
    assert rows(store) == [("right", 0, "scored", "yes", 1.0)]  # `kind` was not measured now
    write(store, trial(0), measured(trial(0), False))
    write(store, failed(0), broken(failed(0)))
    assert ("right", 0, "scored", "yes", 1.0) in rows(store)
    assert [t.outcome for t in trials.trials("planning")] == [trial(0).outcome]


def test_a_new_verdict_writes_the_results_anew(store: Store) -> None:
    book(store, 2)
    write(store, trial(0), measured(trial(0), False))
    write(store, trial(1), measured(trial(1), True, "b"))
    judged = trial(0).judged(CHECK, "pass", {})
    store.save_soon(measured(judged, True)[:1], judged, verdict_only=True).result(5)
    assert rows(store) == [
        ("kind", 0, "scored", "b", None),
        ("right", 0, "scored", "yes", 1.0),
        ("right", 0, "scored", "yes", 1.0),
    ]


def test_a_verdict_and_another_trial_in_one_transaction(store: Store) -> None:
    book(store, 2)
    write(store, trial(0), ())
    judged = trial(0).judged(CHECK, "pass", {})
    store.save_soon(broken(failed(1)), failed(1))
    store.save_soon(measured(judged, True), judged, verdict_only=True).result(5)
    assert [row[2] for row in rows(store)].count("scored") == 2
    assert len(rows(store)) == 4


def test_results_of_another_trial_are_refused(store: Store) -> None:
    book(store, 2)
    with pytest.raises(ValueError, match="another trial"):
        store.save_soon(measured(trial(1), True), trial(0))
