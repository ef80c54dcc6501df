"""What a record must say so that its run counts as one without an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers import ReadResult, make_view, read_runs
from agenteval.records import Run, RunFailure

ACTED = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": {}}]},
]
FAILED: dict[str, tuple[dict[str, Any], str]] = {
    "error": ({"output": None, "error": "RateLimitError: 429"}, "error"),
    "error beside a blank": ({"output": " ", "error": "boom"}, "error"),
    "error without an output": ({"error": {"type": "APIError", "message": "x"}}, "error"),
    "timeout by its error": ({"output": None, "error": "Request timed out."}, "timeout"),
    "exception": ({"output": "", "exception": "Traceback ...\nValueError: x"}, "error"),
    "the answer is the error": ({"output": "Error: boom", "error": "Error: boom"}, "error"),
    "status error": ({"output": "half", "status": "error"}, "error"),
    "status of an enumeration": ({"output": "", "status": "RunStatus.ERROR"}, "error"),
    "status failed": ({"output": None, "status": "failed"}, "error"),
    "status timeout": ({"output": None, "status": "TIMEOUT"}, "timeout"),
    "status timed out": ({"output": "half", "state": "timed_out"}, "timeout"),
    "status cancelled": ({"output": None, "status": "cancelled"}, "cancelled"),
    "status pending": ({"output": None, "status": "pending"}, "cancelled"),
    "status code": ({"output": None, "status_code": 503}, "error"),
    "tools were called": ({"messages": ACTED, "error": "boom"}, "error"),
    "as a Run writes it": (
        {"output": "", "failure": {"kind": "cut_off", "message": ""}},
        "cut_off",
    ),
}
ANSWERED: dict[str, dict[str, Any]] = {
    "empty": {"output": ""},
    "null": {"output": None, "error": None},
    "no error": {"output": "", "error": "", "status": "completed"},
    "words for no error": {"output": "", "error": "N/A"},
    "a verdict": {"output": "42", "status": "failed"},
    "a tool failed on the way": {"output": "42", "error": "tool f failed"},
    "status ok": {"output": "", "status_code": 200},
    "no_error": {"output": "42", "status": "no_error"},
}


def read(folder: Path, record: dict[str, Any]) -> ReadResult:
    path = folder / "runs.jsonl"
    path.write_text(json.dumps({"id": "r", "input": "q", **record}))
    return read_runs(path)


@pytest.mark.parametrize(("record", "kind"), FAILED.values(), ids=FAILED)
def test_a_failed_run(tmp_path: Path, record: dict[str, Any], kind: str) -> None:
    (run,) = read(tmp_path, record).runs
    assert run.failure is not None
    assert run.failure.kind == kind
    assert make_view(run).failed_as == "missing"
    assert Run.model_validate_json(run.model_dump_json()) == run


@pytest.mark.parametrize("record", ANSWERED.values(), ids=ANSWERED)
def test_a_run_that_did_not_fail(tmp_path: Path, record: dict[str, Any]) -> None:
    result = read(tmp_path, record)
    assert result.runs[0].failure is None
    judged = record.get("error") == "tool f failed"
    assert any("'error' is set beside an answer" in line for line in result.warnings) == judged


def test_a_failed_run_is_another_view_and_others_keep_theirs() -> None:
    plain = make_view(Run(id="r", input="q"))
    failed = make_view(Run(id="r", input="q", failure=RunFailure(kind="error")))
    assert failed.sha256 != plain.sha256
    assert "failed_as" not in plain.model_dump()
    assert (failed.problem, failed.trajectory) == (plain.problem, plain.trajectory)


@pytest.mark.parametrize(
    "text",
    [
        "id,input,output,success\n1,q,whole,yes\n2,q\n",
        "id,input,output,success\n1,q,whole,yes\n2,q,hal",
        'id,input,output,success\n1,q,whole,yes\n2,q,"hal',
        "id;input;output;success\n1;q;whole;yes\n2;q;half\n",
    ],
)
def test_a_row_that_is_cut_off(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    whole, cut_off = read_runs(tmp_path / "r.csv").runs
    assert (whole.output, whole.success, whole.failure) == ("whole", True, None)
    assert (cut_off.id, cut_off.output, cut_off.success) == ("2", "", None)
    assert cut_off.failure is not None
    assert cut_off.failure.kind == "cut_off"


def test_quotes_that_end_nowhere_are_refused_with_their_line(tmp_path: Path) -> None:
    from agenteval.errors import InputError

    (tmp_path / "r.csv").write_text('id,output\n1,"a\n2,b\n3,c\n')
    with pytest.raises(InputError, match=r"r\.csv:2: is not CSV"):
        read_runs(tmp_path / "r.csv")
