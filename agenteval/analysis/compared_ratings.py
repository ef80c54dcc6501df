"""Load the two tables of ratings for a comparison, from files or stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agenteval.analysis.pairing import PairBy
from agenteval.analysis.rating_sources import StoredJudge, file_table
from agenteval.analysis.rubrics import ITEMS, pooled
from agenteval.errors import InputError
from agenteval.records import RUBRIC, Criterion
from agenteval.stats.scores import ScoreTable
from agenteval.store import Store


@dataclass(frozen=True)
class RatingQuery:
    """The ratings to compare: at most two `systems`, at most two `judges` (models or hashes in a
    store, raters in a file), and two places, which may be the same. Names of places are shown to
    the user."""

    systems: tuple[str, ...]
    judges: tuple[str, ...]
    task: str | None
    two_places: bool
    place_names: tuple[str, str]

    @property
    def pair_by(self) -> PairBy:
        """The unit of pairing within a case."""
        if not self.two_places and len(self.judges) == 2:
            return "run"
        return "case" if len(self.systems) == 2 else "system"

    def judge(self, side: int) -> str | None:
        """Return the judge of a side; a single judge is used for both."""
        return self.judges[min(side, len(self.judges) - 1)] if self.judges else None

    def name(self, side: int, judge: str | None) -> str:
        """Return the name of a side."""
        if len(self.systems) == 2:
            return self.systems[side]
        return judge if not self.two_places and judge is not None else self.place_names[side]

    def system_of(self, table: ScoreTable, side: int) -> ScoreTable:
        """Return the rows of this side's system; a single system is used for both. The format of an
        agent's procedures may be omitted if there is only one."""
        if not self.systems:
            return table
        name = self.systems[min(side, len(self.systems) - 1)]
        rows = table.of(system=name)
        formats = [s for s in table.present("system") if s.startswith(f"{name} · ")]
        if not len(rows) and len(formats) == 1:
            return table.of(system=formats[0])
        if not len(rows):
            names = ", ".join(sorted(table.present("system"))) or "none named"
            raise InputError(
                f"there is no system {name!r}; available: {names}", self.place_names[side]
            )
        return rows

    @property
    def about(self) -> str:
        """Return the origin of the ratings."""
        places = " and ".join(dict.fromkeys(self.place_names))
        system = f" (system {self.systems[0]})" if len(self.systems) == 1 else ""
        return f"ratings of {places}{system}"


@dataclass(frozen=True)
class ComparedRatings:
    """Two tables with their names, the unit of pairing and notes. `left_out` has the reasons why
    criteria (by id) are not compared."""

    first: ScoreTable
    second: ScoreTable
    names: tuple[str, str]
    pair_by: PairBy
    about: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    other_rubrics: int = 0  # cases left out of the rubric's row because rubrics differ
    unfinished: tuple[str, ...] = ()
    criteria: Mapping[str, str] = field(default_factory=dict)  # names by id

    def name_of(self, criterion: str) -> str:
        """Return the name of a criterion (id)."""
        return self.criteria.get(criterion, criterion)


def compared_tables(
    query: RatingQuery, ratings: Sequence[Path | ScoreTable], criteria: Sequence[Criterion]
) -> ComparedRatings:
    """Return both sides from tables of ratings. Raises InputError if they are not comparable."""
    if not query.two_places and query.judge(0) == query.judge(1):
        tables = [file_table(ratings[0], criteria, rater=query.judge(0))] * 2
        if len(query.systems) < 2:
            raise InputError(f"rater {query.judge(0)!r} is compared with itself", "--source")
    else:
        tables = [file_table(r, criteria, rater=query.judge(i)) for i, r in enumerate(ratings)]
        systems_of = [table.present("system") for table in tables]
        if (
            not query.systems
            and [len(systems) for systems in systems_of] == [1, 1]
            and systems_of[0] != systems_of[1]
        ):  # each file has one system
            query = replace(query, systems=(systems_of[0][0], systems_of[1][0]))
    first, second = (query.system_of(table, side) for side, table in enumerate(tables))
    names = query.name(0, query.judge(0)), query.name(1, query.judge(1))
    by_id = {c.id: c.name for c in criteria}
    return ComparedRatings(first, second, names, query.pair_by, (query.about,), criteria=by_id)


def compared_stores(query: RatingQuery, stores: Sequence[Store]) -> ComparedRatings:
    """Return both sides from stores. Raises InputError if they are not comparable."""
    agents = _agents(query, stores)
    a, b = (
        StoredJudge.find(store, name, query.task)
        for store, name in zip(stores, agents or (query.judge(0), query.judge(1)), strict=True)
    )
    same_judge = a.key == b.key
    if not query.two_places and same_judge and len(query.judges) == 2:
        raise InputError("both name the same judge", "--source")
    if len(set(query.systems)) == 2 and not same_judge and not agents:
        raise InputError(
            f"the systems were judged by different judges ({a.name} and {b.name}); "
            "choose one with --source"
        )
    chosen, left_out = _same_criteria(a, b)
    # two agents have trials of the same cases, two judges ratings of the same runs
    pair_by = "case" if query.pair_by == "run" and a.has_trials and b.has_trials else query.pair_by
    tables = []
    for side, (judge, other) in enumerate(((a, b), (b, a))):
        runs = judge.newest_runs
        if pair_by == "run":
            runs = _same_texts(judge, other)
        paired_with = other if pair_by == "run" else None
        tables.append(query.system_of(judge.table(chosen, runs, beside=paired_with), side))
    cases = _other_rubrics(query, a, b)
    first, second = (
        _without(_without(table, [*left_out, ITEMS]), [RUBRIC], cases) for table in tables
    )
    if cases and not any(RUBRIC in table.present("criterion") for table in (first, second)):
        left_out[RUBRIC] = "every case has different rubrics on both sides"
    if not len(first) or not len(second):
        why = "; ".join(f"{k}: {v}" for k, v in left_out.items()) or "there are no ratings"
        raise InputError(f"no criterion can be compared ({why})", "compare")
    if a.has_trials and b.has_trials:
        about = [f"trials of {a.name} and {b.name}, {a.source.evaluator}"]
    elif same_judge:
        about = [f"judge: {a.name}, {a.source.evaluator}", a.verified]
    else:
        about = [f"judges: {a.name}, {b.name}", f"A: {a.verified}", f"B: {b.verified}"]
        if query.two_places:
            about.append("the judges also differ, so a difference may come from them")
    unfinished = [f"{judge.name}: {line}" for judge in (a, b) for line in judge.unfinished]
    return ComparedRatings(
        first,
        second,
        (query.name(0, a.name), query.name(1, b.name)),
        pair_by,
        (query.about, *about),
        left_out,
        len(cases),
        tuple(dict.fromkeys(unfinished)),
        {c.id: c.name for c in pooled((*a.newest_criteria, *b.newest_criteria))},
    )


def _agents(query: RatingQuery, stores: Sequence[Store]) -> tuple[str, str] | None:
    """Return the sources of both systems if they are agents or finders with stored trials, or None
    if they are systems of judged runs. Raises InputError if no evaluator has trials of both."""
    if not query.systems or query.judges:
        return None
    tried: list[dict[str, str]] = []
    for side, store in enumerate(stores):
        name = query.systems[min(side, len(query.systems) - 1)]
        if any(run["system"] == name for run in store.runs().values()):
            return None
        judges = {key for key, _ in store.sources()}
        sources = [(k, s) for k, s in store.sources(trials=True) if k not in judges]
        short = {s.model for _, s in sources if s.model.startswith(f"{name} · ")}
        if len(short) == 1 and all(s.model != name for _, s in sources):
            (name,) = short  # `clerk` refers to `clerk · flowchart`, its only format
        tried.append({s.evaluator: k for k, s in sources if s.model == name})
    if not all(tried):
        return None
    common = [evaluator for evaluator in tried[0] if evaluator in tried[1]]
    if not common:
        raise InputError(
            f"no evaluator has run both ({', '.join(tried[0])}; {', '.join(tried[1])})", "compare"
        )
    return tried[0][common[-1]], tried[1][common[-1]]


def _same_criteria(a: StoredJudge, b: StoredJudge) -> tuple[set[str], dict[str, str]]:
    """Return the newest shared version of each criterion, and why others are left out."""
    chosen: set[str] = set()
    left_out: dict[str, str] = {}
    for name in dict.fromkeys([*a.criteria, *b.criteria]):
        shared = [k for k in a.criteria.get(name, []) if k in b.criteria.get(name, [])]
        if shared:
            chosen.update(shared if name == RUBRIC else shared[-1:])  # each run has its own rubric
        elif name in a.criteria and name in b.criteria:
            left_out[name] = "its text or scale differs between the two sides"
        else:
            left_out[name] = f"only {'A' if name in a.criteria else 'B'} was rated on it"
    return chosen, left_out


def _same_texts(judge: StoredJudge, other: StoredJudge) -> set[str]:
    """Return the newest shared version of each run. A run with different texts on the two sides is
    not a pair."""
    chosen = set()
    for run, keys in judge.runs.items():
        shared = [k for k in keys if k in other.runs.get(run, [])]
        if shared or run not in other.runs:
            chosen.add((shared or keys)[-1])
    return chosen


def _other_rubrics(query: RatingQuery, *judges: StoredJudge) -> set[str]:
    """Return the cases whose runs were judged by different rubrics on the two sides."""
    sides = []
    for side, judge in enumerate(judges):
        rubrics = judge.store.rubrics_of(judge.key)
        system = query.systems[min(side, len(query.systems) - 1)] if query.systems else None
        by_unit: dict[tuple[str, str], set[str]] = {}
        for key in judge.newest_runs & {*rubrics}:
            run = judge.items[key]
            if system in (None, run["system"]):
                unit = (run["case_key"], "" if len(query.systems) == 2 else run["system"])
                by_unit.setdefault(unit, set()).add(rubrics[key])
        sides.append(by_unit)
    first, second = sides
    return {unit[0] for unit in first if unit in second and first[unit] != second[unit]}


def _without(
    table: ScoreTable, criteria: Iterable[str], cases: Iterable[str] | None = None
) -> ScoreTable:
    """Return the table without these criteria, on all cases or on some."""
    codes = [table.criterion.code(name) for name in criteria]
    removed = np.isin(table.criterion.codes, codes)
    if cases is not None:
        removed &= np.isin(table.case.codes, [table.case.code(case) for case in cases])
    return table.where(~removed)
