"""Defective traces: read as far as can be, with one warning for each kind of defect."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.traces import read_traces
from tests.readers.tracing.samples import (
    FIRST,
    ROOT,
    SECOND,
    TRACE,
    flat,
    nested,
    otlp,
    read,
    span,
)


def ids(result: Any) -> list[tuple[str, str | None]]:
    return [(s.id, s.parent_id) for s in result.runs[0].spans]


def said(result: Any) -> list[str]:
    """Warnings without the place."""
    return [line.split(": ", 1)[1] for line in result.warnings]


def test_a_repeated_id_keeps_the_first(tmp_path: Path) -> None:
    tree = nested(span(ROOT, span(FIRST, span_name="first"),
                       span(FIRST, span(SECOND), span_name="other")))  # fmt: skip
    result = read(tmp_path, tree)
    assert [s.name for s in result.runs[0].spans] == [f"step {ROOT}", "first", f"step {SECOND}"]
    assert ids(result)[2] == (SECOND, FIRST)
    assert result.warnings == [
        f"{tmp_path / 't.json'} (span {FIRST}): a span id stands twice; the first span is kept"
    ]


def test_missing_fields(tmp_path: Path) -> None:
    odd = {"span_id": "b", "child_spans": None, "events": None, "status": 7}
    result = read(tmp_path, {"spans": [{"span_id": "a"}, odd]})
    assert result.runs[0].id == "t"  # the name of the file
    assert said(result) == ["spans without trace id: the trace goes by the name of the file"]
    one = result.runs[0].spans[0]
    assert one.model_dump(exclude_defaults=True) == {"id": "a"}
    assert (result.runs[0].input, result.runs[0].system) == ("", "unnamed")


def test_spans_without_id_get_names(tmp_path: Path) -> None:
    child = span("", span("", span(SECOND)))
    result = read(tmp_path, nested(span(ROOT, child), {"span_name": "lost"}))
    assert ids(result) == [
        (ROOT, None), ("unnamed-1", ROOT), ("unnamed-2", "unnamed-1"), (SECOND, "unnamed-2"),
        ("unnamed-3", None),
    ]  # fmt: skip
    assert said(result) == ["a span without id got a number as its name (and 2 more)"]


def test_spans_without_trace_id_join_the_only_trace(tmp_path: Path) -> None:
    rows = [{"trace_id": TRACE, "span_id": ROOT}, {"span_id": FIRST, "parent_span_id": ROOT}]
    result = read(tmp_path, rows, "t.jsonl")
    assert ids(result) == [(ROOT, None), (FIRST, ROOT)]
    assert said(result) == ["spans without trace id were taken for those of the only trace"]
    rows.append({"trace_id": "f" * 32, "span_id": SECOND})
    assert [r.id for r in read(tmp_path, rows, "t.jsonl").runs] == [TRACE, "t", "f" * 32]


def test_parents_that_do_not_exist(tmp_path: Path) -> None:
    rows = [{"trace_id": TRACE, "span_id": n, "parent_span_id": "dead"} for n in ("a", "b")]
    result = read(tmp_path, rows, "t.jsonl")
    assert ids(result) == [("a", None), ("b", None)]
    assert said(result) == [
        "the parent of a span is not in the trace; the span is a root (and 1 more)"
    ]


def test_circles_are_cut_at_their_first_span(tmp_path: Path) -> None:
    # hangs -> c -> a -> b -> c, and one that is its own parent
    links = {"hangs": "c", "a": "b", "b": "c", "c": "a", "self": "self", "good": None}
    rows = [{"trace_id": TRACE, "span_id": n, "parent_span_id": p} for n, p in links.items()]
    result = read(tmp_path, rows, "t.jsonl")
    assert dict(ids(result)) == links | {"a": None, "self": None}
    order = [name for name, _ in ids(result)]
    assert all(order.index(p) < order.index(n) for n, p in ids(result) if p)
    assert said(result) == [
        "spans are their own ancestors; the first of them is a root (and 1 more)"
    ]


def test_trailing_commas(tmp_path: Path) -> None:
    text = json.dumps(nested(span(ROOT, span(FIRST)))).replace("}]", "},]").replace("]}", "],}")
    assert ",]" in text
    assert ",}" in text
    expected = read(tmp_path, nested(span(ROOT, span(FIRST)))).runs
    for reader in (read_traces, read_runs):
        (tmp_path / "t.json").write_text(text)
        result = reader(tmp_path / "t.json")
        assert result.runs == expected
        assert said(result) == ["a trailing comma was passed over"]


def test_truncated_trees_keep_what_was_complete(tmp_path: Path) -> None:
    tree = nested(span(ROOT, span(FIRST), span(SECOND, span_attributes={"k": "v" * 50})))
    whole = json.dumps(tree)
    counts, lines = set(), set[str]()
    for end in (*range(1, len(whole), 7), *range(len(whole) - 9, len(whole))):
        try:
            result = read(tmp_path, whole[:end])
        except InputError as error:
            lines.add(str(error))
            counts.add(0)
            continue
        assert "only what stands before was read" in result.warnings[0]
        got = [s.id for s in result.runs[0].spans]
        assert got == [ROOT, FIRST, SECOND][: len(got)]
        complete = read(tmp_path, whole).runs[0].spans[: len(got)]
        for half, full in zip(result.runs[0].spans, complete, strict=True):
            assert half.attributes == full.attributes
            assert half.start == full.start
        counts.add(len(got))
    assert counts == {0, 1, 2, 3}
    assert all(line.startswith(f"{tmp_path / 't.json'}:1:") for line in lines)
    assert all("broken JSON" in line for line in lines)


def test_truncated_otlp_and_lines(tmp_path: Path) -> None:
    document = json.dumps(otlp(span(ROOT, span(FIRST))))
    result = read(tmp_path, document[: document.index(FIRST) + 30])
    assert [s.id for s in result.runs[0].spans] == [ROOT]
    rows = [json.dumps(row) for row in flat(span(ROOT, span(FIRST), span(SECOND)))]
    cut = rows[1].index(FIRST) + len(FIRST) + 1  # behind a value
    result = read(tmp_path, rows[0] + "\n" + rows[1][:cut] + "\n" + rows[2], "t.jsonl")
    assert [s.id for s in result.runs[0].spans] == [ROOT, SECOND]
    (line,) = result.warnings
    assert line == (
        f"{tmp_path / 't.jsonl'}:2:{cut + 1}: broken JSON (the text ends inside a value): "
        "the line was passed over"
    )
    with pytest.raises(InputError, match=r"jsonl:1:\d+: broken JSON"):
        read(tmp_path, rows[0][:-5], "t.jsonl")


@pytest.mark.parametrize("text", ["", "  \n", "{", "[", '{"spans": [', "nonsense", '{"a" 1}'])
def test_nothing_to_read_is_one_line(tmp_path: Path, text: str) -> None:
    for reader in (read_traces, read_runs):
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(InputError) as caught:
            reader(tmp_path / "t.json")
        assert "\n" not in str(caught.value)
        assert str(tmp_path / "t.json") in str(caught.value)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    tree = span(ROOT, span_attributes={"score": float("nan"), "list": [float("inf")], "ok": 1.5})
    text = json.dumps(nested(tree)).replace("1.5", "1e999")
    result = read(tmp_path, text)
    attributes = result.runs[0].spans[0].attributes
    assert (attributes["score"], attributes["list"], attributes["ok"]) == (None, [None], None)
    assert said(result) == ["NaN or an infinite number was read as null"]


def test_half_characters(tmp_path: Path) -> None:
    text = json.dumps(nested(span(ROOT, span_attributes={"a": "X", "output.value": "Y"})))
    inner = json.dumps(json.dumps([{"role": "user", "content": "Z"}])).replace("Z", r"\\ud800")
    text = text.replace('"X"', r'"\ud83d\ude00 \ud800"').replace('"Y"', '"Y", "gen_ai.prompt": '
                                                                        + inner)  # fmt: skip
    result = read(tmp_path, text)
    one = result.runs[0].spans[0]
    assert one.attributes["a"] == "😀 �"
    assert one.messages[0].content == "�"
    assert len(result.warnings) == 1


def test_repeated_keys(tmp_path: Path) -> None:
    text = json.dumps(nested(span(ROOT))).replace('"span_name"', '"span_name": "x", "span_name"')
    assert said(read(tmp_path, text)) == ["a key stands twice in one object; the last value counts"]


def test_things_that_are_no_spans(tmp_path: Path) -> None:
    result = read(tmp_path, {"trace_id": TRACE, "spans": [3, None, "x", {}, [], span(ROOT)]})
    assert ids(result) == [(ROOT, None)]
    assert said(result) == ["a value that is no span was passed over (and 3 more)"]


@pytest.mark.parametrize("odd", [3, "text", [1, 2], [[1]], True, {"a": {"b": []}}])
def test_odd_values_everywhere(tmp_path: Path, odd: Any) -> None:
    for key in span(ROOT):
        if key in ("span_id", "trace_id", "child_spans"):
            continue
        assert read(tmp_path, nested(span(ROOT, **{key: odd}))).runs[0].spans[0].id == ROOT
    for key in ("llm.input_messages", "llm.output_messages.0.message", "llm.tools", "gen_ai.prompt",
                "llm.input_messages.0.message.tool_calls", "llm.token_count.prompt", "tool.name",
                "gen_ai.input.messages", "llm.invocation_parameters", "openinference.span.kind",
                "llm.model_name", "llm.cost.total", "logs", "input.value"):  # fmt: skip
        attributes = {"openinference.span.kind": "LLM", key: odd}
        result = read(tmp_path, nested(span(ROOT, span_attributes=attributes)))
        assert result.runs[0].spans[0].id == ROOT


def test_deep_attributes(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(3000):
        deep = {"a": [deep, 1]}
    text = '{"trace_id": "%s", "spans": [{"span_id": "%s", "span_attributes": {"d": %s}}]}'
    inner = '{"a": [' * 3000 + '"x"' + ", 1]}" * 3000
    (one,) = read(tmp_path, text % (TRACE, ROOT, inner)).runs[0].spans
    assert "[nested deeper than 64 levels]" in json.dumps(one.attributes)


@pytest.mark.parametrize("depth", [1200, 6000])
def test_deep_trees(tmp_path: Path, depth: int) -> None:
    opened = (f'{{"span_id": "s{i}", "child_spans": [' for i in range(depth))
    text = f'{{"trace_id": "{TRACE}", "spans": [{"".join(opened)}{"]}" * depth}]}}'
    for reader in (read_traces, read_runs):
        (tmp_path / "t.json").write_text(text)
        run = reader(tmp_path / "t.json").runs[0]
        assert [s.id for s in run.spans] == [f"s{i}" for i in range(depth)]
        assert run.spans[-1].parent_id == f"s{depth - 2}"


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"trace_id": f"{i + 1:032x}", "span_id": ROOT}) + "\n"
                            for i in range(5)))  # fmt: skip
    monkeypatch.setattr("agenteval.readers.traces.MOST_RUNS", 4)
    with pytest.raises(InputError, match="more than 4 runs"):
        read_traces(path)
    monkeypatch.setattr("agenteval.readers.strict_json.LINES", 100)
    for reader in (read_traces, read_runs):
        with pytest.raises(InputError, match="larger than 100 bytes"):
            reader(path)
    monkeypatch.undo()
    path.write_bytes(b'{"span_id": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8"):
        read_traces(path)


def test_time_grows_with_the_number_of_spans(tmp_path: Path) -> None:
    def lines(count: int) -> list[str]:
        """A chain whose children come first, with every hundredth id given twice."""
        made = [
            json.dumps({"trace_id": TRACE, "span_id": f"{i:016x}", "parent_id": f"{i - 1:016x}",
                        "attributes": {"tool.name": "x"}})
            for i in range(count, 0, -1)
        ]  # fmt: skip
        return made + made[::100]

    seconds = []
    for count in (1_000, 10_000):
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(lines(count)))
        began = time.process_time()
        result = read_traces(path)
        seconds.append(time.process_time() - began)
        assert [s.id for s in result.runs[0].spans] == [f"{i:016x}" for i in range(1, count + 1)]
        assert len(result.warnings) == 1
    assert seconds[1] < 40 * seconds[0]  # ten times the spans; a square would be a hundred
