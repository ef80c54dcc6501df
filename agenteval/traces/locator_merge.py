"""From many readings of a trace to one list of findings.

The same span and category named in several parts, areas or repeats is one finding. Its votes are
the repeats that named it; the confidence is

    share of votes  ×  mean of the confidences stated with them

where the share counts only repeats that read the span and were asked for the category. Where no
confidence was stated it is the share alone, and unknown when there was but one reading, since one
vote measures nothing.

Errors of one category whose quotes or descriptions are nearly the same text (`alike`) are one
error made again: it is kept at its first span, or at its last where the category says so (TRAIL,
arXiv 2505.08638, the judge's instructions: first instance, last for Resource Abuse).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from agenteval.records import FailureStatus, Finding, Impact, Rejected, Run
from agenteval.traces.locator_reply import Named
from agenteval.traces.pieces import TracePiece
from agenteval.traces.taxonomy import Leaf, Taxonomy

SAME = 90.0  # likeness (to 100) from which two errors of a kind are one, again
_GRAVITY: Mapping[Impact | None, int] = {"HIGH": 3, "MEDIUM": 2, "LOW": 1, None: 0}
_COMPARED = 400  # characters
_TELLING = 40
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PartReading:
    """One part of a trace, read once, for one question.

    `status` and `message` say why a reading gave nothing; `said` counts the entries in the reply,
    `gap` is what is missing of one that could be read in part.
    """

    part: str  # "S4 to S9"
    area: str | None
    repeat: int
    shown: frozenset[str]
    named: tuple[Named, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    status: FailureStatus | None = None
    message: str = ""
    said: int = 0
    gap: str | None = None


def merge(
    readings: Sequence[PartReading], pieces: Sequence[TracePiece], taxonomy: Taxonomy
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    """The findings in the order of the trace, then of the taxonomy; and those left out.

    The result does not depend on the order of the readings.
    """
    votes: dict[tuple[str, str], dict[int, list[Named]]] = {}
    readers: dict[tuple[str | None, str], set[int]] = {}  # repeats, by area asked for and index
    areas: set[str | None] = set()
    for reading in readings:
        areas.add(reading.area)
        for named in reading.named:
            by_repeat = votes.setdefault((named.index, named.category), {})
            by_repeat.setdefault(reading.repeat, []).append(named)
        for index in reading.shown if reading.status is None else ():
            readers.setdefault((reading.area, index), set()).add(reading.repeat)
    leaves = {leaf.name: leaf for leaf in taxonomy.leaves}
    spans = {piece.index: piece.span for piece in pieces}
    by_leaf: dict[str, list[tuple[str, Finding]]] = {name: [] for name in leaves}
    for index in spans:
        for name, leaf in leaves.items():
            if by_repeat := votes.get((index, name), {}):
                area = None if None in areas else leaf.area
                read = readers.get((area, index), set()) | set(by_repeat)
                by_leaf[name].append((index, _finding(spans[index], by_repeat, len(read))))
    rejected: list[Rejected] = []
    once: list[tuple[str, Finding]] = []
    for name, findings in by_leaf.items():
        once += _once_each(findings, leaves[name], rejected)
    place, rank = (dict(zip(names, range(len(names)), strict=True)) for names in (spans, leaves))
    once.sort(key=lambda pair: (place[pair[0]], rank[pair[1].category]))
    return tuple(f for _, f in once), tuple(rejected)


def _finding(span: str, votes: Mapping[int, Sequence[Named]], read: int) -> Finding:
    """One finding of all votes; its words are those of the surest."""
    every = [named for repeat in sorted(votes) for named in votes[repeat]]
    best = min(every, key=lambda n: (-(n.confidence or 0), n.evidence, n.description))
    impacts: list[Impact | None] = [n.impact for n in every if n.impact is not None]
    return Finding(
        span=span,
        category=best.category,
        evidence=best.evidence,
        description=best.description,
        impact=max(impacts, key=lambda i: (impacts.count(i), _GRAVITY[i]), default=None),
        confidence=confidence(votes, read),
        source="locator",
    )


def confidence(by_repeat: Mapping[int, Sequence[Named]], read: int) -> float | None:
    """Share of votes times the mean of the confidences stated; see the module.

    A repeat that named the error in two overlapping parts counts once, with its higher one.
    """
    share = len(by_repeat) / read
    stated = [
        max(confidences)
        for votes_of_one in by_repeat.values()
        if (confidences := [n.confidence for n in votes_of_one if n.confidence is not None])
    ]
    if stated:
        return share * math.fsum(stated) / len(stated)
    return share if read > 1 else None


def _once_each(
    findings: Sequence[tuple[str, Finding]], leaf: Leaf, rejected: list[Rejected]
) -> list[tuple[str, Finding]]:
    """Findings of one leaf without those that are another one made again, which are rejected."""
    last = leaf.locate == "last"
    stay: list[tuple[str, Finding]] = []
    for index, finding in reversed(findings) if last else findings:
        first = next((at for at, other in stay if alike(finding, other, renumbered=last)), None)
        if first is None:
            stay.append((index, finding))
            continue
        why = f"the error of {first} again: its {leaf.locate} span is marked"
        stated = finding.model_dump(mode="json", exclude={"span", "source"})
        rejected.append(Rejected(why=why, said={"index": index, **stated}))
    return stay


def alike(first: Finding, second: Finding, *, renumbered: bool) -> bool:
    """Whether two findings of one leaf are the same error.

    They are when their quotes or their descriptions reach SAME by normalised Indel similarity (0
    to 100) and their numbers are equal; kinds marked at their last span are repetitions by nature,
    so there numbers may differ (`renumbered`). A description counts from 40 characters on: shorter
    ones name a kind of error, not an error.
    """
    pairs = [(first.evidence, second.evidence)]
    if min(len(first.description), len(second.description)) >= _TELLING:
        pairs.append((first.description, second.description))
    for a, b in pairs:
        (text, numbers), (text_b, numbers_b) = _compared(a), _compared(b)
        same_numbers = renumbered or numbers == numbers_b
        if a and b and same_numbers and fuzz.ratio(text, text_b, score_cutoff=SAME) >= SAME:
            return True
    return False


@lru_cache(maxsize=4096)  # every finding is compared with many
def _compared(text: str) -> tuple[str, list[str]]:
    """What is compared of a text, and the numbers in it."""
    plain = " ".join(text[:_COMPARED].casefold().split())
    return plain, _NUMBER.findall(plain)


def with_hints(
    findings: Iterable[Finding], hints: Sequence[Finding], run: Run, taxonomy: Taxonomy
) -> tuple[Finding, ...]:
    """The findings and those of rules, which stand for the judge's on the same span and category.

    In the order of the trace, then of the taxonomy, then of their sources.
    """
    place = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    rank = {leaf.name: i for i, leaf in enumerate(taxonomy.leaves)}
    hinted = {(hint.span, hint.category) for hint in hints}
    both = [*(f for f in findings if (f.span, f.category) not in hinted), *hints]
    end = len(place)
    return tuple(
        sorted(both, key=lambda f: (place.get(f.span, end), rank[f.category], f.source, f.evidence))
    )
