"""What the store lacks of a judge's experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.engine import pending
from agenteval.engine.judging import JudgeUnit
from agenteval.records import FailureStatus
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import ScriptedJudge, criteria, failures, items, left, scores
from tests.thorough import often

RUNS, WIDTH, REPEATS = 3, 2, 2
CELLS = [(r, c, p) for r in range(RUNS) for c in range(WIDTH) for p in range(REPEATS)]
STATES: tuple[FailureStatus | None, ...] = (None, "error:timeout", "unscored:parse")  # None: scored


def put(store: Store, judge: ScriptedJudge, cell: tuple[int, int, int], state: str | None) -> None:
    run, view = items(RUNS)[cell[0]]
    unit = JudgeUnit(run, view, (criteria(WIDTH)[cell[1]],), cell[2])
    outcome = scores(unit, judge.source)
    if state is not None:
        outcome = failures(unit, judge.source, state)  # type: ignore[arg-type]
    store.save_soon(outcome.results, outcome.call)  # type: ignore[arg-type]


@settings(max_examples=often(20, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    stored=st.dictionaries(st.sampled_from(CELLS), st.sampled_from(STATES)),
    retry=st.booleans(),
    one_per_call=st.booleans(),
)
def test_the_units_are_the_missing_cells(
    tmp_path_factory: pytest.TempPathFactory,
    stored: dict[tuple[int, int, int], FailureStatus | None],
    retry: bool,
    one_per_call: bool,
) -> None:
    judge = ScriptedJudge(one_per_call=one_per_call)
    with Store(tmp_path_factory.mktemp("plan") / "s.db") as store:
        store.register(items(RUNS), criteria(WIDTH), judge.source)
        for cell, state in stored.items():
            put(store, judge, cell, state)
        store.register([], [], judge.source)  # all of them are durable now
        work = left(judge, items(RUNS), criteria(WIDTH), store, repeats=REPEATS, retry_failed=retry)
    expected = {}  # cell: attempt
    for cell in CELLS:
        if cell not in stored or stored[cell] == "error:timeout":
            expected[cell] = 0
        elif stored[cell] == "unscored:parse" and retry:
            expected[cell] = 1
    found = [
        ((int(u.content[0].id[4:]), int(c.id[8:]), u.repeat), u.attempt)
        for u in work.units
        for c in u.criteria
    ]
    assert dict(found) == expected
    assert len(found) == len(expected) == work.open
    assert [u.repeat for u in work.units] == sorted(u.repeat for u in work.units)
    assert all(len(u.criteria) == 1 for u in work.units) or not one_per_call
    assert work.done == sum(state is None for state in stored.values())
    assert work.done + work.failed + work.open == work.cells == len(CELLS)


def test_a_run_listed_twice_is_rated_once(tmp_path: Path) -> None:
    judge, twice = ScriptedJudge(), [items(2)[0], items(2)[0], items(2)[1]]
    with Store(tmp_path / "s.db") as store:
        work = left(judge, twice, [*criteria(2), criteria(2)[0]], store)
    assert [u.content[0].id for u in work.units] == ["run-0", "run-1"]
    assert work.cells == 4


def test_variants_come_in_their_order(tmp_path: Path) -> None:
    variants = [("original", items(2)), ("drop:1", items(2))]
    with Store(tmp_path / "s.db") as store:
        work = pending(JudgeEvaluator(ScriptedJudge(), variants, criteria(2), 1), store)
    assert [(u.variant, u.content[0].id) for u in work.units] == [
        ("original", "run-0"),
        ("original", "run-1"),
        ("drop:1", "run-0"),
        ("drop:1", "run-1"),
    ]
    assert (work.open, work.cells) == (8, 8)
