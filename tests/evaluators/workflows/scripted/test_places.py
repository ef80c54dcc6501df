"""Gold calls as walks through the charts."""

from __future__ import annotations

from typing import Any

from agenteval.evaluators.workflows.scripted.behaviours import GoldWalk, find, gold_walk
from agenteval.evaluators.workflows.scripted.walker import Book
from tests.evaluators.workflows.simulators.desk import PROFILES, ROLE

LENDING = Book.of(ROLE, ("lend_book",))
BOTH = Book.of(ROLE, ("return_book", "lend_book"))
OUT, IN = {"is_in": False}, {"is_in": True}
LENT: dict[str, Any] = {"lent": True}


def walk(name: str, *returned: dict[str, Any]) -> GoldWalk:
    profile = PROFILES[name]
    results = [(a.tool, r) for a, r in zip(profile.actions, returned, strict=False)]
    return gold_walk(BOTH if name == "jan" else LENDING, profile, results)


def edges(found: GoldWalk) -> dict[int, tuple[str, str]]:
    return {at: (e.source, e.target) for at, e in found.edges().items()}


def test_walks_of_the_chart() -> None:
    assert find(LENDING, "lend_book", ["find_book", "lend_book"]) is not None
    assert find(LENDING, "lend_book", ["find_book"]) is not None
    assert find(LENDING, "lend_book", ["lend_book"]) is None
    assert find(LENDING, "lend_book", ["find_book", "lend_book", "find_book"]) is None
    assert find(LENDING, "lend_book", []) is None


def test_the_edges_that_were_taken() -> None:
    assert edges(walk("otto")) == {
        0: ("LB001", "LB003"),
        1: ("LB001", "LB002"),
        2: ("LB002", "LB004"),
    }


def test_returned_values_say_which_way_it_was() -> None:
    refused = walk("hana", IN, {"lent": False})
    assert edges(refused)[1] == ("LB002", "LB005")
    assert edges(walk("hana", IN, LENT))[1] == ("LB002", "LB004")
    assert walk("hana", OUT, LENT).segments == ()


def test_the_calls_of_several_scenarios_are_told_apart() -> None:
    found = walk("jan")
    assert [(s.scenario, s.first, s.tools) for s in found.segments] == [
        ("return_book", 0, ("return_book",)),
        ("lend_book", 1, ("find_book", "lend_book")),
    ]
    assert found.segment(2).scenario == "lend_book"


def test_conditions_as_they_were_forbid_what_the_chart_alone_allows() -> None:
    found = walk("hana", IN, LENT)
    (segment,) = found.segments
    assert not found.can_be(segment, [0])  # the book is in: it must be lent
    assert find(LENDING, "lend_book", ["find_book"]) is not None
    assert found.can_be(segment, [0, 1])


def test_values_that_an_earlier_call_returned_are_stale() -> None:
    found = walk("otto", OUT, IN, LENT)
    assert [found.stale(at) for at in range(3)] == [False, True, False]
