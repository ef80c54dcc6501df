"""Further rounds of `verify`: ask the critic again, drop what was found wanting, go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenteval.cli.console import note, warn
from agenteval.cli.critics import ask_critics

if TYPE_CHECKING:
    from agenteval.cli.job import Job
    from agenteval.evaluators.utility.verify.rounds import NextRound
    from agenteval.records import Criterion, Task
    from agenteval.records.verification import VerifiedSet

SEEDS = 5  # critics that are asked in a further round


def propose_next(
    job: Job,
    task: Task,
    judged: tuple[tuple[Criterion, ...], VerifiedSet],
    seen: Sequence[Criterion],
    number: int,
) -> NextRound:
    """What round `number` + 1 judges: new seeds propose, known and dropped criteria stay away.

    Raises what `ask_critics` raises, and ModelUnavailable without an embedder.
    """
    from agenteval.evaluators.utility.proposals import CriticOptions
    from agenteval.evaluators.utility.verify.rounds import next_round
    from agenteval.models.embeddings import make_embedder
    from agenteval.models.factory import choose_model
    from agenteval.store import default_path

    first = number * SEEDS
    seeds = tuple(range(first, first + SEEDS))
    chosen = CriticOptions(seeds=seeds, use_examples=bool(task.examples), consolidate=False)
    choice = choose_model(job.model, job.base_url)
    store = job.store or default_path()
    proposed = ask_critics(choice, chosen, task, job.limits, store, job.record)
    for failed in proposed.failures:
        warn(f"critic, seed {failed.seed}: {failed.message}")
    criteria, result = judged
    found = next_round(criteria, result, proposed.criteria.criteria, make_embedder(None), seen=seen)
    note(
        f"round {number}: {len(found.dropped)} dropped; {len(found.new)} of "
        f"{len(found.new) + found.known} proposals say something new"
    )
    return found
