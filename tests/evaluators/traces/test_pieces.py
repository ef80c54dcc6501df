"""Chunks of pieces: nothing lost, order kept, budgets kept, overlap as asked for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.traces.pieces import (
    SMALLEST,
    Condensed,
    Piece,
    clip,
    estimate_tokens,
    parts,
    size,
)

TEXT = st.text(st.sampled_from("ab \n.é漢"), max_size=1500)
BUDGET = st.integers(SMALLEST, 400)


def piece(number: int, text: str) -> Piece:
    return Piece(f"S{number}", f"id-{number}", "llm", text, estimate_tokens(text))


def condensed(*texts: str) -> Condensed:
    return Condensed("t", tuple(piece(i, t) for i, t in enumerate(texts, 1)), source_tokens=1000)


def of_tokens(*counts: int) -> Condensed:
    """Pieces of exactly so many tokens: 4 n - 4 bytes are n tokens."""
    return condensed(*("x" * (4 * n - 4) for n in counts))


def rows(trace: Condensed, budget: int, overlap: int = 1) -> list[list[str]]:
    return [[p.index for p in row] for row in trace.chunks(budget, overlap)]


def test_rows_by_hand() -> None:
    trace = of_tokens(40, 30, 30, 10, 60)
    assert rows(trace, 100, 0) == [["S1", "S2", "S3"], ["S4", "S5"]]
    assert rows(trace, 100, 1) == [["S1", "S2", "S3"], ["S3", "S4", "S5"]]
    # Two would be 60 tokens of overlap; half of the budget is 50.
    assert rows(trace, 100, 2) == [["S1", "S2", "S3"], ["S3", "S4", "S5"]]
    # S2 and S3 fit into half of 120, but with them S4 and S5 do not fit together.
    assert rows(trace, 120, 2) == [["S1", "S2", "S3", "S4"], ["S3", "S4", "S5"]]


def test_overlap_gives_way_to_the_next_new_piece() -> None:
    assert rows(of_tokens(90, 90, 90), 100, 5) == [["S1"], ["S2"], ["S3"]]


def test_no_pieces_no_rows() -> None:
    assert rows(condensed(), 100) == []
    assert condensed().ratio == 0.0
    assert Condensed("t", (), source_tokens=0).ratio == 1.0


@pytest.mark.parametrize(("budget", "overlap"), [(SMALLEST - 1, 1), (0, 0), (100, -1)])
def test_refuses_what_cannot_work(budget: int, overlap: int) -> None:
    with pytest.raises(ValueError):
        condensed("a").chunks(budget, overlap)


@given(st.lists(TEXT, max_size=12), BUDGET, st.integers(0, 20))
def test_every_piece_once_more_or_less(texts: list[str], budget: int, overlap: int) -> None:
    trace = condensed(*texts)
    units = [p for one in trace.pieces for p in parts(one, budget)]
    place = {p.index: i for i, p in enumerate(units)}
    assert len(place) == len(units)
    fresh = 0  # the first unit that no row has shown
    for row in trace.chunks(budget, overlap):
        numbers = [place[p.index] for p in row]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert 0 <= fresh - numbers[0] <= overlap
        assert numbers[-1] >= fresh
        assert sum(p.tokens for p in row) <= budget
        repeated = sum(p.tokens for p in row[: fresh - numbers[0]])
        assert repeated <= budget // 2
        fresh = numbers[-1] + 1
    assert fresh == len(units)


@given(TEXT, BUDGET)
def test_parts_are_the_piece(text: str, budget: int) -> None:
    whole = piece(7, text)
    found = parts(whole, budget)
    assert all(p.tokens == estimate_tokens(p.text) <= budget for p in found)
    if whole.tokens <= budget:
        assert found == [whole]
        return
    labels = [re.fullmatch(r"\[S7[a-z]+, part (\d+) of (\d+).*\]", p.text.split("\n")[0])
              for p in found]  # fmt: skip
    assert [(int(m[1]), int(m[2])) for m in labels if m] == [
        (k, len(found)) for k in range(1, len(found) + 1)
    ]
    assert "".join(p.text.split("\n", 1)[1] for p in found) == text


def test_parts_have_letters_and_map_to_their_span() -> None:
    trace = condensed("a", "\n".join(f"line {k}" for k in range(900)))
    found = [p for row in trace.chunks(SMALLEST, 0) for p in row]
    names = [p.index for p in found[1:]]
    assert names[:3] == ["S2a", "S2b", "S2c"]
    assert names[24:28] == ["S2y", "S2z", "S2aa", "S2ab"]
    assert {p.span for p in found[1:]} == {"id-2"}
    assert {p.kind for p in found} == {"llm"}


@given(st.text(max_size=60), st.integers(1, 80), st.booleans())
def test_clip_is_the_longest_that_fits(text: str, most: int, end: bool) -> None:
    taken = clip(text, most, end)
    assert (text.endswith if end else text.startswith)(taken)
    if size(taken) > most:
        assert len(taken) == 1
    elif taken != text:  # at most one character of up to four bytes more would have fitted
        assert size(taken) > most - 8


def test_a_lone_surrogate_is_counted() -> None:
    assert size("a\ud800b") == 3
    assert estimate_tokens("") == 1
    assert estimate_tokens("漢" * 4) == 4
