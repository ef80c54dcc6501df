"""Criteria for a task: several seeds propose, paraphrases merge, the scales are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agenteval.assemble import Limits, make_client, no_model
from agenteval.draining import answered
from agenteval.errors import ModelUnavailable
from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.critic import Critic, FailedProposal, Proposal
from agenteval.evaluators.utility.merge import cluster_members, merge_criteria
from agenteval.evaluators.utility.retrieval import draw, rank_bank
from agenteval.evaluators.utility.rubric_check import RubricIssue, check_criteria
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder, make_embedder
from agenteval.models.factory import ModelChoice
from agenteval.records import CriteriaSet, Criterion, Task
from agenteval.stats import UniqueCurve, unique_curve
from agenteval.store import Store

CURVE_TAUS = (0.7, 0.85, 1.0)


@dataclass(frozen=True, slots=True)
class CriticOptions:
    """How criteria are proposed and merged."""

    seeds: tuple[int, ...]
    tau: float | None = None
    embedder: str | None = None
    base_url: str | None = None
    use_examples: bool = True
    sub_criteria: bool = False
    bank: bool = False
    min_seeds: int = 1
    temperature: float | None = 1.0


@dataclass(frozen=True, slots=True)
class Proposals:
    """The merged criteria and how they came about.

    `curves` gives, per threshold, the number of unique criteria for M = 1..N seeds; at 1 it is
    the exact expectation, below the mean and 95 % band over resamples.
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

    def to_json(self) -> dict[str, Any]:
        """A plain JSON value of everything."""
        return {
            "criteria": self.criteria.model_dump(mode="json", by_alias=True),
            "model": self.model,
            "mode": self.mode,
            "proposed": self.proposed,
            "seeds_asked": self.seeds_asked,
            "seeds_answered": self.seeds_answered,
            "tau": self.tau,
            "embedder": self.embedder,
            "failures": [asdict(f) for f in self.failures],
            "notes": list(self.notes),
            "issues": [asdict(i) for i in self.issues],
            "unique_curves": {f"{tau:g}": asdict(curve) for tau, curve in self.curves.items()},
        }


async def propose(  # noqa: PLR0913  what is asked, of whom, and where it is kept
    choice: ModelChoice,
    options: CriticOptions,
    task: Task,
    limits: Limits,
    *,
    store: Path | None = None,
    record: Path | None = None,
    on_cancel: Callable[[], None] = lambda: None,
) -> Proposals:
    """Propose, merge and check criteria; replies are kept in `store`.

    When it is cancelled (Ctrl-C), nothing more is asked; `on_cancel` is called if requests are
    under way, and their replies are kept before CancelledError is raised.

    Raises ModelUnavailable when the local parts are missing, InputError for a threshold that does
    not fit, Unauthorized when a key is refused. A seed that fails is kept as a failure.
    """
    if choice.kind == "embedded":
        return propose_from_bank(choice, options, task)
    embedder = _embedder(choice, options)
    opened = Store(store) if store is not None else None
    client = make_client(choice, limits, opened, record=record)
    try:
        sets, failures, notes = await _from_chat(client, options, task, on_cancel)
    finally:
        await client.close()
        if opened is not None:
            opened.close()
    return _merge(task, options, sets, embedder, choice.name, failures, notes)


def propose_from_bank(choice: ModelChoice, options: CriticOptions, task: Task) -> Proposals:
    """As `propose`, by the embedded critic, which computes on this machine and asks nobody."""
    embedder = _embedder(choice, options)
    sets, model = _from_bank(choice, options, task, embedder)
    return _merge(task, options, sets, embedder, model, (), ())


def _embedder(choice: ModelChoice, options: CriticOptions) -> Embedder | None:
    """The embedder; None where merging by equal names is all that was asked for."""
    if options.tau == 1 and choice.kind != "embedded" and not options.bank:
        return None
    try:
        return make_embedder(options.embedder, base_url=options.base_url, api_key=choice.api_key)
    except ModelUnavailable as error:
        if choice.kind == "embedded":
            raise no_model(error) from error
        raise


def _from_bank(
    choice: ModelChoice, options: CriticOptions, task: Task, embedder: Embedder | None
) -> tuple[list[list[Criterion]], str]:
    from agenteval.models import weights
    from agenteval.models.embedded.likelihood import LikelihoodModel

    if embedder is None:
        raise ModelUnavailable("the embedded critic needs an embedder")
    try:
        model = LikelihoodModel.load(choice.path or weights.require())
    except ModelUnavailable as error:
        raise no_model(error) from error
    ranking = rank_bank(task, embedder, model, use_examples=options.use_examples)
    return [draw(ranking, seed) for seed in options.seeds], "embedded (retrieval from the bank)"


async def _from_chat(
    client: Client, options: CriticOptions, task: Task, on_cancel: Callable[[], None]
) -> tuple[list[list[Criterion]], tuple[FailedProposal, ...], tuple[str, ...]]:
    critic = Critic(
        client,
        task,
        use_examples=options.use_examples,
        sub_criteria=options.sub_criteria,
        bank=_nearest(task, options) if options.bank else (),
        temperature=options.temperature,
    )
    answers = await answered(critic.propose_all(options.seeds), client, on_cancel)
    good = [a for a in answers if isinstance(a, Proposal)]
    failures = tuple(a for a in answers if isinstance(a, FailedProposal))
    notes = tuple(f"seed {a.seed}: {p}" for a in good for p in a.problems)
    return [list(a.criteria) for a in good], failures, notes


def _nearest(task: Task, options: CriticOptions, count: int = 12) -> Sequence[Criterion]:
    """Bank entries nearest to the task, to inspire a critic that writes its own."""
    embedder = make_embedder(options.embedder, base_url=options.base_url)
    ranking = rank_bank(task, embedder, None, bank=load_bank())
    order = np.argsort(-ranking.score.mean(axis=1), kind="stable")[:count]
    return [ranking.concepts[i].criterion(0) for i in order]


def _merge(  # noqa: PLR0913  what the result is made of
    task: Task,
    options: CriticOptions,
    sets: list[list[Criterion]],
    embedder: Embedder | None,
    model: str,
    failures: tuple[FailedProposal, ...],
    notes: tuple[str, ...],
) -> Proposals:
    everything = [c for s in sets for c in s]
    merged = merge_criteria(everything, embedder, tau=options.tau)
    kept = [c for c in merged if len(c.provenance.seeds) >= options.min_seeds]
    return Proposals(
        criteria=CriteriaSet(task=task.name, criteria=tuple(kept)),
        model=model,
        mode="solution-based" if options.use_examples else "task-based",
        proposed=len(everything),
        seeds_asked=len(options.seeds),
        seeds_answered=len(sets),
        tau=1.0 if embedder is None else options.tau or embedder.default_tau,
        embedder="equal names" if embedder is None else embedder.name,
        failures=failures,
        notes=notes,
        issues=tuple(check_criteria(kept)),
        curves=unique_curves(sets, embedder),
    )


def unique_curves(
    sets: Sequence[Sequence[Criterion]], embedder: Embedder | None, *, resamples: int = 200
) -> dict[float, UniqueCurve]:
    """Unique criteria against the number of sets, per threshold (arXiv 2402.09015, figure 5)."""
    curves: dict[float, UniqueCurve] = {}
    if not sets:
        return curves
    for tau in CURVE_TAUS if embedder is not None else (1.0,):
        members = cluster_members(sets, embedder, tau=tau)
        curves[tau] = unique_curve(members, resamples=resamples, rng=np.random.default_rng(0))
    return curves
