"""A user without a model: it answers structured questions (see `convention`) from its profile."""

from __future__ import annotations

import random
import re
from collections import Counter

from pydantic import JsonValue

from agenteval.evaluators.workflows.simulators.convention import (
    NONE_OF_THESE,
    UNKNOWN,
    asked_for,
    offered,
    plain,
    says_goodbye,
    tell,
)
from agenteval.evaluators.workflows.simulators.nouns import DONE, Heard, Said
from agenteval.records import content_hash

_ASIDE = 0.35  # chance of an aside at a turn, while there are any left
_LOST = "Sorry, I do not follow."
_WAITING = "Are you still there?"
_NO_MORE = "No, thank you, that was all."
_ANYTHING_ELSE = re.compile(r"\b(?:anything|something) else\b", re.I)


class ScriptedUser:
    """Says its opening, then the facts it is asked for, the first of its choices not yet said that
    is offered, and [DONE] after a goodbye, or after two replies in a row that it does not follow,
    or that it waits for in vain.

    The same seed says the same. Facts that are lists are told by how often they were asked for.
    A question without the convention is understood when it holds the words of a fact's name.
    """

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Its kind and version."""
        return {"user": "scripted", "version": 2}

    async def speak(self, heard: Heard) -> Said:
        """The next words; never a mistake."""
        return self.say(heard)

    def say(self, heard: Heard) -> Said:
        """The same, at once."""
        if not heard.own:
            return Said(heard.profile.opening)
        text = _answer(heard)
        if text is None:
            return Said(DONE, done=True)
        aside = _aside(heard)
        return Said(f"{text}\n{aside}" if aside else text)


def _answer(heard: Heard) -> str | None:
    """What the last reply asks for; None when there is nothing more to say."""
    if heard.messages[-1].role == "user":  # nobody has answered
        return None if heard.own[-1] == _WAITING else _WAITING
    last = heard.agent[-1] if heard.agent else ""
    names, labels = asked_for(last), offered(last)
    if names or labels:
        parts = [tell({name: _fact(heard, name) for name in names})] if names else []
        if labels:
            parts.append(_choice(heard, labels))
        return "\n".join(parts)
    if says_goodbye(last):
        return None
    names = tuple(n for n in heard.profile.facts if "?" in last and _named(n, last))
    if names:
        return tell({name: _fact(heard, name) for name in names})
    if _ANYTHING_ELSE.search(last):
        return _NO_MORE
    if heard.own[-1].startswith(_LOST):
        return None
    return f"{_LOST} {heard.profile.goals[0].text}"


def _named(name: str, text: str) -> bool:
    words = set(re.findall(r"\w+", text.casefold()))
    return all(word in words for word in name.casefold().split("_"))


def _fact(heard: Heard, name: str) -> JsonValue:
    if name not in heard.profile.facts:
        return UNKNOWN
    fact = heard.profile.facts[name]
    if not isinstance(fact, list):
        return fact
    before = sum(name in asked_for(text) for text in heard.agent[:-1])
    return fact[min(before, len(fact) - 1)] if fact else UNKNOWN


def _choice(heard: Heard, labels: tuple[str, ...]) -> str:
    """The first of the choices that was not said yet and is offered."""
    spoken = Counter(line.casefold() for text in heard.own[1:] for line in text.split("\n"))
    known = {plain(label).casefold() for label in labels}
    for choice in heard.profile.choices:
        words = plain(choice)
        if spoken[words.casefold()] > 0:
            spoken[words.casefold()] -= 1
        elif words.casefold() in known:
            return words
    return NONE_OF_THESE


def _aside(heard: Heard) -> str | None:
    """A remark outside the procedure, now and then; each once."""
    spoken = {line for text in heard.own[1:] for line in text.split("\n")}
    left = [aside for aside in map(plain, heard.profile.asides) if aside not in spoken]
    draw = random.Random(  # noqa: S311  no secret
        content_hash([heard.seed, heard.repeat, heard.profile.id, len(heard.own)])
    )
    return left[0] if left and draw.random() < _ASIDE else None
