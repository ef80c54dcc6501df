"""A simulated user: what it hears and says, and one without a model, which answers structured
questions from its profile.

So a scripted user and a scripted agent understand each other: the agent asks for facts by the
names of parameters, in backticks or brackets, and offers options as lines that begin with "- "; a
reply without either that says goodbye is the end:

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.session import SimulatorMistake
from agenteval.records import Message, Usage, content_hash

DONE = "[DONE]"  # what a user writes that has nothing more to say
DONE_MARK = re.compile(r"\[\s?done\s?\]", re.I)  # as models write it


def parted(text: str) -> tuple[str, bool]:
    """The words beside the mark, "" where only punctuation is left, and whether it is there."""
    words = DONE_MARK.sub("", text).strip()
    done = words != text.strip()
    return (words if not done or re.search(r"\w", words) else "", done)


@dataclass(frozen=True, slots=True)
class Heard:
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
class Said:
    """What the user says next; `done`: it leaves. Mistakes that were made on the way are told."""

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

    async def speak(self, heard: Heard) -> Said:
        """The next words. Raises UserStuck, or what a model client raises."""
        ...


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


UNKNOWN = "I do not know"
NONE_OF_THESE = "None of these, thank you."
_ASKED = re.compile(r"`([A-Za-z]\w*)`|\[([A-Za-z]\w*)\]")
_OPTION = re.compile(r"^- (.+?)\s*$", re.M)
_TOLD = re.compile(r"^([A-Za-z]\w*): (.*)$")
_GOODBYE = re.compile(r"\b(?:good[- ]?bye|bye|farewell|have a (?:nice|good|great) day)\b", re.I)
_MARKS = re.compile(r"[`\[\]\n]+|^- +")


def ask_for(names: Iterable[str]) -> str:
    """A request for the values of these parameters."""
    return f"Please tell me: {', '.join(f'`{name}`' for name in names)}."


def offer(question: str, labels: Iterable[str]) -> str:
    """A question with options."""
    return "\n".join([question, *(f"- {plain(label)}" for label in labels)])


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


def told(text: str, names: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The values of these parameters as they are written, and all other lines."""
    values, rest = {}, []
    for line in text.split("\n"):
        match = _TOLD.match(line)
        if match and match[1] in names:
            values[match[1]] = match[2].strip()
        elif line.strip():
            rest.append(line.strip())
    return values, tuple(rest)


def read_value(written: str, schema: object) -> JsonValue:
    """A told value, by the JSON schema of its parameter: text stays as it is, the rest is JSON."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string" and not written.startswith('"'):
        return written
    try:
        value: JsonValue = json.loads(written)
    except ValueError:
        return written
    return value


def chosen(text: str, labels: Sequence[str]) -> str | None:
    """The option that a reply names: as a line of its own, else the longest that occurs in it; None
    where none does."""
    lines = {plain(line).casefold() for line in text.split("\n")}
    exact = next((label for label in labels if plain(label).casefold() in lines), None)
    if exact is not None:
        return exact
    said = plain(text).casefold()
    found = [label for label in labels if plain(label).casefold() in said]
    return max(found, key=len, default=None)
