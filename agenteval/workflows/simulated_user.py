"""A simulated user: what it hears and says, and one without a model, which answers structured
questions from its profile.

An agent that wants to be understood asks for facts by the names of parameters, in backticks or
brackets, and offers options as lines that begin with "- "; a reply without either that says goodbye
is the end:

    Please tell me: `title`, [reader_id].
    Which of these do you want?
    - Another book will do
    - No other book

The user answers with one line for each fact, with the words of the option, or with "None of these,
thank you.". A value that is no text stands as JSON:

    title: Dune
    seats: 2
    Another book will do
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from agenteval.records import Message, Usage, content_hash
from agenteval.workflows.plain_words import (
    ANYTHING_ELSE,
    ASKS,
    CONFIRMS,
    ENOUGH,
    OPEN,
    OR,
    POLITE,
    WISHES,
    questions,
    requested,
    share,
)
from agenteval.workflows.scenario import Profile
from agenteval.workflows.session import SimulatorMistake

DONE = "[DONE]"  # what a user writes that has nothing more to say
DONE_MARK = re.compile(r"\[\s?done\s?\]", re.I)  # as models write it


def parted(text: str) -> tuple[str, bool]:
    """The words beside the mark, "" where only punctuation is left, and whether it is there."""
    words = DONE_MARK.sub("", text).strip()
    done = words != text.strip()
    return (words if not done or re.search(r"\w", words) else "", done)


@dataclass(frozen=True, slots=True)
class UserContext:
    """A conversation as its user knows it: `messages` holds what the user said (role user) and
    the agent's replies (role assistant), and neither calls, results nor thoughts.

    `now` is the time at which it takes place. Repeats of a session differ in `repeat`.
    """

    profile: Profile
    now: str
    messages: tuple[Message, ...] = ()
    seed: int = 0
    repeat: int = 0

    @property
    def own(self) -> tuple[str, ...]:
        """What the user said so far."""
        return tuple(m.content for m in self.messages if m.role == "user")

    @property
    def agent(self) -> tuple[str, ...]:
        """What the agent said so far."""
        return tuple(m.content for m in self.messages if m.role == "assistant")


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user says next, whether it leaves (`done`), and the mistakes made on the way."""

    text: str
    done: bool = False
    mistakes: tuple[SimulatorMistake, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009  frozen


class UserSimulator(Protocol):
    """A simulated user; it keeps nothing between two turns."""

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can change what it says."""
        ...

    async def speak(self, heard: UserContext) -> UserTurn:
        """The next words. Raises UserStuck, or what a model client raises."""
        ...


_ASIDE = 0.35  # chance of an aside at a turn, while there are any left
_LOST = "Sorry, I do not follow."
_WAITING = "Are you still there?"
_NO_MORE = "No, thank you, that was all."
_MOST_WISHES = 3  # times that it says what it would like
_WISH = "What I would like:"


class ScriptedUser:
    """Says its opening, then what it is asked for, and [DONE] after a goodbye, or after two replies
    in a row that it does not follow, or that it waits for in vain.

    The same seed says the same. Facts that are lists are told by how often they were asked for;
    of the choices the first that was not said yet and is offered. Without the convention, it
    understands a request by the words of a fact's name, and a question for its will by the words of
    its next choice; else it says once more what it would like. A question that it cannot answer,
    or to which it could only say the same for the third time, is its mistake (`cannot_answer`).
    """

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Its kind and version."""
        return {"user": "scripted", "version": 3}

    async def speak(self, heard: UserContext) -> UserTurn:
        """The next words."""
        return self.say(heard)

    def say(self, heard: UserContext) -> UserTurn:
        """The same, at once."""
        if not heard.own:
            return UserTurn(heard.profile.opening)
        text, able = _answer(heard)
        own, agent = heard.own[-2:], heard.agent[-2:]
        if own == (text, text) and agent[0] != agent[-1]:  # for ever, to whatever it is asked
            text, able = None, False
        about = heard.agent[-1][:_KEPT] if heard.agent else ""
        mistake = SimulatorMistake(
            who="user", kind="cannot_answer", turn=len(heard.agent), text=about
        )
        mistakes = () if able else (mistake,)
        if text is None:
            return UserTurn(DONE, done=True, mistakes=mistakes)
        aside = _aside(heard)
        return UserTurn(f"{text}\n{aside}" if aside else text, mistakes=mistakes)


def _answer(heard: UserContext) -> tuple[str | None, bool]:
    """What the last reply asks for, None when there is nothing more to say; and whether the user
    can answer it."""
    if heard.messages[-1].role == "user":  # nobody has answered
        return None if heard.own[-1] == _WAITING else _WAITING, True
    last = heard.agent[-1] if heard.agent else ""
    names, labels = asked_for(last), offered(last)
    choice = _choice(heard, labels) if labels else ""
    listed = choice == NONE_OF_THESE and POLITE.search(last)  # "Please give me:", facts
    if names or (labels and not listed):
        parts = [tell({name: _fact(heard, name) for name in names})] if names else []
        return "\n".join([*parts, *filter(None, [choice])]), True
    if says_goodbye(last):
        return None, True
    if ASKS.search(last):
        return _in_plain_words(heard, last)
    if heard.own[-1].startswith(_LOST):
        return None, True
    return f"{_LOST} {heard.profile.goals[0].text}", True


def _in_plain_words(heard: UserContext, last: str) -> tuple[str | None, bool]:
    """The answer to a question without the convention, and whether it is one."""
    goals = [goal.text for goal in heard.profile.goals]
    asked = questions(last)
    if ANYTHING_ELSE.search(asked):
        further = [text for text in goals[1:] if not _was_said(heard, text)]
        return (f"Yes. {further[0]}" if further else _NO_MORE), True
    facts = {name: _fact(heard, name) for name in requested(heard.profile, last)}
    if CONFIRMS.search(asked):
        known = all(str(value) in last for value in facts.values())
        return ("Yes." if known else tell(facts)), True
    for_fact = bool(OPEN.search(asked) or POLITE.search(asked))
    for_will = not for_fact or bool(OR.search(asked))
    if not for_fact:  # another value of what was told, or one of the alternatives
        facts = {
            name: value
            for name, value in facts.items()
            if not _was_said(heard, tell({name: value}))
            and (_times_told(heard, name) or str(value).casefold() in asked.casefold())
        }
    parts = [*(_will(heard, asked) if for_will else ()), *([tell(facts)] if facts else [])]
    if parts:
        return "\n".join(parts), True
    wish = " ".join((_WISH, *goals))
    told = [text.startswith(_WISH) for text in heard.own]
    if for_will or WISHES.search(asked):
        if not told[-1] and sum(told) < _MOST_WISHES:
            return wish, True
    elif not any(told):  # all that it can say, and no answer
        return wish, False
    if heard.own[-1].startswith(_LOST):
        return None, False
    return f"{_LOST} {UNKNOWN}.", False


def _will(heard: UserContext, asked: str) -> list[str]:
    """The user's next choice, where the question holds half of its words; after it has said what it
    would like any choice that is left. "Yes." before the words of a sole proposal."""
    left = _left(heard)
    if left[:1] == [plain(choice) for choice in heard.profile.choices[:1]] and len(left) > 1:
        left = left[1:]  # its opening stands for what it comes with
    if not any(text.startswith(_WISH) for text in heard.own):
        left = left[:1]
    choice = next((choice for choice in left if share(choice, asked) >= ENOUGH), None)
    if choice is None:
        return []
    agreed = share(choice, asked) == 1 and not OR.search(asked)
    return [f"Yes. {choice}" if agreed else choice]


def _left(heard: UserContext) -> list[str]:
    """The choices that were not said yet, in their order."""
    spoken = Counter(
        line.removeprefix("Yes. ").casefold() for text in heard.own[1:] for line in text.split("\n")
    )
    left = []
    for choice in map(plain, heard.profile.choices):
        if spoken[choice.casefold()] > 0:
            spoken[choice.casefold()] -= 1
        else:
            left.append(choice)
    return left


def _was_said(heard: UserContext, text: str) -> bool:
    lines = {line for own in heard.own for line in own.split("\n")}
    return all(line in lines or f"Yes. {line}" in lines for line in text.split("\n"))


def _times_told(heard: UserContext, name: str) -> int:
    return sum(any(line.startswith(f"{name}: ") for line in t.split("\n")) for t in heard.own)


def _fact(heard: UserContext, name: str) -> JsonValue:
    fact = heard.profile.facts.get(name, UNKNOWN)
    if not isinstance(fact, list):
        return fact
    before = _times_told(heard, name)
    return fact[min(before, len(fact) - 1)] if fact else UNKNOWN


def _choice(heard: UserContext, labels: tuple[str, ...]) -> str:
    """The first of the choices that was not said yet and is offered."""
    known = {plain(label).casefold() for label in labels}
    return next((c for c in _left(heard) if c.casefold() in known), NONE_OF_THESE)


def _aside(heard: UserContext) -> str | None:
    """A remark outside the procedure, now and then; each once."""
    spoken = {line for text in heard.own[1:] for line in text.split("\n")}
    left = [aside for aside in map(plain, heard.profile.asides) if aside not in spoken]
    draw = random.Random(  # noqa: S311  no secret
        content_hash([heard.seed, heard.repeat, heard.profile.id, len(heard.own)])
    )
    return left[0] if left and draw.random() < _ASIDE else None


UNKNOWN = "I do not know"
_KEPT = 500  # characters of a mistake
NONE_OF_THESE = "None of these, thank you."
_ASKED = re.compile(r"`([A-Za-z]\w*)`|\[([A-Za-z]\w*)\]")
_OPTION = re.compile(r"^- (.+?)\s*$", re.M)
_GOODBYE = re.compile(r"\b(?:good[- ]?bye|bye|farewell|have a (?:nice|good|great) day)\b", re.I)
_MARKS = re.compile(r"[`\[\]\n]+|^- +")


def plain(text: str) -> str:
    """A text on one line, without what would be read as a question or an option."""
    return " ".join(_MARKS.sub(" ", text).split())


def asked_for(text: str) -> tuple[str, ...]:
    """The names of parameters that are asked for, each once, in their order."""
    return tuple(dict.fromkeys(a or b for a, b in _ASKED.findall(text)))


def offered(text: str) -> tuple[str, ...]:
    """The options, in their order."""
    return tuple(_OPTION.findall(text))


def says_goodbye(text: str) -> bool:
    """Whether the reply ends the conversation as far as its words go."""
    return bool(_GOODBYE.search(text)) and not (asked_for(text) or offered(text))


def tell(facts: Mapping[str, JsonValue]) -> str:
    """One line for each fact."""
    return "\n".join(f"{name}: {_written(value)}" for name, value in facts.items())


def _written(value: JsonValue) -> str:
    if isinstance(value, str) and value and not re.search(r'[\r\n]|^[\s"]|\s$', value):
        return value
    return json.dumps(value, ensure_ascii=False)
