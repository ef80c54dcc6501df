"""Flag runs whose text seems to address the judge, for tables, JSON and pages.

Flags are computed from the texts for each table and never stored; scores do not depend on them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from agenteval.analysis.scores import newest_runs, run_names
from agenteval.readers.injection import texts_signs, view_signs
from agenteval.records import Run, View
from agenteval.store import Store

CONSTANT = "one output for several problems"

_NAMED = 5  # runs listed in a line
_PROBLEMS = 3  # minimum problems with the same answer of a system
_LONG = 40  # minimum characters; short answers like "B" may be right several times


@dataclass(frozen=True, slots=True)
class Flag:
    """A run and the names of the signs in its text. `system` is None if unknown."""

    run: str
    system: str | None
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """The flagged runs among `examined` runs."""

    found: tuple[Flag, ...] = ()
    examined: int = 0

    @property
    def line(self) -> str:
        """`3 of 40 runs have text that seems to address the judge: ...`, or ""."""
        if not self.found:
            return ""
        often = Counter(f.run for f in self.found)
        flagged_runs = "; ".join(
            # run names may repeat across systems
            f.run
            + (f" of {f.system}" if often[f.run] > 1 and f.system is not None else "")
            + f" ({', '.join(f.signs)})"
            for f in self.found[:_NAMED]
        )
        more = len(self.found) - _NAMED
        tail = f"; and {more} more" if more > 0 else ""
        systems_of = [f.system for f in self.found if f.system not in (None, "unnamed")]
        systems = Counter(map(str, systems_of))
        split = ", ".join(f"{name} {n}" for name, n in sorted(systems.items()))
        return (
            f"{len(self.found)} of {self.examined} runs have text that seems to address the judge"
            f"{f' (by system: {split})' if split else ''}: {flagged_runs}{tail}"
        )

    @property
    def tile(self) -> tuple[str, str]:
        """`3 of 40` and a caption, for the head of a page."""
        return f"{len(self.found):,} of {self.examined:,}", "address the judge"

    def json(self) -> list[dict[str, Any]]:
        """Return one entry per flagged run."""
        return [{"run": f.run, "system": f.system, "signs": list(f.signs)} for f in self.found]


@dataclass(frozen=True, slots=True)
class Examined:
    """A run as the judge sees it, and the names of the signs in its texts."""

    run: str
    system: str | None
    problem: str
    answer: str
    signs: tuple[str, ...]


def flags_among(runs: Iterable[Examined]) -> Flags:
    """Return the runs with a sign, in order.

    Besides signs in the text, flag systems that give the same long answer to three or more
    different problems, like null models (arXiv 2410.07137); case and white space are ignored.
    """
    rows: list[tuple[str, str | None, tuple[str, ...], tuple[str | None, int] | None]] = []
    problems: defaultdict[tuple[str | None, int], set[int]] = defaultdict(set)
    for examined in runs:
        answer = _folded(examined.answer)
        key = (examined.system, hash(answer)) if len(answer) >= _LONG else None
        if key is not None:
            problems[key].add(hash(_folded(examined.problem)))
        rows.append((examined.run, examined.system, examined.signs, key))
    flags = []
    for run, system, signs, key in rows:
        constant = key is not None and len(problems[key]) >= _PROBLEMS
        if constant or signs:
            flags.append(Flag(run, system, (*signs, *[CONSTANT] * constant)))
    return Flags(tuple(flags), len(rows))


def flags_of(items: Iterable[tuple[Run, View]]) -> Flags:
    """Return the flags of runs with their views."""
    return flags_among(
        Examined(
            run.id,
            run.system,
            view.problem,
            view.trajectory,
            tuple(sign.name for sign in view_signs(view)),
        )
        for run, view in items
    )


def stored_flags(store: Store, run_ids: Collection[str], source_key: str) -> Flags:
    """Return the flags of original runs (ids), from the texts last judged by the source."""
    judged, stored_runs = store.judged(source_key, variant="original"), store.runs()
    names = run_names(stored_runs, newest_runs(stored_runs, judged))
    keys = {key: run for key, run in sorted(names.items(), key=itemgetter(1)) if run in run_ids}

    def examined() -> Iterator[Examined]:
        for key, body in store.bodies(keys):
            problem, trajectory = body["problem"], body["trajectory"]
            signs = tuple(s.name for s in texts_signs((problem, trajectory)))
            yield Examined(keys[key], stored_runs[key]["system"], problem, trajectory, signs)

    flags = flags_among(examined())
    return Flags(tuple(sorted(flags.found, key=lambda flag: flag.run)), flags.examined)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
