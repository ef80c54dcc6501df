"""The probe of references: who looks at them falls with another's, who does not is told so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli

CASES = 24
BLOCK = re.compile(r"<<BEGIN (work|reference) \S+>>\n(.*?)\n<<END", re.S)


def looks(body: dict[str, Any], n: int) -> str:
    """Right where the work holds the reference, if one is shown; clear in any case."""
    texts = dict(BLOCK.findall(body["messages"][1]["content"]))
    right = texts.get("reference", texts["work"]) in texts["work"]
    return reply("correct" if right else "incorrect")


def does_not_look(body: dict[str, Any], n: int) -> str:
    return reply("correct")


def reply(accuracy: str) -> str:
    labels = {"clarity": "clear", "accuracy": accuracy}
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


@pytest.fixture
def runs(project: Path) -> Path:
    lines = [
        {"id": f"r{i}", "task": "sums", "input": f"{i} + {i}?", "output": f"It is <{2 * i}>.",
         "success": i % 4 > 0, "reference": f"<{2 * i}>"}
        for i in range(CASES)
    ]  # fmt: skip
    path = project / "sums.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def probed(cli: Cli, runs: Path, url: str, *more: object) -> Any:
    return cli("verify", runs, "--model", "gpt-m", "--base-url", url, "--perturb", "whitespace",
               "--repeats", 1, "--min-cases", 10, "--probes", "--json", *more)  # fmt: skip


@pytest.mark.parametrize(
    ("judge", "outcome", "said"),
    [
        (looks, "pass", "with another's reference Accuracy falls by 1.000: it is looked at"),
        (does_not_look, "fail", "no criterion falls by more than 0.05: references shown to this"),
    ],
)
def test_own_reference_and_anothers(
    cli: Cli, runs: Path, judge: Any, outcome: str, said: str
) -> None:
    with serve(judge) as server:
        dry = probed(cli, runs, server.base_url, "--dry-run").json
        (part,) = [p for p in dry["parts"] if p["who"] == "probes, references"]
        right = CASES - CASES // 4
        assert part["least"]["requests"] == 2 * right
        done = probed(cli, runs, server.base_url)
        asked = server.count
        again = probed(cli, runs, server.base_url)
        assert server.count == asked
    for result in (done, again):
        assert result.code == 0, result.err
        (probe,) = [p for p in result.json["probes"] if p["name"] == "reference"]
        assert probe["outcome"] == outcome
        assert said in probe["reason"]
        assert probe["checks"][0]["n"] == right
    exported = cli("export", "all.jsonl", "--all-ways", "--with-copies")
    assert exported.code == 0
    rows = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    assert sum(row["way"] == "reference probe" for row in rows) == 2 * 2 * right
    shown = cli("show", "--json").json  # what was judged with a reference stays apart
    assert shown["ratings"] == 2 * CASES


def test_without_references_it_does_not_apply(cli: Cli, project: Path) -> None:
    with serve(does_not_look) as server:
        done = probed(cli, project / "runs.jsonl", server.base_url)
    (probe,) = [p for p in done.json["probes"] if p["name"] == "reference"]
    assert probe["outcome"] == "unknown"
    assert probe["reason"].startswith("does not apply: no two runs")
