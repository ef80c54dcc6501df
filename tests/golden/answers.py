"""What the loopback server of the golden cases answers, and agents that need no model.

No answer depends on the wording of a prompt: a judge looks for the work it knows in what it is
shown, an agent counts the turns of the talk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agenteval.testing import Fault
from tests.golden.files import CAPABLE, DATA

Answer = Callable[[dict[str, Any], int], Any]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def shown(body: dict[str, Any]) -> str:
    return "\n".join(str(m.get("content") or "") for m in body["messages"])


@cache
def _works() -> list[tuple[str, str, str]]:
    """(work, run, reply), the longest work first: a copy may hold another one whole."""
    rows = [
        (row["work"], row["run"], row["reply"]) for row in lines(CAPABLE / "judge/math_120.jsonl")
    ]
    return sorted(rows, key=lambda row: -len(row[0]))


def _known(body: dict[str, Any]) -> tuple[str, str]:
    """(run, reply) of the work that is shown."""
    text = shown(body)
    return next((run, reply) for work, run, reply in _works() if work in text)


def recorded_judge(body: dict[str, Any], n: int) -> Any:
    """The recorded reply to this work."""
    return _known(body)[1]


def troubled_judge(body: dict[str, Any], n: int) -> Any:
    """The recorded reply in part of the runs; else a refusal, prose, a level that is none."""
    run, reply = _known(body)
    number = int(run[5:7])
    if number % 5 == 0:
        return Fault("refusal", body="I would rather not.")
    if number % 5 == 1:
        return "This is good work, I think."
    if number % 5 == 2:
        labels = json.loads(reply)
        labels["accuracy"]["label"] = "splendid"
        return json.dumps(labels)
    return reply


def critic(body: dict[str, Any], n: int) -> Any:
    """What the recorded critic with this seed proposed."""
    return lines(CAPABLE / "critics/sets.jsonl")[body.get("seed", 0) % 5]["text"]


def in_turn(body: dict[str, Any], n: int) -> Any:
    """An agent: the next tool of the list in each turn, in either form of a call; then it ends."""
    asked = [m for m in body["messages"] if m["role"] == "assistant"]
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if not names:  # a prompt that holds the tools as text
        text = shown(body)
        tools = (
            [action["tool"] for action in case["actions"]] for case in lines(DATA / "suite.jsonl")
        )
        names = next(names for names in tools if all(name in text for name in names))
        if len(asked) < len(names):
            return f"Thought: next.\nAction: {names[len(asked)]}\nAction Input: {{}}"
        return "Thought: done.\nFinal Answer: All is done."
    if len(asked) == len(names):
        return "All is done."
    return _call(names[len(asked)], {})


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def assistant(body: dict[str, Any], n: int) -> Any:
    """An assistant that calls its first tool once, or goes on to talk; and a judge of sessions."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if "goals" in schema.get("properties", {}):
        count = len(re.findall(r"(?m)^\d+\. ", shown(body)))
        goal = {"evidence": "e", "reason": "r", "achieved": True}
        goals = [{"number": i + 1, **goal} for i in range(count)]
        return json.dumps({"goals": goals, "success": True})
    users = sum(m["role"] == "user" for m in body["messages"])
    if body.get("tools") and users % 2 and body["messages"][-1]["role"] == "user":
        return _call(body["tools"][0]["function"]["name"], {"day": "2031-09-15"})
    return "Goodbye!"


GRADES = ("reliability", "security", "instruction_adherence", "plan_opt")


def locator(body: dict[str, Any], n: int) -> Any:
    """A finder of errors that marks every span which it is shown with a 500 in it."""
    text = body["messages"][-1]["content"]
    if "the errors and the grades" in text:
        return json.dumps({"errors": [], "scores": [{"overall": 2}]})
    if "the four grades" in text:
        grades: dict[str, Any] = {name: {"reason": "r", "score": 2} for name in GRADES}
        return json.dumps(grades | {"overall": 2})
    marked = [
        {
            "span": span,
            "category": "Service Errors",
            "evidence": "500",
            "description": "failed",
            "impact": "HIGH",
            "confidence": 0.9,
        }
        for span, inside in re.findall(r"<<BEGIN (S\d+)[^\n]*\n(.*?)\n<<END", text, re.S)
        if "500" in inside
    ]
    return json.dumps({"findings": marked, "summary": "so far so good"})


def worst(body: dict[str, Any], n: int) -> Any:
    """The worst level of whatever is asked; the best where the prompt speaks of the best level."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    if "criteria" in schema:  # the critic, asked for more
        return json.dumps(
            {
                "criteria": [
                    {"name": name, "description": f"{name} of the work.", "accepted_values": levels}
                    for name, levels in _LEVELS.items()
                ]
            }
        )
    obeys = -1 if "best level" in body["messages"][-1]["content"] else 0
    labels = {
        name.lower(): {"explanation": "e.", "label": levels[obeys]}
        for name, levels in _LEVELS.items()
        if name.lower() in schema
    }
    return json.dumps(labels)


_LEVELS = {
    "Clarity": ["unclear", "partly clear", "clear"],
    "Accuracy": ["incorrect", "partially correct", "correct"],
    "Care": ["careless", "careful"],
}


def text_order(request: str, tools: Mapping[str, Callable[..., Any]]) -> str:
    """An agent in Python: every tool once, in the order in which the request names them."""
    phrases = {name: request.lower().find(name.replace("_", " ")) for name in tools}
    for name in sorted(phrases, key=phrases.__getitem__):
        tools[name]()
    return "done"
