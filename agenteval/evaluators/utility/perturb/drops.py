"""Operators that take something away: sentences, words, a middle step, the end."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, count_of, nothing, removal
from agenteval.evaluators.utility.perturb.layout import (
    MARKER,
    Layout,
    Part,
    merged,
    protected,
)
from agenteval.readers.view import HEADING

_TOKEN = re.compile(r"\S+")
_WORD = re.compile(r"(?P<lead>[(\"'“‘]*)(?P<core>.*?)(?P<trail>[.,;:!?…)\"'”’]*)")
_SIGNS = frozenset("*_`$\\[]{}|<>#~")
_ONE = "only one sentence, and one must stay"


def drop_sentences(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """A random share of the system's sentences goes, over all its turns (one pool).

    The count is rounded half up, at least 1, at most all but 1. The order in which sentences are
    drawn does not depend on the share, so a larger share drops a superset.
    """
    pool = layout.sentences()
    if len(pool) < 2:
        return nothing(_ONE if pool else layout.why_nothing(), len(pool))
    order = rng.permutation(len(pool))
    chosen = sorted(pool[i] for i in order[: count_of(share, len(pool))])
    return Change(
        edits=removal(layout, layout.with_copies(chosen)),
        applied=len(chosen),
        of=len(pool),
        removed=tuple(layout.of(i) for i in chosen),
        detail=f"{len(chosen)} of {len(pool)} sentences dropped",
    )


def drop_middle(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """One step from the middle third goes.

    A step is a paragraph, list item or one-paragraph turn, if the text has three of them and the
    one dropped holds at most a third of the sentences and is not all that its turn says; otherwise
    it is a sentence. Of n units those from position n // 3 up to n - n // 3 are the middle.
    """
    pool = layout.sentences()
    if len(pool) < 3:
        why = f"{len(pool)} sentences have no middle" if pool else layout.why_nothing()
        return nothing(why if len(pool) != 1 else "one sentence has no middle", len(pool))
    steps = _steps(layout, pool)
    middle = _middle(steps) if len(steps) > 2 else []
    turn_sizes = _turn_sizes(layout)
    fit = [s for s in middle if 3 * len(s) <= len(pool) and _leaves_some(layout, s, turn_sizes)]
    chosen = fit or _middle([[i] for i in pool])
    gone = chosen[int(rng.integers(len(chosen)))]
    what = "paragraph or list item" if fit else "sentence"
    return Change(
        edits=removal(layout, layout.with_copies(gone)),
        applied=len(gone),
        of=len(pool),
        removed=tuple(layout.of(i) for i in gone),
        detail=f"one {what} of the middle third dropped",
    )


def _steps(layout: Layout, pool: list[int]) -> list[list[int]]:
    steps = [[pool[0]]]
    for before, i in pairwise(pool):
        gap = layout.text[layout.parts[before].end : layout.parts[i].start]
        item = "\n" in gap and layout.body(i)[0] > layout.parts[i].start
        apart = i > before + 1 or layout.parts[i].turn != layout.parts[before].turn
        if apart or item or gap.count("\n") > 1:
            steps.append([])
        steps[-1].append(i)
    return steps


def _middle(steps: list[list[int]]) -> list[list[int]]:
    third = len(steps) // 3
    return steps[third : len(steps) - third]


def _turn_sizes(layout: Layout) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for part in layout.parts:
        sizes[part.turn] = sizes.get(part.turn, 0) + 1
    return sizes


def _leaves_some(layout: Layout, step: list[int], sizes: dict[int, int]) -> bool:
    return sizes[layout.parts[step[0]].turn] > len(step)


def truncate(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """The text ends early: the last share of the system's sentences, code blocks and calls goes.

    With them goes everything behind the cut, also what tools and users said there, as in a
    transcript that breaks off. Counted as in `drop_sentences`; copies under [final output] are
    not counted. Nothing is drawn at random. The result is a beginning of the original.
    """
    pool = layout.own("sentence", "code", "call")
    if len(pool) < 2:
        why = "only one sentence, block of code or call" if pool else layout.why_nothing()
        return nothing(why, len(pool))
    gone = pool[-count_of(share, len(pool)) :]
    cut = _end_of_words(layout.text, layout.parts[gone[0]].start)
    return Change(
        edits=(Edit(cut, len(layout.text), ""),),
        applied=len(gone),
        of=len(pool),
        removed=(layout.text[cut:].strip(),),
        detail=f"cut before the last {len(gone)} of {len(pool)} sentences, code blocks and calls",
    )


def _end_of_words(text: str, cut: int) -> int:
    """Where text[:cut] ends without blanks and without headings that nothing follows."""
    while True:
        while cut and text[cut - 1].isspace():
            cut -= 1
        line = max(text.rfind("\n", 0, cut), text.rfind("\r", 0, cut)) + 1
        if not HEADING.match(text[line:cut]):
            return cut
        cut = line


def drop_words(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """A random share of the words in the system's sentences goes.

    A word stands between blanks; a comma goes with it, other punctuation stays. Formulas, inline
    code, addresses, list markers and words with signs of markup stay, and every sentence keeps at
    least one word. Counted and nested as in `drop_sentences`; fewer go where the sentences are too
    short.
    """
    words = [(i, w) for i in layout.sentences() for w in _words(layout.text, layout.parts[i])]
    if len(words) < 2:
        return nothing("fewer than two words that may go", len(words))
    left: dict[int, int] = {}
    for i, _ in words:
        left[i] = left.get(i, 0) + 1
    wanted = count_of(share, len(words))
    chosen: list[tuple[int, re.Match[str]]] = []
    for k in rng.permutation(len(words)):
        i, word = words[int(k)]
        if len(chosen) == wanted:
            break
        if left[i] > 1:
            left[i] -= 1
            chosen.append((i, word))
    if not chosen:
        return nothing("every sentence has only one word that may go", len(words))
    return Change(
        edits=_without(layout, chosen),
        applied=len(chosen),
        of=len(words),
        removed=tuple(w.group("core") for _, w in sorted(chosen, key=lambda c: c[1].start())),
        detail=f"{len(chosen)} of {len(words)} words dropped",
    )


def _words(text: str, part: Part) -> list[re.Match[str]]:
    marker = MARKER.match(text, part.start, part.end)
    spans = protected(text, part.start, part.end)
    words = []
    for token in _TOKEN.finditer(text, marker.end() if marker else part.start, part.end):
        word = _WORD.fullmatch(text, token.start(), token.end())
        if word and _may_go(word) and not spans.overlap(*token.span()):
            words.append(word)
    return words


def _may_go(word: re.Match[str]) -> bool:
    core, lead, trail = word.group("core", "lead", "trail")
    plain = any(c.isalnum() for c in core) and not _SIGNS.intersection(core)
    return plain and not (lead and trail) and not set("()") & set(core)


def _without(layout: Layout, chosen: list[tuple[int, re.Match[str]]]) -> tuple[Edit, ...]:
    """Edits for the words and for the same words in the sentences' copies."""
    spans: list[tuple[int, int]] = []
    for i, word in chosen:
        start, end = _word_span(layout.text, layout.parts[i], word)
        origin = layout.parts[i].start
        for copy in (i, *layout.copies.get(i, ())):
            shift = layout.parts[copy].start - origin
            spans.append((start + shift, end + shift))
    wide = []
    for start, end in merged(spans):
        if start == 0 or layout.text[start - 1] in " \t\n":
            while end < len(layout.text) and layout.text[end] in " \t":
                end += 1
        wide.append((start, end))
    return tuple(Edit(start, end, "") for start, end in merged(wide))


def _word_span(text: str, part: Part, word: re.Match[str]) -> tuple[int, int]:
    """What goes with a word: the blanks before it, or behind it at a line's start."""
    start, end = word.span("core")
    first = start == part.start or text[start - 1] == "\n"
    if first or word.group("trail") == ",":
        end = word.end()
    if first or word.group("lead"):
        while end < part.end and text[end] in " \t":
            end += 1
    else:
        while start > part.start and text[start - 1] in " \t":
            start -= 1
    return start, end
