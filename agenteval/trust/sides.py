"""Whose ratings are looked at: of judges in a store, of raters in files, of systems among them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from agenteval.errors import InputError
from agenteval.readers.scores import read_scores, score_rows, waits_for_label
from agenteval.records import Criterion, Source
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.store.experiments import unfinished_of
from agenteval.trust.pairing import PairBy
from agenteval.trust.scores import run_names, scores_from_store


def pick_source(store: Store, start: str | None, *, trials: bool = True) -> tuple[str, Source]:
    """Key and record of the source whose hash starts so, or of the latest; without `trials` of a
    judge. Raises InputError."""
    known = store.sources(trials=trials)
    if not known:
        if store.sources(trials=True):
            raise InputError("the store holds no judge's scores", "--store")
        raise InputError("the store holds no scores yet; run `agenteval quantify`", "--store")
    hits = [k for k in known if k[0].startswith(start or "")]
    if start is not None and len(hits) != 1:
        listed = ", ".join(k[:12] for k, _ in known)
        raise InputError(
            f"{len(hits)} sources start with {start!r}; there are {listed}", "--source"
        )
    return hits[-1]


def find_source(store: Store, name: str | None) -> tuple[str, Source]:
    """The judge, agent or finder of this name, or whose hash starts so; when nothing is asked the
    latest judge, in a store without one the latest of all. Raises InputError when none or several
    fit."""
    judges = store.sources()
    if name is None and judges:
        return judges[-1]
    known = store.sources(trials=True)
    named = [k for k in known if k[1].model == name]
    if len(named) == 1:
        return named[0]
    if len(named) > 1:
        listed = ", ".join(k[:12] for k, _ in named)
        raise InputError(f"{len(named)} judges have the model {name!r}: {listed}", "--source")
    if known and name is not None and not any(k.startswith(name) for k, _ in known):
        listed = ", ".join(f"{k[:12]} ({s.model})" for k, s in known)
        raise InputError(f"no judge is called {name!r}; there are: {listed}", "--source")
    return pick_source(store, name)


@dataclass(frozen=True)
class StoredJudge:
    """A judge in a store, and what it rated of one task: the versions of every run by system and
    id, and of every criterion by id, as content hashes, oldest first.

    An agent under test or a finder is one as well, which `tries`: its cases are the runs, the
    measures of its evaluator the criteria.
    """

    store: Store
    key: str
    source: Source
    tries: bool
    runs: Mapping[tuple[str, str], Sequence[str]]
    criteria: Mapping[str, Sequence[str]]

    @classmethod
    def find(cls, store: Store, name: str | None, task: str | None) -> StoredJudge:
        """The judge of this name (see `find_source`) on this task, which may be left out where
        there is one. Raises InputError."""
        key, source = find_source(store, name)
        judged = store.judged(key, variant=ORIGINAL)
        known = {run_key: run for run_key, run in store.items().items() if run_key in judged}
        tasks = sorted({str(run["task"]) for run in known.values()})
        if task is None and len(tasks) > 1:
            raise InputError(
                f"the store holds runs of several tasks, choose one: {', '.join(tasks)}", "--task"
            )
        runs: dict[tuple[str, str], list[str]] = {}
        for run_key, run in known.items():
            if task in (None, run["task"]):
                runs.setdefault((run["system"], run["run_id"]), []).append(run_key)
        if not runs:
            raise InputError(f"there are no runs of {task!r}; tasks: {', '.join(tasks)}", "--task")
        criteria: dict[str, list[str]] = {}
        for criterion_key, criterion in store.criteria_of(key).items():
            criteria.setdefault(criterion.id, []).append(criterion_key)
        tries = all(judge != key for judge, _ in store.sources())
        return cls(store, key, source, tries, runs, criteria)

    @property
    def verified(self) -> str:
        """One line about what `verify` said last of the judge."""
        stored = self.store.verdict_on(self.key)
        if stored is None:
            return "the judge was not verified: run `agenteval verify`"
        day = time.strftime("%Y-%m-%d", time.gmtime(stored.made))
        return f"verified on {day} ({stored.task}): {stored.result.judge.verdict}"

    @property
    def name(self) -> str:
        """The model with a piece of the hash: a judge is more than its model."""
        return f"{self.source.model} {self.key[:8]}"

    @property
    def unfinished(self) -> list[str]:
        """A line for each experiment of this judge that is not all there."""
        return [open_.line for open_ in unfinished_of(self.store, [self.key])]

    @property
    def newest_runs(self) -> set[str]:
        """The version used last of every run."""
        return {keys[-1] for keys in self.runs.values()}

    def table(
        self,
        criteria: Collection[str],
        runs: Collection[str],
        *,
        beside: StoredJudge | None = None,
    ) -> ScoreTable:
        """Its ratings on these criteria and runs, by content hash. Runs have the same names in the
        table of another judge of this store, `beside`."""
        judges = (self, beside or self)
        keys = {key for judge in judges for versions in judge.runs.values() for key in versions}
        return scores_from_store(
            self.store,
            self.key,
            criteria=criteria,
            runs=runs,
            variants={ORIGINAL},
            probabilities=True,
            names=run_names(self.store.items(), keys),
        )


def raters_in(path: Path) -> list[str | None]:
    """Names in the field `rater` of a file of ratings, in its order; None for rows without one."""
    named = (row.get("rater") for _, row in score_rows(path) if not waits_for_label(row))
    return list(dict.fromkeys(None if r in (None, "") else str(r) for r in named))


def chosen_raters(path: Path, wanted: Sequence[str], option: str) -> list[str | None]:
    """The raters of a file that are asked for; without a wish all. Raises InputError."""
    there = raters_in(path)
    if not there:
        raise InputError("there are no ratings: every row waits for a label", str(path))
    unknown = [rater for rater in wanted if rater not in there]
    if unknown:
        known = ", ".join(rater for rater in there if rater is not None) or "none named"
        raise InputError(f"there is no rater {unknown[0]!r} in {path}; there are: {known}", option)
    if len(there) > 1 and None in there:
        raise InputError("some rows name a rater and some do not", str(path))
    return list(wanted) or there


def file_table(
    ratings: Path | ScoreTable, criteria: Sequence[Criterion] = (), *, rater: str | None = None
) -> ScoreTable:
    """Ratings made elsewhere: those of a file (of one rater, where named), or the table itself.
    Raises InputError."""
    if isinstance(ratings, ScoreTable):
        if rater is not None:
            raise InputError("raters are known in a file of ratings only", "--source")
        return ratings
    return read_scores(ratings, criteria, rater=rater)


# ---- two sides -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What is to be compared: `systems` (at most two), `judges` (in a store by model or hash, in a
    file by rater; at most two), and the two places, which may be the same. Names of places are for
    people."""

    systems: tuple[str, ...]
    judges: tuple[str, ...]
    task: str | None
    two_places: bool
    place_names: tuple[str, str]

    @property
    def pair_by(self) -> PairBy:
        """What has to be the same within a case."""
        if not self.two_places and len(self.judges) == 2:
            return "run"
        return "case" if len(self.systems) == 2 else "system"

    def judge(self, side: int) -> str | None:
        """The judge of a side; one alone is meant for both."""
        return self.judges[min(side, len(self.judges) - 1)] if self.judges else None

    def name(self, side: int, judge: str | None) -> str:
        """What to call a side: what the sides differ in."""
        if len(self.systems) == 2:
            return self.systems[side]
        return judge if not self.two_places and judge is not None else self.place_names[side]

    def system_of(self, table: ScoreTable, side: int) -> ScoreTable:
        """The rows of the system asked for on this side; one alone is meant for both. An agent that
        was given procedures in one form only need not name it."""
        if not self.systems:
            return table
        name = self.systems[min(side, len(self.systems) - 1)]
        rows = table.of(system=name)
        in_one_form = [s for s in table.present("system") if s.startswith(f"{name} · ")]
        if not len(rows) and len(in_one_form) == 1:
            return table.of(system=in_one_form[0])
        if not len(rows):
            known = ", ".join(sorted(table.present("system"))) or "none named"
            raise InputError(
                f"there is no system {name!r}; there are: {known}", self.place_names[side]
            )
        return rows

    @property
    def about(self) -> str:
        """Where the ratings are from."""
        places = " and ".join(dict.fromkeys(self.place_names))
        system = f" (system {self.systems[0]})" if len(self.systems) == 1 else ""
        return f"ratings of {places}{system}"


@dataclass(frozen=True)
class Sides:
    """Two tables, what to call them, what is paired, and what must be said about it: `left_out`
    says of criteria, by id, why they are not compared."""

    first: ScoreTable
    second: ScoreTable
    names: tuple[str, str]
    pair_by: PairBy
    about: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()


def sides_of_tables(
    wanted: Wanted, ratings: Sequence[Path | ScoreTable], criteria: Sequence[Criterion]
) -> Sides:
    """Both sides from ratings made elsewhere. Raises InputError for what cannot be compared."""
    if not wanted.two_places and wanted.judge(0) == wanted.judge(1):
        tables = [file_table(ratings[0], criteria, rater=wanted.judge(0))] * 2
        if len(wanted.systems) < 2:
            raise InputError(f"rater {wanted.judge(0)!r} is compared with itself", "--source")
    else:
        tables = [file_table(r, criteria, rater=wanted.judge(i)) for i, r in enumerate(ratings)]
        own = [table.present("system") for table in tables]
        if not wanted.systems and [len(systems) for systems in own] == [1, 1] and own[0] != own[1]:
            wanted = replace(wanted, systems=(own[0][0], own[1][0]))  # each file is of one system
    first, second = (wanted.system_of(table, side) for side, table in enumerate(tables))
    names = wanted.name(0, wanted.judge(0)), wanted.name(1, wanted.judge(1))
    return Sides(first, second, names, wanted.pair_by, (wanted.about,))


def sides_of_stores(wanted: Wanted, stores: Sequence[Store]) -> Sides:
    """Both sides from what is stored. Raises InputError for what cannot be compared."""
    agents = _agents(wanted, stores)
    a, b = (
        StoredJudge.find(store, name, wanted.task)
        for store, name in zip(stores, agents or (wanted.judge(0), wanted.judge(1)), strict=True)
    )
    same_judge = a.key == b.key
    if not wanted.two_places and same_judge and len(wanted.judges) == 2:
        raise InputError("both name the same judge", "--source")
    if len(set(wanted.systems)) == 2 and not same_judge and not agents:
        raise InputError(
            f"the systems were judged by different judges ({a.name} and {b.name}); "
            "choose one with --source"
        )
    criteria, left_out = _same_criteria(a, b)
    # two agents have trials of the same cases, two judges ratings of the same runs
    pair_by = "case" if wanted.pair_by == "run" and a.tries and b.tries else wanted.pair_by
    tables = []
    for side, (judge, other) in enumerate(((a, b), (b, a))):
        runs = judge.newest_runs
        if pair_by == "run":
            runs = _same_texts(judge, other)
        beside = other if pair_by == "run" else None
        tables.append(wanted.system_of(judge.table(criteria, runs, beside=beside), side))
    first, second = (_without(table, left_out) for table in tables)
    if not len(first) or not len(second):
        why = "; ".join(f"{k}: {v}" for k, v in left_out.items()) or "nothing is rated"
        raise InputError(f"no criterion can be compared ({why})", "compare")
    if a.tries and b.tries:
        about = [f"trials of {a.name} and {b.name}, {a.source.evaluator}"]
    elif same_judge:
        about = [f"judge: {a.name}, {a.source.evaluator}", a.verified]
    else:
        about = [f"judges: {a.name}, {b.name}", f"A: {a.verified}", f"B: {b.verified}"]
        if wanted.two_places:
            about.append("the judges differ too: a difference may be theirs")
    unfinished = [f"{judge.name}: {line}" for judge in (a, b) for line in judge.unfinished]
    return Sides(
        first, second, (wanted.name(0, a.name), wanted.name(1, b.name)), pair_by,
        (wanted.about, *about), left_out, tuple(dict.fromkeys(unfinished)),
    )  # fmt: skip


def _agents(wanted: Wanted, stores: Sequence[Store]) -> tuple[str, str] | None:
    """The sources of the systems on both sides, where these are agents or finders whose trials are
    stored; None where they are named by runs that a judge rates. Raises InputError where the two
    were never tried by the same evaluator."""
    if not wanted.systems or wanted.judges:
        return None
    tried: list[dict[str, str]] = []
    for side, store in enumerate(stores):
        name = wanted.systems[min(side, len(wanted.systems) - 1)]
        if any(run["system"] == name for run in store.runs().values()):
            return None
        judges = {key for key, _ in store.sources()}
        sources = [(k, s) for k, s in store.sources(trials=True) if k not in judges]
        short = {s.model for _, s in sources if s.model.startswith(f"{name} · ")}
        if len(short) == 1 and all(s.model != name for _, s in sources):
            (name,) = short  # `clerk` is meant by `clerk · flowchart`, its one form
        tried.append({s.evaluator: k for k, s in sources if s.model == name})
    if not all(tried):
        return None
    common = [evaluator for evaluator in tried[0] if evaluator in tried[1]]
    if not common:
        raise InputError(
            f"no evaluator tried both ({', '.join(tried[0])}; {', '.join(tried[1])})", "compare"
        )
    return tried[0][common[-1]], tried[1][common[-1]]


def _same_criteria(a: StoredJudge, b: StoredJudge) -> tuple[set[str], dict[str, str]]:
    """The newest version of every criterion that both sides have in the same text, and why others
    are left out."""
    chosen: set[str] = set()
    left_out: dict[str, str] = {}
    for name in dict.fromkeys([*a.criteria, *b.criteria]):
        shared = [k for k in a.criteria.get(name, []) if k in b.criteria.get(name, [])]
        if shared:
            chosen.add(shared[-1])
        elif name in a.criteria and name in b.criteria:
            left_out[name] = "its text or scale differs between the two sides"
        else:
            left_out[name] = f"only {'A' if name in a.criteria else 'B'} was rated on it"
    return chosen, left_out


def _same_texts(judge: StoredJudge, other: StoredJudge) -> set[str]:
    """The newest version of every run that both judged in it; a run that both have, but in
    different texts, is no pair."""
    chosen = set()
    for run, keys in judge.runs.items():
        shared = [k for k in keys if k in other.runs.get(run, [])]
        if shared or run not in other.runs:
            chosen.add((shared or keys)[-1])
    return chosen


def _without(table: ScoreTable, criteria: Iterable[str]) -> ScoreTable:
    codes = [table.criterion.code(name) for name in criteria]
    return table.where(~np.isin(table.criterion.codes, codes))
