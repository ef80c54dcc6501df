"""SIGKILL at random moments: what is left, and what the same command makes of it.

    python -m benchmarks.crash [--quick] [--seed 0] [--workers N]

**Kills.** The real commands (`quantify`, `verify`, `criteria`, `export`, `report`, `plan test`;
`flow session` with a scripted agent and with one on a model, `flow turn`, both with a judge; `trace
locate` with a judge) run as child processes on a store of their own, with a model that answers by a
function of the request. Each is killed, looked at, started again, killed again … and at last
finished. A kill comes at a random time from the parent, or from the child itself: before, in or
after its k-th commit, at the n-th write(2) of a commit with only a part of the bytes written,
around the fsync and the new name of an output file, at the n-th call of a function. After each kill
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
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash.parts import FULL, QUICK, run_parts
from benchmarks.crash.storm import Tally
from benchmarks.crash.work import UNDER_WAY
from benchmarks.outcome import Row, finish

COMMANDS = ("quantify", "verify", "criteria", "export", "report")  # with 30 kills at least
COUNTS = ("kills", "in_commits", "in_company", "in_files", "finished", "extra_calls")
AGENTS = ("flow session", "flow turn", "trace locate")  # with 20


@dataclass(frozen=True)
class Measured:
    """Everything that the table is made from. `seconds`: what each part took, by its name."""

    tallies: tuple[Tally, ...]
    seconds: tuple[tuple[str, float], ...] = ()


def measure(*, quick: bool, seed: int, workers: int = 1) -> Measured:
    """Run all parts in a folder of their own, which is kept when something is wrong.

    The folder is in memory where it can be: SIGKILL takes nothing from what the system has been
    given, on a disk or not.
    """
    shared = Path("/dev/shm")
    home = shared if os.access(shared, os.W_OK) else None
    scratch = Path(tempfile.mkdtemp(prefix="agenteval-crash-", dir=home))
    scratch.chmod(0o755)
    parts = run_parts(scratch, quick=quick, seed=seed, workers=workers)
    found = {part.name: part.result for part in parts}
    measured = Measured(
        tuple(found[name] for name in (QUICK if quick else FULL)),
        tuple((part.name, round(part.seconds, 1)) for part in parts),
    )
    if wrong(measured):
        print(f"kept for inspection: {scratch}", file=sys.stderr)
    else:
        shutil.rmtree(scratch)
    return measured


def wrong(measured: Measured) -> list[str]:
    """Everything that is not as it must be, in words."""
    return [line for t in measured.tallies for line in t.found.all() + t.differing]


def merged(tallies: Sequence[Tally]) -> list[Tally]:
    """One line for each command: the forms of `export` are one."""
    lines: dict[str, Tally] = {}
    for tally in tallies:
        name = next((n for n in ("export", "flow session") if tally.name.startswith(n)), tally.name)
        line = lines.setdefault(name, Tally(name))
        for count in COUNTS:
            setattr(line, count, getattr(line, count) + getattr(tally, count))
        line.most_extra = max(line.most_extra, tally.most_extra)
        for kind in ("corrupt", "lost", "half_units", "half_files"):
            getattr(line.found, kind).extend(getattr(tally.found, kind))
        line.differing += tally.differing
    return list(lines.values())


def table(lines: Sequence[Tally]) -> str:
    """The figures of all commands as text."""
    head = (
        "command",
        "kills",
        "in commits",
        "in company",
        "in files",
        "stores",
        "corrupt",
        "lost",
        "half units",
        "half files",
        "differing",
        "extra calls",
        "a kill",
    )
    rows: list[tuple[object, ...]] = [head]
    for t in lines:
        f = t.found
        rows.append(
            (
                t.name,
                t.kills,
                t.in_commits,
                t.in_company,
                t.in_files,
                t.finished,
                len(f.corrupt),
                len(f.lost),
                len(f.half_units),
                len(f.half_files),
                len(t.differing),
                t.extra_calls,
                f"{t.extra_calls / max(t.kills, 1):.1f}",
            )
        )
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            str(v).ljust(w) if i == 0 else str(v).rjust(w)
            for i, (v, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def rows_of(measured: Measured, *, quick: bool) -> list[Row]:
    """The figures with their targets."""
    lines = merged(measured.tallies)
    kills, commits = sum(t.kills for t in lines), sum(t.in_commits for t in lines)
    least = min(t.kills for t in lines if t.name in COMMANDS)
    agents = min((t.kills for t in lines if t.name in AGENTS), default=0)
    beside = sum(t.in_company for t in lines)
    want = (7, 1, 1, 1, 3) if quick else (300, 30, 60, 20, 80)
    rows = [
        Row("kills by SIGKILL", str(kills), f">= {want[0]}", kills >= want[0]),
        Row("fewest kills of a command", str(least), f">= {want[1]}", least >= want[1]),
        Row(
            "fewest kills of a flow or trace command",
            str(agents),
            f">= {want[3]}",
            agents >= want[3],
        ),
        Row("kills within COMMIT", str(commits), f">= {want[2]}", commits >= want[2]),
        Row("kills with other commands beside", str(beside), f">= {want[4]}", beside >= want[4]),
    ]
    counts = {
        "databases corrupt": [x for t in lines for x in t.found.corrupt],
        "acknowledged rows lost": [x for t in lines for x in t.found.lost],
        "half units": [x for t in lines for x in t.found.half_units],
        "half output files": [x for t in lines for x in t.found.half_files],
        "tables that differ after resume": [x for t in lines for x in t.differing],
    }
    rows += [Row(what, str(len(found)), "0", not found) for what, found in counts.items()]
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
    print(table(merged(measured.tallies)))
    for line in wrong(measured):
        print(f"wrong: {line}")
    rows = rows_of(measured, quick=options.quick)
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    seconds = round(time.monotonic() - began, 1)
    parts = dict(measured.seconds)
    return finish("crash", rows, seconds=seconds, parts=parts, wrong=wrong(measured)[:50])


if __name__ == "__main__":
    sys.exit(main())
