"""The further questions of `verify --probes`: other ways to ask, and texts that hold an attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from agenteval.cli.console import note, warn
from agenteval.cli.ending import say_interrupted, why_stopped
from agenteval.cli.job import Job, run_plan, say_plan

if TYPE_CHECKING:
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.utility.plan import CellPlan
    from agenteval.evaluators.utility.probes.injection import Injected
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.evaluators.utility.probes.targets import AddedText, Target
    from agenteval.models.client import Client
    from agenteval.records import Task
    from agenteval.stats.scores import ScoreTable
    from agenteval.store import Store
    from agenteval.verification import Material

OTHER_WAYS: dict[str, dict[str, Any]] = {
    "scale order": {"reversed_scale": True},
    "wording": {"wording": "b"},
}


@dataclass(frozen=True)
class Asking:
    """A judge whose plain ratings of some material are stored, and how to ask it further.

    Every method asks what the store lacks, and ends the command with exit code 130 when
    interrupted and 3 when stopped, as the verification does; what was judged is stored, and the
    same command goes on from there.
    """

    job: Job
    task: Task
    store: Store
    plain: Evaluator
    material: Material

    @property
    def listed(self) -> bool:
        """Whether the judge reads a prompt with a list of criteria and their scales."""
        return self.plain.source.evaluator == "utility.quantifier"

    def other_ways(self) -> dict[str, ScoreTable]:
        """Ratings of the originals in every other way, by the name of the probe; none for a judge
        that reads no prompt."""
        if not self.listed:
            return {}
        tables = {}
        for name in OTHER_WAYS:
            judge, client = self._judges[name]
            self._run(name, self.way_plan(judge), client)
            tables[name] = self.table(judge.source.sha256)
        return tables

    def way_plan(self, judge: Evaluator) -> CellPlan:
        """What the store lacks of the originals by a judge that is asked in another way."""
        from agenteval.evaluators.utility.plan import make_plan

        return make_plan(
            judge, self.material.items, self.material.criteria, self.store,
            repeats=self.job.repeats, retry_failed=self.job.retry_failed,
        )  # fmt: skip

    def attacked(self, plain: ScoreTable, options: ProbeOptions) -> Injected:
        """Ratings of runs known to be low, with an attack and with a control in their text."""
        from agenteval.evaluators.utility.probes.injection import NAME, Injected
        from agenteval.evaluators.utility.probes.targets import choose_targets
        from agenteval.trust.scores import scores_from_store

        material = self.material
        targets = choose_targets(material.items, material.criteria, plain, options)
        if not targets:
            return Injected((), plain, material.repeats)
        judge, client = self._judges[NAME]
        plan, copies = attack_plan(self, judge, targets, options)
        self._run(NAME, plan, client)
        table = scores_from_store(
            self.store,
            self.plain.source.sha256,
            criteria={c.sha256 for c in material.criteria},
            runs={view.sha256 for _, view in material.items},
            repeats=material.repeats,
            copies={(view.sha256, one.variant) for one in copies for _, view in one.items},
            copies_by=judge.source.sha256,
        )
        return Injected(targets, table, material.repeats)

    def table(self, key: str, *, copies: bool = False) -> ScoreTable:
        """What a source said of the originals, and of the perturbed copies where asked for."""
        from agenteval.stats.scores import ORIGINAL
        from agenteval.trust.scores import scores_from_store

        variants = {c.variant for c in self.material.copies} if copies else set()
        return scores_from_store(
            self.store,
            key,
            criteria={c.sha256 for c in self.material.criteria},
            runs={view.sha256 for _, view in self.material.items},
            repeats=self.material.repeats,
            variants={ORIGINAL, *variants},
        )

    @cached_property
    def _judges(self) -> dict[str, tuple[Evaluator, Client | None]]:
        """By the name of the probe: the judge asked in another way, and for the attacks as it is.

        Each has a source of its own, so its scores never mix with the plain.
        """
        from agenteval.evaluators.utility.probes.injection import NAME
        from agenteval.evaluators.utility.probes.targets import Probing

        if not self.listed:
            return {NAME: (Probing(self.plain), None)}
        made: dict[str, tuple[Evaluator, Client | None]] = {
            name: self._chat(change) for name, change in OTHER_WAYS.items()
        }
        judge, client = self._chat({})
        return {**made, NAME: (Probing(judge), client)}

    def _chat(self, change: dict[str, Any]) -> tuple[Evaluator, Client]:
        from agenteval.evaluators.utility.quantifier import QuantifierOptions, chat_judge
        from agenteval.models.factory import choose_model, make_client

        job = self.job
        choice = choose_model(job.model, job.base_url)
        client = make_client(choice, job.limits, self.store, record=job.record)
        options = QuantifierOptions(
            job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark, **change
        )
        return chat_judge(client, self.task, options), client

    def _limit(self, client: Client | None) -> None:
        """A cap holds for the whole command: plain, other ways and attacks together."""
        from agenteval.records import Usage

        if client is not None:
            sources = [self.plain.source, *(judge.source for judge, _ in self._judges.values())]
            spent = sum((self.store.usage(s.sha256) for s in sources), start=Usage())
            client.budget = self.job.limits.budget(spent)

    def _run(self, name: str, plan: CellPlan, client: Client | None) -> None:
        from agenteval.evaluators.utility.plan import experiment_of

        self._limit(client)
        with self.store.lock(experiment_of(plan.evaluator, self.task.name)):
            note(f"probe of {name}:")
            say_plan(plan)
            ended = run_plan(plan, client, self.store, self.job)
        if ended is None:
            raise typer.Exit(say_interrupted())
        if ended.stopped:
            warn(why_stopped(ended, "calls of the probe not made"))
            raise typer.Exit(3)


def attack_plan(
    asking: Asking, judge: Evaluator, targets: Sequence[Target], options: ProbeOptions
) -> tuple[CellPlan, tuple[AddedText, ...]]:
    """What the store lacks of attacked copies and controls of at least one target, and these."""
    from agenteval.evaluators.utility.plan import joined, make_plan
    from agenteval.evaluators.utility.probes.targets import add_texts

    material = asking.material
    copies = add_texts(targets, material.criteria, options.seed)
    plans = [
        make_plan(
            judge, one.items, material.criteria, asking.store, repeats=material.repeats,
            variant=one.variant, retry_failed=asking.job.retry_failed,
        )
        for one in copies
    ]  # fmt: skip
    return joined(plans), copies
