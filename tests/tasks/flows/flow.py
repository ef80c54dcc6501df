"""A role under test, with its backend."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.chart.nouns import Chart
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.folder import StatefulBackend, load_backend, read_role
from agenteval.evaluators.workflows.scenario import (
    CROSS,
    Action,
    Profile,
    RecordedSession,
    Role,
    WorkflowTool,
)


@dataclass(frozen=True)
class Flow:
    """A role with its backend, and what the check of arguments takes for said (see `Spoken`).

    `from_results` names parameters whose value the agent may take from an earlier result.
    """

    role: Role
    backend: Callable[[], StatefulBackend]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_results: frozenset[str] = frozenset()

    def tool(self, name: str) -> WorkflowTool:
        tools = {t.name: t for s in self.role.scenarios for t in s.tools}
        return tools[name]

    def groups(
        self,
    ) -> Iterator[tuple[str, tuple[Profile, ...], tuple[RecordedSession, ...]]]:
        for s in self.role.scenarios:
            yield s.id, s.profiles, s.sessions
        if len(self.role.scenarios) > 1:
            yield CROSS, self.role.cross_profiles, self.role.cross_sessions

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        for group, profiles, _ in self.groups():
            for profile in profiles:
                yield group, profile

    def sessions(self) -> Iterator[tuple[str, RecordedSession, Profile]]:
        for group, profiles, sessions in self.groups():
            known = {p.id: p for p in profiles}
            for session in sessions:
                yield f"{group}/{session.id}", session, known[session.profile]

    def charts(self) -> dict[str, Chart]:
        return {s.id: parse_chart(s.flowchart) for s in self.role.scenarios}


def load(
    folder: Path,
    aliases: Mapping[str, tuple[str, ...]] | None = None,
    from_results: frozenset[str] = frozenset(),
) -> Flow:
    return Flow(read_role(folder), load_backend(folder), aliases or {}, from_results)


def carry_out(backend: StatefulBackend, tool: str, arguments: Mapping[str, JsonValue]) -> Any:
    """The result, as it is after a way through JSON. Raises what the method raises."""
    result = getattr(backend, tool)(**arguments)
    return json.loads(json.dumps(result, allow_nan=False))


def state_after(flow: Flow, actions: tuple[Action, ...]) -> dict[str, Any]:
    backend = flow.backend()
    for action in actions:
        carry_out(backend, action.tool, action.arguments)
    return backend.state


def calls_of(session: RecordedSession) -> tuple[Action, ...]:
    return tuple(
        Action(tool=t.tool, arguments=t.arguments) for t in session.turns if t.kind == "call"
    )
