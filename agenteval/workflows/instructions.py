"""The instructions of an agent under test: rules, procedures, tools (arXiv 2406.14884).

Facts after listing 1 of the paper, in our own words. The listing says "flowchart" whatever the
format; here the rules use the word of the format.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agenteval.agents.protocol import Tool
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.workflows.scenario import Format, Role, Scenario

CHART_HEADING = "as a flowchart (Mermaid):"  # in the instructions where there is a chart
_HEADINGS = {"text": "in words:", "code": "as pseudo-code:", "flowchart": CHART_HEADING}
_WORDS = {  # what the rules call the procedure; formats without one have none
    "text": "description",
    "code": "pseudo-code",
    "flowchart": "flowchart",
    "all": "description, pseudo-code and flowchart",
}


def instructions_prompt() -> Prompt:
    """Return the template of the instructions; its sha256 is part of what identifies a result."""
    return load_prompt("agenteval.workflows", "agent_system")


def instructions(role: Role, scenario_ids: Sequence[str], format: Format) -> str:
    """Return the system prompt of an agent that serves these scenarios of a role.

    It holds the background, the rules, the procedures in the format one scenario after the other,
    what the tools return (not with no_tools) and the time. The tools themselves are offered
    separately (`tools_given`); function calling does not say what a tool returns. Texts of the role
    enter as they are.
    """
    shown = [
        {"title": s.title, "background": s.background, "procedure": _procedure(s, format)}
        for s in map(role.scenario, scenario_ids)
    ]
    tools = () if format == "no_tools" else role.tools_of(tuple(scenario_ids))
    returns = [
        f"- {tool.name}: {json.dumps(tool.returns, ensure_ascii=False)}"
        for tool in tools
        if tool.returns
    ]
    return instructions_prompt().render(
        title=role.title,
        background=role.background.strip(),
        scenarios=shown,
        many=len(shown) > 1,
        word=_WORDS.get(format, ""),
        returns="\n".join(returns),
        now=role.now,
    )


def tools_given(role: Role, scenario_ids: Sequence[str], format: Format) -> tuple[Tool, ...]:
    """Return the tools as function calling offers them, each name once.

    With no_tools they have only their names and those of their parameters: no description, no type,
    and none is required.
    """
    tools = role.tools_of(tuple(scenario_ids))
    if format != "no_tools":
        return tuple(
            Tool(name=t.name, description=t.description, parameters=t.parameters) for t in tools
        )
    return tuple(
        Tool(
            name=t.name,
            parameters={"type": "object", "properties": {key: {} for key in t.properties}},
        )
        for t in tools
    )


def _procedure(scenario: Scenario, format: Format) -> str:
    if format not in _WORDS:
        return ""
    formats = _HEADINGS if format == "all" else (format,)
    return "\n\n".join(
        f"Procedure of {scenario.title!r}, {_HEADINGS[name]}\n\n{getattr(scenario, name).strip()}"
        for name in formats
    )
