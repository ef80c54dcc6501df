"""From a judge's whole reply to answers: the ladder of `models.reply`, then what people write.

labelled   no JSON, but a line `criterion: value`, a section, a row or a tag for each criterion
prose      one criterion, and the only score that the text states

A reply that was cut off, one that declines and one in no form are told apart in the message and in
the status; none of them is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.answers import (
    Answer,
    AnswerReader,
    Answers,
    NoAnswer,
    leaves,
    read_answers,
)
from agenteval.evaluators.utility.labelled import read_lines
from agenteval.evaluators.utility.prose import stated_score
from agenteval.models.refusal import declines
from agenteval.models.reply import meant_as_json, parse_reply, tidied
from agenteval.models.thinking import behind_thinking
from agenteval.records import Criterion, FailureStatus

_RATING = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")  # "Rating: [[5]]"


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
        return _without_json(text, criteria, finish) or (
            _unread(_why(text, error, finish), criteria),
            None,
        )
    answers = reader.read(parsed.value)
    if parsed.rung == "salvaged" and all(map(_is_missing, answers.by_path.values())):
        early = ReplyError("the reply broke off before its first answer was complete")
        return _unread(_why(text, early, finish), criteria), None
    return answers, parsed.rung


def _unread(failed: NoAnswer, criteria: Sequence[Criterion]) -> Answers:
    return Answers({path: failed for c in criteria for path, _ in leaves(c)})


def _is_missing(one: Answer | NoAnswer) -> bool:
    return isinstance(one, NoAnswer) and one.status == "unscored:missing"


def _without_json(
    text: str, criteria: Sequence[Criterion], finish: str
) -> tuple[Answers, str] | None:
    """Answers of a reply in which nothing was meant as JSON; None when it holds none."""
    try:
        body = behind_thinking(tidied(text))
    except ReplyError:
        return None
    body = _RATING.sub(r"\1", body)
    if meant_as_json(body):  # a broken answer, whose lines may belong to a draft or a quotation
        return None
    ended = text.rstrip(" \t").endswith("\n")
    whole = finish == "stop"
    lines = read_lines(f"{body}\n" if ended else body, criteria, whole=whole)
    if lines is not None:
        return lines, "labelled"
    asked = [leaf for c in criteria for leaf in leaves(c)]
    level = stated_score(body, *asked[0]) if len(asked) == 1 and whole else None
    if level is None or declines(body):
        return None
    return read_answers({asked[0][0]: level}, criteria), "prose"


def _why(text: str, error: ReplyError, finish: str) -> NoAnswer:
    cut = " (cut off by the length limit)" if finish == "length" else ""
    refused = not cut and declines(text)
    status: FailureStatus = "unscored:refusal" if refused else "unscored:parse"
    message = "the reply declines to answer" if refused else f"{error}{cut}"
    return NoAnswer(status, message)
