"""Parse a reply's text into a value, and record which step (rung) was needed.

json       the text is exactly one JSON value
fenced     it stands in a code fence
buried     it stands somewhere in prose
loose      single quotes, Python literals, trailing commas, JSON as text in JSON ... were read as
           meant
salvaged   the text broke off; complete members are kept

One request for repair is the evaluator's next rung, a Failure the last. Text within `<think>` and
similar tags is a draft, never the answer.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agenteval.errors import ReplyError
from agenteval.models.jsonish import (
    MAX_DEPTH,
    JsonDialect,
    NotJsonish,
    Scan,
    doubled_object,
    is_deeper,
    number,
    scan,
    to_object,
)
from agenteval.models.wire import printable

_FENCE_OPEN = re.compile(r"```[\w+-]*\s*\Z")
# A brace followed by anything else opens no object in any dialect and is skipped.
_OPENING = re.compile(r"""\[|\{(?=\s*+(?:["'“}/#\w]|\Z))""")
_LINE_OPENING = re.compile(r"^[{\[]", re.M)
# Text that opens like this was meant as JSON, even if the rest is broken.
_MEANT = re.compile(r"""\{\s*(?:["'“][^"'”\n]{0,200}["'”]|\w{1,50})\s*:|\[\s*[{\["']""")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_MAX_CHARS = 2_000_000
_MAX_VALUES = 20_000
_MAX_SKIP = 20_000  # characters looked through for the end of a broken object


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value read from a reply, the rung it took, and where it is in the reply's body."""

    value: Any
    rung: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """The part of a reply that is its answer, and the accepted values in it, the likeliest last."""

    text: str
    values: list[Parsed]


def parse_reply(
    text: str,
    accept: Callable[[Any], bool] | None = None,
    *,
    last_counts: bool = True,
    doubled: bool = False,
) -> Parsed:
    """The object or list in a reply.

    There may be several (a rubric repeated before the answer): the last that `accept`
    takes wins, because what comes first may be quoted. Where the last one broke off, only it
    counts, for the same reason; where the last one is broken, none does, unless `last_counts` is
    False. An object in which a key has two values is broken, unless `doubled` is True: then the
    value there is `Doubled`. Raises ReplyError when there is none.
    """
    accepted = accept or (lambda value: True)
    return _parse(text, accepted, most=1, last_counts=last_counts, doubled=doubled).values[-1]


def parse_all(text: str, accept: Callable[[Any], bool]) -> Body:
    """All values that `parse_reply` would take if they were alone; a key with two values has
    `Doubled`. Raises ReplyError, as `parse_reply`, when there is none."""
    return _parse(text, accept, most=None, last_counts=True, doubled=True)


def _parse(
    text: str, accept: Callable[[Any], bool], *, most: int | None, last_counts: bool, doubled: bool
) -> Body:
    text = tidied(text)
    inner = _unquoted(text)
    text = inner or text
    strict = _strict(text)
    if strict is not None and accept(strict):
        return Body(text, [Parsed(strict, "loose" if inner else "json", 0, len(text))])
    text = behind_thinking(text)
    scans, broken, reason = _search(text, doubled)
    thinking = thinking_in(text, [(read.start, read.end) for read in scans])
    if last_counts and broken is not None and scans and broken > scans[-1].start:
        scans = scans if within(broken, thinking) else []
    scans = [read for read in scans if not within(read.start, thinking)]
    if scans and scans[-1].cut:  # the answer, unless it is a bracket in prose
        last = scans[-1]
        meant = text[last.start] == "{" or _MEANT.match(text, last.start)
        scans = [last] if meant else [last, *scans[:-1]]
    ranked = (
        Parsed(read.value, _rung(text, read, quoted=inner is not None), read.start, read.end)
        for read in reversed(scans)
        if read.value not in (None, {}, []) and accept(read.value)
    )
    if parsed := list(islice(ranked, most)):
        return Body(text, parsed[::-1])
    if scans:
        reason = "the reply holds JSON, but not in the form asked for"
        if scans[-1].cut:
            reason = "the reply broke off before its last object could be used"
    raise ReplyError(reason)


def tidied(text: str) -> str:
    """Return the text without surrogate halves, byte order mark and surrounding space.

    Raises ReplyError when nothing remains or the text is too long.
    """
    if len(text) > _MAX_CHARS:
        raise ReplyError(f"the reply has {len(text)} characters; {_MAX_CHARS} are read at most")
    text = printable(text).strip().lstrip("\ufeff").strip()
    if not text:
        raise ReplyError("the reply is empty")
    return text


def meant_as_json(text: str) -> bool:
    """True when something in the text opens like a JSON object or list with members."""
    return _MEANT.search(text) is not None


def _unquoted(text: str) -> str | None:
    """Return the JSON text inside a JSON string, decoded once, or None when it is not such a
    string."""
    if not (text[0] == text[-1] == '"'):
        return None
    try:
        inner = json.loads(text)
    except ValueError:
        return None
    inner = printable(inner).strip() if isinstance(inner, str) else ""
    return inner if inner[:1] in ("{", "[") else None


def _strict(text: str) -> Any:
    """Object or list when the text is exactly one; None otherwise."""
    if text[0] not in "{[":
        return None
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError):
        return None
    if text.count("{") + text.count("[") > MAX_DEPTH and is_deeper(value, MAX_DEPTH):
        return None
    return _clean(value) if "\\ud" in text or "\\uD" in text else value


_STRICT = json.JSONDecoder(  # `number` refuses NaN and infinity, too
    object_pairs_hook=to_object, parse_constant=number, parse_float=number, parse_int=number
)


def _clean(value: Any) -> Any:
    """Lone surrogates become U+FFFD: they can be neither stored nor printed."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(k): _clean(v) for k, v in value.items()}
    return [_clean(v) for v in value] if isinstance(value, list) else value


def _search(text: str, doubled: bool) -> tuple[list[Scan], int | None, str]:
    """Return every outermost value in the text, the start of the last broken one, and the reason
    why it is broken. Each character is read about once."""
    scans: list[Scan] = []
    broken: int | None = None
    reason = "no object or list in the reply"
    dialect = JsonDialect(doubled_object if doubled else to_object)
    opening, at = _OPENING, 0
    while match := opening.search(text, at):
        start = match.start()
        try:
            scans.append(scan(text, start, dialect))
        except NotJsonish as error:
            reason = f"{error} at offset {error.at}"
            at = max(error.at, start + 1)
            if error.begun or _MEANT.match(text, start):
                broken = start
                # Values inside the broken object are not answers.
                end = _end_of_broken(text, start) if opening is _OPENING else None
                if end is None:
                    opening = _LINE_OPENING  # only what starts a line can be a new answer
                else:
                    at = max(at, end)
            continue
        at = scans[-1].end
        if len(scans) > _MAX_VALUES:
            raise ReplyError(f"the reply holds more than {_MAX_VALUES} values")
    return scans, broken, reason


def _end_of_broken(text: str, start: int) -> int | None:
    """Offset behind the bracket that closes the one at `start`, when it is near."""
    depth = 0
    for piece in _PIECE.finditer(text, start, start + _MAX_SKIP):
        if piece.group() in "{[":
            depth += 1
        elif piece.group() in "}]":
            depth -= 1
            if depth == 0:
                return piece.end()
    return None


def _rung(text: str, read: Scan, *, quoted: bool) -> str:
    if read.cut:
        return "salvaged"
    if read.loose or quoted:
        return "loose"
    fenced = _FENCE_OPEN.search(text, max(0, read.start - 40), read.start)
    return "fenced" if fenced and text[read.end :].lstrip().startswith("```") else "buried"


# ---- thinking: a draft is not the answer, not even when nothing else came ------------------------

_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|seed:think"
_TAG = re.compile(
    rf"<(?P<end>/)?(?:{_NAMES})>|◁(?P<end2>/)?think▷|\[(?P<end3>/)?THINK\]"
    r"|<\|(?:begin|(?P<end4>end))_of_thought\|>",
    re.I,
)
_CHANNEL = re.compile(r"(?:<\|start\|>\w{0,20})?<\|channel\|>")  # the harmony format
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>final\b[^<>]{0,80}(?:<\|[^<>|]{1,20}\|>[^<>]{0,20})??<\|message\|>"
)


def behind_thinking(text: str) -> str:
    """Return the text after its initial thinking, if any. Raises ReplyError if that thinking has no
    end, so there is no answer.
    """
    opening = _TAG.match(text)
    if _CHANNEL.match(text):
        ends = [final.end() for final in _FINAL_CHANNEL.finditer(text)][-1:]
    elif opening is None or _ends(opening):
        return text
    else:
        ends = [tag.end() for tag in _TAG.finditer(text, opening.end()) if _ends(tag)][:1]
    if not ends:
        raise ReplyError("the reply ends within its thinking: there is no answer in it")
    return text[ends[0] :]


def thinking_in(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) of the thinking in the text, in order and apart.

    `spans` are the (start, end) of values, in order and apart: a tag within one of them is quoted.
    Before a closing tag without an opening one everything is thinking, for the opening one often
    stands in the prompt; behind an opening tag without a closing one everything is.
    """
    starts = [start for start, _ in spans]
    drafts: list[tuple[int, int]] = []
    opened: int | None = None
    for tag in _TAG.finditer(text):
        at = bisect_right(starts, tag.start()) - 1
        if at >= 0 and tag.start() < spans[at][1]:
            continue
        if not _ends(tag):
            opened = tag.start() if opened is None else opened
        elif opened is None:
            drafts = [(0, tag.end())]
        else:
            drafts.append((opened, tag.end()))
            opened = None
    return drafts if opened is None else [*drafts, (opened, len(text))]


def within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """True when the offset lies in one of the spans, which are in order and apart."""
    before = bisect_right(spans, (at, float("inf"))) - 1
    return before >= 0 and at < spans[before][1]


def _ends(tag: re.Match[str]) -> bool:
    return any(tag.groups())


# ---- refusals ------------------------------------------------------------------------------------
# Recognised by the opening words, in several languages. They only explain a missing answer: they
# are checked after nothing could be parsed.

_REFUSAL_LONGEST = 2000  # characters; a refusal is short
_REFUSAL_OPENING = 300  # characters in which it says so
_ACTS = (
    r"(?:assist|help|comply|fulfil|provide|evaluate|judge|grade|rate|assess|score|answer|engage|"
    r"continue|support|do (?:that|this|so)|discuss|participate|complete|process|respond)"
)
_REFUSALS = re.compile(
    "|".join(
        (
            rf"\b(?:can(?:no|['’]?)t|can not|(?:am|['’]m) (?:not able|unable) to|won['’]?t|"
            rf"will not|"
            rf"must decline to|(?:am|['’]m) not comfortable|(?:have|need) to decline to) {_ACTS}",
            r"\bi (?:must|have to|need to) decline\b",
            r"\bich kann (?:\w+ ){0,5}nicht (?:\w+ ){0,2}"
            r"(?:helfen|beantworten|bewerten|beurteilen)",
            r"\bkann ich (?:\w+ ){0,5}nicht (?:\w+ ){0,2}"
            r"(?:helfen|beantworten|bewerten|beurteilen)",
            r"\bje ne (?:peux|suis) pas (?:\w+ ){0,3}(?:en mesure|aider|répondre|évaluer|noter)",
            r"\bno puedo (?:\w+ ){0,3}(?:ayudar|responder|evaluar|calificar)",
            r"\bnão posso (?:\w+ ){0,3}(?:ajudar|responder|avaliar)",
            r"\bnon posso (?:\w+ ){0,3}(?:aiutar|rispondere|valutare)",
            r"\bkan (?:ik )?(?:\w+ ){0,5}niet (?:\w+ ){0,2}(?:helpen|beantwoorden|beoordelen)",
            r"\bnie mogę (?:\w+ ){0,3}(?:pomóc|odpowiedzieć|ocenić)",
            r"не могу (?:\w+ ){0,3}(?:помочь|ответить|оценить|выполнить)",
            r"(?:抱歉|对不起|對不起)[，,。 ]{0,2}.{0,10}(?:无法|不能|無法)",
            r"(?:申し訳|すみません|ごめんなさい).{0,40}(?:できません|できかねます|ません)",
            r"(?:죄송|미안).{0,40}(?:없습니다|어렵습니다|못합니다)",
            r"لا (?:أستطيع|يمكنني)",
            r"(?:üzgünüm|özür dilerim).{0,60}(?:amam|emem|amıyorum|emiyorum)",
        )
    ),
    re.I,
)


def declines(text: str) -> bool:
    """Return whether a short text begins by refusing the request."""
    return len(text) <= _REFUSAL_LONGEST and _REFUSALS.search(text[:_REFUSAL_OPENING]) is not None
