"""Operators that keep the content or its length: reordering, changed numbers, padding, and the
controls.

Each takes a layout, a share and a generator and returns edits, or raises Unchanged with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

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
from agenteval.utility.sentences import Spans

_FULL_MARK = re.compile(r"[.!?…。！？][)\]\"'”’»*_$]*\Z")
_ENDS = re.compile(r".*[.!?…][)\]\"'”’»*_]*", re.S)
# A number in digits: 7, 2.75, 1,000, 297,50. Not inside a name (x1), a time (9:40), a version
# (4.2.0), a date with two slashes or hyphens, nor before letters and digits (0x1F, 3D printers).
_NUMBER = re.compile(
    r"(?<![\w\\])(?<!\d[.:])(?<!\d,)(?<!_\{)"
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:[.,][0-9]+)?)"
    r"(?![0-9]|[.,:][0-9]|(?:st|nd|rd|th|D)\b|[^\W\d_]{4}|[^\W\d]*[0-9])"
)
_DATE = re.compile(
    r"\b[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}\b"
    r"|(?:\b(?:Step|Case|Part|Phase|Fig\.|Figure|Eq\.|Table|Section)\s+)[0-9]+"
)
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_MONTH_AFTER = re.compile(rf"\s+{_MONTH}\b")
_MONTH_BEFORE = re.compile(rf"\b{_MONTH}\.?\s+\Z")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_DAY = re.compile(r"[1-9]|[12][0-9]|3[01]")
_WORD_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?!\*)")
_BULLET = re.compile(r"[-*](?=\s)")
_HEADING = re.compile(r"(#{1,6})[ \t]+([^\n*#]+?)[ \t]*")
_MARKUP = frozenset("*_`$\\[]|<>#~")
_FULL_STOP = re.compile(r".*[.!?]", re.S)
# Phrases without content in any task: no claims, numbers, praise, blame or addressees.
FILLERS = (
    "This is something that may be mentioned here.",
    "It is perhaps worth pausing at this point for a moment.",
    "There is of course more than one way of putting it.",
    "All of this has its place in the overall picture.",
    "One thing follows another, as is so often the case.",
    "It should be kept in mind that this is one part of the whole.",
    "With that said, there is the rest to be looked at as well.",
    "As things stand, this is where matters are.",
    "Much the same could also be said in other words.",
    "That is the way it goes in cases of this kind.",
    "It goes without saying that this belongs here too.",
    "In a manner of speaking, that is what this part is about.",
    "What has been said so far may be taken as said.",
    "Generally speaking, it is what it is.",
    "This remark is made here for the sake of making it.",
    "So much for this point, and on to the next one.",
    "At the end of the day, everything comes in its turn.",
    "It may be noted in passing that this has been noted.",
    "All things considered, that is how it may be viewed.",
    "Needless to say, there is no need to say more about it.",
)


def shuffle_sentences(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Reorder the sentences within the turns of each speaker; the order always changes.

    Turns with the same heading share a pool, so sentences may move from a speaker's first turn to
    its last, but never to another speaker; [final output] is a pool of its own. List
    numbers and bullets stay where they are, their contents move: numbers out of order would tell
    of the shuffling. So would "Dear Ann," in the middle of a line: what ends its line without a
    full mark moves only to a place that ends a line, and to a line of its own if it had one. A
    speaker with fewer than two different sentences is left alone.
    """
    pools: dict[str | None, list[int]] = {}
    for i in layout.with_copies(layout.sentences()):
        pools.setdefault(layout.turns[layout.parts[i].turn].heading, []).append(i)
    edits: list[Edit] = []
    for slots in pools.values():
        spans = [layout.body(i) for i in slots]
        sentences = [layout.text[start:end] for start, end in spans]
        if len(set(sentences)) < 2:
            continue
        lines = [_line(layout, i) for i in slots]
        reordered = _other_order(sentences, lines, rng)
        edits += [
            Edit(start, end, after)
            for (start, end), before, after in zip(spans, sentences, reordered, strict=True)
            if before != after
        ]
    if not edits:
        raise Unchanged("no speaker has two different sentences to exchange")
    return edits


def _line(layout: Layout, index: int) -> int:
    """Return 2 when a sentence has a line for itself, 1 when it ends its line, else 0."""
    part = layout.parts[index]
    if layout.text[part.end : part.end + 1] not in ("", "\n", "\r"):
        return 0
    return 2 if layout.text[max(0, part.start - 1) : part.start] in ("", "\n") else 1


def _other_order(sentences: list[str], lines: list[int], rng: np.random.Generator) -> list[str]:
    """Return another random order; what needs the end of a line gets a place with one."""
    needs = [0 if _FULL_MARK.search(s) else n for s, n in zip(sentences, lines, strict=True)]
    for _ in range(20):
        placed = [-1] * len(needs)
        for need in (2, 1, 0):
            free = [k for k, line in enumerate(lines) if placed[k] < 0 and line >= need]
            wanting = [k for k, n in enumerate(needs) if n == need]
            for place, k in zip(rng.permutation(free)[: len(wanting)], wanting, strict=True):
                placed[int(place)] = k
        reordered = [sentences[k] for k in placed]
        if reordered != sentences:
            return reordered
    other = next(i for i, s in enumerate(sentences) if s != sentences[0])
    swapped = list(sentences)
    swapped[0], swapped[other] = swapped[other], swapped[0]
    return swapped


def swap_numbers(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Give a random share of the system's numbers another value of the same length.

    One digit changes, a first digit never to 0. Every occurrence is drawn on its own: equal
    numbers do not change together (a consistent renaming can leave a sound solution of another
    problem). Prose, formulas and code count; list and step numbers, dates in digits, clock times,
    versions, names, addresses, and numbers written as words do not. Days beside a month stay
    within 1 to 28, years within their century. Counted half up, at least 1, at most all.
    """
    text = layout.text
    numbers: list[tuple[int, int, int]] = []  # part, start, end
    for i in layout.own("sentence", "code") or layout.sentences():
        start, end = layout.body(i)
        fixed = [m.span() for m in _DATE.finditer(text, start, end)]
        if layout.parts[i].kind == "code":  # the info string of a fence is not content
            line = text.find("\n", layout.parts[i].start, end)
            start = end if line < 0 else line
        else:
            fixed += protected(text, start, end, formulas=False).spans
        spans = Spans(merged(fixed))
        for match in _NUMBER.finditer(text, start, end):
            if not spans.overlap(*match.span()):
                numbers.append((i, *match.span()))
    if not numbers:
        raise Unchanged("there is no number to swap")
    order = rng.permutation(len(numbers))
    seeds = rng.integers(0, 2**63, size=len(numbers))
    edits: list[Edit] = []
    for k in order[: count_of(share, len(numbers), len(numbers))]:
        i, start, end = numbers[int(k)]
        new = _other_number(text, start, end, np.random.default_rng(int(seeds[k])))
        for copy in (i, *layout.copies.get(i, ())):
            shift = layout.parts[copy].start - layout.parts[i].start
            edits.append(Edit(start + shift, end + shift, new))
    return edits


def _other_number(text: str, start: int, end: int, rng: np.random.Generator) -> str:
    """Return a number of equal length and different value for text[start:end]."""
    number = text[start:end]
    near = _MONTH_AFTER.match(text, end) or _MONTH_BEFORE.search(text[max(0, start - 12) : start])
    if near and _DAY.fullmatch(number):
        days = range(1, 10) if len(number) == 1 else range(10, 29)
        return str(rng.choice([d for d in days if d != int(number)]))
    places = [k for k, c in enumerate(number) if c.isdigit()]
    if _YEAR.fullmatch(number):
        places = places[2:]
    place = int(rng.choice(places))
    digits = [d for d in "0123456789" if d != number[place] and (place or d != "0")]
    return number[:place] + str(rng.choice(digits)) + number[place + 1 :]


def pad(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Add empty sentences until they make up `share` of the length of the system's prose.

    They stand behind random sentences that end in a full mark; where there is none, on a line of
    their own at the end of a turn's prose. No word of the original changes. At least one phrase is
    added; beyond that the sum is within half a phrase (some 30 characters) of the share. A larger
    share adds to the phrases of a smaller one.
    """
    pool = layout.sentences()
    target = share * sum(layout.parts[i].end - layout.parts[i].start for i in pool)
    places, glue = [layout.parts[i].end for i in pool if _ENDS.fullmatch(layout.of(i))], " "
    if not places:
        places = list({layout.parts[i].turn: layout.parts[i].end for i in pool}.values())
        glue = "\n"
    order = rng.permutation(len(places))
    phrases = rng.permutation(len(FILLERS))
    added: dict[int, str] = {}
    size = count = 0
    while True:
        place = places[int(order[count % len(order)])]
        phrase = glue + FILLERS[int(phrases[count % len(phrases)])]
        if count and size + len(phrase) / 2 > target:  # closer without it
            return [Edit(at, at, new) for at, new in added.items()]
        added[place] = added.get(place, "") + phrase
        size += len(phrase)
        count += 1


# ---- controls: changes of white space and Markdown that must not change a score ------------------


def whitespace(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Widen about half of the gaps between sentences: two blanks, or one more empty line.

    Single line breaks stay, since Markdown reads more into them. Where no gap of these kinds is
    between the system's sentences, one in five gaps between words is doubled. Visible characters
    stay exactly as they are. At least one gap changes.
    """
    text, parts = layout.text, layout.parts
    pool = layout.sentences()
    gaps: list[tuple[int, str]] = []  # position, and text to add there
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
    plain = [i for i in plain if _FULL_STOP.fullmatch(layout.of(i))] or plain
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
            and _FULL_STOP.fullmatch(layout.of(i))
            for i in paragraph
        )
        if simple and (start == 0 or layout.text[start - 1] == "\n"):
            yield paragraph
