"""Errors that people mark in traces: saved at once, kept in TRAIL's layout, scored against."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import agenteval
from agenteval.app.labels import export_labels
from agenteval.cli.running import Watch
from agenteval.errors import InputError
from agenteval.store import Store
from agenteval.testing import serve
from agenteval.traces.evaluator import load_outlines
from agenteval.traces.input import read_each
from agenteval.traces.outline import trace_key
from tests.cli import traces
from tests.cli.test_trace import judge
from tests.view.conftest import Browser, Open

CATEGORY = "Tool Output Misinterpretation"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for made in (traces.weather(), traces.limited()):
        traces.write(tmp_path / "traces", made)
    return tmp_path / "traces"


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Path:
    """A store in which a finder examined two traces."""
    path = tmp_path / "s.db"
    with ThreadPoolExecutor(1) as pool, serve(judge) as server:
        pool.submit(
            agenteval.locate, str(folder), model="m", base_url=server.base_url, store=path
        ).result()
    return path


@pytest.fixture
def rater(browser: Open, folder: Path) -> Browser:
    whole = {trace_key(run): load for run, load in read_each(str(folder), Watch())}
    return browser(labelling=True, traces=whole)


def finding(store: Path, **changed: str) -> dict[str, str]:
    """A finding at the first span of the first trace that has an output."""
    with Store(store) as opened:
        key, shown = next(iter(load_outlines(opened).items()))
    span = next(s for s in shown.spans if s.output)
    fields = {
        "trace": key,
        "rater": "ann",
        "category": CATEGORY,
        "span": span.id,
        "evidence": span.output[:20],
        "description": "It says otherwise.",
        "impact": "HIGH",
    }
    return {**fields, **changed}


def test_findings_are_exported_and_score_as_gold(
    rater: Browser, store: Path, tmp_path: Path
) -> None:
    form = finding(store)
    assert "not examined yet" in rater.get("/label/trace", **form).text
    page = rater.send("/label/finding", **form).text
    assert "1 found" in page
    rater.send("/label/finding", **{**form, "impact": "LOW"})
    rater.send("/label/finding/remove", trace=form["trace"], rater="ann", number="1")
    export_labels(tmp_path / "found", store)
    (file,) = (tmp_path / "found" / "ann").iterdir()
    (error,) = json.loads(file.read_text("utf-8"))["errors"]
    assert error == {
        "category": CATEGORY,
        "location": form["span"],
        "evidence": form["evidence"],
        "description": "It says otherwise.",
        "impact": "HIGH",
    }
    scores = agenteval.score_findings(tmp_path / "found" / "ann", tmp_path / "found" / "ann")
    assert scores.result.scores.levels[2].micro.f1.mean == 1


def test_a_trace_without_errors_is_examined(rater: Browser, store: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no errors marked"):
        export_labels(tmp_path / "found", store)
    form = finding(store)
    rater.send("/label/finding", trace=form["trace"], rater="ann", done="yes")
    assert "ann: 0 found" in rater.get("/label/traces", rater="ann").text
    export_labels(tmp_path / "found", store)
    (file,) = (tmp_path / "found" / "ann").iterdir()
    assert json.loads(file.read_text("utf-8"))["errors"] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"category": "Bad Luck"}, "choose a category"),
        ({"span": "no-such-span"}, "choose a span"),
        ({"evidence": "words of nobody"}, "not in the span"),
        ({"impact": "HUGE"}, "impact"),
    ],
)
def test_a_finding_that_says_nothing_is_refused_and_kept_in_the_form(
    rater: Browser, store: Path, change: dict[str, str], said: str
) -> None:
    answer = rater.send("/label/finding", **finding(store, **change))
    assert (answer.status_code, said in answer.text) == (422, True)
    assert "It says otherwise." in answer.text
    assert "not examined yet" in answer.text
