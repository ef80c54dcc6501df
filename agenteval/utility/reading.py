"""Read a judge's whole reply: its JSON values, or else its prose.

A reply may contain several values: an example, a quotation, a draft, a correction. The value that
covers all criteria counts, and values for different criteria are combined. If two values contradict
each other, the criterion has no answer, unless the later one is introduced as a correction.

Truncated, declining and malformed replies are not answers; they differ in message and status.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.errors import ReplyError
from agenteval.models.reply import (
    Body,
    Parsed,
    behind_thinking,
    declines,
    meant_as_json,
    parse_all,
    tidied,
)
from agenteval.records import Criterion
from agenteval.utility.answers import (
    TWICE,
    Answers,
    LevelAnswer,
    NoAnswer,
    leaves_of,
    read_answers,
    speaks_of,
)
from agenteval.utility.prose import read_prose, without_marks
from agenteval.utility.stated_scores import scales_in, top_of

# The words around a value may mark it as an example, as denied, as a template, or as a correction
# of an earlier one.
_EXAMPLE = re.compile(
    r"\bexamples?\b|\be\.g\.|\bfor instance\b|\bsuch as\b|\bbeispiel|\bexemple\b|\bejemplo\b|例",
    re.I,
)
_DENIED = re.compile(
    r"\b(?:not|never|nor|if|unless|would|could|might|instead of|rather than|claim\w*|says?|states?|"
    r"writes?|contains?|includes?|ends with|demands?|wants?|asks?|instead)\b|n['’]t\b",
    re.I,
)
_FORM = re.compile(
    r"\b(?:format|form|schema|template|rubric|draft|scale|initial\w*|previous\w*|earlier|first)\b",
    re.I,
)
_CORRECTS = re.compile(
    r"\b(?:correct(?:ion|ed)|actually|second thoughts?|revised|final(?:ly)?|updated|meant|"
    r"should be|sorry|wait|oops|mistake|fixed|re-?evaluated)\b|\bno[,:.]",
    re.I,
)
_TAKES_BACK = re.compile(r"(?:wait|actually|on second|sorry|oops|correction|revised|no[,:.])", re.I)
_LEAD_END = re.compile(r"(?:^|[.!?:>=→|-])[\s*_`\"'(]*$")


def read_text(
    text: str, criteria: Sequence[Criterion], finish: str = "stop"
) -> tuple[Answers, str | None]:
    """Return an answer or NoAnswer per leaf of `criteria`, and the rung (None if nothing was read).

    `finish` is the reply's finish reason. Malformed content does not raise.
    """
    try:
        body = parse_all(text, lambda value: speaks_of(value, criteria))
    except ReplyError as error:
        read = _without_json(text, criteria, finish)
        return read or _unread(text, str(error), finish, criteria)
    values = [value for value in body.values if not _is_quoted(value, body)]
    outside = _outside(body)
    if not values:
        read = _without_json(outside, criteria, finish)
        return read or _unread(text, "the reply only quotes JSON", finish, criteria)
    answers = _combined(values, body, criteria)
    within = len(values) == 1 and _introduction(values[0], body)[1]
    prose = read_prose(outside, criteria, whole=True) if within else None
    for path, stated in prose[0].by_path.items() if prose else ():
        answer = answers.by_path[path]
        both = isinstance(stated, LevelAnswer) and isinstance(answer, LevelAnswer)
        if both and stated != answer:
            answers.by_path[path] = TWICE
    tops = set() if values[-1].rung == "json" else scales_in(outside)
    for path, leaf in leaves_of(criteria) if tops else ():
        answer = answers.by_path[path]
        if isinstance(answer, LevelAnswer) and top_of(leaf) not in {None, *tops}:
            why = f"the reply speaks of a scale to {max(tops):g}"
            answers.by_path[path] = NoAnswer("unscored:off_scale", why)
    if values[-1].rung == "salvaged" and all(map(_is_missing, answers.by_path.values())):
        early = "the reply broke off before its first answer was complete"
        return _unread(text, early, finish, criteria)
    return answers, values[-1].rung


def _is_missing(answer: LevelAnswer | NoAnswer) -> bool:
    return isinstance(answer, NoAnswer) and answer.status == "unscored:missing"


def _unread(
    text: str, why: str, finish: str, criteria: Sequence[Criterion]
) -> tuple[Answers, None]:
    if finish == "length":
        failed = NoAnswer("unscored:parse", f"{why} (cut off by the length limit)")
    elif declines(text):
        failed = NoAnswer("unscored:refusal", "the reply declines to answer")
    else:
        failed = NoAnswer("unscored:parse", why)
    return Answers({path: failed for path, _ in leaves_of(criteria)}), None


def _without_json(
    text: str, criteria: Sequence[Criterion], finish: str
) -> tuple[Answers, str] | None:
    """Read a reply without JSON; None if it has no answers."""
    try:
        body = without_marks(behind_thinking(tidied(text)))
    except ReplyError:
        return None
    if meant_as_json(body):  # broken JSON; its lines may belong to a draft or a quotation
        return None
    ended = text.rstrip(" \t").endswith("\n")
    return read_prose(f"{body}\n" if ended else body, criteria, whole=finish == "stop")


# ---------------------------------------------------------------- several values in one reply


def _outside(body: Body) -> str:
    """Return the text around the values."""
    pieces, at = [], 0
    for value in sorted(body.values, key=lambda value: value.start):
        pieces.append(body.text[at : value.start])
        at = value.end
    return "".join([*pieces, body.text[at:]])


def _introduction(value: Parsed, body: Body) -> tuple[str, bool]:
    """Return the words that introduce a value, and whether it is within a sentence."""
    before = body.text[max(0, value.start - 300) : value.start]
    line = before.rpartition("\n")[2].rpartition("}")[2]
    tail = body.text[value.end : value.end + 200].partition("\n")[0].partition("{")[0]
    words = line.strip(" \t>*_`-#")
    if not any(map(str.isalnum, words)):
        above = re.sub(r"```\w*|[{}\[\]\",]", " ", before.rstrip().removesuffix("json"))
        above = above.rstrip(" \t\n`").rpartition("\n")[2].rstrip("*_ ")
        introduces = above.endswith((":", "：")) or _TAKES_BACK.match(above)
        return (above if introduces else ""), False
    within = _LEAD_END.search(line) is None
    sentence = re.split(r"[.!?]\s", words)[-1]
    return (f"{sentence} {tail}" if within else sentence), within


def _is_quoted(value: Parsed, body: Body) -> bool:
    """Whether the reply only mentions the value and does not give it as its answer."""
    words, within = _introduction(value, body)
    if _EXAMPLE.search(words):
        return True
    denied = within and _DENIED.search(words) is not None
    shown = len(body.values) > 1 and (within or _FORM.search(words) is not None)
    return (denied or shown) and not _CORRECTS.search(words)


def _is_correction(value: Parsed, body: Body) -> bool:
    words, within = _introduction(value, body)
    other = any(pattern.search(words) for pattern in (_EXAMPLE, _DENIED, _FORM))
    return not within and not other and _CORRECTS.search(words) is not None


def _combined(values: Sequence[Parsed], body: Body, criteria: Sequence[Criterion]) -> Answers:
    """Combine all values that are not quoted into one answer per leaf."""
    combined, *remaining = [read_answers(value.value, criteria) for value in values]
    for value, answers in zip(values[1:], remaining, strict=True):
        corrects = _is_correction(value, body)
        if corrects and len(answers.missing()) == len(answers.by_path):  # "No: {... null}"
            combined = answers
        if not corrects and answers.all_answered != combined.all_answered:
            combined = answers if answers.all_answered else combined
            continue
        for path, new in answers.by_path.items():
            if _is_missing(new):
                continue
            old = combined.by_path[path]
            agree = old != TWICE if isinstance(old, NoAnswer) else old == new
            combined.by_path[path] = new if agree or corrects else TWICE
        combined.extra = sorted({*combined.extra, *answers.extra})
    return combined
