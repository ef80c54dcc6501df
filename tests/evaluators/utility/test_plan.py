"""The plan of what is missing: lazy, countable, the same whenever it is gone through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.evaluators.base import Unit
from agenteval.evaluators.utility.plan import CellPlan, joined, make_plan
from agenteval.records import Criterion, FailureStatus
from agenteval.store import Store
from tests.store.making import ScriptedJudge, criteria, failures, items, scores
from tests.thorough import often

RUNS, WIDTH, REPEATS = 3, 2, 2
CELLS = [(r, c, p) for r in range(RUNS) for c in range(WIDTH) for p in range(REPEATS)]
STATES: tuple[FailureStatus | None, ...] = (
    None,
    "error:timeout",
    "unscored:parse",
)  # None: a score


def put(store: Store, judge: ScriptedJudge, cell: tuple[int, int, int], state: str | None) -> None:
    run, view = items(RUNS)[cell[0]]
    unit = Unit(run, view, (criteria(WIDTH)[cell[1]],), cell[2])
    done = scores(unit, judge.source)
    if state is not None:
        done = failures(unit, judge.source, state)  # type: ignore[arg-type]
    store.commit_soon(done.results, done.call)


@settings(max_examples=often(20, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    known=st.dictionaries(st.sampled_from(CELLS), st.sampled_from(STATES)),
    retry=st.booleans(),
    one_per_call=st.booleans(),
)
def test_the_units_are_the_missing_cells(
    tmp_path_factory: pytest.TempPathFactory,
    known: dict[tuple[int, int, int], FailureStatus | None],
    retry: bool,
    one_per_call: bool,
) -> None:
    judge = ScriptedJudge(one_per_call=one_per_call)
    with Store(tmp_path_factory.mktemp("plan") / "s.db") as store:
        store.register(items(RUNS), criteria(WIDTH), judge.source)
        for cell, state in known.items():
            put(store, judge, cell, state)
        store.register([], [], judge.source)  # all of them are durable now
        plan = make_plan(
            judge, items(RUNS), criteria(WIDTH), store, repeats=REPEATS, retry_failed=retry
        )
    wanted = {}  # cell: attempt, said cell by cell
    for cell in CELLS:
        if cell not in known or known[cell] == "error:timeout":
            wanted[cell] = 0
        elif known[cell] == "unscored:parse" and retry:
            wanted[cell] = 1
    units = list(plan.units)
    found = [
        ((int(u.run.id[4:]), int(c.id[8:]), u.repeat), u.attempt) for u in units for c in u.criteria
    ]
    assert dict(found) == wanted
    assert len(found) == len(wanted) == plan.open
    assert len(plan.units) == len(units)
    assert list(plan.units) == units  # gone through again
    assert [u.repeat for u in units] == sorted(u.repeat for u in units)
    assert all(len(u.criteria) == 1 for u in units) or not one_per_call
    assert plan.done == sum(state is None for state in known.values())
    assert plan.done + plan.failed + plan.open == plan.cells == len(CELLS)


def test_units_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    class Counting(ScriptedJudge):
        asked = 0

        def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
            self.asked += 1
            return super().batches(criteria)

    judge = Counting()
    with Store(tmp_path / "s.db") as store:
        plan = make_plan(judge, items(50), criteria(2), store, repeats=4)
    assert judge.asked == 1  # all runs lack the same
    assert isinstance(iter(plan.units), Iterator)
    assert len(plan.units) == 200


def test_a_run_named_twice_is_two_calls_and_counts_twice(tmp_path: Path) -> None:
    judge, twice = ScriptedJudge(), [items(2)[0], items(2)[0], items(2)[1]]
    with Store(tmp_path / "s.db") as store:
        plan = make_plan(judge, twice, criteria(2), store, repeats=1)
        assert [u.run.id for u in plan.units] == ["run-0", "run-0", "run-1"]
        store.register(items(2), criteria(2), judge.source)
        put(store, judge, (0, 0, 0), None)
        store.register([], [], judge.source)
        plan = make_plan(judge, twice, criteria(2), store, repeats=1)
        assert (plan.cells, plan.done, plan.open, len(plan.units)) == (6, 2, 4, 3)


def test_plans_are_joined_in_their_order(tmp_path: Path) -> None:
    judge = ScriptedJudge()
    with Store(tmp_path / "s.db") as store:
        plans = [
            make_plan(judge, items(2), criteria(2), store, repeats=1, variant=name)
            for name in ("original", "drop:1")
        ]
    both = joined(plans)
    assert [(u.variant, u.run.id) for u in both.units] == [
        ("original", "run-0"), ("original", "run-1"), ("drop:1", "run-0"), ("drop:1", "run-1"),
    ]  # fmt: skip
    assert (len(both.units), both.open, both.cells) == (4, 8, 8)
    with pytest.raises(ValueError, match="same criteria"):
        joined([plans[0], make_other(tmp_path)])


def make_other(folder: Path) -> CellPlan:
    with Store(folder / "other.db") as store:
        return make_plan(ScriptedJudge(), items(2), criteria(1), store, repeats=1)
