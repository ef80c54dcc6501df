"""The commands that put agents to work or look for errors in what they did, and their model.

A user pays for these as well: for the agent, for the judge, for the finder. Each reply is a
function of the request alone, so that an interrupted run and another one can be compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agenteval.testing import DEFAULT
from agenteval.testing.engine import Default
from benchmarks.folders import ROOT
from tests.support.long_trace import LongTrace

TRACES = tuple(f"{seed + 1:032x}" for seed in range(6))  # ids, by the seed that makes them
TOKENS = 6000  # of the file of one trace
CONCURRENCY = 2
ROLE = str(ROOT / "tasks" / "flows" / "hotel_reception")
_GOALS = re.compile(r"<<BEGIN goals [0-9a-f]{24}>>\n(.*?)\n<<END", re.S)
_NONCE = re.compile(r"[0-9a-f]{24}")
Words = Callable[[str], tuple[str, ...]]


def reply(body: Mapping[str, Any], properties: Mapping[str, Any]) -> str | Default:
    """What an agent says, or a judge of sessions or replies; the finder gets the default."""
    said = [str(message["content"]) for message in body["messages"]]
    drawn = hashlib.sha256(_NONCE.sub("", "\n".join(said)).encode()).digest()
    if "goals" in properties:
        return _goals("\n".join(said), drawn)
    if "score" in properties:
        reasons = dict.fromkeys(("correctness", "helpfulness", "humanness"), "It reads well.")
        return json.dumps({**reasons, "score": drawn[0] % 11})
    if not properties and "Action Input" in said[0]:
        return _step(said[0], drawn)
    return DEFAULT


def _goals(text: str, drawn: bytes) -> str:
    found = _GOALS.search(text)
    numbers = re.findall(r"^(\d+)\. ", found.group(1) if found else "", re.M)
    rows = [
        {"number": int(n), "evidence": "", "reason": "As drawn.", "achieved": bool(drawn[0] & 1)}
        for n in numbers
    ]
    return json.dumps({"goals": rows, "success": bool(drawn[0] & 1)})


def _step(instructions: str, drawn: bytes) -> str:
    """A call without parameters in one of three messages, else some words."""
    tools = sorted(set(re.findall(r"call (\w+_\w+)", instructions)))
    thought = f"Thought: 1. intent=UNK; 2. Next, I need to go on {drawn.hex()[:6]}."
    if tools and drawn[1] % 3 == 0:
        return f"{thought}\nAction: {tools[drawn[2] % len(tools)]}\nAction Input: {{}}"
    return f"{thought}\nResponse: Tell me more about {drawn.hex()[6:12]}, please."


def commands(
    *, users: int, turns: int, traces: int, trials: int
) -> dict[str, tuple[Words, tuple[str, ...]]]:
    """Words by the base URL, and output files, by name."""

    def asks(*words: str) -> Words:
        common = ("--json", "--store", "s.db", "-j", str(CONCURRENCY))
        return lambda url: (*(word.replace("URL", url) for word in words), *common)

    model = ("--model", "openai:test-model", "--base-url", "URL")
    judge = ("--judge", "openai:test-model", "--judge-url", "URL")
    session = ("flow", "session", ROLE, "--user", "scripted", *judge, "--limit", str(users))
    many = ("--trials", str(trials))
    predict = ("flow", "turn", ROLE, "--agent", "template", *model, *judge, "--limit", str(turns))
    found = tuple(f"found/{name}.json" for name in TRACES[:traces])
    locate = ("trace", "locate", "traces", *model, "--limit", str(traces), "-o", "found")
    return {
        "flow session": (asks(*session, "--agent", "recorded:perfect", *many), ()),
        # The scripted user understands little of what a test server says: sessions without verdict.
        "flow session model": (
            asks(*session, "--agent", "template", *model, "--turns", "2", "--max-unscored", "1"),
            (),
        ),
        "flow turn": (asks(*predict, *many), ()),
        "trace locate": (asks(*locate), found),
    }


def make_traces(folder: Path, count: int) -> None:
    """The traces that are searched, one file of spans each."""
    folder.mkdir()
    for seed, name in enumerate(TRACES[:count]):
        rows = []
        for span in LongTrace(TOKENS, seed).spans():
            said = "\n".join(m.content for m in span.reply)
            attributes = {
                "openinference.span.kind": span.kind.upper(),
                "input.value": span.input or "\n".join(m.content for m in span.messages),
                "output.value": span.output or said,
            }
            row: dict[str, Any] = {"trace_id": name, "span_id": span.id, "name": span.name}
            row |= {"parent_id": span.parent_id, "start_time": span.start}
            row["attributes"] = attributes
            rows.append(json.dumps(row) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
