"""SIGKILL at random moments: what is left, and what the same command makes of it.

    python -m benchmarks.crash [--quick] [--seed 0] [--workers N]

**Kills.** The real commands (`quantify`, `verify`, `criteria`, `export`, `report`, `plan test`;
`flow session` with a scripted agent and with one on a model, `flow turn`, both with a judge; `trace
locate` with a judge) run as child processes on a store of their own, with a model that answers by a
function of the request. Each is killed, looked at, started again, killed again … and at last
finished. A kill comes at a random time from the parent, or from the child itself: before, in or
after its k-th commit, at the n-th write(2) of a commit with only a part of the bytes written,
around the fsync and the new name of an output file. After each kill
a copy of the store is opened: *corrupt* counts `integrity_check`, foreign keys or tables that are
not as they must be, *lost* rows that were acknowledged and are not there, *half units* units or
calls of which only a part is there, *half files* outputs that are neither the old nor the new file.
After the last resume *differing* counts tables that are not those of an uninterrupted run byte for
byte (the command's output and files, `export` as CSV and JSONL, `show --json`, `report.html`; only
the folder's name is taken out; of trials the rows of the table too, without times and usage).
*in commits*: COMMIT had been called and had not returned. *in files*: the
temporary file of an output was there. *in company*: `show`, `export` and `doctor` came and went on
the same store, in half of the lives of commands that write. *extra calls*: requests at the server
above those of the uninterrupted run.

Targets: at least 300 kills, 30 for each of the first five commands, 20 for each of flow and trace,
60 in commits, 80 in company; nothing corrupt, lost, half or differing; extra calls at most
the number of units under way for each kill (8: two for each of 4 requests in flight; of `criteria`,
which keeps replies but no units, it is shown only). Ends with 1 when one is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from agenteval.testing import serve
from benchmarks.crash.child import Kill
from benchmarks.crash.storm import Storm, Tally
from benchmarks.crash.work import UNDER_WAY, Kitchen, Sizes, answer, works
from benchmarks.outcome import Row, finish

COMMANDS = ("quantify", "verify", "criteria", "export", "report")  # with 30 kills at least
COUNTS = ("kills", "in_commits", "in_company", "in_files", "finished", "extra_calls")
FOUND = ("corrupt", "lost", "half_units", "half_files")
AGENTS = ("flow session", "flow turn", "trace locate")  # with 20
LATENCY = 0.03  # seconds; longer than a commit takes
NONCE = r"[0-9a-f]{24}"
FULL = {
    "quantify": 60,
    "verify": 50,
    "criteria": 40,
    "export": 12,
    "export jsonl": 12,
    "export parquet": 12,
    "report": 32,
    "plan test": 20,
    "flow session": 14,
    "flow session model": 12,
    "flow turn": 24,
    "trace locate": 24,
}
# In the quick size each command is killed once, where it matters most to it.
QUICK = {
    "quantify": Kill("write", at=4, write=4, share=0.5),
    "verify": Kill("write", at=4, write=2, share=0.5),
    "criteria": Kill("write", at=2, write=2, share=0.5),
    "export": Kill("file", at=3),
    "report": Kill("file", at=2),
    "flow session": Kill("write", at=4, write=2, share=0.5),
    "trace locate": Kill("write", at=4, write=2, share=0.5),
}
SMALL = Sizes(8, 2, 1, 6, 1, users=2, traces=2, agent_trials=1, pages=False)


def measure(*, quick: bool, seed: int, workers: int = 1) -> list[Tally]:
    """Run all parts in a folder of their own, which is kept when something is wrong.

    The folder is in memory where it can be: SIGKILL takes nothing from what the system has been
    given, on a disk or not. Each worker takes commands from the list, with a server of its own.
    """
    shared = Path("/dev/shm")
    home = shared if os.access(shared, os.W_OK) else None
    scratch = Path(tempfile.mkdtemp(prefix="agenteval-crash-", dir=home))
    names = iter(QUICK if quick else FULL)

    def share(number: int) -> list[Tally]:
        with serve(answer=answer, latency=LATENCY, ignore=[NONCE], record=0) as server:
            sizes = SMALL if quick else Sizes()
            kitchen = Kitchen(scratch / str(number), server.base_url, sizes)
            done = []
            for name in names:
                began = time.monotonic()
                storm = Storm(kitchen, server, works(sizes)[name], random.Random(f"{seed} {name}"))
                first = QUICK.get(name) if quick else None
                done.append(storm.run(1 if quick else FULL[name], first=first))
                print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
            return done

    with ThreadPoolExecutor(workers) as pool:
        tallies = [tally for part in pool.map(share, range(workers)) for tally in part]
    if wrong(tallies):
        print(f"kept for inspection: {scratch}", file=sys.stderr)
    else:
        shutil.rmtree(scratch)
    return tallies


def wrong(tallies: Sequence[Tally]) -> list[str]:
    """Everything that is not as it must be, in words."""
    return [line for t in tallies for line in t.found.all() + t.differing]


def merged(tallies: Sequence[Tally]) -> list[Tally]:
    """One line for each command: the forms of `export` are one."""
    lines: dict[str, Tally] = {}
    for tally in tallies:
        name = next((n for n in ("export", "flow session") if tally.name.startswith(n)), tally.name)
        line = lines.setdefault(name, Tally(name))
        for count in COUNTS:
            setattr(line, count, getattr(line, count) + getattr(tally, count))
        line.most_extra = max(line.most_extra, tally.most_extra)
        for kind in FOUND:
            getattr(line.found, kind).extend(getattr(tally.found, kind))
        line.differing += tally.differing
    return list(lines.values())


def table(lines: Sequence[Tally]) -> Table:
    """The figures of all commands."""
    shown = Table()
    for head in ("command", *COUNTS, *FOUND, "differing", "extra calls a kill"):
        shown.add_column(head.replace("_", " "), justify="left" if head == "command" else "right")
    for t in lines:
        figures = [getattr(t, name) for name in COUNTS]
        figures += [len(getattr(t.found, kind)) for kind in FOUND] + [len(t.differing)]
        shown.add_row(t.name, *map(str, figures), f"{t.extra_calls / max(t.kills, 1):.1f}")
    return shown


def rows_of(tallies: Sequence[Tally], *, quick: bool) -> list[Row]:
    """The figures with their targets."""
    lines = merged(tallies)
    least = min(t.kills for t in lines if t.name in COMMANDS)
    agents = min((t.kills for t in lines if t.name in AGENTS), default=0)
    counted = (  # what, number, target, target with --quick
        ("kills by SIGKILL", sum(t.kills for t in lines), 300, 7),
        ("fewest kills of a command", least, 30, 1),
        ("kills within COMMIT", sum(t.in_commits for t in lines), 60, 1),
        ("fewest kills of a flow or trace command", agents, 20, 1),
        ("kills with other commands beside", sum(t.in_company for t in lines), 80, 3),
    )
    rows = []
    for what, number, full, small in counted:
        goal = small if quick else full
        rows.append(Row(what, str(number), f">= {goal}", number >= goal))
    counts = {
        "databases corrupt": sum(len(t.found.corrupt) for t in lines),
        "acknowledged rows lost": sum(len(t.found.lost) for t in lines),
        "half units": sum(len(t.found.half_units) for t in lines),
        "half output files": sum(len(t.found.half_files) for t in lines),
        "tables that differ after resume": sum(len(t.differing) for t in lines),
    }
    rows += [Row(what, str(number), "0", number == 0) for what, number in counts.items()]
    most = max(t.most_extra for t in lines if t.name in ("quantify", "verify", *AGENTS))
    what = "extra calls for each kill, most of a store"
    rows.append(Row(what, f"{most:.1f}", f"<= {UNDER_WAY}", most <= UNDER_WAY))
    return rows


def main() -> int:
    """Run, print the table, then the rows as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="7 kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="default: 1 for --quick, else one per core")
    options = parser.parse_args()
    began = time.monotonic()
    workers = options.workers or (1 if options.quick else min(4, os.cpu_count() or 1))
    measured = measure(quick=options.quick, seed=options.seed, workers=workers)
    Console(width=160).print(table(merged(measured)))
    for line in wrong(measured):
        print(f"wrong: {line}")
    rows = rows_of(measured, quick=options.quick)
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    seconds = round(time.monotonic() - began, 1)
    return finish("crash", rows, seconds=seconds, wrong=wrong(measured)[:50])


if __name__ == "__main__":
    sys.exit(main())
