"""Records of workflow evaluation: roles, scenarios, tools, user profiles, recorded sessions.

`folder` reads them from the folder of a role; docs/workflows.md describes its files. Schemas of
tools may be written as FlowBench (arXiv 2406.14884) writes them: types by their names in Python
(`list`), `required: true` beside the type of a parameter, and parameters by name, without an object
around them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from agenteval.records import Record, canonical_json, content_hash

Name = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
# Format of the procedure: one format, all three, none, or none and the tools by name only.
Format = Literal["text", "code", "flowchart", "all", "none", "no_tools", "recorded"]
Demand = Literal["state", "state+reads"]  # what success requires
_WRITTEN: tuple[Format, ...] = ("text", "code", "flowchart")
FORMATS: tuple[Format, ...] = ("text", "code", "flowchart", "all", "none", "no_tools")
RECORDED: Format = "recorded"  # by a prompt in the data, which may be unknown here
EVERY_FORMAT = (*FORMATS, RECORDED)
CROSS = "cross"  # the folder beside the scenarios


class WorkflowTool(Record):
    """A tool with what it returns. `write` changes the state of the backend, `read` does not; None:
    unknown.

    `parameters` and `returns` are JSON schemas of objects; a tool whose `returns` is {} may return
    anything.
    """

    name: str = Field(pattern=Name)
    description: str = ""
    parameters: dict[str, JsonValue]
    returns: dict[str, JsonValue] = Field(default_factory=dict)
    effect: Literal["read", "write"] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the returned values, at the top level."""
        return tuple(_properties(self.returns))

    def returned(self, field: str) -> dict[str, JsonValue]:
        """Return the schema of a returned value; {} when it says nothing."""
        schema = _properties(self.returns).get(field)
        return schema if isinstance(schema, dict) else {}

    @property
    def properties(self) -> dict[str, JsonValue]:
        """Schemas of the parameters by name."""
        return _properties(self.parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that a call must have."""
        names = self.parameters.get("required")
        return tuple(str(name) for name in names) if isinstance(names, list) else ()


def _properties(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def complaint(schema: Mapping[str, Any], value: JsonValue) -> str | None:
    """Return the first problem of the value, None if it is valid. Never fetches a `$ref`."""
    for error in _validator(canonical_json(dict(schema))).iter_errors(value):
        where = ".".join(map(str, error.absolute_path))
        return f"{where}: {error.message}" if where else str(error.message)
    return None


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why this is not a JSON schema of objects, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if schema.get("type") != "object":
        return "is no schema of objects: its type has to be object"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        return f"is no JSON schema ({where}: {error.message})"
    except RecursionError:
        return "is nested too deeply"
    return None


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(json.loads(schema), registry=EMPTY_REGISTRY)


class Action(Record):
    """One call of a tool."""

    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class Goal(Record):
    """A goal of a user as text, the calls that achieve it, and the words that the user must be told
    (`equality.contains_tokens`).

    Without calls and words it is out of scope; if no goal of a user has calls, the agent must not
    change anything.
    """

    text: str
    actions: tuple[Action, ...] = ()
    told: tuple[str, ...] = ()

    @model_serializer(mode="wrap")
    def _brief(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out an empty `told`: users written before it existed keep their hash."""
        return {key: value for key, value in write(self).items() if key != "told" or value}


class Profile(Record):
    """A user with persona, goals, knowledge and behavior.

    `facts` are its values by parameter name; a list has one value for each time that the parameter
    is asked for, and the last one is repeated. `choices` are the labels of edges that the user
    chooses, in order. `asides` are remarks outside the procedure. `scenarios` are ids; more than
    one makes it a cross-scenario profile.
    """

    id: str = Field(pattern=Name)
    scenarios: tuple[str, ...] = Field(min_length=1)
    persona: str
    opening: str
    goals: tuple[Goal, ...] = Field(min_length=1)
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    choices: tuple[str, ...] = ()
    behaviours: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        """All gold calls in order."""
        return tuple(action for goal in self.goals for action in goal.actions)


class Turn(Record):
    """One step of a recorded session: a message of the user, or a tool call or reply of the agent.

    `text` is the message (`user`, `reply`). Turns of the agent are annotated: `scenario` and `node`
    are the position in a chart, and `intent` is the label of the edge that led there ("" without a
    move, "out of scope" for what no edge covers).
    """

    kind: Literal["user", "call", "reply"]
    text: str = ""
    tool: str = ""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    result: JsonValue = None
    scenario: str = ""
    node: str = ""
    intent: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "call" and not self.tool:
            raise ValueError("a call needs the name of its tool")
        if self.kind != "call" and (self.tool or not self.text.strip()):
            raise ValueError(f"a {self.kind} turn needs text and no tool")
        if self.kind != "user" and not (self.node and self.scenario):
            raise ValueError(f"a {self.kind} turn needs its scenario and node")
        return self


class RecordedSession(Record):
    """A whole conversation of a profile's user with an agent that made no mistake."""

    id: str = Field(pattern=Name)
    profile: str
    turns: tuple[Turn, ...] = Field(min_length=2)


class RecordedTurn(Record):
    """One turn of a session that is replayed instead of an agent: the user's words, the agent's
    calls, and its reply."""

    user: str
    calls: tuple[Action, ...] = ()
    reply: str


class Scenario(Record):
    """One procedure in up to three formats, its tools, its users and recorded sessions."""

    id: str = Field(pattern=Name)
    title: str
    background: str = ""
    text: str = ""
    code: str = ""
    flowchart: str = ""
    tools: tuple[WorkflowTool, ...] = Field(min_length=1)
    profiles: tuple[Profile, ...] = ()
    sessions: tuple[RecordedSession, ...] = ()

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats in which the procedure is written."""
        return tuple(f for f in _WRITTEN if getattr(self, f).strip())

    @property
    def words(self) -> str:
        """The procedure as text, or else in the next available format."""
        return next((text for f in _WRITTEN if (text := getattr(self, f)).strip()), "")


class Role(Record):
    """A role with its scenarios. `now` is the time at which all sessions take place.

    `success` is the requirement of a session: the final state after the gold calls, or also all
    results that gold obtained ("state+reads"), for users who want information.
    """

    id: str = Field(pattern=Name)
    domain: str
    title: str
    background: str = ""
    now: str = ""
    success: Demand = "state"
    scenarios: tuple[Scenario, ...] = Field(min_length=1)
    cross_profiles: tuple[Profile, ...] = ()
    cross_sessions: tuple[RecordedSession, ...] = ()

    def scenario(self, id: str) -> Scenario:
        """Return the scenario with this id. Raises KeyError."""
        return {s.id: s for s in self.scenarios}[id]

    def given(self, scenarios: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scenarios that an agent gets: the single one, or for a user who needs several,
        all of the role, so that the agent must choose (arXiv 2406.14884, section 3.1)."""
        return scenarios if len(scenarios) == 1 else tuple(s.id for s in self.scenarios)

    def tools_of(self, scenarios: tuple[str, ...]) -> tuple[WorkflowTool, ...]:
        """Return the tools of these scenarios in order. If two have the same name, the first
        counts."""
        tools: dict[str, WorkflowTool] = {}
        for tool in (t for s in scenarios for t in self.scenario(s).tools):
            tools.setdefault(tool.name, tool)
        return tuple(tools.values())

    @cached_property
    def conflicts(self) -> tuple[str, ...]:
        """One sentence for each tool that two scenarios define differently."""
        first: dict[str, tuple[str, WorkflowTool]] = {}
        tools = []
        for scenario in self.scenarios:
            for tool in scenario.tools:
                other, first_tool = first.setdefault(tool.name, (scenario.id, tool))
                if first_tool != tool:
                    tools.append(
                        f"the tool {tool.name!r} is defined otherwise in {scenario.id} than in "
                        f"{other}: each has its own, users of several have that of {other}"
                    )
        return tuple(tools)

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of everything that can affect a session."""
        return content_hash(self.model_dump(mode="json", exclude={"success"}))


_TYPES = {"list": "array", "dict": "object", "str": "string", "int": "integer"}
_TYPES |= {"float": "number", "bool": "boolean"}


def standard_schema(written: JsonValue) -> JsonValue:
    """Convert a schema in FlowBench's format to JSON schema; unchanged if it already is one or
    cannot be converted."""
    if not isinstance(written, dict) or schema_problem(written) is None:
        return written
    by_name = "properties" not in written and not isinstance(written.get("type"), str)
    if by_name and all(isinstance(value, dict) for value in written.values()):
        written = {"type": "object", "properties": written}
    schema = json_types(written)
    return schema if schema_problem(schema) is None else written


def json_types(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the types of JSON schema and one list of the required properties."""
    schema = dict(written)
    if isinstance(kind := schema.get("type"), str):
        schema["type"] = _TYPES.get(kind.lower(), kind.lower())
    if isinstance(items := schema.get("items"), dict):
        schema["items"] = json_types(items)
    if not isinstance(properties := schema.get("properties"), dict):
        return schema
    required = list(schema["required"]) if isinstance(schema.get("required"), list) else []
    schema["properties"] = {}
    for name, value in properties.items():
        about = json_types(value) if isinstance(value, dict) else value
        is_flag = isinstance(about, dict) and not isinstance(about.get("required"), list)
        if is_flag and about.pop("required", None) is True and name not in required:
            required.append(name)
        schema["properties"][name] = about
    schema.pop("required", None)
    return {**schema, "required": required} if required else schema
