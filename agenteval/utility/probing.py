"""Further requests of a verification with probes: other ways to ask, and attacked copies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agenteval.analysis.scores import scores_from_store
from agenteval.engine.judging import RunJudge
from agenteval.records import Usage
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator, Renamed
from agenteval.utility.judging import Judging, JudgingStopped
from agenteval.utility.perturbed_runs import VerificationData
from agenteval.utility.probes import (
    INJECTION,
    REWORDING,
    SCALE_ORDER,
    WORDING,
    Injected,
    Probe,
    ProbeOptions,
    ProbeRatings,
    examine,
)
from agenteval.utility.probes.attacks import PROBE, add_texts, choose_targets

if TYPE_CHECKING:
    from agenteval.models.client import Client

OTHER_WAYS: dict[str, dict[str, Any]] = {
    SCALE_ORDER: {"reversed_scale": True},
    WORDING: {"wording": "b"},
    REWORDING: {"reworded": True},
}


async def probe(
    judging: Judging,
    store: Store,
    evaluator: RunJudge,
    material: VerificationData,
    options: ProbeOptions,
) -> tuple[Probe, ...]:
    """Return all probes of a judge whose plain ratings are stored; judges what is missing.

    Afterwards the plain judge is again the one used last, so that `report` and `show` take it.
    Raises JudgingStopped if the judging stopped early.
    """
    session = ProbeSession(judging, store, evaluator, material)
    plain = session.table(evaluator.source.sha256)
    try:
        other_ways = await session.other_ways()
        injected = await session.attacked(plain, options)
    finally:
        store.register((), material.criteria, evaluator.source)
    return examine(ProbeRatings(material.criteria, plain, other_ways, injected), options)


@dataclass(frozen=True)
class ProbeSession:
    """A judge whose plain ratings of some material are stored, and its further experiments."""

    judging: Judging
    store: Store
    plain: RunJudge
    material: VerificationData

    @property
    def listed(self) -> bool:
        """Whether the judge reads a prompt with a list of criteria and their scales."""
        return self.plain.source.evaluator == "utility.quantifier"

    async def other_ways(self) -> dict[str, ScoreTable]:
        """Return ratings of the originals by probe; empty for a judge that reads no prompt."""
        tables = {}
        for name in OTHER_WAYS if self.listed else ():
            judge, client = self._judges[name]
            await self._run(name, self.originals(judge), client)
            tables[name] = self.table(judge.source.sha256)
        return tables

    def originals(self, judge: RunJudge) -> JudgeEvaluator:
        """Return this judge on the originals."""
        material = self.material
        return JudgeEvaluator.of(judge, material.items, material.criteria, material.repeats)

    async def attacked(self, plain: ScoreTable, options: ProbeOptions) -> Injected:
        """Return ratings of low runs with an attack and with a control in their text."""
        material = self.material
        targets = choose_targets(material.items, material.criteria, plain, options)
        if not targets:
            return Injected((), plain, material.repeats)
        judge, client = self._judges[INJECTION]
        copies = add_texts(targets, material.criteria, options.seed)
        rated = JudgeEvaluator(judge, tuple(copies.items()), material.criteria, material.repeats)
        await self._run(INJECTION, rated, client)
        pairs = {(view.sha256, variant) for variant, items in copies.items() for _, view in items}
        source = self.plain.source.sha256
        table = self.table(source, copies=pairs, copies_by=judge.source.sha256)
        return Injected(targets, table, material.repeats)

    def table(
        self,
        key: str,
        *,
        copies: Collection[tuple[str, str]] | None = None,
        copies_by: str | None = None,
    ) -> ScoreTable:
        """Return the ratings of the originals by a source, and of these copies by another."""
        return scores_from_store(
            self.store,
            key,
            criteria={c.sha256 for c in self.material.criteria},
            runs={view.sha256 for _, view in self.material.items},
            repeats=self.material.repeats,
            variants={ORIGINAL} if copies is None else None,
            copies=copies,
            copies_by=copies_by,
        )

    @cached_property
    def _judges(self) -> dict[str, tuple[RunJudge, Client | None]]:
        """The judge of each probe, under a source of its own so that scores never mix."""
        if self.judging.sends_nothing:
            return {INJECTION: (Renamed(self.plain, probe=PROBE), None)}
        judges = {
            name: self.judging.evaluator(self.store, **changes)
            for name, changes in (OTHER_WAYS if self.listed else {}).items()
        }
        judge, client = self.judging.evaluator(self.store)
        return {**judges, INJECTION: (Renamed(judge, probe=PROBE), client)}

    async def _run(self, name: str, rated: JudgeEvaluator, client: Client | None) -> None:
        if client is not None:  # a cap holds for plain, other ways and attacks together
            sources = [self.plain.source, *(judge.source for judge, _ in self._judges.values())]
            spent = sum((self.store.usage(s.sha256) for s in sources), start=Usage())
            client.budget = self.judging.limits.budget(spent)
        self.judging.watch.note(f"probe of {name}:")
        result = await self.judging.run(rated, client, self.store)
        if result.stopped:
            raise JudgingStopped(result, "probe calls not made")
