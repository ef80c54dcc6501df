"""docs/rubrics.md: its example runs, and its layouts are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agenteval.store import Store
from agenteval.utility.page import utility_page
from agenteval.utility.page_data import ReportScope, from_store
from agenteval.utility.verify import VerifyOptions

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
    with Store("agenteval.db") as store:
        ((key, source),) = store.sources()
        material = from_store(store, key, source, ReportScope(), VerifyOptions())
        html = utility_page(material)
    assert [table.key for table in material.rubrics] == ["rubrics", "rubric_items"]
    assert "States that the parcel arrives on 18 or 19 March." in html
