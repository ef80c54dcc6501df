"""What an agent is told of its role, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.workflows.cases import instructions, tools_given
from agenteval.workflows.folder import read_role
from agenteval.workflows.scenario import FORMATS, Format, Role

DESK = Path(__file__).parent / "library_desk"
BOTH = ("lend_book", "return_book")
# A line of each file that no other format holds.
MARKS = {
    "text": "When a reader asks for a book, get its title and call find_book.",
    "code": '        reader_id = ask("reader_id")',
    "flowchart": "LB003--Another book will do-->LB001",
}
SHOWN: dict[Format, set[str]] = {
    "text": {"text"},
    "code": {"code"},
    "flowchart": {"flowchart"},
    "all": {"text", "code", "flowchart"},
    "none": set(),
    "no_tools": set(),
}


@pytest.fixture(scope="module")
def role() -> Role:
    return read_role(DESK)


@pytest.mark.parametrize("format", FORMATS)
def test_the_knowledge_of_each_format(role: Role, format: Format) -> None:
    told = instructions(role, ["lend_book"], format)
    assert {name for name, mark in MARKS.items() if mark in told} == SHOWN[format]
    assert ("by the" in told.split("What the tools")[0]) == bool(SHOWN[format])
    assert "You serve the readers of a town library at its chat desk." in told
    assert "look it up first, then lend it" in told
    assert told.endswith("The current time is: 2031-03-12 10:00")
    assert "{{" not in told
    assert "return_book" not in told
    assert (role.scenario("lend_book").flowchart.strip() in told) == ("flowchart" in SHOWN[format])


def test_tools_by_name_only(role: Role) -> None:
    assert "JSON schema" not in instructions(role, BOTH, "no_tools")
    find, lend, back = tools_given(role, BOTH, "no_tools")
    assert [find.name, lend.name, back.name] == ["find_book", "lend_book", "return_book"]
    assert lend.description == ""
    assert lend.parameters == {"type": "object", "properties": {"title": {}, "reader_id": {}}}
