"""The benchmarks of speed at small sizes: counts and the same answers. No time is judged."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.store import Store
from benchmarks import cached, quantify
from benchmarks.sides import SIDES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def last_line(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def stored(path: Path) -> list[tuple[Any, ...]]:
    with Store(path, create=False) as store:
        ((key, _),) = store.sources()
        return list(store.cells(key))


def test_quantify_is_judged_at_both_numbers_in_flight() -> None:
    options = argparse.Namespace(
        runs=2400, concurrency=[64, 256], latency=0.1, rounds=3, sides=list(SIDES), profile=False
    )
    both = quantify.settings(options)
    assert [(s.concurrency, s.runs) for s in both] == [(64, 2400), (256, 4800)]
    assert {s.sides for s in both} == {("bare", "quantify", "aiohttp")}


def measured(setting: quantify.Setting, seconds: float, cpu: float) -> dict[str, Any]:
    """Bare takes 10 s and 1 s of CPU for 1000 calls."""
    rounds = quantify.Rounds()
    for side, wall, spent in (("bare", 10.0, 1.0), ("quantify", seconds, cpu)):
        rounds.seconds[side].append(wall)
        rounds.cpu[side].append(spent)
        rounds.loop_cpu[side].append(spent)
        rounds.server_cpu[side].append(0.001)
        rounds.peak_mb[side].append(100.0)
        rounds.cells[side].append(6000)
    return quantify.summary(setting, rounds)


@pytest.mark.parametrize(
    ("in_flight", "latency", "seconds", "cpu", "met"),
    [
        (64, 0.1, 10.5, 1.0, [True, True, True]),  # 10 / 10.5 = .952, as much CPU
        (64, 0.1, 10.6, 0.9, [False, True, True]),  # 10 / 10.6 = .943
        (256, 0.1, 4.9, 1.01, [True, False, True]),  # 10 / 4.9 = 2.04
        (256, 0.1, 5.1, 0.5, [False, True, True]),  # 10 / 5.1 = 1.96
        (64, 0.2, 99.0, 9.0, [None, None, True]),
        (32, 0.1, 99.0, 9.0, [None, None, True]),
    ],
)
def test_quantify_targets(
    in_flight: int, latency: float, seconds: float, cpu: float, met: list[bool | None]
) -> None:
    setting = quantify.Setting(1000, in_flight, latency, 1, ("bare", "quantify"))
    found = measured(setting, seconds, cpu)
    assert [row.met for row in quantify.rows_of([found])] == met
    assert [row.met for row in quantify.rows_of([found | {"wrong": ["one"]}])] == [*met[:2], False]


def test_cached_replies_give_the_same_cells_and_nothing_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    first = cached.judge_all(path, 100, answer=True)
    assert (first.cells, first.sent) == (600, 100)
    before = stored(path)
    cached.forget_results(path)
    assert stored(path) == []
    again = cached.judge_all(path, 100, answer=False)
    assert (again.cells, again.sent) == (600, 0)
    assert stored(path) == before


def test_cached_prints_its_rows() -> None:
    result = last_line("-m", "benchmarks.cached", "--runs", "20", "--rounds", "1")
    assert (result["benchmark"], result["cells_committed"], result["requests_sent"]) == (
        "cached",
        120,
        0,
    )
    assert [row["met"] for row in result["rows"][1:3]] == [True, True]
    assert result["rows"][0]["target"] == ">= 1,500"


def test_a_finished_command_sends_nothing_and_prints_the_same() -> None:
    result = last_line("-m", "benchmarks.finished", "--runs", "20", "--n", "1")
    assert result["benchmark"] == "finished"
    assert set(result["cpu_s"]) == set(result["wall_s"]) == {"pass", "import", "finished"}
    sent = result["rows"][-1]
    assert (sent["measured"], sent["met"]) == ("0 of 20, 0", True)
