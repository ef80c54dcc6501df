"""One small valid file of every kind that agenteval reads."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from agenteval.analysis.sampling import draw
from agenteval.stats.scores import score_table
from agenteval.store import Store

ROOT = Path(__file__).parents[2]
DESK = ROOT / "tests/workflows/library_desk"
SHED = ROOT / "docs/tool_shed"
_SPAN = "00000000000000a1"
_TRACE = "0000000000000000000000000000aaaa"


def write_valid_files(folder: Path) -> None:
    """Write one small valid file of every kind that agenteval reads into the folder."""
    runs = [
        {
            "id": f"r{i}",
            "task": "t",
            "system": s,
            "input": f"Add {i} and 1.",
            "success": i % 2 == 0,
            "output": f"The sum of {i} and one is {i + 1}, since one more than {i} is {i + 1}.",
        }
        for i, s in enumerate("abab")
    ]
    _lines(folder / "runs.jsonl", runs)
    table = ["question,answer,success\n"]
    table += [f'"{run["input"]}","{run["output"]}",{run["success"]}\n' for run in runs]
    (folder / "mails.csv").write_text("".join(table))
    criteria = [
        {
            "name": "accuracy",
            "description": "Is the sum right?",
            "scale": "ordinal",
            "order": "worst_to_best",
            "accepted_values": ["wrong", "right"],
        }
    ]
    _json(folder / "criteria.json", {"schema": 1, "task": "t", "criteria": criteria})
    task = folder / "t"
    task.mkdir()
    (task / "task.yaml").write_text("name: t\ndescription: Add two numbers.\n")
    rows = [f"r{i},accuracy,{i % 2}" for i in range(4)]
    (folder / "scores.csv").write_text("\n".join(["run,criterion,value", *rows]) + "\n")
    rated = [{"run": f"r{i}", "criterion": "accuracy", "value": i % 2} for i in range(4)]
    _lines(folder / "scores.jsonl", rated)
    sample = draw(score_table(rated), 2)
    drawn = [f'{run},accuracy,{weight:g},"{sample.name}"' for run, weight in sample.weights.items()]
    (folder / "sample.csv").write_text("\n".join(["run,criterion,weight,sample", *drawn]) + "\n")
    walk = {
        "id": "walk",
        "actions": ["walk", "swim"],
        "constraints": [{"first": "walk", "second": "swim", "sentences": [0]}],
        "text": "Swim takes place in the wake of walk.",
    }
    _lines(folder / "suite.jsonl", [walk])
    topic = {"role": "baker", "activities": ["a walk", "a swim", "a cake"]}
    _json(folder / "words.json", {"schema": 1, "topics": [topic]})
    _traces(folder)
    Store(folder / "known.db").close()
    shutil.copytree(DESK, folder / "desk")
    shutil.copytree(SHED, folder / "shed")
    _flow_rows(folder)


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value) + "\n")


def _traces(folder: Path) -> None:
    span = {
        "traceId": _TRACE,
        "spanId": _SPAN,
        "name": "call",
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "2000000000",
        "attributes": [
            {"key": "openinference.span.kind", "value": {"stringValue": "TOOL"}},
            {"key": "output.value", "value": {"stringValue": "Error: no such file"}},
        ],
    }
    _json(folder / "trace.json", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    _lines(folder / "trace.jsonl", [{"trace_id": _TRACE, "span_id": _SPAN, "name": "call"}])
    leaf = json.loads(files("agenteval.traces").joinpath("data/taxonomy.json").read_text("utf-8"))
    _json(folder / "taxonomy.json", leaf)
    (folder / "taxonomy.yaml").write_text(json.dumps(leaf, indent=1) + "\n")
    error = {
        "category": leaf["leaves"][0]["name"],
        "location": _SPAN,
        "evidence": "no such file",
        "description": "d",
        "impact": "LOW",
    }
    gold = {"trace_id": _TRACE, "errors": [error], "scores": [{"reliability_score": 3}]}
    for name in ("gold", "found"):
        (folder / name).mkdir()
        _json(folder / name / f"{_TRACE}.json", gold)


def _flow_rows(folder: Path) -> None:
    row = {
        "id": "s_agent_turn-1",
        "messages": [{"role": "user", "content": "Dune, please"}],
        "apis": [],
        "gt_thought": {"current_node": "A"},
        "gt_response": "Which book?",
        "predict": "Thought: current_node=A\nResponse: Which book?",
    }
    _lines(folder / "rows.jsonl", [row])
    _json(folder / "rows.json", [row])
