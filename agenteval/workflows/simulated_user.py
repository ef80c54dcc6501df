"""A simulated user without a model, which answers structured questions from its profile.

An agent asks for facts by parameter names in backticks or brackets, and offers options as lines
that begin with "- ". A reply with a goodbye and neither of these ends the session:

    Please tell me: `title`, [reader_id].
    Which of these do you want?
    - Another book will do
    - No other book

The user answers with one line for each fact, with the words of the option, or with "None of these,
thank you.". A value that is not text is written as JSON:

    title: Dune
    seats: 2
    Another book will do
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pydantic import JsonValue

from agenteval.records import Message, Usage, content_hash
from agenteval.workflows.scenario import Profile
from agenteval.workflows.session import SimulatorMistake

DONE = "[DONE]"  # ends the last message of a user
DONE_MARK = re.compile(r"\[\s?done\s?\]", re.I)  # as models write it
UNKNOWN = "I do not know"
NONE_OF_THESE = "None of these, thank you."
_LOST = "Sorry, I do not follow."
_WAITING = "Are you still there?"
_NO_MORE = "No, thank you, that was all."
_WISH = "What I would like:"
_MOST_WISHES = 3  # times that it repeats its wishes
_ASIDE = 0.35  # chance of an aside at a turn, while any remain
_MOST_MISTAKE = 500  # characters
_ASKED = re.compile(r"`([A-Za-z]\w*)`|\[([A-Za-z]\w*)\]")
_OPTION = re.compile(r"^- (.+?)\s*$", re.M)
_GOODBYE = re.compile(r"\b(?:good[- ]?bye|bye|farewell|have a (?:nice|good|great) day)\b", re.I)
_MARKS = re.compile(r"[`\[\]\n]+|^- +")
_ALIKE = (("e-mail", "email"), ("kind|sort", "type"), ("surname|family name", "last name"))
_STEM, _ENOUGH = 5, 0.5  # letters of a word that count; share of a choice's words
_IDLE = re.compile(  # words that do not identify a choice
    r"\b(?:a|all|an|and|another|as|at|be|by|for|i|in|is|it|me|my|of|on|or|other|same|so|that|the|"
    r"then|this|to|was|we|with|you|your)\b"
)
ASKS = re.compile(  # a reply that expects an answer
    r"\?|\bplease (?:tell|give|enter|provide|share|state|confirm|send|let|specify|choose)\b|"
    r"\b(?:tell|give) me\b|\bi(?:'ll)? (?:still |also |will )?need\b|\blet me know\b",
    re.I,
)
ANYTHING_ELSE = re.compile(r"\b(?:anything|something) (?:else|more)\b", re.I)
_CONFIRMS = re.compile(
    r"\b(?:is|are|was|were) (?:that|this|these|those|it|everything|all)\b[^?,]{0,40}"
    r"\b(?:right|correct|ok|okay|fine)\b|^\W*(?:right|correct)\W*$|, (?:right|correct)\?",
    re.I,
)
_OPEN = re.compile(r"\b(?:what|which|when|where|who|how|why)\b", re.I)
_POLITE = re.compile(
    r"\b(?:could|can|would|will|may|might) (?:you|i)(?: please| kindly| also)* (?:tell|give|have|"
    r"provide|share|get|know|confirm|check|enter|state|let|ask|say|send|specify|explain|describe)\b|"
    r"\bdo you (?:have|know|remember)\b|\bplease\b|\b(?:tell|give) me\b|\bi need\b",
    re.I,
)
_OR = re.compile(r"\bor\b", re.I)
_WISHES = re.compile(  # open questions about what the user wants
    r"\b(?:help|assist|do for you|looking for|clarify|explain|describe|more about|like|want|wish|"
    r"prefer|proceed|go on|continue|instead)\b",
    re.I,
)
_KINDS = (  # the form of a value, and words that ask for it
    (re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\b(?:dates?|days?|when)\b", re.I)),
    (re.compile(r"\d{1,2}:\d\d"), re.compile(r"\b(?:time|when|what hour)\b", re.I)),
    (re.compile(r"\S+@\S+"), re.compile(r"\be-?mail\b", re.I)),
)


@dataclass(frozen=True, slots=True)
class UserContext:
    """A conversation as its user knows it: `messages` has the user's messages (role user) and the
    agent's replies (role assistant), but no calls, results or thoughts.

    `now` is the time of the conversation. Repeats of a session differ in `repeat`.
    """

    profile: Profile
    now: str
    messages: tuple[Message, ...] = ()
    seed: int = 0
    repeat: int = 0

    @property
    def own(self) -> tuple[str, ...]:
        """The user's messages so far."""
        return tuple(m.content for m in self.messages if m.role == "user")

    @property
    def agent(self) -> tuple[str, ...]:
        """The agent's messages so far."""
        return tuple(m.content for m in self.messages if m.role == "assistant")


@dataclass(frozen=True, slots=True)
class UserTurn:
    """The user's next message, whether it ends the session (`done`), and mistakes."""

    text: str
    done: bool = False
    mistakes: tuple[SimulatorMistake, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009  frozen


class UserSimulator(Protocol):
    """A simulated user without state between turns."""

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can affect its messages."""
        ...

    async def speak(self, context: UserContext) -> UserTurn:
        """Return the next message. Raises UserStuck, and as a model client."""
        ...


class ScriptedUser:
    """Sends its opening, then answers to questions, and [DONE] after a goodbye or after two
    consecutive replies that it does not understand or that are missing.

    The same seed gives the same messages. Facts that are lists give the next value each time. The
    first unused choice that is offered is taken. Without the convention, it recognizes requests by
    the words of a fact's name, and questions about its wishes by the words of its next choice;
    otherwise it repeats its wishes. A question that it cannot answer, or would have to answer
    identically for the third time, is its mistake (`cannot_answer`).
    """

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Its kind and version."""
        return {"user": "scripted", "version": 3}

    async def speak(self, context: UserContext) -> UserTurn:
        """Return the next message."""
        if not context.own:
            return UserTurn(context.profile.opening)
        answer = _Answer(context)
        text, able = answer.text()
        agent = context.agent
        if context.own[-2:] == (text, text) and len(set(agent[-2:])) > 1:
            text, able = None, False  # it would repeat this forever
        mistakes: tuple[SimulatorMistake, ...] = ()
        if not able:
            about = agent[-1][:_MOST_MISTAKE] if agent else ""
            mistakes = (
                SimulatorMistake(who="user", kind="cannot_answer", turn=len(agent), text=about),
            )
        if text is None:
            return UserTurn(DONE, done=True, mistakes=mistakes)
        aside = answer.aside()
        return UserTurn(f"{text}\n{aside}" if aside else text, mistakes=mistakes)


class _Answer:
    """The answer to the agent's last reply. A text of None ends the session; "able" is whether the
    user can answer the question."""

    def __init__(self, context: UserContext) -> None:
        self.context, self.profile, self.own = context, context.profile, context.own
        self.reply = context.agent[-1] if context.agent else ""

    def text(self) -> tuple[str | None, bool]:
        """Return the answer, and whether the user can answer."""
        if self.context.messages[-1].role == "user":  # there is no reply yet
            return None if self.own[-1] == _WAITING else _WAITING, True
        names, labels = asked_for(self.reply), offered(self.reply)
        choice = self.choice(labels) if labels else ""
        listed = choice == NONE_OF_THESE and _POLITE.search(self.reply)  # "Please give me:", facts
        if names or (labels and not listed):
            parts = [tell({name: self.fact(name) for name in names}), choice]
            return "\n".join(filter(None, parts)), True
        if says_goodbye(self.reply):
            return None, True
        if ASKS.search(self.reply):
            return self.in_plain_words()
        if self.own[-1].startswith(_LOST):
            return None, True
        return f"{_LOST} {self.profile.goals[0].text}", True

    def in_plain_words(self) -> tuple[str | None, bool]:
        """Return the answer to a question without the convention."""
        goals = [goal.text for goal in self.profile.goals]
        question = questions(self.reply)
        if ANYTHING_ELSE.search(question):
            further = [text for text in goals[1:] if not self.was_said(text)]
            return (f"Yes. {further[0]}" if further else _NO_MORE), True
        facts = {name: self.fact(name) for name in requested(self.profile, self.reply)}
        if _CONFIRMS.search(question):
            right = all(str(value) in self.reply for value in facts.values())
            return ("Yes." if right else tell(facts)), True
        for_fact = bool(_OPEN.search(question) or _POLITE.search(question))
        for_will = not for_fact or bool(_OR.search(question))
        if not for_fact:  # a different value of a known fact, or one of the alternatives
            facts = {
                name: value
                for name, value in facts.items()
                if not self.was_said(tell({name: value}))
                and (self.times_told(name) or str(value).casefold() in question.casefold())
            }
        parts = [*(self.will(question) if for_will else ()), *([tell(facts)] if facts else [])]
        if parts:
            return "\n".join(parts), True
        wish = " ".join((_WISH, *goals))
        wished = [text.startswith(_WISH) for text in self.own]
        if for_will or _WISHES.search(question):
            if not wished[-1] and sum(wished) < _MOST_WISHES:
                return wish, True
        elif not any(wished):  # the only possible message, but not an answer
            return wish, False
        if self.own[-1].startswith(_LOST):
            return None, False
        return f"{_LOST} {UNKNOWN}.", False

    def will(self, question: str) -> list[str]:
        """Return the next choice, if the question has half of its words; after the wishes, any
        unused choice. "Yes." precedes the words of a single proposal."""
        choices = self.choices_left()
        if len(choices) > 1 and choices[0] == plain(self.profile.choices[0]):
            choices = choices[1:]  # the opening replaces its first wish
        if not any(text.startswith(_WISH) for text in self.own):
            choices = choices[:1]
        choice = next((choice for choice in choices if share(choice, question) >= _ENOUGH), None)
        if choice is None:
            return []
        agreed = share(choice, question) == 1 and not _OR.search(question)
        return [f"Yes. {choice}" if agreed else choice]

    def choices_left(self) -> list[str]:
        """Return the unused choices in order."""
        spoken = Counter(
            line.removeprefix("Yes. ").casefold()
            for text in self.own[1:]
            for line in text.split("\n")
        )
        choices = []
        for choice in map(plain, self.profile.choices):
            if spoken[choice.casefold()] > 0:
                spoken[choice.casefold()] -= 1
            else:
                choices.append(choice)
        return choices

    def choice(self, labels: Sequence[str]) -> str:
        """Return the first unused choice that is offered."""
        options = {plain(label).casefold() for label in labels}
        return next((c for c in self.choices_left() if c.casefold() in options), NONE_OF_THESE)

    @cached_property
    def spoken(self) -> set[str]:
        """The lines of the user's messages."""
        return {line for text in self.own for line in text.split("\n")}

    def was_said(self, text: str) -> bool:
        return all(
            line in self.spoken or f"Yes. {line}" in self.spoken for line in text.split("\n")
        )

    def times_told(self, name: str) -> int:
        return sum(any(line.startswith(f"{name}: ") for line in t.split("\n")) for t in self.own)

    def fact(self, name: str) -> JsonValue:
        fact = self.profile.facts.get(name, UNKNOWN)
        if not isinstance(fact, list):
            return fact
        return fact[min(self.times_told(name), len(fact) - 1)] if fact else UNKNOWN

    def aside(self) -> str | None:
        """Return a remark outside the procedure at random turns, each once."""
        spoken = {line for text in self.own[1:] for line in text.split("\n")}
        asides = [aside for aside in map(plain, self.profile.asides) if aside not in spoken]
        context = self.context
        draw = random.Random(  # noqa: S311  no secret
            content_hash([context.seed, context.repeat, self.profile.id, len(self.own)])
        )
        return asides[0] if asides and draw.random() < _ASIDE else None


def parted(text: str) -> tuple[str, bool]:
    """Return the text without the mark ("" if only punctuation remains), and whether it has the
    mark."""
    words = DONE_MARK.sub("", text).strip()
    done = words != text.strip()
    return (words if not done or re.search(r"\w", words) else "", done)


def plain(text: str) -> str:
    """Return a text on one line, without anything that could be read as a question or an option."""
    return " ".join(_MARKS.sub(" ", text).split())


def asked_for(text: str) -> tuple[str, ...]:
    """Return the names of the requested parameters, each once, in order."""
    return tuple(dict.fromkeys(a or b for a, b in _ASKED.findall(text)))


def offered(text: str) -> tuple[str, ...]:
    """Return the options in order."""
    return tuple(_OPTION.findall(text))


def says_goodbye(text: str) -> bool:
    """Return whether a reply ends the conversation."""
    return bool(_GOODBYE.search(text)) and not (asked_for(text) or offered(text))


def tell(facts: Mapping[str, JsonValue]) -> str:
    """Return one line for each fact."""

    def written(value: JsonValue) -> str:
        if isinstance(value, str) and value and not re.search(r'[\r\n]|^[\s"]|\s$', value):
            return value
        return json.dumps(value, ensure_ascii=False)

    return "\n".join(f"{name}: {written(value)}" for name, value in facts.items())


# ---- questions in plain English, by the words of names and choices ------------------------------


def questions(text: str) -> str:
    """Return the sentences that expect an answer."""
    return " ".join(part for part in re.split(r"(?<=[.!?])\s+", text) if ASKS.search(part))


def requested(profile: Profile, text: str) -> list[str]:
    """Return the facts that a reply asks for: by name, by a value among alternatives, by the form
    of their values, or else the only one with a name that ends in a word of the question."""
    question = questions(text)
    words, choosing = _words(question), _OR.search(question)
    names, last = [], []
    for name, fact in profile.facts.items():
        values = [str(value) for value in (fact if isinstance(fact, list) else [fact])]
        is_requested = _words(name) <= words
        is_requested |= any(
            look.fullmatch(v) and way.search(question) for look, way in _KINDS for v in values
        )
        is_requested |= bool(choosing) and any(v.isalpha() and _words(v) <= words for v in values)
        names += [name] if is_requested else []
        last += [name] if name.rpartition("_")[2] in words else []
    return names or (last if len(last) == 1 and not choosing else [])


def share(choice: str, text: str) -> float:
    """Return the share of the meaningful words of a choice that occur in the text, by stem."""
    stems, stems_of_text = (
        {word[:_STEM] for word in _words(_IDLE.sub("", part.casefold()))} for part in (choice, text)
    )
    return len(stems & stems_of_text) / len(stems) if stems else 0.0


def _words(text: str) -> set[str]:
    text = text.casefold().replace("_", " ")
    for way, other in _ALIKE:
        text = re.sub(rf"\b{way}\b", other, text)
    return set(re.findall(r"\w+", text))
