"""Defects of a chart beside its toolbox: names of tools in nodes, parameters."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agenteval.evaluators.workflows.chart.defects import Defect, at_node
from agenteval.evaluators.workflows.chart.names import WORD, names_in
from agenteval.evaluators.workflows.chart.nouns import Chart, Node
from agenteval.evaluators.workflows.chart.schemas import listed, schema_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")
_CLOSE = 0.8


def tool_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """What is wrong with the tools that nodes name."""
    names = [t.name for t in tools]
    known = known_words(tools, chart.parameters)
    found: list[Defect] = []
    called: set[str] = set()
    for node in chart.nodes:
        here = names_in(node.text, names)
        if node.shape == "call":
            called.update(here)
            found += _call_node(node, here, names, known)
        else:
            found += [
                at_node("tool_in_reply", node, f"{node.id} names {name} and is no >call]",
                        "warning")
                for name in dict.fromkeys(here)
            ]  # fmt: skip
    found += [
        Defect(kind="unused_tool", message=f"no node calls {name}", severity="warning")
        for name in names
        if name not in called
    ]
    return [*found, *_parameters(chart, tools)]


def _call_node(
    node: Node, here: Sequence[str], names: Sequence[str], known: set[str]
) -> Iterator[Defect]:
    strange = list(tool_like(node.text, names, known))
    if not here:
        words = dict.fromkeys([*strange, *(w for w in WORD.findall(node.text) if len(w) > 3)])
        near = next((h for w in words if (h := near_name(w, names))), None)
        hint = f"; is {near} meant?" if near else f"; known: {', '.join(names)}"
        told = f" ({', '.join(strange)} is none)" if strange else ""
        yield at_node("no_tool", node, f"{node.id} names no known tool{told}{hint}")
        return
    for word in strange:
        near = near_name(word, names)
        hint = f"; is {near} meant?" if near else ""
        yield at_node("unknown_tool", node, f"{node.id} names {word}, which is no tool{hint}")
    for name, count in Counter(here).items():
        if count > 1:
            told = f"{node.id} names {name} {count} times, which is read as one call"
            yield at_node("repeated_tool", node, told, "warning")


def near_name(word: str, names: Sequence[str]) -> str | None:
    """The tool's name that the word is nearly, None when there is none."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower()[:80], by_lower, 1, _CLOSE)
    return by_lower[near[0]] if near else None


def tool_like(text: str, names: Sequence[str], known: set[str]) -> Iterator[str]:
    """Words that look like names of tools and are none, each once.

    Those with an underscore; and those like checkStatus, where tools are named in that way.
    """
    camel = any(_CAMEL.fullmatch(name) for name in names)
    for word in dict.fromkeys(WORD.findall(text)):
        looks = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
        if looks and word not in known:
            yield word


def known_words(tools: Iterable[WorkflowTool], parameters: Iterable[str] = ()) -> set[str]:
    """Names that a procedure may write: tools, parameters, returned fields, enumerated values."""
    known = set(parameters)
    for tool in tools:
        known |= {tool.name, *tool.fields}
        properties = tool.parameters.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            known.add(name)
            known |= _enumerated(schema)
        for field in tool.fields:
            known |= _enumerated(schema_of(tool, field))
    return known


def _enumerated(schema: object) -> set[str]:
    values = listed(schema) if isinstance(schema, dict) else None
    return {word for value in values or () for word in WORD.findall(str(value))}


def _parameters(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Auxiliary parameters go to no tool: a tool's own are described in its schema."""
    for name, description in chart.parameters.items():
        owner = next((t.name for t in tools if name in _parameter_names(t)), None)
        if owner:
            told = f"the auxiliary parameter {name} is one of {owner}; its schema describes it"
            yield Defect(kind="parameter", message=told, severity="warning")
        elif not description:
            told = f"the auxiliary parameter {name} has no description"
            yield Defect(kind="parameter", message=told, severity="warning")


def _parameter_names(tool: WorkflowTool) -> set[str]:
    properties = tool.parameters.get("properties")
    return set(properties) if isinstance(properties, dict) else set()
