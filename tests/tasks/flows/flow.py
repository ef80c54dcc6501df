"""A role under test, with its backend."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agenteval.workflows.backend import StatefulBackend, load_backend
from agenteval.workflows.chart import Chart
from agenteval.workflows.folder import read_role
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.scenario import CROSS, Action, Profile, RecordedSession, Role, WorkflowTool

FLOWS = Path(__file__).resolve().parents[3] / "tasks" / "flows"


@dataclass(frozen=True)
class Flow:
    """A role with its backend.

    The role is read when it is first asked for: where tests run on several workers, each reads
    only those that it tests.
    """

    folder: Path
    read: Callable[[], Role]
    backend: Callable[[], StatefulBackend]

    @cached_property
    def role(self) -> Role:
        return self.read()

    @cached_property
    def tools(self) -> dict[str, WorkflowTool]:
        return {t.name: t for s in self.role.scenarios for t in s.tools}

    @cached_property
    def charts(self) -> dict[str, Chart]:
        return {s.id: parse_chart(s.flowchart) for s in self.role.scenarios}

    def groups(self) -> Iterator[tuple[str, tuple[Profile, ...], tuple[RecordedSession, ...]]]:
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


def load(name: str) -> Flow:
    """The role of this name in `tasks/flows`."""
    folder = FLOWS / name
    return Flow(folder, cache(lambda: read_role(folder)), load_backend(folder))


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
