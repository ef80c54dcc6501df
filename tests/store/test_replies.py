"""A paid reply and the results made of it are one unit: what it took is counted with both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from agenteval.engine.judging import JudgeUnit
from agenteval.errors import StoreError
from agenteval.records import CallRecord, Usage
from agenteval.store import Store
from tests.store.making import ScriptedJudge, criteria, items, scores

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
        with pytest.raises(StoreError, match="cannot store this"):
            await commit("a", requests=2**70)  # larger than any integer of SQLite
    with Store(tmp_path / "s.db") as again:
        assert again.get_reply("a") == REPLY
        assert again.usage(ScriptedJudge().source.sha256).requests == 0
