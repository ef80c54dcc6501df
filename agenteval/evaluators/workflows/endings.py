"""How the sessions of a system ended, and calls that could not be carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agenteval.agents.protocol import CallStatus
from agenteval.evaluators.workflows.results import SessionResult
from agenteval.evaluators.workflows.session import SessionEnd, SessionLog
from agenteval.evaluators.workflows.tallies import by_system


@dataclass(frozen=True, slots=True)
class Endings:
    """Of one system: `sessions` with a log, `ended` how many of them ended in which way; `calls`
    made in them, `statuses` how many of these had which status ("ok" among them)."""

    system: str
    sessions: int
    ended: Counter[SessionEnd]
    calls: int
    statuses: Counter[CallStatus]

    @property
    def cut_short(self) -> int:
        """Sessions that ended otherwise than by the user's goodbye."""
        return self.sessions - self.ended["user"]

    @property
    def refused(self) -> int:
        """Calls that could not be carried out."""
        return self.calls - self.statuses["ok"]


def endings(results: Iterable[SessionResult]) -> list[Endings]:
    """One for each system with a session. Failures are left out: what broke them is no ending."""
    found = []
    for system, own in by_system(results).items():
        logs = [r.log for r in own if isinstance(r.log, SessionLog)]
        calls = [call.status for log in logs for call in log.calls]
        if logs:
            ended = Counter(log.ended for log in logs)
            found.append(Endings(system, len(logs), ended, len(calls), Counter(calls)))
    return found
