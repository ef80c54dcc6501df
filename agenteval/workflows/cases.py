"""The cases of a workflow evaluation: users to be served, and turns of recorded sessions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import JsonValue

from agenteval.agents import Dialogue
from agenteval.agents.protocol import Tool
from agenteval.errors import InputError
from agenteval.records import Message, content_hash
from agenteval.workflows.backend import (
    BACKEND_FILE,
    StatefulBackend,
    backend_sha256,
    load_backend,
)
from agenteval.workflows.folder import read_role
from agenteval.workflows.predict import given_at, history, scenarios_of
from agenteval.workflows.results import CaseInfo
from agenteval.workflows.scenario import (
    CROSS,
    Format,
    Profile,
    RecordedSession,
    Role,
    Turn,
)
from agenteval.workflows.turn_score import GoldTurn, gold_turns

Kind = Literal["all", "single", "cross"]


@dataclass(frozen=True, slots=True)
class OpenRole:
    """A role with the folder it was read from; `backend` makes a fresh one, None without a file."""

    role: Role
    folder: Path
    backend: Callable[[], StatefulBackend] | None
    backend_sha256: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the backend, which is loaded from the same folder where it is read."""
        return _reopened, (self.role, self.folder.absolute(), self.backend_sha256)

    def knowledge(self, scenarios: Sequence[str]) -> list[object]:
        """What of the role can change how a session of these scenarios goes, as JSON values."""
        skip = {"profiles", "sessions"}
        own = [self.role.scenario(s).model_dump(mode="json", exclude=skip) for s in scenarios]
        return [self.role.background, self.role.now, own]

    def answers(self) -> JsonValue:
        """What besides can change what tools return: the backend, or else the recorded results."""
        if self.backend_sha256 is not None:
            return self.backend_sha256
        role = self.role
        return [
            [session.profile, turn.tool, turn.arguments, turn.result]
            for session in (*(x for s in role.scenarios for x in s.sessions), *role.cross_sessions)
            for turn in session.turns
            if turn.kind == "call"
        ]


def _reopened(role: Role, folder: Path, sha256: str | None) -> OpenRole:
    return OpenRole(role, folder, _backend(folder, sha256) if sha256 else None, sha256)


@cache
def _backend(folder: Path, sha256: str) -> Callable[[], StatefulBackend]:
    if backend_sha256(folder) != sha256:
        raise InputError(f"{BACKEND_FILE} is another file here", str(folder))
    return load_backend(folder)


def open_role(folder: Path, *, backend: bool = True) -> OpenRole:
    """The role of a folder; with `backend` its backend.py is run, if there is one.

    Raises InputError as `read_role` and `load_backend`.
    """
    role = read_role(folder)
    if not (backend and (folder / BACKEND_FILE).is_file()):
        return OpenRole(role, folder, None, None)
    return OpenRole(role, folder, load_backend(folder), backend_sha256(folder))


@dataclass(frozen=True, slots=True)
class _WorkflowCase:
    info: CaseInfo
    of: OpenRole
    profile: Profile

    @property
    def workflow(self) -> str:
        """The procedures, as text where they are, whatever an agent is given: one judge for all
        formats."""
        return "\n\n".join(self.of.role.scenario(s).words for s in self.given)

    @property
    def given(self) -> tuple[str, ...]:
        """Ids of the scenarios of which an agent is told."""
        return self.of.role.given(self.profile.scenarios)


@dataclass(frozen=True, slots=True)
class SessionCase(_WorkflowCase):
    """A user with goals, to be served in one session, or who was (`recorded`: see
    `trajectories`)."""

    recorded: bool = False

    @property
    def key(self) -> str:
        """Content hash (hex) of the user, the knowledge and what answers calls."""
        return content_hash(
            [
                "session",
                self.info.role,
                self.profile.model_dump(mode="json"),
                self.of.knowledge(self.given),
                self.of.answers(),
            ]
        )


@dataclass(frozen=True, slots=True)
class TurnCase(_WorkflowCase):
    """An agent's turn of a recorded session: `index` is that of the turn."""

    session: RecordedSession
    index: int

    in_words: ClassVar[bool] = False  # whether calls may stand in the agent's words

    @property
    def turn(self) -> Turn:
        """The gold turn."""
        return self.session.turns[self.index]

    @property
    def gold(self) -> GoldTurn:
        """The same as it is scored."""
        return next(g for g in gold_turns(self.session) if g.turn == self.index)

    @property
    def before(self) -> tuple[Message, ...]:
        """The talk before the turn."""
        return history(self.session.turns[: self.index])

    def asked(self, format: Format) -> tuple[Dialogue, tuple[Tool, ...]]:
        """What the agent is given: instructions with the talk so far, and tools."""
        return given_at(self.of.role, self.session, self.index, format)

    @property
    def key(self) -> str:
        """Content hash (hex) of the conversation up to and with the turn, and the knowledge."""
        turns = [t.model_dump(mode="json") for t in self.session.turns[: self.index + 1]]
        scenarios = scenarios_of(self.of.role, self.session)
        return content_hash(["turn", self.info.task, turns, self.of.knowledge(scenarios)])


_C = TypeVar("_C", SessionCase, TurnCase)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases of a role: these scenarios, these profiles (None: all), single or cross."""

    kind: Kind = "all"
    scenarios: tuple[str, ...] | None = None
    profiles: tuple[str, ...] | None = None


def session_cases(roles: Sequence[OpenRole], choice: Choice | None = None) -> list[SessionCase]:
    """A case for each chosen profile. Raises InputError for a name that no role has."""
    choice = choice or Choice()
    _check_names(roles, choice)
    cases = [
        session_case(of, group, profile)
        for of in roles
        for group, profiles, _ in _groups(of.role, choice)
        for profile in profiles
        if choice.profiles is None or profile.id in choice.profiles
    ]
    return each_once(cases)


def session_case(
    of: OpenRole, group: str, profile: Profile, *, recorded: bool = False
) -> SessionCase:
    """The case of one user; `group` is the middle of its name."""
    return SessionCase(_session_info(of, group, profile), of, profile, recorded)


def turn_cases(roles: Sequence[OpenRole], choice: Choice | None = None) -> list[TurnCase]:
    """A case for each agent's turn of the chosen recorded sessions, in their order.

    Raises InputError for a name that no role has.
    """
    choice = choice or Choice()
    _check_names(roles, choice)
    cases = []
    for of in roles:
        for group, profiles, sessions in _groups(of.role, choice):
            by_id = {p.id: p for p in profiles}
            for session in sessions:
                profile = by_id[session.profile]
                if choice.profiles is None or profile.id in choice.profiles:
                    cases += _turns(of, group, profile, session)
    return each_once(cases)


def each_once(cases: list[_C]) -> list[_C]:
    """The cases. Raises InputError for two of one name: trials of them could not be told apart."""
    seen: set[str] = set()
    for case in cases:
        if case.info.id in seen:
            raise InputError(f"{case.info.id} is there twice", str(case.of.folder))
        seen.add(case.info.id)
    return cases


def _turns(of: OpenRole, group: str, profile: Profile, session: RecordedSession) -> list[TurnCase]:
    base = _session_info(of, group, profile)
    name = f"{of.role.id}/{group}/{session.id}"
    return [
        TurnCase(
            base.model_copy(
                update={
                    "level": "turn",
                    "version": content_hash(of.knowledge(scenarios_of(of.role, session))),
                    "id": f"{name}:{index}",
                    "task": name,
                    "said": _words(session.turns[index - 1]) if index else "",
                    "gold": _words(turn),
                }
            ),
            of,
            profile,
            session,
            index,
        )
        for index, turn in enumerate(session.turns)
        if turn.kind != "user"
    ]


def _session_info(of: OpenRole, group: str, profile: Profile) -> CaseInfo:
    name = f"{of.role.id}/{group}/{profile.id}"
    return CaseInfo(
        level="session",
        id=name,
        task=name,
        role=of.role.id,
        domain=of.role.domain,
        scenarios=profile.scenarios,
        persona=profile.persona,
        goals=tuple(goal.text for goal in profile.goals),
        version=content_hash(
            [
                profile.model_dump(mode="json"),
                of.knowledge(of.role.given(profile.scenarios)),
                of.answers(),
            ]
        ),
    )


def _words(turn: Turn) -> str:
    if turn.kind != "call":
        return turn.text
    arguments = json.dumps(turn.arguments, ensure_ascii=False, separators=(", ", ": "))
    return f"{turn.tool}({arguments})"


def _groups(
    role: Role, choice: Choice
) -> Iterator[tuple[str, tuple[Profile, ...], tuple[RecordedSession, ...]]]:
    """Folder name, profiles and sessions: the scenarios, then those across them."""
    wanted = choice.scenarios
    for scenario in role.scenarios:
        if choice.kind != "cross" and (wanted is None or scenario.id in wanted):
            yield scenario.id, scenario.profiles, scenario.sessions
    if choice.kind != "single" and (wanted is None or CROSS in wanted):
        yield CROSS, role.cross_profiles, role.cross_sessions


def _check_names(roles: Sequence[OpenRole], choice: Choice) -> None:
    scenarios = {s.id for of in roles for s in of.role.scenarios} | {CROSS}
    profiles = {
        p.id
        for of in roles
        for group in (*(s.profiles for s in of.role.scenarios), of.role.cross_profiles)
        for p in group
    }
    for name in choice.scenarios or ():
        if name not in scenarios:
            known = ", ".join(sorted(scenarios))
            raise InputError(f"no scenario {name!r}; known: {known}", "--scenario")
    for name in choice.profiles or ():
        if name not in profiles:
            known = ", ".join(sorted(profiles))
            raise InputError(f"no profile {name!r}; known: {known}", "--profile")
