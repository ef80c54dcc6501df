"""criteria: what is merged, by whom, and what is printed of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.testing import serve
from agenteval.testing.thread import Server
from tests.cli.conftest import Cli

LEVELS = ["bad", "middling", "good"]
PROPOSED = [  # by seed
    [("Accuracy", LEVELS), ("Clarity", ["clear", "unclear"])],
    [("1. accuracy", LEVELS), ("Correct result", LEVELS), ("Clarity", ["clear", "unclear"])],
    [("Correct step", LEVELS), ("Brevity", ["wordy", "concise"])],
]
ANGLES = {"accuracy": 0, "correct result": 35, "correct step": 62, "clarity": 150, "brevity": 230}
# in the order in which they are shown: accuracy, brevity, clarity, correct result, correct step
IDEAS = {
    "ideas": [
        {"question": "Is the result right?", "entries": [1, 4]},
        {"question": "Is it short?", "entries": [2]},
        {"question": "Is it clear?", "entries": [3]},
        {"question": "Is each step right?", "entries": [5]},
    ],
    "part_of": [[5, 1]],
}


class Angles:
    """Vectors at the angles of the names, in degrees; heads of names are all alike."""

    name, default_tau = "angles", 0.9

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        angle = np.radians([ANGLES.get(text, 0) for text in texts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def answer(body: dict[str, Any], n: int) -> str:
    if "ideas" in json.dumps(body.get("response_format")):
        return json.dumps(IDEAS)
    return json.dumps(
        {
            "criteria": [
                {"name": name, "description": "", "accepted_values": levels}
                for name, levels in PROPOSED[body["seed"]]
            ]
        }
    )


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(answer) as serving:
        yield serving


@pytest.fixture
def ask(cli: Cli, project: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`ask(...)` is what `criteria` of three seeds returns, five criteria by embedding alone."""
    monkeypatch.setattr("agenteval.utility.proposals.make_embedder", lambda *a, **k: Angles())

    def run(*more: object, url: str = server.base_url, code: int = 0) -> Any:
        done = cli(
            "criteria",
            "--task",
            "sums",
            "--model",
            "m",
            "--base-url",
            url,
            "--seeds",
            3,
            "--store",
            "s.db",
            "-o",
            "out.json",
            *more,
        )
        assert done.code == code, done.err
        return done

    return run


def test_the_critic_joins_what_the_embedder_does_not(
    cli: Cli, ask: Any, server: Server, project: Path
) -> None:
    done = ask()
    assert server.count == 4
    assert "grouped 5 names into 4 ideas (5 by embedding alone) in 1 request" in (
        " ".join(done.out.split())
    )
    told = " ".join(done.out.split())
    assert re.search(r"separate criteria: Correct step → (Accuracy|Correct result)", told)
    # 7 proposals of 3 seeds are 4 ideas; the sets hold 2 each, and two of them the same
    curve = ask("--json").json["tables"]["unique"]["rows"]
    assert [round(row["merged"], 1) for row in curve] == [2.0, 3.3, 4.0]
    kept = {c["name"]: c for c in json.loads((project / "out.json").read_text())["criteria"]}
    assert len(kept) == 4
    (joined,) = [
        a for c in kept.values() for a in c["provenance"].get("aliases", []) if a.get("by")
    ]
    assert (joined["by"], joined["model"], joined["why"]) == (
        "consolidation",
        "m",
        "Is the result right?",
    )
    # stored: not asked again; recorded: replayed
    assert ask("--json").json["consolidation"]["groups"] == 4
    assert server.count == 4
    assert cli("export", "--replies", "all.jsonl", "--store", "s.db").code == 0
    again = ask("--model", "replay:all.jsonl", "--store", "t.db", "--json").json
    assert (again["consolidation"]["groups"], again["consolidation"]["problems"]) == (4, [])


def test_without_consolidation_near_misses_are_named(ask: Any, server: Server) -> None:
    done = ask("--no-consolidate")
    assert server.count == 3
    assert "consolidation" not in done.out
    told_all = " ".join(done.out.split())
    # cos 27 and cos 35 degrees; the others are more than .15 below tau
    assert (
        "(cosine): Correct result ~ Correct step (0.89); Accuracy ~ Correct result (0.82)"
    ) in told_all
    assert told_all.count(" ~ ") == 2
    told = ask("--no-consolidate", "--json").json
    assert (told["consolidation"], len(told["near_misses"])) == (None, 2)
    # tau .9: cos 35 degrees is .82; at tau .98 it is more than .15 below, cos 27 (.89) is not
    (miss,) = ask("--no-consolidate", "--tau", 0.98, "--json").json["near_misses"]
    assert (miss["left"], miss["right"]) == ("Correct result", "Correct step")
    assert ask("--json").json["near_misses"] == []  # the model has been asked about all of them
    assert "(cosine)" not in ask("--no-consolidate", "--tau", 0.6).out


@pytest.mark.parametrize(("more", "asked"), [((), True), (("--no-consolidate",), False)])
def test_the_dry_run_counts_it(ask: Any, more: tuple[str, ...], asked: bool) -> None:
    parts = {p["who"]: p for p in ask("--dry-run", "--json", *more).json["parts"]}
    names = "critic, about equal names"
    assert (names in parts) is asked
    if asked:  # three seeds of at most 40 names: pieces of at most 80, their groups, repairs
        assert parts[names]["most"]["requests"] == 2 * (2 * 120 // 80 + 2)
        assert parts[names]["least"]["requests"] == 0


def test_at_80_columns_it_stays_whole(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenteval.cli.console import err, out

    monkeypatch.setenv("COLUMNS", "80")
    out.cache_clear()
    err.cache_clear()
    try:
        printed = ask().out
    finally:
        out.cache_clear()
        err.cache_clear()
    assert max(map(len, printed.splitlines())) <= 80
    words = " ".join(printed.split())
    assert "into 4 ideas" in words


def test_a_stored_reply_that_cannot_be_read_is_asked_again(cli: Cli, project: Path) -> None:
    """Two unreadable replies, of which the second is the repair; then a readable one."""

    def late(body: dict[str, Any], _: int) -> str:
        return answer(body, 0) if server.count > 2 else "I would rather not."

    with serve(late) as server:
        asked = (
            "criteria",
            "--task",
            "sums",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--seeds",
            1,
            "--tau",
            1,
            "-o",
            "c.json",
        )
        first = cli(*asked)
        assert (first.code, server.count) == (3, 2)
        assert "stored reply" not in first.err
        again = cli(*asked)
        assert (again.code, server.count) == (3, 2)
        assert "--retry-failed" in again.err
        assert "at least 1," in cli(*asked, "--retry-failed", "--dry-run").out
        assert server.count == 2
        assert cli(*asked, "--retry-failed").code == 0
        assert server.count == 3
        assert cli(*asked).code == 0  # the later reply is found without being asked for
        assert server.count == 3
