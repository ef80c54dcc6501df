"""Direction of scales: every expectation was set by hand before the code was run on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.utility.bank import load_bank
from agenteval.utility.scale_order import order_of, settle

DATA = Path(__file__).parents[1] / "data"
UP, DOWN, UNCLEAR, NOMINAL = "worst_to_best", "best_to_worst", "unclear", "nominal"


def tables() -> dict[str, list[str]]:
    """The lines of each section of the data file."""
    sections: dict[str, list[str]] = {}
    text = (DATA / "scales.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(line)
    return sections


TABLES = tables()


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")]


def test_worst_first_is_told_and_so_is_its_reverse() -> None:
    for text in TABLES["worst first"]:
        labels = split(text)
        assert (order_of(labels)[0], order_of(labels[::-1])[0]) == (UP, DOWN), text


@pytest.mark.parametrize(
    ("section", "verdict"),
    [("unclear", UNCLEAR), ("nominal", NOMINAL), ("best in the middle", NOMINAL)],
)
def test_what_cannot_be_told_is_not_guessed(section: str, verdict: str) -> None:
    for text in TABLES[section]:
        for labels in (split(text), split(text)[::-1]):
            order = order_of(labels)
            assert (order.verdict, bool(order.reason)) == (verdict, True), text


def test_levels_in_no_order_are_put_in_order_by_their_strength() -> None:
    for text, sorted_text in (
        (
            "accurate | inaccurate | completely accurate",
            "inaccurate | accurate | completely accurate",
        ),
        ("good | poor | excellent", "poor | good | excellent"),
    ):
        settled = settle(split(text), None, "Thing")
        assert (" | ".join(settled.values), settled.order) == (sorted_text, UP)
        assert (settled.note or "").startswith("put in order")


@pytest.mark.parametrize(
    ("description", "labels", "expected"),
    [
        ("Lower values are better.", "1 | 10 | 100", DOWN),
        ("Fewer things are more efficient.", "1 | 10 | 100", DOWN),
        ("Fewer moves are more efficient.", "1 | 10 | 100", UNCLEAR),  # a count of them, perhaps
        ("The total number of moves; lower is better.", "1 | 10 | 100", DOWN),
        ("More is better.", "0 calls | 1-2 calls | 3+ calls", UP),
        ("1 being the best and 5 being the worst.", "1 | 2 | 3 | 4 | 5", DOWN),
        ("Rate from 1 (worst) to 5 (best).", "1 | 2 | 3 | 4 | 5", UP),
        ("Higher values are worse.", "1 | 2 | 3", DOWN),
        ("Fewer errors are better, more detail is better.", "1 | 2 | 3", UNCLEAR),
        ("Lower is better.", "poor | fair | good", UP),  # words of quality outrank it
    ],
)
def test_a_description_that_states_the_direction_of_numbers_decides(
    description: str, labels: str, expected: str
) -> None:
    assert order_of(split(labels), "Thing", description).verdict == expected


MISSING = "1 - Many of the steps that would be needed are missing here | 2"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (f"{MISSING} | 3 - Contains an error at the end", UP),
        ("1 - Solves the problem at hand, though not very well | 3 - Contains errors", UNCLEAR),
        (
            "1 - Excellent: right in all respects and ready to be used as it is | "
            "2 - Poor: wrong in most respects, with major errors and gaps",
            UNCLEAR,
        ),
    ],
)
def test_long_descriptions_do_not_turn_numbered_levels(labels: str, expected: str) -> None:
    assert order_of(split(labels)).verdict == expected


@pytest.mark.parametrize(
    ("section", "expected", "reverse"),
    [("worst first", UP, DOWN), ("best first", DOWN, UP), ("unclear", UNCLEAR, UNCLEAR)],
)
def test_a_name_may_withhold_an_order_and_never_turns_one(
    section: str, expected: str, reverse: str
) -> None:
    for line in TABLES[f"named, {section}"]:
        name, _, text = line.partition(": ")
        labels = split(text)
        assert (order_of(labels, name)[0], order_of(labels[::-1], name)[0]) == (expected, reverse)


def test_bare_degrees_are_told_only_of_what_a_name_calls_good() -> None:
    """Best first, or worst first of something unwelcome: the levels do not say."""
    for text in ("low | medium | high", "never | sometimes | often | always"):
        for labels in (split(text), split(text)[::-1]):
            verdicts = {order_of(labels, n)[0] for n in ("", "Cadence", "Condescension")}
            assert verdicts == {UNCLEAR}


# The order that an author states, against the order that the levels show.
STATED = map(json.loads, (DATA / "stated_orders.jsonl").read_text("utf-8").splitlines())


@pytest.mark.parametrize(("text", "stated", "expected"), [tuple(row.values()) for row in STATED])
def test_a_stated_order_holds_unless_the_levels_plainly_run_the_other_way(
    text: str, stated: Any, expected: str
) -> None:
    labels = split(text)
    settled = settle(labels, stated, "Thing")
    assert settled.order == (UNCLEAR if expected == UNCLEAR else UP)
    assert settled.values == tuple(labels[::-1] if expected == DOWN else labels)
    if expected == UNCLEAR:  # both are named, and how to mend it
        assert all(part in (settled.note or "") for part in (stated, "order_confirmed"))
        assert (settled.reason or "").startswith("unclear: ")
    else:
        reason = "reversed: stated best first" if expected == DOWN else None
        assert settled.note == settled.reason == reason


def test_no_scale_of_the_bank_reads_as_best_first() -> None:
    """All of them were written worst first; many are phrases the lexicon need not know."""
    verdicts = {c.id: order_of(c.record["accepted_values"])[0] for c in load_bank()}
    assert len(verdicts) >= 40
    assert [i for i, v in verdicts.items() if v == DOWN] == []


@given(st.lists(st.text(max_size=20), max_size=8))
def test_reversal_reverses_and_nothing_raises(labels: list[str]) -> None:
    opposite = {UP: DOWN, DOWN: UP, UNCLEAR: UNCLEAR, NOMINAL: NOMINAL}
    assert order_of(labels[::-1])[0] == opposite[order_of(labels)[0]]


@pytest.mark.parametrize(
    ("names", "degrees", "numbers"),
    [
        ("Safety, Timeliness, Steps delineation, Code structure, Error recovery", UP, UP),
        ("Tool use, Use of resources, Memory use", UNCLEAR, UP),
        ("Bias, Response time, Errors, Risk of harm", UNCLEAR, UNCLEAR),
    ],
)
def test_bare_degrees_need_a_name_that_is_a_quality_and_numbers_one_that_is_no_fault(
    names: str, degrees: str, numbers: str
) -> None:
    for name in names.split(", "):
        assert order_of(["low", "medium", "high"], name).verdict == degrees, name
        assert order_of(["1", "2", "3", "4", "5"], name).verdict == numbers, name
