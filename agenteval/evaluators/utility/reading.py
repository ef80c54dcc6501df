"""From a judge's whole reply to answers: the ladder of `models.reply`, then lines, then a reason.

labelled   no JSON, but one line `criterion: value` for each criterion

A reply that was cut off, one that declines and one in no form are told apart in the message and in
the status; none of them is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.answers import (
    Answer,
    AnswerReader,
    Answers,
    NoAnswer,
    leaves,
)
from agenteval.evaluators.utility.labelled import read_lines
from agenteval.models.refusal import declines
from agenteval.models.reply import meant_as_json, parse_reply, tidied
from agenteval.models.thinking import behind_thinking
from agenteval.records import Criterion, FailureStatus


def read_text(
    text: str, criteria: Sequence[Criterion], finish: str = "stop"
) -> tuple[Answers, str | None]:
    """One Answer or NoAnswer per leaf of `criteria`, and the rung; None when nothing was read.

    `finish` is the reply's reason to end. Never raises for what stands in the text.
    """
    reader = AnswerReader(criteria)
    try:
        parsed = parse_reply(text, reader.speaks, doubled=True)
    except ReplyError as error:
        lines = _lines(text, criteria, finish)
        if lines is not None:
            return lines, "labelled"
        return _unread(_why(text, error, finish), criteria), None
    answers = reader.read(parsed.value)
    if parsed.rung == "salvaged" and all(map(_is_missing, answers.by_path.values())):
        early = ReplyError("the reply broke off before its first answer was complete")
        return _unread(_why(text, early, finish), criteria), None
    return answers, parsed.rung


def _unread(failed: NoAnswer, criteria: Sequence[Criterion]) -> Answers:
    return Answers({path: failed for c in criteria for path, _ in leaves(c)})


def _is_missing(one: Answer | NoAnswer) -> bool:
    return isinstance(one, NoAnswer) and one.status == "unscored:missing"


def _lines(text: str, criteria: Sequence[Criterion], finish: str) -> Answers | None:
    try:
        body = behind_thinking(tidied(text))
    except ReplyError:
        return None
    if meant_as_json(body):  # a broken answer, whose lines may belong to a draft or a quotation
        return None
    ended = text.rstrip(" \t").endswith("\n")
    return read_lines(f"{body}\n" if ended else body, criteria, whole=finish == "stop")


def _why(text: str, error: ReplyError, finish: str) -> NoAnswer:
    cut = " (cut off by the length limit)" if finish == "length" else ""
    refused = not cut and declines(text)
    status: FailureStatus = "unscored:refusal" if refused else "unscored:parse"
    message = "the reply declines to answer" if refused else f"{error}{cut}"
    return NoAnswer(status, message)
