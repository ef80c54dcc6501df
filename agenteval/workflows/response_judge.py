"""Response score of arXiv 2406.14884, listing 2: a judge grades a reply from 0 to 10.

It compares with the gold reply under the workflow as text, whatever format the agent was given, so
that formats are compared under one judge. The reasons stand before the number. What is off the
scale or cannot be read is a failure with its status, never a number.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from agenteval.errors import ReplyError
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply
from agenteval.records import FailureStatus, Record, Usage
from agenteval.workflows.asked_judge import (
    Form,
    JudgeSampling,
    ask_judge,
    failure_of,
    number_of,
    object_schema,
    reason_of,
)

PARTS = ("correctness", "helpfulness", "humanness")
WORST, BEST = 0.0, 10.0
SCHEMA = object_schema(
    {**{part: {"type": "string"} for part in PARTS}, "score": {"type": "number"}}
)


class OffScale(ReplyError):
    """A number was given, but none from 0 to 10."""


class ResponseVerdict(Record):
    """A grade from 0 (worst) to 10 with the reasons for each part, or the `status` of a failure,
    which never has a score."""

    score: float | None = Field(default=None, ge=WORST, le=BEST)
    correctness: str = ""
    helpfulness: str = ""
    humanness: str = ""
    status: FailureStatus | None = None
    message: str = ""
    usage: Usage = Usage()

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.score is None) == (self.status is None):
            raise ValueError("a verdict has either a score or the status of a failure")
        return self


@dataclass(frozen=True, slots=True)
class ReplyToGrade:
    """A reply to grade. `workflow` is the procedure as text, `history` what was said before."""

    reply: str
    gold: str
    workflow: str
    history: str = ""


class ResponseJudge:
    """Grades replies by a model."""

    def __init__(self, client: Client, options: JudgeSampling | None = None) -> None:
        self.client = client
        self.options = options or JudgeSampling()

    async def grade(self, case: ReplyToGrade, repeat: int = 0) -> ResponseVerdict:
        """Return the grade, or why there is none. Raises Unauthorized for a refused key."""
        try:
            answer = await ask_judge(
                self.client,
                Form("response", SCHEMA, read_score),
                self.options,
                repeat,
                reply=case.reply,
                gold=case.gold,
                workflow=case.workflow,
                history=case.history,
            )
        except Exception as error:  # noqa: BLE001  becomes a failure that says what it is
            failure = asdict(failure_of(error))
            if isinstance(error, OffScale):
                failure["status"] = "unscored:off_scale"
            return ResponseVerdict(**failure)
        return ResponseVerdict(**answer.value, usage=answer.usage)


def read_score(text: str) -> dict[str, Any]:
    """Return the parts and the score of a reply.

    Raises OffScale for a number outside 0 to 10, ReplyError for a reply without a number or
    without a reason for each part.
    """
    members = parse_reply(text, lambda value: isinstance(value, dict) and "score" in value).value
    reasons: dict[str, Any] = {part: reason_of(members, part) for part in PARTS}
    score = number_of(members["score"])
    if score is None:
        raise ReplyError(f"score must be a number, not {members['score']!r:.40}")
    if not WORST <= score <= BEST:
        raise OffScale(f"score must lie from 0 to 10, not {score!r}")
    return reasons | {"score": score}
