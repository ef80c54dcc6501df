"""Caps that several processes at one command keep together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agenteval.errors import BudgetExceeded
from agenteval.models.limits import Budget, Limits
from agenteval.records import Usage
from agenteval.store.leases import Job


class Team(Protocol):
    """Whose caps they are, see `workers`."""

    bound: bool

    def budget(self, limits: Limits, spent: Usage) -> Budget:
        """The next cap of the command."""
        ...


class SharedBudget(Budget):
    """Caps that all who work on a job keep together. Each is granted a part of what is left, and
    spends it; towards the end parts are small."""

    def __init__(self, job: Job, number: int, limits: Limits) -> None:
        calls, cost = limits.max_calls, limits.max_cost
        super().__init__(
            max_calls=None if calls is None else 0, max_cost=None if cost is None else 0.0,
            price=limits.price,
        )  # fmt: skip
        self._job, self._number, self._caps = job, number, (calls, cost)

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """As of any budget. Raises BudgetExceeded when all workers together would pass a cap."""
        try:
            return super().reserve(prompt_tokens, completion_tokens)
        except BudgetExceeded:
            worst = self._worst(prompt_tokens, completion_tokens)
        calls, cost = self._left()
        if calls is not None and calls < 1:
            self.max_calls = (self.max_calls or 0) + self._job.grant_calls(
                self._number, self._caps[0] or 0
            )
        if cost is not None and cost < worst:
            self.max_cost = (self.max_cost or 0.0) + self._job.grant_cost(
                self._number, worst, self._caps[1] or 0.0
            )
        return super().reserve(prompt_tokens, completion_tokens)

    def _left(self) -> tuple[int | None, float | None]:
        """Calls and money that were granted and are neither spent nor held by a call under way."""
        calls = None if self.max_calls is None else (
            self.max_calls - self.spent.requests - self._held_calls
        )  # fmt: skip
        spent = (self.spent.cost or 0.0) + self._held_cost
        return calls, None if self.max_cost is None else self.max_cost - spent

    def give_back(self) -> None:
        """What was granted and is left."""
        calls, cost = self._left()
        if calls or cost:
            self._job.give_back(self._number, calls or 0, cost or 0.0)
            self.max_calls = None if self.max_calls is None else self.max_calls - (calls or 0)
            self.max_cost = None if self.max_cost is None else self.max_cost - (cost or 0.0)


@dataclass(frozen=True, slots=True)
class SharedLimits(Limits):
    """Limits of a leader or worker: a budget with a cap is shared with the others."""

    team: Team | None = None

    def budget(self, spent: Usage | None = None) -> Budget:
        """A budget with these caps, of which so much was spent before the job began."""
        own = Limits.budget(self, spent)
        capped = self.max_calls is not None or self.max_cost is not None
        if self.team is None or not self.team.bound or not capped:
            return own
        return self.team.budget(self, own.spent)
