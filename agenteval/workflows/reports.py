"""Sessions and single turns as a report: tables, a row for each trial, the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.records import Record, Run
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.workflows.results import SessionResult, TurnResult, flow_flags, flow_signs
from agenteval.workflows.session import SessionLog
from agenteval.workflows.tables import result_tables

# Fields of a verdict that are in a row of an export.
_OF_SESSION = (
    "success decided_by demand progress right gold generated unjudged sequence conforms fitness "
    "cause"
)
_OF_TURN = "form gold_call call name_right gold_parameters given_parameters node_right"


@dataclass(frozen=True, kw_only=True)
class WorkflowReport(Report):
    """Rates by agent and format of the procedure, with the trials behind them."""

    sessions: tuple[SessionResult, ...] = ()
    turns: tuple[TurnResult, ...] = ()

    @property
    def trials(self) -> tuple[SessionResult | TurnResult, ...]:
        """Sessions, then turns."""
        return (*self.sessions, *self.turns)

    @property
    def failures(self) -> tuple[SessionResult | TurnResult, ...]:
        """Trials without a result; they are excluded from rates."""
        return tuple(t for t in self.trials if t.failure is not None)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each trial: its case, status and verdict. Fields of the other level are
        None."""
        rows = [_row(trial) for trial in self.trials]
        columns = dict.fromkeys(key for row in rows for key in row)
        return [{key: row.get(key) for key in columns} for row in rows]

    def runs(self) -> list[Run]:
        """Return the completed sessions as runs for `quantify`: the goals as input, the
        conversation with its calls, and success from the verdict."""
        return [
            Run(
                id=f"{result.case.id}/{result.system}/{result.trial}".replace(" · ", "/"),
                task=result.case.role,
                system=result.system,
                messages=result.log.messages,
                input="; ".join(result.case.goals) or result.case.task,
                success=None if result.verdict is None else result.verdict.success,
            )
            for result in self.sessions
            if isinstance(result.log, SessionLog)
        ]

    def page(self, most_sessions: int = 100) -> str:
        """Return the results as one HTML page with details of at most `most_sessions` sessions."""
        from agenteval.workflows.page import workflows_page

        return workflows_page(self, most_sessions)


def trials_report(
    sessions: Sequence[SessionResult], turns: Sequence[TurnResult], notes: Sequence[str]
) -> WorkflowReport:
    """Return the report of these trials."""
    every: list[SessionResult | TurnResult] = [*sessions, *turns]
    agents = sorted({r.agent for r in every})
    counts = [plural(len(of), word) for of, word in ((sessions, "session"), (turns, "turn")) if of]
    who = ", ".join(agents[:3]) + (f" and {len(agents) - 3} more" if len(agents) > 3 else "")
    flagged = flow_flags(sessions, turns).line
    return WorkflowReport(
        title=f"{who}: {' and '.join(counts)}" if agents else "no trial has been run",
        tables=result_tables(sessions, turns),
        notes=(*notes, *([flagged] if flagged else [])),
        data={"trials": [_trial(trial) for trial in every]},
        sessions=tuple(sessions),
        turns=tuple(turns),
    )


def _about(trial: SessionResult | TurnResult) -> dict[str, Any]:
    case = trial.case
    return {
        "level": case.level,
        "case": case.id,
        "task": case.task,
        "domain": case.domain,
        "role": case.role,
        "scenarios": list(case.scenarios),
        "agent": trial.agent,
        "format": trial.format,
        "system": trial.system,
        "settings": trial.settings,
        "trial": trial.trial,
        "status": trial.failure.status if trial.failure else "done",
    }


def _trial(trial: SessionResult | TurnResult) -> dict[str, Any]:
    """Return everything about a trial as JSON values."""

    def dumped(record: Record | None) -> Any:
        # Replace lone surrogates in texts of the agent.
        return None if record is None else json.loads(record.model_dump_json())

    row, signs = _about(trial), flow_signs(trial)
    if isinstance(trial, SessionResult):
        log, row["seconds"] = dumped(trial.log), trial.seconds
    else:
        log, row["grade"] = dumped(trial.prediction), dumped(trial.grade)
        row["failures"] = list(trial.failures)
    row["signs"] = None if signs is None else list(signs)
    return {**row, "log": log, "verdict": dumped(trial.verdict)}


def _row(trial: SessionResult | TurnResult) -> dict[str, Any]:
    """Return one row of an export."""
    row = _about(trial)
    del row["settings"]
    row["scenarios"] = "+".join(row["scenarios"])
    names = _OF_SESSION if isinstance(trial, SessionResult) else _OF_TURN
    row |= {name: getattr(trial.verdict, name, None) for name in names.split()}
    if isinstance(trial, SessionResult):
        return row | {"seconds": trial.seconds, "reward": getattr(trial.log, "reward", None)}
    return row | {"grade": None if trial.grade is None else trial.grade.score}
