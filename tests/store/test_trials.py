"""Trials: what is kept, what may be replaced, what is missing, in which order it comes back."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agenteval.errors import StoreError
from agenteval.records import Usage
from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.store import Store, Trials
from tests.store.trial_making import CHECK, OUTCOMES, SYSTEM, case, failed, key, known, trial

OTHER = TrialSystem(key=key("other"), name="another", parameters={})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.db") as opened:
        yield opened


def write(trials: Trials, *written: Trial) -> None:
    for waiting in [trials.store.save_soon((), t) for t in written]:
        waiting.result(60)


def stored(trials: Trials) -> list[Trial]:
    return list(trials.trials("planning"))


def test_a_failure_is_replaced_and_what_it_took_stays_on_the_books(store: Store) -> None:
    trials = known(store, 1)
    write(trials, failed(0, usage=Usage(requests=1, prompt_tokens=5), started=1.0, ended=2.0))
    write(trials, failed(0, status="error:timeout", usage=None, started=None, ended=None))
    (now,) = stored(trials)
    assert (now.status, now.tries, now.started) == ("error:timeout", 2, None)
    assert now.usage == Usage(requests=1, prompt_tokens=5)
    write(trials, trial(0, usage=Usage(requests=4, prompt_tokens=7, completion_tokens=9, cost=0.5)))
    (now,) = stored(trials)
    total = Usage(requests=5, prompt_tokens=12, completion_tokens=9, cost=0.5)
    assert now == trial(0, tries=3, usage=total)


CASES, NUMBERS = 4, 3
STATUSES = ["done", "error:infrastructure", "error:timeout", "error:budget", "unscored:refusal"]
WRITES = st.lists(
    st.tuples(
        st.sampled_from([SYSTEM.key, OTHER.key]),
        st.integers(0, CASES - 1),
        st.integers(0, NUMBERS - 1),
        st.sampled_from(STATUSES),
        st.sampled_from([*OUTCOMES, None]),
    ),
    max_size=40,
)


def made(system: str, i: int, number: int, status: str, outcome: str | None) -> Trial:
    if status != "done":
        return failed(i, number, status, system=system)
    if outcome is None:
        return trial(i, number, system=system, outcome=None, check_key=None, verdict=None)
    return trial(i, number, system=system, outcome=outcome)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(writes=WRITES)
def test_any_history_ends_as_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, int, str, str | None]]
) -> None:
    expected: dict[tuple[str, str, int], Trial] = {}
    tries: Counter[tuple[str, str, int]] = Counter()
    with Store(tmp_path_factory.mktemp("history") / "s.db") as store:
        trials = known(store, CASES, SYSTEM, OTHER)
        for written in writes:
            new = made(*written)
            at = (new.system_key, new.case_key, new.trial)
            if at not in expected or expected[at].status != "done":
                expected[at] = new
                tries[at] += 1
            trials.store.save_soon((), new)
        trials.store.save_soon((), trial(0, NUMBERS)).result(5)  # queued last: all are durable
        expected[SYSTEM.key, case(0).key, NUMBERS] = trial(0, NUMBERS)
        tries[SYSTEM.key, case(0).key, NUMBERS] = 1
        found = stored(trials)
        assert [(t.system_key, t.case_key, t.trial) for t in found] == sorted(expected)
        for t in found:
            at = (t.system_key, t.case_key, t.trial)
            assert t.tries == tries[at]
            assert t.model_copy(update={"tries": 1, "usage": None}) == expected[at].model_copy(
                update={"usage": None}
            )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=3)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs=st.lists(st.tuples(OBJECTS, OBJECTS | st.none()), min_size=10, max_size=30))
def test_every_log_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, pairs) -> None:  # type: ignore[no-untyped-def]
    written = [trial(0, n, log=log, verdict=said) for n, (log, said) in enumerate(pairs)]
    with Store(tmp_path_factory.mktemp("round") / "s.db") as store:
        trials = known(store, 0)
        body = {str(n): log for n, (log, _) in enumerate(pairs)}
        trials.add_cases("planning", [TrialCase(key=case(0).key, id="case-0", body=body)])
        trials.add_system("planning", TrialSystem(key=OTHER.key, name="o", parameters=body))
        write(trials, *written, trial(0, system=OTHER.key))
        store.close()
        with Store(store.path) as again:
            found = Trials(again)
            assert list(found.trials("planning", system_keys=[SYSTEM.key])) == written
            assert [c.body for c in found.cases("planning")] == [body]
            assert found.systems("planning")[0].parameters == body


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "error:timeout"},  # a failure with an outcome
        {"status": "finished"},
        {"status": "error:unheard_of"},
        {"check_key": None},
        {"outcome": None},
        {"outcome": None, "check_key": None},  # the verdict is left alone
        {"outcome": "done"},
        {"outcome": "error:timeout"},
        {"outcome": ""},
        {"trial": -1},
        {"case_key": "case-0"},
        {"system_key": "scripted"},
        {"check_key": "v1"},
        {"evaluator": "Planning Tests"},
        {"tries": 0},
        {"started": math.inf},
        {"log": [1]},
        {"surprise": 1},
    ],
)
def test_what_is_no_trial(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        trial(0, **fields)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_is_refused_before_it_is_queued(store: Store, bad: float) -> None:
    trials = known(store, 1)
    for fields in ({"log": {"x": [bad]}}, {"verdict": {"x": bad}}):
        with pytest.raises(ValueError, match=r"JSON|float"):
            write(trials, trial(0, **fields))
    with pytest.raises(ValueError, match=r"JSON|float"):
        trials.add_cases("planning", [TrialCase(key=case(9).key, id="c", body={"x": bad})])
    assert stored(trials) == []


def test_a_newer_checker_replaces_the_verdict_and_nothing_else(store: Store) -> None:
    trials = known(store, 3)
    plain = trial(1, outcome=None, check_key=None, verdict=None)
    write(trials, trial(0, outcome="pass"), plain, failed(2))
    before = stored(trials)
    newer = key("newer checker")
    done = [t for t in trials.trials("planning") if t.status == "done"]
    judged = [t.judged(newer, "act_error", {"call": 3}) for t in done]
    lying = [t.model_copy(update={"log": {}, "started": 0.0}) for t in judged]
    for one in lying:
        store.save_soon((), one, verdict_only=True).result(5)
    assert stored(trials) == [
        t.judged(newer, "act_error", {"call": 3}) if t.status == "done" else t for t in before
    ]
    for one in done:
        store.save_soon((), one.judged(CHECK, "pass"), verdict_only=True).result(5)
    assert {t.verdict for t in stored(trials)} == {None}
    with pytest.raises(ValueError, match="without an outcome"):
        store.save_soon((), plain, verdict_only=True)
    with pytest.raises(StoreError, match="is not stored as done"):
        store.save_soon((), trial(2), verdict_only=True)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("calls", "record = '{'"),
        ("calls", "record = '[]'"),
        ("calls", "verdict = 'x'"),
        ("calls", "status = 'finished'"),
        ("calls", "outcome = 'error:x'"),
        ("calls", "requests = 'many'"),
        ("items", "body = ''"),
        ("sources", "record = 'null'"),
    ],
)
def test_a_damaged_row_is_told_in_one_line(store: Store, table: str, change: str) -> None:
    trials = known(store, 1)
    write(trials, trial(0))
    db = sqlite3.connect(store.path)
    db.execute(f"UPDATE {table} SET {change}")
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="is damaged in the store") as caught:
        stored(trials), list(trials.cases("planning")), trials.systems("planning")
    assert "\n" not in str(caught.value)
