"""From many readings of a trace to one list of findings.

The same span and category named in several parts, areas or repeats is one finding. Its votes are
the repeats that named it; the confidence is

    share of votes  ×  mean of the confidences stated with them

where the share counts only repeats that read the span and were asked for the category. Where no
confidence was stated it is the share alone, and unknown when there was but one reading, since one
vote measures nothing.

Errors of one category whose quotes or descriptions are nearly the same text (`once_each`) are one
error made again: it is kept at its first span, or at its last where the category says so (TRAIL,
arXiv 2505.08638, the judge's instructions: first instance, last for Resource Abuse).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz

from agenteval.evaluators.traces.locator_prompt import LocatorOptions
from agenteval.evaluators.traces.locator_reply import Named
from agenteval.evaluators.traces.taxonomy import Leaf, Taxonomy
from agenteval.records import FailureStatus, Finding, Impact, Rejected, Run

SOURCE = "locator"
UNVERIFIED = "locator:unverified"  # a finding whose quote is not in its span
_GRAVITY: dict[Impact | None, int] = {"HIGH": 3, "MEDIUM": 2, "LOW": 1, None: 0}
_COMPARED = 400  # characters
_TELLING = 40
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a reading gave nothing."""

    status: FailureStatus
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One part of a trace, read once, for one question."""

    part: str  # "S4 to S9"
    area: str | None
    repeat: int
    shown: frozenset[str]
    named: tuple[Named, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    failed: Failed | None = None
    said: int = 0  # entries in the reply
    gap: str | None = None  # what is missing of a reply that could be read in part


@dataclass(frozen=True, slots=True)
class Spot:
    """A span that can be marked: its id, and its place in the trace."""

    span: str
    place: int


@dataclass(slots=True)
class _Votes:
    by_repeat: dict[int, list[Named]] = field(default_factory=dict)

    @property
    def all(self) -> list[Named]:
        return [named for repeat in sorted(self.by_repeat) for named in self.by_repeat[repeat]]


def merge(
    readings: Sequence[Reading],
    spots: Mapping[str, Spot],
    taxonomy: Taxonomy,
    options: LocatorOptions,
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    """The findings in the order of the trace, then of the taxonomy; and those left out.

    `spots` are by index. The result does not depend on the order of the readings.
    """
    votes = _count(readings)
    readers = _readers(readings)
    areas = {leaf.name: leaf.area for leaf in taxonomy.leaves}
    rank = {leaf.name: i for i, leaf in enumerate(taxonomy.leaves)}
    kept: list[tuple[Spot, Finding]] = []
    rejected: list[Rejected] = []
    for index, category in sorted(votes, key=lambda k: (spots[k[0]].place, rank[k[1]])):
        found = votes[index, category]
        area = areas[category] if options.mode == "areas" else None
        read = readers.get((area, index), set()) | set(found.by_repeat)
        finding = _finding(spots[index].span, category, found, len(read))
        if len(found.by_repeat) < options.min_votes:
            why = f"named by {len(found.by_repeat)} of {len(read)} readings"
            rejected.append(Rejected(why=why, said=_said(index, finding)))
        else:
            kept.append((spots[index], finding))
    names = {spot.span: index for index, spot in spots.items()}
    once: list[tuple[Spot, Finding]] = []
    for leaf in taxonomy.leaves:
        mine = [(s, f) for s, f in kept if f.category == leaf.name]
        stay, again = once_each(mine, leaf, options.same)
        once += stay
        rejected += [
            Rejected(
                why=f"the error of {names[first.span]} again: its {leaf.locate} span is marked",
                said=_said(names[finding.span], finding),
            )
            for finding, first in again
        ]
    once.sort(key=lambda pair: (pair[0].place, rank[pair[1].category]))
    return tuple(f for _, f in once), tuple(rejected)


def _said(index: str, finding: Finding) -> dict[str, Any]:
    return {"index": index, **finding.model_dump(mode="json", exclude={"span", "source"})}


def _count(readings: Sequence[Reading]) -> dict[tuple[str, str], _Votes]:
    votes: dict[tuple[str, str], _Votes] = {}
    for reading in readings:
        for named in reading.named:
            found = votes.setdefault((named.index, named.category), _Votes())
            found.by_repeat.setdefault(reading.repeat, []).append(named)
    return votes


def _readers(readings: Sequence[Reading]) -> dict[tuple[str | None, str], set[int]]:
    """The repeats that read a span, by area asked for and index."""
    readers: dict[tuple[str | None, str], set[int]] = {}
    for reading in readings:
        for index in reading.shown if reading.failed is None else ():
            readers.setdefault((reading.area, index), set()).add(reading.repeat)
    return readers


def _finding(span: str, category: str, votes: _Votes, read: int) -> Finding:
    """One finding of all votes; its words are those of the surest vote with a verified quote."""
    best = min(
        votes.all,
        key=lambda n: (not n.verified, -(n.confidence or 0), n.evidence, n.description),
    )
    impacts: list[Impact | None] = [n.impact for n in votes.all if n.impact is not None]
    impact = max(impacts, key=lambda i: (impacts.count(i), _GRAVITY[i])) if impacts else None
    return Finding(
        span=span,
        category=category,
        evidence=best.evidence,
        description=best.description,
        impact=impact,
        confidence=confidence(votes.by_repeat, read),
        source=SOURCE if best.verified else UNVERIFIED,
    )


def confidence(by_repeat: Mapping[int, Sequence[Named]], read: int) -> float | None:
    """Share of votes times the mean of the confidences stated; see the module.

    A repeat that named the error in two overlapping parts counts once, with its higher one.
    """
    share = len(by_repeat) / read
    stated = [
        max(known)
        for said in by_repeat.values()
        if (known := [n.confidence for n in said if n.confidence is not None])
    ]
    if stated:
        return share * math.fsum(stated) / len(stated)
    return share if read > 1 else None


def once_each(
    found: Sequence[tuple[Spot, Finding]], leaf: Leaf, same: float | None
) -> tuple[list[tuple[Spot, Finding]], list[tuple[Finding, Finding]]]:
    """Findings of one leaf without those that are another one made again.

    Returns what stays, and (again, kept) pairs. Two are the same error when their quotes or their
    descriptions reach `same` by normalised Indel similarity (0 to 100) and their numbers are equal;
    kinds marked at their last span are repetitions by nature, so there numbers may differ. A
    description counts from 40 characters on: shorter ones name a kind of error, not an error. With
    None all stay.
    """
    if same is None:
        return list(found), []
    ordered = sorted(found, key=lambda pair: pair[0].place, reverse=leaf.locate == "last")
    stay: list[tuple[Spot, Finding]] = []
    again: list[tuple[Finding, Finding]] = []
    for spot, finding in ordered:
        first = next(
            (kept for _, kept in stay if alike(finding, kept, same, leaf.locate == "last")), None
        )
        if first is None:
            stay.append((spot, finding))
        else:
            again.append((finding, first))
    return stay, again


def alike(one: Finding, other: Finding, same: float, renumbered: bool) -> bool:
    """Whether both say the same in their quote or in their description; see `once_each`."""
    pairs = [(one.evidence, other.evidence)]
    if min(len(one.description), len(other.description)) >= _TELLING:
        pairs.append((one.description, other.description))
    return any(a and b and _alike(_told(a), _told(b), same, renumbered) for a, b in pairs)


_Told = tuple[str, tuple[str, ...]]


def _alike(a: _Told, b: _Told, same: float, renumbered: bool) -> bool:
    return (renumbered or a[1] == b[1]) and fuzz.ratio(a[0], b[0], score_cutoff=same) >= same


@lru_cache(maxsize=4096)  # every finding is compared with many
def _told(text: str) -> _Told:
    """What is compared of a text, and the numbers in it."""
    plain = " ".join(text[:_COMPARED].casefold().split())
    return plain, tuple(_NUMBER.findall(plain))


def with_hints(
    findings: Iterable[Finding], hints: Iterable[Finding], run: Run, taxonomy: Taxonomy
) -> tuple[Finding, ...]:
    """The findings and those of rules, which stand for the judge's on the same span and category.

    In the order of the trace, then of the taxonomy, then of their sources.
    """
    place: dict[str, int] = {}
    for span in run.spans:
        place.setdefault(span.id, len(place))
    rank = {leaf.name: i for i, leaf in enumerate(taxonomy.leaves)}
    certain = list(hints)
    known = {(hint.span, hint.category) for hint in certain}
    both = [*(f for f in findings if (f.span, f.category) not in known), *certain]
    end = len(place)
    return tuple(
        sorted(both, key=lambda f: (place.get(f.span, end), rank[f.category], f.source, f.evidence))
    )
