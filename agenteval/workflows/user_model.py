"""A user simulated by a model, whose mistakes are detected, repaired and recorded."""

from __future__ import annotations

import json
import re
from typing import Literal

from pydantic import JsonValue

from agenteval.errors import AgentevalError, ReplyError
from agenteval.models.asking import MOST_REQUESTS, ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request, printable
from agenteval.records import Usage, content_hash
from agenteval.workflows.session import SimulatorMistake
from agenteval.workflows.simulated_user import (
    ANYTHING_ELSE,
    ASKS,
    DONE,
    DONE_MARK,
    UserContext,
    UserTurn,
    parted,
    says_goodbye,
)


class UserStuck(AgentevalError):
    """The simulated user sent no valid message. `mistakes` and `spent` describe the attempts."""

    def __init__(self, message: str, mistakes: tuple[SimulatorMistake, ...]) -> None:
        super().__init__(message)
        self.mistakes = mistakes


_PACKAGE = "agenteval.workflows"
_TEMPERATURE, _MAX_TOKENS, _TRIES = 0.7, 300, 2
_MOST_MISTAKE = 500  # characters of a mistake
_MOST_READ = 4000  # characters of one reply of the agent
_PROMPTS = ("user_system", "user_turn", "user_repair")


class UserOnModel:
    """A model-based simulated user.

    Its messages are checked (see `check`): the model gets one explanation of its mistake, then
    another seed. A user that insists on leaving early may leave; this mistake affects the agent.
    Texts of the profile and of the agent are inserted as data, never as instructions.
    """

    most_requests = _TRIES * MOST_REQUESTS  # of one turn of the user

    def __init__(self, client: Client) -> None:
        self._client = client
        self._system, self._turn, self._repair = (load_prompt(_PACKAGE, name) for name in _PROMPTS)

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Model, prompts and sampling."""
        prompts = (self._system, self._turn, self._repair)
        return {
            "user": "model",
            "version": 2,
            "model": self._client.model,
            "endpoint": self._client.address,
            "prompts": content_hash([prompt.sha256 for prompt in prompts]),
            "temperature": _TEMPERATURE,
            "tries": _TRIES,
            "max_tokens": _MAX_TOKENS,
        }

    async def speak(self, context: UserContext) -> UserTurn:
        """Return the next message.

        Raises UserStuck after the last try, and as the client, with this turn's usage in `spent`.
        """
        usage, mistakes, last = Usage(), list[SimulatorMistake](), ""

        def read(text: str) -> str:
            nonlocal last
            last = printable(text).strip()
            try:
                check(last, context)
            except Mistake as mistake:
                mistakes.append(
                    SimulatorMistake(
                        who="user",
                        kind=mistake.kind,
                        turn=len(context.agent),
                        text=last[:_MOST_MISTAKE],
                    )
                )
                raise
            return last

        def repair(problem: str) -> str:
            return self._repair.render(problem=problem)

        for attempt in range(_TRIES):
            try:
                answer = await ask(self._client, self.request(context, attempt), read, repair)
            except Mistake as error:
                usage += error.spent or Usage()
            except AgentevalError as error:
                error.spent = usage + (error.spent or Usage())
                raise
            else:
                usage += answer.usage
                mistakes = [m.model_copy(update={"repaired": True}) for m in mistakes]
                break
        else:
            if mistakes[-1].kind != "leaves_early":
                stuck = UserStuck(
                    f"the simulated user made a mistake {len(mistakes)} times in a row, "
                    f"last: {mistakes[-1].kind}",
                    tuple(mistakes),
                )
                stuck.spent = usage
                raise stuck
        words, done = parted(last)
        return UserTurn(words or DONE, done, tuple(mistakes), usage)

    def request(self, context: UserContext, attempt: int = 0) -> Request:
        """Return the request of one turn."""
        profile = context.profile
        system = self._system.render(
            persona=profile.persona,
            goals="\n".join(goal.text for goal in profile.goals),
            facts=json.dumps(profile.facts, ensure_ascii=False, indent=1),
            choices="\n".join(profile.choices),
            behaviours="\n".join(profile.behaviours),
            asides="\n".join(profile.asides),
            now=context.now,
            nonce=NONCE,
        )
        messages = [
            m if m.role == "user" else m.model_copy(update={"content": _read(m.content)})
            for m in context.messages
        ]
        turn = self._turn.render(opening=profile.opening, messages=messages)
        seed = int(
            content_hash([context.seed, context.repeat, attempt, len(context.messages)])[:7], 16
        )
        return Request(
            messages=({"role": "system", "content": system}, {"role": "user", "content": turn}),
            parameters={"seed": seed, "max_tokens": _MAX_TOKENS, "temperature": _TEMPERATURE},
            repeat=context.repeat,
            attempt=attempt,
            role="user",
            run_id=profile.id,
        )


def _read(reply: str) -> str:
    """Return the visible text of a reply, at most 4,000 characters: a reply too long for the model
    must not end the session."""
    cut = reply if len(reply) <= _MOST_READ else f"{reply[:_MOST_READ]} …"
    return DONE_MARK.sub("(done)", cut)  # only the user may use the mark


Kind = Literal[
    "empty", "plays_agent", "done_at_once", "leaves_early", "repeats", "too_long", "invented"
]
LONGEST = 600  # characters; the prompt asks for 200
_TEMPLATE = re.compile(
    r"^\W{0,3}(?:Thought|Action|Action Input|Observation|Response|Assistant|Agent)\W{0,2}:",
    re.M | re.I,
)


class Mistake(ReplyError):
    """This text is not allowed as a message of the user."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind: Kind = kind


def check(text: str, context: UserContext) -> None:
    """Raise Mistake for the first problem of a message of the user."""
    words, done = parted(text)
    if done and not context.agent:
        raise Mistake("done_at_once", f"{DONE} at the first turn: nobody has answered yet")
    if not words and not done:
        raise Mistake("empty", "the reply is empty")
    if _TEMPLATE.search(words):
        raise Mistake("plays_agent", "the reply is written like one of the assistant, not the user")
    if len(words) > LONGEST:
        raise Mistake("too_long", f"the reply has {len(words)} characters; say it in at most 200")
    last_two = [_same(text) for text in context.own[-2:]]
    if words and [_same(words)] * 2 == last_two:
        raise Mistake("repeats", "the reply repeats the last two word for word")
    if made_up := invented(words, context):
        raise Mistake("invented", f"{', '.join(made_up)}: in none of the facts")
    if done and (name := _open(context)) is not None:
        raise Mistake(
            "leaves_early",
            f"{DONE}, but the assistant has asked you something, and nobody has said {name} yet",
        )


def _same(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _open(context: UserContext) -> str | None:
    """Return a fact that the goals need and that was not stated, if the agent has just asked
    something for the first time, else None: if the user leaves then, the agent did not fail."""
    last = context.agent[-1]
    question = ASKS.search(last) and not says_goodbye(last) and not ANYTHING_ELSE.search(last)
    if not question or _same(last) in [_same(text) for text in context.agent[:-1]]:
        return None
    dialogue = "\n".join(m.content for m in context.messages).casefold()
    for action in context.profile.actions:
        for name, value in action.arguments.items():
            fact = context.profile.facts.get(name)
            is_fact = value == fact or (isinstance(fact, list) and value in fact)
            plain = isinstance(value, str | int | float) and not isinstance(value, bool)
            if is_fact and plain and str(value).casefold() not in dialogue:
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
_LONG = 3  # digits: shorter numbers are counts, longer ones identifiers


def invented(text: str, context: UserContext) -> tuple[str, ...]:
    """Return the identifiers (R-20, 4711, a@b.org) that are neither in the profile nor in earlier
    messages.

    Identifiers and numbers may be written differently (R20, LH 2031, 1,200). A date, a time or a
    price is known if all its numbers are. Percentages are not identifiers.
    """
    texts = _known_texts(context)
    numbers = {int(n) for n in re.findall(r"\d{1,18}", texts)}
    tokens = []
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip(".:/-")
        if _names_something(token) and not _is_known(token.casefold(), texts, numbers):
            tokens.append(token)
    return tuple(dict.fromkeys(tokens))


def _names_something(token: str) -> bool:
    if "@" in token[1:]:
        return True
    if _COUNTED.match(token) or token in _IDIOMS or not any(c.isdigit() for c in token):
        return False
    if _LETTERS_AND_DIGITS.match(token):
        return True
    return len(re.sub(r"\D", "", token)) >= _LONG


def _is_known(token: str, texts: str, numbers: set[int]) -> bool:
    if re.search(rf"(?<!\w){re.escape(token)}(?!\w)", texts):
        return True
    if "@" in token:
        return False
    word = re.sub(r"[^\w]|_", "", token)
    spelled = {word, word.removeprefix("00")}  # of a telephone number
    # The letters and digits in sequence, optionally with separators.
    if any(
        w and re.search(rf"(?<!\w){'[-/. ]?'.join(map(re.escape, w))}(?!\w)", texts)
        for w in spelled
    ):
        return True
    if clock := _CLOCK.match(token):
        hour, minute = int(clock[1]), int(clock[2])
        hours = {"am": {hour % 12}, "pm": {hour % 12 + 12}}.get(clock[3], {hour, hour + 12})
        if (minute == 0 and hours & numbers) or any(
            int(h) in hours and int(m) == minute for h, m in _TIME.findall(texts)
        ):
            return True
    if re.fullmatch(r"\d{1,18}[.,]\d{1,2}", token):
        price = float(token.replace(",", "."))
        return any(float(n) == price for n in _NUMBER.findall(texts))
    if short := _SHORT_DATE.match(token):
        token = f"{short[1]}20{short[2]}"
    digits = re.findall(r"\d{1,18}", token)
    return not any(c.isalpha() for c in token) and all(int(n) in numbers for n in digits)


def _known_texts(context: UserContext) -> str:
    profile = context.profile
    parts = [
        profile.opening,
        profile.persona,
        *profile.choices,
        *profile.asides,
        *profile.behaviours,
        *(goal.text for goal in profile.goals),
        json.dumps(profile.facts, ensure_ascii=False),
        json.dumps([a.arguments for a in profile.actions], ensure_ascii=False),
        context.now,
        *(m.content for m in context.messages),
    ]
    return "\n".join(parts).casefold()
