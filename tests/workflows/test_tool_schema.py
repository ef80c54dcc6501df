"""Tools and roles as FlowBench publishes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.workflows.folder import read_role
from agenteval.workflows.procedure_api import check_role
from agenteval.workflows.scenario import standard_schema


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
    assert [(d.kind, d.severity) for d in defects] == [("tools", "note"), ("backend", "warning")]
    assert "check_room, pay" in defects[0].message
    assert "--tools model" in defects[1].message
