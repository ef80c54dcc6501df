"""A user played by a model, with its mistakes found, asked again and recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from agenteval.errors import AgentevalError, ReplyError
from agenteval.evaluators.workflows.session import SimulatorMistake
from agenteval.evaluators.workflows.simulators.meter import Meter
from agenteval.evaluators.workflows.simulators.nouns import (
    DONE,
    Heard,
    Said,
    parted,
    without_mark,
)
from agenteval.evaluators.workflows.simulators.user_scripted import says_goodbye
from agenteval.models.asking import MOST_REQUESTS, ask
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

    What it says is checked (see `check`); what is wrong is told to the model once, then
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

    @property
    def most_requests(self) -> int:
        """Requests that one turn of the user can take."""
        return self._tries * MOST_REQUESTS

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


_TOKEN = re.compile(r"[\w@](?:[\w@.:/+\-]|,(?=\d{3}))*(?!%)")
_LETTERS_AND_DIGITS = re.compile(r"^[^\W\d_]{1,12}[-/]?\d[\w\-/]*$|^\d+[-/]?[^\W\d_]{1,12}\d*$")
_COUNTED = re.compile(r"^\d+(?:am|pm|st|nd|rd|th|h|min|kg|km|m|cm|eur|usd|x)$", re.I)
_CLOCK = re.compile(r"^(\d{1,2})[:.h](\d\d)(am|pm)?$")
_TIME = re.compile(r"(?<!\d)(\d{1,2})[:.h](\d\d)(?!\d)")
_SHORT_DATE = re.compile(r"^(\d{1,2}[./-]\d{1,2}[./-])(\d\d)$")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,6})?(?![\d.])")
_IDIOMS = ("24/7",)
_LONG = 3  # digits: shorter numbers are counted, longer ones name something


def invented(text: str, heard: Heard) -> tuple[str, ...]:
    """Tokens of the text that name something (R-20, 4711, a@b.org) and are known from nowhere:
    neither from the profile nor from what was said before.

    A name or number may be written in another way (R20, LH 2031, 1,200); a date, a time or a price
    is known when all its numbers are. Percentages name nothing.
    """
    known = _known(heard)
    numbers = {int(n) for n in re.findall(r"\d{1,18}", known)}
    found = []
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip(".:/-")
        if _names_something(token) and not _is_known(token.casefold(), known, numbers):
            found.append(token)
    return tuple(dict.fromkeys(found))


def _names_something(token: str) -> bool:
    if "@" in token[1:]:
        return True
    if _COUNTED.match(token) or token in _IDIOMS or not any(c.isdigit() for c in token):
        return False
    if _LETTERS_AND_DIGITS.match(token):
        return True
    return len(re.sub(r"\D", "", token)) >= _LONG


def _is_known(token: str, known: str, numbers: set[int]) -> bool:
    if re.search(rf"(?<!\w){re.escape(token)}(?!\w)", known):
        return True
    if "@" in token:
        return False
    if any(_stands(word, known) for word in _respelled(token)):
        return True
    if _is_known_time(token, known, numbers):
        return True
    if re.fullmatch(r"\d{1,18}[.,]\d{1,2}", token):
        price = float(token.replace(",", "."))
        return any(float(n) == price for n in _NUMBER.findall(known))
    short = _SHORT_DATE.match(token)
    if short:
        token = f"{short[1]}20{short[2]}"
    if any(c.isalpha() for c in token):
        return False
    return all(int(n) in numbers for n in re.findall(r"\d{1,18}", token))


def _is_known_time(token: str, known: str, numbers: set[int]) -> bool:
    clock = _CLOCK.match(token)
    if clock is None:
        return False
    hour, minute = int(clock[1]), int(clock[2])
    hours = {"am": {hour % 12}, "pm": {hour % 12 + 12}}.get(clock[3], {hour, hour + 12})
    if minute == 0 and hours & numbers:
        return True
    return any(int(h) in hours and int(m) == minute for h, m in _TIME.findall(known))


def _respelled(token: str) -> Iterator[str]:
    word = re.sub(r"[^\w]|_", "", token)
    yield word
    if word.startswith("00"):  # of a telephone number
        yield word[2:]


def _stands(word: str, known: str) -> bool:
    """Whether these letters and digits stand there one after the other, maybe parted by signs."""
    if not word:
        return False
    return bool(re.search(rf"(?<!\w){'[-/. ]?'.join(map(re.escape, word))}(?!\w)", known))


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
