"""docs/rubrics.md: its example runs, and its layouts are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/rubrics.md").read_text("utf-8")


def test_the_example_gives_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    (lines,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    Path("rubrics.jsonl").write_text(re.sub(r"\n +", " ", lines))  # a record is one line
    Path("example.py").write_text(code)
    exec(compile(code, str(tmp_path / "example.py"), "exec"), {"__name__": "example"})
    said = re.findall(r"# (\{.*\})", code)
    assert capsys.readouterr().out.splitlines()[:1] == said
