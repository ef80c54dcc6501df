"""Cases, verdicts and results of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, JsonValue

from agenteval.agents import AgentFailure
from agenteval.records import FailureStatus, Record, Usage
from agenteval.workflows.conformance import Cause, Deviation
from agenteval.workflows.response_judge import ResponseVerdict
from agenteval.workflows.scenario import Demand, Format
from agenteval.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.workflows.session_end import DecidedBy
from agenteval.workflows.session_judge import GoalsFailure, GoalsVerdict
from agenteval.workflows.turn_score import TurnVerdict

Level = Literal["turn", "session"]


class CaseInfo(Record):
    """A stored case, with what is needed to group and show it without the folder of its role.

    `id` is role/scenario/profile, or role/scenario/session:turn; `task` identifies one input in
    comparisons and intervals: the profile, or the recorded session. `version` is a hash (hex) of
    the role's definition of it: tasks with the same name but different versions are different.
    """

    level: Level
    id: str
    task: str
    role: str
    domain: str
    scenarios: tuple[str, ...]
    persona: str = ""
    goals: tuple[str, ...] = ()
    version: str = ""
    said: str = ""  # turn level: what was said or done just before
    gold: str = ""  # turn level: the gold call or reply, as text

    @property
    def cross(self) -> bool:
        """Needs several scenarios of its role."""
        return len(self.scenarios) > 1


class SessionVerdict(Record):
    """The verdict on one session.

    `success` is decided by the end of the session if the user did not end it (no), else by the
    final state (`demand` says what was asked of it), else by the judge; None when none of them can
    say. A session in which the
    agent met a simulator's mistake has none however it ended (`simulator`), nor progress and
    deviations. `progress` is the share of goals achieved. `right`, `gold`, `generated` and
    `unjudged` count calls (see `SessionCounts`), `sequence` is that of `order_f1`. `conforms` (None
    without any call) and `fitness` are against the chart alone, None where the procedure has none
    (not `charted`); `deviations` are against chart and gold, `cause` is the first one's, "other"
    for a failed session without any. `failures` are the statuses of judges that failed, `usage` is
    what judges took, for earlier verdicts on the same session too.
    """

    success: bool | None
    decided_by: DecidedBy | None
    demand: Demand = "state"
    progress: float | None = Field(default=None, ge=0, le=1)
    state_success: bool | None = None
    state_goals: tuple[bool, ...] = ()
    differences: tuple[str, ...] = ()
    judge: GoalsVerdict | GoalsFailure | None = None
    right: int = Field(ge=0)
    gold: int = Field(ge=0)
    generated: int = Field(ge=0)
    unjudged: int = Field(default=0, ge=0)
    sequence: float | None = Field(default=None, ge=0, le=1)
    charted: bool = True
    conforms: bool | None
    fitness: float | None = Field(default=None, ge=0, le=1)
    deviations: tuple[Deviation, ...] = ()
    cause: Cause | Literal["other"] | None = None
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    unchecked: int = Field(default=0, ge=0)
    failures: tuple[FailureStatus, ...] = ()
    usage: Usage = Usage()

    @property
    def outcome(self) -> str:
        """Outcome as stored with the trial."""
        return {True: "success", False: "failure", None: "undecided"}[self.success]


class TurnJudged(Record):
    """The verdict on one predicted turn; `grade` is that of a reply if a judge graded it.

    `outcome` of a due call is right, wrong, undecided, missed or unreadable, of a due reply
    replied, spurious (a call) or unreadable. `failures` and `usage` are as in SessionVerdict.
    """

    turn: TurnVerdict
    grade: ResponseVerdict | None = None
    failures: tuple[FailureStatus, ...] = ()
    usage: Usage = Usage()

    @property
    def outcome(self) -> str:
        """Outcome as stored with the trial."""
        if self.turn.form == "unreadable":
            return "unreadable"
        if self.turn.gold_call:
            return self.turn.call or "missed"
        return "spurious" if self.turn.form == "call" else "replied"


@dataclass(frozen=True, slots=True)
class TrialOfCase:
    """A trial of a case: `system` is the agent with its format, `agent` without it."""

    case: CaseInfo
    system: str
    agent: str
    format: Format
    settings: dict[str, JsonValue]
    trial: int


@dataclass(frozen=True, slots=True)
class SessionResult(TrialOfCase):
    """One stored session. `verdict` is None for a failure, and for a session that is not judged
    yet."""

    log: SessionLog | SessionFailure
    verdict: SessionVerdict | None
    seconds: float | None = None

    @property
    def failure(self) -> SessionFailure | None:
        """Reason for a missing session."""
        return self.log if isinstance(self.log, SessionFailure) else None


@dataclass(frozen=True, slots=True)
class TurnResult(TrialOfCase):
    """One stored prediction of a recorded turn, with its scores; `failures` are those of judges."""

    prediction: Prediction | AgentFailure
    verdict: TurnVerdict | None
    grade: ResponseVerdict | None = None
    failures: tuple[FailureStatus, ...] = ()

    @property
    def failure(self) -> AgentFailure | None:
        """Reason for a missing prediction."""
        return self.prediction if isinstance(self.prediction, AgentFailure) else None
