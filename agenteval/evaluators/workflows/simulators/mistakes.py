"""What a simulated user must not say: found by rules, never charged to the agent."""

from __future__ import annotations

import json
import re
from typing import Literal

from agenteval.errors import ReplyError
from agenteval.evaluators.workflows.simulators.nouns import DONE, Heard

Kind = Literal["empty", "plays_agent", "done_at_once", "repeats", "too_long", "invented"]
LONGEST = 600  # characters; asked for are 200
_TEMPLATE = re.compile(
    r"^\W{0,3}(?:Thought|Action|Action Input|Observation|Response|Assistant|Agent)\W{0,2}:",
    re.M | re.I,
)
_TOKEN = re.compile(r"[\w@][\w@.:/+\-]*")
_LETTERS_AND_DIGITS = re.compile(r"^[^\W\d_]{1,12}[-/]?\d[\w\-/]*$|^\d+[-/]?[^\W\d_]{1,12}\d*$")
_COUNTED = re.compile(r"^\d+(?:am|pm|st|nd|rd|th|h|min|kg|km|m|cm|eur|usd|x)$", re.I)
_LONG = 3  # digits: shorter numbers are counted, longer ones name something


class Mistake(ReplyError):
    """The text is none that this user may say."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind: Kind = kind


def check(text: str, heard: Heard) -> None:
    """Raises Mistake for the first thing that is wrong with what a user says."""
    words = text.replace(DONE, "").strip()
    if DONE in text and not heard.agent:
        raise Mistake("done_at_once", f"{DONE} at the first turn: nobody has answered yet")
    if not words and DONE not in text:
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


def _same(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def invented(text: str, heard: Heard) -> tuple[str, ...]:
    """Tokens of the text that name something (R-20, 4711, a@b.org) and are known from nowhere:
    neither from the profile nor from what was said before.

    A date or a number written in another way is known when all its numbers are.
    """
    known = _known(heard)
    numbers = {int(n) for n in re.findall(r"\d{1,18}", known)}
    found = []
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip(".:/-")
        if _names_something(token) and not _is_known(token, known, numbers):
            found.append(token)
    return tuple(dict.fromkeys(found))


def _names_something(token: str) -> bool:
    if "@" in token[1:]:
        return True
    if _COUNTED.match(token) or not any(c.isdigit() for c in token):
        return False
    if _LETTERS_AND_DIGITS.match(token):
        return True
    return len(re.sub(r"\D", "", token)) >= _LONG


def _is_known(token: str, known: str, numbers: set[int]) -> bool:
    small = token.casefold()
    if re.search(rf"(?<!\w){re.escape(small)}(?!\w)", known):
        return True
    if "@" in small or any(c.isalpha() for c in small):
        return False
    return all(int(n) in numbers for n in re.findall(r"\d{1,18}", small))


def _known(heard: Heard) -> str:
    profile = heard.profile
    parts = [
        profile.opening,
        profile.persona,
        *profile.choices,
        *profile.asides,
        *profile.behaviours,
        *(goal.text for goal in profile.goals),
        json.dumps(profile.facts, ensure_ascii=False),
        json.dumps([a.arguments for a in profile.actions], ensure_ascii=False),
        heard.now,
        *(m.content for m in heard.messages),
    ]
    return "\n".join(parts).casefold()
