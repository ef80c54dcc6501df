"""The judge of two values of a parameter: do they mean the same?"""

from __future__ import annotations

from agenteval.evaluators.workflows.asked_judge import (
    Form,
    JudgeOptions,
    ask_judge,
    object_schema,
    reason_of,
    yes_or_no,
)
from agenteval.evaluators.workflows.equality import Question
from agenteval.models.asking import Asked
from agenteval.models.client import Client
from agenteval.models.reply import parse_reply

SCHEMA = object_schema({"reason": {"type": "string"}, "equal": {"type": "boolean"}})


class EqualityJudge:
    """Asks a model, with one repair. What was asked before is kept by `Equality`, not here."""

    def __init__(self, client: Client, options: JudgeOptions | None = None) -> None:
        self.client = client
        self.options = options or JudgeOptions(max_tokens=512)

    async def same(self, question: Question) -> Asked[tuple[bool, str]]:
        """Whether the two mean the same, and why. Raises what `models.asking.ask` raises."""
        return await ask_judge(
            self.client, Form("equal", SCHEMA, read_equal), self.options,
            tool=question.tool, parameter=question.parameter,
            description=question.description, gold=question.gold, given=question.given,
        )  # fmt: skip


def read_equal(text: str) -> tuple[bool, str]:
    """The verdict of a reply and its reason. Raises ReplyError when it holds none."""
    members = parse_reply(text, lambda value: isinstance(value, dict) and "equal" in value).value
    return yes_or_no(members["equal"], "equal"), reason_of(members, "reason")
