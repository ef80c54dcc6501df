"""Folders of annotations, which prediction belongs to which gold file, and sheets to fill in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.records import Finding, Findings
from agenteval.traces.annotations import (
    Annotation,
    pair_up,
    read_annotation,
    read_folder,
    write_folder,
)


def made(name: str, trace: str | None = None) -> Annotation:
    value = {"errors": [], **({"trace_id": trace} if trace else {})}
    return read_annotation(json.dumps(value), name)


def test_one_file_per_trace_is_written_and_read(tmp_path: Path) -> None:
    written = [
        Findings(trace="b", findings=(Finding(span="s", category="Goal Deviation"),)),
        Findings(trace="a"),
        Findings(trace="c", status="error:timeout"),
    ]
    paths = write_folder(tmp_path / "out", written)
    assert [p.name for p in paths] == ["b.json", "a.json", "c.json"]
    read = read_folder(tmp_path / "out")
    assert [one.trace for one in read] == ["a", "b", "c"]
    assert read[1].findings == written[0]
    assert read[2].findings.status == "unscored:parse"


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json file"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_folder(tmp_path / "none")
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"errors": [], "trace_id": "t"}', "utf-8")
    with pytest.raises(InputError, match=r"b\.json: trace 't' stands in .*a\.json already"):
        read_folder(tmp_path)


def test_pairs_by_id_then_by_file_name_each_once() -> None:
    gold = [made("g1", "t1"), made("f2"), made("f3", "t3"), made("f4")]
    predicted = [made("p1", "t1"), made("f2", "other"), made("t3"), made("stray")]
    found = pair_up(gold, predicted)
    names = [(g.name, p.name if p else None) for g, p in found.pairs]
    assert names == [("g1", "p1"), ("f2", "f2"), ("f3", "t3"), ("f4", None)]
    assert [p.name for p in found.without_gold] == ["stray"]
