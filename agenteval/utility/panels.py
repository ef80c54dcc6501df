"""Several judges as one: members judge, and their stored results become the panel's results.

Each member is an experiment and a source of its own, so its results are shared with commands that
use it alone. The panel is a source too: its parameters hold the rule and the members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.analysis.agreement import mean_over_cases
from agenteval.analysis.rating_sources import chosen_raters, file_table
from agenteval.cli.running import Watch, why_stopped
from agenteval.engine import CostEstimate, Experiment, ExperimentResult, Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key
from agenteval.errors import InputError
from agenteval.models.factory import Model, ModelChoice
from agenteval.models.replay import ReplayTransport
from agenteval.records import CallRecord, Criterion, Failure, Result, Run, Score, Source, Usage
from agenteval.records.table import Estimate, Table, column, table_of
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.answers import NoAnswer, result_of
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import (
    Criteria,
    Judging,
    JudgingStopped,
    Runs,
    criteria_for,
    judge_of,
    read_judging,
)
from agenteval.utility.options import JudgeOptions
from agenteval.utility.panel_rules import (
    MEAN,
    OPTION,
    ChosenRule,
    LabeledCell,
    PanelRule,
    choose_rule,
    errors_of,
    fit,
    level_of,
)

if TYPE_CHECKING:
    from agenteval.models.client import Client

Labels = str | Path | ScoreTable


@dataclass(frozen=True)
class PersonsLabel:
    """What people say of a run on a criterion: a level, a value, or both."""

    label: str | None
    value: float | None


@dataclass(frozen=True)
class CombinedJudging(Judging):
    """Runs that several judges judge together.

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
        """Whether all members compute in this process."""
        return all(member.sends_nothing for member in self.members)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The source of each member by name: its model, with a piece of the hash if needed."""
        sources = [member.evaluator(None)[0].source for member in self.members]
        count = Counter(source.model for source in sources)
        named = {
            s.model if count[s.model] == 1 else f"{s.model} {s.sha256[:8]}": s for s in sources
        }
        if len({s.sha256 for s in sources}) < len(sources):
            twice = next(m for m in count if count[m] > 1)
            raise InputError(f"{twice} is the same judge twice", "--judge")
        return named

    def refuse_unrecorded(self, texts: Iterable[tuple[str, Sequence[Item]]]) -> None:
        """Raise InputError for the first text without a recorded judgment of a member."""
        listed = list(texts)
        for member in self.members:
            member.refuse_unrecorded(listed)

    def say_judge(self) -> None:
        """Report each member with limited abilities."""
        for member in self.members:
            member.say_judge()

    def usage(self, store: Store, source_key: str) -> Usage:
        """Return what all members have used so far."""
        return sum((store.usage(s.sha256) for s in self.sources.values()), start=Usage())

    async def run_member(self, name: str, rated: JudgeEvaluator, store: Store) -> ExperimentResult:
        """Let a member judge what the store lacks of these texts; a cap holds for all members."""
        member = self.members[list(self.sources).index(name)]
        evaluator, client = member.evaluator(store, spent=self.usage(store, ""))
        self.watch.note(f"judge {name}:")
        return await member.run(replace(rated, judge=evaluator), client, store)

    async def combine(self, rated: JudgeEvaluator, store: Store) -> ExperimentResult:
        """Compute and store the results of several judges from those of the members."""
        experiment = Experiment(
            rated, store, notify=self.watch.note, warn=self.watch.warn, announce=False
        )
        return await experiment.run(self.watch.progress)

    async def estimate(
        self, total: CostEstimate, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> CostEstimate:
        """Return `total` plus the requests of every member."""
        for name, member in zip(self.sources, self.members, strict=True):
            total += await self.member_estimate(name, member, rated, store)
        return replace(total, budget=self.limits.budget(self.usage(store, "")))

    async def member_estimate(
        self, name: str, member: Judging, rated: JudgeEvaluator, store: Store
    ) -> CostEstimate:
        """Return the requests of one member for these texts."""
        if member.sends_nothing:
            return CostEstimate(about=(f"{name}: {member.local_cost}",))
        judge, client = member.evaluator(store)
        part = await member.estimate(CostEstimate(), replace(rated, judge=judge), client, store)
        lines = tuple(replace(line, who=f"{line.who} {name}") for line in part.lines)
        return replace(part, lines=lines, about=tuple(f"{name}: {line}" for line in part.about))

    def labeled_items(self, labels: Mapping[tuple[str, str], PersonsLabel]) -> list[Item]:
        """Return the runs that people labeled. Raises InputError if there are none."""
        labeled = {run for run, _ in labels}
        items = [item for item in self.items if labeled & names_of(item[0])]
        if not items:
            raise InputError("none of the labeled runs is among the runs", "--labels")
        return items

    def label_of(self, run: Run, criterion: Criterion) -> PersonsLabel | None:
        """Return what people say of a run on a criterion."""
        places = ((name, criterion.id) for name in names_of(run))
        return next((self.labels[p] for p in places if p in (self.labels or {})), None)  # type: ignore[index]


def names_of(run: Run) -> set[str]:
    """Return the names by which labels refer to a run."""
    return {run.id, f"{run.system}/{run.id}"}


def read_labels(
    labels: Labels, criteria: Sequence[Criterion], watch: Watch
) -> dict[tuple[str, str], PersonsLabel]:
    """Return the label of each run and criterion. Where several people labeled it, more than half
    of them must agree; what they do not agree on is left out and reported."""
    if isinstance(labels, ScoreTable):
        tables = [labels]
    else:
        path = Path(labels)
        raters = chosen_raters(path, (), "--labels")
        tables = [file_table(path, criteria, rater=rater) for rater in raters]
    by_id = {c.id: c for c in criteria}
    said: defaultdict[tuple[str, str], list[PersonsLabel]] = defaultdict(list)
    for table in (table.of(variant=ORIGINAL) for table in tables):
        for i in range(len(table)):
            place = (
                table.run.names[table.run.codes[i]],
                table.criterion.names[table.criterion.codes[i]],
            )
            label = table.label.names[table.label.codes[i]] if table.label.codes[i] >= 0 else None
            value = None if np.isnan(table.value[i]) else float(table.value[i])
            if place[1] in by_id and (label is not None or value is not None):
                said[place].append(PersonsLabel(level_of(by_id[place[1]], label, value), value))
    agreed = {}
    for place, verdicts in said.items():
        verdict, votes = Counter(verdicts).most_common(1)[0]
        if 2 * votes > len(verdicts):
            agreed[place] = verdict
    if len(agreed) < len(said):
        what = plural(len(said) - len(agreed), "label")
        watch.warn(f"{what} left out: fewer than half of the people agree")
    return agreed


# -- panels ----------------------------------------------------------------------------------------


class Panel:
    """Gives the panel's answer from the stored results of its members."""

    def __init__(self, rule: PanelRule, members: Mapping[str, Source], store: Store | None) -> None:
        self.rule, self.members, self.store = rule, members, store
        parameters: dict[str, Any] = {
            "rule": rule.name,
            "members": [source.sha256 for source in members.values()],
        }
        if rule.weights:
            parameters["weights"] = {name: [*w] for name, w in rule.weights.items()}
        self.source = Source(
            evaluator="utility.panel",
            version=1,
            model=f"{rule.name} of {', '.join(members)}",
            parameters=parameters,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return all criteria together."""
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion: a Failure if a member has no answer. Raises StoreError.

        It is never computed from fewer members: the Failure has the status and names the member.
        """
        stored = {
            name: results_of(self.store, source, unit) for name, source in self.members.items()
        }
        results = tuple(
            self._combined(unit, criterion, {n: s.get(criterion.sha256) for n, s in stored.items()})
            for criterion in unit.criteria
        )
        return Outcome(results, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    def _combined(
        self, unit: JudgeUnit, criterion: Criterion, results: Mapping[str, Result | None]
    ) -> Result:
        key = cell_key(unit, criterion, self.source.sha256)
        votes = {name: r for name, r in results.items() if isinstance(r, Score)}
        if len(votes) < len(results):
            name, result = next((n, r) for n, r in results.items() if not isinstance(r, Score))
            answer = NoAnswer("error:infrastructure", f"{name}: no stored result")
            if isinstance(result, Failure):
                answer = NoAnswer(result.status, f"{name}: {result.message}"[:500])
            return result_of(criterion, key, answer)
        combined = result_of(criterion, key, self.rule.combine(criterion, votes))
        if not isinstance(combined, Score):
            return combined
        statuses = {vote.status for vote in votes.values()}
        members = {name: vote.label or vote.value for name, vote in votes.items()}
        return combined.model_copy(
            update={
                "status": statuses.pop() if len(statuses) == 1 else combined.status,
                "evidence": {"members": members},
            }
        )


def results_of(store: Store | None, source: Source, unit: JudgeUnit) -> dict[str, Result]:
    """Return the stored results of a source on the text and repeat of a unit, by criterion key."""
    assert store is not None, "only a source is made without a store"
    results = store.results(source.sha256, variant=unit.variant, item=unit.view.sha256)
    return {r.key.criterion: r for r in results if r.key.repeat == unit.repeat}


@dataclass(frozen=True)
class PanelJudging(CombinedJudging):
    """Runs that a panel judges by a rule, which labels may decide."""

    rule: PanelRule = field(default_factory=lambda: PanelRule(MEAN))
    chosen: ChosenRule | None = None

    def evaluator(
        self, store: Store | None, *, spent: Usage | None = None, **changes: Any
    ) -> tuple[RunJudge, Client | None]:
        """Return the panel; it has no client."""
        if changes:
            raise InputError("probe each member of a panel by itself", "--probes")
        return Panel(self.rule, self.sources, store), None

    async def prepared(self, store: Store) -> PanelJudging:
        """Judge the labeled runs and choose the rule, if labels decide it."""
        if not self.rule.needs_labels:
            return self
        labels = self.labels or {}
        items = self.labeled_items(labels)
        rated = JudgeEvaluator.of(self.evaluator(None)[0], items, self.criteria, self.repeats)
        for name in self.sources:
            ended = await self.run_member(name, rated, store)
            if ended.stopped:
                raise JudgingStopped(why_stopped(ended, "calls not made"))
        cells = list(self._labeled_cells(store))
        chosen = choose_rule(self.rule, self.criteria, cells, self.seed)
        if len(chosen.errors) > 1:
            listed = ", ".join(f"{name} {error:.3f}" for name, error in chosen.errors.items())
            cases = len({cell.case for cell in chosen.fitted})
            self.watch.warn(
                f"rule chosen on {plural(cases, 'labeled case')}: {chosen.rule.name} (mean errors: "
                f"{listed})"
            )
        return replace(self, rule=chosen.rule, chosen=chosen)

    async def run_experiment(
        self, rated: JudgeEvaluator, client: Client | None, store: Store, *, announce: bool = True
    ) -> ExperimentResult:
        """Let every member judge what the store lacks, then compute the panel's results."""
        for name in self.sources:
            ended = await self.run_member(name, rated, store)
            if ended.stopped:
                return ended
        return await self.combine(rated, store)

    def _labeled_cells(self, store: Store) -> Iterator[LabeledCell]:
        """Yield labeled cells that all members answered; a label that is not used is reported."""
        labels, unanswered = self.labels or {}, 0
        for run, view in self.labeled_items(labels):
            for repeat in range(self.repeats):
                unit = JudgeUnit(run, view, self.criteria, repeat)
                stored = {n: results_of(store, s, unit) for n, s in self.sources.items()}
                for criterion in self.criteria:
                    label = self.label_of(run, criterion)
                    if criterion.judge or label is None:
                        continue
                    results = {n: s.get(criterion.sha256) for n, s in stored.items()}
                    votes = {n: r for n, r in results.items() if isinstance(r, Score)}
                    values = [vote.value for vote in votes.values()]
                    if len(votes) < len(results) or (criterion.ordered and None in values):
                        unanswered += 1
                        continue
                    yield LabeledCell(criterion, case_key(run), votes, label.label, label.value)
        if unanswered:
            self.watch.warn(f"{plural(unanswered, 'label')} not used: a member has no answer")

    def tables(self, store: Store, rated: JudgeEvaluator) -> tuple[Table, ...]:
        """Return the panel beside its members: mean, error against labels, requests and cost."""
        cells: Sequence[LabeledCell] = ()
        if self.labels is not None:
            cells = self.chosen.held_out if self.chosen else list(self._labeled_cells(store))
        items = {view.sha256 for _, view in rated.items}
        criteria = {c.sha256 for c in self.criteria}
        sources = {f"panel ({self.rule.name})": rated.source, **self.sources}
        means = {n: _mean(store, s, items, criteria) for n, s in sources.items()}
        rows = []
        for name, source in sources.items():
            is_panel = source is rated.source
            usage = self.usage(store, "") if is_panel else store.usage(source.sha256)
            rows.append(
                _MemberRow(
                    name,
                    means[name],
                    *self._errors(None if is_panel else name, cells),
                    usage.requests,
                    usage.cost,
                )
            )
        notes = []
        if cells:
            cases = plural(len({cell.case for cell in cells}), "labeled case")
            held_out = ", on which the rule was not chosen" if self.chosen else ""
            notes.append(
                f"error: mean of |answer - label| as a share of the scale, {cases}{held_out}"
            )
            notes.append(
                "without it: error of the other members minus the panel's; above 0 it improves the panel"
            )
        return (
            table_of(
                _MemberRow,
                "panel",
                "panel and members",
                rows,
                notes=notes,
                drop_empty=("error", "without", "cost"),
            ),
        )

    def _errors(
        self, member: str | None, cells: Sequence[LabeledCell]
    ) -> tuple[Estimate | None, Estimate | None]:
        """Return the error of the panel (None) or of a member, and the change without it."""
        if not cells:
            return None, None
        panel = errors_of(self.rule, cells)
        if member is None:
            return _estimate(panel, cells, (0, 1)), None
        alone = [cell.error(_said(cell.votes[member])) for cell in cells]
        others = [cell.without(member) for cell in cells]
        fitted = [cell.without(member) for cell in (self.chosen.fitted if self.chosen else ())]
        rule = self.rule
        if rule.weights:
            rule = fit(PanelRule(rule.name), fitted, rule.weights)
        elif rule.name.startswith("veto"):
            votes = min(int(rule.name.partition(":")[2]), len(self.members) - 1)
            rule = PanelRule(f"veto:{votes}")
        changes = [
            None if a is None or b is None else a - b
            for a, b in zip(errors_of(rule, others), panel, strict=True)
        ]
        return _estimate(alone, cells, (0, 1)), _estimate(changes, cells, (-1, 1))


@dataclass(frozen=True)
class _MemberRow:
    judge: str = column("judge")
    mean: float | None = column("mean", "number", "mean value of all ratings")
    error: Estimate | None = column("error [95%]\nagainst labels", "number")
    without: Estimate | None = column("without it\n[95%]", "signed")
    requests: int = column("requests", "count")
    cost: float | None = column("cost", "number")


def _said(vote: Score) -> Any:
    from agenteval.utility.answers import LevelAnswer

    return LevelAnswer(
        vote.label, vote.value, "exact", not_applicable=vote.status == "not_applicable"
    )


def _mean(store: Store, source: Source, items: set[str], criteria: set[str]) -> float | None:
    values = [
        value
        for item, variant, criterion, _, _, _, value, _ in store.cells(
            source.sha256, variant=ORIGINAL
        )
        if item in items and criterion in criteria and value is not None
    ]
    return float(np.mean(values)) if values else None


def _estimate(
    values: Sequence[float | None], cells: Sequence[LabeledCell], bounds: tuple[float, float]
) -> Estimate:
    pairs = [(v, cell.case) for v, cell in zip(values, cells, strict=True) if v is not None]
    if not pairs:
        return Estimate(None, reason="no answers")
    numbers = np.array([value for value, _ in pairs])
    cases = np.array([case for _, case in pairs], dtype=object)
    interval = mean_over_cases(numbers, cases if len(set(cases)) < len(cases) else None, bounds)
    return Estimate(interval.mean, interval.low, interval.high, interval.n)


def read_judges(
    runs: Runs,
    criteria: Criteria | None,
    options: JudgeOptions,
    watch: Watch,
    *,
    labels: Labels | None = None,
    score_failed_runs: str | None = None,
) -> Judging:
    """Read and check runs, criteria and judges; several judges are a panel. Raises as
    `read_judging`, and InputError for a panel that cannot work."""
    judges = options.judge if isinstance(options.judge, list | tuple) else (options.judge,)
    if len(judges) < 2:
        if options.panel is not None:
            raise InputError("needs several judges: repeat --judge", OPTION)
        options = replace(options, judge=judges[0] if judges else None)
        return read_judging(runs, criteria, options, watch, score_failed_runs=score_failed_runs)
    rule = PanelRule.of(options.panel or MEAN, len(judges))
    if rule.needs_labels and labels is None:
        raise InputError(f"{rule.name} needs labels of people (--labels)", OPTION)
    base, members = read_members(
        runs, criteria, options, judges, watch, score_failed_runs=score_failed_runs
    )
    for criterion in base.criteria:
        if rule.name != "auto" and (problem := rule.problem(criterion)):
            raise InputError(problem, OPTION)
    people = None if labels is None else read_labels(labels, base.criteria, watch)
    panel = PanelJudging(**vars_of(base), members=members, labels=people, rule=rule)
    _ = panel.sources  # raises InputError for the same judge twice
    return panel


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
    for member in members if criteria is None else ():
        own = criteria_for(member.judge, criteria, base.task.name, Watch())
        if {c.sha256 for c in own} != {c.sha256 for c in base.criteria}:
            listed = " and ".join(", ".join(c.id for c in x) for x in (base.criteria, own))
            raise InputError(f"the judges answer different criteria: {listed}", "--criteria")
    return base, members
