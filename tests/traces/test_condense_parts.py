"""The parts of condensing: shares of room, ranges of numbers, excerpts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.traces.condense import shares
from agenteval.traces.excerpt import excerpt, size


@pytest.mark.parametrize(
    ("least", "wanted", "weights", "room", "given_"),
    [
        ([0, 0], [50, 50], [1, 1], 200, [50, 50]),
        ([0, 0], [10, 90], [1, 1], 60, [10, 50]),
        ([0, 0], [90, 90], [1, 2], 60, [20, 40]),
        ([30, 0], [90, 90], [1, 2], 60, [30, 30]),
        ([40, 40], [90, 90], [1, 1], 60, [40, 40]),  # more than there is
        ([], [], [], 10, []),
    ],
)
def test_shares_by_hand(
    least: list[int], wanted: list[int], weights: list[float], room: int, given_: list[int]
) -> None:
    assert shares(least, wanted, weights, room) == given_


@given(
    st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 900), st.sampled_from([0.5, 1, 3])), max_size=9
    ),
    st.integers(0, 3000),
)
def test_shares_are_max_min_fair(rows: list[tuple[int, int, float]], room: int) -> None:
    least = [low for low, _, _ in rows]
    wanted = [low + more for low, more, _ in rows]
    weights = [w for _, _, w in rows]
    got = shares(least, wanted, weights, room)
    assert all(a <= g <= b for a, g, b in zip(least, got, wanted, strict=True))
    if sum(least) >= room:
        assert got == (wanted if sum(wanted) <= room else least)
        return
    assert sum(got) <= room
    assert sum(got) >= min(room, sum(wanted)) - len(rows)  # whole bytes
    # Nobody who lacks something has, by weight, less than one who has more than the least.
    lacking = [g / w for g, b, w in zip(got, wanted, weights, strict=True) if g < b]
    growing = [g / w for a, g, w in zip(least, got, weights, strict=True) if g > a]
    if lacking and growing:
        assert max(growing) <= min(lacking) + 2.01  # one byte at the least weight


LINES = st.lists(
    st.sampled_from(
        ["", "short", "Error: it broke", "word " * 90, "x" * 700, "漢字 " * 60, "must end 17"]
    ),
    max_size=40,
)


@given(LINES, st.integers(0, 3000))
def test_an_excerpt_fits_and_counts_what_it_cut(lines: list[str], room: int) -> None:
    text = "\n".join(lines)
    shown, cut = excerpt(text, room)
    if size(text) <= room:
        assert (shown, cut) == (text, 0)
        return
    assert size(shown) <= max(room, 30)
    kept = re.split(r"\[cut: ([\d,]+) characters\]", shown)
    assert sum(int(n.replace(",", "")) for n in kept[1::2]) == cut > 0
    at = 0
    for fragment in kept[::2]:  # in order, unchanged; only blanks around the marks are ours
        at = text.index(fragment.strip(), at) + len(fragment.strip())


@pytest.mark.parametrize(
    "line",
    [
        "worker 777: KeyError: 'gate'",
        "HTTP 429 Too Many Requests",
        "You must end with a full stop.",
        "I have verified the figure.",
    ],
)
def test_an_error_a_rule_or_a_claim_in_the_middle_stays(line: str) -> None:
    lines = [f"worker {k}: 0 errors, 0 failed" for k in range(2000)]
    lines[777] = line
    assert line in excerpt("\n".join(lines), 400)[0]
