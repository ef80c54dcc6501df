"""Small traces in the nested form, written by hand: one file each, known errors at known spans."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agenteval.records import GRADES

Node = dict[str, Any]


def span(name: str, kind: str | None, number: int, **more: Any) -> Node:
    """A span `number` (its id is 16 hex digits); `more`: attributes, children, error, seconds."""
    attributes = dict(more.get("attributes", {}))
    if kind is not None:
        attributes["openinference.span.kind"] = kind
    error = more.get("error")
    events = []
    if error is not None:
        attributes_of_error = {"exception.type": error[0], "exception.message": error[1]}
        time = "2025-03-01T10:00:01.000000Z"
        events = [{"Timestamp": time, "Name": "exception", "Attributes": attributes_of_error}]
    return {
        "timestamp": "2025-03-01T10:00:00.000000Z",
        "trace_id": "",
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "span_name": name,
        "span_kind": "Internal",
        "span_attributes": attributes,
        "duration": f"PT{more.get('seconds', 1.5)}S",
        "status_code": "Error" if error else "Ok",
        "status_message": error[1] if error else "",
        "events": events,
        "links": [],
        "logs": [],
        "child_spans": list(more.get("children", ())),
    }


def llm(number: int, asked: str, said: str, *, tokens: tuple[int, int] = (120, 30)) -> Node:
    """A call of a model."""
    return span(
        "LiteLLMModel.__call__",
        "LLM",
        number,
        attributes={
            "llm.model_name": "small",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": asked,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": said,
            "llm.token_count.prompt": str(tokens[0]),
            "llm.token_count.completion": str(tokens[1]),
        },
    )


def tool(number: int, name: str, given: str, gave: str, **more: Any) -> Node:
    """A call of a tool."""
    return span(
        name,
        "TOOL",
        number,
        attributes={"tool.name": name, "input.value": given, "output.value": gave},
        **more,
    )


def trace(name: str, roots: Iterable[Node]) -> Node:
    """The whole trace; parents and trace ids are filled in."""
    made = {"trace_id": name, "spans": list(roots)}

    def fill(node: Node, parent: str | None) -> None:
        node["trace_id"], node["parent_span_id"] = name, parent
        for child in node["child_spans"]:
            fill(child, node["span_id"])

    for root in made["spans"]:
        fill(root, None)
    return made


def write(folder: Path, made: Node) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{made['trace_id']}.json"
    path.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    return path


TASK = "How many parcels left on Monday?"
WEATHER, LIMITED, BROKEN = "a" * 32, "b" * 32, "c" * 32
# ids of the spans that hold the errors
INVENTED = f"{3:016x}"
REFUSED = f"{14:016x}"
INFORMED = f"{24:016x}"


def agent(name: str, number: int, *steps: tuple[int, Node, list[Node]]) -> Node:
    """A trace of one agent on TASK; a step is its number, more fields of it, and its children."""
    children = [
        span(f"Step {i}", "CHAIN", at, **more, children=inside)
        for i, (at, more, inside) in enumerate(steps, 1)
    ]
    attributes = {"input.value": TASK}
    root = span("CodeAgent.run", "AGENT", number, attributes=attributes, children=children)
    return trace(name, [root])


def weather() -> Node:
    """An agent that answers with a number that no tool gave (span 3)."""
    claim = "I have checked the archive: 4711 parcels left on Monday."
    last = llm(5, "Give the final answer.", "4711 parcels.")
    return agent(WEATHER, 1, (2, {}, [llm(3, TASK, claim)]), (4, {}, [last]))


def limited() -> Node:
    """An agent whose tool is refused for too many requests (span 14)."""
    refused = ("HTTPError", "429 Client Error: Too Many Requests for url: /search")
    search = tool(14, "archive_search", '{"query": "parcels Monday"}', "", error=refused)
    gone = llm(16, "The tool failed.", "I could not find out how many parcels left.")
    return agent(LIMITED, 11, (12, {}, [llm(13, TASK, "I look it up."), search]), (15, {}, [gone]))


def broken() -> Node:
    """An agent whose code could not be run (span 22); span 24 is the first to be told."""
    failed = {"error": ("NameError", "name 'parcels' is not defined")}
    told = llm(24, "The code failed.", "I try again.")
    return agent(BROKEN, 21, (22, failed, [llm(23, TASK, "print(parcels)")]), (25, {}, [told]))


def error(category: str, location: str, evidence: str = "", impact: str = "HIGH") -> Node:
    """An entry of the official layout."""
    return {
        "category": category,
        "location": location,
        "evidence": evidence,
        "description": "written by hand",
        "impact": impact,
    }


def annotation(folder: Path, name: str, errors: list[Node], grades: float | None = None) -> None:
    names = [f"{name}_score" for name in GRADES] + ["overall"]
    scores = {} if grades is None else dict.fromkeys(names, grades)
    folder.mkdir(parents=True, exist_ok=True)
    value = {"trace_id": name, "errors": errors, "scores": [scores] if scores else []}
    (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
