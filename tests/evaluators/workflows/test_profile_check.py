"""Users who cannot succeed or fail, and calls that are not as their tools take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.evaluators.workflows.folder import read_role, role_folders
from agenteval.evaluators.workflows.profile_check import profile_defects, session_defects
from agenteval.evaluators.workflows.scenario import (
    Action,
    Goal,
    Profile,
    RecordedSession,
    Turn,
    WorkflowTool,
)

DESK = Path(__file__).parent / "library_desk"
NOW = "2031-03-12 10:00"
TEXT: dict[str, Any] = {"type": "string"}


def tool(
    name: str, parameters: dict[str, Any], returns: dict[str, Any], *optional: str
) -> WorkflowTool:
    return WorkflowTool(
        name=name,
        description="",
        parameters={
            "type": "object",
            "properties": parameters,
            "required": [p for p in parameters if p not in optional],
            "additionalProperties": False,
        },
        returns={"type": "object", "properties": returns},
        effect="write",
    )


SLOT = {"type": "object", "properties": {"start": TEXT, "room_id": TEXT}}
TOOLS = (
    tool("look", {"day": TEXT}, {"free": {"type": "array", "items": SLOT}, "note": TEXT}),
    tool("rank", {}, {"grade": {"type": "string", "enum": ["gold", "silver"]}}),
    tool(
        "book",
        {"room": TEXT, "people": {"type": "integer"}, "quiet": {"type": "boolean"},
         "unit": {"type": "string", "enum": ["hour"]}},
        {"done": {"type": "boolean"}},
        "people", "quiet", "unit",
    ),
    tool("greet", {"card": TEXT}, {}),
)  # fmt: skip


def user(*calls: tuple[str, dict[str, Any]], **more: Any) -> Profile:
    actions = tuple(Action(tool=name, arguments=arguments) for name, arguments in calls)
    known: dict[str, Any] = {"persona": "x", "opening": "Hello.", **more}
    goals = (Goal(text="Have a place.", actions=actions),)
    return Profile(id="u", scenarios=("s",), goals=goals, **known)


def told(profile: Profile) -> list[str]:
    return [f"{d.severity}: {d.message}" for d in profile_defects([profile], TOOLS, NOW)]


@pytest.mark.parametrize("folder", [DESK, *role_folders().values()], ids=lambda path: path.name)
def test_the_roles_that_are_supplied_are_sound(folder: Path) -> None:
    role = read_role(folder)
    tools = role.tools_of(tuple(s.id for s in role.scenarios))
    profiles = [p for s in role.scenarios for p in s.profiles] + list(role.cross_profiles)
    sessions = [x for s in role.scenarios for x in s.sessions] + list(role.cross_sessions)
    assert profiles
    assert profile_defects(profiles, tools, role.now) == ()
    assert session_defects(sessions, tools) == ()


def test_a_user_without_any_call_wants_nothing_changed() -> None:
    assert told(user()) == [
        "warning: profile u: no goal needs a call and nothing is to be told: success is that "
        "nothing is changed"
    ]
    profile = user(("look", {"day": "2031-03-12"}), facts={"day": "2031-03-12"})
    chat = profile.model_copy(update={"goals": (Goal(text="Chat."), *profile.goals)})
    assert told(chat) == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("look", {}), "look(): 'day' is a required property"),
        (("look", {"day": 3}), "look(day=3): day: 3 is not of type 'string'"),
        (
            ("rank", {"day": "Sunday"}),
            "rank(day=\"Sunday\"): Additional properties are not allowed ('day' was unexpected)",
        ),
    ],
)
def test_gold_calls_are_as_their_tools_take_them(
    call: tuple[str, dict[str, Any]], expected: str
) -> None:
    found = told(user(call, facts={"day": [3, "Sunday"]}))
    assert found == [f"error: profile u: gold call {expected}"]


def test_a_call_of_no_tool() -> None:
    assert told(user(("loook", {}))) == ["error: profile u: there is no tool loook"]


@pytest.mark.parametrize(
    ("calls", "more"),
    [
        ([("book", {"room": "Blue"})], {"facts": {"room": "Blue"}}),
        ([("book", {"room": "Blue"})], {"facts": {"room": ["Red", "Blue"]}}),
        ([("book", {"room": "Blue", "people": 4})],
         {"facts": {"room": "blue"}, "opening": "We are 4 people."}),
        ([("book", {"room": "Blue", "people": 4})], {"facts": {"room": "Blue", "guests": 4}}),
        ([("book", {"room": "Blue", "quiet": True})],
         {"facts": {"room": "Blue"}, "choices": ["Take a quiet one"]}),
        ([("book", {"room": "Blue", "unit": "hour"})], {"facts": {"room": "Blue"}}),
        ([("look", {"day": "2031-03-12"})], {"facts": {"day": "2031-03-12"}}),
        ([("look", {"day": "Sunday"}), ("book", {"room": "B7"})], {"facts": {"day": "Sunday"}}),
        ([("rank", {}), ("greet", {"card": "gold"})], {}),
    ],
    ids=[
        "fact", "fact_of_several", "opening", "other_fact", "flag_by_name", "only_value",
        "time", "field_inside", "value_of_a_limited_field",
    ],
)  # fmt: skip
def test_what_a_user_can_tell_or_a_call_returns(
    calls: list[tuple[str, dict[str, Any]]], more: dict[str, Any]
) -> None:
    assert told(user(*calls, **more)) == []


@pytest.mark.parametrize(
    ("calls", "more", "expected"),
    [
        ([("book", {"room": "Blue"})], {},
         'book(room="Blue"): the user cannot tell room "Blue", and no call before returns it'),
        ([("book", {"room": "Blue"})], {"facts": {"room": "Red", "wall": "Blue"}},
         'book(room="Blue"): the user cannot tell room "Blue", and no call before returns it'),
        ([("book", {"room": "B7"}), ("look", {"day": "Sunday"})], {"facts": {"day": "Sunday"}},
         'book(room="B7"): the user cannot tell room "B7", and no call before returns it'),
        ([("look", {"day": "Sunday"}), ("greet", {"card": "gold"})], {"facts": {"day": "Sunday"}},
         'greet(card="gold"): the user cannot tell card "gold", and no call before returns it'),
        ([("rank", {}), ("greet", {"card": "tin"})], {},
         'greet(card="tin"): the user cannot tell card "tin", and no call before returns it'),
        ([("book", {"room": "Blue", "people": 4})], {"facts": {"room": "Blue"}, "opening": "14"},
         'book(room="Blue", people=4): the user cannot tell people 4, '
         "and no call before returns it"),
        ([("book", {"room": "Blue", "quiet": True})], {"facts": {"room": "Blue", "people": 1}},
         'book(room="Blue", quiet=true): the user cannot tell quiet true, '
         "and no call before returns it"),
        ([("book", {"room": "Blue"})], {"opening": "The blue one, please."},
         'book(room="Blue"): the user has no fact room to tell when it is asked for it'),
    ],
    ids=[
        "nowhere", "another_fact_of_the_name", "returned_too_late", "any_text_is_none",
        "not_of_the_limited_values", "part_of_a_number", "one_is_not_true", "required_in_words",
    ],
)  # fmt: skip
def test_what_a_user_cannot_tell(
    calls: list[tuple[str, dict[str, Any]]], more: dict[str, Any], expected: str
) -> None:
    assert told(user(*calls, **more)) == [f"warning: profile u: gold call {expected}"]


def test_the_same_is_told_once() -> None:
    call = ("book", {"room": "Blue"})
    assert len(told(user(call, call))) == 1


def test_recorded_calls_are_as_their_tools_have_them() -> None:
    def call(name: str, arguments: dict[str, Any], result: Any) -> Turn:
        return Turn(
            kind="call", tool=name, arguments=arguments, result=result, scenario="s", node="A1"
        )

    session = RecordedSession(
        id="r",
        profile="u",
        turns=(
            Turn(kind="user", text="Hello."),
            call("book", {"room": "Blue"}, {"done": True}),
            call("book", {"room": 7}, {"done": "yes"}),
            call("boook", {}, {}),
            call("book", {"room": "Red"}, "This room is taken."),
            Turn(kind="reply", text="Bye.", scenario="s", node="A1"),
        ),
    )
    assert [(d.kind, d.severity, d.message) for d in session_defects([session], TOOLS)] == [
        ("profile", "error", "session r, turn 2: arguments of book: "
         "room: 7 is not of type 'string'"),
        ("profile", "error", "session r, turn 2: result of book: "
         "done: 'yes' is not of type 'boolean'"),
        ("profile", "error", "session r, turn 3: there is no tool boook"),
        ("profile", "warning", "session r, turn 4: result of book: "
         "'This room is taken.' is not of type 'object'"),
    ]  # fmt: skip
