"""The toolbox of a row of FlowBench's format: text in the system prompt, or objects in `apis`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.reply_text import read_object

_API = re.compile(r"^API:[ \t]*(\w{1,128})[ \t]*$", re.M)
_INPUT = re.compile(r"^Input parameters:[ \t]*", re.M)


def told_schemas(row: Mapping[str, Any], prompt: str) -> dict[str, dict[str, JsonValue]]:
    """Schemas of the parameters by tool: those of the prompt, and those of the row's `apis`."""
    found = dict(toolbox(prompt))
    apis = row.get("apis")
    for api in apis if isinstance(apis, list) else []:
        if not isinstance(api, dict):
            continue
        name = api.get("name") or api.get("api_name")
        parameters = next(
            (api[k] for k in ("parameters", "input_parameters") if isinstance(api.get(k), dict)),
            None,
        )
        if isinstance(name, str) and parameters is not None:
            found.setdefault(name, _schema(parameters))
    return found


def _schema(parameters: dict[str, Any]) -> dict[str, JsonValue]:
    """The parameters as a JSON schema; what is one already stays as it is."""
    if isinstance(parameters.get("properties"), dict):
        return parameters
    known: dict[str, JsonValue] = {
        name: about for name, about in parameters.items() if isinstance(about, dict)
    }
    return {"type": "object", "properties": known}


@lru_cache(maxsize=256)  # the turns of a scenario share their prompt
def toolbox(prompt: str) -> dict[str, dict[str, JsonValue]]:
    """Schemas of the parameters of the tools that a system prompt describes ("API: <name>", then
    "Input parameters: <JSON>"); tools whose parameters cannot be read are left out."""
    found: dict[str, dict[str, JsonValue]] = {}
    names = list(_API.finditer(prompt))
    for i, name in enumerate(names):
        end = names[i + 1].start() if i + 1 < len(names) else len(prompt)
        start = _INPUT.search(prompt, name.end(), end)
        parameters = read_object(prompt[start.end() : end]) if start else None
        if parameters is not None:
            found[name.group(1)] = _schema(parameters)
    return found
