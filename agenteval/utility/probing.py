"""The further questions of a verification with probes: other ways to ask, and texts that hold an
attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agenteval.analysis.scores import scores_from_store
from agenteval.cli.running import why_stopped
from agenteval.engine.judging import RunJudge
from agenteval.records import Usage
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.judging import Judging, Unfinished
from agenteval.utility.perturbed_runs import VerificationData
from agenteval.utility.probes import (
    INJECTION,
    Injected,
    Probe,
    ProbeOptions,
    ProbeRatings,
    examine,
)
from agenteval.utility.probes.targets import (
    Item,
    add_texts,
    choose_targets,
    probing,
)

if TYPE_CHECKING:
    from agenteval.models.client import Client

OTHER_WAYS: dict[str, dict[str, Any]] = {
    "scale order": {"reversed_scale": True},
    "wording": {"wording": "b"},
    "rewording": {"reworded": True},
}


async def probe(
    judging: Judging,
    store: Store,
    evaluator: RunJudge,
    material: VerificationData,
    options: ProbeOptions,
) -> tuple[Probe, ...]:
    """All probes of a judge whose plain ratings are stored; asks what is missing of the others.

    The plain judge is the one used last in any case, so that `report` and `show` take it. Raises
    Unfinished where it had to stop; what was judged is stored.
    """
    source = evaluator.source
    asking = Asking(judging, store, evaluator, material)
    plain = asking.table(source.sha256)
    try:
        others = await asking.other_ways()
        injected = await asking.attacked(plain, options)
    finally:
        store.register((), material.criteria, source)
    judged = ProbeRatings(
        criteria=material.criteria,
        table=plain,
        reversed_scale=others.get("scale order"),
        wording=others.get("wording"),
        rewording=others.get("rewording"),
        injected=injected,
    )
    return examine(judged, options)


@dataclass(frozen=True)
class Asking:
    """A judge whose plain ratings of some material are stored, and how to ask it further."""

    judging: Judging
    store: Store
    plain: RunJudge
    material: VerificationData

    @property
    def listed(self) -> bool:
        """Whether the judge reads a prompt with a list of criteria and their scales."""
        return self.plain.source.evaluator == "utility.quantifier"

    async def other_ways(self) -> dict[str, ScoreTable]:
        """Ratings of the originals in every other way, by the name of the probe; none for a judge
        that reads no prompt."""
        if not self.listed:
            return {}
        tables = {}
        for name in OTHER_WAYS:
            judge, client = self._judges[name]
            await self._run(name, self.in_another_way(judge), client)
            tables[name] = self.table(judge.source.sha256)
        return tables

    def in_another_way(self, judge: RunJudge) -> JudgeEvaluator:
        """Return a judge that is asked in another way, on the originals."""
        material = self.material
        return JudgeEvaluator.of(judge, material.items, material.criteria, material.repeats)

    async def attacked(self, plain: ScoreTable, options: ProbeOptions) -> Injected:
        """Ratings of runs known to be low, with an attack and with a control in their text."""
        material = self.material
        targets = choose_targets(material.items, material.criteria, plain, options)
        if not targets:
            return Injected((), plain, material.repeats)
        judge, client = self._judges[INJECTION]
        copies = add_texts(targets, material.criteria, options.seed)
        rated = JudgeEvaluator(judge, tuple(copies.items()), material.criteria, material.repeats)
        await self._run(INJECTION, rated, client)
        return Injected(targets, self._copies_by(judge, copies), material.repeats)

    def _copies_by(self, judge: RunJudge, copies: Mapping[str, Sequence[Item]]) -> ScoreTable:
        """What the plain judge says of the originals, and this one of copies of them."""
        return scores_from_store(
            self.store,
            self.plain.source.sha256,
            criteria={c.sha256 for c in self.material.criteria},
            runs={view.sha256 for _, view in self.material.items},
            repeats=self.material.repeats,
            copies={
                (view.sha256, variant) for variant, items in copies.items() for _, view in items
            },
            copies_by=judge.source.sha256,
        )

    def table(self, key: str) -> ScoreTable:
        """Return the ratings of the originals by a source."""
        return scores_from_store(
            self.store,
            key,
            criteria={c.sha256 for c in self.material.criteria},
            runs={view.sha256 for _, view in self.material.items},
            repeats=self.material.repeats,
            variants={ORIGINAL},
        )

    @cached_property
    def _judges(self) -> dict[str, tuple[RunJudge, Client | None]]:
        """By the name of the probe: the judge asked in another way, and for the attacks as it is.

        Each has a source of its own, so its scores never mix with the plain.
        """
        if self.judging.asks_nobody:
            return {INJECTION: (probing(self.plain), None)}
        made = {
            name: self.judging.evaluator(self.store, **change)
            for name, change in (OTHER_WAYS if self.listed else {}).items()
        }
        judge, client = self.judging.evaluator(self.store)
        return {**made, INJECTION: (probing(judge), client)}

    async def _run(self, name: str, rated: JudgeEvaluator, client: Client | None) -> None:
        if client is not None:  # a cap holds for plain, other ways and attacks together
            sources = [self.plain.source, *(judge.source for judge, _ in self._judges.values())]
            spent = sum((self.store.usage(s.sha256) for s in sources), start=Usage())
            client.budget = self.judging.limits.budget(spent)
        self.judging.watch.note(f"probe of {name}:")
        result = await self.judging.run(rated, client, self.store)
        if result.stopped:
            raise Unfinished(why_stopped(result, "calls of the probe not made"))
