"""One experiment in several processes, on a file and on PostgreSQL, beside one process on a file.

    python -m benchmarks.scale [--runs 2000] [--concurrency 64] [--latency 0.1] [--kills 6]

A loopback server answers after `--latency` seconds; a call judges one run on six criteria. Speed:
calls a second of the second half of the runs, when the processes have started, by one process on
the file, one on PostgreSQL, two parts with the same number of requests in flight in all, and two
with twice as many. Server, database and workers share the machine's cores, so two parts can hardly
be twice as fast there; the row says how many cores there are.

Kills: two parts on PostgreSQL, one of which is killed (SIGKILL) again and again and begun anew,
with one restart of the server in the middle. Afterwards every cell is there once, equal to those on
the file, and the requests beyond one a call are at most twice what was in flight, for each kill.
Needs PostgreSQL's programs; ends with 0 and a line where they are not to be had.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from agenteval.evaluators.utility.criteria_file import save_criteria
from agenteval.records import CriteriaSet
from agenteval.store import Store, schema
from agenteval.store.connect import reading
from agenteval.testing import Child, spawn
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish
from benchmarks.sides import CRITERIA, criteria, fixed_reply, items
from tests.support.postgres import Server, postgres_server, why_not


@dataclass(frozen=True)
class Setting:
    """What is judged, how many requests are in flight, and where files lie."""

    runs: int
    concurrency: int
    kills: int
    folder: Path
    url: str

    def command(self, store: str, *, in_flight: int, part: str | None = None) -> list[str]:
        return [
            sys.executable, "-m", "agenteval", "quantify", str(self.folder / "runs.jsonl"),
            "--criteria", str(self.folder / "criteria.json"), "--model", "m",
            "--base-url", self.url, "--store", store, "-j", str(in_flight), "-q",
            *(("--part", part) if part else ()),
        ]  # fmt: skip


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(ROOT)}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)


def calls(store: Store) -> int:
    """How many calls are stored."""
    with reading(store.engine) as connection:
        query = select(func.count()).select_from(schema.calls)
        return int(connection.execute(query).scalar_one())


def speed(setting: Setting, place: str, parts: int, in_flight: int) -> float:
    """Calls a second between a quarter and nine tenths of the calls."""
    Store(place).close()
    each = in_flight // parts
    workers = [
        start(setting.command(place, in_flight=each, part=f"{n}/{parts}" if parts > 1 else None))
        for n in range(1, parts + 1)
    ]
    marks: list[tuple[float, int]] = []
    with Store(place, create=False) as store:
        while any(worker.poll() is None for worker in workers):
            time.sleep(0.1)
            marks.append((time.monotonic(), calls(store)))
        count = calls(store)
    assert count == setting.runs, f"{count} of {setting.runs} calls"
    first = next(mark for mark in marks if mark[1] >= setting.runs / 4)
    last = next(mark for mark in marks if mark[1] >= 0.9 * setting.runs)
    return (last[1] - first[1]) / max(last[0] - first[0], 1e-9)


def cells(place: str) -> dict[tuple[str, str], tuple[str, float | None]]:
    """Status and value by run and criterion."""
    c = schema.results.c
    with Store(place, create=False) as store, reading(store.engine) as connection:
        query = select(c.item_key, c.criterion_key, c.status, c.value)
        rows = [tuple(row) for row in connection.execute(query)]
    found = {(run, criterion): (status, value) for run, criterion, status, value in rows}
    assert len(found) == len(rows)
    return found


def kills(setting: Setting, server: Child, database: Server, reference: str) -> list[Row]:
    """Kill a part again and again, restart the server once, finish, and compare."""
    place = database.database()
    Store(place).close()
    server.reset()
    each = setting.concurrency // 2
    commands = [setting.command(place, in_flight=each, part=f"{n}/2") for n in (1, 2)]
    workers = [start(command) for command in commands]
    with Store(place, create=False) as store:
        for kill in range(1, setting.kills + 1):
            wanted = setting.runs * kill // (setting.kills + 2)
            while calls(store) < wanted:
                for n, worker in enumerate(workers):
                    if worker.poll() not in (None, 0):
                        workers[n] = start(commands[n])
                time.sleep(0.02)
            victim = kill % 2
            workers[victim].send_signal(signal.SIGKILL)
            workers[victim].wait()
            workers[victim] = start(commands[victim])
            if kill == setting.kills // 2:
                database.restart()
                store.engine.dispose()
    for worker in workers:
        worker.wait()
    for command in commands:
        assert start(command).wait() == 0
    asked = int(server.stats(keys=False)["requests"])
    extra, allowed = asked - setting.runs, 2 * each * (setting.kills + 2)
    same = cells(place) == cells(reference)
    return [
        Row(f"{setting.kills} SIGKILLs and a restart of PostgreSQL, {len(cells(place)):,} cells",
            "equal to those on the file" if same else "OTHER than those on the file",
            f"{setting.runs * CRITERIA:,} cells, none twice, none lost",
            same and len(cells(place)) == setting.runs * CRITERIA),
        Row("requests beyond one a call, for these", f"{extra}",
            f"<= 2 x {each} in flight x {setting.kills + 2} ends", extra <= allowed),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--kills", type=int, default=6)
    asked = parser.parse_args()
    if why := why_not():
        print(why)
        return finish("scale", [Row("PostgreSQL", why)])
    with tempfile.TemporaryDirectory() as temporary, postgres_server() as database:
        folder = Path(temporary)
        save_criteria(folder / "criteria.json", CriteriaSet(task="math", criteria=criteria()))
        lines = (run.model_dump_json(exclude_none=True) for run, _ in items(asked.runs))
        (folder / "runs.jsonl").write_text("".join(f"{line}\n" for line in lines))
        script = folder / "script.json"
        script.write_text(json.dumps({"answers": [{"replies": [fixed_reply()]}]}))
        with spawn("--script", str(script), "--latency", str(asked.latency)) as server:
            setting = Setting(asked.runs, asked.concurrency, asked.kills, folder, server.base_url)
            file = str(folder / "file.db")
            one = speed(setting, file, 1, asked.concurrency)
            sides = {
                "one process on PostgreSQL": speed(
                    setting, database.database(), 1, asked.concurrency
                ),
                "two parts on the file, as many in flight in all": speed(
                    setting, str(folder / "two.db"), 2, asked.concurrency
                ),
                "two parts on PostgreSQL, as many in flight in all": speed(
                    setting, database.database(), 2, asked.concurrency
                ),
                "two parts on PostgreSQL, twice as many in flight": speed(
                    setting, database.database(), 2, 2 * asked.concurrency
                ),
            }
            cores = os.cpu_count()
            rows = [
                Row(f"calls a second: {name}, of one process on a file ({cores} cores)",
                    f"{value / one:.2f} ({value:.0f} of {one:.0f}/s; the endpoint allows "
                    f"{asked.concurrency / asked.latency:.0f}/s at the plain number)",
                    ">= 0.7" if name.startswith("one") else None,
                    value / one >= 0.7 if name.startswith("one") else None)
                for name, value in sides.items()
            ]  # fmt: skip
            rows += kills(setting, server, database, file)
    for row in rows:
        print(f"{row.what}: {row.measured}")
    return finish("scale", rows)


if __name__ == "__main__":
    sys.exit(main())
