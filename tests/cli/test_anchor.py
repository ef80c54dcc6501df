"""docs/anchor.md line by line."""

from __future__ import annotations

import random
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/anchor.md").read_text("utf-8")


def test_the_example_of_the_page(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tasks", "criteria"):
        (tmp_path / name).symlink_to(ROOT / name)
    (code,) = re.findall(r"^```python\n# judges.py\n(.*?)^```$", PAGE, re.M | re.S)
    (lines,) = re.findall(r"^```sh\n(.*?)\n```$", PAGE, re.M | re.S)
    (tmp_path / "judges.py").write_text(code)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "judges", raising=False)
    random.seed(0)
    shown = []
    for line in lines.splitlines():
        variables, _, arguments = line.partition("agenteval ")
        if variables:
            monkeypatch.setenv(*variables.strip().split("="))
        result = cli(*shlex.split(arguments, comments=True), "--json", "-q")
        wanted = re.search(r"exit code (\d)", line)
        assert result.code == (int(wanted[1]) if wanted else 0), result.err
        shown.append(result.json)
    sys.modules.pop("judges", None)
    rows = {row["criterion"]: row["verdict"] for row in shown[-1]["tables"]["drift"]["rows"]}
    assert rows.pop("Accuracy") == "lower"
    assert all(verdict.startswith("none shown, at most 0.") for verdict in rows.values())
    assert (tmp_path / "anchor.looks.jsonl").read_text().count("\n") == 2
