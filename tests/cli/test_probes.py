"""verify --probes from end to end: what is asked, counted, resumed and shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.store import Store
from agenteval.testing import serve
from agenteval.utility.criteria_file import load_criteria
from tests.cli.conftest import Cli, Result

RUNS, REPEATS = 6, 2
PROBES = ["scale order", "wording", "rewording", "injection"]


def answer(body: dict[str, Any], n: int) -> str:
    """The best level of the plain list, and the worst if the list was reversed."""
    best = "the first value is the best" not in body["messages"][1]["content"]
    clarity, accuracy = ("clear", "correct") if best else ("unclear", "incorrect")
    labels = {"clarity": clarity, "accuracy": accuracy}
    return json.dumps({k: {"explanation": "e.", "label": v} for k, v in labels.items()})


def command(url: str, *more: object) -> tuple[object, ...]:
    options = f"--model gpt-m --base-url {url} --perturb whitespace"
    return ("verify", "runs.jsonl", *options.split(), *more)


def test_the_other_ways_are_asked_counted_and_resumed(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        asked = command(server.base_url)
        plain = cli(*asked, "--json")
        before = server.count
        dry = cli(*asked, "--probes", "--dry-run", "--json")
        assert server.count == before
        first = cli(*asked, "--probes", "--json")
        more = server.count - before
        again = cli(*asked, "--probes", "--json")
        assert server.count == before + more
    assert more == 3 * RUNS * REPEATS
    # the plain way is stored; nothing can rise here, which a dry run does not know
    assert told(dry) == {"judge": (more, 2 * more), TEXTS: (0, 2 * 2 * 2 * REPEATS)}
    assert "probes" not in plain.json
    assert first.json == again.json
    told_plain = first.json
    assert told_plain.pop("probes")
    assert {*told_plain["tables"]} - {*plain.json["tables"]} == {"probes", "measures"}
    for name in ("probes", "measures"):
        del told_plain["tables"][name]
    assert told_plain == plain.json
    assert [p["name"] for p in first.json["probes"]] == PROBES
    with Store(project / "agenteval.db", create=False) as store:
        sources = [s.parameters for _, s in store.sources()]
    assert len(sources) == 4
    assert [s.get("reversed_scale") for s in sources].count(True) == 1
    assert [s.get("wording") for s in sources].count("b") == 1
    assert [s.get("reworded") for s in sources].count(True) == 1


TEXTS = "judge, of texts with an attack"


def told(dry: Result) -> dict[str, tuple[int, int]]:
    """Least and most requests of every part of a dry run."""
    found = {p["who"]: (p["least"]["requests"], p["most"]["requests"]) for p in dry.json["parts"]}
    sums = tuple(map(sum, zip(*found.values(), strict=True)))
    assert sums == (dry.json["requests"]["least"], dry.json["requests"]["most"])
    return found


def test_a_dry_run_prices_plain_calls_probes_and_their_sum(cli: Cli, project: Path) -> None:
    asked = command(
        "http://127.0.0.1:9/v1", "--probes", "--dry-run", "--price-in", 1, "--price-out", 10
    )
    dry = cli(*asked, "--json")
    assert dry.code == 0, dry.err
    # two runs are failures: each gets two texts at most, two repeats of two criteria
    plain, text = 2 * RUNS * REPEATS, 2 * 2 * REPEATS
    other = 3 * RUNS * REPEATS
    certain = plain + other
    assert told(dry) == {"judge": (certain, 2 * certain), TEXTS: (0, 2 * text)}
    judge, _ = dry.json["parts"]
    assert judge["most"]["reply_tokens"] == 2 * certain * 2048
    assert dry.json["cost"]["least"] == pytest.approx(judge["least"]["prompt_tokens"] / 1e6)
    capped = cli(*asked, "--max-cost", 0.01)
    # a reply of 2,048 tokens alone costs 0.0205
    (reserved,) = re.findall(r"up to about ([\d.]+) is\s+reserved for\s+one request", capped.out)
    assert 0.0205 < float(reserved) < 0.05
    assert "the cap is lower: no such request is sent" in " ".join(capped.out.split())
    assert not (project / "agenteval.db").exists()


def test_what_has_no_judge_or_no_prompt_is_told_so(cli: Cli, project: Path) -> None:
    elsewhere = cli("verify", "--scores", "s.csv", "--probes")
    assert elsewhere.code == 2
    assert "--probes" in elsewhere.err


def low(body: dict[str, Any], n: int) -> str:
    labels = {"clarity": "unclear", "accuracy": "incorrect"}
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


def test_what_probes_asked_stays_apart_in_export_and_show(cli: Cli, project: Path) -> None:
    with serve(low) as server:
        done = cli(*command(server.base_url), "--probes", "-o", "kept.json", "--json")
    written = json.loads((project / "kept.json").read_text())
    assert written["probes"] == done.json["probes"]
    assert load_criteria(project / "kept.json").criteria.task == "sums"

    plain = cli("export", "plain.jsonl", "--with-copies")
    assert "left out: 4 sources that `verify --probes` asked in other ways" in plain.err
    assert cli("export", "all.jsonl", "--all-ways", "--with-copies").code == 0
    originals = cli("export", "originals.jsonl")
    assert f"{RUNS * 2 * REPEATS} results written" in originals.err
    assert f"left out: {RUNS * 2 * REPEATS} results on perturbed copies" in originals.err
    rows, more = (
        [json.loads(x) for x in (project / f"{name}.jsonl").read_text().splitlines()]
        for name in ("plain", "all")
    )
    assert {r["way"] for r in rows} == {""}
    assert [r for r in more if not r["way"]] == rows
    by_way = Counter(r["way"] for r in more)
    # the plain judge saw originals and copies; the two failures got two texts each
    assert by_way == {
        "": 2 * RUNS * 2 * REPEATS,
        "reversed scale": RUNS * 2 * REPEATS,
        "wording b": RUNS * 2 * REPEATS,
        "reworded": RUNS * 2 * REPEATS,
        "injection probe": 2 * 2 * 2 * REPEATS,
    }

    listed = {
        s["way"]: s["source"]
        for s in cli("show", "--sources", "--json").json["tables"]["sources"]["rows"]
    }
    assert set(listed) == set(by_way)
    lines = cli("show", "--sources").out
    assert all(way in lines for way in by_way)
    shown = cli("show", "--source", listed["injection probe"])
    assert "a source of `verify --probes`" in shown.out
    assert "8 of 'attack' copies, 8 of 'control' copies" in " ".join(shown.out.split())
    assert "0 runs of 0 cases" not in shown.out
    turned = cli("show", "--source", listed["reversed scale"])
    assert "asked in this way: reversed scale" in turned.out
    assert cli("show", "--source", listed["wording b"], "--json").json["way"] == "wording b"
    assert cli("show", "--json").json["way"] == ""
    by_hand = cli("export", "one.jsonl", "--with-copies", "--source", listed["injection probe"])
    assert "left out" not in by_hand.err
    assert len((project / "one.jsonl").read_text().splitlines()) == by_way["injection probe"]
