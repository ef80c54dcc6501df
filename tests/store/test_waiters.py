"""Who waits in an event loop learns what became of the unit; rows reach the driver unchanged."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.sqlite import insert

from agenteval.errors import StoreError
from agenteval.store import Store, rows, schema
from agenteval.store.writer import Waiter
from tests.store.making import ScriptedJudge, criteria, items

REPLY = {"key": "k", "reply": "{}"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s.db")


def replies(store: Store) -> dict[str, str]:
    with store.engine.connect() as connection:
        return {row.key: row.reply for row in connection.execute(select(schema.replies))}


async def test_every_waiter_of_a_group_is_told_its_own_outcome(store: Store) -> None:
    loop = asyncio.get_running_loop()
    waiters: list[Waiter] = [loop.create_future() for _ in range(4)]
    some: list[dict[str, str | None]] = [
        {"key": "a", "reply": "1"},
        {"key": "b", "reply": None},
        {"key": "c", "reply": "3"},
    ]
    for waiter, row in zip(waiters, some, strict=False):
        store.submit([(rows.ADD_REPLY, [row])], waiter)
    waiters[3].cancel()
    store.submit([(rows.ADD_REPLY, [{"key": "d", "reply": "4"}])], waiters[3])
    done = await asyncio.gather(*waiters, return_exceptions=True)
    assert (done[0], done[2]) == (None, None)
    assert isinstance(done[1], StoreError)  # NOT NULL; it takes no other with it
    assert isinstance(done[3], asyncio.CancelledError)
    assert replies(store) == {"a": "1", "c": "3", "d": "4"}  # cancelled, and written


async def test_what_is_told_is_durable(store: Store) -> None:
    waiter: Waiter = asyncio.get_running_loop().create_future()
    store.submit([(rows.ADD_REPLY, [REPLY])], waiter)
    await waiter
    assert replies(store) == {"k": "{}"}


def test_a_loop_that_is_gone_stops_nobody(store: Store) -> None:
    async def leave() -> None:
        for i in range(3):
            row = {"key": f"left-{i}", "reply": "{}"}
            waiter: Waiter = asyncio.get_running_loop().create_future()
            store.submit([(rows.ADD_REPLY, [row])], waiter)

    asyncio.run(leave())
    store.submit([(rows.ADD_REPLY, [REPLY])]).result(5)
    assert set(replies(store)) == {"left-0", "left-1", "left-2", "k"}


def test_loops_of_several_threads_share_a_transaction(store: Store) -> None:
    told: list[str] = []

    async def one(name: str) -> None:
        waiter: Waiter = asyncio.get_running_loop().create_future()
        store.submit([(rows.ADD_REPLY, [{"key": name, "reply": "{}"}])], waiter)
        await waiter
        told.append(name)

    threads = [threading.Thread(target=lambda n=n: asyncio.run(one(n))) for n in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(told) == list("abcd") == sorted(replies(store))


@pytest.mark.parametrize("value", [0, -1, 2**62, 0.1 + 0.2, -0.0, 1e-310, None])
def test_numbers_come_back_as_they_went(store: Store, value: float | None) -> None:
    """Against SQLAlchemy's own execution of the same statement and row."""
    judge = ScriptedJudge()
    store.register(items(1), criteria(1), judge.source)
    row = {
        "call_id": "ours", "item_key": items(1)[0][1].sha256, "variant": "ä\U0001f600", "repeat": 3,
        "source_key": judge.source.sha256, "record": "{}", "requests": 2,
        "prompt_tokens": value if isinstance(value, int) else None, "completion_tokens": 7,
        "cost": value,
    }  # fmt: skip
    store.submit([(rows.ADD_CALL, [row])]).result(5)
    with store.engine.begin() as connection:
        connection.execute(insert(schema.calls), [{**row, "call_id": "theirs"}])
        ours, theirs = connection.execute(select(schema.calls).order_by("call_id")).fetchall()
    assert ours[1:] == theirs[1:]
    assert (ours.cost, ours.variant) == (value, "ä\U0001f600")


def test_rows_of_several_forms_and_an_update(store: Store) -> None:
    """Defaults fill what a row leaves out; a second form is another statement for the driver."""
    judge, (run, view), criterion = ScriptedJudge(), items(1)[0], criteria(1)[0]
    store.register([(run, view)], [criterion], judge.source)
    key = {"item_key": view.sha256, "source_key": judge.source.sha256, "repeat": 0}
    call = {**key, "variant": "original", "record": "{}", "requests": 1}
    store.submit([(rows.ADD_CALL, [{**call, "call_id": "a"}])]).result(5)
    cell = {
        **key, "criterion_key": criterion.sha256, "status": "scored", "detail": "{}",
        "call_id": "a",
    }  # fmt: skip
    adding = insert(schema.results)
    store.submit([(adding, [{**cell, "variant": "x"}])]).result(5)
    store.submit([(adding, [{**cell, "variant": "y", "tries": 4, "attempt": 2}])]).result(5)
    c = schema.results.c
    changing = update(schema.results).where(c.variant == bindparam("which")).values(label="new")
    store.submit([(changing, [{"which": "y"}])]).result(5)
    with store.engine.connect() as connection:
        query = select(c.variant, c.tries, c.attempt, c.label).order_by(c.variant)
        assert connection.execute(query).fetchall() == [("x", 1, 0, None), ("y", 4, 2, "new")]
