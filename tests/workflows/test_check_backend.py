"""A backend, as it is when made, beside the tools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.workflows.check import backend_defects
from agenteval.workflows.folder import read_role
from tests.workflows.boats import tool

DESK = Path(__file__).parent / "library_desk"
TOOLS = (tool("find", {}, ("title", "year"), ("title",)), tool("lend", {}, ("title",)))
STATE = "def __init__(self): self.state = {}"
FIND, LEND = "def find(self, title, year=None): ...", "def lend(self, *, title): ..."


def told(folder: Path, source: str) -> list[str]:
    (folder / "backend.py").write_text(source, encoding="utf-8")
    return [f"{d.severity}: {d.message}" for d in backend_defects(folder, TOOLS)]


def backend(*methods: str, bases: str = "") -> str:
    return f"class Backend{bases}:\n" + "".join(f"    {m}\n" for m in (STATE, *methods))


def test_the_desk_has_what_its_tools_need() -> None:
    role = read_role(DESK)
    assert backend_defects(DESK, role.tools_of(tuple(s.id for s in role.scenarios))) == ()


ADDED = f"""class Backend:
    {STATE}
    {FIND}
for name in ("lend", "give"):
    setattr(Backend, name, lambda self, **values: values)
"""
LATER = """class Backend:
    def __init__(self):
        self.state, self.find = {}, lambda title, year=1: 0
    def __getattr__(self, name):
        return lambda title: 0
"""


@pytest.mark.parametrize(
    "source",
    [
        backend(FIND, LEND),
        backend("def find(self, **values): ...", LEND),
        "class Base:\n    " + FIND + "\n" + backend(LEND, bases="(Base)"),
        ADDED,
        LATER,
        "from collections import UserDict\n"
        + backend(FIND, LEND, bases="(UserDict)").replace("): self", "): super().__init__(); self"),
    ],
)
def test_sound_backends(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (backend(FIND), "the backend has no method lend"),
        (
            backend("def find(self, title): ...", LEND),
            "find(title, year): got an unexpected keyword argument 'year'",
        ),
        (
            backend("def find(self, title, year): ...", LEND),
            "find(title): missing a required argument: 'year'",
        ),
        (
            backend(FIND, "def lend(self, title, *, reader): ..."),
            "lend(title): missing a required",
        ),
        (
            backend(FIND, "async def lend(self, title): ..."),
            "lend is an `async def`; it answers at once",
        ),
    ],
)
def test_what_is_missing(tmp_path: Path, source: str, expected: str) -> None:
    (line,) = told(tmp_path, source)
    assert line.startswith("error: ")
    assert expected in line


def stateless(*members: str, before: str = "", bases: str = "") -> str:
    body = "".join(f"    {m}\n" for m in (*members, FIND, LEND))
    return f"{before}class Backend{bases}:\n{body}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            stateless(
                "def __init__(self, path=None): self.reset()", "def reset(self): self.state = {}"
            ),
            "",
        ),
        (stateless("@property", "def state(self): return {}"), ""),
        (
            stateless(
                "state: dict = field(default_factory=dict)",
                before="from dataclasses import dataclass, field\n@dataclass\n",
            ),
            "",
        ),
        (stateless("state = {}"), "warning: two sessions share one state"),
        (stateless("def __init__(self): self.books = {}"), "the backend has no `state`"),
        (stateless("state: dict"), "the backend has no `state`"),
        (stateless("def state(self): return {}"), "error: the state is no JSON value"),
        (stateless("def __init__(self): self.state = {1, 2}"), "error: the state is no JSON value"),
        (stateless("def __init__(self, path): self.state = {}"), "missing 1 required positional"),
        ("import nowhere\n" + backend(FIND, LEND), "cannot be imported (ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", "cannot be imported (SystemExit: 3)"),
        ("class Backend(:", "cannot be imported (SyntaxError"),
    ],
)
def test_the_state_and_whether_a_backend_can_be_made(
    tmp_path: Path, source: str, expected: str
) -> None:
    lines = told(tmp_path, source)
    assert len(lines) == bool(expected)
    assert expected in "".join(lines)


def test_no_file_and_a_pipe_that_is_not_waited_for(tmp_path: Path) -> None:
    for make in (lambda: None, lambda: os.mkfifo(tmp_path / "backend.py")):
        make()
        (missing,) = backend_defects(tmp_path, TOOLS)
        assert "a role needs a backend.py" in missing.message
