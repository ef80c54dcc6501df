"""What --dry-run says when replies and trials are stored, and under caps: as the real run does."""

from __future__ import annotations

from pathlib import Path

from agenteval.testing import serve
from tests.cli import dry_worlds as worlds
from tests.cli.conftest import Cli
from tests.cli.dry_worlds import desk, runs, two_traces


def requests(cli: Cli, *words: object) -> tuple[int, int]:
    done = cli(*words, "--dry-run", "--json")
    assert done.code == 0, done.err
    return done.json["requests"]["least"], done.json["requests"]["most"]


def quantify(url: str, *more: object) -> tuple[object, ...]:
    return ("quantify", "runs.jsonl", "--model", "m", "--base-url", url, "-j", 1, *more)


def test_a_repair_that_is_owed_is_certain_and_a_first_reply_that_is_stored_is_not_asked(
    cli: Cli, tmp_path: Path
) -> None:
    answers = [worlds.nonsense, worlds.good]
    with serve(lambda body, n: answers[0](body, n)) as server:
        runs(cli, tmp_path, server)
        # the reply is stored, and no call is left for its repair
        assert cli(*quantify(server.base_url, "--max-calls", 1)).code == 3
        assert server.count == 1
        del answers[0]
        # three runs nobody was asked about, and one repair
        assert requests(cli, *quantify(server.base_url)) == (3 + 1, 2 * 3 + 1)
        assert cli(*quantify(server.base_url)).code == 0
        assert server.count == 1 + 4
        assert requests(cli, *quantify(server.base_url)) == (0, 0)


def test_caps_bound_what_is_said_and_what_was_made_counts(cli: Cli, tmp_path: Path) -> None:
    with serve(worlds.good) as server:
        runs(cli, tmp_path, server)
        capped = quantify(server.base_url, "--max-calls", 3)
        assert requests(cli, *capped) == (3, 3)
        assert cli(*capped).code == 3
        assert server.count == 3
        assert requests(cli, *capped) == (0, 0)
        assert requests(cli, *quantify(server.base_url, "--max-calls", 4)) == (1, 1)
        assert requests(cli, *quantify(server.base_url, "--max-calls", 9)) == (1, 2)
        told = " ".join(cli(*capped, "--dry-run").out.split())
        assert "--max-calls 3, 3 of them sent already: stops before the end" in told
        told = " ".join(cli(*quantify(server.base_url, "--max-calls", 9), "--dry-run").out.split())
        assert "3 of them sent already: enough for all of it" in told


def test_a_cap_on_cost_leaves_certain_what_it_pays_for_at_the_highest_price(
    cli: Cli, tmp_path: Path
) -> None:
    price = ("--price-in", 0, "--price-out", 10)  # 2,048 tokens of a reply: 0.02048
    with serve(worlds.good) as server:
        runs(cli, tmp_path, server)
        capped = quantify(server.base_url, *price, "--max-cost", 0.05)
        least, most = requests(cli, *capped)
        assert (least, most) == (2, 8)
        done = cli(*capped, "--dry-run", "--json").json
        assert done["cost"]["most"] == 0.05
        assert done["cap"]["uncapped"] == {"least": 4, "most": 8}
        assert cli(*capped).code in (0, 3)
        assert least <= server.count <= most


def test_users_and_judges_are_not_asked_twice_for_two_formats(cli: Cli, tmp_path: Path) -> None:
    with serve(worlds.good) as server:
        desk(cli, tmp_path, server)
        url = server.base_url
        asked = (
            f"flow session desk --model agent --base-url {url} --limit 1 --simulator user "
            f"--simulator-url {url} -j 1",
        )
        judged = (*asked, "--judge", "judge", "--judge-url", url)
        both = ("--format", "text", "--format", "none")
        # the agent in each format; the same words of the user, the same talk to be judged, which
        # is not certain
        least, most = requests(cli, *judged, *both)
        assert 2 + 2 <= least <= 5 <= most
        assert cli(*judged, *both, "-q", "--store", "one.db").code == 0
        assert server.count == 5
        # without a judge first: the verdict alone is missing then
        assert cli(*asked, "-q").code in (0, 3)
        before = server.count
        done = cli(*judged, "--dry-run", "--json").json
        assert (done["requests"]["least"], done["requests"]["most"]) == (1, 2)
        asking = [p["who"] for p in done["parts"] if p["most"]["requests"]]
        assert asking == ["judge"]
        assert cli(*judged, "-q").code == 0
        assert server.count == before + 1
        assert requests(cli, *judged) == (0, 0)


def test_a_trace_that_was_broken_off_goes_on_where_it_was(cli: Cli, tmp_path: Path) -> None:
    with serve(worlds.good) as server:
        two_traces(cli, tmp_path, server)
        asked = ("trace", "locate", "traces", "--model", "m", "--base-url", server.base_url)
        assert requests(cli, *asked) == (4, 8)
        assert cli(*asked, "--max-calls", 3, "-j", 1, "-q").code == 3
        assert requests(cli, *asked) == (1, 2 * 2 - 1)
        assert cli(*asked, "-q").code == 0
        assert server.count == 4
