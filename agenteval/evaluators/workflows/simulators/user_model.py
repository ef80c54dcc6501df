"""A user played by a model, with its mistakes found, asked again and recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.session import SimulatorMistake
from agenteval.evaluators.workflows.simulators.meter import Meter
from agenteval.evaluators.workflows.simulators.mistakes import Mistake, check
from agenteval.evaluators.workflows.simulators.nouns import (
    DONE,
    Heard,
    Said,
    parted,
    without_mark,
)
from agenteval.models.asking import ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request, printable
from agenteval.records import content_hash

_PACKAGE = "agenteval.evaluators.workflows"
_KEPT = 500  # characters of a mistake
_MOST_READ = 4000  # characters of one reply of the agent


class UserStuck(AgentevalError):
    """The simulated user said nothing that it may say. `mistakes` and `spent` tell of the tries."""

    def __init__(self, message: str, mistakes: tuple[SimulatorMistake, ...]) -> None:
        super().__init__(message)
        self.mistakes = mistakes


class UserOnModel:
    """A simulated user over a client.

    What it says is checked (see `mistakes.check`); what is wrong is told to the model once, then
    asked anew with another seed, `tries` times in all. Who insists on leaving early is let go, the
    mistake being recorded. Texts of the profile and of the agent enter as data, never as
    instructions.
    """

    def __init__(
        self,
        client: Client,
        *,
        temperature: float | None = 0.7,
        tries: int = 2,
        max_tokens: int = 300,
    ) -> None:
        self._client = client
        self._temperature = temperature
        self._tries = tries
        self._max_tokens = max_tokens
        names = ("user_system", "user_turn", "user_repair")
        self._system, self._turn, self._repair = (load_prompt(_PACKAGE, name) for name in names)

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Model, prompts and sampling."""
        prompts = (self._system, self._turn, self._repair)
        return {
            "user": "model",
            "version": 2,
            "model": self._client.model,
            "endpoint": self._client.transport.endpoint,
            "prompts": content_hash([prompt.sha256 for prompt in prompts]),
            "temperature": self._temperature,
            "tries": self._tries,
            "max_tokens": self._max_tokens,
        }

    async def speak(self, heard: Heard) -> Said:
        """The next words. Raises UserStuck after the last try, and what the client raises.

        The `spent` of all it raises tells what this turn took.
        """
        meter = Meter(self._client)
        found: list[SimulatorMistake] = []
        last = ""

        def read(text: str) -> str:
            nonlocal last
            last = printable(text).strip()
            try:
                check(last, heard)
            except Mistake as mistake:
                found.append(_recorded(mistake, last, heard))
                raise
            return last

        try:
            for attempt in range(self._tries):
                try:
                    request = self.request(heard, attempt)
                    text = (await ask(meter.as_client(), request, read, self._again)).value
                except Mistake:
                    continue
                return _said(text, found, meter)
            if found[-1].kind == "leaves_early":
                return _said(last, found, meter)
            raise UserStuck(
                f"the simulated user made a mistake {len(found)} times in a row, "
                f"last: {found[-1].kind}",
                tuple(found),
            )
        except AgentevalError as error:
            error.spent = meter.usage
            raise

    def request(self, heard: Heard, attempt: int = 0) -> Request:
        """The request of one turn."""
        profile = heard.profile
        system = self._system.render(
            persona=profile.persona,
            goals=_lines(goal.text for goal in profile.goals),
            facts=json.dumps(profile.facts, ensure_ascii=False, indent=1),
            choices=_lines(profile.choices),
            behaviours=_lines(profile.behaviours),
            asides=_lines(profile.asides),
            now=heard.now,
            nonce=NONCE,
        )
        messages = [
            m if m.role == "user" else m.model_copy(update={"content": _read(m.content)})
            for m in heard.messages
        ]
        turn = self._turn.render(opening=profile.opening, messages=messages)
        seed = int(content_hash([heard.seed, heard.repeat, attempt, len(heard.messages)])[:7], 16)
        parameters: dict[str, JsonValue] = {"seed": seed, "max_tokens": self._max_tokens}
        if self._temperature is not None:
            parameters["temperature"] = self._temperature
        return Request(
            messages=({"role": "system", "content": system}, {"role": "user", "content": turn}),
            parameters=parameters,
            repeat=heard.repeat,
            attempt=attempt,
            role="user",
            run_id=profile.id,
        )

    def _again(self, problem: str) -> str:
        return self._repair.render(problem=problem)


def _said(text: str, found: Sequence[SimulatorMistake], meter: Meter) -> Said:
    words, done = parted(text)
    return Said(words or DONE, done, tuple(found), meter.usage)


def _read(reply: str) -> str:
    """What a person reads of a reply. One that no model can take must not end the session: that
    would be a failure of the simulator."""
    cut = reply if len(reply) <= _MOST_READ else f"{reply[:_MOST_READ]} …"
    return without_mark(cut)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def _recorded(mistake: Mistake, text: str, heard: Heard) -> SimulatorMistake:
    return SimulatorMistake(who="user", kind=mistake.kind, turn=len(heard.agent), text=text[:_KEPT])
