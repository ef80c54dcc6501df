"""The generator of long traces: seeded, of the wanted size, and what the readers read back."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers.traces import read_traces
from tests.support.long_trace import LongTrace, write


def written(tokens: int, seed: int = 0) -> str:
    file = io.StringIO()
    write(LongTrace(tokens, seed), file)
    return file.getvalue()


@pytest.mark.parametrize("tokens", [30_000, 300_000])
def test_it_has_the_wanted_size_and_form(tokens: int) -> None:
    text = written(tokens)
    assert tokens <= len(text) / 4 <= 1.6 * tokens
    file = json.loads(text)
    assert set(file) == {"trace_id", "spans"}
    assert [span["span_name"] for span in file["spans"]] == ["main"]

    def walk(span: dict[str, Any]) -> int:
        below = span["child_spans"]
        assert all(child["parent_span_id"] == span["span_id"] for child in below)
        return 1 + sum(map(walk, below))

    assert walk(file["spans"][0]) == len(list(LongTrace(tokens).spans()))


def test_the_seed_decides() -> None:
    assert written(20_000, 3) == written(20_000, 3)
    assert written(20_000, 3) != written(20_000, 4)


def test_histories_grow_and_start_anew() -> None:
    models = [span for span in LongTrace(400_000, seed=2).spans() if span.kind == "llm"]
    grows = [
        b.messages[: len(a.messages)] == a.messages and len(b.messages) > len(a.messages)
        for a, b in pairwise(models)
    ]
    assert grows.count(True) > 0.7 * len(grows)
    assert grows.count(False) >= 2  # another question, or the searcher


def test_facts_stand_where_they_are_said_to() -> None:
    made = LongTrace(600_000, seed=5)
    spans = {span.id: span for span in made.spans()}
    assert len(made.facts) >= 8
    for fact in made.facts:
        assert fact.output_text in spans[fact.output_span].output
        assert fact.reply_text in spans[fact.reply_span].reply[0].content
        year = fact.output_text.rstrip(".").rsplit(" ", 1)[1]
        assert (f"year {year}." in fact.reply_text) is not fact.contradicted
    assert {fact.contradicted for fact in made.facts} == {True, False}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(written(200_000, 7), encoding="utf-8")
    made = LongTrace(200_000, 7).run()
    (read,) = read_traces(path).runs
    assert [s.id for s in read.spans] == [s.id for s in made.spans]
    for ours, theirs in zip(made.spans, read.spans, strict=True):
        same = (
            "parent_id",
            "name",
            "kind",
            "status",
            "status_message",
            "messages",
            "tool",
            "model",
        )
        for key in (*same, "limit", "tools"):
            assert getattr(theirs, key) == getattr(ours, key), key
        assert theirs.reply == ours.reply
        assert [e.name for e in theirs.events] == [e.name for e in ours.events]
        if ours.kind != "llm":
            assert (theirs.input, theirs.output) == (ours.input, ours.output)
