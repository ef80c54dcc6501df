"""Sources of ratings: the judges in a store, the raters in a file."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agenteval.analysis.scores import run_names, scores_from_store
from agenteval.errors import InputError
from agenteval.readers.scores import read_scores, score_rows, waits_for_label
from agenteval.records import Criterion, Source
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.store.experiments import unfinished_of

PAIRWISE = "utility.pairwise"  # evaluator of judges that compare two runs


def latest_source(store: Store, start: str | None, *, trials: bool = True) -> tuple[str, Source]:
    """Return key and record of the source whose hash starts with `start`, or of the latest. Without
    `trials`, only judges are considered. Raises InputError."""
    sources = store.sources(trials=trials)
    if not sources:
        if store.sources(trials=True):
            raise InputError("the store has no scores by a judge", "--store")
        raise InputError("the store has no scores yet; run `agenteval quantify`", "--store")
    hits = [source for source in sources if source[0].startswith(start or "")]
    if start is not None and len(hits) != 1:
        listed = ", ".join(key[:12] for key, _ in sources)
        raise InputError(
            f"{len(hits)} sources start with {start!r}; available: {listed}", "--source"
        )
    return hits[-1]


def resolve_source(store: Store, name: str | None) -> tuple[str, Source]:
    """Return the judge, agent or finder with this name or start of its hash; without a name, the
    latest judge of single runs, or the latest source if there is no judge.

    Raises InputError if none or several match.
    """
    judges = [judge for judge in store.sources() if judge[1].evaluator != PAIRWISE]
    if name is None and judges:
        return judges[-1]
    sources = store.sources(trials=True)
    if name is None and all(source.evaluator == PAIRWISE for _, source in sources) and sources:
        what = "the store has only comparisons of pairs; `agenteval show` prints them"
        raise InputError(what, "--source")
    matching = [source for source in sources if source[1].model == name]
    if len(matching) == 1:
        return matching[0]
    if len(matching) > 1:
        listed = ", ".join(k[:12] for k, _ in matching)
        raise InputError(f"{len(matching)} judges have the model {name!r}: {listed}", "--source")
    if sources and name is not None and not any(key.startswith(name) for key, _ in sources):
        listed = ", ".join(f"{key[:12]} ({source.model})" for key, source in sources)
        raise InputError(f"no judge is called {name!r}; available: {listed}", "--source")
    return latest_source(store, name)


@dataclass(frozen=True)
class StoredJudge:
    """A judge in a store with its ratings for one task: the versions of each run by system and id,
    and of each criterion by id, as content hashes, oldest first.

    An agent under test or a finder is treated the same way (`has_trials`): its cases are the runs
    and the measures of its evaluator are the criteria.
    """

    store: Store
    key: str
    source: Source
    runs: Mapping[tuple[str, str], Sequence[str]]
    items: Mapping[str, Mapping[str, Any]]  # of the store, or the selected ones

    @classmethod
    def find(
        cls,
        store: Store,
        name: str | None,
        task: str | None,
        *,
        among: Collection[str] | None = None,
    ) -> StoredJudge:
        """Return the judge with this name (see `resolve_source`) on this task, which is optional if
        there is only one. `among` restricts the runs (keys) that are read from a large store.
        Raises InputError."""
        key, source = resolve_source(store, name)
        judged = store.judged(key, variant=ORIGINAL) if among is None else set(among)
        items = store.items(keys=among)
        judged_runs = {run_key: run for run_key, run in items.items() if run_key in judged}
        tasks = sorted({str(run["task"]) for run in judged_runs.values()})
        if task is None and len(tasks) > 1:
            raise InputError(
                f"the store has runs of several tasks; choose one: {', '.join(tasks)}", "--task"
            )
        runs: dict[tuple[str, str], list[str]] = {}
        for run_key, run in judged_runs.items():
            if task in (None, run["task"]):
                runs.setdefault((run["system"], run["run_id"]), []).append(run_key)
        if not runs:
            raise InputError(f"there are no runs of {task!r}; tasks: {', '.join(tasks)}", "--task")
        return cls(store, key, source, runs, items)

    @cached_property
    def has_trials(self) -> bool:
        """Whether it is an agent under test or a finder."""
        return all(judge != self.key for judge, _ in self.store.sources())

    @cached_property
    def criteria(self) -> dict[str, list[str]]:
        """Versions of each rated criterion, by id."""
        criteria: dict[str, list[str]] = {}
        for criterion_key, criterion in self.store.criteria_of(self.key).items():
            criteria.setdefault(criterion.id, []).append(criterion_key)
        return criteria

    @property
    def newest_criteria(self) -> list[Criterion]:
        """The newest version of each rated criterion."""
        return list(self.store.newest_criteria(self.key).values())

    @property
    def names(self) -> dict[str, str]:
        """Name of each run by key, see `run_names`."""
        return run_names(self.items, (key for keys in self.runs.values() for key in keys))

    @property
    def verified(self) -> str:
        """Return a line about the latest `verify` of the judge."""
        stored = self.store.verdict_on(self.key)
        if stored is None:
            return "the judge was not verified: run `agenteval verify`"
        day = time.strftime("%Y-%m-%d", time.gmtime(stored.made))
        return f"verified on {day} ({stored.task}): {stored.result.judge.verdict}"

    @property
    def name(self) -> str:
        """The model with the start of the hash, because judges can share a model."""
        return f"{self.source.model} {self.key[:8]}"

    @property
    def unfinished(self) -> list[str]:
        """A line for each unfinished experiment of this judge."""
        return [open_.line for open_ in unfinished_of(self.store, [self.key])]

    @property
    def newest_runs(self) -> set[str]:
        """The latest version of each run."""
        return {keys[-1] for keys in self.runs.values()}

    @property
    def rubrics(self) -> dict[str, Criterion]:
        """The rubrics of runs that were judged by one, by run name."""
        criteria, newest = self.store.criteria_of(self.key), self.newest_runs
        names = run_names(self.store.items(), newest)
        rubrics = self.store.rubrics_of(self.key, criteria)
        return {names[run]: criteria[key] for run, key in rubrics.items() if run in newest}

    def table(
        self,
        criteria: Collection[str],
        runs: Collection[str],
        *,
        beside: StoredJudge | None = None,
    ) -> ScoreTable:
        """Return the ratings on these criteria and runs (content hashes). Run names are consistent
        with those of another judge of this store, `beside`."""
        judges = (self, beside or self)
        keys = {key for judge in judges for versions in judge.runs.values() for key in versions}
        return scores_from_store(
            self.store,
            self.key,
            criteria=criteria,
            runs=runs,
            variants={ORIGINAL},
            probabilities=True,
            names=run_names(self.items, keys),
        )


def raters_in(path: Path) -> list[str | None]:
    """Return the names in the field `rater` of a file, in order; None for rows without one."""
    raters = (row.get("rater") for _, row in score_rows(path) if not waits_for_label(row))
    return list(dict.fromkeys(None if r in (None, "") else str(r) for r in raters))


def chosen_raters(path: Path, wanted: Sequence[str], option: str) -> list[str | None]:
    """Return the `wanted` raters of a file, or all if none are given. Raises InputError."""
    present = raters_in(path)
    if not present:
        raise InputError("there are no ratings: no row has a label yet", str(path))
    unknown = [rater for rater in wanted if rater not in present]
    if unknown:
        names = ", ".join(rater for rater in present if rater is not None) or "none named"
        raise InputError(f"there is no rater {unknown[0]!r} in {path}; available: {names}", option)
    if len(present) > 1 and None in present:
        raise InputError("some rows name a rater and some do not", str(path))
    return list(wanted) or present


def file_table(
    ratings: Path | ScoreTable, criteria: Sequence[Criterion] = (), *, rater: str | None = None
) -> ScoreTable:
    """Return existing ratings: those of a file (of one rater, if named), or the table itself.
    Raises InputError."""
    if isinstance(ratings, ScoreTable):
        if rater is not None:
            raise InputError("only a file of ratings has raters", "--source")
        return ratings
    return read_scores(ratings, criteria, rater=rater)
