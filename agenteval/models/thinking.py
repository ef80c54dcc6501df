"""Thinking that a model wrote down beside its answer: `<think> ... </think>` and its relatives.

What stands in it is a draft. A draft is not the answer, not even when nothing else came.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from agenteval.errors import ReplyError

_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis"
_TAG = re.compile(
    rf"<(?P<end>/)?(?:{_NAMES})>|◁(?P<end2>/)?think▷|\[(?P<end3>/)?THINK\]", re.I
)  # fmt: skip


def behind_thinking(text: str) -> str:
    """What comes after the thinking with which the text begins; the text itself without one.

    Raises ReplyError when that thinking has no end: the answer never came.
    """
    opening = _TAG.match(text)
    if opening is None or _ends(opening):
        return text
    for tag in _TAG.finditer(text, opening.end()):
        if _ends(tag):
            return text[tag.end() :]
    raise ReplyError("the reply ends within its thinking: there is no answer in it")


def thinking_in(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) of the thinking in the text, in order and apart.

    `spans` are the (start, end) of values, in order and apart: a tag within one of them is quoted.
    Before a closing tag without an opening one everything is thinking, for the opening one often
    stands in the prompt; behind an opening tag without a closing one everything is.
    """
    starts = [start for start, _ in spans]
    found: list[tuple[int, int]] = []
    opened: int | None = None
    for tag in _TAG.finditer(text):
        at = bisect_right(starts, tag.start()) - 1
        if at >= 0 and tag.start() < spans[at][1]:
            continue
        if not _ends(tag):
            opened = tag.start() if opened is None else opened
        elif opened is None:
            found = [(0, tag.end())]
        else:
            found.append((opened, tag.end()))
            opened = None
    return found if opened is None else [*found, (opened, len(text))]


def within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """True when the offset lies in one of the spans, which are in order and apart."""
    before = bisect_right(spans, (at, float("inf"))) - 1
    return before >= 0 and at < spans[before][1]


def _ends(tag: re.Match[str]) -> bool:
    return any(tag.groups())
