"""A panel of judges: members judge, and their stored results become the panel's results.

Each member has its own experiment and source, so its results are shared with commands that use it
alone. The panel is also a source, with the rule and the members as parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.analysis.agreement import mean_over_cases
from agenteval.cli.running import Watch
from agenteval.engine import ExperimentResult, Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key
from agenteval.errors import InputError
from agenteval.records import CallRecord, Criterion, Failure, Result, Score, Source, Usage
from agenteval.records.table import Estimate, Table, column, table_of
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.answers import LevelAnswer, NoAnswer, result_of
from agenteval.utility.combined import (
    CombinedJudging,
    PeopleLabels,
    read_labels,
    read_members,
    results_of,
    vars_of,
)
from agenteval.utility.evaluator import JudgeEvaluator, rubrics_of
from agenteval.utility.judging import Criteria, Judging, JudgingStopped, Runs, read_judging
from agenteval.utility.options import JudgeOptions
from agenteval.utility.panel_rules import (
    MEAN,
    OPTION,
    ChosenRule,
    LabelledCell,
    PanelRule,
    choose_rule,
    errors_of,
    fit,
)

if TYPE_CHECKING:
    from agenteval.models.client import Client


class PanelJudge:
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
            seed=next(iter(members.values())).seed,
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
        votes: dict[str, Score] = {}
        for name, result in results.items():
            if not isinstance(result, Score):
                answer = NoAnswer("error:infrastructure", f"{name}: no stored result")
                if isinstance(result, Failure):
                    answer = NoAnswer(result.status, f"{name}: {result.message}"[:500])
                return result_of(criterion, key, answer)
            votes[name] = result
        combined = result_of(criterion, key, self.rule.combine(criterion, votes))
        if not isinstance(combined, Score):
            return combined
        statuses = {vote.status for vote in votes.values()}
        members = {
            n: v.status if v.status == "not_applicable" else v.label or v.value
            for n, v in votes.items()
        }
        return combined.model_copy(
            update={
                "status": statuses.pop() if len(statuses) == 1 else combined.status,
                "explanation": "; ".join(f"{name}: {vote}" for name, vote in members.items()),
                "evidence": {"members": members},
            }
        )


@dataclass(frozen=True)
class PanelJudging(CombinedJudging):
    """Runs judged by a panel with a rule, which may be chosen by labels."""

    rule: PanelRule = field(default_factory=lambda: PanelRule(MEAN))
    chosen: ChosenRule | None = None

    def evaluator(
        self, store: Store | None, *, spent: Usage | None = None, **changes: Any
    ) -> tuple[RunJudge, Client | None]:
        """Return the panel; it has no client."""
        return PanelJudge(self.rule, self.sources, store), None

    async def prepared(self, store: Store) -> PanelJudging:
        """Judge the labelled runs and choose the rule, if labels decide it."""
        if not self.rule.needs_labels:
            return self
        items = self.labelled_items()
        rated = JudgeEvaluator.of(self.evaluator(None)[0], items, self.criteria, self.repeats)
        if ended := await self._members_judge(rated, store):
            raise JudgingStopped(ended)
        cells = list(self._labelled_cells(store))
        chosen = choose_rule(self.rule, self.criteria, cells, self.seed)
        if len(chosen.errors) > 1:
            listed = ", ".join(f"{name} {error:.3f}" for name, error in chosen.errors.items())
            cases = len({cell.case for cell in chosen.fitted})
            self.watch.warn(
                f"rule chosen on {plural(cases, 'labelled case')}: {chosen.rule.name} (mean "
                f"errors: {listed})"
            )
        return replace(self, rule=chosen.rule, chosen=chosen)

    async def run_experiment(
        self, rated: JudgeEvaluator, client: Client | None, store: Store, *, announce: bool = True
    ) -> ExperimentResult:
        """Let every member judge what the store lacks, then compute the panel's results."""
        return await self._members_judge(rated, store) or await self.combine(rated, store)

    async def _members_judge(self, rated: JudgeEvaluator, store: Store) -> ExperimentResult | None:
        """Return the result of a member that stopped early, or None."""
        for name in self.sources:
            ended = await self.run_member(name, rated, store)
            if ended.stopped:
                return ended
        return None

    def _labelled_cells(self, store: Store) -> Iterator[LabelledCell]:
        """Yield labelled cells that all members answered; a label that is not used is reported."""
        unanswered = 0
        for run, view in self.labelled_items():
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
                    yield LabelledCell(criterion, case_key(run), votes, label.label, label.value)
        if unanswered:
            self.watch.warn(f"{plural(unanswered, 'label')} not used: a member has no answer")

    def tables(self, store: Store, rated: JudgeEvaluator) -> tuple[Table, ...]:
        """Return the panel beside its members: mean, error against labels, requests and cost."""
        cells: Sequence[LabelledCell] = ()
        if self.labels is not None:
            cells = self.chosen.held_out if self.chosen else list(self._labelled_cells(store))
        items = {view.sha256 for _, view in rated.items}
        criteria = {c.sha256 for c in rated.criteria}
        panel, spent = errors_of(self.rule, cells), self.spent(store)
        rows = [
            _MemberRow(
                f"panel ({self.rule.name})",
                _mean(store, rated.source, items, criteria),
                _estimate(panel, cells, (0, 1)),
                None,
                spent.requests,
                spent.cost,
            )
        ]
        for name, source in self.sources.items():
            usage = store.usage(source.sha256)
            alone = [cell.error(_vote_answer(cell.votes[name])) for cell in cells]
            without = errors_of(self._rule_without(name), [cell.without(name) for cell in cells])
            changes = [
                None if a is None or b is None else a - b
                for a, b in zip(without, panel, strict=True)
            ]
            rows.append(
                _MemberRow(
                    name,
                    _mean(store, source, items, criteria),
                    _estimate(alone, cells, (0, 1)),
                    _estimate(changes, cells, (-1, 1)),
                    usage.requests,
                    usage.cost,
                )
            )
        notes = []
        if cells:
            cases = plural(len({cell.case for cell in cells}), "labelled case")
            held_out = ", on which the rule was not chosen" if self.chosen else ""
            notes = [
                f"error: mean of |answer - label| as a share of the scale, {cases}{held_out}",
                "without it: error of the others minus the panel's; above 0 it improves the panel",
            ]
        optional = ("error", "without", "cost")
        title = "panel and members"
        return (table_of(_MemberRow, "panel", title, rows, notes=notes, drop_empty=optional),)

    def _rule_without(self, member: str) -> PanelRule:
        """Return the rule for the other members."""
        rule = self.rule
        if rule.weights:
            fitted = [cell.without(member) for cell in (self.chosen.fitted if self.chosen else ())]
            return fit(PanelRule(rule.name), fitted, rule.weights)
        if rule.name.startswith("veto"):
            votes = min(int(rule.name.partition(":")[2]), len(self.members) - 1)
            return PanelRule(f"veto:{votes}")
        return rule


@dataclass(frozen=True)
class _MemberRow:
    judge: str = column("judge")
    mean: float | None = column("mean", "number", "mean value of all ratings")
    error: Estimate | None = column("error [95%]\nagainst labels", "number")
    without: Estimate | None = column("without it\n[95%]", "signed")
    requests: int = column("requests", "count")
    cost: float | None = column("cost", "number")


def _vote_answer(vote: Score) -> LevelAnswer:
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
    values: Sequence[float | None], cells: Sequence[LabelledCell], bounds: tuple[float, float]
) -> Estimate | None:
    """Return the mean over cases with its interval; None without cells."""
    if not cells:
        return None
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
    labels: PeopleLabels | None = None,
    score_failed_runs: str | None = None,
) -> Judging:
    """Read and check runs, criteria and judges; several judges are a panel. Raises as
    `read_judging`, and InputError for a panel that cannot work."""
    judges = options.judge if isinstance(options.judge, list | tuple) else (options.judge,)
    if len(judges) < 2:
        if options.panel is not None:
            raise InputError("needs several judges: repeat --judge", OPTION)
        if labels is not None:
            what = "are for several judges; `agenteval agree` compares one judge with them"
            raise InputError(what, "--labels")
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
    if rule.name != MEAN and rubrics_of(base.items):
        raise InputError(f"rubrics of runs have no levels: use {OPTION} {MEAN}", OPTION)
    people = None if labels is None else read_labels(labels, base.criteria, watch)
    return PanelJudging(**vars_of(base), members=members, labels=people, rule=rule).checked()
