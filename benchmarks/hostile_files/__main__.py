"""Hostile files through every command that reads one: `python -m benchmarks.hostile_files`.

Each option of each command that names a file (`doors.py`; a new one without a door is a
failure) gets every file of `inputs.py` that fits its kind: encodings, folders, pipes, devices
and links, sizes, broken and cunning JSON, YAML and CSV, every field missing, doubled and of every
wrong type, ids that would be paths. The commands run in this process; those on large files run as
processes of their own, whose peak of memory is measured.

Counted: refused (exit code 2, exactly one line that names the file, nothing written), accepted as
the clean file (same result), accepted otherwise (the file holds something that can be read),
tracebacks, hangs, and wrong outcomes. Targets: none of the last three; every option has a door;
memory at most 1,200 MB; no command takes more than 20 s of CPU on a file of up to 20 MB.

`--quick` tries a part of the files at each door, drawn by `--seed`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.hostile_files.doors import DOORS, Door, missing, world
from benchmarks.hostile_files.inputs import Hostile, inputs
from benchmarks.hostile_files.run import Told, command_line, here, problem, tidy, tried
from benchmarks.outcome import Row, finish

MOST_MEMORY = 1200.0  # MB
MOST_CPU = 20.0  # seconds
_EVERYWHERE = {"encodings", "places"}


@dataclass
class Tally:
    """Counts by family; problems in words; the highest peak and CPU with their names."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    peak: tuple[float, str] = (0.0, "")
    cpu: tuple[float, str] = (0.0, "")

    def add(self, door: Door, one: Hostile, told: Told, wrong: str) -> None:
        """Take down one trial."""
        counts = self.counts.setdefault(one.family, Counter())
        counts["files"] += 1
        name = f"{door.name} <- {one.name}"
        if wrong:
            kind = "tracebacks" if told.crash else "hangs" if told.hung else "wrong"
            counts[kind] += 1
            self.problems.append(f"{name}: {wrong}")
        elif told.lines:
            counts["refused"] += 1
        else:
            counts["as clean" if one.outcome == "clean" else "accepted"] += 1
        self.peak = max(self.peak, (told.peak, name))
        self.cpu = max(self.cpu, (told.cpu, name))

    def total(self, what: str) -> int:
        """The sum over all families."""
        return sum(counts[what] for counts in self.counts.values())


def run(doors: Sequence[Door], part: int | None, seed: int, *, children: bool = True) -> Tally:
    """Try `part` files at each door (None: all), drawn anew for each; large ones in children."""
    tally = Tally()
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world(folder)
        here(["plan", "test", f"{folder}/suite.jsonl", "--agent", "scripted:chance=0", "-q",
              "--store", f"{folder}/tried.db"])  # fmt: skip
        for door in doors:
            clean = here(command_line(door, folder))
            tidy(folder)
            if clean.crash or clean.hung or clean.code not in door.fine:
                tally.problems.append(f"{door.name}: the clean file: {clean.crash or clean.err}")
                continue
            for one in _chosen(door, folder, part, random_):
                if one.large and not children:
                    continue
                told = tried(door, one, folder, child=one.large)
                tally.add(door, one, told, problem(door, one, told, clean, _left(folder, told)))
    return tally


def _left(folder: Path, told: Told) -> list[str]:
    found = tidy(folder)
    return found if told.lines else []


def _chosen(
    door: Door, folder: Path, part: int | None, random_: random.Random
) -> Iterator[Hostile]:
    """In full: all files at the first door of a clean file, and some of the long lists at others"""
    found = list(inputs((folder / door.target).read_bytes(), door.kind))
    small = [one for one in found if not one.large]
    first = next(d for d in DOORS if d.target == door.target) is door
    if part is None:
        yield from (one for one in found if first or one.family in _EVERYWHERE)
        if not first:
            rest = [one for one in small if one.family not in _EVERYWHERE]
            yield from random_.sample(rest, min(30, len(rest)))
    else:
        yield from random_.sample(small, min(part, len(small)))
        if random_.random() < 0.1:
            yield random_.choice([one for one in found if one.large])


def rows(tally: Tally, forgotten: Sequence[str]) -> list[Row]:
    """The table's lines."""
    found = [
        Row("options without a door", str(len(forgotten)), "0", not forgotten),
        Row("files tried", f"{tally.total('files'):,} at {len(DOORS)} doors"),
        Row("refused with one line", f"{tally.total('refused'):,}"),
        Row("accepted as the clean file", f"{tally.total('as clean'):,}"),
        Row("accepted otherwise", f"{tally.total('accepted'):,}"),
    ]
    for what in ("tracebacks", "hangs", "wrong"):
        count = tally.total(what)
        found.append(Row(what, str(count), "0", count == 0))
    found.append(Row("peak memory", f"{tally.peak[0]:,.0f} MB ({tally.peak[1]})",
                     f"at most {MOST_MEMORY:,.0f} MB", tally.peak[0] <= MOST_MEMORY))  # fmt: skip
    found.append(Row("most CPU", f"{tally.cpu[0]:.1f} s ({tally.cpu[1]})",
                     f"at most {MOST_CPU:.0f} s", tally.cpu[0] <= MOST_CPU))  # fmt: skip
    return found


def main() -> int:
    """Run it; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few files at each door")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--door", default="", help="only doors whose name holds this text")
    options = parser.parse_args()
    doors = [door for door in DOORS if options.door in door.name]
    tally = run(doors, 8 if options.quick else None, options.seed)
    heads = ("files", "refused", "as clean", "accepted", "tracebacks", "hangs", "wrong")
    print(f"{'family':<12}" + "".join(f"{head:>12}" for head in heads))
    for family, counts in tally.counts.items():
        print(f"{family:<12}" + "".join(f"{counts[head]:>12,}" for head in heads))
    for line in tally.problems[:200]:
        print(line)
    table = rows(tally, missing())
    return finish("hostile_files", table, problems=len(tally.problems)) or bool(tally.problems)


if __name__ == "__main__":
    sys.exit(main())
