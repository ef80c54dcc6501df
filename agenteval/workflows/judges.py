"""Prompting of judges: prompts by name, a schema, one repair."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeVar

from pydantic import Field, model_validator

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, ReplyError, Unauthorized
from agenteval.models.asking import ParsedReply, ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import FailureStatus, Message, Record, Usage, canonical_json, content_hash
from agenteval.stats import Interval, bootstrap_mean
from agenteval.stats.bootstrap import Clusters
from agenteval.workflows.rates import Resampling

T = TypeVar("T")
_PACKAGE = "agenteval.workflows"
_PROBLEM, _MESSAGE = 300, 500  # characters


@dataclass(frozen=True, slots=True)
class JudgeSampling:
    """The sampling of a judge. `temperature` None leaves it to the endpoint."""

    temperature: float | None = 0.0
    max_tokens: int = 1024
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """Return them as requests have them."""
        parameters: dict[str, Any] = {"seed": self.seed, "max_tokens": self.max_tokens}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        return parameters


@dataclass(frozen=True, slots=True)
class Form:
    """The prompts `<name>_system`, `_user` and `_repair`, a schema, and how to read a reply."""

    name: str
    schema: dict[str, Any]
    read: Callable[[str], Any]


async def ask_judge(
    client: Client, form: Form, options: JudgeSampling, repeat: int = 0, **values: Any
) -> ParsedReply[Any]:
    """Return what the judge says; see `models.asking.ask` for what is raised.

    `values` fill the prompts, which put everything that comes from outside between markers.
    """
    system, user, repair = (load_prompt(_PACKAGE, name) for name in _prompt_names(form.name))
    request = Request(
        messages=(
            {"role": "system", "content": system.render(nonce=NONCE, **values)},
            {"role": "user", "content": user.render(**values)},
        ),
        schema=form.schema,
        parameters=options.parameters(),
        repeat=repeat,
        role=f"flow:{form.name}",
    )
    return await ask(
        client, request, form.read, lambda problem: repair.render(problem=problem[:_PROBLEM])
    )


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no answer, and what it took."""

    status: FailureStatus
    message: str
    usage: Usage


def failure_of(error: Exception) -> Unanswered:
    """Return why a question has no answer. Raises the error again for a refused key, which would
    fail every question."""
    if isinstance(error, Unauthorized):
        raise error
    status, message = classify(error)
    spent = error.spent if isinstance(error, AgentevalError) else None
    return Unanswered(status, message[:_MESSAGE], spent or Usage())


def _prompt_names(judge: str) -> list[str]:
    return [f"{judge}_{part}" for part in ("system", "user", "repair")]


def prompts_sha256(judge: str) -> str:
    """Return one hash (hex) over the prompts of a judge."""
    return content_hash([load_prompt(_PACKAGE, name).sha256 for name in _prompt_names(judge)])


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these members, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def reason_of(members: dict[str, Any], name: str) -> str:
    """Return a required text. Raises ReplyError when it is missing or repeats the form."""
    text = members.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ReplyError(f"{name} is missing or no text")
    if text.strip().startswith("<") and text.strip().endswith(">"):
        raise ReplyError(f"{name} repeats the form instead of saying something")
    return text.strip()[:2000]


def yes_or_no(answer: Any, name: str) -> bool:
    """Return true or false, also from words. Raises ReplyError for anything else."""
    if isinstance(answer, bool):
        return answer
    word = answer.strip().lower() if isinstance(answer, str) else ""
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ReplyError(f"{name} must be true or false")


def number_of(answer: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(answer, bool) or not isinstance(answer, int | float | str):
        return None
    if isinstance(answer, str) and "_" in answer:  # Python's 1_0 is nobody's number
        return None
    try:
        number = float(answer)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


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
