"""What a simulated user must not say: found by rules, never charged to the agent."""

from __future__ import annotations

import re
from typing import Literal

from agenteval.errors import ReplyError
from agenteval.evaluators.workflows.simulators.convention import says_goodbye
from agenteval.evaluators.workflows.simulators.known import invented
from agenteval.evaluators.workflows.simulators.nouns import DONE, Heard, parted

Kind = Literal[
    "empty", "plays_agent", "done_at_once", "leaves_early", "repeats", "too_long", "invented"
]
LONGEST = 600  # characters; asked for are 200
_TEMPLATE = re.compile(
    r"^\W{0,3}(?:Thought|Action|Action Input|Observation|Response|Assistant|Agent)\W{0,2}:",
    re.M | re.I,
)
_ASKS = re.compile(
    r"\?|\bplease (?:tell|give|enter|provide|share|state|confirm)\b|\b(?:tell|give) me\b|"
    r"\bi (?:still )?need\b|\blet me know\b",
    re.I,
)
_ANYTHING_ELSE = re.compile(r"\b(?:anything|something) (?:else|more)\b", re.I)


class Mistake(ReplyError):
    """The text is none that this user may say."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind: Kind = kind


def check(text: str, heard: Heard) -> None:
    """Raises Mistake for the first thing that is wrong with what a user says."""
    words, done = parted(text)
    if done and not heard.agent:
        raise Mistake("done_at_once", f"{DONE} at the first turn: nobody has answered yet")
    if not words and not done:
        raise Mistake("empty", "the reply is empty")
    if _TEMPLATE.search(words):
        raise Mistake("plays_agent", "the reply is written like one of the assistant, not the user")
    if len(words) > LONGEST:
        raise Mistake("too_long", f"the reply has {len(words)} characters; say it in at most 200")
    said = [_same(one) for one in heard.own]
    if words and len(said) >= 2 and _same(words) == said[-1] == said[-2]:
        raise Mistake("repeats", "the reply repeats the last two word for word")
    made_up = invented(words, heard)
    if made_up:
        raise Mistake("invented", f"{', '.join(made_up)}: in none of the facts")
    if done and (name := _open(heard)) is not None:
        raise Mistake(
            "leaves_early",
            f"{DONE}, but the assistant has asked you something, and nobody has said {name} yet",
        )


def _same(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _open(heard: Heard) -> str | None:
    """A fact that the goals need and nobody has said, where the assistant has just asked something
    for the first time: who leaves then has not been failed. None where there is none.
    """
    last = heard.agent[-1]
    asked = _ASKS.search(last) and not says_goodbye(last) and not _ANYTHING_ELSE.search(last)
    if not asked or _same(last) in [_same(text) for text in heard.agent[:-1]]:
        return None
    said = "\n".join(m.content for m in heard.messages).casefold()
    for action in heard.profile.actions:
        for name, value in action.arguments.items():
            fact = heard.profile.facts.get(name)
            known = value == fact or (isinstance(fact, list) and value in fact)
            plain = isinstance(value, str | int | float) and not isinstance(value, bool)
            if known and plain and str(value).casefold() not in said:
                return name
    return None
