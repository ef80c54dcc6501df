"""Goals achieved of all goals of a session, by a judge.

Task progress and success rate of arXiv 2406.14884: progress = achieved / total. Success needs
every goal achieved and the judge's overall yes: of two statements the lesser counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from agenteval.errors import ReplyError
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.records import FailureStatus, Message, Record, Usage, canonical_json
from agenteval.stats import Interval, bootstrap_mean
from agenteval.stats.bootstrap import Clusters
from agenteval.workflows.asked_judge import (
    Form,
    JudgeSampling,
    ask_judge,
    failure_of,
    number_of,
    object_schema,
    reason_of,
    yes_or_no,
)
from agenteval.workflows.rates import Resampling


class GoalVerdict(Record):
    """Verdict on one goal. `quoted` is whether the evidence occurs in the conversation."""

    goal: str
    achieved: bool
    evidence: str = ""
    reason: str = ""
    quoted: bool = False


class GoalsVerdict(Record):
    """The judge's verdict on a session. `said` is its overall answer."""

    goals: tuple[GoalVerdict, ...] = ()
    achieved: int = Field(ge=0)
    total: int = Field(ge=0)
    said: bool
    usage: Usage = Usage()

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.achieved > self.total:
            raise ValueError(f"{self.achieved} of {self.total} goals cannot be achieved")
        return self

    @property
    def progress(self) -> float | None:
        """Goals achieved / goals; None without goals."""
        return self.achieved / self.total if self.total else None

    @property
    def success(self) -> bool | None:
        """Whether all goals are achieved and the judge agrees overall, or None without goals."""
        return self.said and self.achieved == self.total if self.total else None

    @property
    def unquoted(self) -> int:
        """Goals called achieved whose evidence is not in the conversation."""
        return sum(goal.achieved and not goal.quoted for goal in self.goals)


class GoalsFailure(Record):
    """A missing verdict with its reason."""

    status: FailureStatus
    message: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session to judge. `goals` are the user's, one text each, or one text of `wanted` from
    which the judge makes the list itself. `workflow` is the procedure as text."""

    dialogue: str
    workflow: str = ""
    goals: tuple[str, ...] = ()
    wanted: str = ""


class SessionJudge:
    """Judges whole sessions by a model."""

    def __init__(self, client: Client, options: JudgeSampling | None = None) -> None:
        self.client = client
        self.options = options or JudgeSampling(max_tokens=2048)

    async def judge(self, session: SessionText, repeat: int = 0) -> GoalsVerdict | GoalsFailure:
        """Return the verdict, or why there is none. Raises Unauthorized for a refused key."""
        numbered = [f"{i}. {goal}" for i, goal in enumerate(session.goals, 1)]
        form = Form(
            "session_judge", _schema(bool(numbered)), lambda text: read_goals(text, session)
        )
        try:
            answer = await ask_judge(
                self.client,
                form,
                self.options,
                repeat,
                listed=bool(numbered),
                goals="\n".join(numbered) or session.wanted,
                workflow=session.workflow,
                dialogue=session.dialogue,
            )
        except Exception as error:  # noqa: BLE001  becomes a failure that says what it is
            return GoalsFailure(**asdict(failure_of(error)))
        verdict: GoalsVerdict = answer.value
        return verdict.model_copy(update={"usage": answer.usage})


def read_goals(text: str, session: SessionText) -> GoalsVerdict:
    """Return the verdicts of a reply. Raises ReplyError if one is missing, double or unreadable."""
    members = parse_reply(
        text, lambda value: isinstance(value, dict) and isinstance(value.get("goals"), list)
    ).value
    rows = members["goals"]
    if not all(isinstance(row, dict) for row in rows) or not rows:
        raise ReplyError("goals must be a list with one object for each goal")
    names = _names(rows, session)
    success = yes_or_no(members.get("success"), "success")
    body = _squeezed(session.dialogue)
    ordered = sorted(zip(names, rows, strict=True), key=lambda pair: pair[0][0])
    goals = tuple(_goal(name, row, body) for (_, name), row in ordered)
    return GoalsVerdict(
        goals=goals, achieved=sum(g.achieved for g in goals), total=len(goals), said=success
    )


def dialogue_text(messages: Sequence[Message]) -> str:
    """Return a conversation as the judge reads it: who speaks, calls with arguments, results.

    Further lines of what is said are indented, so that a message cannot imitate "assistant calls
    ..." or a tool's result.
    """
    lines = []
    for message in messages:
        if message.content.strip():
            content = "\n    ".join(message.content.strip().splitlines())
            lines.append(f"{message.role}: {content}")
        lines += [
            f"{message.role} calls {call.name}: {canonical_json(call.arguments)}"
            for call in message.tool_calls
        ]
    return "\n".join(lines)


@dataclass(frozen=True)
class GoalsTable:
    """Success rate and mean progress over sessions with a verdict; `failures` by status.

    `without_goals` counts verdicts of sessions in which the user wanted nothing: in no mean.
    """

    sessions: int
    success: Interval
    progress: Interval
    failures: dict[str, int]
    without_goals: int
    unquoted: int


def goals_table(
    verdicts: Sequence[GoalsVerdict | GoalsFailure],
    cases: Clusters | None = None,
    how: Resampling | None = None,
) -> GoalsTable:
    """Return means over sessions; intervals resample `cases` (one label per verdict, default:
    each)."""
    how = how or Resampling()
    graded = [(i, v) for i, v in enumerate(verdicts) if isinstance(v, GoalsVerdict) and v.total]
    labels = None if cases is None else [cases[i] for i, _ in graded]
    success = [float(bool(v.success)) for _, v in graded]
    progress = [v.achieved / v.total for _, v in graded]
    failures: Counter[str] = Counter(v.status for v in verdicts if isinstance(v, GoalsFailure))
    return GoalsTable(
        sessions=len(verdicts),
        success=bootstrap_mean(success, labels, how=how.bootstrap()),
        progress=bootstrap_mean(progress, labels, how=how.bootstrap()),
        failures=dict(failures),
        without_goals=len(verdicts) - len(graded) - failures.total(),
        unquoted=sum(v.unquoted for _, v in graded),
    )


def _schema(listed: bool) -> dict[str, Any]:
    first = {"number": {"type": "integer"}} if listed else {"goal": {"type": "string"}}
    texts = {"evidence": {"type": "string"}, "reason": {"type": "string"}}
    row = object_schema({**first, **texts, "achieved": {"type": "boolean"}})
    goals = {"type": "array", "items": row, "minItems": 1}
    return object_schema({"goals": goals, "success": {"type": "boolean"}})


def _names(rows: Sequence[dict[str, Any]], session: SessionText) -> list[tuple[int, str]]:
    """Return (place, text) of the goal of each row."""
    if not session.goals:
        texts = [reason_of(row, "goal") for row in rows]
        if len({_squeezed(text) for text in texts}) < len(texts):
            raise ReplyError("a goal stands twice; list each once")
        return list(enumerate(texts))
    numbers = [number for row in rows if (number := number_of(row.get("number"))) is not None]
    total = len(session.goals)
    if len(numbers) < len(rows) or sorted(numbers) != list(range(1, total + 1)):
        raise ReplyError(f"one verdict for each of the goals 1 to {total} is needed")
    return [(int(n), session.goals[int(n) - 1]) for n in numbers]


def _goal(name: str, row: dict[str, Any], dialogue: str) -> GoalVerdict:
    texts = {key: row.get(key) for key in ("evidence", "reason")}
    short = {k: t.strip()[:2000] if isinstance(t, str) else "" for k, t in texts.items()}
    quote = _squeezed(short["evidence"])
    achieved = yes_or_no(row.get("achieved"), "achieved")
    quoted = len(quote) >= 3 and quote in dialogue
    return GoalVerdict(goal=name, achieved=achieved, quoted=quoted, **short)


def _squeezed(text: str) -> str:
    """Return the text without blanks, quotation marks and case, to find quotations in it."""
    return re.sub(r"[\s\"'`´‘’“”«»]+", "", text).casefold()
