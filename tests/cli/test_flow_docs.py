"""The role, the rows and the code of docs/workflows.md work as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import Cli

DOCS = Path(__file__).resolve().parents[2] / "docs" / "workflows.md"
TEXT = DOCS.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)
    return [text for name, text in fenced if name == language]


def write_role(folder: Path) -> Path:
    role, profiles, recorded = blocks("yaml")
    backend, code = (b for b in blocks("python") if "Backend" in b or "take_back" in b)
    (tools,) = (b for b in blocks("json") if "find_order" in b and b.startswith("["))
    (chart,) = (b for b in blocks("") if b.startswith("flowchart TD"))
    scenario = folder / "take_back"
    scenario.mkdir(parents=True)
    (folder / "sessions").mkdir()
    (folder / "sessions" / "perfect.yaml").write_text(recorded)
    (folder / "role.yaml").write_text(role)
    (folder / "backend.py").write_text(backend)
    (scenario / "scenario.yaml").write_text("title: Take back\nbackground: A customer returns.\n")
    (scenario / "workflow.txt").write_text(
        "Get the number and call find_order. If found is true and days at most 30, call "
        "return_order and tell the label; otherwise explain why not."
    )
    (scenario / "workflow.code").write_text(code)
    (scenario / "workflow.mmd").write_text(chart)
    (scenario / "tools.json").write_text(tools)
    (scenario / "profiles.yaml").write_text(profiles)
    return folder


def test_the_role_is_sound_and_can_be_served(cli: Cli, tmp_path: Path) -> None:
    role = write_role(tmp_path / "returns_desk")
    checked = cli("flow", "check", str(role), "--json")
    assert checked.code == 0, checked.err
    assert checked.json["tables"]["defects"]["rows"] == []
    store = str(tmp_path / "a.db")
    served = cli(
        "flow",
        "session",
        str(role),
        "--agent",
        "recorded:perfect",
        "--user",
        "scripted",
        "--store",
        store,
        "--json",
        "-q",
    )
    assert served.code == 0, served.err
    (row,) = served.json["trials"]
    assert (row["verdict"]["success"], row["verdict"]["conforms"]) == (True, True)
    assert [c["tool"] for c in row["log"]["calls"]] == ["find_order", "return_order"]


def test_the_rows_score_as_right(cli: Cli, tmp_path: Path) -> None:
    turn, session = (b for b in blocks("json") if b.startswith("{"))
    for level, row in (("turn", turn), ("session", session)):
        file = tmp_path / f"{level}.jsonl"
        file.write_text(json.dumps(json.loads(row)) + "\n")
        scored = cli("flow", "score", str(file), "--level", level, "--json")
        assert scored.code == 0, scored.err
        tool = scored.json["table"]["tool"]
        assert (tool["right"], tool["gold"], tool["predicted"]) == (1, 1, 1)
