"""backend.py beside the tools, read and not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.evaluators.workflows.backend_check import backend_defects
from agenteval.evaluators.workflows.folder import read_role
from tests.evaluators.workflows.chart.boats import tool

DESK = Path(__file__).parent / "library_desk"
TOOLS = (tool("find", {}, ("title", "year"), ("title",)), tool("lend", {}, ("title",)))
FIND, LEND = "def find(self, title, year=None): ...", "def lend(self, *, title): ..."


def told(folder: Path, source: str) -> list[str]:
    (folder / "backend.py").write_text(source, encoding="utf-8")
    return [f"{d.severity}: {d.message}" for d in backend_defects(folder, TOOLS)]


def backend(*methods: str, bases: str = "") -> str:
    return f"class Backend{bases}:\n" + "".join(f"    {m}\n" for m in methods)


def test_the_desk_has_what_its_tools_need() -> None:
    role = read_role(DESK)
    assert backend_defects(DESK, role.tools_of(tuple(s.id for s in role.scenarios))) == ()


@pytest.mark.parametrize(
    "source",
    [
        backend(FIND, LEND),
        backend("def find(self, **values): ...", LEND),
        "class Base:\n    " + FIND + "\n" + backend(LEND, bases="(Base)"),
        "import nowhere\n1 / 0\n" + backend(FIND, LEND, bases="(object)"),
    ],
)
def test_sound_backends(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (backend(FIND), ["error: the class Backend has no method lend"]),
        (
            backend("def find(self, title): ...", LEND),
            ["error: Backend.find does not take the parameter year"],
        ),
        (
            backend("def find(self, title, year): ...", LEND),
            ["error: Backend.find needs year, which a call of the tool need not have"],
        ),
        (
            backend(FIND, "def lend(self, title, reader): ..."),
            ["error: Backend.lend needs reader, which a call of the tool need not have"],
        ),
        (
            "import other\n" + backend(FIND, bases="(other.Base)"),
            ["warning: whether Backend has a method lend cannot be seen: a base is elsewhere"],
        ),
        (
            backend(FIND, "async def lend(self, title): ..."),
            ["error: Backend.lend is an `async def`; it answers at once"],
        ),
        ("class Other: ...", ["error: backend.py has no class Backend"]),
        (
            "class Backend(Backend):\n    " + FIND,
            ["error: the class Backend has no method lend"],
        ),
    ],
)
def test_what_is_missing(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert told(tmp_path, source) == expected


def test_no_file_and_no_python(tmp_path: Path) -> None:
    (missing,) = backend_defects(tmp_path, TOOLS)
    assert "backend.py cannot be read" in missing.message
    (broken,) = told(tmp_path, "class Backend(:")
    assert "backend.py is not Python" in broken
