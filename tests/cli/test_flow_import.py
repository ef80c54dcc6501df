"""docs/recorded.md: a role of prose and Python, ten trajectories, and what is said of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

DOCS = Path(__file__).parents[2] / "docs"
SHED = DOCS / "tool_shed"
TEXT = (DOCS / "recorded.md").read_text("utf-8")
RUN = ("flow", "import", str(SHED), str(SHED / "trajectories.jsonl"), "--agent", "clerk")


def lines(text: str) -> set[str]:
    return {" ".join(line.split()) for line in text.splitlines() if line.strip()}


def test_the_page_shows_the_role_and_what_comes_out(cli: Cli, tmp_path: Path) -> None:
    files = [(SHED / name).read_text("utf-8") for name in ("policy.md", "backend.py")]
    assert all(text in TEXT for text in files)
    assert sum(len(text.splitlines()) for text in files) < 40
    store = str(tmp_path / "a.db")
    done = cli(*RUN, "--store", store, "-q")
    assert done.code == 0, done.err
    shown = TEXT.rpartition("## Output")[2].split("```")[1]
    assert {line for line in lines(shown) if not line.startswith("─")} <= lines(done.out)
    again = cli(*RUN, "--store", store, "--json", "-q")
    assert len(again.json["trials"]) == 10
    assert all(t["verdict"]["conforms"] is None for t in again.json["trials"])
    for command in (
        ["show"],
        ["flow", "report", "-o", str(tmp_path / "a.html")],
        ["export", str(tmp_path / "a.csv")],
    ):
        assert cli(*command, "--store", store).code == 0, command
    measures = cli("show", "--store", store, "--json").json
    assert "not finished" not in json.dumps(measures)


def test_one_that_cannot_be_replayed_is_one_line_and_the_rest_goes_on(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (SHED / "trajectories.jsonl").read_text().splitlines()]
    rows[4]["traj"][1]["tool_calls"][0]["function"]["name"] = "find_visitor"
    del rows[5]["traj"]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rows))
    run = ("flow", "import", str(SHED), str(path), "--store", str(tmp_path / "a.db"))
    done = cli(*run, "--json")
    assert done.code == 3  # 2 of 10 have no verdict
    assert (
        f"{path}[4]: it calls 'find_visitor', which is not a tool of the role; it has" in done.err
    )
    assert f"{path}[5]: a trajectory needs a list of messages" in done.err
    statuses = sorted(t["status"] for t in done.json["trials"])
    assert statuses == 8 * ["done"] + ["unscored:unsupported"]
    assert cli(*run, "--max-unscored", "0.2", "--gate", "0.9").code == 1
    rows[0]["reward"] = 0.5
    path.write_text(json.dumps(rows))
    assert "is stored with the reward 1.0, not 0.5" in cli(*run).err
    rows[0]["reward"] = 1.0
    rows[0]["traj"][0]["content"] = "Good evening."
    path.write_text(json.dumps(rows))
    other = cli(*run)
    assert other.code == 2
    assert "task_0 is stored with other messages" in other.err


def test_logs_of_users_and_gold_that_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A log in OpenAI's older form is that of the role's user; what the backend refuses of a task's
    actions is named, and the task wants what is left of them."""
    role = Path(shutil.copytree(SHED, tmp_path / "shed"))
    (role / "profiles.yaml").write_text(
        "- {id: mo, persona: x, opening: x, goals: [{text: x, actions: [{tool: lend, "
        "arguments: {member: M1, tool: drill}}]}]}\n"
    )
    arguments = json.dumps({"member": "M1", "tool": "drill"})
    lend = {"role": "assistant", "function_call": {"name": "lend", "arguments": arguments}}
    back = {"role": "function", "name": "lend", "content": '{"back_by": "2031-05-21"}'}
    saw = {"name": "lend", "arguments": {"member": "M1", "tool": "saw"}}
    hello = {"role": "user", "content": "Hello"}
    rows: list[Any] = [
        {"task_id": "mo", "messages": [hello, lend, back]},
        {"task_id": "mo", "messages": [hello]},
        [hello, lend, back],  # of the only user
        {"task_id": "other", "messages": [hello], "actions": [saw]},
    ]
    (role / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = cli("flow", "import", str(role), str(role / "t.jsonl"), "--json")
    assert done.code == 0, done.err
    found = {(t["case"], t["trial"]): t["verdict"]["success"] for t in done.json["trials"]}
    assert found == {
        ("shed/shed/mo", 0): True,
        ("shed/shed/mo", 1): False,
        ("shed/shed/mo", 2): True,
        ("shed/recorded/other", 0): True,
    }
    assert 'other: gold call lend({"member": "M1", "tool": "saw"}): refused (The saw' in done.err


def test_a_task_whose_wanted_calls_do_not_fit_the_tools_has_no_verdict(
    cli: Cli, tmp_path: Path
) -> None:
    """Whoever did nothing would have what was wanted, and whoever did it would not."""
    hello = {"role": "user", "content": "Hello"}
    good = {"member": "M1", "tool": "drill"}
    rows = [
        {"task_id": str(n), "messages": [hello], "actions": [{"name": "lend", "arguments": of}]}
        for n, of in enumerate((good, {"membr": "M1", "tool": "drill"}, good | {"member": "M9"}))
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rows))
    store = ("--store", str(tmp_path / "a.db"))
    done = cli("flow", "import", str(SHED), str(path), "--json", "--max-unscored", "1", *store)
    assert done.code == 0, done.err
    assert [t["case"] for t in done.json["trials"]] == ["tool_shed/recorded/task_0"]
    for n, why in (1, "'membr'"), (2, "fails (KeyError: 'M9')"):
        (line,) = [text for text in done.err.splitlines() if f"{path}[{n}]" in text]
        assert why in line


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda role: (role / "backend.py").unlink(), "a role needs a"),
        (lambda role: (role / "t.jsonl").write_text("{"), "t.jsonl:1"),
        (lambda role: (role / "t.jsonl").write_text("[3]"), "no trajectory can be imported"),
    ],
)
def test_nothing_to_take(cli: Cli, tmp_path: Path, change: Any, told: str) -> None:
    role = Path(shutil.copytree(SHED, tmp_path / "shed"))
    (role / "t.jsonl").write_text("[]")
    change(role)
    store = tmp_path / "a.db"
    done = cli("flow", "import", str(role), str(role / "t.jsonl"), "--store", str(store))
    assert done.code == 2
    assert told in done.err
    assert not store.exists()


def test_calls_that_the_backend_answers_otherwise_are_listed(cli: Cli, tmp_path: Path) -> None:
    text = (SHED / "trajectories.jsonl").read_text(encoding="utf-8")
    path = tmp_path / "t.jsonl"
    path.write_text(text.replace("2031-05-21", "2031-05-22"), encoding="utf-8")
    run = ("flow", "import", str(SHED), str(path), "--store", str(tmp_path / "s.db"))
    tables = cli(*run, "--json").json["tables"]
    (row,) = tables["rewards"]["rows"]
    assert len(tables["answers"]["rows"]) == row["differing"] == 5
    first = tables["answers"]["rows"][0]
    assert (first["trial"], first["call"], first["tool"]) == (0, 2, "lend")
    assert first["recorded"] == '{"back_by": "2031-05-22"}'
