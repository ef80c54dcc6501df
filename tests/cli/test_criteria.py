"""criteria: what is merged, by whom, and what is printed of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.testing import Server, serve
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
        options = f"--task sums --model m --base-url {url} --seeds 3 --store s.db -o out.json"
        done = cli("criteria", *options.split(), *more)
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


def test_a_stored_reply_that_cannot_be_read_is_asked_again(cli: Cli, project: Path) -> None:
    """Two unreadable replies, of which the second is the repair; then a readable one."""

    def late(body: dict[str, Any], _: int) -> str:
        return answer(body, 0) if server.count > 2 else "I would rather not."

    with serve(late) as server:
        options = f"--task sums --model m --base-url {server.base_url} --seeds 1 --tau 1 -o c.json"
        asked = ("criteria", *options.split())
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


# ---- the dry run: requests, tokens and cost, as upper bounds, and nobody is asked ----------------

URL = "http://127.0.0.1:9/v1"


def dry(cli: Cli, url: str, *more: object) -> Any:
    options = f"--task sums --model m --base-url {url} --tau 1 --seeds 3 --dry-run --json"
    done = cli("criteria", *options.split(), *more)
    assert done.code == 0, done.err
    return done.json


@pytest.mark.parametrize(("more", "each"), [((), 1), (("--bank",), 1), (("--sub-criteria",), 2)])
def test_tokens_and_cost_are_bounds(
    cli: Cli, project: Path, more: tuple[str, ...], each: int
) -> None:
    told = dry(cli, URL, "--price-in", 1, "--price-out", 10, "--max-cost", 9, *more)
    # each may be repaired once, and each seed's criteria may leave their order open
    most = 3 * (2 * each + 1)
    assert told["requests"] == {"least": 3, "most": most}
    # no request allows more than 6,000 tokens but that of a sub-critic, 8,000
    assert told["reply_tokens"]["least"] is None
    assert told["reply_tokens"]["most"] >= 3 * (2 * 6000 + 2 * 8000 * (each - 1) + 2000)
    prompt = told["prompt_tokens"]
    assert prompt["least"] > 3 * 200
    assert told["cost"]["least"] == pytest.approx(prompt["least"] / 1e6)
    # a later request shows what a critic wrote, so that its length is unknown
    assert (prompt["most"], told["cost"]["most"]) == (None, 9)
    # 6,000 tokens of reply alone cost 0.06
    assert 0.06 < told["cap"]["reserved_for_one_request"] < told["cost"]["most"]
    assert dry(cli, URL, *more)["cost"] is None


def test_replies_that_are_stored_are_not_counted(cli: Cli, project: Path) -> None:
    def answer(body: dict[str, Any], n: int) -> str:
        levels = ["unclear", "partly clear", "clear"]
        return json.dumps([{"name": "Clarity", "description": "d", "accepted_values": levels}])

    with serve(answer) as server:
        asked = ("--store", "s.db")
        assert dry(cli, server.base_url, *asked)["requests"] == {"least": 3, "most": 9}
        assert not Path("s.db").exists()
        options = f"--task sums --model m --base-url {server.base_url} --tau 1 --seeds 2"
        done = cli("criteria", *options.split(), *asked)
        assert done.code == 0, done.err
        before = server.count
        told = dry(cli, server.base_url, *asked)
        assert told["requests"] == {"least": 1, "most": 3}
        # the sub-critics of the stored ones are not
        parts = dry(cli, server.base_url, *asked, "--sub-criteria")
        assert parts["requests"]["least"] == 3
        assert parts["requests"]["most"] >= 2 + 6 + 3
        # without a store nothing is kept between commands
        assert dry(cli, server.base_url)["requests"]["least"] == 3
        assert server.count == before
