"""Short texts of a page: bounded texts, names of perturbations, and their changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Edit = tuple[Literal["", "del", "ins"], str]  # kept, taken out, put in

_SENTENCE = re.compile(r"\n+|.+?(?:[.!?][\"')*_]*[ \t]+|(?=\n)|$)")
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
# Pieces × pieces that are compared, since the worst case is quadratic and more; what is longer
# counts as rewritten.
_MOST_SENTENCES = 4_000_000
_MOST_WORDS = 90_000


def cut(text: object, most: int) -> str:
    """Return at most `most` characters of the text, followed by a note on how many were cut."""
    full = str(text)
    if len(full) <= most:
        return full
    return f"{full[:most]} [… cut: {most:,} of {len(full):,} characters]"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return names as in "a, b and c"; beyond `most` of them "a, b, c and 4 more"."""
    omitted = len(names) - most
    if omitted > 0:
        return f"{', '.join(names[:most])} and {omitted:,} more"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def variant_label(name: str, among: Iterable[str] = ()) -> str:
    """`drop sentences 25%` for `drop_sentences:0.25:7`; the seed too where only it differs."""
    operator, _, parameters = name.partition(":")
    share, _, seed = parameters.partition(":")
    try:
        dose = "" if share in ("", "-") else f" {float(share) * 100:.3g}%"
    except ValueError:
        return name
    label = operator.replace("_", " ") + dose
    twins = [v for v in among if v != name and v.rpartition(":")[0] == name.rpartition(":")[0]]
    return f"{label}, seed {seed}" if twins and seed else label


def edits(original: str, copy: str) -> list[Edit]:
    """Return kept, deleted and inserted passages in order.

    Sentences are compared first, then words within changed sentences (Ratcliff & Obershelp, in
    Python's difflib). If there is too much to compare, a passage counts as rewritten.
    """
    changes: list[Edit] = []
    for same, before, after in _compared(_SENTENCE, original, copy, _MOST_SENTENCES):
        parts = [(same, before, after)]
        if not same and before and after:
            parts = list(_compared(_WORD, before, after, _MOST_WORDS))
        for equal, old, new in parts:
            changes += [("", old)] if equal else [("del", old), ("ins", new)]
    written = (edit for edit in changes if edit[1])
    return [(kind, "".join(t for _, t in some)) for kind, some in groupby(written, lambda e: e[0])]


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
