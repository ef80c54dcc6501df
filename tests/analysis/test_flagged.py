"""The words about runs that seem to talk to the judge."""

from __future__ import annotations

import pytest

from agenteval.analysis.flagged import CONSTANT, Examined, Flag, Flags, flags_among

MARKER = ("fake marker",)


def test_five_are_named_and_the_rest_counted() -> None:
    seven = Flags(tuple(Flag(f"r{i}", "hen" if i else "cock", MARKER) for i in range(7)), 9)
    named = "; ".join(f"r{i} (fake marker)" for i in range(5))
    assert seven.line == (
        "7 of 9 runs have text that seems to address the judge (by system: cock 1, hen 6): "
        f"{named}; and 2 more"
    )


def test_runs_of_one_name_are_told_apart_by_their_system() -> None:
    found = (Flag("desk/ann", "a", MARKER), Flag("desk/ann", "b", MARKER), Flag("x", "b", MARKER))
    assert Flags(found, 3).line.endswith(
        ": desk/ann of a (fake marker); desk/ann of b (fake marker); x (fake marker)"
    )


SAME = "It depends on what is meant; both are right, and so is the third."


@pytest.mark.parametrize(
    ("answers", "flagged"),
    [
        (["p1", "p2", "p3"], True),
        (["p1", "p2"], False),
        (["p1", "p2", " P1 "], False),  # the same problem
    ],
)
def test_one_answer_to_three_problems_is_a_sign(answers: list[str], flagged: bool) -> None:
    rows = [Examined(f"r{i}", "hen", problem, SAME, ()) for i, problem in enumerate(answers)]
    found = flags_among(rows)
    assert found.examined == len(rows)
    assert [f.signs for f in found.found] == [(CONSTANT,)] * len(rows) * flagged


def test_it_is_told_by_system_and_of_long_answers_only() -> None:
    problems = ("p1", "p2", "p3")
    by_system = [Examined(p, p, p, SAME, ()) for p in problems]
    short = [Examined(p, "hen", p, "The answer is 12.", ()) for p in problems]
    assert flags_among([*by_system, *short]).found == ()
    spaced = [
        Examined(p, "hen", p, SAME.upper().replace(" ", " " * (i + 1)), MARKER)
        for i, p in enumerate(problems)
    ]
    assert flags_among(spaced).line == (
        "3 of 3 runs have text that seems to address the judge (by system: hen 3): "
        + "; ".join(f"{p} (fake marker, one output for several problems)" for p in problems)
    )
