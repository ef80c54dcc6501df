"""A trial is stored with its results: one for each measure, as of any other source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval.records import CellKey, Criterion, Failure, FailureStatus, Score
from agenteval.store import Measured, Store, Trial, Trials
from agenteval.store.export import export_cells
from agenteval.trust.means import load_ratings
from agenteval.trust.scores import scores_from_store
from tests.store.trial_making import CHECK, SYSTEM, case, failed, known, trial

RIGHT = Criterion(id="right", name="right", accepted_values=("no", "yes"))
KIND = Criterion(id="kind", name="kind", accepted_values=("a", "b"), scale="nominal")


def measured(good: bool, kind: str = "a") -> tuple[Measured, ...]:
    return (
        Measured(criterion=RIGHT, label=("no", "yes")[good], value=float(good)),
        Measured(criterion=KIND, label=kind, message="because"),
    )


def broken(status: FailureStatus = "error:timeout") -> tuple[Measured, ...]:
    return tuple(Measured(criterion=c, status=status, message="late") for c in (RIGHT, KIND))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.db") as opened:
        yield opened


def write(trials: Trials, *many: Trial) -> None:
    for one in many:
        trials.write_trial_soon(one).result(5)


def rows(store: Store) -> list[tuple[str, int, str, str | None, float | None]]:
    ((key, _),) = store.sources(trials=True)
    return sorted(
        (r.criterion_id, r.key.repeat, r.status, getattr(r, "label", None),
         getattr(r, "value", None))
        for r in store.results(key)
    )  # fmt: skip


def test_a_failure_gives_way_with_all_its_results_and_work_done_never(store: Store) -> None:
    trials = known(store, 1)
    write(trials, failed(0, results=broken()))
    assert rows(store) == [
        ("kind", 0, "error:timeout", None, None), ("right", 0, "error:timeout", None, None),
    ]  # fmt: skip
    write(trials, trial(0, results=measured(True)[:1]))
    assert rows(store) == [("right", 0, "scored", "yes", 1.0)]  # `kind` was not measured now
    write(trials, trial(0, results=measured(False)), failed(0, results=broken()))
    assert ("right", 0, "scored", "yes", 1.0) in rows(store)
    assert [t.outcome for t in trials.trials("planning")] == [trial(0).outcome]


def test_a_new_verdict_writes_the_results_anew(store: Store) -> None:
    trials = known(store, 2)
    write(trials, trial(0, results=measured(False)), trial(1, results=measured(True, "b")))
    judged = trial(0).judged(CHECK, "pass", {}, measured(True)[:1])
    assert trials.write_verdicts([judged]) == 1
    assert rows(store) == [
        ("kind", 0, "scored", "b", None), ("right", 0, "scored", "yes", 1.0),
        ("right", 0, "scored", "yes", 1.0),
    ]  # fmt: skip


def test_tables_and_files_read_them_as_any_other_ratings(store: Store, tmp_path: Path) -> None:
    trials = known(store, 3)
    write(
        trials,
        *(trial(i, n, results=measured(i == 0)) for i in range(2) for n in range(2)),
        failed(2, results=broken()),
    )
    ((key, source),) = store.sources(trials=True)
    assert store.sources() == []  # no judge
    assert (source.evaluator, source.model) == ("planning", SYSTEM.name)
    assert source.parameters == SYSTEM.parameters
    ratings = load_ratings(store, key)
    assert {(r.system, r.run_id, r.case) for r in ratings} == {
        (SYSTEM.name, f"case-{i}", case(i).key) for i in range(3)
    }
    table = scores_from_store(
        store, key, criteria={RIGHT.sha256}, runs={case(i).key for i in range(3)}
    )
    assert table.statuses() == {"scored": 4, "error:timeout": 1}
    assert sorted(v for v in table.value.tolist() if v == v) == [0.0, 0.0, 1.0, 1.0]
    assert export_cells(store, tmp_path / "out.jsonl") == 10
    kinds = {type(r) for r in store.results(key)}
    assert kinds == {Score, Failure}


def test_cases_on_one_input_are_one_unit(store: Store) -> None:
    trials = known(store, 0)
    turns = [case(i).model_copy(update={"unit": "one session"}) for i in range(3)]
    trials.add_cases("planning", [*turns, case(3)])
    write(trials, *(trial(i, results=measured(True)) for i in range(4)))
    ((key, _),) = store.sources(trials=True)
    assert len({r.case for r in load_ratings(store, key)}) == 2


def test_a_failure_has_no_value() -> None:
    key = CellKey(run="r", criterion="c", source="s", repeat=0)
    with pytest.raises(ValueError, match="has no value"):
        Measured(criterion=RIGHT, status="error:timeout", value=0.0).result(key)
