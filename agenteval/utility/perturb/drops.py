"""Operators that remove something: sentences, words, a middle step, the end.

Each takes a layout, a share and a generator and returns edits, or raises Unchanged with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np

from agenteval.readers.view import HEADING
from agenteval.utility.perturb.layout import (
    MARKER,
    Edit,
    Layout,
    TextPart,
    Unchanged,
    count_of,
    merged,
    protected,
)
from agenteval.utility.sentences import Span

_TOKEN = re.compile(r"\S+")
_WORD = re.compile(r"(?P<lead>[(\"'“‘]*)(?P<core>.*?)(?P<trail>[.,;:!?…)\"'”’]*)")
_SIGNS = frozenset("*_`$\\[]{}|<>#~()")


def drop_sentences(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Drop a random share of the system's sentences, over all its turns (one pool).

    The count is rounded half up, at least 1, at most all but 1. The order in which sentences are
    drawn does not depend on the share, so a larger share drops a superset.
    """
    pool = layout.sentences(least=2)
    order = rng.permutation(len(pool))
    return layout.removal(pool[i] for i in order[: count_of(share, len(pool), len(pool) - 1)])


def drop_middle(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Drop one step from the middle third.

    A step is a paragraph, list item or one-paragraph turn, if the text has three of them and the
    one dropped holds at most a third of the sentences and is not all that its turn says; otherwise
    it is a sentence. Of n units those from position n // 3 up to n - n // 3 are the middle.
    """
    pool = layout.sentences()
    if len(pool) < 3:
        has = "one sentence has" if len(pool) == 1 else f"{len(pool)} sentences have"
        raise Unchanged(f"{has} no middle")
    steps = [[pool[0]]]
    for before, i in pairwise(pool):
        gap = layout.text[layout.parts[before].end : layout.parts[i].start]
        item = "\n" in gap and layout.body(i)[0] > layout.parts[i].start
        separated = i > before + 1 or layout.parts[i].turn != layout.parts[before].turn
        if separated or item or gap.count("\n") > 1:
            steps.append([])
        steps[-1].append(i)
    in_turn = Counter(part.turn for part in layout.parts)
    fit = [
        step
        for step in (_middle(steps) if len(steps) > 2 else [])
        if 3 * len(step) <= len(pool) and in_turn[layout.parts[step[0]].turn] > len(step)
    ]
    chosen = fit or _middle([[i] for i in pool])
    return layout.removal(chosen[int(rng.integers(len(chosen)))])


def _middle(steps: list[list[int]]) -> list[list[int]]:
    third = len(steps) // 3
    return steps[third : len(steps) - third]


def truncate(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Cut the last share of the system's sentences, code blocks and calls.

    Everything behind the cut goes with them, including tools and users, as in a transcript that
    breaks off. Counted as in `drop_sentences`; copies under [final output] are
    not counted. Nothing is drawn at random. The result is a beginning of the original.
    """
    pool = layout.own("sentence", "code", "call") or layout.sentences()
    if len(pool) < 2:
        raise Unchanged("only one sentence, block of code or call")
    text = layout.text
    cut = layout.parts[pool[-count_of(share, len(pool), len(pool) - 1)]].start
    while True:  # remove trailing blanks and headings without content
        cut = len(text[:cut].rstrip())
        line = max(text.rfind("\n", 0, cut), text.rfind("\r", 0, cut)) + 1
        if not HEADING.match(text[line:cut]):
            return [Edit(cut, len(text), "")]
        cut = line


def drop_words(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Drop a random share of the words in the system's sentences.

    A word stands between blanks; a comma goes with it, other punctuation stays. Formulas, inline
    code, addresses, list markers and words with signs of markup stay, and every sentence keeps at
    least one word. Counted and nested as in `drop_sentences`; fewer go where the sentences are too
    short.
    """
    words = [(i, word) for i in layout.own("sentence") for word in _words(layout, i)]
    if len(words) < 2:
        raise Unchanged("fewer than two words can be dropped")
    remaining = Counter(i for i, _ in words)
    target = count_of(share, len(words), len(words) - 1)
    spans: list[Span] = []
    dropped = 0
    for k in rng.permutation(len(words)):
        i, word = words[int(k)]
        if dropped == target:
            break
        if remaining[i] > 1:
            remaining[i] -= 1
            dropped += 1
            start, end = _with_blanks(layout.text, layout.parts[i], word)
            for copy in (i, *layout.copies.get(i, ())):
                shift = layout.parts[copy].start - layout.parts[i].start
                spans.append((start + shift, end + shift))
    if not dropped:
        raise Unchanged("every sentence has only one word that can be dropped")
    wide = []
    for start, end in merged(spans):
        if start == 0 or layout.text[start - 1] in " \t\n":
            while end < len(layout.text) and layout.text[end] in " \t":
                end += 1
        wide.append((start, end))
    return [Edit(start, end, "") for start, end in merged(wide)]


def _words(layout: Layout, index: int) -> list[re.Match[str]]:
    text, part = layout.text, layout.parts[index]
    marker = MARKER.match(text, part.start, part.end)
    spans = protected(text, part.start, part.end)
    words = []
    for token in _TOKEN.finditer(text, marker.end() if marker else part.start, part.end):
        word = _WORD.fullmatch(text, token.start(), token.end())
        if word is None or spans.overlap(*token.span()) or (word["lead"] and word["trail"]):
            continue
        if any(c.isalnum() for c in word["core"]) and not _SIGNS.intersection(word["core"]):
            words.append(word)
    return words


def _with_blanks(text: str, part: TextPart, word: re.Match[str]) -> Span:
    """Return a word with the blanks before it, or behind it at the start of a line."""
    start, end = word.span("core")
    first = start == part.start or text[start - 1] == "\n"
    if first or word["trail"] == ",":
        end = word.end()
    if first or word["lead"]:
        while end < part.end and text[end] in " \t":
            end += 1
    else:
        while start > part.start and text[start - 1] in " \t":
            start -= 1
    return start, end
