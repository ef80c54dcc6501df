"""Controls: changes of white space and of Markdown that must not change a score."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, nothing
from agenteval.evaluators.utility.perturb.layout import MARKER, Layout, Part, protected

_WORD_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?!\*)")
_BULLET = re.compile(r"[-*](?=\s)")
_HEADING = re.compile(r"(#{1,6})[ \t]+([^\n*#]+?)[ \t]*")
_MARKUP = frozenset("*_`$\\[]|<>#~")
_ENDS = re.compile(r".*[.!?]", re.S)


def whitespace(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """About half of the gaps between sentences get wider: two blanks, one more empty line.

    Single line breaks stay, since Markdown reads more into them. Where no gap of these kinds is
    between the system's sentences, one in five gaps between words is doubled. Visible characters
    stay exactly as they are. At least one gap changes.
    """
    gaps = list(_gaps(layout))
    chance = 0.5
    if not gaps:
        chance = 0.2
        gaps = [(m.end(), " ") for i in layout.sentences() for m in _word_gaps(layout, i)]
    if not gaps:
        return nothing("no gap between two words or sentences" if layout.sentences()
                       else layout.why_nothing())  # fmt: skip
    edits = [Edit(at, at, blank) for at, blank in _some(gaps, chance, rng)]
    return Change(
        edits=tuple(edits),
        applied=len(edits),
        of=len(gaps),
        detail=f"{len(edits)} of {len(gaps)} gaps widened",
    )


def _gaps(layout: Layout) -> Iterator[tuple[int, str]]:
    """(position, what to add there) between the system's sentences of one turn."""
    pool = layout.with_copies(layout.sentences())
    for i, k in pairwise(pool):
        before, after = layout.parts[i], layout.parts[k]
        gap = layout.text[before.end : after.start]
        if before.turn != after.turn or k > i + 1:
            continue
        if gap == " ":
            yield before.end, " "
        elif gap.count("\n") > 1:
            yield before.end, "\n"


def _word_gaps(layout: Layout, index: int) -> Iterator[re.Match[str]]:
    part = layout.parts[index]
    spans = protected(layout.text, part.start, part.end)
    for match in _WORD_GAP.finditer(layout.text, part.start, part.end):
        if not spans.over(match.start()):
            yield match


def _some(
    items: list[tuple[int, str]], chance: float, rng: np.random.Generator
) -> list[tuple[int, str]]:
    """Each item with this chance, at least one."""
    drawn = rng.random(len(items))
    chosen = [item for item, d in zip(items, drawn, strict=True) if d < chance]
    return chosen or [items[int(drawn.argmin())]]


def formatting(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """Markdown is toggled: bold, signs of bullets, headings; words and formulas stay.

    Bold becomes plain, "- " becomes "* " and the other way, a Markdown heading becomes a bold
    line. Where the text has none of these, a quarter of the sentences (at least one) become bold,
    or the sentences of one paragraph become bullets; which, is drawn at random. Code stays.
    """
    edits: list[Edit] = []
    kinds: dict[str, int] = {}
    for part in layout.parts:
        if not layout.turns[part.turn].own or part.kind not in ("sentence", "fixed"):
            continue
        for kind, edit in _toggles(layout.text, part):
            edits.append(edit)
            kinds[kind] = kinds.get(kind, 0) + 1
    if not edits:
        kind, edits = _added(layout, rng)
        if not edits:
            why = "every sentence has signs of markup already"
            return nothing(why if layout.sentences() else layout.why_nothing())
        kinds[kind] = len(edits)
    return Change(
        edits=tuple(edits),
        applied=len(edits),
        of=len(edits),
        detail=", ".join(f"{kind} ({n})" for kind, n in kinds.items()),
    )


def _toggles(text: str, part: Part) -> Iterator[tuple[str, Edit]]:
    heading = _HEADING.fullmatch(text, part.start, part.end)
    if heading:
        whole = text[part.end : part.end + 1] in ("", "\n", "\r")
        if whole and part.kind == "fixed" and not _MARKUP.intersection(heading.group(2)):
            yield "headings to bold", Edit(part.start, part.end, f"**{heading.group(2)}**")
        return
    if part.kind != "sentence":
        return
    bullet = _BULLET.match(text, part.start, part.end)
    if bullet and (_at_line_start(text, part) or text[part.start - 1].isspace()):
        new = "*" if bullet.group() == "-" else "-"
        yield "signs of bullets", Edit(part.start, part.start + 1, new)
    spans = protected(text, part.start, part.end)
    for bold in _BOLD.finditer(text, part.start, part.end):
        inner = bold.group(1)
        listed = bold.start() == part.start and (MARKER.match(inner) or inner[0] in "#|[`~>")
        if not listed and not any(spans.over(p) for p in (bold.start(), bold.end() - 1)):
            yield "bold to plain", Edit(*bold.span(), inner)


def _added(layout: Layout, rng: np.random.Generator) -> tuple[str, list[Edit]]:
    """New Markdown for a text that has none."""
    lists = _paragraphs(layout)
    signs = _MARKUP | {"\n"}
    plain = [i for i in layout.sentences() if not signs.intersection(layout.of(i))]
    if lists and (not plain or rng.random() < 0.5):
        chosen = lists[int(rng.integers(len(lists)))]
        return "sentences to bullets", list(_bullets(layout, chosen))
    plain = [i for i in plain if _ENDS.fullmatch(layout.of(i))] or plain
    if not plain:
        return "", []
    some = rng.permutation(len(plain))[: max(1, (len(plain) + 2) // 4)]
    edits = []
    for k in sorted(int(s) for s in some):
        start, end = layout.body(plain[k])
        edits.append(Edit(start, end, f"**{layout.text[start:end]}**"))
    return "plain to bold", edits


def _paragraphs(layout: Layout) -> list[list[int]]:
    """Paragraphs of three or more whole sentences on one line, without markup or markers."""
    found: list[list[int]] = []
    current: list[int] = []
    pool = layout.sentences()
    for before, i in zip([-2, *pool], pool, strict=False):
        gap = layout.text[layout.parts[before].end : layout.parts[i].start] if before >= 0 else "\n"
        if gap != " " or i != before + 1:
            found.append(current)
            current = []
        current.append(i)
    found.append(current)
    long = [p for p in found if len(p) > 2 and _at_line_start(layout.text, layout.parts[p[0]])]
    return [p for p in long if all(_simple(layout, i) for i in p)]


def _at_line_start(text: str, part: Part) -> bool:
    return part.start == 0 or text[part.start - 1] == "\n"


def _simple(layout: Layout, index: int) -> bool:
    shown = layout.of(index)
    unmarked = layout.body(index)[0] == layout.parts[index].start
    return unmarked and "\n" not in shown and _ENDS.fullmatch(shown) is not None


def _bullets(layout: Layout, paragraph: list[int]) -> Iterator[Edit]:
    for at, i in enumerate(paragraph):
        start = layout.parts[i].start
        yield Edit(start - 1 if at else start, start, "\n- " if at else "- ")
