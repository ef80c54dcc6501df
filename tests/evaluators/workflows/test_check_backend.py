"""backend.py beside the tools, read and not run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.evaluators.workflows.check import backend_defects
from agenteval.evaluators.workflows.folder import read_role
from tests.evaluators.workflows.boats import tool

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


@pytest.mark.parametrize(
    "source",
    [
        backend(FIND, LEND),
        backend("def find(self, **values): ...", LEND),
        "class Base:\n    " + FIND + "\n" + backend(LEND, bases="(Base)"),
        "class Backend(Backend):\n    " + "\n    ".join((STATE, FIND, LEND)),
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
            ["warning: whether Backend has a method lend cannot be seen in its class"],
        ),
        (
            backend(FIND, "async def lend(self, title): ..."),
            ["error: Backend.lend is an `async def`; it answers at once"],
        ),
        ("class Other: ...", ["error: backend.py has no class Backend"]),
        (
            backend(FIND, "def __getattr__(self, name): ..."),
            ["warning: whether Backend has a method lend cannot be seen in its class"],
        ),
        (
            "state = {}\ndef find(title, year=None): ...",
            ["error: backend.py has no function lend"],
        ),
        (
            "class Backend(Backend):\n    " + STATE + "\n    " + FIND,
            ["error: the class Backend has no method lend"],
        ),
    ],
)
def test_what_is_missing(tmp_path: Path, source: str, expected: list[str]) -> None:
    assert told(tmp_path, source) == expected


def stateless(*members: str, before: str = "", bases: str = "") -> str:
    body = "".join(f"    {m}\n" for m in (*members, FIND, LEND))
    return f"{before}class Backend{bases}:\n{body}"


@pytest.mark.parametrize(
    "source",
    [
        stateless("def __init__(me): me.state: dict = {}"),
        stateless("def __init__(self): self.books, self.state = [], {}"),
        stateless("def __init__(self):\n        if True:\n            self.state = {}"),
        stateless(
            "def __init__(self, path=None): self.reset()", "def reset(self): self.state = {}"
        ),
        stateless("@property", "def state(self): return {}"),
        stateless("state: dict = field(default_factory=dict)", before="@dataclass\n"),
        stateless(
            "def __init__(self): super().__init__()",
            before=f"class Base:\n    {STATE}\n",
            bases="(Base)",
        ),
    ],
)
def test_ways_to_have_a_state(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source) == []


@pytest.mark.parametrize(
    "source",
    [
        stateless(),
        stateless("def __init__(self): self.books = {}"),
        stateless("def __init__(self): self.state['books'] = {}"),
        stateless("def __init__(self): state = {}"),
        stateless("def state(self): return {}"),
        stateless("state: dict"),
    ],
)
def test_no_state(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source) == [
        "error: the class Backend has no state: set self.state, a dict, in __init__"
    ]


def test_a_state_that_sessions_share_or_nobody_sees(tmp_path: Path) -> None:
    (shared,) = told(tmp_path, stateless("state = {}"))
    assert shared.startswith("warning: state belongs to the class Backend")
    unseen = told(tmp_path, "import other\n" + stateless(bases="(other.Base)"))
    assert unseen == ["warning: whether Backend has a state cannot be seen: a base is elsewhere"]


def test_a_backend_is_made_without_arguments(tmp_path: Path) -> None:
    source = stateless("def __init__(self, path, *, size, more=1): self.state = {}")
    assert told(tmp_path, source) == [
        "error: Backend.__init__ needs path, and is given nothing",
        "error: Backend.__init__ needs size, and is given nothing",
    ]


def test_no_file_and_no_python(tmp_path: Path) -> None:
    (missing,) = backend_defects(tmp_path, TOOLS)
    assert "backend.py cannot be read" in missing.message
    (broken,) = told(tmp_path, "class Backend(:")
    assert "backend.py is not Python" in broken


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "backend.py")
    (missing,) = backend_defects(tmp_path, TOOLS)
    assert "this is no file" in missing.message
