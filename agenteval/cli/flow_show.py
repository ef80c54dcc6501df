"""What the flow commands print and how they end: tables, JSON, gates, exit codes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import err, out, print_json, warn
from agenteval.cli.ending import say_interrupted, why_stopped

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.counted import Counted
    from agenteval.evaluators.workflows.results import SessionResult, TurnResult
    from agenteval.experiment import Ended
    from agenteval.records import Record


def show(
    sessions: Sequence[SessionResult],
    turns: Sequence[TurnResult],
    *,
    as_json: bool,
    brief: bool = True,
    counted: Counted | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """The tables of both levels and the runs that seem to talk to the judge, or every trial as
    JSON with its signs and the fields `more`. `counted` are their tallies, where somebody has
    them already."""
    from agenteval.cli.flags import say
    from agenteval.cli.plan_table import print_table
    from agenteval.report.flows_signs import flow_flags
    from agenteval.report.flows_tables import session_sheets, turn_sheets
    from agenteval.report.sheet import plain_table

    if as_json:
        rows = [*map(_row, sessions), *map(_row, turns)]
        print_json([{**row, **(more or {})} for row in rows])
        return
    if not (sessions or turns):
        warn("no trial has been run")
    of_sessions = session_sheets(sessions, brief=brief, counted=counted)
    for sheet in (*of_sessions, *turn_sheets(turns, brief=brief, counted=counted)):
        print_table(plain_table(sheet))
    say(flow_flags(sessions, turns))


def _row(result: SessionResult | TurnResult) -> dict[str, Any]:
    from agenteval.evaluators.workflows.results import SessionResult
    from agenteval.report.flows_signs import flow_signs

    case, verdict = result.case, result.verdict
    row: dict[str, Any] = {
        "level": case.level, "case": case.id, "task": case.task, "domain": case.domain,
        "role": case.role, "scenarios": list(case.scenarios), "agent": result.agent,
        "format": result.format, "system": result.system, "settings": result.settings,
        "trial": result.trial,
    }  # fmt: skip
    did: Record
    if isinstance(result, SessionResult):
        did, row["seconds"] = result.log, result.seconds
    else:
        did, row["grade"] = result.prediction, _dumped(result.grade)
        row["failures"] = list(result.failures)
    signs = flow_signs(result)
    row["signs"] = None if signs is None else list(signs)
    return {**row, "status": getattr(did, "status", "done"), "log": _dumped(did),
            "verdict": _dumped(verdict)}  # fmt: skip


def _dumped(record: Record | None) -> Any:
    """As JSON can hold it: what is half a character in an agent's words becomes a mark."""
    return None if record is None else json.loads(record.model_dump_json())


def say_judges(results: Sequence[SessionResult | TurnResult]) -> None:
    """Say where judges failed: what they would have decided is open."""
    from agenteval.evaluators.workflows.results import SessionResult

    failed: Counter[str] = Counter()
    for r in results:
        found = (r.verdict.failures if r.verdict else ()) if isinstance(r, SessionResult) else (
            r.failures
        )  # fmt: skip
        failed.update(set(found))
    if failed:
        told = ", ".join(f"{status} in {n}" for status, n in sorted(failed.items()))
        warn(f"a judge failed ({told} of {len(results)} trials); where its endpoint failed, the "
             "same command asks again")  # fmt: skip


def ended_code(ended: Ended | None) -> int:
    """Exit code of a run that was interrupted (None) or stopped early; 0 otherwise."""
    if ended is None:
        return say_interrupted()
    if ended.stopped:
        warn(why_stopped(ended, "not run"))
        return 3
    return 0


@dataclass(frozen=True, slots=True)
class Gate:
    """What a command demands: a mean of at least `least`, of `what`, and few without verdict."""

    what: str
    least: float | None
    max_unscored: float

    def code(self, rates: Sequence[float | None], *, as_json: bool) -> int:
        """Exit code for these rates; None among them is one without a verdict."""
        known = [rate for rate in rates if rate is not None]
        lost = len(rates) - len(known)
        rate = sum(known) / len(known) if known else None
        if self.least is not None and rate is not None:
            (err() if as_json else out()).print(
                f"gate at least {self.least:g}: {rate:.3f} of {len(known)} {self.what}, "
                f"{lost} without verdict"
            )
        if rates and lost / len(rates) > self.max_unscored:
            warn(
                f"{lost} of {len(rates)} {self.what} have no verdict, more than --max-unscored "
                "allows (without --judge, what only a judge can decide stays undecided)"
            )
            return 3
        if self.least is None:
            return 0
        if rate is None:
            warn(f"none of the {self.what} has a verdict: the gate cannot be decided")
            return 4
        return 0 if rate >= self.least else 1
