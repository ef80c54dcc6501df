"""Malformed replies: what is read, what is not, and that nothing is ever made up.

    python -m benchmarks.malformed [--quick] [--generated 50000] [--seed 0]

corpus      the replies of tests/data/malformed, written by hand as weak models write them, each
            with the outcome that a person decided on: a label or the exact status, and the rung
generated   correct answers with one to three mutations whose effect on the outcome is known
readers     texts for the critic, the locator, the judges and simulators of workflows and the agents
            of planning, each with what it must give

Counted are replies, criteria read and unscored by status, by kind and by rung; crashes (anything
but an outcome), invented labels (a label where another one or none was right) and other
differences.
*Targets*: 0 crashes, 0 invented labels, 0 differences.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from agenteval.records import Criterion
from benchmarks.malformed import readers as malformed_readers
from benchmarks.malformed.corpus import Row, corpus, read
from benchmarks.malformed.generator import replies
from benchmarks.outcome import Row as Figure
from benchmarks.outcome import finish

__all__ = [
    "corpus",
    "malformed_readers",
    "read",
    "read_corpus",
    "read_generated",
    "read_others",
    "replies",
]
GENERATED, QUICK = 50_000, 1000
Reader = Callable[[str, Sequence[Criterion], str], tuple[dict[str, str], str | None]]


@dataclass
class Count:
    """What one group of replies gave."""

    replies: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # label or status, per criterion
    crashes: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def add(self, more: Count) -> None:
        """Take in another group."""
        self.replies += more.replies
        self.outcomes += more.outcomes
        self.crashes += more.crashes
        self.invented += more.invented
        self.other += more.other


@dataclass
class Counts:
    """By kind of row or mutation, and by rung."""

    reader: Reader = read
    kinds: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    rungs: Counter[str] = field(default_factory=Counter)

    def note(self, name: str, kind: str, case: Case) -> None:
        """Read one reply and compare."""
        count = self.kinds[kind]
        count.replies += 1
        try:
            got, rung = self.reader(case.reply, case.asked, case.finish)
        except Exception as error:  # noqa: BLE001  that is what is looked for
            count.crashes.append(f"{name}: {error!r:.200}")
            return
        self.rungs[rung or "nothing read"] += 1
        for path, want in case.expect.items():
            have = got[path]
            count.outcomes[have if have.startswith("unscored:") else "read"] += 1
            if have != want:
                where = count.other if have.startswith("unscored:") else count.invented
                where.append(f"{name} {path}: {have}, not {want}")
        if case.rung != "any" and rung != case.rung:
            count.other.append(f"{name}: rung {rung}, not {case.rung}")

    @property
    def all(self) -> Count:
        """All kinds together."""
        total = Count()
        for count in self.kinds.values():
            total.add(count)
        return total


@dataclass(frozen=True)
class Case:
    """A reply and what it must give; rung "any" is not compared."""

    reply: str
    finish: str
    asked: Sequence[Criterion]
    expect: dict[str, str]
    rung: str | None = "any"


def read_corpus(rows: Iterable[Row], reader: Reader = read) -> Counts:
    """The hand-written replies, read by `reader`."""
    counts = Counts(reader)
    for row in rows:
        case = Case(row.reply, row.finish, row.criteria, row.expect, row.rung)
        counts.note(row.id, row.kind, case)
    return counts


def read_generated(number: int, seed: int) -> Counts:
    """Generated replies, each counted under the strongest kind of its mutations."""
    counts = Counts()
    for i, made in enumerate(replies(number, seed)):
        name = f"{seed}/{i} ({', '.join(made.mutations)})"
        kind = "fatal" if "fatal" in made.kinds else max(made.kinds, key=_weight)
        counts.note(name, kind, Case(made.reply, made.finish, made.asked, made.expect))
    return counts


def _weight(kind: str) -> int:
    return ("harmless", "partial", "cut", "corrected", "fatal").index(kind)


def read_others() -> dict[str, Count]:
    """The other readers."""
    counts: dict[str, Count] = defaultdict(Count)
    for one in malformed_readers.readings():
        count = counts[one.reader]
        count.replies += 1
        try:
            got = malformed_readers.read(one.reader, one.reply)
        except Exception as error:  # noqa: BLE001  that is what is looked for
            count.crashes.append(f"{one.id}: {error!r:.200}")
            continue
        count.outcomes["refused" if got is None else "read"] += 1
        if repr(got) != repr(one.expect):  # true is not 1
            where = count.other if got is None else count.invented
            where.append(f"{one.id}: {got!r:.200}, not {one.expect!r:.200}")
    return counts


def _table(title: str, groups: dict[str, Count]) -> Table:
    statuses = sorted({s for c in groups.values() for s in c.outcomes})
    table = Table(title=title, title_justify="left")
    for name in ("kind", "replies", *statuses, "crashes", "invented", "other"):
        table.add_column(
            name.removeprefix("unscored:"), justify="left" if name == "kind" else "right"
        )
    for kind, c in groups.items():
        figures = [c.replies, *(c.outcomes[s] for s in statuses), len(c.crashes)]
        table.add_row(kind, *map(str, [*figures, len(c.invented), len(c.other)]))
    return table


def _figures(what: str, count: Count) -> list[Figure]:
    read_, total = count.outcomes["read"], sum(count.outcomes.values())
    unit = "texts" if "refused" in count.outcomes else "criteria"
    return [
        Figure(f"{what}: replies", f"{count.replies}, {read_} of {total} {unit} read"),
        Figure(f"{what}: crashes", str(len(count.crashes)), "0", not count.crashes),
        Figure(f"{what}: labels made up", str(len(count.invented)), "0", not count.invented),
        Figure(f"{what}: other differences", str(len(count.other)), "0", not count.other),
    ]


def main() -> int:
    """Run all three; see the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--generated", type=int, default=GENERATED)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console(width=150)
    rows = corpus()
    written = read_corpus(rows)
    made = read_generated(QUICK if options.quick else options.generated, options.seed)
    others = read_others()
    total = Count()
    for one in others.values():
        total.add(one)
    console.print(_table("corpus", dict(sorted(written.kinds.items()))))
    console.print(_table("generated", dict(sorted(made.kinds.items()))))
    console.print(_table("other readers", others))
    for name, counts in (("corpus", written), ("generated", made)):
        console.print(f"{name}, rungs: {dict(counts.rungs.most_common())}")
    for line in [
        line
        for count in (written.all, made.all, total)
        for line in (*count.crashes, *count.invented, *count.other)
    ][:50]:
        console.print(line, style="red", markup=False)
    figures = [
        *_figures("corpus", written.all),
        *_figures("generated", made.all),
        *_figures("other readers", total),
    ]
    more = {"rungs": dict(written.rungs), "statuses": dict(written.all.outcomes)}
    return finish("malformed", figures, **more)


if __name__ == "__main__":
    sys.exit(main())
