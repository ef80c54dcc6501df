"""What a perturbation changed: an edit script from the original to its copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

# n: keep n characters; -n: leave n characters out; a text: put it in.
Edit = int | str
_Change = tuple[str, list[str], list[str]]  # "equal", or what becomes of it; before; after

_SENTENCE = re.compile(r"\n+|.+?(?:[.!?][\"')*_]*[ \t]+|(?=\n)|$)")
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
# Pieces × pieces that are compared, since the worst case is quadratic and more; what is longer
# counts as rewritten.
_MOST_SENTENCES = 4_000_000
_MOST_WORDS = 90_000


def units(text: str) -> int:
    """Length in UTF-16 units, which is how a browser counts."""
    return len(text) + sum(c > "\uffff" for c in text)


def edits(original: str, copy: str) -> list[Edit]:
    """Edits that turn `original` into `copy`, lengths in UTF-16 units.

    Sentences are compared first, and words within sentences that changed (Ratcliff & Obershelp,
    in Python's difflib). Where there is too much to compare a passage counts as rewritten.
    """
    found: list[Edit] = []
    for tag, before, after in _compared(_SENTENCE, original, copy, _MOST_SENTENCES):
        if tag != "replace":
            _add(found, tag, before, after)
            continue
        for inner in _compared(_WORD, "".join(before), "".join(after), _MOST_WORDS):
            _add(found, *inner)
    return found


def _compared(piece: re.Pattern[str], original: str, copy: str, most: int) -> Iterator[_Change]:
    """What became of which pieces; equal beginnings and ends are set aside first."""
    a, b = piece.findall(original), piece.findall(copy)
    start, end = _common(a, b)
    yield "equal", a[:start], b[:start]
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(inner_a) * len(inner_b) > most:
        yield "rewrite", inner_a, inner_b
    else:
        matcher = SequenceMatcher(None, inner_a, inner_b, autojunk=False)
        for tag, a1, a2, b1, b2 in matcher.get_opcodes():
            yield tag, inner_a[a1:a2], inner_b[b1:b2]
    yield "equal", a[len(a) - end :], b[len(b) - end :]


def _common(a: list[str], b: list[str]) -> tuple[int, int]:
    """How many pieces at the start and, after these, at the end are equal."""
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and a[start] == b[start]:
        start += 1
    end = 0
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return start, end


def _add(found: list[Edit], tag: str, before: list[str], after: list[str]) -> None:
    size = units("".join(before))
    if tag == "equal":
        _extend(found, size)
        return
    _extend(found, -size)
    if text := "".join(after):
        if found and isinstance(found[-1], str):
            found[-1] += text
        else:
            found.append(text)


def _extend(found: list[Edit], size: int) -> None:
    """Keep (positive) or leave out (negative) so many characters, joined to an equal step."""
    if not size:
        return
    last = found[-1] if found else 0
    if isinstance(last, int) and last * size > 0:
        found[-1] = last + size
    else:
        found.append(size)
