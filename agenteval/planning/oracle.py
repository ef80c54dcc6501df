"""The oracle: computes an exact verdict from the log of an agent's tool calls.

The outcome is the first that applies (arXiv 2404.17833, section 5, names the types but no order):

1. Timeout: the agent was stopped at the limit of time or turns.
2. Act Error: it ended by itself, calls of the graded attempt could not be executed, and an
   action is missing. Failed calls that were repeated successfully do not matter.
3. Action Lost: an action was not executed.
4. Parameter Error (extended): a start hour before all earlier calls are over, or from which the
   activity does not end by 24.
5. Order Error: a constraint is violated.

A constraint is checked if all its actions were executed, whatever the outcome. An order holds iff
every call of the first action comes before every call of the second. In a base case the turns of
the agent count: calls of one turn are simultaneous, so there is no order between them
(`CheckRules.log_order` uses the places in the log instead, as the paper does). In an extended case
the places in the log count, also within a turn, because the agent itself states when each call
starts, and overlaps are Parameter Errors already. A time limit holds iff every call keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agenteval.agents import AgentLog, ToolEvent
from agenteval.planning.case import (
    DAY,
    RESTART,
    START,
    Before,
    Case,
    OrderRule,
    Span,
    TimeLimit,
    TimeRule,
    actions,
    clock,
    holds,
)
from agenteval.records import Record

Outcome = Literal["pass", "timeout", "act_error", "action_lost", "parameter_error", "order_error"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)  # errors in order of precedence
_SLIPS = {
    "unknown_tool": "there is no such tool",
    "bad_arguments": "its arguments were refused",
    "malformed": "it could not be read as a call",
}


class CheckRules(Record):
    """How to read a log where arXiv 2404.17833 is not specific.

    `strict`: any call that could not be executed makes the outcome an Act Error, and the whole log
    is graded, not only the attempt after the last restart. `log_order`: calls of one turn are
    ordered by their place in the log, as in the paper.
    """

    strict: bool = False
    log_order: bool = False


class Violation(Record):
    """A violated constraint: its number in the case (from 0), the rule, and the reason.

    The sub-sentences that state it are `rule.sentences`.
    """

    constraint: int
    rule: OrderRule | TimeRule
    why: str


class Slip(Record):
    """A call that was not executed. `call` is its place in the log's events, from 1."""

    call: int
    name: str
    why: str


class ParameterError(Record):
    """A start hour at which the tool could not start.

    `given` is before `earliest`, when all earlier calls have ended, or after `latest`, the last
    start from which the activity would end by 24.
    """

    call: int
    tool: str
    given: int
    earliest: int
    latest: int


class PlanStep(Record):
    """One step of a plan; `start` is an hour, or None in a base case."""

    tool: str
    start: int | None = None


class Verdict(Record):
    """The outcome and all errors, including those that did not determine the outcome.

    `sequence` has the graded calls in order.
    """

    outcome: Outcome
    sequence: tuple[PlanStep, ...] = ()
    violated: tuple[Violation, ...] = ()
    lost: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()
    parameter_errors: tuple[ParameterError, ...] = ()
    attempts: int = 1

    @property
    def passed(self) -> bool:
        """Whether the plan was right."""
        return self.outcome == "pass"


_DEFAULT = CheckRules()


@dataclass(frozen=True, slots=True)
class _Call:
    """An executed call; `number` is its place in the log, from 1."""

    number: int
    action: int
    tool: str
    place: int  # calls at the same place are simultaneous
    hours: Span | None


def check(case: Case, log: AgentLog, rules: CheckRules = _DEFAULT) -> Verdict:
    """Return the verdict on a log; never raises."""
    calls: list[_Call] = []
    slips: list[Slip] = []
    graded_slips, attempts = 0, 1  # slips of the graded attempt
    for number, event in enumerate(log.events, start=1):
        if case.durations is not None and event.status == "ok" and event.name == RESTART:
            attempts += 1
            if not rules.strict:
                calls, graded_slips = [], 0
            continue
        call = _call(case, event, number, rules)
        if isinstance(call, _Call):
            calls.append(call)
        else:
            slips.append(Slip(call=number, name=event.name, why=call))
            graded_slips += 1
    by_action = [[c for c in calls if c.action == i] for i in range(case.n)]
    violated = _violations(case, by_action)
    errors = _parameter_errors(calls)
    lost = tuple(a.tool for a, some in zip(case.actions, by_action, strict=True) if not some)
    possible: tuple[tuple[Outcome, object], ...] = (
        ("timeout", log.ending != "finished"),
        ("act_error", slips if rules.strict else lost and graded_slips),
        ("action_lost", lost),
        ("parameter_error", errors),
        ("order_error", violated),
    )
    return Verdict(
        outcome=next((name for name, applies in possible if applies), "pass"),
        sequence=tuple(PlanStep(tool=c.tool, start=c.hours and c.hours[0]) for c in calls),
        violated=tuple(violated),
        lost=lost,
        repeated=tuple(some[0].tool for some in by_action if len(some) > 1),
        slips=tuple(slips),
        parameter_errors=tuple(errors),
        attempts=attempts,
    )


def _call(case: Case, event: ToolEvent, number: int, rules: CheckRules) -> _Call | str:
    """Return the call, or the reason why it could not be executed."""
    action = case.index.get(event.name)
    if event.status != "ok" or action is None:
        return _SLIPS["unknown_tool" if event.status == "ok" else event.status]
    if case.hours is None:
        place = number if rules.log_order else event.turn
        return _Call(number, action, event.name, place, None)
    start = event.arguments.get(START) if isinstance(event.arguments, dict) else None
    if isinstance(start, float) and start.is_integer():  # JSON does not distinguish 10 and 10.0
        start = int(start)
    if not isinstance(start, int) or isinstance(start, bool):
        return "it has no start hour"
    return _Call(number, action, event.name, number, (start, start + case.hours[action]))


def _violations(case: Case, by_action: Sequence[Sequence[_Call]]) -> list[Violation]:
    """Return all violated constraints whose actions were all executed."""
    # From the first to the last call of each action
    places = [_extent([(c.place, c.place + 1) for c in calls]) for calls in by_action]
    hours = [_extent([c.hours for c in calls if c.hours]) for calls in by_action]
    violations = []
    for number, stated in enumerate(case.stated):
        constraint = stated.constraint
        spans = places if isinstance(constraint, Before) else hours
        if all(by_action[i] for i in actions(constraint)) and not holds(constraint, spans):
            why = (
                _why_order(constraint, by_action)
                if isinstance(constraint, Before)
                else _why_time(constraint, by_action[constraint.action][0].tool, hours)
            )
            violations.append(Violation(constraint=number, rule=case.constraints[number], why=why))
    return violations


def _extent(spans: Sequence[Span]) -> Span:
    return min((s for s, _ in spans), default=0), max((e for _, e in spans), default=0)


def _why_order(order: Before, by_action: Sequence[Sequence[_Call]]) -> str:
    last = max(by_action[order.first], key=lambda c: c.place)
    early = min(by_action[order.second], key=lambda c: c.place)
    first, second = f"'{last.tool}'", f"'{early.tool}'"
    if last.place == early.place:
        return (
            f"{first} and {second} were called in the same turn (calls {last.number} and "
            f"{early.number}), but {first} must be over before {second} starts"
        )
    return (
        f"{first} was called as call {last.number}, but {second}, which must come later, as call "
        f"{early.number}"
    )


def _why_time(limit: TimeLimit, tool: str, hours: Sequence[Span]) -> str:
    start, end = hours[limit.action]
    if limit.side == "before":
        return f"'{tool}' ended at {clock(end)}, but must end by {clock(limit.hour)}"
    return f"'{tool}' started at {clock(start)}, but must not start before {clock(limit.hour)}"


def _parameter_errors(calls: Sequence[_Call]) -> list[ParameterError]:
    """Return start hours that overlap another activity or the end of the day."""
    errors, now = [], 0
    for call in calls:
        if call.hours is None:
            continue
        start, end = call.hours
        latest = DAY - (end - start)
        if not now <= start <= latest:
            errors.append(
                ParameterError(
                    call=call.number, tool=call.tool, given=start, earliest=now, latest=latest
                )
            )
        now = max(now, end)
    return errors
