"""What a command would ask, by whom it is asked: at least, likely and at most.

"At least" is what is asked when every reply can be used as it comes and nothing breaks off; "at
most" is what no reply, however bad, can exceed. Tokens of prompts are estimated (UTF-8 bytes / 3,
`models.client.estimate_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agenteval.records import Usage

if TYPE_CHECKING:
    from agenteval.models.limits import Limits, Price
    from agenteval.models.wire import Request

SHOWN_BACK = 2700  # tokens of a bad reply in the question that repairs it: 8,000 characters
REPAIR = 400  # tokens of what is said of it


@dataclass(frozen=True)
class Amount:
    """Requests and the tokens they take together; None: nobody can say."""

    requests: int = 0
    prompt: int | None = 0
    reply: int | None = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            _sum(self.prompt, other.prompt),
            _sum(self.reply, other.reply),
        )

    def __mul__(self, times: int) -> Amount:
        prompt, reply = (None if n is None else n * times for n in (self.prompt, self.reply))
        return Amount(self.requests * times, prompt, reply)

    def cost(self, price: Price | None, *, known: bool = False) -> float | None:
        """What it costs; None without a price or without a number of tokens. With `known` that of
        the tokens whose number is known, which it costs at least."""
        if price is None or (not known and None in (self.prompt, self.reply)):
            return None
        return price.cost(self.prompt or 0, self.reply or 0)


@dataclass(frozen=True)
class Asked:
    """One kind of requests. `why` says what makes the difference between least and most.

    `largest` is the longest prompt (in tokens, a true bound) and reply of one request that was
    looked at: what a cap on cost sets aside. `budget` names the budget that counts it, that of the
    command or one of its own; None: no cap holds for it. `exact` is False where stored replies were
    not looked for among too many.
    """

    who: str
    least: Amount
    most: Amount
    why: str
    likely: Amount | None = None
    largest: tuple[int, int] = (0, 0)
    budget: str | None = "command"
    exact: bool = True
    priced: bool = True  # by the prices of the command


@dataclass(frozen=True)
class Bill:
    """All that a command would ask, under its limits; `spent` is what its budget counts already.

    `about` says what the command works on, `notes` what is not counted, line by line.
    """

    command: str
    about: tuple[str, ...]
    asked: tuple[Asked, ...]
    limits: Limits
    spent: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()

    @property
    def allowed(self) -> int | None:
        """Requests that --max-calls leaves to the command's own budget; None without a cap."""
        if self.limits.max_calls is None:
            return None
        return max(0, self.limits.max_calls - self.spent.requests)

    @property
    def money_left(self) -> float | None:
        """What --max-cost leaves; None without a cap."""
        if self.limits.max_cost is None:
            return None
        return max(0.0, self.limits.max_cost - (self.spent.cost or 0.0))

    @property
    def least(self) -> Amount:
        """All together when every reply can be used; no cap is looked at."""
        return sum((one.least for one in self.asked), Amount())

    @property
    def most(self) -> Amount:
        """All together at most; no cap is looked at."""
        return sum((one.most for one in self.asked), Amount())

    def within(self, amounts: Iterable[tuple[str | None, int]]) -> int:
        """The sum of requests by budget, none of which passes its cap. A budget of its own begins
        at nothing."""
        by_budget: dict[str | None, int] = {}
        for budget, number in amounts:
            by_budget[budget] = by_budget.get(budget, 0) + number
        return sum(min(n, self._cap(b, n)) for b, n in by_budget.items())

    def _cap(self, budget: str | None, number: int) -> int:
        if budget is None or self.limits.max_calls is None:
            return number
        if budget == "command":
            return self.allowed or 0
        return self.limits.max_calls

    @property
    def requests(self) -> tuple[int, int]:
        """Least and most requests, the caps looked at.

        Of a cap on cost so many are certain as it pays for if each costs what is reserved for the
        largest.
        """
        own = sum(one.least.requests for one in self.asked if one.budget == "command")
        stopped = self.allowed is not None and own > self.allowed  # what comes later is not begun
        least = self.within(
            (one.budget, one.least.requests)
            for one in self.asked
            if not stopped or one.budget in ("command", None)
        )
        most = self.within((one.budget, one.most.requests) for one in self.asked)
        left, reserved = self.money_left, self.reserved
        if left is not None and reserved:
            least = min(least, int(left / reserved))
        return least, most

    @property
    def cost(self) -> tuple[float | None, float | None]:
        """Least and most money, the caps looked at; None where it is not known."""
        price = self.limits.price
        if price is None:
            return None, None
        priced = [one for one in self.asked if one.priced]
        least = sum(one.least.cost(price, known=True) or 0.0 for one in priced)
        if self.least.requests:
            least *= min(1.0, self.requests[0] / self.least.requests)
        most, left = self.uncapped_cost, self.money_left
        if left is None:
            return least, most
        return min(least, left), left if most is None else min(most, left)

    @property
    def uncapped_cost(self) -> float | None:
        """Most money if no cap held; None where it is not known."""
        priced = (one.most for one in self.asked if one.priced)
        return sum(priced, Amount()).cost(self.limits.price)

    @property
    def capped(self) -> bool:
        """Whether a cap lies below what may be asked."""
        most, left = self.uncapped_cost, self.money_left
        dear = left is not None and (most is None or most > left)
        return dear or self.requests != (self.least.requests, self.most.requests)

    @property
    def reserved(self) -> float | None:
        """What --max-cost sets aside for the largest request; None without a cap."""
        price = self.limits.price
        counted = [one for one in self.asked if one.most.requests and one.budget is not None]
        if self.limits.max_cost is None or price is None or not counted:
            return None
        return max(price.cost(*one.largest) for one in counted)

    def said(self, *lines: str) -> Bill:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *lines))


def of_requests(requests: Sequence[Request], model: str = "") -> tuple[Amount, tuple[int, int]]:
    """Requests, prompt tokens (estimated) and reply tokens (the longest allowed); and the largest
    of them in bytes, a true bound of its tokens, with the longest reply."""
    from agenteval.models.client import estimate_tokens, max_completion

    longest = [max_completion(request) for request in requests]
    largest = max(
        ((r.identify("", model)[1], most) for r, most in zip(requests, longest, strict=True)),
        default=(0, 0),
    )
    prompt = sum(estimate_tokens(request) for request in requests)
    return Amount(len(requests), prompt, sum(longest)), largest


def repaired(asked: Amount, times: int = 2, *, texts: int = 1) -> Amount:
    """The same with every question asked `times` times, from the second on with the bad reply
    (a text for each of `texts` criteria that were wrong) and what is wrong with it."""
    n = asked.requests
    if asked.prompt is None or asked.reply is None:
        return Amount(n * times, None, None)
    shown = min(SHOWN_BACK, -(-asked.reply // n)) if n else 0
    more = (times - 1) * n * (shown + REPAIR + 60 * texts)
    return Amount(n * times, asked.prompt * times + more, asked.reply * times)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
