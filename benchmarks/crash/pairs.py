"""Two processes on one store: other experiments, one of them killed, the same experiment."""

from __future__ import annotations

import random
import re
import socket
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.crash.checks import Findings, Ledger, examine, rows_of_both
from benchmarks.crash.work import CRITERIA, Kitchen, Work, works
from benchmarks.crash.zygote import Ended, Job

WAIT_SECONDS = 60.0


@dataclass
class Pairs:
    """How many pairs did what they should; `wrong` says of the others what they did."""

    different: int = 0
    outlived: int = 0  # of two on different experiments one was killed at work, both were finished
    same: int = 0
    taken_over: int = 0
    longest_refusal: float = 0.0  # seconds from the start of the second process to its end
    wrong: list[str] = field(default_factory=list)


def run_pairs(kitchen: Kitchen, rounds: int) -> Pairs:
    """`rounds` pairs of either kind, and of a third: different experiments, and one is killed; in
    every second pair of the same experiment, and in the first, the holder is killed and a third
    process takes over."""
    pairs = Pairs()
    moments = random.Random(rounds)
    work = works(kitchen.sizes)["quantify"]
    for number in range(rounds):
        _different(kitchen, work, pairs, f"different experiments, pair {number + 1}")
        _outlived(kitchen, work, pairs, f"one is killed, pair {number + 1}", moments)
        about = f"same experiment, pair {number + 1}"
        _same(kitchen, work, pairs, about, kill=number % 2 == 0)
    return pairs


def _job(kitchen: Kitchen, work: Work, folder: Path, seed: int) -> Job:
    argv = (*work.argv(kitchen.url), "--repeats", "1", "--seed", str(seed))
    return Job(argv, str(folder), hold=str(folder / "go"))


def _cells(folder: Path) -> dict[str, int]:
    """Number of scored cells by judge."""
    with closing(sqlite3.connect(folder / "s.db")) as db:
        rows = db.execute("SELECT source_key, status FROM results").fetchall()
    return dict(Counter(source for source, status in rows if status == "scored"))


def _held(kitchen: Kitchen, numbers: list[int]) -> bool:
    """Wait until each of them holds its experiment; False when that does not come about."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not all(kitchen.zygote.state(n)["held"] for n in numbers):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _different(kitchen: Kitchen, work: Work, pairs: Pairs, about: str) -> None:
    """Both hold their experiments at once, before either goes on; both finish."""
    folder = kitchen.folder()
    start = kitchen.zygote.start
    numbers = [start(_job(kitchen, work, folder, seed)) for seed in (0, 1)]
    if not _held(kitchen, numbers):
        pairs.wrong.append(f"{about}: not both hold their experiment")
    (folder / "go").touch()
    ended = [kitchen.zygote.wait(n) for n in numbers]
    want = kitchen.sizes.runs * len(CRITERIA)
    if [e.code for e in ended] != [0, 0]:
        pairs.wrong.append(f"{about}: {[(e.code, e.err[-300:]) for e in ended]}")
    elif sorted(_cells(folder).values()) != [want, want]:
        pairs.wrong.append(f"{about}: {_cells(folder)} cells, {want} each wanted")
    else:
        pairs.different += 1


def _outlived(
    kitchen: Kitchen, work: Work, pairs: Pairs, about: str, moments: random.Random
) -> None:
    """Both hold their experiments; one is killed at work, or the other ends first; then it is
    finished. Both have everything, and nothing acknowledged was lost in between."""
    folder, zygote = kitchen.folder(), kitchen.zygote
    jobs = [_job(kitchen, work, folder, seed) for seed in (0, 1)]
    numbers = [zygote.start(job) for job in jobs]
    if not _held(kitchen, numbers):
        pairs.wrong.append(f"{about}: not both hold their experiment")
    (folder / "go").touch()
    time.sleep(moments.uniform(0, 0.3))
    zygote.kill(numbers[0])
    ended = [zygote.wait(n) for n in numbers]
    found, ledger = Findings(), Ledger()
    said = [zygote.paths(n)[3] for n in numbers]
    shared = rows_of_both(*said)
    for units in said:
        examine(folder / "s.db", units, ledger, found, about, shared)
    again = zygote.run(jobs[0])
    want = [kitchen.sizes.runs * len(CRITERIA)] * 2
    codes = [ended[1].code, again.code]
    if codes != [0, 0] or (ended[0].code != 0 and not ended[0].killed):
        pairs.wrong.append(f"{about}: {ended[0].code} {codes}: {again.err[-300:]}")
    elif sorted(_cells(folder).values()) != want:
        pairs.wrong.append(f"{about}: {_cells(folder)} cells, {want} wanted")
    else:
        pairs.outlived += not found.all()
    pairs.wrong += found.all()


def _same(kitchen: Kitchen, work: Work, pairs: Pairs, about: str, *, kill: bool) -> None:
    """One works, the other is refused at once; the experiment of a killed one is free."""
    folder = kitchen.folder()
    zygote = kitchen.zygote
    numbers = [zygote.start(_job(kitchen, work, folder, 0)) for _ in range(2)]
    refused = zygote.first_to_end(numbers)
    holder = numbers[1 - numbers.index(refused)]
    if not _held(kitchen, [holder]):
        pairs.wrong.append(f"{about}: the other does not work")
    second = zygote.wait(refused)
    pairs.longest_refusal = max(pairs.longest_refusal, second.seconds)
    if trouble := _not_refused(second, zygote.pids[holder]):
        pairs.wrong.append(f"{about}: {trouble}")
        (folder / "go").touch()
        zygote.wait(holder)
        return
    if kill:
        zygote.kill(holder)
        zygote.wait(holder)
        owners = list(folder.glob(".*.locks/*.owner"))
        if len(owners) != 1:
            pairs.wrong.append(f"{about}: the dead one left {owners}")
        holder = zygote.start(_job(kitchen, work, folder, 0))
    (folder / "go").touch()
    first = zygote.wait(holder)
    if first.code != 0 or list(_cells(folder).values()) != [kitchen.sizes.runs * len(CRITERIA)]:
        pairs.wrong.append(f"{about}: {first.code} {first.err[-300:]} {_cells(folder)}")
        return
    pairs.same += 1
    pairs.taken_over += kill


def _not_refused(second: Ended, holder: int) -> str:
    """What is wrong with a refusal: exit code 2 and one line that names process and host."""
    lines = [line for line in second.err.splitlines() if line.startswith("agenteval: ")]
    want = f"process {holder} on {re.escape(socket.gethostname())} works on the same experiment"
    if second.code != 2 or len(lines) != 1 or not re.search(want, lines[0]):
        return f"exit code {second.code}: {second.err[-300:]}"
    return ""
