"""Whatever the file holds: Runs or an InputError; and our own dumps are read back unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers import degenerate, make_view, read_runs
from agenteval.records import Message, Run, Span, ToolCall
from tests.thorough import often

QUICK = settings(
    max_examples=often(60, 150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

text = st.text(max_size=12)
scalar = (
    st.none()
    | st.booleans()
    | st.integers()
    | text
    | st.floats(allow_nan=False, allow_infinity=False)
)
plain = st.recursive(
    scalar, lambda x: st.lists(x, max_size=3) | st.dictionaries(text, x, max_size=3), max_leaves=8
)


def read_bytes(data: bytes, suffix: str) -> list[Run]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{suffix}"
        path.write_bytes(data)
        return read_runs(path).runs


@QUICK
@given(data=st.binary(max_size=60), suffix=st.sampled_from(["json", "jsonl", "txt"]))
def test_any_bytes_give_an_input_error(data: bytes, suffix: str) -> None:
    try:
        runs = read_bytes(b'{"output": ' + data + b"}", suffix)
    except InputError:
        return
    assert runs


json_value: st.SearchStrategy[Any] = plain
calls = st.builds(ToolCall, name=text, arguments=json_value, id=st.none() | text)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=text,
    name=st.none() | text,
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    tool_call_id=st.none() | text,
)
names_of_systems = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)
printable = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=10)
spans = st.builds(
    Span, id=text, name=text, attributes=st.dictionaries(text, json_value, max_size=2)
)
runs_ = st.builds(
    Run,
    id=printable,
    task=printable,
    system=names_of_systems,
    input=text,
    output=text,
    messages=st.lists(messages, max_size=3).map(tuple),
    success=st.none() | st.booleans(),
    reference=st.none() | text,
    spans=st.lists(spans, max_size=2).map(tuple),
    metadata=st.dictionaries(text, json_value, max_size=3),
)


@pytest.mark.slow
@QUICK
@given(run=runs_, suffix=st.sampled_from(["json", "jsonl"]))
def test_our_own_dumps_are_read_back_unchanged(run: Run, suffix: str) -> None:
    assert read_bytes(run.model_dump_json().encode(), suffix) == [run]


@pytest.mark.slow
@QUICK
@given(run=runs_)
def test_the_view_does_not_depend_on_gold(run: Run) -> None:
    other = run.model_copy(
        update={"success": not run.success, "reference": "GOLD", "metadata": {"solution": "GOLD"}}
    )
    assert make_view(run) == make_view(other)
    assert degenerate(run) == degenerate(other)
