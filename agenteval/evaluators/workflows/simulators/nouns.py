"""What a simulated user hears and says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.session import SimulatorMistake
from agenteval.records import Message, Usage

DONE = "[DONE]"  # what a user writes that has nothing more to say
_DONE = re.compile(r"\[\s?done\s?\]", re.I)  # as models write it


def parted(text: str) -> tuple[str, bool]:
    """The words beside the mark, "" where only punctuation is left, and whether it is there."""
    words = _DONE.sub("", text).strip()
    done = words != text.strip()
    return (words if not done or re.search(r"\w", words) else "", done)


def without_mark(text: str) -> str:
    """What an agent says, in which the mark is none: it is the user's alone."""
    return _DONE.sub("(done)", text)


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
