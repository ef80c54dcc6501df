"""What the oracle says about one log, and the rules it can be told to follow."""

from __future__ import annotations

from typing import Literal

from agenteval.evaluators.planning.case import OrderRule, TimeRule
from agenteval.records import Record

Outcome = Literal[
    "pass", "timeout", "act_error", "action_lost", "parameter_error", "order_error"
]  # errors in order of precedence: the first that applies is the outcome


class CheckRules(Record):
    """How a log is read where arXiv 2404.17833 leaves it open.

    `repeats`: of a tool that was called repeatedly every call counts, or only the first.
    `strict_calls`: any call that could not be carried out makes the outcome an Act Error.
    `strict_attempts`: the whole log is graded as one, not only what followed the last restart.
    """

    repeats: Literal["every", "first"] = "every"
    strict_calls: bool = False
    strict_attempts: bool = False


class Violation(Record):
    """A constraint that does not hold: its place in the case (from 0), itself, and why.

    The sub-sentences that state it are `rule.sentences`.
    """

    constraint: int
    rule: OrderRule | TimeRule
    why: str


class Slip(Record):
    """A call that was not carried out. `call` is its place in the log's events, from 1."""

    call: int
    name: str
    why: str


class ParameterError(Record):
    """A start hour at which the tool could not be started.

    `earliest` is when all that was called before is over, `latest` the last hour from which the
    activity would still end by 24; `given` lies outside of the two.
    """

    call: int
    tool: str
    given: int
    earliest: int
    latest: int


class Step(Record):
    """One step of a plan; `start` is an hour, None in a base case."""

    tool: str
    start: int | None = None


class Verdict(Record):
    """The outcome, and everything that was found, whether or not it decided the outcome.

    `sequence` holds the calls that were graded, in order. `core` holds numbers of sub-sentences
    that suffice to show that the constraints were violated; `nearest` is the valid plan with the
    fewest pairs swapped against the sequence. Both are empty for a pass, and where no explanation
    was asked for; `nearest` also where the case has no valid plan.
    """

    outcome: Outcome
    sequence: tuple[Step, ...] = ()
    violated: tuple[Violation, ...] = ()
    lost: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()
    parameter_errors: tuple[ParameterError, ...] = ()
    attempts: int = 1
    core: tuple[int, ...] = ()
    nearest: tuple[Step, ...] = ()

    @property
    def passed(self) -> bool:
        """Was the plan right?"""
        return self.outcome == "pass"
