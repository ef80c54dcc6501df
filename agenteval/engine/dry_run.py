"""Dry run: estimate the minimum and maximum number of requests of an experiment, and their cost.

The minimum assumes that every reply is usable and nothing fails; the maximum allows for any number
of bad replies. The first requests of a unit are drafted by the code of the real run without sending
them; `Evaluator.requests` gives the number of later ones. Tokens are estimated.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from agenteval.errors import AgentevalError, ReplyError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.dry_run import DryRun, nothing_sent
from agenteval.models.limits import Budget, Price

if TYPE_CHECKING:
    from agenteval.engine.resume import Pending
    from agenteval.engine.unit import Evaluator, RequestBounds, Requests, T

LOCAL = "computed entirely on this machine: no requests, no cost"
SAMPLE = 4000  # maximum drafted units (a millisecond each); else an evenly spaced sample
REPAIR = 3100  # additional tokens of a repair request: the malformed reply and the problem
_REPAIR_MEMBER = 60  # additional tokens per member of the reply


@dataclass(frozen=True)
class Amount:
    """Requests, and the tokens of their prompts and replies (None if unknown)."""

    requests: int = 0
    prompt: int | None = 0
    reply: int | None = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            None if self.prompt is None or other.prompt is None else self.prompt + other.prompt,
            None if self.reply is None or other.reply is None else self.reply + other.reply,
        )

    def __mul__(self, factor: float) -> Amount:
        prompt, reply = (
            None if n is None else round(n * factor) for n in (self.prompt, self.reply)
        )
        return Amount(round(self.requests * factor), prompt, reply)

    def cost(self, price: Price | None, *, known: bool = False) -> float | None:
        """Return the cost, None without a price or with unknown tokens. With `known`, return the
        cost of the known tokens, a lower bound."""
        if price is None or (not known and None in (self.prompt, self.reply)):
            return None
        return price.cost(self.prompt or 0, self.reply or 0)


@dataclass
class EstimateLine:
    """The requests to one party, such as the judge or a simulated user.

    `largest` has the largest prompt (bytes) and reply (tokens) of one request; `--max-cost`
    reserves their cost. `exact` is False if a sample was extrapolated. `where` lists models and
    addresses.
    """

    who: str
    least: Amount = Amount()
    most: Amount = Amount()
    largest: tuple[int, int] = (0, 0)
    exact: bool = True
    where: set[str] = field(default_factory=set)

    def cost(self, price: Price | None, *, least: bool = False) -> float | None:
        """Return the maximum cost, None if unknown; with `least`, the cost of the known tokens."""
        amount = self.least if least else self.most
        return amount.cost(price, known=least)

    def __add__(self, other: EstimateLine) -> EstimateLine:
        return replace(
            self,
            least=self.least + other.least,
            most=self.most + other.most,
            largest=max(self.largest, other.largest),
            exact=self.exact and other.exact,
            where=self.where | other.where,
        )

    def to_json(self, price: Price | None) -> dict[str, Any]:
        """Return the amounts as plain values, with their cost."""
        shown: dict[str, Any] = {"who": self.who, "exact": self.exact, "where": sorted(self.where)}
        for name, amount in (("least", self.least), ("most", self.most)):
            cost = self.cost(price, least=name == "least")
            shown[name] = {
                "requests": amount.requests,
                "prompt_tokens": amount.prompt,
                "reply_tokens": amount.reply,
                "cost": cost,
            }
        return shown


@dataclass(frozen=True)
class CostEstimate:
    """All requests of a command, and its budget, which includes earlier spending. `about` describes
    the work, and `notes` list costs that are not counted."""

    lines: tuple[EstimateLine, ...] = ()
    about: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""
    budget: Budget = field(default_factory=Budget)

    def __add__(self, other: CostEstimate) -> CostEstimate:
        """Return the sum, with the command and budget of the first; lines of the same party are
        added up."""
        lines = {line.who: line for line in self.lines}
        for line in other.lines:
            lines[line.who] = line + lines[line.who] if line.who in lines else line
        return replace(
            self,
            lines=tuple(lines.values()),
            about=self.about + other.about,
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    def uncertain(self) -> CostEstimate:
        """Return the estimate with a minimum of 0, for requests that depend on earlier replies."""
        return replace(self, lines=tuple(replace(line, least=Amount()) for line in self.lines))

    @property
    def calls_left(self) -> int | None:
        """Requests left under --max-calls; None without a cap."""
        most = self.budget.max_calls
        return None if most is None else max(0, most - self.budget.spent.requests)

    @property
    def money_left(self) -> float | None:
        """Money left under --max-cost; None without a cap."""
        most = self.budget.max_cost
        return None if most is None else max(0.0, most - (self.budget.spent.cost or 0.0))

    @property
    def least(self) -> Amount:
        """Minimum over all lines, if every reply is usable and no cap applies."""
        return sum((line.least for line in self.lines), Amount())

    @property
    def most(self) -> Amount:
        """Maximum over all lines, if no cap applies."""
        return sum((line.most for line in self.lines), Amount())

    @property
    def requests(self) -> tuple[int, int]:
        """Minimum and maximum number of requests within the caps.

        With a cap on cost, the minimum is the number that it covers if each request costs the
        amount reserved for the largest.
        """
        least, most = self.least.requests, self.most.requests
        if self.calls_left is not None:
            least, most = min(least, self.calls_left), min(most, self.calls_left)
        if self.money_left is not None and self.reserved:
            least = min(least, int(self.money_left / self.reserved))
        return least, most

    @property
    def cost(self) -> tuple[float | None, float | None]:
        """Minimum and maximum cost within the caps; None if unknown."""
        if self.budget.price is None:
            return None, None
        price = self.budget.price
        least = sum(line.cost(price, least=True) or 0.0 for line in self.lines)
        if self.least.requests:
            least *= min(1.0, self.requests[0] / self.least.requests)
        most, money_left = self.uncapped_cost, self.money_left
        if money_left is None:
            return least, most
        return min(least, money_left), money_left if most is None else min(most, money_left)

    @property
    def uncapped_cost(self) -> float | None:
        """Maximum cost without caps; None if unknown."""
        if self.budget.price is None:
            return None
        costs = [line.cost(self.budget.price) for line in self.lines]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def reserved(self) -> float | None:
        """Amount that --max-cost reserves for the largest request; None without a cap."""
        price = self.budget.price
        counted = [line for line in self.lines if line.most.requests]
        if self.budget.max_cost is None or price is None or not counted:
            return None
        return max(price.cost(*line.largest) for line in counted)

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values; None means unknown."""
        budget = self.budget
        (least, most), (low, high) = self.requests, self.cost
        return {
            "command": self.command,
            "dry_run": True,
            "about": list(self.about),
            "requests": {"least": least, "most": most},
            "exact": all(line.exact for line in self.lines),
            "prompt_tokens": {"least": self.least.prompt, "most": self.most.prompt},
            "reply_tokens": {"least": self.least.reply, "most": self.most.reply},
            "cost": None if budget.price is None else {"least": low, "most": high},
            "cap": {
                "max_calls": budget.max_calls,
                "max_cost": budget.max_cost,
                "spent_requests": budget.spent.requests,
                "spent_cost": budget.spent.cost,
                "reserved_for_one_request": self.reserved,
                "uncapped": {"least": self.least.requests, "most": self.most.requests},
            },
            "parts": [line.to_json(budget.price) for line in self.lines],
            "notes": list(self.notes),
        }


class RequestCounter:
    """Adds up requests by party, such as the judge.

    `seen` has the keys of requests that were already counted, here or by another counter; their
    replies will be in the store.
    """

    def __init__(self, seen: set[str] | None = None) -> None:
        self.lines: dict[str, EstimateLine] = {}
        self._seen = set() if seen is None else seen

    def count(self, requests: Requests, first: DryRun | None = None) -> None:
        """Add one unit. `requests` are those of the whole unit, `first` the drafts of its first
        party; without drafts the tokens are unknown."""
        for who, bounds in requests.items():
            line = self.lines.setdefault(who, EstimateLine(who))
            if first is not None:
                self._drafted(line, bounds, first)
                first = None
            else:
                tokens = (bounds.prompt, None) if bounds.least else (0, 0)
                line.least += Amount(bounds.least, *tokens)
                line.most += Amount(bounds.most, None, None) if bounds.most else Amount()

    def _drafted(self, line: EstimateLine, bounds: RequestBounds, first: DryRun) -> None:
        """If a reply is already stored, later requests depend on it, so only the drafts are
        certain. A conversation's tokens are unknown unless the evaluator knows all prompts."""
        drafts = first.drafts
        fresh = [draft for draft in drafts if draft.key not in self._seen]
        self._seen.update(draft.key for draft in drafts)
        question = bounds.most <= MOST_REQUESTS * len(drafts)
        least = len(fresh)
        if fresh and not question and not first.answered:
            least = max(least, bounds.least)
        prompt_bound = None if first.answered else bounds.prompt
        prompt = (
            sum(draft.prompt for draft in fresh)
            if prompt_bound is None or not fresh
            else prompt_bound
        )
        line.least += Amount(least, prompt, None if least else 0)
        most = max(bounds.most - first.answered, len(drafts))
        members = max(len((d.request.schema or {}).get("properties", ())) for d in drafts)
        repair = REPAIR + _REPAIR_MEMBER * members
        longest = sum(draft.prompt for draft in drafts) if bounds.prompt is None else bounds.prompt
        tokens = None
        if question or bounds.prompt is not None:
            certain = max(bounds.least, len(drafts))
            retries = max(0, most - certain)
            tokens = longest + retries * (longest // certain + repair)
        reply = max(draft.reply for draft in drafts)
        line.most += Amount(most, tokens, most * reply)
        room = 3 * repair if most > len(drafts) else 0
        line.largest = max(line.largest, (max(d.size for d in drafts) + room, reply))
        line.where.update(draft.where for draft in drafts)


async def first_requests(work: Coroutine[Any, Any, object]) -> DryRun | None:
    """Return the requests that `work` sends before it needs a reply that is not stored, or None.

    Raises errors of `work` itself.
    """
    with nothing_sent() as first:
        try:
            await work
        except ReplyError:
            pass  # the stored reply and its repair are both malformed: nothing is sent
        except AgentevalError:
            if not first.drafts:
                raise
    return first if first.drafts else None


async def estimate(
    evaluator: Evaluator[T], work: Pending[T], seen: set[str] | None = None
) -> CostEstimate:
    """Estimate the requests of an experiment; see RequestCounter for `seen`."""
    total = len(work.units)
    step = max(1, -(-total // SAMPLE))
    counter, sampled = RequestCounter(seen), 0
    for unit in islice(work.units, 0, None, step):
        sampled += 1
        if not evaluator.sends_by_client:
            counter.count(evaluator.requests(unit))
        elif first := await first_requests(evaluator.evaluate(unit)):
            counter.count(evaluator.requests(unit), first)
    lines: Iterable[EstimateLine] = counter.lines.values()
    if step > 1:
        scale = total / sampled
        lines = [
            replace(line, exact=False, least=line.least * scale, most=line.most * scale)
            for line in lines
        ]
    return CostEstimate(tuple(lines))
