"""The folder of a role as a person writes it: read whole, and refused with file and reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.workflows.backend import fresh_backend, load_backend
from agenteval.workflows.check import check_role
from agenteval.workflows.folder import find_role, read_role
from agenteval.workflows.scenario import standard_schema

DESK = Path(__file__).parent / "library_desk"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(DESK, tmp_path / "library_desk"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        read_role(folder)
    return str(error.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "role.yaml",
            "domain:",
            "domin:",
            "role.yaml: domin: unknown key; did you mean domain? "
            "allowed: domain, title, background, now, success",
        ),
        ("lend_book/profiles.yaml", "text: Borrow", "aim: Borrow", "0.goals.0.aim: unknown key; "),
        ("lend_book/profiles.yaml", "id: otto", "id: hana", "two profiles are called 'hana'"),
        (
            "lend_book/tools.json",
            '"returns"',
            '"return"',
            "0.return: unknown key; did you mean returns?",
        ),
        ("lend_book/tools.json", '"type": "string"', '"type": "strnig"', "is no JSON schema (prop"),
        ("lend_book/tools.json", '"type": "object"', '"type": "array"', "is no schema of objects"),
        ("lend_book/tools.json", '"name": "find_book"', '"name": "find book"', "0.name"),
        ("lend_book/tools.json", "[", "", "broken JSON"),
        ("lend_book/profiles.yaml", "tool: lend_book", "tool: lend_bok", "did you mean lend_book?"),
        ("lend_book/profiles.yaml", "[lend_book]", "[lend_bok]", "no scenario 'lend_bok'"),
        ("lend_book/sessions/hana.yaml", "profile: hana", "profile: hanna", "did you mean hana?"),
        ("lend_book/sessions/hana.yaml", "kind: call", "kind: cal", "hana.yaml: turns.3.kind"),
        ("lend_book/sessions/hana.yaml", "tool: find_book, ", "", "a call needs the name"),
        ("lend_book/tools.json", '"lend_book"', '"find_book"', "two tools are called 'find_book'"),
    ],
)
def test_refused_with_file_and_reason(desk: Path, file: str, old: str, new: str, told: str) -> None:
    change(desk / file, old, new)
    assert told in refused(desk)


def test_a_procedure_is_written_in_one_format_at_least(desk: Path) -> None:
    (desk / "lend_book/workflow.txt").unlink()
    (desk / "lend_book/workflow.code").unlink()
    assert read_role(desk).scenario("lend_book").formats == ("flowchart",)
    (desk / "lend_book/workflow.mmd").unlink()
    assert refused(desk).endswith(
        "lend_book: a scenario needs one of workflow.txt, policy.md, workflow.code, workflow.mmd"
    )
    (desk / "return_book/policy.md").write_text("Take books back.")
    (desk / "lend_book/policy.md").write_text("Lend books.")
    assert "return_book/policy.md: the text of a procedure must be in one file" in refused(desk)


def test_two_scenarios_may_define_a_tool_in_two_ways(desk: Path) -> None:
    """Each has its own; across scenarios that of the first stands, and both are told."""
    change(desk / "return_book/tools.json", '"return_book"', '"find_book"')
    shutil.rmtree(desk / "cross")
    (desk / "return_book/profiles.yaml").unlink(missing_ok=True)
    role = read_role(desk)
    (told,) = role.conflicts
    assert "'find_book' is defined otherwise in return_book than in lend_book" in told
    own = {s.id: s.tools[0] for s in role.scenarios}
    assert own["lend_book"].required == ("title",)
    both = {t.name: t for t in role.tools_of(("lend_book", "return_book"))}
    assert both["find_book"] == own["lend_book"]
    assert role.tools_of(("return_book",))[0] == own["return_book"]


CLASS = """
from __future__ import annotations
from typing import Literal

class Base:
    def __init__(self) -> None:
        self.state = {"n": 0}

    def add(self, by: int, how: Literal["up", "down"] = "up") -> dict:
        \"\"\"Count.\"\"\"
        self.state["n"] += by
        return dict(self.state)

class Backend(Base):
    def note(self, words) -> str: return words
    def _own(self) -> None: ...
"""
MODULE = """
from json import dumps
from typing import Literal
state = {"n": 0}

def add(by: int, how: Literal["up", "down"] = "up") -> dict:
    \"\"\"Count.\"\"\"
    state["n"] += by
    return state

def note(words): return dumps(words)
"""


@pytest.mark.parametrize("source", [CLASS, MODULE])
def test_policy_and_python_functions_are_a_role(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "counter_desk"
    folder.mkdir()
    (folder / "policy.md").write_text("Count what people ask for.")
    (folder / "backend.py").write_text(source)
    role = read_role(find_role(str(folder)))
    (scenario,) = role.scenarios
    assert (role.id, role.title, scenario.formats) == ("counter_desk", "counter desk", ("text",))
    add, note = scenario.tools
    assert (add.name, add.description, add.returns, add.effect) == ("add", "Count.", {}, None)
    assert add.required == ("by",)
    assert add.properties["by"] == {"type": "integer"}
    assert add.properties["how"] == {"type": "string", "enum": ["up", "down"], "default": "up"}
    assert note.properties == {"words": {}}
    make = load_backend(folder)
    first, second = fresh_backend(make), fresh_backend(make)
    getattr(first, "add")(3)  # noqa: B009  of a class that mypy does not know
    assert (first.state, second.state) == ({"n": 3}, {"n": 0})
    (folder / "tools.json").write_text(
        json.dumps(
            [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "parameters": {"type": "object", "properties": {"by": {}}},
                    },
                }
            ]
        )
    )
    assert [t.name for t in read_role(folder).scenarios[0].tools] == ["add"]
    (folder / "backend.py").write_text("x = 1")
    (folder / "tools.json").unlink()
    assert "no class Backend, and no functions with a `state`" in refused(folder)
    (folder / "backend.py").unlink()
    assert "needs a tools.json, or a backend.py whose methods are its tools" in refused(folder)


def test_a_role_without_scenarios(tmp_path: Path) -> None:
    shutil.copy(DESK / "role.yaml", tmp_path)
    assert "needs a folder with a scenario.yaml" in refused(tmp_path)


def test_nothing_is_passed_over_without_a_word(desk: Path) -> None:
    (desk / "lend_book/sessions/hana.yaml").rename(desk / "lend_book/sessions/hana.yml")
    assert "hana.yml: this file must be called hana.yaml" in refused(desk)
    shutil.rmtree(desk / "lend_book/sessions")
    (desk / "lend_book/profiles.yaml").rename(desk / "lend_book/profiles.yml")
    assert "must be called profiles.yaml" in refused(desk)
    (desk / "lend_book/scenario.yaml").unlink()
    assert "scenario.yaml: cannot read" in refused(desk)
    shutil.rmtree(desk / "lend_book")
    shutil.copytree(DESK / "lend_book", desk / "cross", dirs_exist_ok=True)
    assert "no scenario can be called 'cross'" in refused(desk)


def schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (schema({"a": {"type": "list"}}), schema({"a": {"type": "array"}})),
        (
            {"a": {"type": "str", "required": True}, "type": {"type": "int", "required": False}},
            schema({"a": {"type": "string"}, "type": {"type": "integer"}}, "a"),
        ),
        (
            schema({"a": {"type": "List", "items": {"type": "dict", "properties": {}}}}, "a"),
            schema({"a": {"type": "array", "items": {"type": "object", "properties": {}}}}, "a"),
        ),
        (
            schema({"a": schema({"b": {"type": "float", "required": True}})}),
            schema({"a": schema({"b": {"type": "number"}}, "b")}),
        ),
        # What is a schema, or cannot become one, stays as it is.
        (
            schema({"list": {"enum": ["list"]}}, "list"),
            schema({"list": {"enum": ["list"]}}, "list"),
        ),
        (schema({"a": {"type": "date"}}), schema({"a": {"type": "date"}})),
        ({"type": "array"}, {"type": "array"}),
        ({}, {"type": "object", "properties": {}}),
    ],
)
def test_schemas(written: dict[str, Any], read: dict[str, Any]) -> None:
    before = json.dumps(written)
    assert standard_schema(written) == read
    assert json.dumps(written) == before


def test_a_published_role(tmp_path: Path) -> None:
    """A tool of Python's types, pseudo-code that is not Python, no backend."""
    (tmp_path / "workflow.code").write_text("function Book:\n IF free THEN\n  CALL check_room")
    tool = {"name": "check_room", "parameters": {"kinds": {"type": "list", "required": True}}}
    (tmp_path / "tools.json").write_text(json.dumps([tool, {**tool, "name": "pay"}]))
    (scenario,) = read_role(tmp_path).scenarios
    assert scenario.tools[0].required == ("kinds",)
    assert scenario.tools[0].properties == {"kinds": {"type": "array"}}
    defects = [d for checked in check_role(str(tmp_path)) for d in checked.defects]
    assert [(d.kind, d.severity) for d in defects] == [("backend", "warning")]
    assert "--tools model" in defects[0].message
