"""Errors in traces from Python: rules, a judge, scores; how finders of one name are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.records.trial import TrialSystem
from agenteval.testing import serve
from agenteval.traces.api import alocate, locate
from agenteval.traces.evaluator import distinct_names
from agenteval.traces.findings_api import findings_report
from agenteval.traces.score_api import score_findings
from tests.cli import traces
from tests.cli.test_trace import judge


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for made in (traces.weather(), traces.limited()):
        traces.write(tmp_path / "traces", made)
    return tmp_path / "traces"


async def test_a_judge_is_asked_once_and_scored(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    with serve(judge) as server:
        report = await alocate(folder, model="m", base_url=server.base_url, store=store)
        asked = server.count
        again = locate([str(folder)], model="m", base_url=server.base_url, store=store)
        assert server.count == asked
    assert again.records() == report.records()
    assert (report.failures, report.exit_code) == ((), 0)
    report.write(tmp_path / "gold")
    scores = score_findings(tmp_path / "gold", tmp_path / "gold", gate=0.9)
    assert scores.result.scores.levels[2].micro.f1.mean == 1
    assert scores.exit_code == 0
    assert [finder.name for finder in findings_report(store=store).finders] == ["locator (m)"]


def test_what_cannot_be_asked_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InputError, match="--detectors-only"):
        locate("no-such-folder", model="embedded")


def test_finders_of_one_name_are_told_apart_by_their_options() -> None:
    def finder(key: str, name: str = "locator (m)", **source: object) -> TrialSystem:
        return TrialSystem(key=key * 64, name=name, parameters={"source": {"parameters": source}})

    names = distinct_names(
        [
            finder("a", mode="broad", prompt_sha256="1" * 64),
            finder("b", mode="areas", prompt_sha256="2" * 64),
            finder("c", mode="areas", prompt_sha256="2" * 64),
            finder("d", name="detectors"),
        ]
    )
    assert names == {
        "a" * 64: "locator (m) [mode broad, prompt 111111]",
        "b" * 64: "locator (m) [mode areas, prompt 222222] [bbbbbb]",
        "c" * 64: "locator (m) [mode areas, prompt 222222] [cccccc]",
        "d" * 64: "detectors",
    }
