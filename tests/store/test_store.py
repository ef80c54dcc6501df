"""What is kept, what may be replaced, what never mixes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.engine.judging import JudgeUnit
from agenteval.errors import StoreError
from agenteval.records import CallRecord, CellKey, Criterion, Failure, Result, Run, Score, Usage
from agenteval.store import Store
from tests.store.making import ScriptedJudge, criteria, failures, items, scores

JUDGE = ScriptedJudge()
CALL = CallRecord()


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Store(tmp_path / "s.db") as opened:
        opened.register(items(3), criteria(2), JUDGE.source)
        yield opened


def unit(run: int = 0, repeat: int = 0) -> JudgeUnit:
    return JudgeUnit(*items(3)[run], tuple(criteria(2)), repeat)


def stored(store: Store) -> list[Result]:
    return list(store.results(JUDGE.source.sha256))


def test_a_score_is_never_overwritten_by_anything(store: Store) -> None:
    first = scores(unit(), JUDGE.source)
    store.save_soon(first.results, first.call).result(5)
    before = sorted(stored(store), key=lambda r: r.criterion_id)
    other = [r.model_copy(update={"value": 1.0, "label": "other"}) for r in first.results]
    store.save_soon(other, CALL).result(5)
    bad = failures(unit(), JUDGE.source, "error:timeout")
    store.save_soon(bad.results, bad.call).result(5)
    assert sorted(stored(store), key=lambda r: r.criterion_id) == before
    assert before == sorted(first.results, key=lambda r: r.criterion_id)
    assert {s.tries for s in dict(store.states(JUDGE.source.sha256)).values()} == {1}


def test_a_failure_is_replaced_and_tries_count(store: Store) -> None:
    kinds = ("error:timeout", "unscored:parse", "unscored:missing")
    for tries, (status, attempt) in enumerate(zip(kinds, (0, 0, 1), strict=True), start=1):
        bad = failures(unit(), JUDGE.source, status, f"try {tries}")
        store.save_soon(bad.results, bad.call, attempt=attempt).result(5)
        states = set(dict(store.states(JUDGE.source.sha256)).values())
        assert [(s.status, s.tries, s.attempt) for s in states] == [(status, tries, attempt)]
        assert {r.message for r in stored(store) if isinstance(r, Failure)} == {f"try {tries}"}
    good = scores(unit(), JUDGE.source)
    store.save_soon(good.results, good.call, attempt=2).result(5)
    assert all(isinstance(r, Score) for r in stored(store))
    assert {(s.status, s.tries) for s in dict(store.states(JUDGE.source.sha256)).values()} == {
        ("scored", 4)
    }
    # Every call that was made stays on the books, whatever became of its results.
    assert store.usage(JUDGE.source.sha256) == Usage(
        requests=4, prompt_tokens=100, completion_tokens=10
    )


TEXTS = st.text(st.characters(), max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
KEY = CellKey(
    run=items(1)[0][1].sha256, criterion=criteria(1)[0].sha256, source=JUDGE.source.sha256, repeat=0
)
SCORES = st.builds(
    Score,
    key=st.just(KEY),
    criterion_id=st.just("quality-0"),
    status=st.sampled_from(["scored", "not_applicable", "degenerate"]),
    label=st.none() | st.text(max_size=8),
    value=st.none() | st.floats(0, 1),
    probabilities=st.none() | st.dictionaries(TEXTS, st.floats(0, 1), max_size=3),
    explanation=st.none() | TEXTS,
    evidence=st.dictionaries(TEXTS, JSON, max_size=3),
    rung=st.none() | TEXTS,
    match=st.sampled_from([None, "exact", "tolerant"]),
)
FAILURES = st.builds(
    Failure,
    key=st.just(KEY),
    criterion_id=st.just("quality-0"),
    status=st.sampled_from(["unscored:parse", "error:timeout", "unscored:unsupported"]),
    message=TEXTS,
    rung=st.none() | TEXTS,
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(results=st.lists(SCORES | FAILURES, min_size=30, max_size=60))
def test_every_result_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, results: list[Result]
) -> None:
    at = [
        r.model_copy(update={"key": KEY.model_copy(update={"repeat": i})})
        for i, r in enumerate(results)
    ]
    with Store(tmp_path_factory.mktemp("round") / "s.db") as store:
        store.register(items(1), criteria(1), JUDGE.source)
        for result in at:
            store.save_soon([result], CallRecord(raw=result.rung))
        store.close()
        with Store(store.path) as again:
            assert stored(again) == at


def test_half_characters_do_not_stop_a_store(tmp_path: Path) -> None:
    run = Run(id="half", task="t\udc00", system="\ud800", input="in", output="out \udfff")
    from agenteval.readers import make_view

    view = make_view(run)
    criterion = Criterion(name="c", description="\ud83d", accepted_values=("a\ud83d", "b"))
    one = JudgeUnit(run, view, (criterion,))
    key = scores(one, JUDGE.source).results[0].key
    score = Score(key=key, criterion_id="c", label="b", value=1.0, explanation="\ud83d cut")
    with Store(tmp_path / "s.db") as store:
        store.register([(run, view)], [criterion], JUDGE.source)
        store.save_soon([score], CallRecord(raw="cut \ud83d")).result(5)
        assert stored(store) == [score]
        assert store.runs()[view.sha256]["system"] == "\\ud800"
        assert store.criteria_of(JUDGE.source.sha256) == {criterion.sha256: criterion}


def test_labels_of_a_run_may_be_mended_and_nothing_else(store: Store) -> None:
    run, view = items(3)[1]
    mended = run.model_copy(update={"success": None, "system": "renamed", "input": "other"})
    before = store.runs()[view.sha256]
    store.register([(mended, view)], [], JUDGE.source)
    after = store.runs()[view.sha256]
    assert (before["success"], after["success"], after["system"]) == (0, None, "renamed")
    assert after["case_key"] == before["case_key"]
    assert len(store.runs()) == 3


def test_replies_are_kept_replaced_and_a_damaged_one_is_none(store: Store, tmp_path: Path) -> None:
    assert store.get_reply("k") is None
    store.put_reply("k", {"text": "half \ud83d", "n": 1})
    store.put_reply("k", {"text": "second"})
    store.put_reply("nan", {"logprob": float("-inf")})  # JSON cannot hold it
    done = scores(unit(), JUDGE.source)
    store.save_soon(done.results, done.call).result(5)
    assert store.get_reply("k") == {"text": "second"}
    assert store.get_reply("nan") is None
    with sqlite3.connect(store.path) as db:
        for text in ("{", "[1]", "", "null"):
            db.execute("UPDATE replies SET reply = ? WHERE key = 'k'", (text,))
            db.commit()
            assert store.get_reply("k") is None
    db.close()
    store.put_reply("k", {"text": "healed"})
    store.close()
    with Store(store.path) as again:
        assert again.get_reply("k") == {"text": "healed"}


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    store.close()
    done = scores(unit(), JUDGE.source)
    with pytest.raises(StoreError, match="closed"):
        store.save_soon(done.results, done.call)
    with pytest.raises(StoreError, match="closed"):
        store.put_reply("k", {})


def test_commit_waits_until_another_connection_sees_it(store: Store) -> None:
    async def main() -> list[int]:
        seen = []
        for repeat in range(5):
            done = scores(unit(0, repeat), JUDGE.source)
            await store.save(done.results, done.call)
            db = sqlite3.connect(store.path)
            seen.append(db.execute("SELECT count(*) FROM results").fetchone()[0])
            db.close()
        return seen

    assert asyncio.run(main()) == [2, 4, 6, 8, 10]


def test_unknown_keys_are_refused_and_take_nobody_with_them(store: Store) -> None:
    good = scores(unit(0), JUDGE.source)
    stranger = scores(unit(1), ScriptedJudge(seed=99).source)  # its source is not registered
    futures = [
        store.save_soon(good.results, good.call),
        store.save_soon(stranger.results, stranger.call),
        store.save_soon(scores(unit(2), JUDGE.source).results, CALL),
    ]
    assert futures[0].result(5) is None
    with pytest.raises(StoreError, match=r"s\.db: .*FOREIGN KEY"):
        futures[1].result(5)
    assert futures[2].result(5) is None
    assert len(stored(store)) == 4


# ---- A paid reply and the results made of it are one unit: what it took is counted with bo -------


REPLY = {"text": "good", "usage": {"requests": 1}}


class Listening(Store):
    """A store that notes the tables of each unit, in the order they are queued."""

    def __init__(self, path: Path) -> None:
        self.units: list[list[str]] = []
        super().__init__(path)

    def submit(self, writes: Any, *more: Any) -> Future[None]:
        self.units.append(sorted(statement.table.name for statement, rows in writes if rows))
        return super().submit(writes, *more)


def made(path: Path) -> tuple[Listening, Callable[..., Any]]:
    """A store that knows one run, and results of it with the replies they are made of."""
    store = Listening(path)
    judge = ScriptedJudge()
    ((run, view),) = items(1)
    store.register([(run, view)], criteria(2), judge.source)
    store.units.clear()
    outcome = scores(JudgeUnit(run, view, tuple(criteria(2)), 0, "original", 0), judge.source)

    def commit(*keys: str, requests: int = 1) -> Any:
        call = CallRecord(replies=keys, usage=Usage(requests=requests))
        return store.save(outcome.results, call)

    return store, commit


async def test_a_reply_waits_for_the_results_made_of_it(tmp_path: Path) -> None:
    store, commit = made(tmp_path / "s.db")
    with store:
        store.put_reply("a", REPLY)
        await commit("a")
        assert store.units == [["calls", "replies", "results"]]
        assert store.get_reply("a") == REPLY
        await asyncio.sleep(0)
        assert len(store.units) == 1  # and is not queued a second time


async def test_a_reply_of_which_no_results_are_made_is_queued_at_once(tmp_path: Path) -> None:
    store, commit = made(tmp_path / "s.db")
    with store:
        store.put_reply("a", REPLY)
        await asyncio.sleep(0)
        assert store.units == [["replies"]]
        store.put_reply("b", REPLY)
        await commit("c")  # of another reply
        assert store.units == [["replies"], ["calls", "results"], ["replies"]]
    with Store(tmp_path / "s.db") as again:
        assert again.get_reply("a") == again.get_reply("b") == REPLY


async def test_closing_keeps_the_replies_that_still_wait(tmp_path: Path) -> None:
    store, _ = made(tmp_path / "s.db")
    store.put_reply("a", REPLY)
    store.close()
    with Store(tmp_path / "s.db") as again:
        assert again.get_reply("a") == REPLY


async def test_refused_results_do_not_take_their_reply_with_them(tmp_path: Path) -> None:
    store, commit = made(tmp_path / "s.db")
    with store:
        store.put_reply("a", REPLY)
        with pytest.raises(StoreError, match="cannot store the data"):
            await commit("a", requests=2**70)  # larger than any integer of SQLite
    with Store(tmp_path / "s.db") as again:
        assert again.get_reply("a") == REPLY
        assert again.usage(ScriptedJudge().source.sha256).requests == 0
