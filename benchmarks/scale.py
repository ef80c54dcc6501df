"""One command in several processes, on a file, on PostgreSQL and on Ray, beside one process.

    make scale        or: python -m benchmarks.scale [--runs 2000] [--in-flight 64] [--latency 0.1]

A server on the loopback answers after `--latency` seconds; a call judges one run on six criteria.

Speed: calls a second between a quarter and nine tenths of the calls, when all processes have
started, and the CPU of each process a call meanwhile: by the bare openai client, by one process, by
two workers with the same number in flight in all, and with twice as many. Server, database and
workers share the machine; where CPU binds, two workers cannot be twice as fast, and the row says
what share of all cores was busy.

Kills, with a slower endpoint: six SIGKILLs of workers, one SIGSTOP for longer than a lease, one
restart of the server of the database (the command ends, and is given again). Afterwards every cell
is there once, equal to those on the file, and requests beyond one a call are at most twice what a
worker has in flight, for each of these. Then a cap, under kills, on the number of requests.

Needs PostgreSQL's programs, and Ray for its rows; ends with 0 and a line where they are missing.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
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

from sqlalchemy import func, select, text

from agenteval.evaluators.utility.criteria_file import save_criteria
from agenteval.records import CriteriaSet
from agenteval.store import Store, schema
from agenteval.store.connect import reading
from agenteval.store.copying import copy_store
from agenteval.store.leases import SECONDS
from agenteval.testing import Child, spawn
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish
from benchmarks.sides import CRITERIA, Job, criteria, fixed_reply, items, side_bare
from tests.support.asleep import put_to_sleep
from tests.support.postgres import Server, postgres_server, why_not

KILLS = 6
SLOW = 2.0  # seconds of an answer while processes are killed
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Setting:
    """What is judged, and where files lie."""

    runs: int
    folder: Path
    url: str

    def start(self, store: str, in_flight: int, *more: str) -> subprocess.Popen[bytes]:
        """`agenteval quantify` on it."""
        command = [
            sys.executable, "-m", "agenteval", "quantify", str(self.folder / "runs.jsonl"),
            "--criteria", str(self.folder / "criteria.json"), "--model", "test-model",
            "--base-url", self.url, "--store", store, "-j", str(in_flight), "-q", *more,
        ]  # fmt: skip
        environment = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONPATH": str(ROOT)}
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)


def calls(store: Store) -> int:
    """How many calls are stored."""
    with reading(store.engine) as connection:
        query = select(func.count()).select_from(schema.calls)
        return int(connection.execute(query).scalar_one())


def cells(place: str) -> dict[tuple[str, str], tuple[str, float | None]]:
    """Status and value by run and criterion."""
    c = schema.results.c
    with Store(place, create=False) as store, reading(store.engine) as connection:
        query = select(c.item_key, c.criterion_key, c.status, c.value)
        rows = [tuple(row) for row in connection.execute(query)]
    found = {(run, criterion): (status, value) for run, criterion, status, value in rows}
    assert len(found) == len(rows)
    return found


def at_work(leader: subprocess.Popen[bytes]) -> list[int]:
    """Processes that judge for a command: its workers, here or placed by Ray, else itself."""
    workers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"ray::_work" in words or b"agenteval\0work\0" in words:
            workers.append(int(folder.name))
    return sorted(workers) or [leader.pid]


def cpu(pids: Sequence[int]) -> float:
    """Seconds of CPU that these processes have taken."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICK


def busy() -> tuple[float, float]:
    """Seconds of CPU that all cores have been busy, and in all."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / TICK, sum(ticks) / TICK


@dataclass(frozen=True)
class Speed:
    """Calls a second, milliseconds of CPU a call in the processes that judge, busy share of all
    cores."""

    rate: float
    cpu: float
    busy: float


def speed(setting: Setting, place: str, in_flight: int, *more: str) -> Speed:
    """Of one command."""
    print(f"... quantify -j {in_flight} {' '.join(more)} on {place[:10]}", file=sys.stderr)
    Store(place).close()
    leader = setting.start(place, in_flight, *more)
    marks: list[tuple[float, int, float, tuple[float, float]]] = []
    with Store(place, create=False) as store:
        while leader.poll() is None:
            time.sleep(0.1)
            done = calls(store)
            if setting.runs / 4 <= done <= 0.9 * setting.runs:
                try:
                    marks.append((time.monotonic(), done, cpu(at_work(leader)), busy()))
                except OSError:  # one has just ended
                    continue
        assert (calls(store), leader.returncode) == (setting.runs, 0), leader.returncode
    (start, first, before, (busy_then, then)), *_, (end, last, after, (busy_now, now)) = marks
    made = last - first
    return Speed(made / (end - start), 1000 * (after - before) / made,
                 (busy_now - busy_then) / (now - then))  # fmt: skip


def speeds(setting: Setting, database: Server, in_flight: int, latency: float) -> list[Row]:
    """All of them, beside one process on a file; which is left in file.db."""
    bare = asyncio.run(side_bare(Job("bare", setting.url, setting.runs, in_flight, setting.folder)))
    file, double = str(setting.folder / "file.db"), 2 * in_flight
    one = speed(setting, file, in_flight)
    two, ray = ("--workers", "2"), ("--workers", "2", "--ray", "local")
    loaded = database.database()
    sides = {
        "one process on PostgreSQL": speed(setting, loaded, in_flight),
        "two workers on a file": speed(setting, str(setting.folder / "2.db"), in_flight, *two),
        "two workers": speed(setting, database.database(), in_flight, *two),
        "two workers, twice as many in flight": speed(setting, database.database(), double, *two),
    }
    if importlib.util.find_spec("ray") is not None:
        sides["two workers on Ray"] = speed(setting, database.database(), in_flight, *ray)
        sides["two workers on Ray, twice as many in flight"] = speed(
            setting, database.database(), double, *ray
        )
    allowed = in_flight / latency
    rows = [
        Row("bare openai client, calls a second", f"{setting.runs / bare.seconds:.0f} "
            f"({1000 * bare.cpu / setting.runs:.2f} ms of CPU a call; the endpoint allows "
            f"{allowed:.0f})"),
        Row("one process on a file, of the bare client",
            f"{one.rate * bare.seconds / setting.runs:.2f} ({one.rate:.0f}/s; {one.cpu:.2f} ms of "
            f"CPU a call; {one.busy:.0%} of {os.cpu_count()} cores busy)"),
    ]  # fmt: skip
    for name, side in sides.items():
        aim = 0.7 if name == "one process on PostgreSQL" else None
        rows.append(
            Row(f"{name}, of one process on a file",
                f"{side.rate / one.rate:.2f} ({side.rate:.0f}/s; {side.cpu:.2f} ms of CPU a call; "
                f"{side.busy:.0%} of the cores busy)",
                None if aim is None else f">= {aim}",
                None if aim is None else side.rate / one.rate >= aim)
        )  # fmt: skip
    return [*rows, *load(setting, loaded)]


def load(setting: Setting, place: str) -> list[Row]:
    """What the database had to do for a thousand cells, as its server counts it."""
    with Store(place, create=False) as store, store.engine.connect() as connection:
        size, commits = connection.execute(
            text("SELECT pg_database_size(current_database()), xact_commit FROM pg_stat_database "
                 "WHERE datname = current_database()")
        ).one()  # fmt: skip
    thousands = setting.runs * CRITERIA / 1000
    return [
        Row("PostgreSQL, for 1,000 cells", f"{size / thousands / 1e6:.2f} MB of database, "
            f"{commits / thousands:.0f} transactions (reads of this measurement included)")
    ]  # fmt: skip


def kills(
    setting: Setting, server: Child, database: Server, in_flight: int, *more: str
) -> list[Row]:
    """Kill workers again and again, put one to sleep, restart the database once; then compare."""
    place, reference = database.database(), cells(str(setting.folder / "file.db"))
    Store(place).close()
    server.reset()
    restarting = "--ray" not in more
    leader = setting.start(place, in_flight, *more)
    asleep: tuple[int, float] | None = None
    ends = 0
    with Store(place, create=False) as store:
        while leader.poll() != 0:
            time.sleep(0.1)
            if leader.poll() not in (None, 0):  # the database was away
                time.sleep(1)
                leader = setting.start(place, in_flight, *more)
            if asleep is not None and time.monotonic() > asleep[1]:
                os.kill(asleep[0], signal.SIGCONT)
                asleep = None
            if calls(store) < setting.runs * (ends + 1) / (KILLS + 4):
                continue
            workers = [pid for pid in at_work(leader) if pid != leader.pid and (
                asleep is None or pid != asleep[0])]  # fmt: skip
            if len(workers) < (1 if asleep else 2):
                continue  # another is about to start
            ends += 1
            if ends == 1:
                asleep = workers[0], time.monotonic() + SECONDS + 3
                put_to_sleep(asleep[0], store)
            elif ends == KILLS // 2 + 2 and restarting:
                database.restart()
                store.engine.dispose()
            elif ends <= KILLS + 1 + restarting:
                os.kill(workers[-1], signal.SIGKILL)
    asked, found = int(server.stats(keys=False)["requests"]), cells(place)
    with Store(place, create=False) as store:
        twice = calls(store) - setting.runs
    extra, allowed = asked - setting.runs, in_flight * (KILLS + 1 + 2 * restarting)
    what = f"{KILLS} SIGKILLs, a worker asleep for {SECONDS + 3:.0f} s"
    what += ", a restart of PostgreSQL" if restarting else ", on Ray"
    return [
        Row(f"{what}: {len(found):,} cells",
            "equal to those on the file" if found == reference else "OTHER than those on the file",
            f"{setting.runs * CRITERIA:,}, none lost",
            found == reference and len(found) == setting.runs * CRITERIA),
        Row("calls stored twice, meanwhile", f"{twice}", "0", twice == 0),
        Row("requests beyond one a call, for these", f"{extra}",
            f"<= 2 x {in_flight // 2} in flight of a worker, for each ({allowed})",
            extra <= allowed),
    ]  # fmt: skip


def capped(setting: Setting, server: Child, database: Server, in_flight: int) -> Row:
    """Two workers with a cap, one of them killed three times."""
    place, cap = database.database(), setting.runs // 2
    Store(place).close()
    server.reset()
    leader = setting.start(place, in_flight, "--workers", "2", "--max-calls", str(cap))
    killed = 0
    with Store(place, create=False) as store:
        while leader.poll() is None:
            time.sleep(0.05)
            workers = [pid for pid in at_work(leader) if pid != leader.pid]
            if killed < 3 and len(workers) == 2 and calls(store) > cap * (killed + 1) / 5:
                os.kill(workers[0], signal.SIGKILL)
                killed += 1
    asked = int(server.stats(keys=False)["requests"])
    return Row(f"requests under a cap of {cap}, with {killed} SIGKILLs", f"{asked}",
               f"<= {cap}, exit 3", asked <= cap and leader.returncode == 3)  # fmt: skip


def copied(setting: Setting, database: Server) -> Row:
    """From the file to PostgreSQL and back."""
    file, there = str(setting.folder / "file.db"), database.database()
    back = str(setting.folder / "back.db")
    for source, target in ((file, there), (there, back)):
        with Store(source, create=False) as old, Store(target) as new:
            copy_store(old, new, lambda *_: None)
    same = cells(file) == cells(there) == cells(back)
    return Row("store copy to PostgreSQL and back", "equal" if same else "OTHER", "equal", same)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.1)
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
            setting = Setting(asked.runs, folder, server.base_url)
            rows = speeds(setting, database, asked.in_flight, asked.latency)
            rows += [capped(setting, server, database, asked.in_flight), copied(setting, database)]
        with spawn("--script", str(script), "--latency", str(SLOW)) as server:
            slow = Setting(asked.runs, folder, server.base_url)
            rows += kills(slow, server, database, asked.in_flight, "--workers", "2")
            if importlib.util.find_spec("ray") is not None:
                ray = ("--workers", "2", "--ray", "local")
                rows += kills(slow, server, database, asked.in_flight, *ray)
            else:
                rows.append(Row("Ray", "not installed: pip install 'agenteval[ray]'"))
    for row in rows:
        print(f"{row.what}: {row.measured}")
    return finish("scale", rows)


if __name__ == "__main__":
    sys.exit(main())
