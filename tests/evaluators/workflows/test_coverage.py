"""Coverage of the library's charts, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.evaluators.workflows.align import conform
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.conformance import Call
from agenteval.evaluators.workflows.coverage import Walk, annotated_walk, coverage
from agenteval.evaluators.workflows.folder import read_role
from agenteval.evaluators.workflows.procedure import procedure
from agenteval.evaluators.workflows.scenario import RecordedSession, Turn

ROLE = read_role(Path(__file__).parent / "library_desk")
LEND = parse_chart(ROLE.scenario("lend_book").flowchart, "lend_book")


def test_a_recorded_session_and_one_that_was_read_from_its_calls() -> None:
    recorded = annotated_walk(LEND, ROLE.scenario("lend_book").sessions[0], "lend_book")
    assert recorded.nodes == ("LB000", "LB001", "LB002", "LB004", "LB006")
    assert recorded.edges == (
        ("LB000", "LB001"), ("LB001", "LB002"), ("LB002", "LB004"), ("LB004", "LB006"),
    )  # fmt: skip
    out = Call(tool="find_book", returned={"is_in": False})
    read = conform(procedure(ROLE, ["lend_book"]), [out, out, out])
    found = coverage(LEND, [recorded, read])
    assert found.sessions == 2
    assert {n.node: (n.times, n.sessions) for n in found.nodes} == {
        "LB000": (2, 2), "LB001": (4, 2), "LB002": (1, 1), "LB003": (3, 1),
        "LB006": (2, 2), "LB004": (1, 1), "LB005": (0, 0),
    }  # fmt: skip
    assert found.never_nodes == ("LB005",)
    assert set(found.never_edges) == {("LB002", "LB005"), ("LB005", "LB006")}
    assert found.node_share == pytest.approx(6 / 7)
    assert found.edge_share == pytest.approx(7 / 9)
    loops = next(e for e in found.edges if e.edge == ("LB003", "LB001"))
    assert (loops.times, loops.sessions) == (2, 1)


def test_no_session_and_other_charts() -> None:
    empty = coverage(LEND, [])
    assert (empty.sessions, empty.node_share, empty.edge_share) == (0, 0, 0)
    other = coverage(LEND, [Walk(nodes=("RB000", "RB001"), edges=(("RB000", "RB001"),))])
    assert (other.sessions, other.node_share) == (1, 0)
    lonely = parse_chart("flowchart TD\nAA000(Start)-->AA001[x]", "s").model_copy(
        update={"edges": ()}
    )
    assert coverage(lonely, []).edge_share is None


def test_annotations_of_another_scenario_and_edges_to_the_same_node() -> None:
    chart = parse_chart("flowchart TD\nAA000(Start)--go-->AA001[x]\nAA001--again-->AA001", "s")

    def reply(node: str, intent: str, scenario: str = "s") -> Turn:
        return Turn(kind="reply", text="x", scenario=scenario, node=node, intent=intent)

    session = RecordedSession(
        id="a", profile="p",
        turns=(
            reply("AA001", "go"), reply("AA001", "out of scope"), reply("AA001", "again"),
            reply("AA001", ""), reply("AA001", "again", "t"), reply("ZZ009", ""),
        ),
    )  # fmt: skip
    assert annotated_walk(chart, session, "s").nodes == ("AA000", "AA001", "AA001")
    assert annotated_walk(chart, session, "s").edges == (("AA000", "AA001"), ("AA001", "AA001"))
    assert annotated_walk(chart, session, "elsewhere") == Walk()
