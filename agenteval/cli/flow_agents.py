"""The assistant under test of `flow turn` and `flow session`, in each format."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import note
from agenteval.errors import InputError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agenteval.agents.dialogue import AssistantSystem
    from agenteval.cli.flow_job import FlowJob
    from agenteval.evaluators.workflows.scenario import Format
    from agenteval.evaluators.workflows.trials import Candidate, Case
    from agenteval.models.limits import Budget


@asynccontextmanager
async def opened_candidates(
    job: FlowJob, conditions: dict[str, JsonValue], budget: Budget
) -> AsyncIterator[list[Candidate]]:
    """The assistant in each format; its endpoint's connections end with the block."""
    from agenteval.evaluators.workflows.assistants import opened_assistant

    if job.agent.startswith("scripted:"):
        yield [scripted_candidate(job, f, conditions) for f in job.formats]
        return
    known = [candidate(job, f, conditions) for f in job.formats]
    settings = replace(job.settings, budget=budget)
    async with opened_assistant(job.agent, settings) as assistant:
        yield [replace(c, assistant=assistant) for c in known]


def candidate(job: FlowJob, format: Format, conditions: dict[str, JsonValue]) -> Candidate:
    """The candidate alone, to know its name and key; nothing is opened."""
    from agenteval.evaluators.workflows.assistants import assistant
    from agenteval.evaluators.workflows.trials import Candidate

    if job.agent.startswith("scripted:"):
        return scripted_candidate(job, format, conditions)
    return Candidate(assistant(job.agent, job.settings), format, conditions)


def scripted_candidate(job: FlowJob, format: Format, conditions: dict[str, JsonValue]) -> Candidate:
    """A scripted assistant, made for each user; see `workflows.scripted`. Raises InputError."""
    from difflib import get_close_matches

    from agenteval.agents.dialogue import AssistantSystem
    from agenteval.evaluators.workflows.scripted.behaviours import CAUSE, scripted_assistants
    from agenteval.evaluators.workflows.trials import Candidate

    name, known = job.agent.partition(":")[2], tuple[str, ...](CAUSE)
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"; is {near[0]!r} meant?" if near else ""
        raise InputError(
            f"there is no scripted assistant {name!r}{hint} (known: {', '.join(known)})",
            "--agent",
        )

    def for_case(case: Case) -> AssistantSystem | None:
        key = case.key
        if key not in job.made:
            found = scripted_assistants(
                case.of.role, case.profile, seed=job.seed, backend=case.of.backend
            )
            job.made[key] = found.get(name)
        return job.made[key]

    def nobody() -> Any:
        raise AssertionError("a scripted assistant is made for each case")

    whole: dict[str, JsonValue] = {"adapter": "scripted", "script": name, "seed": job.seed}
    system = AssistantSystem(f"scripted:{name}", nobody, whole)
    return Candidate(system, format, conditions, for_case)


def present(job: FlowJob, cases: Sequence[Case]) -> list[Case]:
    """The cases in which the assistant has a place; the others are said.

    Raises InputError when there is none.
    """
    one = candidate(job, job.formats[0], {})
    if one.for_case is None:
        return list(cases)
    kept = [case for case in cases if one.at(case) is not None]
    if not kept:
        raise InputError(f"{one.assistant.name} has no place in any of these cases", "--agent")
    if left := len(cases) - len(kept):
        note(f"{one.assistant.name} has no place in {left} of {len(cases)} cases")
    return kept
