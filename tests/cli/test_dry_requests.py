"""What --dry-run says of requests holds for the real run, for every command that has it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.models.wire import Request
from agenteval.testing import serve
from tests.cli import dry_worlds as worlds
from tests.cli.conftest import Cli
from tests.cli.dry_worlds import Way, busy, desk, few, runs, suite, two_traces

CHAT = ("--model", "m")
JUDGED = ("verify", "runs.jsonl", *CHAT, "--perturb", "pad", "--repeats", 1)
CRITICS = ("criteria", "--task", "sums", "--seeds", 2, *CHAT)
AGENT = ("--model", "agent", "--agent")
SESSION = ("flow", "session", "desk", "--turns", 2, "--calls", 3, "--limit", 1, "-j", 1, *AGENT)
URL, USER_URL, JUDGE_URL = "--base-url", "--simulator-url", "--judge-url"
WAYS = {
    "quantify": Way(
        ("quantify", "runs.jsonl", *CHAT), few, (URL,), bad=(worlds.empty, worlds.every_second)
    ),
    "verify": Way(JUDGED, few, (URL,), bad=(worlds.long_nonsense,)),
    "verify, probes": Way((*JUDGED, "--probes"), few, (URL,)),
    "criteria": Way((*CRITICS, "--tau", 1), few, (URL,)),
    "criteria, consolidated": Way(
        (*CRITICS, "--embedder", "endpoint:e"),
        few,
        (URL,),
        tokens=False,
        exact=False,
        bad=(worlds.every_second, worlds.inventive, worlds.nonsense),
    ),
    "plan test, openai": Way(
        ("plan", "test", "suite.jsonl", "--turns", 3, *AGENT, "openai"), suite, (URL,), bad=(busy,)
    ),
    "plan capability": Way(
        ("plan", "capability", "--n", "2-3", "--cases", 1, "--turns", 2, *AGENT, "openai"),
        suite,
        (URL,),
        bad=(busy,),
    ),
    "trace locate, areas": Way(
        ("trace", "locate", "traces", *CHAT, "--mode", "areas", "--repeats", 2),
        two_traces,
        (URL,),
        tokens=False,
    ),
    "flow turn": Way(
        ("flow", "turn", "desk", "--limit", 4, *AGENT, "template"), desk, (URL,), bad=(busy,)
    ),
    "flow session, played and judged": Way(
        (*SESSION, "template", "--simulator", "user", "--judge", "judge"),
        desk,
        (URL, USER_URL, JUDGE_URL),
        tokens=False,
        exact=False,
        bad=(worlds.talkative, worlds.every_second),
    ),
}


@pytest.fixture(autouse=True)
def _embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder that loads no model, where the one of this machine would be taken."""
    from agenteval.models import embeddings
    from agenteval.utility import proposals  # before its names are replaced

    made = embeddings.make_embedder

    def make(spec: str | None, **more: Any) -> Any:
        return worlds.Letters() if spec is None else made(spec, **more)

    monkeypatch.setattr(embeddings, "make_embedder", make)
    monkeypatch.setattr(proposals, "make_embedder", make)


def told(cli: Cli, way: Way, url: str, *more: object) -> Any:
    done = cli(*way.line(url), "--dry-run", "--json", *more)
    assert done.code == 0, done.err
    return done.json


def sent_tokens(server: Any, since: int) -> float:
    """A quarter of the characters of all that says something in the prompts."""
    bodies = [r.body for r in server.requests[since:]]
    parts = [
        [b.get("messages"), b.get("input"), b.get("tools"), b.get("response_format")]
        for b in bodies
    ]
    return len(json.dumps(parts, ensure_ascii=False)) / 4


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_good_replies_take_what_is_certain_and_bad_ones_no_more_than_at_most(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    way = WAYS[name]
    with serve(worlds.good, dimensions=4) as server:
        way.make(cli, tmp_path, server)
        before = server.count
        said = told(cli, way, server.base_url)
        assert server.count == before
        asked, sent = real(cli, way, server, worlds.good)
        assert said["requests"]["least"] <= asked <= said["requests"]["most"]
        assert said["exact"] is True
        if way.exact:
            assert asked == said["requests"]["least"]
        if way.tokens and asked:
            assert 0.7 * sent < said["prompt_tokens"]["least"] < 2 * sent
        for bad in way.bad:
            asked, sent = real(cli, way, server, bad)
            assert asked <= said["requests"]["most"]
            assert asked > 0 or not way.judges
            if (most := said["prompt_tokens"]["most"]) is not None:
                assert 0.7 * sent < most or not asked


def real(cli: Cli, way: Way, server: Any, answer: Any) -> tuple[int, float]:
    """Requests and tokens of the real run, which begins with what was stored before any."""
    factory = answer in (worlds.every_second, worlds.inventive)
    server.engine.settings = with_answer(server, answer() if factory else answer)
    store = f"{answer.__name__}.db"
    if Path("agenteval.db").exists():
        shutil.copy("agenteval.db", store)
    before = server.count
    done = cli(*way.line(server.base_url), "-q", "--store", store)
    embeddings = sum(r.path.endswith("/embeddings") for r in server.requests[before:])
    assert "Traceback" not in done.err
    assert answer is not worlds.good or done.code in (0, 3), done.err
    return server.count - before - embeddings, sent_tokens(server, before)  # these are not counted


def with_answer(server: Any, answer: Any) -> Any:
    return replace(server.engine.settings, answer=answer)


def test_a_bound_is_reached(cli: Cli, tmp_path: Path) -> None:
    """Not only kept: replies that nobody can read take every repair there is."""
    with serve(worlds.nonsense) as server:
        runs(cli, tmp_path, server)
        two_traces(cli, tmp_path, server)
        for name in ("quantify", "verify", "criteria"):
            before = server.count
            said = told(cli, WAYS[name], server.base_url)
            cli(*WAYS[name].line(server.base_url), "-q")
            # criteria that nobody can read leave no order open, one request for each of two seeds
            orders = 2 if name == "criteria" else 0
            assert server.count - before == said["requests"]["most"] - orders > 0
    with serve(busy) as server:
        suite(cli, tmp_path, server)
        way = WAYS["plan test, openai"]
        said = told(cli, way, server.base_url)
        cli(*way.line(server.base_url), "-q")
        # three turns with calls, and the request whose call is one too many
        assert server.count == said["requests"]["most"] == 2 * (3 + 1)


@pytest.mark.parametrize("stored", [0, 8], ids=["fresh", "resumed"])
def test_attacks_on_the_longest_run_cost_no_more_than_at_most(
    cli: Cli, tmp_path: Path, stored: int
) -> None:
    with serve(worlds.bad_then_low) as server:
        worlds.lopsided(cli, tmp_path, server)
        url = server.base_url
        if stored:  # all but the pads of two short runs: the long texts are judged already
            base = (*JUDGED, "--base-url", url, "-j", 1, "-q", "--max-calls", stored)
            assert cli(*base).code == 3
            assert server.count == stored
        way = Way((*JUDGED, "--probes", "-j", 1), worlds.lopsided, (URL,))
        # a token costs 1, a reply nothing, and there is money for all: what is said in money is
        # the number of tokens of prompts
        said = told(cli, way, url, "--price-in", 1e6, "--price-out", 0, "--max-cost", 1e9)
        before = server.count
        done = cli(*way.line(url), "-q")
        assert done.code in (0, 3), done.err
        sent = [as_asked(r.body) for r in server.requests[before:]]
    (part,) = [p for p in said["parts"] if p["who"] == "judge, of texts with an attack"]
    attacks = sent[-4:]  # an attack and a control in the one failure, each with its repair
    assert sorted(len(request.messages) for request in attacks) == [2, 2, 4, 4]
    assert part["most"]["requests"] >= len(attacks)
    # which runs get an attack is not known before they are judged, and so their tokens are not
    assert part["most"]["prompt_tokens"] is said["prompt_tokens"]["most"] is None
    assert said["cost"]["most"] == 1e9  # no more than the cap is certain
    assert said["requests"]["least"] <= len(sent) <= said["requests"]["most"]


def as_asked(body: dict[str, Any]) -> Request:
    """The request that the server got, as the tool itself makes it."""
    known = "model", "messages", "response_format"
    return Request(
        messages=tuple(body["messages"]),
        schema=body["response_format"]["json_schema"]["schema"],
        parameters={k: v for k, v in body.items() if k not in known},
    )
