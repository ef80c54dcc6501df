"""Controls: changes of white space and of Markdown that must not change a score.

Each takes a layout, a share and a generator and returns edits, or raises Unchanged with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from agenteval.utility.perturb.layout import MARKER, Edit, Layout, TextPart, Unchanged, protected

_WORD_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?!\*)")
_BULLET = re.compile(r"[-*](?=\s)")
_HEADING = re.compile(r"(#{1,6})[ \t]+([^\n*#]+?)[ \t]*")
_MARKUP = frozenset("*_`$\\[]|<>#~")
_ENDS = re.compile(r".*[.!?]", re.S)


def whitespace(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Widen about half of the gaps between sentences: two blanks, or one more empty line.

    Single line breaks stay, since Markdown reads more into them. Where no gap of these kinds is
    between the system's sentences, one in five gaps between words is doubled. Visible characters
    stay exactly as they are. At least one gap changes.
    """
    text, parts = layout.text, layout.parts
    pool = layout.sentences()
    gaps: list[tuple[int, str]] = []  # where, and what to add there
    for i, k in pairwise(layout.with_copies(pool)):
        gap = text[parts[i].end : parts[k].start]
        if parts[i].turn == parts[k].turn and k == i + 1 and (gap == " " or gap.count("\n") > 1):
            gaps.append((parts[i].end, " " if gap == " " else "\n"))
    chance = 0.5 if gaps else 0.2
    if not gaps:
        for i in pool:
            spans = protected(text, parts[i].start, parts[i].end)
            matches = _WORD_GAP.finditer(text, parts[i].start, parts[i].end)
            gaps += [(m.end(), " ") for m in matches if not spans.over(m.start())]
    if not gaps:
        raise Unchanged("there is no gap between two words or sentences")
    drawn = rng.random(len(gaps))
    chosen = [gap for gap, d in zip(gaps, drawn, strict=True) if d < chance]
    return [Edit(at, at, blank) for at, blank in chosen or [gaps[int(drawn.argmin())]]]


def formatting(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Toggle Markdown: bold, signs of bullets, headings; words and formulas stay.

    Bold becomes plain, "- " becomes "* " and the other way, a Markdown heading becomes a bold
    line. Where the text has none of these, a quarter of the sentences (at least one) become bold,
    or the sentences of one paragraph become bullets; which, is drawn at random. Code stays.
    """
    toggled = [
        edit
        for part in layout.parts
        if layout.turns[part.turn].own and part.kind in ("sentence", "fixed")
        for edit in _toggles(layout.text, part)
    ]
    return toggled or _added(layout, rng)


def _toggles(text: str, part: TextPart) -> Iterator[Edit]:
    heading = _HEADING.fullmatch(text, part.start, part.end)
    if heading:
        full_line = text[part.end : part.end + 1] in ("", "\n", "\r")
        if full_line and part.kind == "fixed" and not _MARKUP.intersection(heading[2]):
            yield Edit(part.start, part.end, f"**{heading[2]}**")
        return
    if part.kind != "sentence":
        return
    bullet = _BULLET.match(text, part.start, part.end)
    if bullet and (part.start == 0 or text[part.start - 1].isspace()):
        yield Edit(part.start, part.start + 1, "*" if bullet[0] == "-" else "-")
    spans = protected(text, part.start, part.end)
    for bold in _BOLD.finditer(text, part.start, part.end):
        inner = bold[1]
        listed = bold.start() == part.start and (MARKER.match(inner) or inner[0] in "#|[`~>")
        if not listed and not any(spans.over(p) for p in (bold.start(), bold.end() - 1)):
            yield Edit(*bold.span(), inner)


def _added(layout: Layout, rng: np.random.Generator) -> list[Edit]:
    """Return new Markdown for a text that has none."""
    pool = layout.sentences()
    lists = [p for p in _paragraphs(layout, pool) if len(p) > 2]
    plain = [i for i in pool if not (_MARKUP | {"\n"}).intersection(layout.of(i))]
    if lists and (not plain or rng.random() < 0.5):
        first, *later = (layout.parts[i].start for i in lists[int(rng.integers(len(lists)))])
        return [Edit(first, first, "- "), *(Edit(at - 1, at, "\n- ") for at in later)]
    plain = [i for i in plain if _ENDS.fullmatch(layout.of(i))] or plain
    if not plain:
        raise Unchanged("every sentence already has markup")
    bodies = [
        layout.body(plain[k]) for k in rng.permutation(len(plain))[: (len(plain) + 2) // 4 or 1]
    ]
    return [Edit(start, end, f"**{layout.text[start:end]}**") for start, end in bodies]


def _paragraphs(layout: Layout, pool: list[int]) -> Iterator[list[int]]:
    """Yield the sentences of each paragraph on one line, all complete and without markers."""
    paragraphs: list[list[int]] = []
    for i in pool:
        before = paragraphs[-1][-1] if paragraphs else i
        gap = layout.text[layout.parts[before].end : layout.parts[i].start]
        if i == before + 1 and gap == " ":
            paragraphs[-1].append(i)
        else:
            paragraphs.append([i])
    for paragraph in paragraphs:
        start = layout.parts[paragraph[0]].start
        simple = all(
            layout.body(i)[0] == layout.parts[i].start
            and "\n" not in layout.of(i)
            and _ENDS.fullmatch(layout.of(i))
            for i in paragraph
        )
        if simple and (start == 0 or layout.text[start - 1] == "\n"):
            yield paragraph
