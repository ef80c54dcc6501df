"""report from end to end: from a store, from ratings in a file, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from agenteval.store import Store
from agenteval.testing import serve
from agenteval.utility.page_data import ReportScope, from_store
from agenteval.utility.verify.options import VerifyOptions
from tests.cli.conftest import CRITERIA, Cli
from tests.cli.test_quantify import answer


@pytest.fixture
def judged(cli: Cli, project: Path) -> Path:
    with serve(answer) as server:
        done = cli(
            f"quantify runs.jsonl --model m --base-url {server.base_url} --repeats 2 --store "
            "a.db -q",
        )
    assert done.code == 0, done.err
    return project


def write_runs(path: Path, system: str, numbers: range, empty: int | None = None) -> None:
    rows = [
        {
            "id": f"{system}-{i}",
            "task": "sums",
            "system": system,
            "input": f"What is {i} + {i}?",
            "success": i % 2 == 0,
            "output": "" if i == empty else f"I take {i}. I add {i} to it. It makes {2 * i}.",
        }
        for i in numbers
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def by_sentences(body: dict[str, Any], n: int) -> str:
    """Clearer with more sentences; right on even numbers."""
    text = body["messages"][1]["content"]
    clarity = ("unclear", "partly clear", "clear")[min(2, text.count("I ") + text.count("It "))]
    right = int(text.split("What is ")[1].split(" ")[0]) % 2 == 0
    labels = {"clarity": clarity, "accuracy": "correct" if right else "incorrect"}
    labels |= {"depth": clarity} if "depth" in str(body).lower() else {}
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


@pytest.mark.slow
def test_the_page_gives_the_verdicts_of_verify(cli: Cli, project: Path) -> None:
    """More runs, criteria, repeats and systems were judged before and after, without copies: the
    evidence is that of `verify` all the same, its empty reply included."""
    expected = [
        {**c, "expect": {"drop_sentences": "lower", "whitespace": "none"}} for c in CRITERIA
    ]
    (project / "criteria" / "sums.json").write_text(json.dumps(expected))
    third = {**expected[0], "name": "Depth"}
    (project / "three.json").write_text(json.dumps([*expected, third]))
    write_runs(project / "one.jsonl", "one", range(22), empty=3)
    write_runs(project / "more.jsonl", "one", range(22, 30))
    write_runs(project / "two.jsonl", "two", range(40), empty=5)
    with serve(by_sentences) as server:
        asked = ("--model", "m", "--base-url", server.base_url, "--store", "a.db")
        first = ("--repeats", 3, "--criteria", "three.json", "-q")
        assert cli("quantify", "one.jsonl", *asked, *first).code == 0
        done = cli("verify", "one.jsonl", *asked, "--json")
        for name in ("more.jsonl", "two.jsonl"):
            assert cli("quantify", name, *asked, "-q").code == 0
    assert done.code == 0, done.err
    verified = done.json
    with Store(project / "a.db") as store:
        ((key, source),) = store.sources()
        found = from_store(store, key, source, ReportScope(), VerifyOptions()).findings
    assert found is not None
    assert found.judge is not None
    assert found.judge.model_dump(mode="json")["verdict"] == verified["judge"]["verdict"]
    page = [json.loads(v.model_dump_json()) for v in found.criteria]
    for own in (page, verified["criteria"]):
        for effect in (e for v in own for e in v["effects"]):
            del effect["unchanged"]  # the store does not know which copies were never made
    assert page == verified["criteria"]
    assert {v.cases for v in found.criteria} == {22}
    assert found.origin == (
        "computed from the store, from the 22 of 70 runs that `agenteval verify` judged"
    )


# The superuser may write anywhere, unless it gives up that capability.
OBEYING = [] if os.name == "nt" or os.getuid() else ["setpriv", "--bounding-set=-dac_override"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such mode")
@pytest.mark.skipif(bool(OBEYING) and not which("setpriv"), reason="root, and setpriv is missing")
def test_a_finished_store_in_a_read_only_folder(judged: Path, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("out")
    before = (judged / "a.db").read_bytes()
    code = (
        "import json, sys\n"
        "from agenteval.app.main import main\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        main(line)\n"
        "    except SystemExit as end:\n"
        "        print('exit', end.code, flush=True)\n"
    )
    lines = [
        ["show"],
        ["report", "-o", f"{elsewhere}/r.html"],
        ["export", f"{elsewhere}/s.csv"],
        ["store", "info"],
        ["quantify", "runs.jsonl", "--model", "m", "--base-url", "http://x/v1"],
    ]
    (judged / "a.db").chmod(0o444)
    judged.chmod(0o555)
    done = subprocess.run(
        [*OBEYING, sys.executable, "-c", code, json.dumps(lines)],
        cwd=judged,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "AGENTEVAL_STORE": "a.db"},
    )
    judged.chmod(0o755)
    ends = [x.split()[1] for x in done.stdout.splitlines() if x.startswith("exit ")]
    assert ends == ["0", "0", "0", "0", "2"], done.stderr
    assert "Clarity" in done.stdout
    assert "<html" in (elsewhere / "r.html").read_text("utf-8")
    rows = (elsewhere / "s.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + 6 * 2 * 2  # header; runs, criteria, repeats
    last = done.stderr.splitlines()[-1]
    assert "a.db" in last
    assert "must not be written" in last
    assert (judged / "a.db").read_bytes() == before
    assert not list(judged.glob("a.db-*"))
