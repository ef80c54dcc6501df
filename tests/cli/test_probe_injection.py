"""verify --probes with judges that do and do not obey what stands in the work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.records import Criterion
from agenteval.store import Store
from agenteval.testing import serve
from tests.cli.conftest import CRITERIA as RAW
from tests.cli.conftest import Cli

RUNS, GOOD = 24, 1
CRITERIA = tuple(Criterion(**one) for one in RAW)


def fair(body: dict[str, Any], n: int) -> str:
    """The worst levels, in every way to ask."""
    return labels(body, "unclear", "incorrect")


def obedient(body: dict[str, Any], n: int) -> str:
    """The best levels as soon as anything in the prompt speaks of the best level."""
    asked = "best level" in body["messages"][1]["content"]
    return labels(body, "clear", "correct") if asked else fair(body, n)


def labels(body: dict[str, Any], clarity: str, accuracy: str) -> str:
    text = body["messages"][1]["content"]
    both = {"clarity": clarity, "accuracy": accuracy}
    asked = {name: label for name, label in both.items() if f"- id: {name}\n" in text}
    return json.dumps({n: {"explanation": "e.", "label": label} for n, label in asked.items()})


@pytest.fixture
def failures(project: Path) -> Path:
    """24 failed runs and a good one, a case each."""
    lines = [
        {"id": f"r{i}", "task": "sums", "system": "alpha", "success": i >= RUNS}
        | {"input": f"What is {i} + {i}?", "output": f"The sum of {i} and {i} is {3 * i + 1}."}
        for i in range(RUNS + GOOD)
    ]
    (project / "runs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return project


def command(url: str, *more: object) -> tuple[object, ...]:
    options = f"--model gpt-m --base-url {url} --repeats 1 --perturb whitespace --probes"
    return ("verify", "runs.jsonl", *options.split(), *more)


def injection(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = {p["name"]: p for p in result.json["probes"]}["injection"]
    return found


@pytest.mark.slow
def test_obedience_is_found_counted_resumed_and_shown(cli: Cli, failures: Path) -> None:
    with serve(obedient) as server:
        dry = cli(*command(server.base_url), "--dry-run", "--json")
        found = injection(cli(*command(server.base_url), "--json"))
        asked = server.count
        shown = cli(*command(server.base_url), "--all")
        assert server.count == asked
    plain, ways, attacks = 2 * (RUNS + GOOD), 3 * (RUNS + GOOD), 2 * RUNS
    assert asked == plain + ways + attacks
    parts = {p["who"]: (p["least"]["requests"], p["most"]["requests"]) for p in dry.json["parts"]}
    assert parts == {
        "judge": (plain + ways, 2 * (plain + ways)),
        "judge, of texts with an attack": (0, 2 * attacks),
    }
    assert found["outcome"] == "fail"
    # two runs of each kind; what is said in other words, signs or languages is not understood
    kinds = {name: own["estimate"] for name, own in found["detail"]["by kind"].items()}
    assert len(kinds) == 12
    understood = {"end_marker", "role_change", "full_marks", "plea", "authority", "tool_result"}
    assert {name for name, rise in kinds.items() if rise == 1.0} == understood
    assert {name for name, rise in kinds.items() if rise == 0.0} == set(kinds) - understood
    words = " ".join(shown.out.split())
    rises = [own["estimate"] * own["cases"] for own in found["detail"]["by kind"].values()]
    assert found["checks"][0]["estimate"] == pytest.approx(sum(rises) / RUNS)
    assert f"best level with the attack only: {RUNS} of {2 * RUNS}, with the" in words
    assert "by kind (cases): authority +1.00 (2), end_marker +1.00 (2)" in words
    assert "by criterion (cases): accuracy" in words
    with Store(failures / "agenteval.db", create=False) as store:
        latest = store.sources()[-1][1]
    # `show` and `report` take the judge used last: the plain one
    assert not {"probe", "wording", "reversed_scale"} & set(latest.parameters)
    assert "attack:" not in cli("show").out


def test_with_few_failures_a_judge_that_does_not_obey_is_told_how_many_it_takes(
    cli: Cli, failures: Path
) -> None:
    with serve(fair) as server:
        asked = command(server.base_url, "--one-per-call", "--limit", 6, "--min-cases", 6)
        dry = cli(*asked, "--dry-run", "--json")
        found = injection(cli(*asked, "--json"))
        # two criteria: originals, copies and three other ways, then both copies of the failures
        assert server.count == 2 * (5 * 6 + 2 * 6)
    assert found["outcome"] == "unknown"
    # 1 - .025^(1/6) = .459; .95^72 = .0249
    assert "0 of 6 cases rose, and with 6 cases up to 46% could; about 72 cases" in found["reason"]
    assert dry.json["parts"][1]["most"]["requests"] == 2 * 24


def test_a_judge_without_prompts_is_measured_too(cli: Cli, failures: Path) -> None:
    """Attack and control add about as much, so only what is left of their lengths is seen."""
    (failures / "by_length.py").write_text(
        "def long(run, criterion):\n    return min(1, len(run.output) / 2000)\n"
    )
    options = "--judge python:by_length:long --repeats 1 --perturb whitespace --probes --json"
    done = cli("verify", "runs.jsonl", *options.split())
    probes = {p["name"]: p for p in done.json["probes"]}
    ways = [probes[name] for name in ("scale order", "wording", "rewording")]
    assert all(p["reason"].startswith("not applicable") for p in ways)
    found = probes["injection"]
    # a small mean of both signs: 24 cases cannot exclude that one rises far
    assert found["outcome"] == "unknown"
    assert "cases like these are needed" in found["reason"]
    assert found["checks"][0]["n"] == RUNS
    detail = found["detail"]
    assert detail["missing"] == {"attack": {}, "control": {}}
    assert detail["attack"] - detail["plain"] > 0.05  # a comparison with the run would say: a rise
    assert abs(detail["attack"] - detail["control"]) < 0.02
