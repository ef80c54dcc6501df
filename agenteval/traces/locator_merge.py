"""Merge the readings of the parts of a trace into one list of findings.

The same span and category in several parts, areas or repeats is one finding. Its votes are the
repeats that named it; its confidence is

    share of votes  ×  mean of the confidences stated with them

where the share counts only repeats that read the span and were asked for the category. Without a
stated confidence it is the share alone, and unknown after a single reading, since one vote measures
nothing.

Errors of one category whose quotes or descriptions are nearly the same text (`alike`) are one
error made again: it is kept at its first span, or at its last if the category says so (TRAIL,
arXiv 2505.08638, the judge's instructions: first instance, last for Resource Abuse).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rapidfuzz import fuzz

from agenteval.records import Finding, Impact, Rejected, Run
from agenteval.traces.condense import TracePiece
from agenteval.traces.locator_reply import CheckedFinding
from agenteval.traces.part_reader import PartReading
from agenteval.traces.taxonomy import Leaf, Taxonomy

SAME = 90.0  # similarity (0 to 100) from which two errors of a kind are the same error
_GRAVITY: Mapping[Impact | None, int] = {"HIGH": 3, "MEDIUM": 2, "LOW": 1, None: 0}
_COMPARED = 400  # characters
_MIN_DESCRIPTION = 40  # characters; shorter ones name a kind of error, not an error


def merge(
    readings: Sequence[PartReading], pieces: Sequence[TracePiece], taxonomy: Taxonomy
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    """Return the findings in the order of the trace, then of the taxonomy; and those left out.

    The result does not depend on the order of the readings.
    """
    votes: dict[tuple[str, str], dict[int, list[CheckedFinding]]] = {}
    readers: dict[tuple[str | None, str], set[int]] = {}  # repeats, by area and index
    for reading in readings:
        for entry in reading.findings:
            by_repeat = votes.setdefault((entry.index, entry.category), {})
            by_repeat.setdefault(reading.repeat, []).append(entry)
        for index in reading.shown if reading.status is None else ():
            readers.setdefault((reading.area, index), set()).add(reading.repeat)
    broad = any(reading.area is None for reading in readings)
    position = {piece.index: i for i, piece in enumerate(pieces)}
    merged: list[tuple[int, Finding]] = []
    rejected: list[Rejected] = []
    for leaf in taxonomy.leaves:
        findings = []
        for piece in pieces:
            if by_repeat := votes.get((piece.index, leaf.name), {}):
                read = readers.get((None if broad else leaf.area, piece.index), set())
                finding = _finding(piece.span, by_repeat, len(read | set(by_repeat)))
                findings.append((piece.index, finding))
        distinct, repeated = _distinct(findings, leaf)
        merged += [(position[index], finding) for index, finding in distinct]
        rejected += repeated
    merged.sort(key=lambda entry: entry[0])
    return tuple(finding for _, finding in merged), tuple(rejected)


def _finding(span: str, votes: Mapping[int, Sequence[CheckedFinding]], read: int) -> Finding:
    """Return one finding for all votes, in the words of the most confident one."""
    entries = [entry for repeat in sorted(votes) for entry in votes[repeat]]
    best = min(entries, key=lambda n: (-(n.confidence or 0), n.evidence, n.description))
    impacts: list[Impact | None] = [n.impact for n in entries if n.impact is not None]
    return Finding(
        span=span,
        category=best.category,
        evidence=best.evidence,
        description=best.description,
        impact=max(impacts, key=lambda i: (impacts.count(i), _GRAVITY[i]), default=None),
        confidence=confidence(votes, read),
        source="locator",
    )


def confidence(votes: Mapping[int, Sequence[CheckedFinding]], read: int) -> float | None:
    """Return the share of votes times the mean of the stated confidences; see the module.

    A repeat that named the error in two overlapping parts counts once, with its higher one.
    """
    share = len(votes) / read
    stated = [
        max(confidences)
        for entries in votes.values()
        if (confidences := [n.confidence for n in entries if n.confidence is not None])
    ]
    if stated:
        return share * math.fsum(stated) / len(stated)
    return share if read > 1 else None


def _distinct(
    findings: Sequence[tuple[str, Finding]], leaf: Leaf
) -> tuple[list[tuple[str, Finding]], list[Rejected]]:
    """Findings of one leaf, by index, without repetitions of the same error; and those."""
    last = leaf.locate == "last"
    distinct: list[tuple[str, Finding]] = []
    repeated = []
    for index, finding in reversed(findings) if last else findings:
        first = next((at for at, other in distinct if alike(finding, other, renumbered=last)), None)
        if first is None:
            distinct.append((index, finding))
            continue
        why = f"the error of {first} again: its {leaf.locate} span is marked"
        stated = finding.model_dump(mode="json", exclude={"span", "source"})
        repeated.append(Rejected(why=why, said={"index": index, **stated}))
    return distinct, repeated


def alike(first: Finding, second: Finding, *, renumbered: bool) -> bool:
    """Return whether two findings of one leaf are the same error.

    They are if their quotes or their descriptions (from 40 characters) reach SAME by normalized
    Indel similarity (0 to 100) and their numbers are equal. With `renumbered` numbers may differ:
    errors that are marked at their last span are repetitions by nature.
    """
    pairs = [(first.evidence, second.evidence)]
    if min(len(first.description), len(second.description)) >= _MIN_DESCRIPTION:
        pairs.append((first.description, second.description))
    for a, b in pairs:
        (text_a, numbers_a), (text_b, numbers_b) = _compared(a), _compared(b)
        same_numbers = renumbered or numbers_a == numbers_b
        if a and b and same_numbers and fuzz.ratio(text_a, text_b, score_cutoff=SAME) >= SAME:
            return True
    return False


@lru_cache(maxsize=4096)  # every finding is compared with many
def _compared(text: str) -> tuple[str, list[str]]:
    """The beginning of a text as it is compared, and the numbers in it."""
    plain = " ".join(text[:_COMPARED].casefold().split())
    return plain, re.findall(r"\d+", plain)


def with_hints(
    findings: Sequence[Finding], hints: Sequence[Finding], run: Run, taxonomy: Taxonomy
) -> tuple[Finding, ...]:
    """Add the findings of detectors, which replace the judge's on the same span and category.

    In the order of the trace, then of the taxonomy, then of their sources.
    """
    position = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    rank = {leaf.name: i for i, leaf in enumerate(taxonomy.leaves)}
    hinted = {(hint.span, hint.category) for hint in hints}
    both = [*(f for f in findings if (f.span, f.category) not in hinted), *hints]
    both.sort(key=lambda f: (position[f.span], rank[f.category], f.source, f.evidence))
    return tuple(both)
