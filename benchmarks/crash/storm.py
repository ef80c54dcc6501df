"""Kill a command, look at what is left, start it again, until it is done; then compare."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.testing import Server
from benchmarks.crash.checks import Findings, Ledger, examine, leftovers, old_or_new
from benchmarks.crash.child import Kill
from benchmarks.crash.work import OLD, Command, Kitchen, Work, run

PER_STORE = 12  # kills after which the work is finished and compared
COMPANY = 0.5  # of the lives of a command that writes, other commands are beside it
VISITS = (("show", "--json"), ("export", "visit.csv"), ("doctor", "--json"))
FINE = (0, 1, 2)  # read; `doctor` found nothing to judge with; no store or no results yet


@dataclass
class Tally:
    """One line of the table: what was done to a command, and what it did then."""

    name: str
    kills: int = 0
    in_commits: int = 0
    in_company: int = 0  # other commands came and went on the same store
    in_files: int = 0  # a temporary file was there: the output was being written
    finished: int = 0  # stores that were brought to the end and compared
    extra_calls: int = 0
    most_extra: float = 0.0  # calls above the uninterrupted run's, for each kill of a store
    found: Findings = field(default_factory=Findings)
    differing: list[str] = field(default_factory=list)


class Storm:
    """Kills of one command. Its moments come from `rng`."""

    def __init__(self, kitchen: Kitchen, server: Server, work: Work, rng: random.Random) -> None:
        self.kitchen, self.server, self.work, self.rng = kitchen, server, work, rng
        self.tally = Tally(work.name)
        self._partials: set[Path] = set()  # temporary files that earlier kills have left

    def run(self, kills: int, *, first: Kill | None = None) -> Tally:
        """Until there were so many kills, and the last store is finished; `first` comes first."""
        self._prepare()
        planned = [first] if first is not None else []
        while self.tally.kills < kills:
            self._one_store(kills, planned)
        return self.tally

    def _prepare(self) -> None:
        """An uninterrupted run: its tables, calls, seconds and steps."""
        folder = self.kitchen.folder(self.work)
        before = self.server.count
        done = self.kitchen.finish(self.work, folder)
        self._calls = self.server.count - before
        self._seconds, self._counts = done.seconds, done.state
        self._new = {name: (folder / name).read_bytes() for name in self.work.files}
        self._tables = self.kitchen.tables(self.work, folder, done)
        if left := leftovers(folder):
            raise RuntimeError(f"{self.work.name} leaves {left} when it is not interrupted")

    def _one_store(self, kills: int, planned: list[Kill]) -> None:
        folder = self.kitchen.folder(self.work)
        ledger = Ledger()
        calls, here = self.server.count, 0
        done = None
        while done is None and here < PER_STORE and self.tally.kills < kills:
            company = self.work.commits and (bool(planned) or self.rng.random() < COMPANY)
            kill = planned.pop() if planned else self._draw()
            command = Command(self.work.argv(self.kitchen.url), folder, kill)
            about = f"{self.work.name}, kill {self.tally.kills + 1} ({kill})"
            if company:
                self._visit(command, folder, about)
            ended = command.wait()
            if ended.killed:
                here += 1
                self.tally.in_company += company
                self._count(folder, ended.state["in_commit"])
            else:
                done = ended.check(about)
            examine(folder / "s.db", ended.units, ledger, self.tally.found, about)
            for name, new in self._new.items():
                content = new.replace(b"FOLDER", str(folder).encode())
                old_or_new(folder / name, (OLD, content), self.tally.found, about)
        if done is None:
            done = self.kitchen.finish(self.work, folder)
        self._compare(folder, self.kitchen.tables(self.work, folder, done), here)
        extra = self.server.count - calls - self._calls
        self.tally.extra_calls += extra
        self.tally.most_extra = max(self.tally.most_extra, extra / max(here, 1))

    def _visit(self, command: Command, folder: Path, about: str) -> None:
        """Run other commands on the same store until this one has ended, one at least.

        One that fails, or calls the store damaged, is a finding.
        """
        for words in itertools.cycle(VISITS):
            ended = run((*words, "--store", "s.db"), folder)
            if ended.code not in FINE or "damaged" in ended.err or "Traceback" in ended.err:
                line = f"{about}: {words[0]} beside it: {ended.code}: {ended.err[-300:]}"
                self.tally.found.corrupt.append(line)
            if command.has_ended():
                return

    def _count(self, folder: Path, in_commit: int) -> None:
        self.tally.kills += 1
        self.tally.in_commits += in_commit
        made = {p for p in leftovers(folder) if not p.parent.name.endswith(".locks")}
        self.tally.in_files += bool(made - self._partials)
        self._partials = made

    def _compare(self, folder: Path, tables: dict[str, bytes], kills: int) -> None:
        self.tally.finished += 1
        for name, content in self._tables.items():
            if tables[name] != content:
                self.tally.differing.append(f"{self.work.name} after {kills} kills: {name}")
                for side, text in (("want", content), ("have", tables[name])):
                    (folder / f"{side}-{name}").write_bytes(text)

    def _draw(self) -> Kill:
        """A moment: at a random time, or at a random point of what matters for this command."""
        rng, moments = self.rng, {"time": 6, "file": 8}
        if self.work.commits:
            moments = {"write": 10, "before": 1, "after": 2, "time": 4}
            moments |= {"file": 2} if self.work.files else {}
        moment = rng.choices(list(moments), list(moments.values()))[0]
        if moment == "time":
            return Kill("time", seconds=rng.uniform(0.2, 0.9) * self._seconds)
        if moment == "file":
            return Kill("file", at=rng.randint(1, self._counts["file_steps"]))
        at = rng.randint(1, min(8, max(2, self._counts["commits"] - 1)))
        share = rng.choice((0, 0.3, 0.7, 1))
        return Kill(moment, at=at, write=round(2 ** rng.uniform(0, 4)), share=share)
