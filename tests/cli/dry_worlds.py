"""Servers and small projects for dry runs: what is said must hold for what is then asked."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agenteval.testing import DEFAULT, Server
from tests.cli import traces
from tests.cli.conftest import CRITERIA, Cli

DESK = Path(__file__).parents[1] / "workflows" / "library_desk"
Answer = Callable[[dict[str, Any], int], Any]
GRADES = {
    **{
        n: {"reason": "because", "score": 2}
        for n in ("reliability", "security", "instruction_adherence", "plan_opt")
    },
    "overall": 2,
}
BEST = {"clarity": "clear", "accuracy": "correct"}


def prompt(body: dict[str, Any]) -> str:
    return "\n".join(str(m.get("content") or "") for m in body["messages"])


def schema(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return found.get("properties", {})  # type: ignore[no-any-return]


def good(body: dict[str, Any], n: int) -> Any:  # noqa: C901  one kind of question after another
    """Every reply in form, and as short as its asker allows: nothing new, nothing to rise."""
    if body["model"] == "user":
        return "[DONE]" if "Goodbye" in prompt(body) else "Hello."
    if body["model"] == "agent":
        if "Final Answer:" in prompt(body):
            return "Final Answer: Goodbye!"
        template = "Response:" in prompt(body)
        return "Thought: all is said.\nResponse: Goodbye!" if template else "Goodbye!"
    asked = schema(body)
    if asked and set(asked) <= set(BEST):
        return json.dumps({k: {"explanation": "e.", "label": BEST[k]} for k in asked})
    if "criteria" in asked and "sub_criteria" not in json.dumps(asked):
        return json.dumps({"criteria": [{**c, "id": c["name"]} for c in CRITERIA]})
    if "criteria" in asked:
        return json.dumps(
            {
                "criteria": [
                    {"name": c["name"], "description": "d", "sub_criteria": CRITERIA}
                    for c in CRITERIA
                ]
            }
        )
    if "ideas" in asked:  # each name by itself
        numbers = re.findall(r"(?m)^(\d+)\. ", prompt(body))
        rows = [{"question": "q", "entries": [int(n)]} for n in numbers]
        return json.dumps({"ideas": rows, "part_of": []})
    if "goals" in asked:
        count = len(re.findall(r"(?m)^\d+\. ", prompt(body)))
        row = {"evidence": "e", "reason": "r", "achieved": True}
        return json.dumps(
            {"goals": [{"number": i + 1, **row} for i in range(count)], "success": True}
        )
    if "the four grades" in prompt(body):
        return json.dumps(GRADES)
    if "findings" in asked:
        return json.dumps({"findings": [], "summary": "s"})
    return DEFAULT


def nonsense(body: dict[str, Any], n: int) -> Any:
    """Nothing that anybody could read."""
    return "no form at all, " * 20


def long_nonsense(body: dict[str, Any], n: int) -> Any:
    """As much of it as is shown back."""
    return "words without any form " * 500


def empty(body: dict[str, Any], n: int) -> Any:
    return ""


def bad_then_low(body: dict[str, Any], n: int) -> Any:
    """As long out of form as 2,048 tokens of three bytes; the worst level when asked again."""
    if len(body["messages"]) == 2:
        return "words without any form " * 260
    worst = {"clarity": "unclear", "accuracy": "incorrect"}
    return json.dumps({k: {"explanation": "e.", "label": v} for k, v in worst.items()})


def every_second() -> Answer:
    """Out of form first and in form when it is asked again: what takes most requests."""
    asked = 0

    def answer(body: dict[str, Any], n: int) -> Any:
        nonlocal asked
        asked += 1
        if asked % 2 or body["model"] == "agent":
            return "Action: something\nAction Input: {" if asked % 2 else good(body, n)
        return good(body, n)

    return answer


def busy(body: dict[str, Any], n: int) -> Any:
    """An agent that calls its first tool for ever; users that never leave."""
    if body["model"] == "user":
        return "And what else can you tell me, please?"
    if body["model"] != "agent":
        return good(body, n)
    if body.get("tools"):
        call = {"name": body["tools"][0]["function"]["name"], "arguments": "{}"}
        return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    if "Observation" in prompt(body) or "Action Input" in prompt(body):
        return 'Thought: again.\nAction: find_book\nAction Input: {"title": "Dune"}'
    return "Response: And?"


def talkative(body: dict[str, Any], n: int) -> Any:
    """An agent that talks until it is stopped, with a user who stays."""
    if body["model"] == "agent":
        return f"Thought: t.\nResponse: Anything else, number {len(body['messages'])}?"
    return busy(body, n)


def inventive() -> Answer:
    """Critics that have something new to say in every round, each five the same."""
    count = 0

    def answer(body: dict[str, Any], n: int) -> Any:
        nonlocal count
        if "criteria" not in schema(body):
            return good(body, n) if set(schema(body)) <= set(BEST) else DEFAULT
        count += 1
        name = f"Thing {chr(97 + (count - 1) // 5)}"
        levels = ["bad", "middling", "good"]
        return json.dumps(
            {"criteria": [{"name": name, "description": "d", "accepted_values": levels}]}
        )

    return answer


class Letters:
    """An embedder by a hash of the text, so that only equal texts are alike."""

    name, default_tau = "letters", 0.9

    def embed(self, texts: Any) -> Any:
        rows = [np.random.default_rng(list(t.encode())).standard_normal(16) for t in texts]
        made = np.asarray(rows, dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


@dataclass(frozen=True)
class Way:
    """A command with --dry-run, its folder, and whether all of its requests are certain."""

    words: tuple[object, ...]
    make: Callable[[Cli, Path, Server], None]
    judges: tuple[str, ...] = ()  # options that take the server's address
    tokens: bool = True  # whether the prompts that are told can be compared with those sent
    exact: bool = True  # whether the good replies of this module take no more than what is certain
    bad: tuple[Answer | Callable[[], Answer], ...] = field(default=(every_second,))

    def line(self, url: str) -> list[object]:
        return [*self.words, *(x for option in self.judges for x in (option, url))]


def runs(cli: Cli, folder: Path, server: Server) -> None:
    """Four runs, and one that no judge is asked about."""
    task = folder / "tasks" / "sums"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text("name: sums\ndescription: Add the numbers, and explain it.\n")
    (folder / "criteria").mkdir()
    (folder / "criteria" / "sums.json").write_text(json.dumps(CRITERIA))
    lines = [
        {
            "id": f"{system}-{i}",
            "task": "sums",
            "system": system,
            "input": f"What is {i} + {i}?",
            "output": f"First {i} is taken. Then {i} is added. The sum is {2 * i}, says {system}.",
            "success": i != 2,
        }
        for system in ("alpha", "beta")
        for i in (1, 2)
    ]
    lines += [{**lines[0], "id": "empty", "output": ""}]
    (folder / "runs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))


def few(cli: Cli, folder: Path, server: Server) -> None:
    """Two runs, one of them a failure, and one that no judge is asked about."""
    runs(cli, folder, server)
    lines = (folder / "runs.jsonl").read_text().splitlines()
    (folder / "runs.jsonl").write_text("\n".join([lines[0], lines[3], lines[-1]]) + "\n")


def lopsided(cli: Cli, folder: Path, server: Server) -> None:
    """A long failure, which alone can get an attack, and two short successes."""
    runs(cli, folder, server)
    first = json.loads((folder / "runs.jsonl").read_text().splitlines()[0])
    lines = [
        {
            **first,
            "id": f"r{i}",
            "output": f"It is the sum of {i} and {i}. " * (1 if i else 900),
            "success": i > 0,
        }
        for i in range(3)
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))


def suite(cli: Cli, folder: Path, server: Server) -> None:
    """Two planning cases."""
    done = cli("plan", "synth", "--count", 2, "--n", "2-2", "--seed", 1, "-o", "suite.jsonl", "-q")
    assert done.code == 0, done.err


def two_traces(cli: Cli, folder: Path, server: Server) -> None:
    for made in (traces.weather(), traces.limited()):
        traces.write(folder / "traces", made)


def desk(cli: Cli, folder: Path, server: Server) -> None:
    """A role with a backend."""
    shutil.copytree(DESK, folder / "desk")
