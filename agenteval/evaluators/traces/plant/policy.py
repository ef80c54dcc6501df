"""The small deterministic models: what they see, what they do, and in which notation they say it.

A policy is a generator: it yields a `Call` and is sent what the tool said, until it yields a
`Final`. An endpoint keeps no state between requests, so at each request the policy is run anew and
sent the observations that stand in the messages: it knows exactly what a model would be shown,
and when the history is cut it forgets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval.evaluators.traces.plant.world import Dice
from agenteval.records.finding import Impact

OBSERVATION = "Observation:"


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake of the model, as the gold states it."""

    category: str
    description: str
    impact: Impact = "HIGH"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `thought` is the text beside it."""

    name: str
    arguments: Mapping[str, Any]
    thought: str = ""
    slip: Slip | None = None


@dataclass(frozen=True, slots=True)
class Final:
    """Last words; `facts` are the same as data, for requests that ask for JSON."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    slip: Slip | None = None


Step = Call | Final
Thinking = Generator[Step, str, None]
Policy = Callable[["Mind"], Thinking]


@dataclass(frozen=True, slots=True)
class Seen:
    """What stands in one request of the agent: texts, observations in their order, notation."""

    system: str
    request: str | None
    observations: tuple[str, ...]
    react: bool


class Mind:
    """What a policy thinks with: the request, and the way it errs."""

    def __init__(self, seen: Seen, dice: Dice, errs: str | None = None) -> None:
        self.request = seen.request or ""
        self.dice = dice
        self._errs = errs

    def errs(self, category: str) -> bool:
        """Whether this model makes errors of this kind."""
        return self._errs == category

    def find(self, pattern: str) -> str:
        """The first match in the request; "" for none."""
        match = re.search(pattern, self.request)
        return match[0] if match else ""

    def all(self, pattern: str) -> list[str]:
        """All different matches in the request, in their order."""
        return list(dict.fromkeys(map(str, re.findall(pattern, self.request))))

    def asks(self, pattern: str) -> bool:
        """Whether the request says this, whatever its case."""
        return re.search(pattern, self.request, re.I) is not None

    def give_up(self, goal: str, said: str, facts: Sequence[str] = ()) -> Final:
        """An honest answer after a failure."""
        line = next((w.strip() for w in said.splitlines() if w.strip()), "nothing at all")[:140]
        words = self.dice.pick(
            (
                f"I could not {goal}. The tool said: {line}",
                f"I am sorry, I was not able to {goal}: the tool did not give a usable result.",
                f"It was not possible to {goal} because a step failed ({line}). "
                "Please try again later.",
                f"Unfortunately I cannot {goal} at the moment. Nothing has been changed.",
            )
        )
        return Final(words, dict.fromkeys(facts))


def got(observation: str, *keys: str) -> dict[str, Any] | None:
    """The JSON object of a tool's answer when it has all the keys; None for anything else."""
    try:
        value = json.loads(observation)
    except ValueError:
        return None
    return value if isinstance(value, dict) and all(key in value for key in keys) else None


def again(mind: Mind, call: Call, told: str) -> Thinking:
    """The same call four to six times more, if this model abuses its tools."""
    if not mind.errs("Resource Abuse"):
        return
    for turn in range(mind.dice.between(4, 6)):
        slip = Slip("Resource Abuse", told, "MEDIUM")
        yield replace(call, thought="", slip=slip if turn else None)


_MARK = re.compile(r"<[A-Z_]{3,}>|\[[A-Z]{3,}\]|###[A-Z]+###")
_KEYS = re.compile(r"JSON object with the keys ((?:\"\w+\"(?:, | and )?)+)")


def obey(final: Final, told: str) -> Final:
    """The last words in the form that the request (or the instructions) ask for."""
    text = final.text
    wanted = _KEYS.search(told)
    if wanted:
        keys = re.findall(r"\"(\w+)\"", wanted[1])
        facts = {key: final.facts.get(key) for key in keys}
        text = json.dumps(facts, ensure_ascii=False, default=str)
    if "one sentence" in told:
        text = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)[0]
    mark = _MARK.search(told)
    if mark:
        text = f"{text}\n{mark[0]}"
    return Final(text, final.facts, final.slip)


def think(policy: Policy, mind: Mind, seen: Seen, broken: int | None) -> Step | None:
    """The model's next step; None when it would have ended before.

    `broken` is the turn whose call could not be read: it is repeated.
    """
    working = policy(mind)
    step = next(working)
    for turn, observation in enumerate(seen.observations):
        if turn == broken:
            continue
        if isinstance(step, Final):
            return None
        step = working.send(observation)
    return step


def read(body: Mapping[str, Any]) -> Seen:
    """What a request of the chat protocol shows, from function calling or from ReAct by text."""
    messages = [(m.get("role"), str(m.get("content") or "")) for m in body["messages"]]
    system = "\n".join(text for role, text in messages if role == "system")
    react = not body.get("tools")
    users = [text for role, text in messages if role == "user"]
    asked = [text for text in users if not text.startswith(OBSERVATION)]
    if react:
        told = [t[len(OBSERVATION) :].strip() for t in users if t.startswith(OBSERVATION)]
    else:
        told = [text for role, text in messages if role == "tool"]
    return Seen(system, asked[0] if asked else None, tuple(told), react)


def in_words(step: Step, react: bool, number: int, arguments: str | None = None) -> dict[str, Any]:
    """The message of a step; `arguments` replaces the JSON of the call."""
    if isinstance(step, Final):
        text = f"Thought: I can answer now.\nFinal Answer: {step.text}" if react else step.text
        return {"role": "assistant", "content": text}
    if arguments is None:
        arguments = json.dumps(step.arguments, ensure_ascii=False)
    if react:
        thought = step.thought or f"I need {step.name}."
        text = f"Thought: {thought}\nAction: {step.name}\nAction Input: {arguments}"
        return {"role": "assistant", "content": text}
    function = {"name": step.name, "arguments": arguments}
    call = {"id": f"call_{number:04d}", "type": "function", "function": function}
    return {"role": "assistant", "content": step.thought or None, "tool_calls": [call]}
