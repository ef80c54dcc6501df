"""Dry runs: inside a `Rehearsal` no client sends anything, and what it would send is noted.

The code that asks is the code of the real run. What it would ask first is known exactly (a stored
reply is answered from the store), what follows from that by the most requests that a question or a
conversation can take: a `Bill` of who is asked how often, at least and at most.

"At least" is asked when every reply can be used as it comes and nothing breaks off; no reply,
however bad, takes more than "at most". Tokens of prompts are estimated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self, TypeVar

from agenteval.errors import AgentevalError, BudgetExceeded, ReplyError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.limits import Budget, Price
from agenteval.models.wire import Request

LOOKED_AT = 4000  # units that are rehearsed; of more an even sample: a millisecond for each
# Tokens that the question for a repair is longer: a bad reply (up to 8,000 characters) and what is
# said of it, and for every member that was asked for
REPAIR = 3100
_REPAIR_MEMBER = 60
_USUAL_REPLY = 100  # tokens of one reply of an agent: a call, or some sentences
_U = TypeVar("_U")
_U_co = TypeVar("_U_co", covariant=True)


class Units(Protocol[_U_co]):
    """Units of a plan: so many, in their order."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_U_co]: ...


class Plan(Protocol[_U]):
    """What is rehearsed: the plan of an experiment, as it is run."""

    @property
    def units(self) -> Units[_U]: ...
    def evaluate(self, unit: _U) -> Coroutine[Any, Any, object]: ...


class Unsent(BudgetExceeded):
    """The reply is not stored, and nothing is sent. As at the end of a budget, nothing is asked
    again and nothing further is begun."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that was not sent: its key, the tokens of prompt (estimated) and reply (the most
    it allows), its bytes, a true bound of the prompt's tokens, and where it would go."""

    request: Request
    key: str
    prompt: int
    reply: int
    size: int
    where: str = ""

    @property
    def repairs(self) -> bool:
        """Whether it asks for a second time what was answered out of form."""
        return self.request.role.endswith(":repair")


class Rehearsal:
    """A context in which no client of this package sends anything; see the module. It has an event
    loop of its own: beside one that runs, enter it in a thread.

    `answered` are the requests of the last `first` whose replies were stored.
    """

    def __init__(self) -> None:
        self.answered: list[Request] = []
        self._drafts: list[Draft] = []

    def __enter__(self) -> Self:
        self._token: Token[Rehearsal | None] = _current.set(self)
        self._runner = asyncio.Runner()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._runner.close()
        _current.reset(self._token)

    def first(self, work: Coroutine[Any, Any, object]) -> list[Draft]:
        """The requests that `work` sends before it needs a reply that is not stored; none where
        all are. Raises what is wrong with `work` itself."""
        self.answered, self._drafts = [], []
        try:
            self._runner.get_loop().run_until_complete(work)
        except ReplyError:
            pass  # what is stored cannot be read, and neither can its repair: nothing is asked
        except AgentevalError:
            if not self._drafts:
                raise
        return self._drafts

    def refuse(self, draft: Draft) -> NoReturn:
        """Note the request. Raises Unsent."""
        self._drafts.append(draft)
        raise Unsent("nobody is asked in a dry run")


_current: ContextVar[Rehearsal | None] = ContextVar("rehearsal", default=None)
rehearsing: Callable[[], Rehearsal | None] = _current.get


@dataclass(frozen=True)
class Amount:
    """Requests and the tokens they take together; None: nobody can say."""

    requests: int = 0
    prompt: int | None = 0
    reply: int | None = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            None if None in (self.prompt, other.prompt) else self.prompt + other.prompt,  # type: ignore[operator]
            None if None in (self.reply, other.reply) else self.reply + other.reply,  # type: ignore[operator]
        )

    def __mul__(self, times: float) -> Amount:
        prompt, reply = (None if n is None else round(n * times) for n in (self.prompt, self.reply))
        return Amount(round(self.requests * times), prompt, reply)

    def cost(self, price: Price | None, *, known: bool = False) -> float | None:
        """What it costs; None without a price or without a number of tokens. With `known` that of
        the tokens whose number is known, which it costs at least."""
        if price is None or (not known and None in (self.prompt, self.reply)):
            return None
        return price.cost(self.prompt or 0, self.reply or 0)


@dataclass
class Part:
    """Requests of one kind. `why` says what makes the difference between least and most.

    `largest` is the longest prompt (in bytes) and reply of one request: what a cap on cost sets
    aside. `budget` names the budget that counts it, that of the command or one of its own; None:
    no cap holds for it. `exact` is False where a sample was looked at.
    """

    who: str
    why: str
    least: Amount = Amount()
    most: Amount = Amount()
    likely: Amount | None = None
    largest: tuple[int, int] = (0, 0)
    budget: str | None = "command"
    exact: bool = True
    priced: bool = True  # by the prices of the command
    where: set[str] = field(default_factory=set)  # models and endpoints that are asked
    _keys: set[str] = field(default_factory=set)

    def ask(
        self, drafts: Iterable[Draft], *, certain: int = 1, times: int = 1,
        most: int = MOST_REQUESTS, longer: int | None = 0, reply: int | None = None,
    ) -> None:  # fmt: skip
        """Count questions, each of which takes up to `most` requests.

        Each draft stands for `times` questions, of which `certain` are asked at least, with
        replies of `reply` tokens (None: nobody can say); one that was counted before is answered
        from the store by then. Prompts are up to `longer` tokens longer than drafted; None: nobody
        can say.
        """
        for draft in drafts:
            self.where.add(draft.where)
            count = (1 if draft.request.final else most) * times - draft.repairs
            members = len((draft.request.schema or {}).get("properties", ()))
            repair = REPAIR + _REPAIR_MEMBER * members if count > times else 0
            prompt = None
            if longer is not None:
                prompt = count * (draft.prompt + longer) + (count - times) * repair
            self.most += Amount(count, prompt, count * draft.reply)
            if certain and draft.key not in self._keys:
                tokens = None if reply is None else min(reply, draft.reply) * certain
                self.least += Amount(certain, draft.prompt * certain, tokens)
            self._keys.add(draft.key)
            room = 3 * ((longer or 0) + repair)
            self.largest = max(self.largest, (draft.size + room, draft.reply))

    def talk(
        self, draft: Draft, *, usual: int, most: int, certain: int = 1, times: int = 1
    ) -> None:
        """Count `times` conversations of an agent that begin so, `certain` of them at least: one
        request each at least, `usual` where it does what is due, and `most` at most."""
        self.where.add(draft.where)
        limit = draft.request.parameters.get("max_tokens")
        reply = None if limit is None else most * int(limit) * times
        growth = _USUAL_REPLY * usual * (usual - 1) // 2
        likely = Amount(usual, usual * draft.prompt + growth, usual * _USUAL_REPLY) * times
        self.least += Amount(1, draft.prompt, None) * certain
        self.likely = (self.likely or Amount()) + likely
        self.most += Amount(most * times, draft.prompt * times if most == 1 else None, reply)
        room = 3 * _USUAL_REPLY * (usual - 1)
        self.largest = max(self.largest, (draft.size + room, draft.reply))

    def rehearse(self, plans: Sequence[Plan[_U]], count: Callable[[_U, list[Draft]], None]) -> Part:
        """Have `count` add to this empty part what each unit of the plans would ask first, if it
        would ask anything; of more than `LOOKED_AT` units a sample. Returns the part."""
        total = sum(len(plan.units) for plan in plans)
        share = max(1, -(-total // LOOKED_AT))
        units = ((plan, unit) for plan in plans for unit in plan.units)
        looked = 0
        with Rehearsal() as rehearsal:
            for plan, unit in islice(units, 0, None, share):
                looked += 1
                if drafts := rehearsal.first(plan.evaluate(unit)):
                    count(unit, drafts)
        if share > 1:
            self.exact, scale = False, total / looked
            self.least, self.most = self.least * scale, self.most * scale
            self.likely = self.likely and self.likely * scale
        return self

    def to_json(self, price: Price | None) -> dict[str, Any]:
        """The amounts as plain values, with what they cost at `price`."""
        shown: dict[str, Any] = {"who": self.who, "why": self.why, "exact": self.exact,
                                 "capped": self.budget is not None}  # fmt: skip
        if self.where:
            shown["where"] = sorted(self.where)
        for name, amount in (("least", self.least), ("likely", self.likely), ("most", self.most)):
            if amount is not None:
                cost = amount.cost(price if self.priced else None, known=name == "least")
                shown[name] = {"requests": amount.requests, "prompt_tokens": amount.prompt,
                               "reply_tokens": amount.reply, "cost": cost}  # fmt: skip
        return shown


@dataclass(frozen=True)
class Bill:
    """All that a command would ask, within its budget, which counts what was spent before.

    `about` says what the command works on, `notes` what is not counted, line by line.
    """

    command: str
    about: Sequence[str]
    parts: Sequence[Part]
    budget: Budget
    notes: tuple[str, ...] = ()

    @property
    def calls_left(self) -> int | None:
        """Requests that --max-calls leaves to the command's own budget; None without a cap."""
        most = self.budget.max_calls
        return None if most is None else max(0, most - self.budget.spent.requests)

    @property
    def money_left(self) -> float | None:
        """What --max-cost leaves; None without a cap."""
        most = self.budget.max_cost
        return None if most is None else max(0.0, most - (self.budget.spent.cost or 0.0))

    @property
    def least(self) -> Amount:
        """All together when every reply can be used; no cap is looked at."""
        return sum((part.least for part in self.parts), Amount())

    @property
    def most(self) -> Amount:
        """All together at most; no cap is looked at."""
        return sum((part.most for part in self.parts), Amount())

    @property
    def requests(self) -> tuple[int, int]:
        """Least and most requests, the caps looked at.

        Of a cap on cost so many are certain as it pays for if each costs what is reserved for the
        largest.
        """
        own = sum(part.least.requests for part in self.parts if part.budget == "command")
        stopped = self.calls_left is not None and own > self.calls_left
        begun = [p for p in self.parts if not stopped or p.budget in ("command", None)]
        least = self._within((part.budget, part.least.requests) for part in begun)
        most = self._within((part.budget, part.most.requests) for part in self.parts)
        if self.money_left is not None and self.reserved:
            least = min(least, int(self.money_left / self.reserved))
        return least, most

    def _within(self, requests: Iterable[tuple[str | None, int]]) -> int:
        """The sum by budget, none of which passes its cap. One of its own begins at nothing."""
        sums: dict[str | None, int] = {}
        for budget, number in requests:
            sums[budget] = sums.get(budget, 0) + number
        if self.budget.max_calls is None:
            return sum(sums.values())
        caps = {None: sums.get(None, 0), "command": self.calls_left or 0}
        return sum(min(n, caps.get(budget, self.budget.max_calls)) for budget, n in sums.items())

    @property
    def cost(self) -> tuple[float | None, float | None]:
        """Least and most money, the caps looked at; None where it is not known."""
        if self.budget.price is None:
            return None, None
        priced = (part.least for part in self.parts if part.priced)
        least = sum(amount.cost(self.budget.price, known=True) or 0.0 for amount in priced)
        if self.least.requests:
            least *= min(1.0, self.requests[0] / self.least.requests)
        most, left = self.uncapped_cost, self.money_left
        if left is None:
            return least, most
        return min(least, left), left if most is None else min(most, left)

    @property
    def uncapped_cost(self) -> float | None:
        """Most money if no cap held; None where it is not known."""
        priced = (part.most for part in self.parts if part.priced)
        return sum(priced, Amount()).cost(self.budget.price)

    @property
    def reserved(self) -> float | None:
        """What --max-cost sets aside for the largest request; None without a cap."""
        price = self.budget.price
        counted = [part for part in self.parts if part.most.requests and part.budget is not None]
        if self.budget.max_cost is None or price is None or not counted:
            return None
        return max(price.cost(*part.largest) for part in counted)

    def to_json(self) -> dict[str, Any]:
        """All figures as plain values; None is what nobody can say."""
        budget = self.budget
        (least, most), (low, high) = self.requests, self.cost
        return {
            "command": self.command,
            "dry_run": True,
            "about": list(self.about),
            "requests": {"least": least, "most": most},
            "exact": all(part.exact for part in self.parts),
            "prompt_tokens": {"least": self.least.prompt, "most": self.most.prompt},
            "reply_tokens": {"least": self.least.reply, "most": self.most.reply},
            "cost": None if budget.price is None else {"least": low, "most": high},
            "cap": {
                "max_calls": budget.max_calls, "max_cost": budget.max_cost,
                "spent_requests": budget.spent.requests, "spent_cost": budget.spent.cost,
                "reserved_for_one_request": self.reserved,
                "uncapped": {"least": self.least.requests, "most": self.most.requests},
            },
            "parts": [part.to_json(budget.price) for part in self.parts],
            "notes": list(self.notes),
        }  # fmt: skip
