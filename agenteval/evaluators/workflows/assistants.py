"""The assistant under test, as `--agent` names it, in each format of the procedure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue

from agenteval.agents import System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.errors import InputError
from agenteval.evaluators.workflows.behaviours import CAUSE, scripted_assistants
from agenteval.evaluators.workflows.scenario import Format
from agenteval.evaluators.workflows.templated import template_assistant
from agenteval.evaluators.workflows.trials import Candidate, Case
from agenteval.models.limits import Budget

Agent = str | Callable[..., Any] | System
_SCRIPTED = "scripted:"


_ON_MODEL: spec.OnModel = {"template": template_assistant}


@dataclass(frozen=True)
class Assistants:
    """One assistant as a candidate in each format.

    `agent` is a specification (see `agents.spec`), a function of (messages, tools), or a system;
    `settings` are for those that run on a model, `seed` for scripted ones.
    """

    agent: Agent
    formats: Sequence[Format]
    settings: AgentSettings
    seed: int = 0
    # Scripted assistants by the key of their case: to make them they are rehearsed.
    _made: dict[str, System | None] = field(default_factory=dict, compare=False)

    def candidates(self, conditions: dict[str, JsonValue]) -> list[Candidate]:
        """To know names and keys: nothing is opened. Raises InputError for an agent that cannot
        be."""
        if isinstance(self.agent, str) and self.agent.startswith(_SCRIPTED):
            return self._scripted(self.agent.removeprefix(_SCRIPTED), conditions)
        if isinstance(self.agent, System):
            system = self.agent
        else:
            system = spec.system(self.agent, self.settings, more=_ON_MODEL, dialogue=True)
        return [Candidate(system, f, conditions) for f in self.formats]

    @asynccontextmanager
    async def opened(
        self, conditions: dict[str, JsonValue], budget: Budget
    ) -> AsyncIterator[list[Candidate]]:
        """The candidates, whose connections end with the block; `budget` counts what they ask."""
        known = self.candidates(conditions)
        if not isinstance(self.agent, str) or self.agent.startswith(_SCRIPTED):
            yield known
            return
        settings = replace(self.settings, budget=budget)
        async with spec.opened(self.agent, settings, more=_ON_MODEL, dialogue=True) as system:
            yield [replace(one, assistant=system) for one in known]

    def _scripted(self, name: str, conditions: dict[str, JsonValue]) -> list[Candidate]:
        """A scripted assistant, made for each user; see `behaviours`."""
        known = tuple[str, ...](CAUSE)
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; is {near[0]!r} meant?" if near else ""
            raise InputError(
                f"there is no scripted assistant {name!r}{hint} (known: {', '.join(known)})",
                "--agent",
            )

        def for_case(case: Case) -> System | None:
            if case.key not in self._made:
                made = scripted_assistants(
                    case.of.role, case.profile, seed=self.seed, backend=case.of.backend
                )
                self._made[case.key] = made.get(name)
            return self._made[case.key]

        def nobody() -> Any:
            raise AssertionError("a scripted assistant is made for each case")

        parameters: dict[str, JsonValue] = {"adapter": "scripted", "script": name,
                                            "seed": self.seed}  # fmt: skip
        system = System(f"{_SCRIPTED}{name}", nobody, parameters)
        return [Candidate(system, f, conditions, for_case) for f in self.formats]
