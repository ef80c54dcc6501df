"""What the other readers of replies make of a text: critic, locator, judges, simulators, agents.

Each function returns plain JSON that says what was read, or None where the reader refused the text
with ReplyError (or says itself that it is unreadable). Any other exception is a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from agenteval.agents.react import read_step
from agenteval.agents.toolbox import as_object
from agenteval.errors import ReplyError
from agenteval.models.client import Client, RetryPolicy
from agenteval.planning.invent import read_professions
from agenteval.records import Run
from agenteval.testing.scripted import ScriptedTransport
from agenteval.traces.condense import Condensed, TracePiece
from agenteval.traces.locator_reply import CheckedFinding, Quotes, check, read_grades
from agenteval.traces.locator_reply import read_reply as read_findings
from agenteval.traces.taxonomy import Leaf, Taxonomy
from agenteval.utility.critic_reply import read_criteria
from agenteval.workflows.judges import OffScale, SessionText, read_equal, read_goals, read_score
from agenteval.workflows.reply_text import read_reply as read_turn
from agenteval.workflows.scenario import Role, WorkflowTool
from agenteval.workflows.simulated_tools import ToolModel
from benchmarks.malformed.corpus import FOLDER, lines, text_of

SPANS = {"S1": "The tool said: no such file. It counted nine birds.", "S2": "It gave up early."}
TAXONOMY = Taxonomy(
    name="two",
    leaves=(
        Leaf(name="Invention", area="Thought", group="Claims", definition="Says what is not so."),
        Leaf(name="Early End", area="Thought", group="Work", definition="Stops before the end."),
    ),
)
ASKED = [leaf.name for leaf in TAXONOMY.assigned]
SESSION = SessionText(
    "user: Dune, please.\nassistant: It is yours.", "Lend books.", ("Dune", "map")
)
LENDING = WorkflowTool(
    name="lend_book",
    description="Lends a book.",
    parameters={"type": "object", "properties": {"title": {"type": "string"}}},
    returns={
        "type": "object",
        "properties": {"due": {"type": "string"}, "copies": {"type": "integer"}},
        "required": ["due", "copies"],
        "additionalProperties": False,
    },
    effect="write",
)


def critic(text: str) -> Any:
    """Accepted values, worst first (a range for a numeric one), by the criterion's id."""
    found = read_criteria(text).criteria
    return {one.id: list(one.numeric_range or one.accepted_values) for one in found}


def locator(text: str) -> Any:
    """Findings that pass the checks, how many do not, and whether the reply broke off."""
    read = read_findings(text)
    pieces = tuple(TracePiece(index, index, "llm", text, 0) for index, text in SPANS.items())
    quotes = Quotes(Run(id="t"), Condensed("t", pieces, 0))
    checked = [check(item, ASKED, TAXONOMY, quotes) for item in read.value[0]]
    named = [f"{one.index} {one.category}" for one in checked if isinstance(one, CheckedFinding)]
    return {"found": named, "rejected": len(checked) - len(named), "cut": read.gap is not None}


def grades(text: str) -> Any:
    """The grades by name; null for one that is missing or off the scale."""
    return {name: grade.value for name, grade in read_grades(text).value.items()}


def equal(text: str) -> Any:
    """The verdict."""
    return read_equal(text)[0]


def score(text: str) -> Any:
    """The score, or "off_scale"."""
    try:
        return read_score(text)["score"]
    except OffScale:
        return "off_scale"


def goals(text: str) -> Any:
    """Which goals are achieved, and whether the judge called the whole a success."""
    verdict = read_goals(text, SESSION)
    return [*(goal.achieved for goal in verdict.goals), verdict.said]


def tool(text: str) -> Any:
    """What the simulated tool returns when the model says this twice."""
    role = Role.model_construct(id="r", domain="", title="", background="", now="", scenarios=())
    client = Client(ScriptedTransport(lambda _: text), retry=RetryPolicy(attempts=1))
    model = ToolModel(client, role)
    try:
        return asyncio.run(model.answer(LENDING, {"title": "Dune"}))[0]
    except ReplyError:
        if len(model.wrong) != 2:
            raise AssertionError(
                "a simulated tool that gave no answer was not asked twice"
            ) from None
        return None


def turn(text: str) -> Any:
    """A call with its arguments, or the reply, of an assistant that writes Thought and Action."""
    found = read_turn(text)
    if found.form == "call":
        return [found.tool, found.arguments]
    return found.response if found.form == "reply" else None


def react(text: str) -> Any:
    """A step of an agent under test: a tool with the text of its arguments, or its answer."""
    step = read_step(text)
    if step.kind == "action":
        return [step.name, step.arguments]
    return step.answer if step.kind == "final" else None


def arguments(text: str) -> Any:
    """The arguments of a call; None with a complaint."""
    value, problem = as_object(text)
    return value if problem is None else None


def professions(text: str) -> Any:
    """Proposed professions with their activities."""
    return {
        entry["role"]: [phrase for phrase in entry["activities"] if isinstance(phrase, str)]
        for entry in read_professions(text)
        if isinstance(entry, dict) and isinstance(entry.get("activities"), list)
    }


READERS: dict[str, Callable[[str], Any]] = {
    "critic": critic,
    "locator": locator,
    "grades": grades,
    "equal": equal,
    "score": score,
    "goals": goals,
    "tool": tool,
    "turn": turn,
    "react": react,
    "arguments": arguments,
    "professions": professions,
}


class Reading(NamedTuple):
    """A text for a reader and what it must give, None for nothing."""

    id: str
    reader: str
    reply: str
    expect: Any


def read(reader: str, text: str) -> Any:
    """What the reader gives; None for ReplyError."""
    try:
        return READERS[reader](text)
    except ReplyError:
        return None


@lru_cache(maxsize=1)
def readings() -> tuple[Reading, ...]:
    """Rows written for one reader, and those that dress one reader's good answer."""
    own = [
        Reading(raw["id"], raw["reader"], text_of(raw["reply"]), raw["expect"])
        for raw in lines(FOLDER / "readers.jsonl")
    ]
    dressed = []
    for body in lines(FOLDER / "reader_bodies.jsonl"):
        for dress in lines(FOLDER / "dressings.jsonl"):
            name = f"{body['reader']}-{dress['id']}"
            expect = body["expect"] if dress["read"] else None
            expect = body.get("differs", {}).get(dress["id"], expect)
            dressed.append(Reading(name, body["reader"], _dressed(dress["reply"], body), expect))
    return (*own, *dressed)


def _dressed(template: Any, body: dict[str, Any]) -> str:
    text = text_of(template)
    good, other = body["good"], body["other"]
    return text.replace("@GOOD@", good).replace("@OPEN@", good[:-1]).replace("@OTHER@", other)
