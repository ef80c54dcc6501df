"""Several judges used together: members, their experiments, and human labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from agenteval.analysis.rating_sources import chosen_raters, file_table
from agenteval.cli.running import Watch
from agenteval.engine import CostEstimate, Experiment, ExperimentResult
from agenteval.engine.judging import JudgeUnit
from agenteval.errors import InputError
from agenteval.models.factory import Model, ModelChoice
from agenteval.models.replay import ReplayTransport
from agenteval.records import Criterion, Result, Run, Source, Usage
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.text import plural
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import Criteria, Judging, Runs, criteria_for, judge_of, read_judging
from agenteval.utility.options import JudgeOptions
from agenteval.utility.panel_rules import level_of
from agenteval.utility.scorers import Scorer

if TYPE_CHECKING:
    from agenteval.models.client import Client

PeopleLabels = str | Path | ScoreTable


@dataclass(frozen=True)
class PersonsLabel:
    """A human label of a run on a criterion: a level, a value, or both."""

    label: str | None
    value: float | None


@dataclass(frozen=True)
class CombinedJudging(Judging):
    """Runs judged by several judges together.

    `members` share runs and criteria; `labels` are those of people by (run id, criterion id).
    """

    members: tuple[Judging, ...] = ()
    labels: Mapping[tuple[str, str], PersonsLabel] | None = None

    @cached_property
    def choice(self) -> ModelChoice | None:
        """None: the members have the models."""
        return None

    @cached_property
    def recording(self) -> ReplayTransport | None:
        """The recorded replies of the first member that has any."""
        return next((m.recording for m in self.members if m.recording is not None), None)

    @property
    def distributes(self) -> bool:
        """Whether every member is asked for the probabilities of levels."""
        return all(member.distributes for member in self.members)

    @property
    def sends_nothing(self) -> bool:
        """False: each member is estimated by itself."""
        return False

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The source of each member by name: its model, with a piece of the hash if needed."""
        sources = [member.evaluator(None)[0].source for member in self.members]
        count = Counter(source.model for source in sources)
        by_name = {
            s.model if count[s.model] == 1 else f"{s.model} {s.sha256[:8]}": s for s in sources
        }
        if len({s.sha256 for s in sources}) < len(sources):
            twice = next(m for m in count if count[m] > 1)
            raise InputError(f"{twice} is the same judge twice", "--judge")
        return by_name

    def checked(self) -> Self:
        """Return the judging. Raises InputError for the same judge twice, and for labels of other
        runs."""
        if len(self.sources) and self.labels is not None:
            self.labelled_items()
        return self

    def refuse_unrecorded(self, texts: Iterable[tuple[str, Sequence[Item]]]) -> None:
        """Raise InputError for the first text without a recorded judgment of a member."""
        listed = list(texts)
        for member in self.members:
            member.refuse_unrecorded(listed)

    def say_judge(self) -> None:
        """Report each member with limited abilities."""
        for member in self.members:
            member.say_judge()

    def spent(self, store: Store) -> Usage:
        """Return what all members have used so far."""
        return sum((store.usage(s.sha256) for s in self.sources.values()), start=Usage())

    async def run_member(self, name: str, rated: JudgeEvaluator, store: Store) -> ExperimentResult:
        """Let a member judge what the store lacks of these texts; a cap holds for all members."""
        member = self.members[list(self.sources).index(name)]
        evaluator, client = member.evaluator(store, spent=self.spent(store))
        self.watch.note(f"judge {name}:")
        return await member.run(replace(rated, judge=evaluator), client, store)

    async def combine(self, rated: JudgeEvaluator, store: Store) -> ExperimentResult:
        """Compute and store the results of several judges from those of the members.

        Failed results are computed again, because a member may have an answer by now.
        """
        experiment = Experiment(
            rated, store, retry_failed=True, warn=self.watch.warn, announce=False
        )
        return await experiment.run()

    async def estimate(
        self, total: CostEstimate, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> CostEstimate:
        """Return `total` plus the requests of every member."""
        for name, member in zip(self.sources, self.members, strict=True):
            total += await self.member_estimate(name, member, rated, store)
        return replace(total, budget=self.limits.budget(self.spent(store)))

    async def member_estimate(
        self, name: str, member: Judging, rated: JudgeEvaluator, store: Store
    ) -> CostEstimate:
        """Return the requests of one member for these texts."""
        if member.sends_nothing:
            calls = f"{len(rated.items) * rated.repeats} calls at most"
            return CostEstimate(about=(f"{name}: {calls}; {member.local_cost}",))
        judge, client = member.evaluator(store)
        part = await member.estimate(CostEstimate(), replace(rated, judge=judge), client, store)
        lines = tuple(replace(line, who=f"{line.who} {name}") for line in part.lines)
        return replace(part, lines=lines, about=tuple(f"{name}: {line}" for line in part.about))

    def labelled_items(self) -> list[Item]:
        """Return the runs that people labelled. Raises InputError if there are none."""
        labelled = {run for run, _ in self.labels or {}}
        items = [item for item in self.items if labelled & names_of(item[0])]
        if not items:
            raise InputError("none of the labelled runs is among the runs", "--labels")
        return items

    def label_of(self, run: Run, criterion: Criterion) -> PersonsLabel | None:
        """Return the human label of a run on a criterion."""
        places = ((name, criterion.id) for name in names_of(run))
        return next((self.labels[p] for p in places if p in (self.labels or {})), None)  # type: ignore[index]


def names_of(run: Run) -> set[str]:
    """Return the names by which labels refer to a run."""
    return {run.id, f"{run.system}/{run.id}"}


def read_labels(
    labels: PeopleLabels, criteria: Sequence[Criterion], watch: Watch
) -> dict[tuple[str, str], PersonsLabel]:
    """Return the label of each run and criterion. If several people labelled it, more than half of
    them must agree; other labels are left out and reported."""
    if isinstance(labels, ScoreTable):
        tables = [labels]
    else:
        path = Path(labels)
        raters = chosen_raters(path, (), "--labels")
        tables = [file_table(path, criteria, rater=rater) for rater in raters]
    by_id = {c.id: c for c in criteria}
    labels_by_cell: defaultdict[tuple[str, str], list[PersonsLabel]] = defaultdict(list)
    for table in (table.of(variant=ORIGINAL) for table in tables):
        names = [*table.label.names, None]  # -1: no label
        columns = (table.run.codes, table.criterion.codes, table.label.codes, table.value)
        for run, by, level, number in zip(*columns, strict=True):
            criterion = by_id.get(table.criterion.names[by])
            label, value = names[level], None if np.isnan(number) else float(number)
            if criterion is not None and (label is not None or value is not None):
                labels_by_cell[table.run.names[run], criterion.id].append(
                    PersonsLabel(level_of(criterion, label, value), value)
                )
    agreed = {}
    for place, verdicts in labels_by_cell.items():
        verdict, votes = Counter(verdicts).most_common(1)[0]
        if 2 * votes > len(verdicts):
            agreed[place] = verdict
    if len(agreed) < len(labels_by_cell):
        what = plural(len(labels_by_cell) - len(agreed), "label")
        watch.warn(f"{what} left out: fewer than half of the people agree")
    return agreed


def results_of(store: Store | None, source: Source, unit: JudgeUnit) -> dict[str, Result]:
    """Return the stored results of a source on the text and repeat of a unit, by criterion key."""
    assert store is not None, "only a source is made without a store"
    results = store.results(source.sha256, variant=unit.variant, item=unit.view.sha256)
    return {r.key.criterion: r for r in results if r.key.repeat == unit.repeat}


def vars_of(judging: Judging) -> dict[str, Any]:
    """Return the fields of a judging."""
    return {name: getattr(judging, name) for name in Judging.__dataclass_fields__}


def read_members(
    runs: Runs,
    criteria: Criteria | None,
    options: JudgeOptions,
    judges: Sequence[Any],
    watch: Watch,
    *,
    score_failed_runs: str | None = None,
) -> tuple[Judging, tuple[Judging, ...]]:
    """Read runs and criteria once, and return them with a judging for each judge.

    Raises InputError if the judges do not answer the same criteria.
    """
    settings = [replace(options, judge=judge, panel=None) for judge in judges]
    read = [judge_of(how) for how in settings]
    first = next((i for i, (judge, _) in enumerate(read) if isinstance(judge, Model)), 0)
    base = read_judging(runs, criteria, settings[first], watch, score_failed_runs=score_failed_runs)
    members = tuple(
        replace(base, judge=judge, version=version, how=how)
        for (judge, version), how in zip(read, settings, strict=True)
    )
    # Without a file of criteria, a scorer of another framework is its own criterion.
    scorers = any(isinstance(member.judge, Scorer) for member in members)
    for member in members if criteria is None and scorers else ():
        member_criteria = criteria_for(member.judge, criteria, base.task.name, Watch())
        if {c.sha256 for c in member_criteria} != {c.sha256 for c in base.criteria}:
            listed = " and ".join(
                ", ".join(c.id for c in x) for x in (base.criteria, member_criteria)
            )
            raise InputError(f"the judges answer different criteria: {listed}", "--criteria")
    return base, members
