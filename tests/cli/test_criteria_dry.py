"""criteria --dry-run: requests, tokens and cost, as upper bounds, and nobody is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli

URL = "http://127.0.0.1:9/v1"


def numbers(line: str, text: str) -> list[float]:
    (found,) = [one for one in text.splitlines() if one.startswith(line)]
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*", found)]


def dry(cli: Cli, url: str, *more: object) -> str:
    done = cli("criteria", "--task", "sums", "--model", "m", "--base-url", url, "--tau", 1,
               "--seeds", 3, "--dry-run", *more)  # fmt: skip
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    ("more", "requests", "reply"),
    [((), 3, 3 * 6000), (("--bank",), 3, 3 * 6000), (("--sub-criteria",), 6, 3 * (6000 + 8000))],
)
def test_tokens_and_cost_are_bounds(
    cli: Cli, project: Path, more: tuple[str, ...], requests: int, reply: int
) -> None:
    told = dry(cli, URL, "--price-in", 1, "--price-out", 10, "--max-cost", 1, *more)
    assert numbers("requests:", told)[0] == requests
    prompt, replies = numbers("tokens, at most, about:", told)
    assert replies == reply
    assert prompt > 3 * 200
    (cost,) = numbers("cost, at most, about:", told)
    assert cost == pytest.approx((prompt + 10 * reply) / 1e6, abs=6e-5)
    (reserved,) = re.findall(r"up to about ([\d.]+) is reserved for one call", told)
    assert 0.06 < float(reserved) < cost  # 6,000 tokens of reply alone cost 0.06
    assert "cost: unknown" in dry(cli, URL, *more)


def test_what_is_shown_of_the_bank_and_of_divided_criteria_counts(cli: Cli, project: Path) -> None:
    plain, bank, parts = (
        numbers("tokens, at most", dry(cli, URL, *more))[0]
        for more in ((), ("--bank",), ("--sub-criteria",))
    )
    assert plain < bank
    assert parts > plain + 3 * 6000


def test_replies_that_are_stored_are_not_counted(cli: Cli, project: Path) -> None:
    def answer(body: dict[str, Any], n: int) -> str:
        levels = ["unclear", "partly clear", "clear"]
        return json.dumps([{"name": "Clarity", "description": "d", "accepted_values": levels}])

    with serve(answer) as server:
        asked = ("--store", "s.db")
        assert "requests: 3 (" in dry(cli, server.base_url, *asked)
        assert not Path("s.db").exists()
        done = cli("criteria", "--task", "sums", "--model", "m", "--base-url", server.base_url,
                   "--tau", 1, "--seeds", 2, *asked)  # fmt: skip
        assert done.code == 0, done.err
        before = server.count
        assert "requests: 1, 2 stored already" in dry(cli, server.base_url, *asked)
        assert server.count == before


def test_a_cap_without_a_price_is_told_at_once(cli: Cli, project: Path) -> None:
    for command in (("criteria", "--task", "sums"), ("quantify", "runs.jsonl"),
                    ("verify", "runs.jsonl")):  # fmt: skip
        done = cli(*command, "--model", "m", "--base-url", URL, "--dry-run", "--max-cost", 1)
        assert done.code == 2
        assert "a cap on cost needs prices" in done.err
