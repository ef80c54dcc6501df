"""The agent under test, and how it is run at planning cases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from agenteval.agents import AgentLimits, System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.engine.executor import Executor, make_executor
from agenteval.models.factory import Model
from agenteval.models.limits import Limits
from agenteval.planning.case import Case
from agenteval.planning.evaluator import EVALUATOR, Rules
from agenteval.planning.oracle import CheckRules
from agenteval.planning.scripted import SCRIPTED
from agenteval.planning.suite import read_suite
from agenteval.records import Usage
from agenteval.store import Store, Trials

if TYPE_CHECKING:
    from pydantic import JsonValue

Suite = str | Path | Sequence[Case]
StorePath = str | Path | Store | None
Agent = str | Callable[..., Any]


class How(TypedDict, total=False):
    """How an agent is run; see `AgentSetup`."""

    model: Model
    base_url: str | None
    temperature: float | None
    max_tokens: int | None
    seconds: float
    turns: int
    strict: bool
    log_order: bool
    limits: Limits
    dry_run: bool
    workers: int | None
    ray: str | None


@dataclass(frozen=True)
class AgentSetup:
    """The agent under test, and how each case is run.

    `agent` is what `--agent` takes (openai, responses, react, autogen, python:MODULE:FUNCTION,
    command:CMD, mcp:CMD, scripted:NAME) or a function (request, tools), plain or async. The first
    four run on `model`. `seconds` and `turns` bound one case. `strict`: any call that could not be
    carried out fails the case, and attempts before a restart count as well. `log_order`: calls made
    at once count in the order of the log. With `dry_run` nothing is sent or stored, no key is
    needed, and the report's `estimate` says what would be asked. `workers` and `ray` are those of
    `ExecutorOptions`.
    """

    agent: Agent
    model: Model = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    seconds: float = 180.0
    turns: int = 50
    strict: bool = False
    log_order: bool = False
    limits: Limits = Limits(concurrency=4)  # noqa: RUF009  frozen
    dry_run: bool = False
    workers: int | None = None
    ray: str | None = None

    @cached_property
    def executor(self) -> Executor:
        """Where cases are run. Raises InputError as `make_executor`."""
        return make_executor(self.workers, self.ray)

    @property
    def rules(self) -> Rules:
        """Limits of a case and rules of the oracle."""
        check = CheckRules(strict=self.strict, log_order=self.log_order)
        return Rules(AgentLimits(self.seconds, self.turns), check)

    def system(self) -> System:
        """The system alone, to know its name and key; nothing is opened or sent."""
        return self._limited(spec.system(self.agent, self._settings(), SCRIPTED))

    @asynccontextmanager
    async def opened(self, store: Store) -> AsyncIterator[System]:
        """The system; its endpoint's connections end with the block.

        What its earlier trials and dissections have spent counts towards the caps.
        """
        settings = self._settings(self.spent(store), store)
        async with spec.opened(self.agent, settings, SCRIPTED) as system:
            yield self._limited(system)

    def spent(self, store: Store) -> Usage:
        """What trials and dissections of the system have taken so far."""
        tables, key = Trials(store), self.system().sha256
        names = [n for n in tables.evaluators() if n == EVALUATOR or n.startswith(f"{EVALUATOR}.")]
        return sum((tables.usage(name, key) for name in names), Usage())

    def _settings(self, spent: Usage | None = None, store: Store | None = None) -> AgentSettings:
        return AgentSettings(
            model=self.model,
            base_url=self.base_url,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            concurrency=self.limits.concurrency,
            seconds=self.seconds,
            budget=None if spent is None else self.limits.budget(spent),
            need_key=not self.dry_run,
            store=store,
        )

    def _limited(self, system: System) -> System:
        """Limits other than the usual ones make it another system: what was stopped after 3 turns
        must not stand for what 50 would have allowed."""
        limits = self.rules.limits
        if limits == AgentLimits():
            return system
        named: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
        return replace(system, parameters={**system.parameters, "limits": named})


def read_cases(suite: Suite) -> list[Case]:
    """The cases of a file, or those given."""
    return list(read_suite(Path(suite)) if isinstance(suite, str | Path) else suite)
