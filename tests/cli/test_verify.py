"""verify from end to end: copies are judged and stored, verdicts shown, written and gated."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from agenteval.store import Store
from agenteval.testing import serve
from tests.cli.conftest import Cli


def answer(body: dict[str, Any], n: int) -> str:
    """Always the same levels."""
    return json.dumps(
        {"clarity": {"explanation": "c.", "label": "clear"},
         "accuracy": {"explanation": "a.", "label": "correct"}}
    )  # fmt: skip


def test_originals_and_copies_are_judged_once(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        command = ("verify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                   "--perturb", "pad", "--perturb", "whitespace")  # fmt: skip
        dry = cli(*command, "--dry-run")
        assert server.count == 0
        first = cli(*command, "--json")
        asked = server.count
        again = cli(*command, "--json")
        assert server.count == asked
    assert first.code == 0, first.err
    runs = len((project / "runs.jsonl").read_text().splitlines())
    assert f"texts: {runs} originals and" in dry.out
    assert first.json == again.json
    assert first.json["judge"]["verdict"] == "not enough data"
    with Store(project / "agenteval.db", create=False) as store:
        rows = store.runs().values()
    copies = [r for r in rows if r["origin"]]
    assert copies
    assert asked == 2 * (runs + len(copies))
    written = json.loads((project / "criteria" / "sums.verified.json").read_text())
    verdicts = {c["id"]: c["verification"]["verdict"] for c in written["criteria"]}
    assert verdicts == {"clarity": "undecided", "accuracy": "undecided"}  # three cases


def test_bad_input_is_one_line(cli: Cli, project: Path) -> None:
    for arguments, said in (
        ((), "say which runs"),
        (("runs.jsonl", "--perturb", "nonsense"), "unknown operator 'nonsense'"),
        (("--scores", "none.jsonl"), "cannot read"),
        (("runs.jsonl", "--scores", "s.jsonl"), "give runs to judge or ratings made elsewhere"),
        (("runs.jsonl", "--deterministic"), "--deterministic: is said of ratings made elsewhere"),
    ):
        result = cli("verify", *arguments)
        assert result.code == 2
        assert said in result.err
        assert len(result.err.strip().splitlines()) <= 3


def both_roles(body: dict[str, Any], n: int) -> str:
    """A critic that always proposes the same two criteria, and a quantifier that knows them."""
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    if "ideas" in asked:  # which names are the same: none
        return "{}"
    if "criteria" in asked:
        return json.dumps({"criteria": [
            {"name": name, "description": text, "accepted_values": ["bad", "middling", "good"]}
            for name, text in (("Clarity", "Is it easy to follow?"),
                               ("Use of units", "Are quantities given with their units?"))
        ]})  # fmt: skip
    labels = {i: entry["properties"]["label"]["enum"][-1] for i, entry in asked.items()}
    return json.dumps({i: {"explanation": "e.", "label": label} for i, label in labels.items()})


@pytest.mark.xdist_group("local")  # loads the embedder
def test_a_second_round_adds_what_is_new_and_ends_when_nothing_is(cli: Cli, project: Path) -> None:
    with serve(both_roles) as server:
        result = cli("verify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                     "--perturb", "pad", "--rounds", 3)  # fmt: skip
    assert result.code == 0, result.err
    assert cli("export", "--replies", "r.jsonl").code == 0
    recorded = [json.loads(line) for line in (project / "r.jsonl").read_text().splitlines()]
    # five critics after each of two rounds; what they said was paid for as well
    assert sum(one["role"] == "critic" and "reply" in one for one in recorded) == 10
    assert "round 1: 0 dropped; 1 of 2 proposals say something new" in result.err
    assert "nothing new was proposed" in result.err
    written = json.loads((project / "criteria" / "sums.verified.json").read_text())
    assert [c["id"] for c in written["criteria"]] == ["clarity", "accuracy", "use-of-units"]
    assert all(c["verification"]["verdict"] == "undecided" for c in written["criteria"])


@pytest.mark.xdist_group("local")  # loads the embedded judge
def test_interrupting_the_embedded_critic_is_not_held_back(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError("the interrupt was held back")

    monkeypatch.setattr("agenteval.api.verifying.propose_from_bank", interrupted)
    result = cli("verify", "runs.jsonl", "--model", "embedded", "--perturb", "pad",
                 "--rounds", 2, "--repeats", 1)  # fmt: skip
    assert result.code == 130, result.err
    said = " ".join(result.err.split())
    assert "interrupted: what is done is stored; the same command goes on" in said
    assert "replies" not in said  # nobody was asked


@pytest.mark.xdist_group("local")  # loads the embedder
def test_rounds_are_one_json_document(cli: Cli, project: Path) -> None:
    with serve(both_roles) as server:
        result = cli("verify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
                     "--perturb", "pad", "--rounds", 2, "--json")  # fmt: skip
        roles = [r.body for r in server.requests if "ideas" in json.dumps(r.body)]
    assert result.code == 0, result.err
    assert [len(one["criteria"]) for one in result.json["rounds"]] == [2, 3]
    (first, last) = result.json["tables"]["rounds"]["rows"]
    assert (first["new"], first["known"], last["new"]) == (1, 1, None)
    assert len(result.json["criteria"]) == 3
    assert roles  # the critics' names are consolidated
