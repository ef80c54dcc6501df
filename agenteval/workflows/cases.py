"""Cases of a workflow evaluation (users to serve, turns of recorded sessions), and the instructions
of the agent under test: rules, procedures, tools (arXiv 2406.14884).

The rules paraphrase listing 1 of the paper. The listing says "flowchart" for every format; here the
rules name the actual format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import JsonValue

from agenteval.agents import Dialogue
from agenteval.agents.protocol import Tool
from agenteval.errors import InputError
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.records import Message, ToolCall, content_hash
from agenteval.workflows.backend import BACKEND_FILE, StatefulBackend, backend_sha256, load_backend
from agenteval.workflows.folder import read_role
from agenteval.workflows.results import CaseInfo
from agenteval.workflows.scenario import (
    CROSS,
    Format,
    Profile,
    RecordedSession,
    Role,
    Scenario,
    Turn,
)
from agenteval.workflows.scores import GoldTurn, gold_turns

CHART_HEADING = "as a flowchart (Mermaid):"  # in the instructions if there is a chart
_HEADINGS = {"text": "in words:", "code": "as pseudo-code:", "flowchart": CHART_HEADING}
_WORDS = {  # what the rules call the procedure; formats without one have none
    "text": "description",
    "code": "pseudo-code",
    "flowchart": "flowchart",
    "all": "description, pseudo-code and flowchart",
}


def instructions_prompt() -> Prompt:
    """Return the template of the instructions; its sha256 is part of a result's key."""
    return load_prompt("agenteval.workflows", "agent_system")


def instructions(role: Role, scenario_ids: Sequence[str], format: Format) -> str:
    """Return the system prompt of an agent that serves these scenarios of a role.

    It holds the background, the rules, the procedures of the scenarios in this format, what the
    tools return (not with no_tools) and the time. The tools themselves are offered separately
    (`tools_given`); function calling does not say what a tool returns. Texts of the role are
    inserted unchanged.
    """
    shown = [
        {"title": s.title, "background": s.background, "procedure": _procedure(s, format)}
        for s in map(role.scenario, scenario_ids)
    ]
    tools = () if format == "no_tools" else role.tools_of(tuple(scenario_ids))
    returns = [
        f"- {tool.name}: {json.dumps(tool.returns, ensure_ascii=False)}"
        for tool in tools
        if tool.returns
    ]
    return instructions_prompt().render(
        title=role.title,
        background=role.background.strip(),
        scenarios=shown,
        many=len(shown) > 1,
        word=_WORDS.get(format, ""),
        returns="\n".join(returns),
        now=role.now,
    )


def tools_given(role: Role, scenario_ids: Sequence[str], format: Format) -> tuple[Tool, ...]:
    """Return the tools in the form of function calling, each name once.

    With no_tools they have only their names and those of their parameters: no description, no type,
    and none is required.
    """
    tools = role.tools_of(tuple(scenario_ids))
    if format != "no_tools":
        return tuple(
            Tool(name=t.name, description=t.description, parameters=t.parameters) for t in tools
        )
    return tuple(
        Tool(
            name=t.name,
            parameters={"type": "object", "properties": {key: {} for key in t.properties}},
        )
        for t in tools
    )


def _procedure(scenario: Scenario, format: Format) -> str:
    if format not in _WORDS:
        return ""
    formats = _HEADINGS if format == "all" else (format,)
    return "\n\n".join(
        f"Procedure of {scenario.title!r}, {_HEADINGS[name]}\n\n{getattr(scenario, name).strip()}"
        for name in formats
    )


Kind = Literal["all", "single", "cross"]


@dataclass(frozen=True, slots=True)
class OpenRole:
    """A role and its folder. `backend` makes a new backend; it is None without a backend.py."""

    role: Role
    folder: Path
    backend: Callable[[], StatefulBackend] | None
    backend_sha256: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the backend, which is loaded again from the folder."""
        return _reopened, (self.role, self.folder.absolute(), self.backend_sha256)

    def knowledge(self, scenarios: Sequence[str]) -> list[object]:
        """Return everything in the role that can affect a session of these scenarios, as JSON."""
        skip = {"profiles", "sessions"}
        parts = [self.role.scenario(s).model_dump(mode="json", exclude=skip) for s in scenarios]
        return [self.role.background, self.role.now, parts]

    def answers(self) -> JsonValue:
        """Return what else affects the results of tools: the hash of the backend, or the recorded
        results."""
        if self.backend_sha256 is not None:
            return self.backend_sha256
        role = self.role
        return [
            [session.profile, turn.tool, turn.arguments, turn.result]
            for session in (*(x for s in role.scenarios for x in s.sessions), *role.cross_sessions)
            for turn in session.turns
            if turn.kind == "call"
        ]

    def procedures(self, scenarios: Sequence[str]) -> str:
        """Return the procedures, as text if possible: judges read one format, whichever the agent
        gets."""
        return "\n\n".join(self.role.scenario(s).words for s in scenarios)


def _reopened(role: Role, folder: Path, sha256: str | None) -> OpenRole:
    return OpenRole(role, folder, _backend(folder, sha256) if sha256 else None, sha256)


@cache
def _backend(folder: Path, sha256: str) -> Callable[[], StatefulBackend]:
    if backend_sha256(folder) != sha256:
        raise InputError(f"{BACKEND_FILE} is another file here", str(folder))
    return load_backend(folder)


def open_role(folder: Path, *, backend: bool = True) -> OpenRole:
    """Read the role of a folder; `backend` also runs its backend.py, if there is one.

    Raises InputError as `read_role` and `load_backend`.
    """
    role = read_role(folder)
    if not (backend and (folder / BACKEND_FILE).is_file()):
        return OpenRole(role, folder, None, None)
    return OpenRole(role, folder, load_backend(folder), backend_sha256(folder))


@dataclass(frozen=True, slots=True)
class SessionCase:
    """A user with goals for one session; `recorded` if the session has already taken place."""

    info: CaseInfo
    of: OpenRole
    profile: Profile
    recorded: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """Ids of the scenarios that the agent is given."""
        return self.of.role.given(self.profile.scenarios)

    @property
    def workflow(self) -> str:
        """The procedures as text, for judges."""
        return self.of.procedures(self.given)

    @property
    def key(self) -> str:
        """Content hash (hex) of the user, the procedures and the source of tool results."""
        profile = self.profile.model_dump(mode="json")
        knowledge, answers = self.of.knowledge(self.given), self.of.answers()
        return content_hash(["session", self.info.role, profile, knowledge, answers])


@dataclass(frozen=True, slots=True)
class TurnCase:
    """An agent's turn of a recorded conversation.

    `before` is the conversation up to it. `given` are the scenarios by which it is judged; the
    agent gets those in `shown`, in its format. A row of FlowBench has its `own_prompt` and tools
    instead, and its calls may be written as text. `key` is the content hash (hex) of everything
    that the agent is given, and gold.
    """

    info: CaseInfo
    of: OpenRole
    given: tuple[str, ...]
    gold: GoldTurn
    before: tuple[Message, ...]
    key: str
    shown: tuple[str, ...] = ()
    own_prompt: tuple[Dialogue, tuple[Tool, ...]] | None = None

    @property
    def workflow(self) -> str:
        """The procedures as text, for judges."""
        return self.of.procedures(self.given)

    def asked(self, format: Format) -> tuple[Dialogue, tuple[Tool, ...]]:
        """Return the input of the agent: instructions, the conversation so far, and tools."""
        if self.own_prompt is not None:
            return self.own_prompt
        text = instructions(self.of.role, self.shown, format)
        tools = tools_given(self.of.role, self.shown, format)
        return Dialogue(instructions=text, messages=self.before), tools


_C = TypeVar("_C", SessionCase, TurnCase)


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of cases of a role: scenarios, profiles (None: all), single or cross."""

    kind: Kind = "all"
    scenarios: tuple[str, ...] | None = None
    profiles: tuple[str, ...] | None = None


def session_cases(roles: Sequence[OpenRole], choice: Choice | None = None) -> list[SessionCase]:
    """Return a case for each chosen profile. Raises InputError for a name that no role has."""
    groups = _chosen(roles, choice or Choice())
    return each_once([session_case(g.of, g.name, p) for g in groups for p in g.profiles])


def session_case(
    of: OpenRole, group: str, profile: Profile, *, recorded: bool = False
) -> SessionCase:
    """Return the case of one user; `group` is the middle part of its name."""
    name = f"{of.role.id}/{group}/{profile.id}"
    knowledge = of.knowledge(of.role.given(profile.scenarios))
    info = CaseInfo(
        level="session",
        id=name,
        task=name,
        role=of.role.id,
        domain=of.role.domain,
        scenarios=profile.scenarios,
        persona=profile.persona,
        goals=tuple(goal.text for goal in profile.goals),
        version=content_hash([profile.model_dump(mode="json"), knowledge, of.answers()]),
    )
    return SessionCase(info, of, profile, recorded)


def turn_cases(roles: Sequence[OpenRole], choice: Choice | None = None) -> list[TurnCase]:
    """Return a case for each agent's turn of the chosen recorded sessions, in their order.

    Raises InputError for a name that no role has.
    """
    cases = [
        case
        for group in _chosen(roles, choice or Choice())
        for session in group.sessions
        for profile in group.profiles
        if profile.id == session.profile
        for case in _turns(group, session, profile)
    ]
    return each_once(cases)


def each_once(cases: list[_C]) -> list[_C]:
    """Return the cases. Raises InputError for two with one name, whose trials would be mixed up."""
    seen: set[str] = set()
    for case in cases:
        if case.info.id in seen:
            raise InputError(f"{case.info.id} is defined twice", str(case.of.folder))
        seen.add(case.info.id)
    return cases


def history(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return recorded turns as the messages of a dialogue; results of tools as JSON text."""
    messages: list[Message] = []
    for position, turn in enumerate(turns):
        if turn.kind != "call":
            role = "user" if turn.kind == "user" else "assistant"
            messages.append(Message(role=role, content=turn.text))
            continue
        id = f"call_{position}"
        call = ToolCall(name=turn.tool, arguments=turn.arguments, id=id)
        result = json.dumps(turn.result, ensure_ascii=False)
        messages += [
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content=result, tool_call_id=id),
        ]
    return tuple(messages)


@dataclass(frozen=True, slots=True)
class _Group:
    """The users and sessions of a scenario of a role, or of those across its scenarios."""

    of: OpenRole
    name: str
    profiles: tuple[Profile, ...]
    sessions: tuple[RecordedSession, ...]


def _turns(group: _Group, session: RecordedSession, profile: Profile) -> Iterator[TurnCase]:
    of, role = group.of, group.of.role
    # A session across scenarios needs the procedures of all of them (paper, section 3.1).
    shown = tuple(s.id for s in role.scenarios) if group.name == CROSS else (group.name,)
    knowledge = of.knowledge(shown)
    name = f"{role.id}/{group.name}/{session.id}"
    base = session_case(of, group.name, profile).info.model_copy(
        update={"level": "turn", "task": name, "version": content_hash(knowledge)}
    )
    turns = [turn.model_dump(mode="json") for turn in session.turns]
    for gold in gold_turns(session):
        at = gold.turn
        previous = _words(session.turns[at - 1]) if at else ""
        words = {"id": f"{name}:{at}", "said": previous, "gold": _words(session.turns[at])}
        yield TurnCase(
            info=base.model_copy(update=words),
            of=of,
            given=role.given(profile.scenarios),
            gold=gold,
            before=history(session.turns[:at]),
            key=content_hash(["turn", name, turns[: at + 1], knowledge]),
            shown=shown,
        )


def _words(turn: Turn) -> str:
    if turn.kind != "call":
        return turn.text
    arguments = json.dumps(turn.arguments, ensure_ascii=False, separators=(", ", ": "))
    return f"{turn.tool}({arguments})"


def _chosen(roles: Sequence[OpenRole], choice: Choice) -> list[_Group]:
    """Return the chosen groups of each role: its scenarios, then the one across them. Raises
    InputError for a name that no role has."""
    groups = [
        _Group(of, name, profiles, sessions)
        for of in roles
        for name, profiles, sessions in (
            *((s.id, s.profiles, s.sessions) for s in of.role.scenarios),
            (CROSS, of.role.cross_profiles, of.role.cross_sessions),
        )
    ]
    for what, names, existing in (
        ("scenario", choice.scenarios, {CROSS, *(g.name for g in groups)}),
        ("profile", choice.profiles, {p.id for g in groups for p in g.profiles}),
    ):
        for name in names or ():
            if name not in existing:
                listed = ", ".join(sorted(existing))
                raise InputError(f"no {what} {name!r}; known: {listed}", f"--{what}")

    def among(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
        return tuple(p for p in profiles if choice.profiles is None or p.id in choice.profiles)

    return [
        replace(g, profiles=among(g.profiles))
        for g in groups
        if choice.kind in ("all", "cross" if g.name == CROSS else "single")
        and (choice.scenarios is None or g.name in choice.scenarios)
    ]
