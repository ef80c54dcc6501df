"""40 logs of real AutoGen 0.2 agents. They are not part of the project; without them this skips."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agenteval.readers import degenerate, find_leaks, make_view, read_runs

FOLDER = Path(
    os.environ.get(
        "AGENTEVAL_REFERENCE_LOGS",
        Path(__file__).parents[3] / "shared/reference/utility/conversations",
    )
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the reference logs are not here")


def test_forty_logs() -> None:
    result = read_runs(FOLDER, task="math")
    expected = {
        path.relative_to(FOLDER).with_suffix("").as_posix(): json.loads(path.read_text())
        for path in FOLDER.glob("*/*.json")
    }
    assert len(result.runs) == 40
    assert {run.id for run in result.runs} == set(expected)
    assert "agentchat_algebra/0" in expected
    assert [Path(s.path).name for s in result.skipped] == ["log.txt", "log.txt"]
    assert result.warnings == []
    for run in result.runs:
        log = expected[run.id]
        assert (run.task, run.system, run.input) == ("math", "unnamed", log["problem"])
        assert (run.success, run.reference) == (log["is_correct"], log["correct_ans"])
        assert [(m.role, m.content) for m in run.messages] == [
            (m["role"], m["content"]) for m in log["messages"]
        ]
        # Two logs ran into the limit of rounds; AutoGen then took the empty last turn as the reply.
        assert log["response_with_ans"] in (run.output, "")
        assert run.output


def test_nothing_gold_is_shown_and_no_alarm_is_false() -> None:
    for run in read_runs(FOLDER).runs:
        view = make_view(run)
        shown = view.problem + view.trajectory
        for key in ("solution", "check_result"):
            assert str(run.metadata[key]) not in shown
        assert "is_correct" not in shown
        assert find_leaks(run, view) == []
        assert degenerate(run) is None
