"""Seeded changes to a text, for the bench of the embedded judge.

Each function returns the changed text, or None where the text gives no room for the change. The
sentences are those of `split_sentences`; what stands between two kept neighbours stays, removed
places close up to one blank or line break.
"""

from __future__ import annotations

import math
import re

import numpy as np

from agenteval.evaluators.utility.sentences import split_sentences

SHARE = 0.25
_NUMBER = re.compile(r"(?<![\w.,:/])\d+(?:\.\d+)?(?![\w:/]|[.,]\d)")
_FILLERS = (
    "It is worth noting at this point that",
    "As one can easily imagine,",
    "Generally speaking, and all things considered,",
    "Needless to say,",
    "In this context it should be mentioned that",
    "At the end of the day, when all is said and done,",
    "To put it in another way, so to speak,",
    "It goes without saying that",
)


def sentences(text: str) -> list[str]:
    """The sentences of a text as strings."""
    return [text[s.start : s.end] for s in split_sentences(text)]


def count_dropped(text: str) -> int:
    """How many sentences are 25 % of the text: rounded, at least one. Cuts remove as many."""
    return max(1, math.floor(SHARE * len(split_sentences(text)) + 0.5))


def drop(text: str, rng: np.random.Generator) -> str | None:
    """Remove a random 25 % of the sentences; first and last may go."""
    n = len(split_sentences(text))
    gone = {int(i) for i in rng.choice(n, count_dropped(text), replace=False)} if n > 1 else set()
    return _keep(text, [i for i in range(n) if i not in gone]) if gone else None


def shuffle(text: str, rng: np.random.Generator) -> str | None:
    """The same sentences in another order, in the same places; never the original order."""
    spans = split_sentences(text)
    parts = sentences(text)
    if len(set(parts)) < 2:
        return None
    order = rng.permutation(len(parts))
    while [parts[i] for i in order] == parts:
        order = rng.permutation(len(parts))
    out, at = [], 0
    for span, i in zip(spans, order, strict=True):
        out += [text[at : span.start], parts[i]]
        at = span.end
    return "".join(out) + text[at:]


def cut_tail(text: str) -> str | None:
    """Remove as many sentences as `drop` does, at the end."""
    n = len(split_sentences(text))
    return _keep(text, list(range(n - count_dropped(text)))) if n > 1 else None


def cut_head(text: str) -> str | None:
    """Remove as many sentences as `drop` does, at the beginning."""
    n = len(split_sentences(text))
    return _keep(text, list(range(count_dropped(text), n))) if n > 1 else None


def swap_numbers(text: str, rng: np.random.Generator) -> str | None:
    """Change a quarter of the numbers (at least one), each by one digit: as many digits as before.

    The first digit never becomes 0.
    """
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    chosen = rng.choice(len(found), max(1, len(found) // 4), replace=False)
    letters = list(text)
    for i in chosen:
        start, number = found[i].start(), found[i].group()
        digits = [k for k, c in enumerate(number) if c.isdigit()]
        place = int(rng.choice(digits))
        others = [d for d in "0123456789" if d != number[place] and (place or d != "0")]
        letters[start + place] = str(rng.choice(others))
    return "".join(letters)


def pad(text: str, rng: np.random.Generator) -> str | None:
    """Put an empty phrase before half of the sentences (at least one)."""
    spans = split_sentences(text)
    if not spans:
        return None
    chosen = {int(i) for i in rng.choice(len(spans), max(1, len(spans) // 2), replace=False)}
    out, at = [], 0
    for i, span in enumerate(spans):
        sentence = text[span.start : span.end]
        if i in chosen:
            sentence = f"{rng.choice(_FILLERS)} {_lowered(sentence)}"
        out += [text[at : span.start], sentence]
        at = span.end
    return "".join(out) + text[at:]


def _lowered(sentence: str) -> str:
    """The first word in lower case where that is surely right: a common word of two letters up."""
    first = r"(?:The|This|That|These|It|In|If|So|A|An|At|On|We|From|To|For|With)\b"
    return sentence[0].lower() + sentence[1:] if re.match(first, sentence) else sentence


def _keep(text: str, kept: list[int]) -> str:
    """The kept sentences with the gap that stood before each of them."""
    spans = split_sentences(text)
    out: list[str] = []
    for i in kept:
        gap = text[spans[i - 1].end : spans[i].start] if i and out else ""
        out.append(gap + text[spans[i].start : spans[i].end])
    return "".join(out)
