"""Schemas of tools as others write them, as JSON schemas.

FlowBench (arXiv 2406.14884) names types as Python does (`list`), puts `required: true` beside the
type of a parameter, and gives parameters by name, without an object around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from agenteval.workflows.scenario import schema_problem

_TYPES = {"list": "array", "dict": "object", "str": "string", "int": "integer"}
_TYPES |= {"float": "number", "bool": "boolean"}


def standard_schema(written: JsonValue) -> JsonValue:
    """Return the JSON schema that a schema of FlowBench's form means, or what was given if it is
    one, or if none can be made of it."""
    if not isinstance(written, dict) or schema_problem(written) is None:
        return written
    by_name = "properties" not in written and not isinstance(written.get("type"), str)
    if by_name and all(isinstance(value, dict) for value in written.values()):
        written = {"type": "object", "properties": written}
    schema = json_types(written)
    return schema if schema_problem(schema) is None else written


def json_types(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the types of JSON schema and one list of the required properties."""
    schema = dict(written)
    if isinstance(kind := schema.get("type"), str):
        schema["type"] = _TYPES.get(kind.lower(), kind.lower())
    if isinstance(items := schema.get("items"), dict):
        schema["items"] = json_types(items)
    if not isinstance(properties := schema.get("properties"), dict):
        return schema
    required = list(schema["required"]) if isinstance(schema.get("required"), list) else []
    schema["properties"] = {}
    for name, value in properties.items():
        about = json_types(value) if isinstance(value, dict) else value
        is_flag = isinstance(about, dict) and not isinstance(about.get("required"), list)
        if is_flag and about.pop("required", None) is True and name not in required:
            required.append(name)
        schema["properties"][name] = about
    schema.pop("required", None)
    return {**schema, "required": required} if required else schema
