"""Logs of inspect and promptfoo, tables of mlflow, exports of Langfuse and LangSmith."""

from __future__ import annotations

import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval import read_runs
from agenteval.errors import InputError
from agenteval.readers.scores import read_scores
from agenteval.records import Criterion
from agenteval.stats.scores import ScoreTable
from tests.support.inspect_logs import NAN, header, many, sample, write_eval, write_json

Cells = dict[tuple[str, int, str], float | None]


def cells(table: ScoreTable) -> Cells:
    """The value of each rating by run, repeat and criterion; None where there is none."""
    rows = zip(table.run.codes, table.repeat, table.criterion.codes, table.value, strict=True)
    return {
        (table.run.names[r], int(n), table.criterion.names[c]): None if math.isnan(v) else float(v)
        for r, n, c, v in rows
    }


# ---- inspect -------------------------------------------------------------------------------------

SAMPLES = [
    sample("a/1", 1, {"match": "C", "parts": {"tone": 1, "wit": None}, "graded": 0.25}),
    sample("a/1", 2, {"match": "P", "parts": {"tone": True, "wit": 0.5}, "graded": NAN}),
    sample("b", 1, {"match": "N", "parts": {"tone": "no", "wit": "1"}, "graded": 1}),
    sample("c", 1, {"match": "I", "parts": NAN, "graded": 0}),
    sample("b", 2, None, error={"message": "model is away", "traceback": "..."}),
]
VALUES: Cells = {
    ("a/1", 0, "match"): 1.0, ("a/1", 0, "parts/tone"): 1.0, ("a/1", 0, "parts/wit"): None,
    ("a/1", 0, "graded"): 0.25, ("a/1", 1, "match"): 0.5, ("a/1", 1, "parts/tone"): 1.0,
    ("a/1", 1, "parts/wit"): 0.5, ("a/1", 1, "graded"): None, ("b", 0, "match"): 0.0,
    ("b", 0, "parts/tone"): 0.0, ("b", 0, "parts/wit"): 1.0, ("b", 0, "graded"): 1.0,
    ("b", 1, "match"): None, ("b", 1, "parts/tone"): None, ("b", 1, "parts/wit"): None,
    ("b", 1, "graded"): None, ("c", 0, "match"): 0.0, ("c", 0, "parts/tone"): None,
    ("c", 0, "parts/wit"): None, ("c", 0, "graded"): 0.0,
}  # fmt: skip


@pytest.mark.parametrize("write", [write_eval, write_json])
def test_every_cell_of_a_log_is_a_value_or_a_failure(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    path = write(tmp_path / ("x.eval" if write is write_eval else "x.json"), SAMPLES)
    table = read_scores(path)
    assert cells(table) == VALUES
    assert table.statuses() == {"scored": 12, "unscored:missing": 8}
    assert (len(table.present("case")), table.present("system")) == (3, ["mockllm/model"])


def test_unscored_are_counted_before_epochs_are_reduced(tmp_path: Path) -> None:
    table = read_scores(write_eval(tmp_path / "x.eval", many()))
    assert table.statuses() == {"unscored:missing": 99, "scored": 801}
    assert len(table.present("run")) == 300


def test_a_sample_is_a_run(tmp_path: Path) -> None:
    call = {"id": "c1", "function": "add", "arguments": {"a": 1}, "type": "function"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "add"}], "source": "input"},
        {"role": "assistant", "tool_calls": [call], "content": [
            {"type": "reasoning", "reasoning": "gAAA", "redacted": True, "summary": "I add."},
        ]},
        {"role": "tool", "function": "add", "tool_call_id": "c1", "content": "attachment://h",
         "error": {"type": "unknown", "message": "too large"}},
    ]  # fmt: skip
    first = sample(1, 1, {"match": "C"}, messages=messages, attachments={"h": "long text"})
    first["target"] = ["4", "four"]
    samples = [first, sample(1, 2, {"match": "I"}), sample(2, 1), sample(2, 2, {"match": "P"})]
    read = read_runs(write_eval(tmp_path / "x.eval", samples))
    run = read.runs[0]
    assert [r.id for r in read.runs] == ["1:1", "1:2", "2:1", "2:2"]
    assert (run.system, run.task, run.input) == ("mockllm/model", "sums", "What is 1?")
    assert (run.output, run.reference) == ("It is 1.", '["4", "four"]')
    assert [r.success for r in read.runs] == [True, False, None, None]
    assert any("success is what the scorer 'match' says" in line for line in read.warnings)
    assert [(m.role, m.content) for m in run.messages] == [
        ("user", "add"), ("assistant", "I add."), ("tool", "[error] too large\nlong text"),
    ]  # fmt: skip
    asked = run.messages[1].tool_calls[0]
    assert (asked.name, asked.arguments, asked.id) == ("add", {"a": 1}, "c1")
    # of several logs in a folder, each run is named by its log as well
    write_json(tmp_path / "y.json", [sample(1, 1, {"match": "C"})])
    names = {r.id for r in read_runs(tmp_path).runs}
    assert names == {"x:1:1", "x:1:2", "x:2:1", "x:2:2", "y:1"}
    write_eval(tmp_path / "z.eval", [], status="error")
    (skipped,) = read_runs(tmp_path).skipped
    assert skipped.reason == "holds no samples (status of the evaluation: error)"


def test_the_last_of_two_entries_counts(tmp_path: Path) -> None:
    again = [("samples/a_epoch_1.json", sample("a", 1, {"match": "C"}))]
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = write_eval(tmp_path / "x.eval", [sample("a", 1, {"match": "I"})], again)
    assert cells(read_scores(path)) == {("a", 0, "match"): 1.0}


def test_criteria_say_what_numbers_and_words_mean(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = [("C", 4, "formal"), ("I", 1, "casual")]
    samples = [
        sample(i, 1, {"match": m, "stars": s, "kind": k}) for i, (m, s, k) in enumerate(values)
    ]
    path = write_eval(tmp_path / "x.eval", samples)
    assert read_scores(path).present("criterion") == ["match"]
    assert "criterion 'stars' is left out: it has '4'" in caplog.text
    assert "criterion 'kind' is left out: it has 'formal'" in caplog.text
    stars = Criterion(name="stars", scale="numeric", numeric_range=(1, 5))
    assert list(cells(read_scores(path, [stars])).values()) == [0.75, 0.0]
    assert "criterion 'match' is left out: it is not among the criteria" in caplog.text
    assert "contradicts" not in caplog.text  # the 1 is the worst of 1 to 5, and no value of 1
    low = Criterion(name="stars", scale="numeric", numeric_range=(1, 3))
    with pytest.raises(InputError, match="'4' is no number from 1 to 3, the range of stars"):
        read_scores(path, [low])
    with pytest.raises(InputError, match="criterion 'match' is left out"):
        read_scores(path, [Criterion(name="other", accepted_values=("a", "b"))])


def not_whole(path: Path) -> None:
    path.write_bytes(write_eval(path, SAMPLES).read_bytes()[:300])


BAD: list[tuple[Callable[[Path], object], str]] = [
    (lambda p: write_eval(p, SAMPLES, version=3), "in version 3; version 2 is read"),
    (lambda p: write_eval(p, []), r"holds no samples \(status of the evaluation: success\)"),
    (lambda p: write_eval(p, [], [("reductions.json", [])]), "scores reduced over epochs only"),
    (lambda p: write_eval(p, SAMPLES, [("samples/d_epoch_1/sample.json", {})]), "stand in parts"),
    (lambda p: write_eval(p, [sample(1)]), "none of its 1 samples has a score: the sample was not"),
    (lambda p: write_eval(p, [SAMPLES[4]]), "ended with an error: model is away"),
    (lambda p: write_eval(p, [sample(1, 0)]), "samples/1_epoch_0.json: no sample of inspect"),
    (
        lambda p: write_eval(p, [{**sample(1), "scores": [1]}]),
        r"not written as by its tool \(after 0 samples",
    ),
    (lambda p: p.write_text("no archive"), "no whole log of inspect"),
    (not_whole, "no whole log of inspect"),
]


@pytest.mark.parametrize(("write", "message"), BAD)
def test_a_log_that_cannot_be_used(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    write(tmp_path / "x.eval")
    with pytest.raises(InputError, match=message):
        read_scores(tmp_path / "x.eval")


def test_a_sample_that_was_declared_invalid_is_not_rated(tmp_path: Path) -> None:
    samples = [sample(1, 1, {"match": "C"}), sample(2, 1, {"match": "C"}, invalidation={"by": "x"})]
    path = write_json(tmp_path / "x.json", samples)
    assert cells(read_scores(path)) == {("1", 0, "match"): 1.0, ("2", 0, "match"): None}
    assert any("declared invalid in its log" in line for line in read_runs(path).warnings)


def test_an_evaluation_that_was_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.eval"
    start = {"version": 2, "eval": header(SAMPLES)["eval"]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(start))
        archive.writestr("samples/b_epoch_1.json", json.dumps(SAMPLES[2]))
    assert read_scores(path).statuses() == {"scored": 4}
    assert "1 of 6 samples are logged (status of the evaluation: started)" in caplog.text


def write_zstd(path: Path, pack: Callable[[bytes], bytes]) -> Path:
    """The entries of a log under compression method 93, whatever this Python can write."""
    entries = {"samples/1_epoch_1.json": SAMPLES[2], "header.json": header(SAMPLES[2:3])}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, value in entries.items():
            text = json.dumps(value).encode()
            archive.writestr(name, pack(text))
            info = archive.filelist[-1]
            info.compress_type, info.file_size, info.CRC = 93, len(text), zlib.crc32(text)
    return path


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads zstd itself")
def test_zstd_without_a_reader_is_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write_zstd(tmp_path / "x.eval", bytes)
    with pytest.raises(InputError, match=r"zstd.*pip install 'agenteval\[inspect\]'"):
        read_scores(path)


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = write_zstd(tmp_path / "x.eval", zstandard.ZstdCompressor().compress)
    assert read_scores(path).statuses() == {"scored": 4}
    with pytest.raises(InputError, match="cannot be read from the archive"):
        read_scores(write_zstd(tmp_path / "y.eval", bytes))


# ---- others --------------------------------------------------------------------------------------


def promptfoo(path: Path) -> Path:
    """Two tests on two prompts, the first of them twice; one grader failed, one call as well."""

    def part(kind: str, score: float, **more: Any) -> dict[str, Any]:
        return {"pass": score > 0, "score": score, "reason": "so", "assertion": {"type": kind},
                **more}  # fmt: skip

    def result(question: str, test: int, prompt: int, *parts: Any, **more: Any) -> dict[str, Any]:
        return {
            "testIdx": test, "promptIdx": prompt, "promptId": f"p{prompt}",
            "provider": {"id": "echo", "label": ""}, "prompt": {"raw": f"Say {question}"},
            "testCase": {"vars": {"q": question}, "assert": [{"type": "contains"}]},
            "vars": {"q": question}, "response": {"output": question}, "success": True,
            "failureReason": 0, "gradingResult": {"componentResults": list(parts)}, **more,
        }  # fmt: skip

    rubric = {"type": "llm-rubric", "value": "is polite"}
    broken = part("", 0, assertion=rubric, metadata={"graderError": True})
    results = [
        result("x", 0, 0, part("contains", 1), part("contains", 0), part("", 1, assertion=rubric)),
        result("x", 0, 1, part("contains", 0.5), broken),
        result("x", 1, 0, part("contains", 0)),
        result("y", 2, 0, response=None, error="away", failureReason=2, gradingResult=None),
    ]
    summary = {"version": 3, "results": results}
    path.write_text(json.dumps({"evalId": "eval-1", "results": summary, "config": {}}))
    return path


def test_results_of_promptfoo(tmp_path: Path) -> None:
    path = promptfoo(tmp_path / "r.json")
    table = read_scores(path)
    assert cells(table) == {
        ("0:0", 0, "contains"): 1.0, ("0:0", 0, "contains (2)"): 0.0,
        ("0:0", 0, "llm-rubric: is polite"): 1.0, ("0:1", 0, "contains"): 0.5,
        ("0:1", 0, "llm-rubric: is polite"): None, ("0:0", 1, "contains"): 0.0,
        ("2:0", 0, "contains"): None,
    }  # fmt: skip
    assert (table.present("system"), len(table.present("case"))) == (
        ["echo · prompt 1", "echo · prompt 2"], 2,
    )  # fmt: skip
    runs = read_runs(path).runs
    old = json.loads(path.read_text())
    old["results"]["version"] = 1
    (tmp_path / "old.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"promptfoo in version 1 .* versions 2 and 3 are read"):
        read_scores(tmp_path / "old.json")
    assert [(r.id, r.input, r.success) for r in runs] == [
        ("0:0", "x", True), ("0:1", "x", True), ("1:0", "x", True), ("2:0", "y", None),
    ]  # fmt: skip
    assert [m.content for m in runs[0].messages] == ["Say x", "x"]


ROWS = [
    {"trace_id": "t1", "request": "q1", "response": "a", "clear/value": 0.5,
     "clear/rationale": "so", "safe/value": "yes", "safe/error_message": None},
    {"trace_id": "t2", "request": "q2", "response": "b", "clear/value": None,
     "clear/rationale": None, "safe/value": None, "safe/error_message": "no key"},
]  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_a_table_with_a_column_for_each_scorer(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    columns = list(ROWS[0])
    if suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        arrow.parquet = pytest.importorskip("pyarrow.parquet")
        arrow.parquet.write_table(arrow.Table.from_pylist(ROWS), path)
    elif suffix == ".json":
        path.write_text(json.dumps({"columns": columns, "data": [[*r.values()] for r in ROWS]}))
    else:
        lines = [columns, *([str(v or "") for v in r.values()] for r in ROWS)]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
    assert cells(read_scores(path)) == {
        ("t1", 0, "clear"): 0.5, ("t1", 0, "safe"): 1.0,
        ("t2", 0, "clear"): None, ("t2", 0, "safe"): None,
    }  # fmt: skip
    runs = read_runs(path, mapping={"input": "request", "output": "response"}).runs
    assert [(r.input, r.output) for r in runs] == [("q1", "a"), ("q2", "b")]


def test_tables_with_types(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"question": f"q{i}", "reply": [{"role": "assistant", "content": "a"}],
             "score": NAN} for i in range(3)]  # fmt: skip
    table = arrow.Table.from_pylist(rows)
    with arrow.ipc.new_stream(tmp_path / "data-0.arrow", table.schema) as stream:
        stream.write_table(table)
    parquet.write_table(table, tmp_path / "d.parquet")
    for name in ("data-0.arrow", "d.parquet"):
        runs = read_runs(tmp_path / name).runs
        assert [(r.input, r.output, r.metadata["score"]) for r in runs] == [
            (f"q{i}", "a", None) for i in range(3)
        ]
    rated = arrow.Table.from_pylist([{"run": "a", "criterion": "c", "value": 0.5, "x/score": 1}])
    parquet.write_table(rated, tmp_path / "r.parquet")
    assert cells(read_scores(tmp_path / "r.parquet")) == {("a", 0, "c"): 0.5}
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"b\.parquet: cannot be read"):
        read_runs(tmp_path / "b.parquet")


HUMAN = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"],
         "kwargs": {"content": "Hi"}}  # fmt: skip
TEXTS: list[tuple[dict[str, Any], str, str]] = [
    ({"inputs": {"question": "Hi"}, "outputs": {"output": "Ho"}}, "Hi", "Ho"),
    ({"inputs": {"messages": [[HUMAN]]}, "outputs": {"generations": [[{"text": "Ho"}]]}},
     "Hi", "Ho"),
    ({"inputs": {"messages": [{"type": "human", "content": "Hi"}]},
      "outputs": {"messages": [{"type": "human", "content": "Hi"},
                               {"type": "ai", "content": "Ho"}]}}, "Hi", "Ho"),
    ({"input": {"messages": [{"role": "user", "content": "Hi"}]},
      "output": {"role": "assistant", "content": "Ho"}, "scores": []}, "Hi", "Ho"),
]  # fmt: skip


def test_lines_of_langfuse_and_langsmith(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"id": f"r{i}", "parent_run_id": None, **row} for i, (row, _, _) in enumerate(TEXTS)]
    steps = [{"id": "s", "parent_run_id": "r0", "inputs": {}, "outputs": {"output": "step"}}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows + steps))
    read = read_runs(path)
    assert [(r.input, r.output) for r in read.runs] == [(i, o) for _, i, o in TEXTS]
    assert any("steps inside other runs are left out" in line for line in read.warnings)
    example = {"id": "e", "dataset_id": "d", "inputs": {"q": "Hi"}, "outputs": {"a": "Ho"}}
    path.write_text(json.dumps(example) + "\n")
    with pytest.raises(InputError, match="an example of a LangSmith dataset"):
        read_runs(path)
