"""One experiment, one process; death releases it; other experiments do not wait."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from agenteval.engine import Experiment
from agenteval.errors import StoreLocked
from agenteval.store import Store
from agenteval.store.export import export_cells
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import FORK, ScriptedJudge, criteria, items

EXPERIMENT = "e" * 64


def _hold(path: Path, pipe: Connection) -> None:
    """Wait for a word, try to take the lock, hold it until the next word."""
    with Store(path) as store:
        pipe.send(os.getpid())
        pipe.recv()
        try:
            with store.lock(EXPERIMENT):
                pipe.send("won")
                pipe.recv()
        except StoreLocked as error:
            pipe.send(str(error))


@pytest.mark.slow
def test_of_two_processes_exactly_one_wins_five_times(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    for _ in range(5):
        pipes = [FORK.Pipe() for _ in range(2)]
        children = [FORK.Process(target=_hold, args=(path, theirs)) for _, theirs in pipes]
        for child in children:
            child.start()
        for _, theirs in pipes:
            theirs.close()  # a child that dies is heard, not waited for
        pids = [ours.recv() for ours, _ in pipes]
        for ours, _ in pipes:
            ours.send("go")
        said = [ours.recv() for ours, _ in pipes]
        assert said.count("won") == 1
        winner = said.index("won")
        loser = said[1 - winner]
        assert f"process {pids[winner]} on {socket.gethostname()}" in loser
        assert str(path) in loser
        assert "\n" not in loser
        pipes[winner][0].send("end")
        for child in children:
            child.join(20)
            assert child.exitcode == 0


@pytest.mark.slow
def test_kill_releases_the_lock_and_the_dead_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for _ in range(3):
        ours, theirs = FORK.Pipe()
        child = FORK.Process(target=_hold, args=(path, theirs))
        child.start()
        ours.recv()
        ours.send("go")
        assert ours.recv() == "won"
        with Store(path) as store:
            with pytest.raises(StoreLocked, match=f"process {child.pid} on "):
                store.lock(EXPERIMENT).__enter__()
            child.kill()
            child.join(20)
            with store.lock(EXPERIMENT):
                owner = next(tmp_path.glob(".*.locks/*.owner"))
                assert json.loads(owner.read_text())["pid"] == os.getpid()
            assert list(tmp_path.glob(".*.locks/*.owner")) == []


def _judge(path: Path, seed: int, pipe: Connection) -> None:
    judge = ScriptedJudge(seed=seed, delay=0.001)
    with Store(path) as store:
        rated = JudgeEvaluator.of(judge, items(40), criteria(3), 5)
        ended = asyncio.run(Experiment(rated, store, concurrency=8).run())
        pipe.send((ended.stopped, ended.progress.scored))


@pytest.mark.slow
def test_different_experiments_share_a_store_and_both_finish(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    pipes = [FORK.Pipe(duplex=False) for _ in range(2)]
    children = [
        FORK.Process(target=_judge, args=(path, seed, theirs))
        for seed, (_, theirs) in enumerate(pipes)
    ]
    for child in children:
        child.start()
    assert [ours.recv() for ours, _ in pipes] == [(None, 600), (None, 600)]
    for child in children:
        child.join(20)
    with Store(path) as store:
        assert export_cells(store, tmp_path / "all.jsonl") == 1200
