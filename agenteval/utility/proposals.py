"""Propose criteria for a task with several seeds, merge paraphrases, and check the scales.

Names that the embedder cannot separate are shown to the chat critic, see `consolidate.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from agenteval.errors import BadRequest, InputError, ModelUnavailable
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder, make_embedder
from agenteval.models.factory import ModelChoice, make_client, no_model
from agenteval.models.limits import Limits
from agenteval.models.replay import ReplayTransport
from agenteval.records import CriteriaSet, Criterion, Task
from agenteval.stats import UniqueCurve, unique_curve
from agenteval.utility.bank import draw, rank_bank
from agenteval.utility.consolidate import Consolidation, Consolidator
from agenteval.utility.critic import Critic, FailedProposal, Proposal
from agenteval.utility.merge import CriterionClusters, NearMiss, threshold
from agenteval.utility.options import ProposeOptions
from agenteval.utility.rubric_check import RubricIssue, check_criteria

CURVE_TAUS = (0.7, 0.85, 1.0)
_FROM_BANK = 12  # entries that are shown to a chat critic
NEAR = 0.15  # below tau; in this range half of the pairs are the same (merge_quality)


@dataclass(frozen=True, slots=True)
class Proposals:
    """The merged criteria and how they were obtained.

    `near_misses` are names that the embedding almost joined and that no chat model compared.
    `consolidation` is None without a consolidating chat model. `curves` has, per threshold, the
    number of unique criteria for M = 1..N seeds by embedding alone (exact expectation, and a 95%
    band over resamples); `merged_curve` is that of the merged criteria, None if no seed answered.
    `kinds` are the kinds of task for which the bank was searched.
    """

    criteria: CriteriaSet
    model: str
    mode: str
    proposed: int
    seeds_asked: int
    seeds_answered: int
    tau: float
    embedder: str
    failures: tuple[FailedProposal, ...]
    notes: tuple[str, ...]
    issues: tuple[RubricIssue, ...]
    curves: dict[float, UniqueCurve]
    near_misses: tuple[NearMiss, ...] = ()
    consolidation: Consolidation | None = None
    merged_curve: UniqueCurve | None = None
    kinds: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return everything as a plain JSON value."""
        curve, consolidation = self.merged_curve, self.consolidation
        counts = ("model", "mode", "proposed", "seeds_asked", "seeds_answered", "tau", "embedder")
        return {
            "criteria": self.criteria.model_dump(mode="json", by_alias=True),
            **{name: getattr(self, name) for name in counts},
            "failures": [asdict(f) for f in self.failures],
            "notes": list(self.notes),
            "issues": [asdict(i) for i in self.issues],
            "unique_curves": {f"{tau:g}": asdict(curve) for tau, curve in self.curves.items()},
            "merged_curve": None if curve is None else asdict(curve),
            "near_misses": [asdict(n) for n in self.near_misses],
            "kinds": list(self.kinds),
            "consolidation": None if consolidation is None else consolidation.to_json(),
        }


def propose_from_bank(choice: ModelChoice, options: ProposeOptions, task: Task) -> Proposals:
    """Propose criteria with the embedded critic, which runs locally and sends nothing.

    Raises ModelUnavailable if the local parts are missing, and InputError for an invalid threshold.
    """
    embedder = choose_embedder(choice, options)
    if embedder is None:
        raise ModelUnavailable("the embedded critic needs an embedder")
    ranking = rank_bank(task, embedder, use_examples=options.examples, kinds=options.kinds)
    merging = _Merging(task, options, embedder, [draw(ranking, s) for s in options.all_seeds])
    labels = merging.by_embedding
    representatives = merging.clusters.representatives
    concepts = [criterion.provenance.concept for criterion in representatives]
    for first, concept in enumerate(concepts):  # join the phrasings of one concept
        same = {labels[n] for n, other in enumerate(concepts) if other == concept}
        labels = [labels[first] if label in same else label for label in labels]
    how = "embedded (retrieval from the bank)"
    return merging.proposals(labels, model=how, kinds=ranking.kinds)


def choose_embedder(choice: ModelChoice, options: ProposeOptions) -> Embedder | None:
    """Return the embedder; None if only equal names are merged, or if a chat critic is used and no
    embedder is installed or required. Raises ModelUnavailable."""
    if options.tau == 1 and choice.kind != "embedded" and not options.bank:
        return None
    try:
        return make_embedder(options.embedder, base_url=options.base_url, api_key=choice.api_key)
    except ModelUnavailable as error:
        if choice.kind == "embedded":
            raise no_model(error) from error
        if options.tau is None and options.embedder is None and not options.bank:
            return None
        raise


def refuse_unrecorded(choice: ModelChoice, options: ProposeOptions, task: Task) -> None:
    """Raise InputError for the first seed without a recorded reply."""
    client = make_client(choice, Limits(), None)
    critic = Critic(client, task, use_examples=options.examples)
    for seed in options.all_seeds:
        try:
            cast(ReplayTransport, client.transport).find(critic.request(seed))
        except BadRequest as error:
            raise InputError(str(error), "--model recorded") from error


async def propose_by_chat(
    client: Client, options: ProposeOptions, task: Task, embedder: Embedder | None, model: str
) -> Proposals:
    """Propose criteria with a chat model, consolidate and merge them. A failed seed is recorded.

    Raises Unauthorized if a key is rejected.
    """
    bank: list[Criterion] = []  # entries closest to the task, as inspiration for the critic
    if options.bank:
        nearest = make_embedder(options.embedder, base_url=options.base_url)
        ranking = rank_bank(task, nearest, kinds=options.kinds)
        bank = [concept.criterion(0) for concept in ranking.concepts[:_FROM_BANK]]
    critic = Critic(
        client,
        task,
        use_examples=options.examples,
        sub_criteria=options.sub_criteria,
        bank=bank,
        temperature=options.temperature,
        retry_failed=options.retry_failed,
    )
    answers = await critic.propose_all(options.all_seeds)
    good = [a for a in answers if isinstance(a, Proposal)]
    merging = _Merging(task, options, embedder, [a.criteria for a in good])
    labels, consolidated = merging.by_embedding, None
    if options.asks_the_same and len(merging.clusters.representatives) > 1:
        temperature = None if options.temperature is None else 0.0
        consolidator = Consolidator(client, task, temperature=temperature)
        consolidated = await consolidator.consolidate(merging.clusters, labels)
        labels = consolidated.labels
    return merging.proposals(
        labels,
        model=model,
        consolidation=consolidated,
        failures=tuple(a for a in answers if isinstance(a, FailedProposal)),
        notes=tuple(f"seed {a.seed}: {problem}" for a in good for problem in a.problems),
    )


class _Merging:
    """The sets of criteria of all seeds, grouped by name and by embedding."""

    def __init__(
        self,
        task: Task,
        options: ProposeOptions,
        embedder: Embedder | None,
        sets: Sequence[Sequence[Criterion]],
    ) -> None:
        self.task, self.options, self.embedder, self.sets = task, options, embedder, sets
        self.tau = threshold(embedder, options.tau)
        used = None if options.tau == 1 else embedder  # only equal names are merged
        self.clusters = CriterionClusters((c for criteria in sets for c in criteria), used)
        self.by_embedding = self.clusters.partition(self.tau)

    def curve(self, labels: Sequence[int]) -> UniqueCurve:
        """Return the number of unique criteria by number of sets (arXiv 2402.09015, figure 5)."""
        members = self.clusters.members(self.sets, labels)
        return unique_curve(members, resamples=200, rng=np.random.default_rng(0))

    def proposals(
        self,
        labels: Sequence[int],
        *,
        model: str,
        consolidation: Consolidation | None = None,
        failures: tuple[FailedProposal, ...] = (),
        notes: tuple[str, ...] = (),
        kinds: tuple[str, ...] = (),
    ) -> Proposals:
        """Return one criterion per group of `labels`, with all counts and curves."""
        options, clusters, sets = self.options, self.clusters, self.sets
        criteria = [
            criterion
            for criterion in clusters.merged(labels, consolidation)
            if len(criterion.provenance.seeds) >= options.min_seeds
        ]
        taus = (1.0,) if clusters.vectors is None else CURVE_TAUS
        unasked = consolidation is None or not consolidation.why
        near_misses = clusters.near_misses(labels, self.tau - NEAR) if unasked else ()
        return Proposals(
            criteria=CriteriaSet(task=self.task.name, criteria=tuple(criteria)),
            model=model,
            mode="solution-based" if options.examples else "task-based",
            proposed=sum(map(len, sets)),
            seeds_asked=options.seeds,
            seeds_answered=len(sets),
            tau=self.tau,
            embedder="equal names" if self.embedder is None else self.embedder.name,
            failures=failures,
            notes=notes,
            issues=tuple(check_criteria(criteria)),
            curves={tau: self.curve(clusters.partition(tau)) for tau in taus} if sets else {},
            near_misses=tuple(near_misses),
            consolidation=consolidation,
            merged_curve=self.curve(labels) if sets else None,
            kinds=kinds,
        )
