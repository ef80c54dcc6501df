"""quantify from end to end against a real server on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.models.client import Client, RetryPolicy
from agenteval.readers import make_view, read_runs
from agenteval.testing import serve
from tests.cli.conftest import Cli

NOWHERE = "http://127.0.0.1:9/v1"
LABELS = {"clarity": "clear", "accuracy": "correct"}


def answer(body: dict[str, Any], n: int) -> str:
    """Clear and right, but wrong where the run failed (i = 2)."""
    wrong = "What is 2 + 2?" in body["messages"][1]["content"]
    labels = {**LABELS, "accuracy": "incorrect" if wrong else "correct"}
    return json.dumps({k: {"explanation": f"{k}.", "label": v} for k, v in labels.items()})


def means_of(told: Any) -> dict[tuple[str, str], float | None]:
    """The means of `--json` by criterion and system."""
    rows = told["tables"]["scores"]["rows"]
    return {(r["criterion_id"], r["system"]): r["mean"]["value"] for r in rows}


def test_again_asks_nobody_and_prints_the_same(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        arguments = ("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url)
        first = cli(*arguments, "--repeats", 2, "-q")
        asked = server.count
        second = cli(*arguments, "--repeats", 2, "-q")
        assert server.count == asked == 12
        shown = cli("show")
        third = cli(*arguments, "--repeats", 3, "-q")
    assert first.out == shown.out
    assert "spent: 12 requests" in first.out
    now = "0 requests by this command; in all "
    assert second.out.replace(now, "").split() == first.out.split()
    assert "spent: 6 requests by this command; in all 18 requests" in third.out
    assert "Accuracy" in first.out


def test_the_judge_never_sees_gold(cli: Cli, project: Path) -> None:
    line = {"id": "x", "task": "sums", "question": "What is 1 + 1?", "response": "Two, by adding."}
    line |= {"is_correct": True, "check_result": "V"} | dict.fromkeys(
        ("correct_ans", "solution"), "GOLDEN"
    )
    (project / "gold.jsonl").write_text(json.dumps(line) + "\n")
    with serve(answer) as server:
        arguments = ("quantify", "gold.jsonl", "--model", "m", "--base-url", server.base_url)
        assert cli(*arguments).code == 0
        assert "GOLDEN" not in json.dumps(server.requests[0].body)
        assert cli(*arguments, "--with-reference").code == 0
        assert "GOLDEN" in json.dumps(server.requests[1].body)
        assert server.count == 2  # another view is another cell


def test_a_model_that_never_answers_in_form_ends_with_3(cli: Cli, project: Path) -> None:
    with serve(lambda body, n: "Looks good to me!") as server:
        arguments = ("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url)
        result = cli(*arguments)
        assert result.code == 3
        assert "12 of 12 cells are unscored" in result.err
        assert "unscored:parse" in result.out
        asked = server.count
        assert cli(*arguments).code == 3
        assert server.count == asked  # content failures stay unless asked for
        cli(*arguments, "--retry-failed")
        assert server.count > asked


def test_a_wrong_key_stops_at_once_with_one_line(cli: Cli, project: Path) -> None:
    from agenteval.testing import Fault

    with serve(answer, faults=[Fault("status", 401)]) as server:
        result = cli("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url)
        assert server.count <= 14
    assert result.code == 3
    assert "HTTP 401" in result.err
    assert "Traceback" not in result.err


def test_a_dead_endpoint_says_so(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = RetryPolicy(first=0.001)  # as many attempts as always, with hardly a pause
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "retry", quick)
    result = cli("quantify", "runs.jsonl", "--model", "m", "--base-url", NOWHERE)
    assert result.code == 3
    assert "cannot connect" in result.err


def test_max_calls_is_kept_and_counts_earlier_sessions(cli: Cli, project: Path) -> None:
    with serve(answer, latency=0.02) as server:
        arguments = ("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url)
        result = cli(*arguments, "--max-calls", 4)
        assert result.code == 3
        assert server.count == 4
        assert "the cap of 4 calls is reached" in result.err
        cli(*arguments, "--max-calls", 4)
        assert server.count == 4
        assert cli(*arguments, "--max-calls", 6).code == 0
        assert server.count == 6


ONE_LEVEL = '[{"name": "X", "accepted_values": ["only"]}]'
SIDEWAYS = '[{"name": "X", "accepted_values": ["bad", "good"], "order": "sideways"}]'
TWICE = '{"id": "a", "output": "x"}\n{"id": "a", "output": "y"}'


@pytest.mark.parametrize(
    ("prepare", "command", "message"),
    [
        ("", "quantify nowhere.jsonl", "nowhere.jsonl"),
        ("{broken", "quantify bad.jsonl", "bad.jsonl:1"),
        (TWICE, "quantify bad.jsonl", "bad.jsonl"),
        (ONE_LEVEL, "quantify runs.jsonl --criteria bad.jsonl", "has 1 accepted value"),
        (SIDEWAYS, "quantify runs.jsonl --criteria bad.jsonl", "sideways"),
        ("[\n{,}]", "quantify runs.jsonl --criteria bad.jsonl", "bad.jsonl:2"),
        ("", "quantify runs.jsonl --task smus", "did you mean sums"),
        ("", "quantify runs.jsonl --model gpt-4o", "no provider"),
        ("", "quantify runs.jsonl --model openai:gpt-4o", "OPENAI_API_KEY"),
        ("", "quantify runs.jsonl --model replay:none.jsonl", "no file"),
        ("", f"quantify runs.jsonl --model m --base-url {NOWHERE} --max-cost 1", "--price-in"),
        ("", "quantify runs.jsonl --price-in 1", "--price-out: "),
        ("", "show", "no store here yet"),
        ("", "criteria --task nothing", "no task 'nothing'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    cli: Cli, project: Path, prepare: str, command: str, message: str
) -> None:
    (project / "bad.jsonl").write_text(prepare)
    before = set(project.rglob("*"))
    result = cli(*command.split())
    assert result.code == 2, result
    (last,) = [line for line in result.err.splitlines() if line.startswith("agenteval: ")]
    assert message in last
    assert "Traceback" not in result.err
    left = {p.name for p in project.rglob("*")} - {p.name for p in before}
    assert left <= {"agenteval.db", "agenteval.db-wal", "agenteval.db-shm"}


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_ends_with_the_same_table(project: Path) -> None:
    lines = [
        {"id": f"r{i}", "task": "sums", "system": "s", "success": i % 2 == 0}
        | {"input": f"What is {i} + {i}?", "output": f"It is {2 * i} as {i} and {i} make that."}
        for i in range(40)
    ]
    (project / "many.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    with serve(answer, latency=0.03, key=_identity) as server:
        whole = _command(project, server.base_url, "whole.db").communicate()[0]
        counted = server.count
        assert counted == 80
        for kills in (1, 2):
            process = _command(project, server.base_url, "killed.db")
            while server.count < counted + kills * 25:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        again = _command(project, server.base_url, "killed.db").communicate()[0]
        asked = server.count - counted
    strip = re.compile(rb'"usage":.*?\}|"spent: .*?"', re.S)
    assert strip.sub(b"", again) == strip.sub(b"", whole)
    assert 80 <= asked <= 80 + 2 * 12  # at most what was in flight at each kill is asked again


def _identity(body: dict[str, Any]) -> str:
    return f"{body['seed']}{body['messages'][1]['content'][-200:]}"


def _command(project: Path, url: str, store: str) -> subprocess.Popen[bytes]:
    options = f"--model m --base-url {url} --store {store} --repeats 2 -j 4 --json -q"
    return subprocess.Popen(
        [sys.executable, "-m", "agenteval", "quantify", "many.jsonl", *options.split()],
        cwd=project,
        env={k: v for k, v in os.environ.items() if not k.startswith("AGENTEVAL_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


WORST_FIRST, BEST_FIRST = ["incorrect", "correct"], ["correct", "incorrect"]
# accuracy as the file has it, as it is corrected, and the mean before and after: the judge says
# "correct" of four runs of six
CORRECTIONS = [
    (
        {"accepted_values": WORST_FIRST},
        {"accepted_values": BEST_FIRST, "order": "worst_to_best", "order_confirmed": True},
        4 / 6,
        2 / 6,
    ),
    (
        {"accepted_values": BEST_FIRST, "order": "worst_to_best"},
        {"accepted_values": WORST_FIRST, "order": "worst_to_best"},
        None,
        4 / 6,
    ),
    (
        {"accepted_values": WORST_FIRST},
        {"accepted_values": WORST_FIRST, "order": "unclear"},
        4 / 6,
        None,
    ),
]


@pytest.mark.parametrize(("before", "after", "first", "second"), CORRECTIONS)
def test_a_corrected_order_relabels_what_is_stored_and_asks_nobody(
    cli: Cli,
    project: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    first: float | None,
    second: float | None,
) -> None:
    clarity = {"name": "Clarity", "accepted_values": ["unclear", "clear"]}

    def write(accuracy: dict[str, Any]) -> None:
        content = {"criteria": [clarity, {"name": "Accuracy", **accuracy}]}
        (project / "criteria" / "sums.json").write_text(json.dumps(content))

    def mean(result: Any) -> Any:
        assert result.code == 0, result.err
        means = means_of(result.json)
        assert means["clarity", "all systems"] == 1.0
        return means.get(("accuracy", "all systems"))

    write(before)
    with serve(answer) as server:
        arguments = ["quantify", "runs.jsonl", "--base-url", server.base_url, "--model", "m"]
        asked = cli(*arguments, "--json")
        number = server.count
        assert mean(asked) == (None if first is None else pytest.approx(first))
        write(after)
        again = cli(*arguments, "--json")
        assert server.count == number
    expected = None if second is None else pytest.approx(second)
    assert mean(again) == expected
    assert "relabelled 6 ratings of Accuracy: " in again.err
    assert "relabelled" not in cli(*arguments, "--json").err
    assert mean(cli("show", "--json")) == expected
    if second is None:
        assert "no mean: order unclear: Accuracy: correct 4, incorrect 2" in cli("show").out


def test_reversed_scales_and_criteria_of_another_task_are_told(cli: Cli, project: Path) -> None:
    text = (project / "criteria" / "sums.json").read_text()
    turned = [
        {**c, "accepted_values": c["accepted_values"][::-1], "order": "worst_to_best"}
        for c in json.loads(text)
    ]
    path = project / "rev.json"
    path.write_text(json.dumps({"task": "sums", "criteria": turned}))
    asked = f"runs.jsonl --criteria rev.json --model m --base-url {NOWHERE} --dry-run".split()
    for command in ("quantify", "verify"):
        done = cli(command, *asked)
        assert done.code == 0
        assert "order unclear: stated is order worst_to_best, but its values run" in done.err
        assert 'with "order_confirmed": true' in done.err
    path.write_text(json.dumps({"task": "letters", "criteria": json.loads(text)}))
    for command in ("quantify", "verify"):
        done = cli(command, *asked)
        assert done.code == 0, done.err
        assert "the criteria are for task 'letters', but judge task 'sums'" in done.err


# ---- versions of a system ------------------------------------------------------------------------


def write_version(path: Path, texts: Sequence[str], ids: str = "t", **more: Any) -> None:
    rows = [
        {"id": f"{ids}{i}", "task": "sums", "input": f"What is {i} + {i}?", "output": text, **more}
        for i, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


OLD = [f"It makes {2 * i}." for i in range(4)]
NEW = [*OLD[:2], "Perhaps 4.", "Perhaps 6."]  # the first two answers are the same


def test_versions_that_are_named_stay_apart(cli: Cli, project: Path) -> None:
    """The same ids, and partly the same answers, in two versions of one system."""
    write_version(project / "old.jsonl", OLD)
    write_version(project / "new.jsonl", NEW)
    with serve(answer) as server:
        asked = ("--model", "m", "--base-url", server.base_url)
        for name in ("old", "new"):
            done = cli("quantify", f"{name}.jsonl", "--system", name, *asked)
            assert done.code == 0, done.err
            assert f"4 of 4 runs do not name a system and are assigned to {name}" in done.err
            assert "a different text" not in done.err
            assert "more than once" not in done.err + done.out
    rows = cli("show", "--json").json["tables"]["scores"]["rows"]
    ratings = {(r["criterion_id"], r["system"]): r["ratings"] for r in rows}
    assert ratings["accuracy", "old"] == ratings["accuracy", "new"] == 4
    assert "old/t0" in cli("show", "--run", "old/t0").out
    found = cli("compare", "old", "new", "--json").json
    assert len(found["common"]) == 4


def test_versions_without_a_name_are_warned_of(cli: Cli, project: Path) -> None:
    write_version(project / "old.jsonl", OLD)
    write_version(project / "same_ids.jsonl", NEW)
    write_version(project / "other_ids.jsonl", NEW, "u")
    write_version(project / "named.jsonl", OLD, "v", system="b")
    write_version(project / "moved.jsonl", OLD[:1], "v", system="c")
    twice = "system 'unnamed' answers 4 cases more than once (first: t0 and u0)"
    with serve(answer) as server:

        def said(name: str) -> str:
            done = cli("quantify", name, "--model", "m", "--base-url", server.base_url)
            assert done.code == 0, done.err
            return done.err

        assert "a different text" not in said("old.jsonl")
        assert "2 runs in the store had a different text (first: t2)" in said("same_ids.jsonl")
        assert twice in said("other_ids.jsonl")
        assert twice in " ".join(cli("show").out.split())
        assert "more than once" not in said("named.jsonl")
        compared = cli("compare", "unnamed", "b", "--json")
        assert any(twice in line for line in compared.json["warnings"])
        assert "a different text" not in said("moved.jsonl")
    rows = cli("show", "--json").json["tables"]["scores"]["rows"]
    ratings = {r["system"]: r["ratings"] for r in rows if r["criterion_id"] == "clarity"}
    assert (ratings["b"], ratings["c"]) == (4, 1)


def test_results_of_a_store_of_an_earlier_version_are_found(cli: Cli, project: Path) -> None:
    """Such a store knows a run by its id and text; one of another system has its own key."""
    write_version(project / "v1.jsonl", OLD, system="v1")
    write_version(project / "v2.jsonl", OLD, system="v2")
    with serve(answer) as server:
        asked = ("--model", "m", "--base-url", server.base_url)
        assert cli("quantify", "v1.jsonl", *asked).code == 0
        database = sqlite3.connect(project / "agenteval.db")
        for run in read_runs(project / "v1.jsonl", task="sums").runs:
            view = make_view(run)
            keys = view.sha256, view.model_copy(update={"owner": ("sums", "v1")}).sha256
            for table in ("items", "results", "calls"):
                done = database.execute(f"UPDATE {table} SET item_key = ? WHERE item_key = ?", keys)
                assert done.rowcount
        database.execute("DELETE FROM replies")
        database.commit()
        database.close()
        before = server.count
        assert "already scored; 0 to judge" in cli("quantify", "v1.jsonl", *asked).err
        dry = cli("quantify", "v1.jsonl", *asked, "--dry-run")
        assert "0 requests" in " ".join(dry.out.split())
        assert server.count == before
        assert "8 to judge" in cli("quantify", "v2.jsonl", *asked).err
    compared = cli("compare", "v1", "v2", "--json").json
    assert [row["n"] for row in compared["tables"]["rows"]["rows"]] == [4, 4]
