"""Measures of a session and of a predicted turn."""

from __future__ import annotations

from agenteval.agents import AgentFailure
from agenteval.engine.measures import (
    UNDECIDED,
    failed,
    level,
    levels,
    not_applicable,
    number,
    place,
)
from agenteval.records import Criterion, Result
from agenteval.records.trial import Trial
from agenteval.workflows.results import SessionVerdict, TurnJudged
from agenteval.workflows.session import SessionFailure

SUCCESS = levels("success", "Whether the session reached what the user wanted.", "no", "yes")
PROGRESS = number("progress", "Share of the goals that were achieved.")
CONFORMS = levels("conforms", "Whether the calls keep to the procedure's chart.", "no", "yes")
FITNESS = number("fitness", "How far the calls can be replayed on the procedure's chart.")
SEQUENCE = number("sequence", "F1 of the order of tool names with the gold calls.")
SESSION: tuple[Criterion, ...] = (SUCCESS, PROGRESS, CONFORMS, FITNESS, SEQUENCE)

CALL = levels("call", "Whether a due call was right: tool and all parameters.", "wrong", "right")
TOOL = levels("tool", "Whether a due call names the right tool.", "wrong", "right")
PARAMETERS = number(
    "parameters", "Share of the gold parameters that a due call to the right tool states right."
)
RESPONSE = number("response", "A judge's grade of a due reply.", 0, 10)
TURN: tuple[Criterion, ...] = (CALL, TOOL, PARAMETERS)


def of_failure(trial: Trial, failure: SessionFailure | AgentFailure) -> tuple[Result, ...]:
    """Return the results of a trial that brought no session or prediction."""
    measures = SESSION if isinstance(failure, SessionFailure) else TURN
    return failed(trial, measures, failure.status, failure.message)


def of_session(trial: Trial, verdict: SessionVerdict) -> tuple[Result, ...]:
    """Return the results of a session that was judged."""
    status = next(iter(verdict.failures), UNDECIDED)
    spoiled = verdict.decided_by == "simulator"
    unknown = "a simulator made a mistake" if spoiled else "nobody could decide it"
    success, progress = failed(trial, (SUCCESS, PROGRESS), status, unknown)
    no_walk = "no call" if verdict.charted else "no chart"
    return (
        _result(trial, SUCCESS, verdict.success, success),
        _result(trial, PROGRESS, verdict.progress, progress),
        _result(trial, CONFORMS, verdict.conforms, not_applicable(trial, CONFORMS, no_walk)),
        _result(trial, FITNESS, verdict.fitness, not_applicable(trial, FITNESS, no_walk)),
        _result(trial, SEQUENCE, verdict.sequence, not_applicable(trial, SEQUENCE, "no call")),
    )


def _result(
    trial: Trial, measure: Criterion, value: bool | float | None, missing: Result
) -> Result:
    if value is None:
        return missing
    return level(trial, measure, value) if isinstance(value, bool) else place(trial, measure, value)


def of_turn(trial: Trial, judged: TurnJudged) -> tuple[Result, ...]:
    """Return the results of a predicted turn; `response` only where a judge was asked for one."""
    turn = judged.turn
    grades: tuple[Result, ...] = ()
    if (grade := judged.grade) is not None:
        missing = failed(trial, (RESPONSE,), grade.status or UNDECIDED, grade.message)
        grades = missing if grade.score is None else (place(trial, RESPONSE, grade.score),)
    if not turn.gold_call:
        return (*(not_applicable(trial, measure, "a reply was due") for measure in TURN), *grades)
    status = next(iter(judged.failures), UNDECIDED)
    # What is stated to a wrong tool is not credited.
    stated = [parameter.verdict for parameter in turn.parameters if turn.name_right]
    undecided = failed(trial, (CALL, PARAMETERS), status, "nobody has compared the texts")
    parameters: Result = not_applicable(trial, PARAMETERS, "the gold call has none")
    if "unjudged" in stated:
        parameters = undecided[1]
    elif turn.gold_parameters:
        parameters = place(trial, PARAMETERS, stated.count("equal") / turn.gold_parameters)
    return (
        undecided[0] if turn.call == "undecided" else level(trial, CALL, turn.call == "right"),
        level(trial, TOOL, turn.name_right is True),
        parameters,
        *grades,
    )
