"""Model-based judges of whether two values mean the same, of the goals of a session, and of
replies. A question that a judge fails to answer is a failure with a status, never a verdict.

Goals follow the task progress and success rate of arXiv 2406.14884: progress = achieved / total.
Success needs every goal achieved and the judge's overall yes: the lower statement counts. Grades
are the response score of its listing 2, from 0 to 10, with the reasons before the number. Both
judges read the workflow as text, whichever format the agent got, so that formats are compared under
one judge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, ReplyError, Unauthorized
from agenteval.models.asking import ParsedReply, ask
from agenteval.models.client import Client
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import FailureStatus, Message, Record, Usage, canonical_json, content_hash

_PARTS = ("correctness", "helpfulness", "humanness")
_WORST, _BEST = 0.0, 10.0
_PROBLEM, _MESSAGE, _REASON = 300, 500, 2000  # characters at most


class JudgeFailure(Record):
    """A missing verdict with its reason and usage."""

    status: FailureStatus
    message: str = ""
    usage: Usage = Usage()


def failure_of(error: Exception) -> JudgeFailure:
    """Return why a question has no answer. Re-raises Unauthorized, because every question would
    fail."""
    if isinstance(error, Unauthorized):
        raise error
    status, message = classify(error)
    spent = error.spent if isinstance(error, AgentevalError) else None
    return JudgeFailure(status=status, message=message[:_MESSAGE], usage=spent or Usage())


class ModelJudge:
    """Asks a model with the prompts `<name>_system`, `_user` and `_repair`; repairs at most once.

    A `temperature` of None leaves it to the endpoint.
    """

    name: ClassVar[str]
    max_tokens: ClassVar[int]

    def __init__(self, client: Client, temperature: float | None = 0.0, seed: int = 0) -> None:
        self.client = client
        self._parameters: dict[str, Any] = {"seed": seed, "max_tokens": self.max_tokens}
        if temperature is not None:
            self._parameters["temperature"] = temperature

    @classmethod
    def _prompts(cls) -> list[Prompt]:
        parts = ("system", "user", "repair")
        return [load_prompt("agenteval.workflows", f"{cls.name}_{part}") for part in parts]

    @classmethod
    def prompts_sha256(cls) -> str:
        """Return one hash (hex) over the prompts."""
        return content_hash([prompt.sha256 for prompt in cls._prompts()])

    async def _ask(
        self, schema: dict[str, Any], read: Callable[[str], Any], **values: Any
    ) -> ParsedReply[Any]:
        """Return the answer; `values` fill the prompts, which put texts between markers.

        Raises what `models.asking.ask` raises.
        """
        system, user, repair = self._prompts()
        request = Request(
            messages=(
                {"role": "system", "content": system.render(nonce=NONCE, **values)},
                {"role": "user", "content": user.render(**values)},
            ),
            schema=schema,
            parameters=self._parameters,
            role=f"flow:{self.name}",
        )
        return await ask(
            self.client, request, read, lambda problem: repair.render(problem=problem[:_PROBLEM])
        )


# ---- values --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """Two different texts, and their parameter."""

    tool: str
    parameter: str
    description: str
    gold: str
    given: str


class EqualityJudge(ModelJudge):
    """Decides whether two texts mean the same value. `Equality` keeps the answers."""

    name, max_tokens = "equal", 512

    async def same(self, question: ValueQuestion) -> ParsedReply[tuple[bool, str]]:
        """Return whether the two mean the same, and why. Raises what `models.asking.ask` raises."""
        schema = _object_schema({"reason": {"type": "string"}, "equal": {"type": "boolean"}})
        return await self._ask(
            schema,
            read_equal,
            tool=question.tool,
            parameter=question.parameter,
            description=question.description,
            gold=question.gold,
            given=question.given,
        )


def read_equal(text: str) -> tuple[bool, str]:
    """Return the verdict of a reply and its reason. Raises ReplyError without one."""
    members = parse_reply(text, lambda value: isinstance(value, dict) and "equal" in value).value
    return _yes_or_no(members["equal"], "equal"), _reason(members, "reason")


# ---- goals of a session --------------------------------------------------------------------------


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
        """Goals rated as achieved with evidence that is not in the conversation."""
        return sum(goal.achieved and not goal.quoted for goal in self.goals)


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session to judge. `goals` are the user's, one text each, or one text of `wanted` from
    which the judge makes the list itself. `workflow` is the procedure as text."""

    dialogue: str
    workflow: str = ""
    goals: tuple[str, ...] = ()
    wanted: str = ""


class SessionJudge(ModelJudge):
    """Judges whole sessions."""

    name, max_tokens = "session_judge", 2048

    async def judge(self, session: SessionText) -> GoalsVerdict | JudgeFailure:
        """Return the verdict or a failure. Raises Unauthorized for a refused key."""
        numbered = [f"{i}. {goal}" for i, goal in enumerate(session.goals, 1)]
        place = {"number": {"type": "integer"}} if numbered else {"goal": {"type": "string"}}
        texts = {"evidence": {"type": "string"}, "reason": {"type": "string"}}
        row = _object_schema({**place, **texts, "achieved": {"type": "boolean"}})
        goals = {"type": "array", "items": row, "minItems": 1}
        try:
            answer = await self._ask(
                _object_schema({"goals": goals, "success": {"type": "boolean"}}),
                lambda text: read_goals(text, session),
                listed=bool(numbered),
                goals="\n".join(numbered) or session.wanted,
                workflow=session.workflow,
                dialogue=session.dialogue,
            )
        except Exception as error:  # noqa: BLE001  recorded as a failure
            return failure_of(error)
        verdict: GoalsVerdict = answer.value
        return verdict.model_copy(update={"usage": answer.usage})


def read_goals(text: str, session: SessionText) -> GoalsVerdict:
    """Return the verdicts of a reply. Raises ReplyError if one is missing, repeated or invalid."""
    members = parse_reply(
        text, lambda value: isinstance(value, dict) and isinstance(value.get("goals"), list)
    ).value
    rows = members["goals"]
    if not all(isinstance(row, dict) for row in rows) or not rows:
        raise ReplyError("goals must be a list with one object for each goal")
    names = _names(rows, session)
    success = _yes_or_no(members.get("success"), "success")
    body = _squeezed(session.dialogue)
    ordered = sorted(zip(names, rows, strict=True), key=lambda pair: pair[0][0])
    goals = tuple(_goal(name, row, body) for (_, name), row in ordered)
    achieved = sum(goal.achieved for goal in goals)
    return GoalsVerdict(goals=goals, achieved=achieved, total=len(goals), said=success)


def dialogue_text(messages: Sequence[Message]) -> str:
    """Return a conversation for the judge, with speakers, calls with arguments, and results.

    Further lines of a message are indented, so that it cannot imitate "assistant calls ..." or a
    tool's result.
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


def _names(rows: Sequence[dict[str, Any]], session: SessionText) -> list[tuple[float, str]]:
    """Return (place, text) of the goal of each row."""
    if not session.goals:
        texts = [_reason(row, "goal") for row in rows]
        if len({_squeezed(text) for text in texts}) < len(texts):
            raise ReplyError("a goal stands twice; list each once")
        return list(enumerate(texts))
    numbers = [number for row in rows if (number := _number(row.get("number"))) is not None]
    total = len(session.goals)
    if len(numbers) < len(rows) or sorted(numbers) != list(range(1, total + 1)):
        raise ReplyError(f"one verdict for each of the goals 1 to {total} is needed")
    return [(n, session.goals[int(n) - 1]) for n in numbers]


def _goal(name: str, row: dict[str, Any], dialogue: str) -> GoalVerdict:
    texts = {key: row.get(key) for key in ("evidence", "reason")}
    short = {k: t.strip()[:_REASON] if isinstance(t, str) else "" for k, t in texts.items()}
    quote = _squeezed(short["evidence"])
    achieved = _yes_or_no(row.get("achieved"), "achieved")
    quoted = len(quote) >= 3 and quote in dialogue
    return GoalVerdict(goal=name, achieved=achieved, quoted=quoted, **short)


def _squeezed(text: str) -> str:
    """Return the text without blanks, quotation marks and case, to search for quotations."""
    return re.sub(r"[\s\"'`´‘’“”«»]+", "", text).casefold()


# ---- replies -------------------------------------------------------------------------------------


class OffScale(ReplyError):
    """A number was given, but none from 0 to 10."""


class ResponseVerdict(Record):
    """A grade from 0 (worst) to 10 with the reasons for each part, or the `status` of a failure,
    which never has a score."""

    score: float | None = Field(default=None, ge=_WORST, le=_BEST)
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
    """A reply to grade. `workflow` is the procedure as text, `history` the dialogue before it."""

    reply: str
    gold: str
    workflow: str
    history: str = ""


class ResponseJudge(ModelJudge):
    """Grades replies by comparison with the gold reply."""

    name, max_tokens = "response", 1024

    async def grade(self, case: ReplyToGrade) -> ResponseVerdict:
        """Return the grade or a failure. Raises Unauthorized for a refused key."""
        parts = {part: {"type": "string"} for part in _PARTS}
        try:
            answer = await self._ask(
                _object_schema({**parts, "score": {"type": "number"}}),
                read_score,
                reply=case.reply,
                gold=case.gold,
                workflow=case.workflow,
                history=case.history,
            )
        except Exception as error:  # noqa: BLE001  recorded as a failure
            failure = dict(failure_of(error))
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
    reasons: dict[str, Any] = {part: _reason(members, part) for part in _PARTS}
    score = _number(members["score"])
    if score is None:
        raise ReplyError(f"score must be a number, not {members['score']!r:.40}")
    if not _WORST <= score <= _BEST:
        raise OffScale(f"score must lie from 0 to 10, not {score!r}")
    return reasons | {"score": score}


# ---- members of a reply --------------------------------------------------------------------------


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these members, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _reason(members: dict[str, Any], name: str) -> str:
    """Return a required text. Raises ReplyError if it is missing or repeats the template."""
    text = members.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ReplyError(f"{name} is missing or no text")
    if text.strip().startswith("<") and text.strip().endswith(">"):
        raise ReplyError(f"{name} repeats the form instead of saying something")
    return text.strip()[:_REASON]


def _yes_or_no(answer: Any, name: str) -> bool:
    """Return true or false, also from words. Raises ReplyError for anything else."""
    if isinstance(answer, bool):
        return answer
    word = answer.strip().lower() if isinstance(answer, str) else ""
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ReplyError(f"{name} must be true or false")


def _number(answer: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(answer, bool) or not isinstance(answer, int | float | str):
        return None
    if isinstance(answer, str) and "_" in answer:  # 1_0 is a number only in Python
        return None
    try:
        number = float(answer)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
