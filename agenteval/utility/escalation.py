"""Escalation: a judge decides if labels prove its agreement, then a stronger one, then people.

Trust or Escalate (arXiv 2407.18370). For each criterion the confidence from which an answer counts
is proven by `stats.selective`: first for the judge, then for the stronger judge on what the first
one does not decide, each at half the error probability, so that both hold together.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.analysis.human_labels import QueuePlan, chosen_queue
from agenteval.analysis.rating_sources import StoredJudge
from agenteval.cli.running import Watch
from agenteval.engine import CostEstimate, ExperimentResult
from agenteval.engine.judging import RunJudge
from agenteval.errors import InputError
from agenteval.records import Criterion, Score, Usage
from agenteval.records.table import Table, column, table_of
from agenteval.stats.scores import ORIGINAL
from agenteval.stats.selective import ProvenThreshold, cases_to_prove, prove_threshold
from agenteval.store import Store
from agenteval.store.browse import judged_cells
from agenteval.store.labels import Labels as StoredLabels
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.combined import (
    CombinedJudging,
    PeopleLabels,
    read_labels,
    read_members,
    vars_of,
)
from agenteval.utility.escalating_judge import (
    NEVER,
    UNDECIDED,
    ConfidentAnswer,
    EscalatingJudge,
)
from agenteval.utility.evaluator import Item, JudgeEvaluator, rubrics_of
from agenteval.utility.judging import Criteria, JudgingStopped, Runs
from agenteval.utility.options import Escalation, JudgeOptions
from agenteval.utility.panel_rules import has_levels
from agenteval.utility.reports import near_path

if TYPE_CHECKING:
    from agenteval.models.client import Client

PEOPLE = "people"


@dataclass(frozen=True)
class EscalatedJudging(CombinedJudging):
    """Runs that a judge and a stronger one judge; `proofs` are the thresholds by criterion id."""

    plan: Escalation = field(default_factory=lambda: Escalation(None))
    proofs: Mapping[str, tuple[ProvenThreshold, ...]] = field(default_factory=dict)

    @property
    def repeats(self) -> int:
        """One result for each run and criterion, from all repeats of the judges."""
        return 1

    def evaluator(
        self, store: Store | None, *, spent: Usage | None = None, **changes: Any
    ) -> tuple[RunJudge, Client | None]:
        """Return the judge with its proven thresholds; it has no client."""
        return self._judge(store), None

    def _judge(self, store: Store | None) -> EscalatingJudge:
        unproven = 0.0 if self.plan.unproven == "keep" else NEVER
        thresholds = {
            c.id: tuple(
                unproven if p.threshold is None else p.threshold for p in self.proofs.get(c.id, ())
            )
            for c in self.criteria
        }
        return EscalatingJudge(self.sources, thresholds, self.how.repeats, store)

    async def prepared(self, store: Store) -> EscalatedJudging:
        """Judge the labelled runs, and prove a threshold for each judge and criterion."""
        items = self.labelled_items()
        rated = JudgeEvaluator.of(self._judge(None), items, self.criteria)
        judging = self
        for number, name in enumerate(self.sources):
            ended = await judging._member_judges(number, rated, store)
            if ended is not None:
                raise JudgingStopped(ended)
            proofs = {c.id: judging._proof(number, c, items, store) for c in self.criteria}
            for c in self.criteria:
                if proofs[c.id].threshold is None and not c.judge:
                    what = "everything" if self.plan.unproven == "keep" else "nothing"
                    self.watch.warn(
                        f"{c.id}: the labels prove no threshold for {name} "
                        f"({proofs[c.id].reason}): it decides {what}"
                    )
            judging = replace(
                judging, proofs={k: (*judging.proofs.get(k, ()), p) for k, p in proofs.items()}
            )
        return judging

    async def _member_judges(
        self, number: int, rated: JudgeEvaluator, store: Store
    ) -> ExperimentResult | None:
        """Let the first member judge these runs, or the second what the first does not decide: the
        criteria of a request together. Returns the result if it stopped early."""
        judge, name = self._judge(store), [*self.sources][number]
        batches = [tuple(self.criteria)]
        undecided = {view.sha256: {c.id for c in self.criteria} for _, view in rated.items}
        if number:
            batches = self.members[number].evaluator(None)[0].batches(self.criteria)
            useful = tuple(c for c in self.criteria if judge.may_decide(number, c))
            undecided = {key: judge.undecided(key, useful) for key in undecided}
        for batch in batches:
            ids = {c.id for c in batch}
            items = [
                (run, view)
                for run, view in rated.items
                if ids & undecided[view.sha256] and not (number and run.failure)
            ]
            if items:
                part = JudgeEvaluator.of(judge, items, batch, self.how.repeats)
                ended = await self.run_member(name, part, store)
                if ended.stopped:
                    return ended
        return None

    def _proof(
        self, number: int, criterion: Criterion, items: Sequence[Item], store: Store
    ) -> ProvenThreshold:
        """Return the threshold of a member that the labels prove, on what it is asked about."""
        judge = self._judge(store)
        confidences, wrong, cases = [], [], []
        for run, view in items:
            label = self.label_of(run, criterion)
            if label is None or label.label is None:
                continue
            if number and criterion.id not in judge.undecided(view.sha256, (criterion,)):
                continue
            answer = judge.answers(number, view.sha256, (criterion,)).get(criterion.id)
            if isinstance(answer, ConfidentAnswer):
                confidences.append(answer.confidence)
                wrong.append(answer.label != label.label)
                cases.append(case_key(run))
        confidence = _one_of_two(self.plan.confidence)
        return prove_threshold(
            confidences, wrong, cases, agreement=self.plan.agreement, confidence=confidence
        )

    async def run_experiment(
        self, rated: JudgeEvaluator, client: Client | None, store: Store, *, announce: bool = True
    ) -> ExperimentResult:
        """Let the judges decide where proven, and leave the rest to people."""
        for number in range(len(self.members)):
            ended = await self._member_judges(number, rated, store)
            if ended is not None:
                return ended
        return await self.combine(rated, store)

    async def estimate(
        self, total: CostEstimate, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> CostEstimate:
        """Return `total` plus the requests of both judges: from none to all of the stronger one."""
        rated = replace(rated, repeats=self.how.repeats)
        cheap, strong = [
            await self.member_estimate(name, member, rated, store)
            for name, member in zip(self.sources, self.members, strict=True)
        ]
        total = total + cheap + strong.uncertain()
        return replace(total, budget=self.limits.budget(self.spent(store)))

    # -- tables ------------------------------------------------------------------------------------

    def tables(self, store: Store, rated: JudgeEvaluator) -> tuple[Table, ...]:
        """Return the thresholds with the coverage on runs without labels, and the costs."""
        labelled = {
            (view.sha256, c.id)
            for run, view in self.labelled_items()
            for c in self.criteria
            if self.label_of(run, c) is not None
        }
        items = {view.sha256 for _, view in rated.items}
        counts: dict[str, Counter[str]] = {c.id: Counter() for c in self.criteria}
        decided, queue = Counter[str](), dict[str, set[str]]()
        for result in store.results(rated.source_key, variant=ORIGINAL):
            if result.key.run not in items or result.criterion_id not in counts:
                continue
            who, has_label = PEOPLE, (result.key.run, result.criterion_id) in labelled
            if isinstance(result, Score):
                who = str(result.evidence.get("decided_by", ""))
            elif result.status == UNDECIDED and not has_label:
                queue.setdefault(result.key.run, set()).add(result.criterion_id)
            else:
                continue
            decided[who] += 1
            if not has_label:
                counts[result.criterion_id][who] += 1
        plan, (cheap, strong) = self.plan, self.sources
        cases = cases_to_prove(plan.agreement, _one_of_two(plan.confidence))
        notes = [
            f"first judge: {cheap}; stronger judge: {strong}; shares of the runs without labels",
            f"above a proven threshold at least {plan.agreement:.0%} of the answers agree with "
            f"people (confidence {plan.confidence:.0%} for each criterion); a proof needs at least "
            f"{plural(cases, 'labelled case')} for each judge",
        ]
        if queue:
            name = self._queue(store, rated, queue)
            place = near_path(store.place if isinstance(store.place, Path) else store.shown)
            view = f"agenteval view {shlex.quote(place)} --label"
            notes.append(f"to label, in the queue {name!r}: {view}")
        rows = []
        for c in self.criteria:
            if not c.judge:
                (first, second), count = self.proofs[c.id], counts[c.id]
                of = [count[who] / count.total() if count else None for who in (cheap, strong)]
                rows.append(
                    _ThresholdRow(
                        c.name,
                        *(first.threshold, first.agreement, of[0]),
                        *(second.threshold, second.agreement, of[1]),
                        count[PEOPLE],
                    )
                )
        return (
            table_of(_ThresholdRow, "escalation", "who decides", rows, notes=notes),
            table_of(_CostRow, "escalation_cost", "cost", self._costs(store, rated, decided)),
        )

    def _queue(self, store: Store, rated: JudgeEvaluator, undecided: Mapping[str, set[str]]) -> str:
        """Return the labelling queue of what no judge decides; it is stored unless it exists."""
        judge = StoredJudge.find(store, rated.source_key, self.task.name)
        criteria = tuple(sorted({c for ids in undecided.values() for c in ids}))
        labels, first = StoredLabels(store), f"undecided {rated.source_key[:8]}"
        queue = chosen_queue(judge, QueuePlan(first, criteria), sorted(undecided))
        stored = labels.queues()
        names = (first, *(f"{first} ({n})" for n in range(2, len(stored) + 3)))
        name = next(
            name
            for name in names
            if name not in stored
            or (stored[name].items, stored[name].criteria) == (queue.items, queue.criteria)
        )
        if name not in stored:
            labels.add_queue(queue.model_copy(update={"name": name}))
        return name

    def _costs(self, store: Store, rated: JudgeEvaluator, decided: Counter[str]) -> list[_CostRow]:
        usages = {name: store.usage(source.sha256) for name, source in self.sources.items()}
        rows = [_CostRow(name, decided[name], u.requests, u.cost) for name, u in usages.items()]
        rows.append(_CostRow(PEOPLE, decided[PEOPLE]))
        name, usage = [*usages.items()][-1]
        alone = _CostRow(f"{name} alone (estimate)", rated.cells)
        if judged := sum(judged_cells(store, self.sources[name].sha256).values()):
            everything = rated.cells * self.how.repeats
            cost = None if usage.cost is None else usage.cost * everything / judged
            alone = replace(alone, requests=round(usage.requests * everything / judged), cost=cost)
        return [*rows, alone]


@dataclass(frozen=True)
class _ThresholdRow:
    criterion: str = column("criterion")
    first: float | None = column("first judge\nfrom", "number", "confidence from which it decides")
    first_agreement: float | None = column("proven\nagreement", "number")
    first_share: float | None = column("decides", "share")
    second: float | None = column("stronger judge\nfrom", "number")
    second_agreement: float | None = column("proven\nagreement", "number")
    second_share: float | None = column("decides", "share")
    people: int = column("people\ndecide", "count", "runs without labels")


@dataclass(frozen=True)
class _CostRow:
    judge: str = column("judge")
    decided: int = column("decided\ncells", "count")
    requests: int | None = column("requests", "count", default=None)
    cost: float | None = column("cost", "number", default=None)


def _one_of_two(confidence: float) -> float:
    """Return the confidence for one of two judges such that both hold with `confidence`."""
    return 1 - (1 - confidence) / 2


def read_escalation(  # noqa: PLR0913  like `read_judges`
    runs: Runs,
    criteria: Criteria | None,
    options: JudgeOptions,
    watch: Watch,
    plan: Escalation,
    labels: PeopleLabels | None,
    *,
    score_failed_runs: str | None = None,
) -> EscalatedJudging:
    """Read and check runs, criteria, labels and both judges. Raises InputError."""
    option = "--escalate"
    plan.check()
    if labels is None:
        raise InputError("needs labels of people (--labels)", option)
    if options.panel is not None or isinstance(options.judge, list | tuple):
        raise InputError("works with one judge, not with a panel", option)
    judges = (options.judge, plan.to)
    base, members = read_members(
        runs, criteria, options, judges, watch, score_failed_runs=score_failed_runs
    )
    for criterion in (*base.criteria, *rubrics_of(base.items)):
        if not has_levels(criterion):
            raise InputError(f"criterion {criterion.id} has no levels to agree on", option)
    if options.repeats < 2 and members[0].choice is not None and not members[0].distributes:
        what = "the confidence of a judge needs --repeats 2 or more, or --probabilities"
        raise InputError(what, option)
    people = read_labels(labels, base.criteria, watch)
    return EscalatedJudging(**vars_of(base), members=members, labels=people, plan=plan).checked()
