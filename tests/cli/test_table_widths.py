"""Tables on a terminal: nothing lost, nothing wider than the terminal, names broken at joints."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agenteval.cli.table_widths import GAP, broken, parts

NAMES = st.text(alphabet="abcö漢 /+_·-", max_size=40)


@given(NAMES, st.integers(1, 30))
def test_broken_text_is_the_same_text_in_lines_that_fit_or_one_piece(text: str, width: int) -> None:
    lines = broken(text, width, number=False).split("\n")
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        if cell_len(line) > width:  # then it is one piece, with its joints behind it
            assert not re.search(r"[\s/+_:,·-]+[^\s/+_:,·-]", line.strip())


def test_names_break_at_their_joints_and_intervals_stay_whole() -> None:
    name = "scripted:wrong_parameter · flowchart"
    assert broken(name, 26, number=False) == "scripted:wrong_parameter ·\nflowchart"
    assert broken(name, 16, number=False) == "scripted:wrong_\nparameter ·\nflowchart"
    assert broken("0.98 [0.91, 1.00]* of 27", 13, number=True) == "0.98\n[0.91, 1.00]*\nof 27"
    assert broken("41: 100 %", 5, number=True) == "41:\n100 %"
    assert broken("71 / 850 / 167", 5, number=True) == "71 /\n850 /\n167"


WIDE = [["system", "python:agents:serve · flowchart"], *([f"rate {i}", "0.50 [0.25, 0.75]"]
        for i in range(9))]  # fmt: skip
RIGHT = [False, *[True] * 9]


def test_what_does_not_fit_goes_on_below_with_the_names_again() -> None:
    for available in (60, 80, 100, 140):
        found = parts(WIDE, RIGHT, available)
        assert all(part.columns[0] == 0 for part in found)
        assert [i for part in found for i in part.columns[1:]] == list(range(1, 10))
        for part in found:
            assert sum(part.widths) + GAP * (len(part.widths) - 1) <= available
            assert all(w >= len("[0.25, 0.75]") for w in part.widths[1:])
    assert len(parts(WIDE, RIGHT, 300)) == 1
    sizes = [len(part.columns) for part in parts(WIDE, RIGHT, 100)]
    assert len(sizes) == 2
    assert abs(sizes[0] - sizes[1]) <= 1


def test_names_get_room_before_numbers_do() -> None:
    (part,) = parts(WIDE[:4], RIGHT[:4], 31 + 3 * (12 + GAP) + 2)
    assert part.widths[0] == len("python:agents:serve · flowchart")
    assert sum(part.widths[1:]) == 3 * 12 + 2


def test_one_column_narrower_than_its_words_is_folded_to_what_is_there() -> None:
    (part,) = parts([["x" * 50]], [False], 20)
    assert part.widths == (20,)
