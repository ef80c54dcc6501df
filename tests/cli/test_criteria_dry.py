"""criteria --dry-run: requests, tokens and cost, as upper bounds, and nobody is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli

URL = "http://127.0.0.1:9/v1"


def dry(cli: Cli, url: str, *more: object) -> Any:
    done = cli(
        "criteria",
        "--task",
        "sums",
        "--model",
        "m",
        "--base-url",
        url,
        "--tau",
        1,
        "--seeds",
        3,
        "--dry-run",
        "--json",
        *more,
    )
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


def test_what_is_shown_of_the_bank_counts(cli: Cli, project: Path) -> None:
    plain, bank = (dry(cli, URL, *more)["prompt_tokens"] for more in ((), ("--bank",)))
    assert plain["least"] < bank["least"]


def test_replies_that_are_stored_are_not_counted(cli: Cli, project: Path) -> None:
    def answer(body: dict[str, Any], n: int) -> str:
        levels = ["unclear", "partly clear", "clear"]
        return json.dumps([{"name": "Clarity", "description": "d", "accepted_values": levels}])

    with serve(answer) as server:
        asked = ("--store", "s.db")
        assert dry(cli, server.base_url, *asked)["requests"] == {"least": 3, "most": 9}
        assert not Path("s.db").exists()
        done = cli(
            "criteria",
            "--task",
            "sums",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--tau",
            1,
            "--seeds",
            2,
            *asked,
        )
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


def test_a_cap_without_a_price_is_told_at_once(cli: Cli, project: Path) -> None:
    for command in (
        ("criteria", "--task", "sums"),
        ("quantify", "runs.jsonl"),
        ("verify", "runs.jsonl"),
    ):
        done = cli(*command, "--model", "m", "--base-url", URL, "--dry-run", "--max-cost", 1)
        assert done.code == 2
        assert "a cap on cost needs prices" in done.err
