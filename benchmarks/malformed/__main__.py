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
from benchmarks.malformed import readers
from benchmarks.malformed.corpus import Row, corpus, read
from benchmarks.malformed.generator import replies
from benchmarks.outcome import Row as Figure
from benchmarks.outcome import finish

GENERATED, QUICK = 50_000, 1000
KINDS = ("harmless", "partial", "cut", "corrected", "fatal")  # the last one of a reply names it
Reader = Callable[[str, Sequence[Criterion], str], tuple[dict[str, str], str | None]]


@dataclass
class Count:
    """What one group of replies gave."""

    replies: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # "read" or status, per criterion
    crashes: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


@dataclass
class Counts:
    """Counts by kind of reply, and how many were read on which rung."""

    kinds: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    rungs: Counter[str] = field(default_factory=Counter)

    @property
    def all(self) -> Count:
        """All kinds together."""
        kinds = self.kinds.values()
        return Count(
            sum(c.replies for c in kinds),
            sum((c.outcomes for c in kinds), Counter()),
            [line for c in kinds for line in c.crashes],
            [line for c in kinds for line in c.invented],
            [line for c in kinds for line in c.other],
        )


def read_replies(rows: Iterable[Row], reader: Reader = read) -> Counts:
    """Read replies with `reader` and compare with what they must give; rung "any" is not."""
    counts = Counts()
    for row in rows:
        count = counts.kinds[row.kind]
        count.replies += 1
        try:
            got, rung = reader(row.reply, row.criteria, row.finish)
        except Exception as error:  # noqa: BLE001  this is what the benchmark looks for
            count.crashes.append(f"{row.id}: {error!r:.200}")
            continue
        counts.rungs[rung or "nothing read"] += 1
        for path, want in row.expect.items():
            have = got[path]
            unscored = have.startswith("unscored:")
            count.outcomes[have if unscored else "read"] += 1
            if have != want:
                wrong = count.other if unscored else count.invented
                wrong.append(f"{row.id} {path}: {have}, not {want}")
        if row.rung not in ("any", rung):
            count.other.append(f"{row.id}: rung {rung}, not {row.rung}")
    return counts


def read_generated(number: int, seed: int) -> Counts:
    """Generated replies, each counted under the strongest kind of its mutations."""
    return read_replies(
        Row(
            id=f"{seed}/{i} ({', '.join(reply.mutations)})",
            kind=max(reply.kinds, key=KINDS.index),
            criteria=reply.asked,
            reply=reply.reply,
            expect=reply.expect,
            rung="any",
            finish=reply.finish,
        )
        for i, reply in enumerate(replies(number, seed))
    )


def read_others() -> Counts:
    """The other readers, each a kind."""
    counts = Counts()
    for row in readers.readings():
        count = counts.kinds[row.reader]
        count.replies += 1
        try:
            got = readers.read(row.reader, row.reply)
        except Exception as error:  # noqa: BLE001  this is what the benchmark looks for
            count.crashes.append(f"{row.id}: {error!r:.200}")
            continue
        count.outcomes["refused" if got is None else "read"] += 1
        if repr(got) != repr(row.expect):  # true is not 1
            wrong = count.other if got is None else count.invented
            wrong.append(f"{row.id}: {got!r:.200}, not {row.expect!r:.200}")
    return counts


def _table(title: str, groups: dict[str, Count]) -> Table:
    statuses = sorted({s for c in groups.values() for s in c.outcomes})
    table = Table("kind", title=title, title_justify="left")
    for name in ("replies", *statuses, "crashes", "invented", "other"):
        table.add_column(name.removeprefix("unscored:"), justify="right")
    for kind, c in groups.items():
        figures = [c.replies, *(c.outcomes[s] for s in statuses), len(c.crashes)]
        table.add_row(kind, *map(str, [*figures, len(c.invented), len(c.other)]))
    return table


def _figures(what: str, count: Count) -> list[Figure]:
    total = sum(count.outcomes.values())
    unit = "texts" if "refused" in count.outcomes else "criteria"
    return [
        Figure(
            f"{what}: replies", f"{count.replies}, {count.outcomes['read']} of {total} {unit} read"
        ),
        Figure(f"{what}: crashes", str(len(count.crashes)), "0", not count.crashes),
        Figure(f"{what}: labels made up", str(len(count.invented)), "0", not count.invented),
        Figure(f"{what}: other differences", str(len(count.other)), "0", not count.other),
    ]


def main() -> int:
    """Run all three; see the top of the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--generated", type=int, default=GENERATED)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console(width=150)
    written = read_replies(corpus())
    generated = read_generated(QUICK if options.quick else options.generated, options.seed)
    others = read_others()
    parts = {"corpus": written, "generated": generated, "other readers": others}
    for name, counts in parts.items():
        kinds = counts.kinds if counts is others else dict(sorted(counts.kinds.items()))
        console.print(_table(name, kinds))
    for name in ("corpus", "generated"):
        console.print(f"{name}, rungs: {dict(parts[name].rungs.most_common())}")
    totals = {name: counts.all for name, counts in parts.items()}
    wrong = [line for c in totals.values() for line in (*c.crashes, *c.invented, *c.other)]
    for line in wrong[:50]:
        console.print(line, style="red", markup=False)
    figures = [figure for name, count in totals.items() for figure in _figures(name, count)]
    more = {"rungs": dict(written.rungs), "statuses": dict(totals["corpus"].outcomes)}
    return finish("malformed", figures, **more)


if __name__ == "__main__":
    sys.exit(main())
