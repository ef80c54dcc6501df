"""What was broken off is said wherever its results are shown, and no longer when it is finished."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.records import content_hash
from agenteval.store import Store
from agenteval.testing import serve
from tests.cli import traces
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer
from tests.cli.test_trace import judge, locate

FINISH = "run the same command again to finish"
CELLS = f"not finished: 8 of 12 planned cells are done (6 runs × 2 criteria × 1 repeat); {FINISH}"


def head(text: str) -> str:
    """What stands first, a title perhaps before it; lines may be folded."""
    return " ".join(" ".join(text.splitlines()[:4]).split())


def quantify(cli: Cli, url: str, *more: object) -> int:
    return cli("quantify", "runs.jsonl", "--model", "m", "--base-url", url, *more).code


def source_key() -> str:
    with Store("agenteval.db", create=False) as store:
        ((key, _),) = store.sources()
    return key


@pytest.mark.slow
def test_cells_left_out_by_a_cap_are_missed_everywhere(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        assert quantify(cli, server.base_url, "--max-calls", 4) == 3
        key = source_key()
        said = {"source": key, "what": "cells", "planned": 12, "done": 8, "in_progress": False}
        shown = cli("show")
        assert CELLS in head(shown.out)
        assert shown.out.count("not finished") == 1
        plain = cli("show", "--json")
        (told,) = plain.json["unfinished"]
        said["experiment"] = told["experiment"]
        assert told == said
        assert CELLS in plain.err
        with Store("agenteval.db", create=False) as store:
            run = next(iter(store.runs().values()))["run_id"]
        assert CELLS in head(cli("show", "--run", run).out)
        assert CELLS in cli("show", "--run", run, "--json").err
        assert CELLS in head(cli("show", "--sources").out)
        assert cli("show", "--sources", "--json").json["unfinished"] == [said]
        exported = cli("export", "all.jsonl", "-q")
        assert (exported.code, exported.err.splitlines()) == (0, [CELLS])
        compared = cli("compare", "alpha", "beta", "--json")
        assert compared.json["unfinished"] == [f"m {key[:8]}: {CELLS}"]
        assert CELLS in compared.err
        labels = [{"run": run, "criterion": "clarity", "value": 1}]
        Path("labels.jsonl").write_text("".join(json.dumps(x) + "\n" for x in labels))
        assert f"m: {CELLS}" in head(cli("agree", "--labels", "labels.jsonl").out)
        made = cli("report")
        assert CELLS in head(made.out)
        page = Path("report.html").read_text(encoding="utf-8")
        assert page.count(f'<p class="unfinished" role="note">{CELLS}</p>') == 1
        assert page.index(CELLS) < page.index('<div class="verdict')

        assert quantify(cli, server.base_url) == 0
    for arguments in (
        ["show"],
        ["show", "--sources"],
        ["export", "all.jsonl"],
        ["compare", "alpha", "beta"],
        ["agree", "--labels", "labels.jsonl"],
    ):
        done = cli(*arguments)
        assert "not finished" not in done.out + done.err
    assert cli("show", "--json").json["unfinished"] == []
    assert cli("show", "--sources", "--json").json["unfinished"] == []


def test_what_is_being_worked_on_is_in_progress(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        assert quantify(cli, server.base_url, "--max-calls", 4) == 3
    with (
        Store("agenteval.db", create=False) as store,
        store.lock(content_hash([source_key(), "sums"])),
    ):
        shown = cli("show")
        assert "in progress: 8 of 12 planned cells are done (6 runs" in head(shown.out)
        assert cli("show", "--json").json["unfinished"][0]["in_progress"] is True


def test_traces_that_no_finder_came_to_are_missed(cli: Cli, tmp_path: Path) -> None:
    for made in (traces.weather(), traces.limited()):
        traces.write(tmp_path / "traces", made)
    with serve(judge) as server:
        assert locate(cli, server.base_url, "--max-calls", 1, "-j", 1).code == 3
        done = cli("trace", "report", "-o", "page.html")
        title, line = done.out.splitlines()[:2]
        assert title == "Errors in traces"
        assert line.startswith("not finished: 0 of 2 planned trials (traces) of ")
        assert done.out.count("not finished") == 1
        assert line in Path("page.html").read_text(encoding="utf-8")
        plain = cli("trace", "report", "--json")
        assert [(u["done"], u["planned"]) for u in plain.json["unfinished"]] == [(0, 2)]
        assert line in plain.err
        assert locate(cli, server.base_url).code == 0
    assert json.loads(cli("trace", "report", "--json").out)["unfinished"] == []
    assert "not finished" not in cli("trace", "report").out
