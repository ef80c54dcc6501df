"""verify --probes from end to end: what is asked, counted, resumed and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.store import Store
from agenteval.testing import serve
from tests.cli.conftest import Cli

RUNS, REPEATS = 6, 2
PROBES = ["position", "scale order", "wording", "injection", "verbosity", "scale use",
          "self-preference"]  # fmt: skip


def answer(body: dict[str, Any], n: int) -> str:
    """The best level of the plain list, and the worst where the list was turned round."""
    best = "the first value is the best" not in body["messages"][1]["content"]
    clarity, accuracy = ("clear", "correct") if best else ("unclear", "incorrect")
    return json.dumps(
        {"clarity": {"explanation": "c.", "label": clarity},
         "accuracy": {"explanation": "a.", "label": accuracy}}
    )  # fmt: skip


def command(url: str, *more: object) -> tuple[object, ...]:
    return ("verify", "runs.jsonl", "--model", "gpt-m", "--base-url", url,
            "--perturb", "whitespace", *more)  # fmt: skip


def test_the_other_ways_are_asked_counted_and_resumed(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        asked = command(server.base_url)
        plain = cli(*asked, "--json")
        before = server.count
        dry = cli(*asked, "--probes", "--dry-run")
        assert server.count == before
        first = cli(*asked, "--probes", "--json")
        more = server.count - before
        again = cli(*asked, "--probes", "--json")
        assert server.count == before + more
    assert more == 2 * RUNS * REPEATS
    # nothing can rise here: all are at the best level already, which a dry run cannot know
    assert f"probes: {more + 2 * 2 * REPEATS} calls more at most" in dry.out
    assert f"  {more} in other ways" in dry.out
    assert "  8 with text added: an attack and a control in 2 runs" in dry.out
    assert "probes" not in plain.json
    assert first.json == again.json
    assert {k: v for k, v in first.json.items() if k != "probes"} == plain.json
    assert [p["name"] for p in first.json["probes"]] == PROBES
    with Store(project / "agenteval.db", create=False) as store:
        sources = [s.parameters for _, s in store.sources()]
    assert len(sources) == 3
    assert [s.get("reversed_scale") for s in sources].count(True) == 1
    assert [s.get("wording") for s in sources].count("b") == 1


def test_with_few_cases_the_estimates_are_shown_and_nothing_is_decided(
    cli: Cli, project: Path
) -> None:
    with serve(answer) as server:
        result = cli(*command(server.base_url), "--probes")
        limited = cli(*command(server.base_url, "--limit", 2), "--probes", "--dry-run")
    assert result.code == 0, result.err
    shown = result.out
    assert shown.index("judge: ") < shown.index("probes of the judge")
    assert "-1.00" in shown  # best, then worst
    assert "are needed" in shown
    assert "  8 in other ways: 2 originals" in limited.out


def test_enough_cases_decide(cli: Cli, project: Path) -> None:
    lines = [
        {"id": f"r{i}", "task": "sums", "system": "alpha", "input": f"What is {i} + {i}?",
         "output": f"The sum of {i} and {i} is {2 * i}, by adding them."}
        for i in range(12)
    ]  # fmt: skip
    (project / "runs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    with serve(answer) as server:
        asked = command(server.base_url, "--probes", "--json", "--min-cases")
        few, enough = (
            {p["name"]: p for p in cli(*asked, cases).json["probes"]} for cases in (13, 12)
        )
    assert few["scale order"]["outcome"] == "unknown"
    order = enough["scale order"]
    assert order["outcome"] == "fail"
    difference = order["checks"][0]
    assert (difference["estimate"], difference["n"]) == (-1.0, 12)
    assert difference["p"] == 2 / 2**12  # all twelve fell: two of the sign patterns
    assert enough["position"]["outcome"] == "pass"
    assert enough["scale use"]["outcome"] == "unknown"  # three levels: too few to say


def test_a_cap_on_calls_holds_for_all_ways_together(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        assert cli(*command(server.base_url)).code == 0
        plain = server.count
        capped = cli(*command(server.base_url, "--max-calls", plain + 15), "--probes", "-j", 1)
        assert capped.code == 3
        assert server.count == plain + 15
        rest = cli(*command(server.base_url), "--probes")
        assert rest.code == 0
        assert server.count == plain + 2 * RUNS * REPEATS


def test_kin_is_warned_of(cli: Cli, project: Path) -> None:
    path = project / "runs.jsonl"
    path.write_text(path.read_text().replace('"alpha"', '"gpt-4-agent"'))
    with serve(answer) as server:
        result = cli(*command(server.base_url), "--probes", "--json")
    kin = {p["name"]: p for p in result.json["probes"]}["self-preference"]
    assert kin["outcome"] == "fail"
    assert "gpt-4-agent are kin: GPT" in kin["reason"]


def test_what_has_no_judge_or_no_prompt_is_told_so(cli: Cli, project: Path) -> None:
    elsewhere = cli("verify", "--scores", "s.csv", "--probes")
    assert elsewhere.code == 2
    assert "the probes ask a judge" in elsewhere.err
    dry = cli("verify", "runs.jsonl", "--model", "embedded", "--probes", "--dry-run")
    assert "scale order and wording do not apply" in dry.out
