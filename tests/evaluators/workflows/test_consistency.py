"""Text, code and flowchart against one another: agreement, and every planted difference told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.evaluators.workflows.chart_check import Defect
from agenteval.evaluators.workflows.consistency import chart_against_chart, consistent
from agenteval.evaluators.workflows.folder import role_folders
from agenteval.evaluators.workflows.mermaid import parse_chart
from agenteval.evaluators.workflows.scenario import Scenario
from agenteval.evaluators.workflows.worlds import TooLarge
from tests.evaluators.workflows.boats import CHART, CODE, TEXT, TOOLS, boats, replaced, tool

DESK = Path(__file__).parent / "library_desk"
SCENARIOS = [
    path.parent
    for folder in (DESK, *role_folders().values())
    for path in sorted(folder.glob("*/scenario.yaml"))
]


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_the_formats_of_all_scenarios_agree(folder: Path) -> None:
    assert [d.message for d in consistent(scenario(folder)) if d.severity == "error"] == []


def scenario(folder: Path) -> Scenario:
    """The formats and tools of a scenario, without its sessions."""
    text, code, flowchart = (
        (folder / f"workflow.{end}").read_text(encoding="utf-8") for end in ("txt", "code", "mmd")
    )
    return Scenario(
        id=folder.name, title="", background="", text=text, code=code, flowchart=flowchart,
        tools=json.loads((folder / "tools.json").read_text(encoding="utf-8")),
    )  # fmt: skip


def test_the_boats_agree() -> None:
    assert consistent(boats()) == ()


def only(found: tuple[Defect, ...]) -> set[str]:
    assert found
    assert all(d.severity == "error" for d in found)
    return {d.kind for d in found}


@pytest.mark.parametrize(
    ("old", "new", "kind", "told"),
    [
        ("        hire = book_boat(boat=boat, skipper=skipper)\n", "", "missing_tool",
         "the code does not name book_boat, which the chart calls"),
        ("found.is_free == True", "skipper", "missing_field",
         "the code does not name is_free, which edges test"),
        ("boat=boat, skipper", "skipper", "parameter",
         "line 10 of the code: book_boat is called without boat"),
        ("found.is_free", "found.is_fre", "unknown_field",
         "line 5 of the code: check_boat does not return is_fre; is is_free meant?"),
    ],
)  # fmt: skip
def test_differences_of_the_code(old: str, new: str, kind: str, told: str) -> None:
    found = consistent(boats(code=replaced(CODE, old, new)))
    assert kind in only(found)
    assert told in [d.message for d in found]


def test_words_of_user_says_that_stand_on_no_edge() -> None:
    found = consistent(boats(code=replaced(CODE, "Wants no more", "Wants no mor")))
    assert "unknown_intent" in only(found)
    assert "is 'Wants no more' meant?" in found[0].message


def test_a_branch_that_looks_back_at_an_earlier_call() -> None:
    """After act, what look returned decides; the chart that forgets it differs."""
    look, act = tool("look", {"vip": {"type": "boolean"}}), tool("act", {})
    gift = tool("gift", {})
    chart = (
        "flowchart TD\nA(s)-->B>call look]-->C>call act]\n"
        "C--VIP (vip = true)-->D>call gift]\nC--No VIP (vip = false)-->E[Say goodbye]\nD-->E"
    )
    late = chart.replace("C--No VIP (vip = false)-->E[Say goodbye]\nD-->E", "D-->E[Say goodbye]")
    late = late.replace("C--VIP (vip = true)-->D", "C-->D")
    one, other = ("the one", parse_chart(chart)), ("the other", parse_chart(late))
    assert chart_against_chart(one, one, (look, act, gift)) == []
    assert chart_against_chart(one, other, (look, act, gift)) == [
        "after act (vip is false), the one goes on to the end; the other does not",
        "after act (vip is false), the other goes on to gift; the one does not",
    ]


def test_numbers_are_compared_by_what_they_separate() -> None:
    look, act = tool("look", {"n": {"type": "integer"}}), tool("act", {})
    chart = (
        "flowchart TD\nA(s)-->B>call look]\nB--x (n > 2)-->C>call act]\nB--y (n <= 2)-->D[d]\nC-->D"
    )
    one = ("the one", parse_chart(chart))
    for above, below, agree in (
        ("n >= 3", "n < 3", True),
        ("n > 2", "n < 3", True),
        ("n >= 2", "n < 2", False),
        ("n > 3", "n <= 3", False),
    ):
        other = parse_chart(chart.replace("n > 2", above).replace("n <= 2", below))
        found = chart_against_chart(one, ("the other", other), (look, act))
        assert (found == []) is agree, (above, found)


@pytest.mark.parametrize(
    ("old", "new", "kind", "told"),
    [
        ("call check_boat", "look it up", "missing_tool", "does not name check_boat"),
        ("(is_free is false)", "", "missing_field", "does not name is_free"),
        ("call book_boat", "call book_boat and pay_deposit", "unknown_tool", "pay_deposit"),
        ("call book_boat", "call book_boats", "unknown_tool", "is book_boat meant?"),
        ("Ask which", "Before book_boat, ask which", "order", "check_boat comes first"),
    ],
)
def test_differences_of_the_text(old: str, new: str, kind: str, told: str) -> None:
    found = consistent(boats(text=replaced(TEXT, old, new)))
    assert kind in only(found)
    assert any(told in d.message for d in found)


def test_a_tool_that_the_chart_does_not_call() -> None:
    tools = (*TOOLS, tool("pay_deposit", {}))
    found = consistent(boats(text=TEXT + " Never call pay_deposit.", tools=tools))
    assert [d.message for d in found] == ["the text names pay_deposit, which the chart never calls"]


def test_tools_of_two_branches_may_be_told_in_any_order() -> None:
    a, b, c = tool("first_one", {}), tool("other_one", {}), tool("last_one", {})
    chart = (
        "flowchart TD\nA(s)--this-->B>call first_one]\nA--that-->C>call other_one]\n"
        "B & C-->D>call last_one]-->E[Bye]"
    )
    code = (
        "def f():\n    if user_says('this'):\n        first_one()\n    else:\n"
        "        other_one()\n    last_one()\n"
    )
    for text, kinds in (
        ("first_one or other_one, then last_one", []),
        ("other_one or first_one, then last_one", []),
        ("first_one, then last_one, or other_one", ["order"]),
    ):
        found = consistent(boats(flowchart=chart, code=code, text=text, tools=(a, b, c)))
        assert [d.kind for d in found] == kinds


def test_free_pseudo_code_is_a_defect() -> None:
    found = consistent(boats(code="IF the boat is free THEN\n  book_boat\nEND IF\n"))
    assert [d.kind for d in found] == ["unreadable"]
    assert "the code is not Python" in found[0].message


def test_a_chart_that_cannot_be_read_is_a_defect() -> None:
    found = consistent(boats(flowchart=replaced(CHART, "BH005[Say", "BH005{Say")))
    assert [d.kind for d in found] == ["unreadable"]
    assert "line 10, column " in found[0].message


def test_charts_in_other_words_are_the_same() -> None:
    other = CHART.replace("Tries again", "Once more").replace("BH00", "XX10")
    other = other.replace('state = "hired"', "state = hired").replace("[Tell", "[Say")
    one = ("the one", parse_chart(CHART))
    assert chart_against_chart(one, ("the other", parse_chart(other)), TOOLS) == []
    cut = replaced(CHART, "BH004 & BH003--Tries again-->BH002\n", "")
    assert chart_against_chart(one, ("the other", parse_chart(cut)), TOOLS) == [
        "after book_boat, the one goes on to book_boat; the other does not"
    ]


def test_what_is_too_large_to_compare_is_said_to_be_so() -> None:
    fields = {f"f{i}": {"type": "boolean"} for i in range(13)}
    look = tool("look", fields)
    edges = "\n".join(f"B--{n} ({n} = true)-->C" for n in fields)
    chart = f"flowchart TD\nA(s)-->B>call look]\nC[end]\n{edges}"
    one = parse_chart(chart)
    with pytest.raises(TooLarge, match="more than 4,096 results of look"):
        chart_against_chart(("the one", one), ("the other", one), (look,))
