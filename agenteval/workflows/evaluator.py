"""Trials of an agent at workflows: whole sessions, and single turns of recorded sessions.

Missing attempts are run and stored with their verdicts. If rules or judges have changed, a verdict
is made again from the stored log, without running the agent.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.agents import AgentFailure
from agenteval.agents.spec import uncounted
from agenteval.engine import Outcome, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.engine.measures import (
    UNDECIDED,
    failed,
    level,
    levels,
    not_applicable,
    number,
    place,
)
from agenteval.errors import BudgetExceeded
from agenteval.models.dry_run import is_dry_run
from agenteval.records import Criterion, FailureStatus, Result, Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.store import Store, Trials
from agenteval.workflows.cases import SessionCase
from agenteval.workflows.results import EVALUATORS, Level, SessionVerdict, TurnJudged
from agenteval.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.workflows.variants import AgentVariant, Case
from agenteval.workflows.verdicts import Verdicts

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
    """Return the results of a trial without a session or prediction."""
    measures = SESSION if isinstance(failure, SessionFailure) else TURN
    return failed(trial, measures, failure.status, failure.message)


def of_session(trial: Trial, verdict: SessionVerdict) -> tuple[Result, ...]:
    """Return the results of a session that was judged."""
    status = next(iter(verdict.failures), UNDECIDED)
    spoiled = verdict.decided_by == "simulator"
    unknown = "a simulator made a mistake" if spoiled else "no rule or judge could decide it"
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
    """Return the results of a predicted turn; `response` only if a judge graded it."""
    turn = judged.turn
    grades: tuple[Result, ...] = ()
    if (grade := judged.grade) is not None:
        missing = failed(trial, (RESPONSE,), grade.status or UNDECIDED, grade.message)
        grades = missing if grade.score is None else (place(trial, RESPONSE, grade.score),)
    if not turn.gold_call:
        return (*(not_applicable(trial, measure, "a reply was due") for measure in TURN), *grades)
    status = next(iter(judged.failures), UNDECIDED)
    # Parameters of a wrong tool are not credited.
    stated = [parameter.verdict for parameter in turn.parameters if turn.name_right]
    undecided = failed(trial, (CALL, PARAMETERS), status, "the texts have not been compared")
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


_MESSAGE = 500
Log = SessionLog | SessionFailure | Prediction | AgentFailure
# Runs the attempt with this number at a case.
Attempt = Callable[[Any, AgentVariant, int], Awaitable[Log]]


@dataclass(frozen=True)
class WorkflowEvaluator(AttemptEvaluator[Case]):
    """Evaluates an agent in sessions, or at single turns of recorded ones: `attempt` runs an
    attempt and `verdicts` judges it.

    `bounds` returns how many requests a case, or the verdict on a stored attempt, can take. `only`
    lists the existing attempts of recorded sessions as (case key, number); None means all.
    """

    tables: Trials = field(kw_only=True)
    level: Level = field(kw_only=True)
    variant: AgentVariant = field(kw_only=True)
    attempt: Attempt = field(kw_only=True)
    verdicts: Verdicts = field(kw_only=True)
    bounds: Callable[[Case, Trial | None], Requests] = field(kw_only=True, default=lambda *_: {})
    only: Container[tuple[str, int]] | None = field(kw_only=True, default=None)

    @classmethod
    def of(
        cls, level: Level, variant: AgentVariant, cases: Iterable[Case], trials: int, **more: Any
    ) -> WorkflowEvaluator:
        """Return the evaluator of an agent at these cases; `more` are the other fields."""
        system = TrialSystem(key=variant.sha256, name=variant.name, parameters=variant.parameters)
        by_key = {case.key: case for case in cases}
        return cls(EVALUATORS[level], system, by_key, trials, level=level, variant=variant, **more)

    @property
    def noun(self) -> str:  # type: ignore[override]
        """Session or turn."""
        return self.level

    @property
    def measures(self) -> tuple[Criterion, ...]:  # type: ignore[override]
        """Measures of a session or a turn."""
        return SESSION if self.level == "session" else (*TURN, RESPONSE)

    @property
    def sends_by_client(self) -> bool:
        """Whether the agent runs on a model of this package."""
        return not uncounted(self.variant.system.parameters)

    def stored_case(self, key: str, case: Case) -> TrialCase:
        """Return the case for the store. Fields that its key does not cover, such as the name of a
        domain, are overwritten by the last run."""
        return TrialCase(
            key=key,
            id=case.info.id,
            body=case.info.model_dump(mode="json"),
            unit=f"{case.info.task} {case.info.version}",
        )

    def units(self) -> Iterator[Unit[Case]]:
        """Yield every case, `trials` times, or the recorded attempts."""
        for unit in super().units():
            if self.only is None or (unit.key, unit.repeat) in self.only:
                yield unit

    def is_current(self, unit: Unit[Case], check_key: str | None) -> bool:
        """Return whether the stored verdict is by these judges and rules."""
        return check_key == self.verdicts.judges.key(unit.content)

    def requests(self, unit: Unit[Case]) -> Requests:
        """Return the requests of an attempt and its verdict, or of the missing verdict alone."""
        place = self.evaluator, self.system.key, unit.key, unit.repeat
        return self.bounds(unit.content, self.tables.find_done(*place) if unit.stored else None)

    def failure_log(self, case: Case, message: str) -> SessionFailure | AgentFailure:
        """Return that of a session or a turn."""
        kind = SessionFailure if self.level == "session" else AgentFailure
        return kind(status="error:infrastructure", message=message)

    def __getstate__(self) -> dict[str, Any]:
        """Also leave out what only the dry run needs."""
        return {**super().__getstate__(), "bounds": None, "only": None}

    async def evaluate(self, unit: Unit[Case]) -> Outcome:
        """Run the attempt, or use the stored one, and judge it. Raises Unauthorized, InputError and
        StoreError."""
        place = self.evaluator, self.system.key, unit.key, unit.repeat
        stored = await self.tables.finished(*place) if unit.stored else None
        if stored is not None:
            # Its usage was counted when it was made.
            return await self._judged(unit, stored.model_copy(update={"usage": Usage()}))
        started = time.time()
        log: Log
        try:
            log = await self.attempt(unit.content, self.variant, unit.repeat)
        except BudgetExceeded as error:
            usage = error.spent if isinstance(error.spent, Usage) else Usage()
            log = self.failure_log(unit.content, str(error)[:_MESSAGE])
            log = log.model_copy(update={"status": "error:budget", "usage": usage})
        failure = log if isinstance(log, SessionFailure | AgentFailure) else None
        simulators = log.simulator_usage if isinstance(log, SessionLog | SessionFailure) else None
        trial = Trial(
            evaluator=self.evaluator,
            system_key=self.system.key,
            case_key=unit.key,
            trial=unit.repeat,
            case_id=unit.content.info.id,
            status="done" if failure is None else failure.status,
            log=log.model_dump(mode="json"),
            started=started,
            ended=time.time(),
            usage=log.usage + (simulators or Usage()),
        )
        if failure is not None:
            return Outcome(of_failure(trial, failure), trial)
        if is_dry_run():
            return Outcome((), trial)
        # The attempt is stored before it is judged: it must survive an interrupt or a refused key.
        await self.tables.save(trial)
        return await self._judged(unit, trial)

    async def _judged(self, unit: Unit[Case], trial: Trial) -> Outcome:
        """Return the trial with a new verdict, whose usage includes earlier ones on this log."""
        case = unit.content
        verdict: SessionVerdict | TurnJudged
        if isinstance(case, SessionCase):
            verdict = await self.verdicts.session(case, SessionLog.model_validate(trial.log))
        else:
            verdict = await self.verdicts.turn(case, Prediction.model_validate(trial.log))
        if (before := _judges_usage(trial)).requests:
            verdict = verdict.model_copy(update={"usage": before + verdict.usage})
        key = self.verdicts.judges.key(case, verdict.failures)
        judged = trial.judged(key, verdict.outcome, verdict.model_dump(mode="json"))
        results: tuple[Result, ...]
        if isinstance(verdict, SessionVerdict):
            results = of_session(judged, verdict)
        else:
            results = of_turn(judged, verdict)
        return Outcome(results, judged, verdict_only=True, failure=_broken(verdict))


def _broken(verdict: SessionVerdict | TurnJudged) -> tuple[FailureStatus, str] | None:
    """Return the status of a judge that failed because of the infrastructure; an exhausted budget
    comes first."""
    broken = sorted((f for f in verdict.failures if f in INFRASTRUCTURE), key="error:budget".__ne__)
    if not broken:
        return None
    judged: list[Any] = (
        [verdict.judge]
        if isinstance(verdict, SessionVerdict)
        else [verdict.grade, *verdict.turn.parameters]
    )
    words = [
        judgement.message for judgement in judged if getattr(judgement, "status", None) == broken[0]
    ]
    reason = "the cap on calls or cost is reached" if broken[0] == "error:budget" else broken[0]
    return broken[0], f"a judge failed: {next(filter(None, words), reason)}"


def _judges_usage(trial: Trial) -> Usage:
    """Return the usage of judges for the verdicts on a trial."""
    return Usage.model_validate((trial.verdict or {}).get("usage") or {})


def spent(store: Store, level: Level, systems: Sequence[str]) -> Usage:
    """Return the usage of these trials so far: agent, simulators and judges."""
    tables, name = Trials(store), EVALUATORS[level]
    total = sum((tables.usage(name, key) for key in systems), Usage())
    return sum((_judges_usage(t) for t in tables.trials(name, None, systems)), total)
