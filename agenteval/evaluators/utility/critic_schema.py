"""JSON schemas of what critic and sub-critic reply; every key required, none besides (strict)."""

from __future__ import annotations

from typing import Any

from agenteval.evaluators.utility.critic_reply import OPERATORS

_TEXT = {"type": "string"}


def critic_schema(*, sub_criteria: bool = True) -> dict[str, Any]:
    """Schema of `{"criteria": [...]}`; with one level of sub-criteria unless told otherwise."""
    entry = _criterion()
    if sub_criteria:
        entry["properties"]["sub_criteria"] = {"type": "array", "items": _criterion()}
        entry["required"].append("sub_criteria")
    return _reply(entry)


def subcritic_schema(ids: list[str]) -> dict[str, Any]:
    """Schema of the sub-critic's reply: for some of these criterion ids a list of sub-criteria."""
    properties = {
        "id": {"type": "string", "enum": ids},
        "sub_criteria": {"type": "array", "items": _criterion()},
    }
    return _reply(_object(properties))


def _reply(entry: dict[str, Any]) -> dict[str, Any]:
    return _object({"criteria": {"type": "array", "items": entry}})


def _criterion() -> dict[str, Any]:
    direction = {"type": "string", "enum": ["lower", "none", "higher", "unknown"]}
    return _object({
        "name": _TEXT,
        "description": _TEXT,
        "scale": {"type": "string", "enum": ["ordinal", "binary"]},
        "accepted_values": {"type": "array", "items": _TEXT},
        "order": {"type": "string", "enum": ["worst_to_best"]},
        "allow_na": {"type": "boolean"},
        "expect": _object(dict.fromkeys(OPERATORS, direction)),
    })  # fmt: skip


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
