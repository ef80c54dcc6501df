"""What `verify --dry-run` says: originals and copies, probes, further rounds. Nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.cli.dry import LOCAL, asker_of, notes, planned_store
from agenteval.cli.dry_attacks import dearest
from agenteval.cli.dry_bill import Amount, Asked, Bill
from agenteval.cli.dry_judge import Asker, at_most, judged
from agenteval.cli.job import Job
from agenteval.cli.probe_asking import OTHER_WAYS, Asking, attack_plan
from agenteval.records import Usage
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.evaluators.utility.plan import CellPlan
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.models.factory import ModelChoice
    from agenteval.records import Task
    from agenteval.store import Store
    from agenteval.verification import Material


def bill(
    job: Job, task: Task, material: Material, options: ProbeOptions | None, rounds: int = 1
) -> Bill:
    """What `verify` would ask; without `options` nothing is probed. Raises InputError for a model
    that cannot be chosen."""
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url, need_key=False)
    job.limits.budget()  # a cap without a price is told before anything else
    texts, originals = material.texts, len(material.items)
    about = [
        f"texts: {originals} originals and {texts - originals} perturbed copies",
        f"cells: {plural(texts, 'text')} × {plural(len(material.criteria), 'criterion')} × "
        f"{plural(job.repeats, 'repeat')} = {texts * len(material.criteria) * job.repeats:,}",
    ]
    if choice.kind == "embedded":
        about.append(f"calls: {texts * job.repeats} at most; {LOCAL}")
        about += _embedded_probes(material, options)
        about += [f"rounds: {rounds}, each on all texts; the critic retrieves from the bank"] * (
            rounds > 1
        )
        return Bill("verify", tuple(about), (), job.limits)
    with planned_store(job.store) as store:
        dry = _Dry(job, choice, task, material, store)
        asked, more, spent = dry.first(options)
        if rounds > 1:
            asked += tuple(dry.further(rounds, options))
            more += (
                "each further round asks with caps as given: that on calls and that on cost hold "
                "for the judge in all rounds together, and for the critics of each round anew",
                "the embedder that compares their proposals is computed on this machine",
            )
    said = (*about, *more[:1])
    return Bill("verify", said, asked, job.limits, spent, (*notes(choice), *more[1:]))


def _embedded_probes(material: Material, options: ProbeOptions | None) -> Iterator[str]:
    from agenteval.evaluators.utility.probes.targets import most_targets

    if options is None:
        return
    runs = most_targets([run for run, _ in material.items], options)
    yield f"probes: {2 * runs * material.repeats} calls more at most, on this machine"
    yield "  scale order and wording do not apply to this judge"
    yield f"  {2 * runs * material.repeats} with text added: {_added(runs, material.repeats)}"


def _added(runs: int, repeats: int) -> str:
    return f"an attack and a control in {plural(runs, 'run')} × {plural(repeats, 'repeat')}"


@dataclass(frozen=True)
class _Dry:
    """A verification that is only planned."""

    job: Job
    choice: ModelChoice
    task: Task
    material: Material
    store: Store

    def first(
        self, options: ProbeOptions | None
    ) -> tuple[tuple[Asked, ...], tuple[str, ...], Usage]:
        """What the first round asks, a word on what is stored, and what was spent."""
        from agenteval.verification import plan_verification

        asker = self._asker()
        judge = asker.judge()
        plan = plan_verification(
            judge, self.material, self.store, retry_failed=self.job.retry_failed
        )
        stored = (
            f"stored already: {plan.done} scored, {plan.failed} failed; calls: {len(plan.units)}"
        )
        plain = judged(asker, plan.units)
        spent = self.store.usage(judge.source.sha256)
        if options is None:
            return (plain,), (stored,), spent
        asking = Asking(self.job, self.task, self.store, judge, self.material)
        return (plain, self._ways(asking), self._attacks(asking, plan, options)), (
            stored,
        ), spent  # fmt: skip

    def _asker(self, **change: object) -> Asker:
        return asker_of(self.job, self.choice, self.task, self.store, **change)

    def _ways(self, asking: Asking) -> Asked:
        """What is missing of the originals asked in every other way."""
        found: Asked | None = None
        originals, repeats = len(self.material.items), self.material.repeats
        why = (
            f"{plural(originals, 'original')} × {plural(repeats, 'repeat')} × "
            f"{len(OTHER_WAYS)} ways, less what is "
            "stored; one more for a reply that cannot be read"
        )
        for change in OTHER_WAYS.values():
            asker = self._asker(**change)
            one = judged(asker, asking.way_plan(asker.judge()).units, "probes, other ways", why)
            found = one if found is None else _joined(found, one)
        assert found is not None  # there are other ways
        return found

    def _attacks(self, asking: Asking, plan: CellPlan, options: ProbeOptions) -> Asked:
        """Calls with an attack or a control.

        The plain ratings choose the runs: while some are missing, as many as could be chosen count
        at most, the longest of them, and nothing is certain.
        """
        from agenteval.evaluators.utility.probes.targets import (
            Probing,
            choose_targets,
            most_targets,
        )

        judge, material, who = asking.plain, asking.material, "probes, text added"
        if not plan.units:
            table = asking.table(judge.source.sha256, copies=True)
            targets = choose_targets(material.items, material.criteria, table, options)
            why = _added(len(targets), material.repeats) + (
                ", less what is stored; one more for a reply that cannot be read"
            )
            if not targets:
                return Asked(who, Amount(), Amount(), why)
            missing, _ = attack_plan(asking, Probing(judge), targets, options)
            return judged(self._asker(), missing.units, who, why)
        runs = most_targets([run for run, _ in material.items], options)
        why = (
            f"{_added(runs, material.repeats)} at most: the ratings of the originals choose the "
            "runs; one more for a reply that cannot be read"
        )
        asker = self._asker()
        units = list(dearest(asker, material, options))
        return at_most(asker, units, 2 * material.repeats, who, why)

    def further(self, rounds: int, options: ProbeOptions | None) -> Iterator[Asked]:
        """What further rounds ask: critics, and the judge on what they propose.

        Only the critics of the second round are certain: where they say nothing new, that is the
        end. No round has more new criteria than critics can propose.
        """
        from agenteval.cli.dry_criteria import critics
        from agenteval.cli.verify_rounds import SEEDS
        from agenteval.proposals import CriticOptions

        for number in range(1, rounds):
            seeds = tuple(range(number * SEEDS, (number + 1) * SEEDS))
            wanted = CriticOptions(
                seeds=seeds, use_examples=bool(self.task.examples), consolidate=False
            )
            asked, _ = critics(self.choice, wanted, self.task, self.store, f"round {number}")
            for one in asked:
                why = f"{one.why}; they end the rounds where they propose nothing new"
                certain = one.least if number == 1 else Amount()
                who = f"{one.who} for round {number + 1}"
                yield replace(one, who=who, least=certain, why=why)
        calls = sum(self._calls(n, options) for n in range(2, rounds + 1))
        why = (
            "all texts on the criteria that are new, and probes where asked for; none where "
            "nothing new is proposed; one more for a reply that cannot be read"
        )
        yield Asked("judge, further rounds", Amount(), Amount(2 * calls, None, None), why)

    def _calls(self, number: int, options: ProbeOptions | None) -> int:
        """Calls of a further round at most, before repairs."""
        from agenteval.cli.verify_rounds import SEEDS
        from agenteval.evaluators.utility.probes.targets import most_targets
        from agenteval.evaluators.utility.proposed import MOST
        from agenteval.readers import degenerate

        material, new = self.material, SEEDS * MOST
        askable = sum(degenerate(run) is None for run, _ in material.items) + sum(
            degenerate(run) is None for copies in material.copies for run, _ in copies.items
        )
        known = len(material.criteria) + new * (number - 2)
        each = new if self.job.one_per_call else 1
        # what failed before is asked again, in calls of their own for each number of attempts
        again = (known if self.job.one_per_call else number - 1) if self.job.retry_failed else 0
        plain = askable * (each + again)
        if options is None:
            return plain * material.repeats
        whole = known + new if self.job.one_per_call else 1
        runs = most_targets([run for run, _ in material.items], options)
        probes = len(OTHER_WAYS) * len(material.items) * (each + again) + 2 * runs * whole
        return (plain + probes) * material.repeats


def _joined(a: Asked, b: Asked) -> Asked:
    return replace(
        a, least=a.least + b.least, most=a.most + b.most, largest=max(a.largest, b.largest),
        exact=a.exact and b.exact,
    )  # fmt: skip
