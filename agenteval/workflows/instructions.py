"""What an agent under test is told about its role: rules, procedures, tools (arXiv 2406.14884).

Facts after listing 1 of the paper, in words of our own. The listing says "flowchart" whatever the
format; here the word is that of the format (see `procedure_word`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agenteval.agents.protocol import Tool
from agenteval.errors import InputError
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.workflows.scenario import Format, Role, Scenario, WorkflowTool

CHART_HEADING = "as a flowchart (Mermaid):"  # stands in the instructions where there is a chart
_HEADINGS = {"text": "in words:", "code": "as pseudo-code:", "flowchart": CHART_HEADING}
_WORDS: dict[Format, str] = {
    "text": "description",
    "code": "pseudo-code",
    "flowchart": "flowchart",
    "all": "description, pseudo-code and flowchart",
    "none": "",
    "no_tools": "",
    "recorded": "",
}


def instructions_prompt() -> Prompt:
    """The template of the instructions; its sha256 belongs to what identifies a result."""
    return load_prompt("agenteval.workflows", "agent_system")


def procedure_word(format: Format) -> str:
    """What the rules call the knowledge in this format; "" where none is given."""
    return _WORDS[format]


def instructions(role: Role, scenario_ids: Sequence[str], format: Format) -> str:
    """The system prompt of an agent that serves these scenarios of a role.

    It holds the background, the rules, the procedures in the format one scenario after the other,
    what the tools return (not with no_tools) and the time. The tools themselves are offered beside
    it (`tools_given`): function calling does not tell what a tool returns. Texts of
    the role enter as they are: they are its owner's, and nothing in them is interpreted.
    Raises InputError for no scenario, or one that the role does not have.
    """
    scenarios = _scenarios(role, scenario_ids)
    shown = [
        {"title": s.title, "background": s.background, "procedure": _procedure(s, format)}
        for s in scenarios
    ]
    tools = () if format == "no_tools" else role.tools_of(tuple(scenario_ids))
    returning = [tool for tool in tools if tool.returns]
    return instructions_prompt().render(
        title=role.title,
        background=role.background.strip(),
        scenarios=shown,
        many=len(shown) > 1,
        word=procedure_word(format),
        returns="\n".join(f"- {tool.name}: {_schema(tool.returns)}" for tool in returning),
        now=role.now,
    )


def tools_given(role: Role, scenario_ids: Sequence[str], format: Format) -> tuple[Tool, ...]:
    """The tools as function calling offers them, each name once.

    With no_tools they have their names and those of their parameters, and nothing else: no
    description, no type, and none is required. Raises InputError as `instructions`.
    """
    _scenarios(role, scenario_ids)
    tools = role.tools_of(tuple(scenario_ids))
    return tuple(_bare(tool) if format == "no_tools" else tool.tool() for tool in tools)


def _scenarios(role: Role, scenario_ids: Sequence[str]) -> list[Scenario]:
    known = {scenario.id: scenario for scenario in role.scenarios}
    missing = [id for id in scenario_ids if id not in known]
    if missing or not scenario_ids:
        named = repr(missing[0]) if missing else "of no name"
        raise InputError(f"{role.id} has no scenario {named}; it has {', '.join(known)}")
    return [known[id] for id in scenario_ids]


def _procedure(scenario: Scenario, format: Format) -> str:
    if not procedure_word(format):
        return ""
    formats = ("text", "code", "flowchart") if format == "all" else (format,)
    return "\n\n".join(
        f"Procedure of {scenario.title!r}, {_HEADINGS[name]}\n\n{getattr(scenario, name).strip()}"
        for name in formats
    )


def _schema(schema: Mapping[str, JsonValue]) -> str:
    return json.dumps(schema, ensure_ascii=False)  # in the order in which it was written


def _bare(tool: WorkflowTool) -> Tool:
    properties: dict[str, JsonValue] = {name: {} for name in tool.properties}
    return Tool(name=tool.name, parameters={"type": "object", "properties": properties})
