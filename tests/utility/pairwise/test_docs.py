"""docs/pairwise.md: its example prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "pairwise.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "example.py").write_text(code)  # a judge needs its source text
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    __import__("example")
    expected = re.findall(r"print\(.*\)(?:\n#|  #) (.*)$", code, re.M)
    assert len(expected) == 4
    assert capsys.readouterr().out.splitlines() == expected
