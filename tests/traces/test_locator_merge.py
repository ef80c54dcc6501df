"""Votes, confidences and the first or last instance; expected values worked out by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.records import FailureStatus, Finding, Impact, Run, Span
from agenteval.traces.condense import TracePiece
from agenteval.traces.locator_parts import PartReading, confidence, merge, with_hints
from agenteval.traces.locator_reply import CheckedFinding
from tests.traces.locator_world import TAXONOMY

PIECES = [TracePiece(f"S{i}", f"span-{i}", "llm", "", 1) for i in range(1, 8)]


def named(
    index: str,
    category: str = "Invention",
    sure: float | None = 0.8,
    evidence: str | None = None,
    impact: Impact | None = None,
) -> CheckedFinding:
    words = evidence or f"what stands in {index} {'abcdefgh'[int(index[1:])] * 30}"
    return CheckedFinding(index, category, words, "", impact, sure)


def reading(
    *found: CheckedFinding,
    repeat: int = 0,
    shown: str = "S1 S2 S3",
    area: str | None = None,
    failed: bool = False,
) -> PartReading:
    status: FailureStatus | None = "error:timeout" if failed else None
    return PartReading("part", area, repeat, frozenset(shown.split()), found, status=status)


def merged(*readings: PartReading) -> list[tuple[str, str, float | None]]:
    findings, _ = merge(readings, PIECES, TAXONOMY)
    return [(f.span, f.category, f.confidence and round(f.confidence, 9)) for f in findings]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # 2 of 3 repeats, stated 0.9 and 0.6: 2/3 · 0.75 = 0.5
        (
            [
                reading(named("S1", sure=0.9)),
                reading(named("S1", sure=0.6), repeat=1),
                reading(repeat=2),
            ],
            ("span-1", "Invention", 0.5),
        ),
        # a repeat that did not read the span has no vote
        (
            [
                reading(named("S1", sure=0.9)),
                reading(repeat=1, failed=True),
                reading(repeat=2, shown="S4 S5"),
            ],
            ("span-1", "Invention", 0.9),
        ),
        # only repeats asked for the area count
        (
            [
                reading(named("S1", sure=0.8), area="Thought"),
                reading(area="Thought", repeat=1),
                reading(area="System"),
                reading(area="System", repeat=1),
            ],
            ("span-1", "Invention", 0.4),
        ),
        # overlapping parts of one repeat are one vote with the higher confidence
        (
            [
                reading(named("S3", sure=0.5)),
                reading(named("S3", sure=0.7), shown="S3 S4"),
                reading(repeat=1),
                reading(repeat=1, shown="S3 S4"),
            ],
            ("span-3", "Invention", 0.35),
        ),
    ],
)
def test_share_of_votes_times_mean_confidence(
    rows: list[PartReading], expected: tuple[str, str, float]
) -> None:
    assert merged(*rows) == [expected]


def test_unstated_confidences() -> None:
    unsure = named("S1", sure=None)
    assert confidence({0: [unsure]}, 1) is None  # one vote measures nothing
    assert confidence({0: [unsure], 1: [unsure]}, 4) == 0.5
    assert confidence({0: [unsure], 1: [named("S1", sure=0.6)]}, 4) == pytest.approx(0.3)


AGAIN = "page_down() was called and gave the page that was there before"


@pytest.mark.parametrize(("category", "kept"), [("Invention", "span-2"), ("Waste", "span-5")])
def test_the_same_again_is_marked_first_or_last(category: str, kept: str) -> None:
    rows = [
        reading(named("S2", category, evidence=AGAIN + " (a)")),
        reading(named("S4", category, evidence=AGAIN + " (b)"), shown="S4"),
        reading(named("S5", category, evidence=AGAIN + " (c)"), shown="S5"),
        reading(named("S3", category, evidence="another thing altogether went wrong here")),
    ]
    assert [span for span, _, _ in merged(*rows)] == sorted([kept, "span-3"])
    _, left_out = merge(rows, PIECES, TAXONOMY)
    where = "first" if category == "Invention" else "last"
    assert [r.why for r in left_out] == [
        f"the error of S{kept[-1]} again: its {where} span is marked"
    ] * 2


@pytest.mark.parametrize(
    ("description", "count"),
    [("Wrong format.", 2), ("The plan does not end with the tag that the prompt demands.", 1)],
)
def test_a_description_tells_errors_apart_only_when_it_says_something(
    description: str, count: int
) -> None:
    rows = [
        reading(
            CheckedFinding("S1", "Bad Form", "the plan is to count", description, None, 0.5),
            CheckedFinding("S2", "Bad Form", "now we go to the lake", description, None, 0.5),
        )
    ]
    assert len(merged(*rows)) == count


words = st.sampled_from(["nine birds were seen", "nine birds were seen!", "quite other words", ""])
some = st.builds(
    CheckedFinding,
    index=st.sampled_from([piece.index for piece in PIECES]),
    category=st.sampled_from([leaf.name for leaf in TAXONOMY.assigned]),
    evidence=words,
    description=words,
    impact=st.sampled_from(["HIGH", "LOW", None]),
    confidence=st.one_of(st.none(), st.floats(0, 1)),
)


@given(
    st.lists(st.tuples(st.lists(some, max_size=4), st.integers(0, 2), st.booleans()), max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_order_of_readings_does_not_matter_and_nothing_is_lost_or_doubled(
    rows: list[tuple[list[CheckedFinding], int, bool]], rng: random.Random
) -> None:
    readings = [
        reading(*([] if bad else found), repeat=repeat, shown="S1 S2 S3 S4 S5 S6 S7", failed=bad)
        for found, repeat, bad in rows
    ]
    findings, left_out = merge(readings, PIECES, TAXONOMY)
    shuffled = readings[:]
    rng.shuffle(shuffled)
    assert merge(shuffled, PIECES, TAXONOMY) == (findings, left_out)
    said = {(f"span-{n.index[1:]}", n.category) for r in readings for n in r.findings}
    kept = [(f.span, f.category) for f in findings]
    assert len(kept) == len(set(kept))
    assert set(kept) <= said
    assert len(kept) + len(left_out) == len(said)
    assert all(f.confidence is None or 0 <= f.confidence <= 1 for f in findings)
    places = [int(f.span[-1]) for f in findings]
    assert places == sorted(places)


def test_findings_of_rules_stand_for_those_of_the_judge_in_the_order_of_the_trace() -> None:
    run = Run(id="r", spans=tuple(Span(id=i) for i in ("wrapper", "span-1", "span-2")))
    judged = [
        Finding(span="span-1", category="Waste", source="locator"),
        Finding(span="span-2", category="Invention", source="locator"),
    ]
    rules = [
        Finding(span="span-1", category="Waste", source="detector:loop"),
        Finding(span="wrapper", category="Bad Form", source="detector:json"),
    ]
    assert [f.source for f in with_hints(judged, rules, run, TAXONOMY)] == [
        "detector:json",
        "detector:loop",
        "locator",
    ]
