"""The oracle: from the log of an agent's tool calls to an exact verdict.

Outcome, the first that applies (arXiv 2404.17833, section 5, names the types but no precedence):

1. Timeout: the agent was stopped at the limit of time or turns.
2. Act Error: it ended by itself, calls of the graded attempt could not be carried out, and some
   action is missing. Slips that were made good leave the verdict to what follows.
3. Action Lost: some action was not carried out.
4. Parameter Error (extended): a start hour before all that was called earlier is over, or from
   which the activity does not end by 24.
5. Order Error: a constraint is violated.

A constraint is judged whenever all its actions were carried out, whatever the outcome. An order
holds iff every call of the first action comes before every call of the second. In a base case the
turns of the agent count: calls of one turn are simultaneous, so there is no order between them
(`CheckRules.log_order` takes the places in the log instead, as the paper does).
In an extended case the calls count in the order of the log, also within a turn, because the agent
says itself when each starts and overlaps are Parameter Errors already; without Parameter Errors,
order of calls and order of times are the same. A time limit holds iff every call keeps it.
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
    Constraint,
    OrderRule,
    Span,
    TimeLimit,
    TimeRule,
    actions,
    clock,
    holds,
)
from agenteval.records import Record

Outcome = Literal[
    "pass", "timeout", "act_error", "action_lost", "parameter_error", "order_error"
]  # errors in order of precedence: the first that applies is the outcome
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_SLIPS = {
    "unknown_tool": "there is no such tool",
    "bad_arguments": "its arguments were refused",
    "malformed": "it could not be read as a call",
}


class CheckRules(Record):
    """How a log is read where arXiv 2404.17833 leaves it open.

    `strict`: any call that could not be carried out makes the outcome an Act Error, and the whole
    log is graded as one, not only what followed the last restart. `log_order`: the position of an
    action is its place in the log, as there, also among calls that were made at once.
    """

    strict: bool = False
    log_order: bool = False


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


class PlanStep(Record):
    """One step of a plan; `start` is an hour, None in a base case."""

    tool: str
    start: int | None = None


class Verdict(Record):
    """The outcome and all errors, including those that did not decide the outcome.

    `sequence` holds the calls that were graded, in order.
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
        """Was the plan right?"""
        return self.outcome == "pass"


_DEFAULT = CheckRules()


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that was carried out; `number` is its place in the log from 1."""

    number: int
    action: int
    place: int  # calls at the same place are simultaneous
    hours: Span | None


def check(case: Case, log: AgentLog, rules: CheckRules = _DEFAULT) -> Verdict:
    """Return the verdict on what the agent did. Raises nothing for any log."""
    calls: list[_Call] = []
    slips: list[Slip] = []
    graded_slips, attempts = 0, 1  # slips of the attempt that is graded
    for number, event in enumerate(log.events, start=1):
        if case.durations is not None and event.status == "ok" and event.name == RESTART:
            attempts += 1
            if not rules.strict:
                calls, graded_slips = [], 0
            continue
        read = _call(case, event, number, number if rules.log_order else event.turn)
        if isinstance(read, _Call):
            calls.append(read)
        else:
            slips.append(Slip(call=number, name=event.name, why=read))
            graded_slips += 1
    by_action = [[c for c in calls if c.action == i] for i in range(case.n)]
    violated = tuple(_violations(case, by_action))
    errors = tuple(_parameter_errors(case, calls))
    lost = tuple(a.tool for a, own in zip(case.actions, by_action, strict=True) if not own)
    possible: tuple[tuple[Outcome, object], ...] = (
        ("timeout", log.ending != "finished"),
        ("act_error", slips if rules.strict else lost and graded_slips),
        ("action_lost", lost),
        ("parameter_error", errors),
        ("order_error", violated),
    )
    outcome = next((name for name, applies in possible if applies), "pass")
    return Verdict(
        outcome=outcome,
        sequence=tuple(_step(case, c.action, c.hours and c.hours[0]) for c in calls),
        violated=violated,
        lost=lost,
        repeated=tuple(
            a.tool for a, own in zip(case.actions, by_action, strict=True) if len(own) > 1
        ),
        slips=tuple(slips),
        parameter_errors=errors,
        attempts=attempts,
    )


def _call(case: Case, event: ToolEvent, number: int, place: int) -> _Call | str:
    """The call, or why it was none; `place` is where it stands in a base case."""
    if event.status != "ok":
        return _SLIPS[event.status]
    action = case.index.get(event.name)
    if action is None:
        return _SLIPS["unknown_tool"]
    if case.hours is None:
        return _Call(number, action, place, None)
    start = _start(event)
    if start is None:
        return "it has no start hour"
    return _Call(number, action, number, (start, start + case.hours[action]))


def _start(event: ToolEvent) -> int | None:
    """The start hour; JSON knows no difference between 10 and 10.0."""
    given = event.arguments.get(START) if isinstance(event.arguments, dict) else None
    if isinstance(given, float) and given.is_integer():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _violations(case: Case, by_action: list[list[_Call]]) -> list[Violation]:
    """All violated constraints whose actions were all carried out, by direct evaluation."""
    places, hours = [(0, 0)] * case.n, [(0, 0)] * case.n  # from the first call until the last
    for i, calls in enumerate(by_action):
        if calls:
            places[i] = min(c.place for c in calls), max(c.place for c in calls) + 1
            if case.hours is not None:
                spans = [c.hours for c in calls if c.hours]
                hours[i] = min(s for s, _ in spans), max(e for _, e in spans)
    violations = []
    for number, item in enumerate(case.stated):
        spans = places if isinstance(item.constraint, Before) else hours
        called = all(by_action[i] for i in actions(item.constraint))
        if called and not holds(item.constraint, spans):
            why = _why(case, item.constraint, by_action)
            violations.append(Violation(constraint=number, rule=case.constraints[number], why=why))
    return violations


def _why(case: Case, constraint: Constraint, by_action: list[list[_Call]]) -> str:
    if isinstance(constraint, TimeLimit):
        return _why_time(case, constraint, by_action[constraint.action])
    first, second = (f"'{case.actions[i].tool}'" for i in actions(constraint))
    last = max(by_action[constraint.first], key=lambda c: c.place)
    early = min(by_action[constraint.second], key=lambda c: c.place)
    if last.place == early.place:
        return (
            f"{first} and {second} were called in the same turn (calls {last.number} and "
            f"{early.number}), but {first} must be over before {second} starts"
        )
    return (
        f"{first} was called as call {last.number}, but {second}, which must come later, as call "
        f"{early.number}"
    )


def _why_time(case: Case, limit: TimeLimit, calls: list[_Call]) -> str:
    tool, spans = case.actions[limit.action].tool, [c.hours for c in calls if c.hours]
    if limit.side == "before":
        end = max(end for _, end in spans)
        return f"'{tool}' ended at {clock(end)}, but must end by {clock(limit.hour)}"
    start = min(start for start, _ in spans)
    return f"'{tool}' started at {clock(start)}, but must not start before {clock(limit.hour)}"


def _parameter_errors(case: Case, calls: Sequence[_Call]) -> list[ParameterError]:
    """Starts outside of what was possible: one at a time, all within the day."""
    errors, now = [], 0
    for call in calls:
        if call.hours is None:
            continue
        start, end = call.hours
        latest = DAY - (end - start)
        if not now <= start <= latest:
            tool = case.actions[call.action].tool
            errors.append(
                ParameterError(
                    call=call.number, tool=tool, given=start, earliest=now, latest=latest
                )
            )
        now = max(now, end)
    return errors


def _step(case: Case, action: int, start: int | None = None) -> PlanStep:
    return PlanStep(tool=case.actions[action].tool, start=start)
