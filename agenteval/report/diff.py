"""What a perturbation changed: the copy with what was taken out and put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

Edit = tuple[Literal["", "del", "ins"], str]  # kept, taken out, put in

_SENTENCE = re.compile(r"\n+|.+?(?:[.!?][\"')*_]*[ \t]+|(?=\n)|$)")
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
# Pieces × pieces that are compared, since the worst case is quadratic and more; what is longer
# counts as rewritten.
_MOST_SENTENCES = 4_000_000
_MOST_WORDS = 90_000


def edits(original: str, copy: str) -> list[Edit]:
    """What is kept, taken out and put in, in order.

    Sentences are compared first, and words within sentences that changed (Ratcliff & Obershelp,
    in Python's difflib). Where there is too much to compare a passage counts as rewritten.
    """
    made: list[Edit] = []
    for same, before, after in _compared(_SENTENCE, original, copy, _MOST_SENTENCES):
        if same or not (before and after):
            _add(made, same, before, after)
            continue
        for change in _compared(_WORD, before, after, _MOST_WORDS):
            _add(made, *change)
    return made


def _compared(
    piece: re.Pattern[str], original: str, copy: str, most: int
) -> Iterator[tuple[bool, str, str]]:
    """Passages before and after, and whether they are the same; equal beginnings and ends are set
    aside first."""
    a, b = piece.findall(original), piece.findall(copy)
    shorter, start, end = min(len(a), len(b)), 0, 0
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    yield True, "".join(a[:start]), "".join(b[:start])
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(inner_a) * len(inner_b) > most:
        yield False, "".join(inner_a), "".join(inner_b)
    else:
        matcher = SequenceMatcher(None, inner_a, inner_b, autojunk=False)
        for tag, a1, a2, b1, b2 in matcher.get_opcodes():
            yield tag == "equal", "".join(inner_a[a1:a2]), "".join(inner_b[b1:b2])
    yield True, "".join(a[len(a) - end :]), "".join(b[len(b) - end :])


def _add(made: list[Edit], same: bool, before: str, after: str) -> None:
    changes: list[Edit] = [("", before)] if same else [("del", before), ("ins", after)]
    for kind, text in changes:
        if not text:
            continue
        if made and made[-1][0] == kind:
            made[-1] = (kind, made[-1][1] + text)
        else:
            made.append((kind, text))
