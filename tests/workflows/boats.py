"""A small procedure of the maintainers' own: a boat is looked up and hired, in three formats."""

from __future__ import annotations

from typing import Any

from agenteval.workflows.scenario import Scenario, WorkflowTool

CHART = """flowchart TD
BH000(Start)--Hire a boat-->BH001>Ask which boat it shall be,
call check_boat, and go by the returned is_free]
BH001--The boat is free (is_free = true)--> BH002>Say that it is free. Ask for the
skipper's name, call book_boat, and go by the returned state ]
BH002--Hired (state = "hired")-->BH003[Tell the jetty. Ask whether another one is wanted]
BH002--Not hired (state != hired)-->BH004[Say that it was refused, and ask whether to try again]
BH004 & BH003--Tries again-->BH002
BH004 & BH003--Wants no more-->BH006[Wish a good day]
BH001--The boat is out (is_free = false)-->BH005[Say that it is out; ask for another boat]
BH005--Names another boat-->BH001
"""

CODE = """def hire_a_boat():
    while True:
        boat = ask("boat")
        found = check_boat(boat=boat)
        if found.is_free == True:
            break
        reply("It is out. Another boat?")
    while True:
        skipper = ask("skipper")
        hire = book_boat(boat=boat, skipper=skipper)
        if hire.state == "hired":
            reply("It lies at this jetty. Another one?")
        else:
            reply("It was refused. Try again?")
        if user_says("Wants no more"):
            return reply("A good day!")
"""

TEXT = """Ask which boat it shall be and call check_boat. While it is out (is_free is false), ask
for another one. When it is free, ask for the skipper's name and call book_boat. If its state is
hired, tell the jetty and ask whether another one is wanted; else say that it was refused and ask
whether to try again. Whoever wants so, books again; all others are wished a good day."""


def tool(
    name: str,
    returns: dict[str, Any],
    parameters: tuple[str, ...] = (),
    required: tuple[str, ...] | None = None,
) -> WorkflowTool:
    """A tool whose parameters are texts."""
    return WorkflowTool(
        name=name,
        description=f"{name}.",
        effect="write",
        parameters={
            "type": "object",
            "properties": {p: {"type": "string"} for p in parameters},
            "required": list(parameters if required is None else required),
        },
        returns={"type": "object", "properties": returns, "required": list(returns)},
    )


CHECK = tool("check_boat", {"is_free": {"type": "boolean"}}, ("boat",))
BOOK = tool(
    "book_boat",
    {
        "state": {"type": "string", "enum": ["hired", "refused", "too_late"]},
        "jetty": {"type": "string"},
    },
    ("boat", "skipper"),
)
TOOLS = (CHECK, BOOK)


def boats(**changes: Any) -> Scenario:
    """The scenario, with other texts where they are given."""
    whole: dict[str, Any] = {
        "id": "hire_boat",
        "title": "Hire a boat",
        "background": "A guest wants a boat.",
        "text": TEXT,
        "code": CODE,
        "flowchart": CHART,
        "tools": TOOLS,
    }
    return Scenario(**(whole | changes))


def replaced(text: str, old: str, new: str) -> str:
    """The text with its one occurrence of `old` replaced."""
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)
