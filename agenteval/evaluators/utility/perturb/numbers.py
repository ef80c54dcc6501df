"""swap_numbers: other numbers of the same length, so that length says nothing."""

from __future__ import annotations

import re

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, nothing
from agenteval.evaluators.utility.perturb.layout import Layout, Spans, merged, protected

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


def swap_numbers(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """A random share of the numbers the system wrote get another value of the same length.

    One digit changes, a first digit never to 0. Every occurrence is drawn on its own: equal
    numbers do not change together (a consistent renaming can leave a sound solution of another
    problem). Prose, formulas and code count; list and step numbers, dates in digits, clock times,
    versions, names, addresses, and numbers written as words do not. Days beside a month stay
    within 1 to 28, years within their century. Counted half up, at least 1, at most all.
    """
    found = _numbers(layout)
    if not found:
        parts = layout.own("sentence", "code")
        return nothing("no number that may be swapped" if parts else layout.why_nothing())
    order = rng.permutation(len(found))
    seeds = rng.integers(0, 2**63, size=len(found))
    wanted = min(len(found), max(1, int(share * len(found) + 0.5)))
    edits: list[Edit] = []
    pairs: list[str] = []
    for k in order[:wanted]:
        i, start, end = found[int(k)]
        new = _other(layout.text, start, end, np.random.default_rng(int(seeds[k])))
        for copy in (i, *layout.copies.get(i, ())):
            shift = layout.parts[copy].start - layout.parts[i].start
            edits.append(Edit(start + shift, end + shift, new))
        pairs.append(f"{layout.text[start:end]} → {new}")
    return Change(
        edits=tuple(sorted(edits)),
        applied=wanted,
        of=len(found),
        removed=tuple(layout.text[found[k][1] : found[k][2]] for k in sorted(order[:wanted])),
        detail="; ".join(pairs),
    )


def _numbers(layout: Layout) -> list[tuple[int, int, int]]:
    """(part, start, end) of every number that may change."""
    found = []
    for i in layout.own("sentence", "code"):
        part = layout.parts[i]
        start, end = part.start, part.end
        code = part.kind == "code"
        if code:  # the info string of the fence is no content
            line = layout.text.find("\n", start, end)
            start = end if line < 0 else line
        else:
            start = layout.body(i)[0]
        spans = _fixed(layout.text, start, end, code)
        for match in _NUMBER.finditer(layout.text, start, end):
            if not spans.overlap(*match.span()):
                found.append((i, *match.span()))
    return found


def _fixed(text: str, start: int, end: int, code: bool) -> Spans:
    dates = [m.span() for m in _DATE.finditer(text, start, end)]
    links = [] if code else protected(text, start, end, formulas=False).spans
    return Spans(merged([*dates, *links]))


def _other(text: str, start: int, end: int, rng: np.random.Generator) -> str:
    """A number of equal length and different value for text[start:end]."""
    number = text[start:end]
    near = _MONTH_AFTER.match(text, end) or _MONTH_BEFORE.search(text[max(0, start - 12) : start])
    if near and _DAY.fullmatch(number):
        days = range(1, 10) if len(number) == 1 else range(10, 29)
        return str(rng.choice([d for d in days if d != int(number)]))
    places = [k for k, c in enumerate(number) if c.isdigit()]
    if _YEAR.fullmatch(number):
        places = places[2:]
    place = int(rng.choice(places))
    others = [d for d in "0123456789" if d != number[place] and (place or d != "0")]
    return number[:place] + str(rng.choice(others)) + number[place + 1 :]
