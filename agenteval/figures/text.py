"""Words in figures: names that fit, counts that say what they count."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from agenteval.stats import Interval
from agenteval.text import plural

_LONGEST = 100  # characters of a name: a legend's line holds no more


def plain(name: str) -> str:
    """A name as it is meant: control characters shown as such, `$` never read as a formula.

    Of a name above 100 characters the first 98 and an ellipsis: outlines of a name of 100,000
    letters take matplotlib half a minute.
    """
    some = name[: 4 * _LONGEST]
    kept = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in some)
    text = " ".join(kept.split())
    if len(text) > _LONGEST or len(some) < len(name):
        text = f"{text[: _LONGEST - 2].rstrip()} …".lstrip()
    return text.replace("$", r"\$")


def wrapped(name: str, width: int, *, lines: int = 3) -> str:
    """The name in at most `lines` lines of `width` characters; what is cut ends in an ellipsis."""
    parts = textwrap.wrap(plain(name), width, max_lines=lines, placeholder=" …")
    return "\n".join(parts) or "(no name)"


def longest_word(names: Iterable[str]) -> int:
    """Length of the longest piece that cannot be broken at a space or a hyphen."""
    return max((len(p) for n in names for p in plain(n).replace("-", "- ").split()), default=0)


def span(numbers: Iterable[int], word: str) -> str:
    """As in "12 cases" when all are 12, "10 to 12 cases" otherwise, "no cases" without any."""
    found = sorted(set(numbers))
    if not found or found == [0]:
        return f"no {word}s"
    low, high = found[0], found[-1]
    return plural(low, word) if low == high else f"{low:,} to {high:,} {word}s"


def n_label(intervals: Sequence[Interval], each: str = "rating") -> str:
    """As in "n = 12 cases"; with the values too (`each` names one) where a case has more than one.

    A range where the intervals differ. Intervals without values are left out: they are said to be
    empty elsewhere.
    """
    filled = [i for i in intervals if i.n]
    cases = span((i.n_clusters or i.n for i in filled), "case")
    if all(i.n == (i.n_clusters or i.n) for i in filled):
        return f"n = {cases}" if filled else cases
    return f"n = {cases}, {span((i.n for i in filled), each)}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """As in "a, b and c"; beyond `most` names "a, b, c and 4 more"."""
    shown = [plain(n) for n in names[:most]]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
