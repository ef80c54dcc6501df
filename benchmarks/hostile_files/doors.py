"""Every way by which a file comes in: each command and option that names one, with a clean file.

`doors(folder)` needs no model: commands that would ask one get a recording, or stop before.
`missing()` compares with the commands themselves, so that a new option cannot be forgotten.
"""

from __future__ import annotations

import inspect
import json
import shutil
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from agenteval.cli.main import COMMANDS, typed
from agenteval.stats.scores import score_table
from agenteval.store import Store
from agenteval.trust.sampling import draw
from benchmarks.folders import ROOT

DESK = ROOT / "tests/evaluators/workflows/library_desk"
SHED = ROOT / "docs/tool_shed"
_SPAN = "00000000000000a1"
_TRACE = "0000000000000000000000000000aaaa"


@dataclass(frozen=True)
class Door:
    """A file of the folder, its kind (see `inputs.py`), and the command that reads it.

    `option` is the command's parameter that names the file, or a folder that holds it. Exit codes
    in `fine` are those of the clean file. `lenient` readers keep what can be read of a file.
    """

    command: str
    option: str
    target: str
    kind: str
    arguments: tuple[str, ...]
    fine: tuple[int, ...] = (0,)
    lenient: bool = False

    @property
    def name(self) -> str:
        """As in messages of the benchmark."""
        return f"{self.command}: {self.option} ({self.target})"


def world(folder: Path) -> None:
    """A clean file of every kind, small ones."""
    runs = [
        {"id": f"r{i}", "task": "t", "system": s, "input": f"Add {i} and 1.", "success": i % 2 == 0,
         "output": f"The sum of {i} and one is {i + 1}, since one more than {i} is {i + 1}."}
        for i, s in enumerate("abab")
    ]  # fmt: skip
    _lines(folder / "runs.jsonl", runs)
    table = ["question,answer,success\n"]
    table += [f'"{run["input"]}","{run["output"]}",{run["success"]}\n' for run in runs]
    (folder / "mails.csv").write_text("".join(table))
    criteria = [{"name": "accuracy", "description": "Is the sum right?", "scale": "ordinal",
                 "order": "worst_to_best", "accepted_values": ["wrong", "right"]}]  # fmt: skip
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
    walk = {"id": "walk", "actions": ["walk", "swim"],
            "text": "Swim takes place in the wake of walk."}  # fmt: skip
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
    span = {"traceId": _TRACE, "spanId": _SPAN, "name": "call", "startTimeUnixNano": "1000000000",
            "endTimeUnixNano": "2000000000", "attributes": [
                {"key": "openinference.span.kind", "value": {"stringValue": "TOOL"}},
                {"key": "output.value", "value": {"stringValue": "Error: no such file"}},
            ]}  # fmt: skip
    _json(folder / "trace.json", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    _lines(folder / "trace.jsonl", [{"trace_id": _TRACE, "span_id": _SPAN, "name": "call"}])
    leaf = json.loads(files("agenteval.data").joinpath("traces/taxonomy.json").read_text("utf-8"))
    _json(folder / "taxonomy.json", leaf)
    (folder / "taxonomy.yaml").write_text(json.dumps(leaf, indent=1) + "\n")
    error = {"category": leaf["leaves"][0]["name"], "location": _SPAN, "evidence": "no such file",
             "description": "d", "impact": "LOW"}  # fmt: skip
    gold = {"trace_id": _TRACE, "errors": [error], "scores": [{"reliability_score": 3}]}
    for name in ("gold", "found"):
        (folder / name).mkdir()
        _json(folder / name / f"{_TRACE}.json", gold)


def _flow_rows(folder: Path) -> None:
    row = {"id": "s_agent_turn-1", "messages": [{"role": "user", "content": "Dune, please"}],
           "apis": [], "gt_thought": {"current_node": "A"}, "gt_response": "Which book?",
           "predict": "Thought: current_node=A\nResponse: Which book?"}  # fmt: skip
    _lines(folder / "rows.jsonl", [row])
    _json(folder / "rows.json", [row])


# command, parameter: (file, kind, arguments, exit codes of the clean file); {d} is the folder
_RUNS = "{d}/runs.jsonl"
_JUDGED = ("--task", "{d}/t", "--criteria", "{d}/criteria.json", "--store", "{d}/s.db")
_DRY = (*_JUDGED, "--dry-run")
_GOLD = ("--gold", "{d}/gold", "--pred", "{d}/found")
_TRIED = ("--agent", "scripted:reversed", "--store", "{d}/s.db")
_AGAIN = ("--agent", "scripted:reversed", "--store", "{d}/tried.db")
_LABELLED = ("--labels", "{d}/scores.csv", "--scores", "{d}/scores.jsonl")
_GOLD_FILE, _FOUND_FILE = f"gold/{_TRACE}.json", f"found/{_TRACE}.json"
DOORS = (
    Door("quantify", "runs", "runs.jsonl", "lines", ("quantify", _RUNS, *_DRY)),
    Door("quantify", "runs", "mails.csv", "csv", ("quantify", "{d}/mails.csv", *_DRY)),
    Door("quantify", "criteria", "criteria.json", "json", ("quantify", _RUNS, *_DRY)),
    Door("quantify", "task", "t/task.yaml", "yaml", ("quantify", _RUNS, *_DRY)),
    Door("verify", "runs", "runs.jsonl", "lines", ("verify", _RUNS, *_DRY)),
    Door("verify", "criteria", "criteria.json", "json", ("verify", _RUNS, *_DRY)),
    Door("verify", "labels", "scores.csv", "csv",
         ("verify", _RUNS, *_DRY, "--labels", "{d}/scores.csv")),
    Door("verify", "task", "t/task.yaml", "yaml", ("verify", _RUNS, *_DRY)),
    Door("perturb", "runs", "runs.jsonl", "lines", ("perturb", _RUNS, "-o", "{d}/made")),
    Door("verify", "scores", "scores.csv", "csv", ("verify", "--scores", "{d}/scores.csv")),
    Door("criteria", "task", "t/task.yaml", "yaml",
         ("criteria", "--task", "{d}/t", "--output", "{d}/made", "--dry-run")),
    Door("report", "criteria", "criteria.json", "json",
         ("report", "--scores", "{d}/scores.csv", "--criteria", "{d}/criteria.json",
          "-o", "{d}/made")),
    Door("report", "scores", "scores.jsonl", "lines",
         ("report", "--scores", "{d}/scores.jsonl", "-o", "{d}/made")),
    Door("report", "runs", "runs.jsonl", "lines", ("report", _RUNS, "-o", "{d}/made"), (2, 3)),
    Door("compare", "scores", "scores.csv", "csv",
         ("compare", "--scores", "{d}/scores.csv", "--with", "{d}/scores.jsonl"), (0, 4)),
    Door("compare", "with_", "scores.jsonl", "lines",
         ("compare", "--scores", "{d}/scores.csv", "--with", "{d}/scores.jsonl"), (0, 4)),
    Door("compare", "criteria", "criteria.json", "json",
         ("compare", "--scores", "{d}/scores.csv", "--with", "{d}/scores.jsonl",
          "--criteria", "{d}/criteria.json"), (0, 4)),
    Door("agree", "labels", "scores.csv", "csv", ("agree", *_LABELLED)),
    Door("agree", "scores", "scores.jsonl", "lines", ("agree", *_LABELLED)),
    Door("agree", "criteria", "criteria.json", "json",
         ("agree", *_LABELLED, "--criteria", "{d}/criteria.json")),
    Door("agree", "runs", "runs.jsonl", "lines", ("agree", *_LABELLED, "--runs", _RUNS)),
    Door("agree", "sample", "sample.csv", "csv",
         ("agree", *_LABELLED, "--sample", "{d}/sample.csv")),
    Door("agree sample", "scores", "scores.jsonl", "lines",
         ("agree", "sample", "--n", "2", "--scores", "{d}/scores.jsonl", "-o", "{d}/made.csv")),
    Door("agree sample", "criteria", "criteria.json", "json",
         ("agree", "sample", "--n", "2", "--scores", "{d}/scores.jsonl", "-o", "{d}/made.csv",
          "--criteria", "{d}/criteria.json")),
    Door("agree sample", "runs", "runs.jsonl", "lines",
         ("agree", "sample", "--n", "2", "--scores", "{d}/scores.jsonl", "-o", "{d}/made.csv",
          "--runs", _RUNS)),
    Door("design", "scores", "scores.csv", "csv", ("design", "--scores", "{d}/scores.csv")),
    Door("design", "criteria", "criteria.json", "json",
         ("design", "--scores", "{d}/scores.csv", "--criteria", "{d}/criteria.json")),
    Door("plan synth", "lexicon", "words.json", "json",
         ("plan", "synth", "--lexicon", "{d}/words.json", "--n", "2", "--count", "2",
          "-o", "{d}/made")),
    Door("plan test", "suite", "suite.jsonl", "lines",
         ("plan", "test", "{d}/suite.jsonl", *_TRIED)),
    Door("plan test", "lexicon", "words.json", "json",
         ("plan", "test", "{d}/suite.jsonl", "--lexicon", "{d}/words.json", *_TRIED)),
    Door("plan dissect", "suite", "suite.jsonl", "lines",
         ("plan", "dissect", "{d}/suite.jsonl", *_AGAIN), (0, 1)),
    Door("plan dissect", "lexicon", "words.json", "json",
         ("plan", "dissect", "{d}/suite.jsonl", "--lexicon", "{d}/words.json", *_AGAIN),
         (0, 1)),
    Door("plan report", "suite", "suite.jsonl", "lines",
         ("plan", "report", "{d}/suite.jsonl", "--store", "{d}/tried.db"), (0, 1)),
    Door("plan report", "lexicon", "words.json", "json",
         ("plan", "report", "{d}/suite.jsonl", "--lexicon", "{d}/words.json", "--store",
          "{d}/tried.db"), (0, 1)),
    Door("trace show", "path", "trace.json", "json", ("trace", "show", "{d}/trace.json"),
         lenient=True),
    Door("trace show", "path", "trace.jsonl", "lines", ("trace", "show", "{d}/trace.jsonl"),
         lenient=True),
    Door("trace show", "findings", _FOUND_FILE, "json",
         ("trace", "show", "{d}/trace.json", "--findings", "{d}/found"), lenient=True),
    Door("trace show", "taxonomy", "taxonomy.json", "json",
         ("trace", "show", "{d}/trace.json", "--findings", "{d}/found", "--taxonomy",
          "{d}/taxonomy.json")),
    Door("trace show", "taxonomy", "taxonomy.yaml", "yaml",
         ("trace", "show", "{d}/trace.json", "--findings", "{d}/found", "--taxonomy",
          "{d}/taxonomy.yaml")),
    Door("export", "traces", "trace.json", "json",
         ("export", "--otlp", "{d}/made.jsonl", "--traces", "{d}/trace.json",
          "--store", "{d}/known.db"), lenient=True),
    Door("trace locate", "paths", "trace.jsonl", "lines",
         ("trace", "locate", "{d}/trace.jsonl", "--detectors-only", "--store", "{d}/s.db",
          "-o", "{d}/made"), lenient=True),
    Door("trace locate", "taxonomy", "taxonomy.yaml", "yaml",
         ("trace", "locate", "{d}/trace.json", "--detectors-only", "--taxonomy",
          "{d}/taxonomy.yaml", "--store", "{d}/s.db", "-o", "{d}/made")),
    Door("trace score", "gold", _GOLD_FILE, "json", ("trace", "score", *_GOLD), lenient=True),
    Door("trace score", "pred", _FOUND_FILE, "json", ("trace", "score", *_GOLD), lenient=True),
    Door("trace score", "traces", "trace.json", "json",
         ("trace", "score", *_GOLD, "--traces", "{d}/trace.json"), lenient=True),
    Door("trace score", "taxonomy", "taxonomy.json", "json",
         ("trace", "score", *_GOLD, "--taxonomy", "{d}/taxonomy.json")),
    Door("trace stats", "paths", "trace.json", "json", ("trace", "stats", "{d}/trace.json"),
         lenient=True),
    Door("trace report", "paths", "trace.json", "json",
         ("trace", "report", "{d}/trace.json", "--findings", "{d}/found", "-o", "{d}/made"),
         lenient=True),
    Door("trace report", "findings", _FOUND_FILE, "json",
         ("trace", "report", "{d}/trace.json", "--findings", "{d}/found", "-o", "{d}/made"),
         lenient=True),
    Door("trace report", "gold", _GOLD_FILE, "json",
         ("trace", "report", "{d}/trace.json", "--findings", "{d}/found", "--gold", "{d}/gold",
          "-o", "{d}/made"), lenient=True),
    Door("trace report", "taxonomy", "taxonomy.yaml", "yaml",
         ("trace", "report", "{d}/trace.json", "--findings", "{d}/found", "--taxonomy",
          "{d}/taxonomy.yaml", "-o", "{d}/made")),
    Door("flow check", "roles", "desk/role.yaml", "yaml", ("flow", "check", "{d}/desk"), (0, 1)),
    Door("flow check", "roles", "desk/lend_book/profiles.yaml", "yaml",
         ("flow", "check", "{d}/desk"), (0, 1)),
    Door("flow check", "roles", "desk/lend_book/workflow.mmd", "text",
         ("flow", "check", "{d}/desk/lend_book/workflow.mmd"), (0, 1)),
    Door("flow check", "roles", "desk/lend_book/workflow.code", "text",
         ("flow", "check", "{d}/desk"), (0, 1), lenient=True),
    Door("flow check", "tools", "desk/lend_book/tools.json", "json",
         ("flow", "check", "{d}/desk/lend_book/workflow.mmd", "--tools",
          "{d}/desk/lend_book/tools.json"), (0, 1)),
    Door("flow turn", "roles", "desk/lend_book/scenario.yaml", "yaml",
         ("flow", "turn", "{d}/desk", *_TRIED), (0, 1, 2, 4)),
    Door("flow session", "roles", "desk/role.yaml", "yaml",
         ("flow", "session", "{d}/desk", "--agent", "recorded:perfect", "--user",
          "scripted", "--store", "{d}/s.db"), (0, 1, 2, 4)),
    Door("flow session", "roles", "desk/sessions/perfect.yaml", "yaml",
         ("flow", "session", "{d}/desk", "--agent", "recorded:perfect", "--user",
          "scripted", "--store", "{d}/s.db"), (0, 1, 2, 3, 4)),
    Door("flow import", "role", "shed/policy.md", "text",
         ("flow", "import", "{d}/shed", "{d}/shed/trajectories.jsonl", "--store", "{d}/s.db")),
    Door("flow import", "files", "shed/trajectories.jsonl", "lines",
         ("flow", "import", "{d}/shed", "{d}/shed/trajectories.jsonl", "--store", "{d}/s.db"),
         (0, 3), lenient=True),
    Door("flow score", "files", "rows.jsonl", "lines", ("flow", "score", "{d}/rows.jsonl")),
    Door("flow score", "files", "rows.json", "json", ("flow", "score", "{d}/rows.json")),
    Door("flow score", "workflow", "desk/lend_book/workflow.txt", "text",
         ("flow", "score", "{d}/rows.json", "--workflow", "{d}/desk/lend_book/workflow.txt"),
         (0, 2)),
)  # fmt: skip

# Texts that name no file, and files that are written.
_NO_INPUT = {
    "allow_criterion", "max_tokens", "param", "reasoning_effort", "score_failed_runs",
    "header", "columns", "description",
    "base_url", "base_urls", "ray", "job", "target", "model", "embedder", "output", "record",
    "store", "source", "rater", "perturb",
    "operators", "page",
    "a", "b", "criterion", "fail_under", "junit", "run", "n", "constraints", "words", "times",
    "topic", "agent", "trace", "system", "own", "category", "scenario", "formats", "kind",
    "scenarios", "profiles", "judge", "judge_url", "judgements", "user", "simulator",
    "simulator_url", "to", "figure", "name", "folder", "file", "success",
}  # fmt: skip
# The same words mean a file in one command and none in the other.
_ELSEWHERE = {
    ("report", "task"), ("compare", "task"), ("agree", "task"),  # names in the store
    ("agree sample", "task"), ("design", "task"),
    ("design", "cases"), ("design", "repeats"), ("quantify", "until"), ("quantify", "part"),
    ("agree", "context"),
    ("flow session", "tools"), ("flow report", "role"),  # a way to simulate them; names
    ("plan test", "runs"), ("plan report", "runs"), ("flow session", "runs"),  # written
    ("store copy", "target"),
    ("init", "runs"),  # read as by quantify; a second time the folder exists
}  # fmt: skip


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its function."""
    for name in COMMANDS:
        one = typed(name)
        own = one.registered_callback
        if own is not None and own.callback is not None:
            yield name, own.callback
        single = len(one.registered_commands) == 1 and own is None
        yield from _inside(one, () if single else (name,))


def _inside(group: typer.Typer, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for one in group.registered_commands:
        assert one.callback is not None
        yield " ".join((*path, one.name or one.callback.__name__)), one.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from _inside(inner.typer_instance, (*path, str(inner.name)))


def missing() -> list[str]:
    """Parameters of commands that may name a file to read and have no door."""
    known = {(door.command, door.option) for door in DOORS} | _ELSEWHERE
    found = []
    for name, function in commands():
        hints = typing.get_type_hints(function)
        for option in inspect.signature(function).parameters:
            kind = str(hints[option])
            names_a_file = ("Path" in kind or "str" in kind) and option not in _NO_INPUT
            if names_a_file and (name, option) not in known:
                found.append(f"{name}: {option}")
    return found
