"""Folders of annotations, which prediction belongs to which gold file, and sheets to fill in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotation_files import (
    FilledSheet,
    pair_up,
    read_folder,
    read_sheet,
    sheet,
    write_folder,
)
from agenteval.evaluators.traces.annotations import Annotation, read_annotation
from agenteval.evaluators.traces.outline import outline
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.records import Finding, Findings, Grade, Run, Span


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


def test_folders_below_and_a_single_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "gaia").mkdir()
    (tmp_path / "gaia" / "a.json").write_text('{"errors": []}', "utf-8")
    (tmp_path / "b.json").write_text('{"errors": []}', "utf-8")
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    assert sorted(one.trace for one in read_folder(tmp_path)) == ["a", "b"]
    assert [one.trace for one in read_folder(tmp_path / "b.json")] == ["b"]


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"errors": [], "x": "\xff"}')
    assert read_folder(tmp_path)[0].findings.status is None


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json file"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_folder(tmp_path / "none")
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"errors": [], "trace_id": "t"}', "utf-8")
    with pytest.raises(InputError, match=r"b\.json: trace 't' stands in .*a\.json already"):
        read_folder(tmp_path)


@pytest.mark.parametrize("trace", ["../x", "a/b", "a\\b", ".hidden", ".."])
def test_ids_that_are_paths_name_no_file(tmp_path: Path, trace: str) -> None:
    with pytest.raises(InputError, match="cannot name a file"):
        write_folder(tmp_path, [Findings(trace=trace)])
    assert list(tmp_path.iterdir()) == []


def test_pairs_by_id_then_by_file_name_each_once() -> None:
    gold = [made("g1", "t1"), made("f2"), made("f3", "t3"), made("f4")]
    predicted = [made("p1", "t1"), made("f2", "other"), made("t3"), made("stray")]
    found = pair_up(gold, predicted)
    names = [(g.name, p.name if p else None) for g, p in found.pairs]
    assert names == [("g1", "p1"), ("f2", "f2"), ("f3", "t3"), ("f4", None)]
    assert [p.name for p in found.without_gold] == ["stray"]


def test_a_prediction_matched_by_id_is_not_matched_again_by_name() -> None:
    gold = [made("x", "t"), made("y")]
    predicted = [made("y", "t")]
    found = pair_up(gold, predicted)
    assert [p.name if p else None for _, p in found.pairs] == ["y", None]


LABELS = built_in()
IDS = ("0123456712345670", "12345678901234e1")
RUN = Run(id="t1", spans=tuple(
    Span(id=i, parent_id=IDS[0] if n else None, kind="llm", name="call: #1\n- x: y",
         output="what\u2028now\x07") for n, i in enumerate(IDS)
))  # fmt: skip
FILLED: dict[str, Any] = {
    "trace_id": "t1",
    "errors": [
        {"category": "formatting errors", "location": IDS[0], "evidence": "now", "impact": "low"},
        {"category": "Goal Deviation", "location": IDS[1]},
    ],
    "scores": [{"reliability_score": 4, "reliability_reasoning": "did well", "overall": 3.5,
                "security_score": None}],
}  # fmt: skip


@pytest.fixture
def read(tmp_path: Path) -> Callable[[object], FilledSheet]:
    def of(value: object) -> FilledSheet:
        path = tmp_path / "mine.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return read_sheet(path, LABELS, {"t1": IDS})

    return of


Read = Callable[[object], FilledSheet]


def test_an_untouched_sheet_says_nothing(read: Read) -> None:
    assert read(sheet(outline(RUN), LABELS)) == FilledSheet("t1", None)


def test_an_empty_list_says_that_there_is_no_error(read: Read) -> None:
    text = sheet(outline(RUN), LABELS).replace('"errors": null', '"errors": []')
    assert read(text).findings == Findings(trace="t1")


def test_the_sheet_shows_spans_and_kinds() -> None:
    text = sheet(outline(RUN), LABELS)
    value = json.loads(text)
    assert [line.split()[0] for line in value["spans"] if "  llm  " in line] == list(IDS)
    assert [line.split(":")[0] for line in value["kinds"]] == [x.name for x in LABELS.assigned]
    assert "for Resource Abuse the last" in " ".join(value["how"])
    assert "\x07" not in text
    assert "\u2028" not in text


def test_what_was_filled_in(read: Read) -> None:
    filled = read(FILLED)
    assert filled.problems == ()
    assert filled.findings is not None
    first, second = filled.findings.findings
    assert (first.span, first.category, first.impact) == (IDS[0], "Formatting Errors", "LOW")
    assert (second.span, second.category) == (IDS[1], "Goal Deviation")
    assert filled.findings.grades == {
        "reliability": Grade(value=4, reason="did well"), "overall": Grade(value=3.5),
    }  # fmt: skip


def test_findings_to_begin_with_come_back(read: Read) -> None:
    start = Findings(
        trace="t1",
        findings=(Finding(span=IDS[1], category="Resource Abuse", evidence='say "x": #no',
                          description="twice\nor more", impact="HIGH", confidence=0.5),),
        grades={"security": Grade(value=5, reason="safe")},
    )  # fmt: skip
    back = read(sheet(outline(RUN), LABELS, start)).findings
    assert back is not None
    assert back.findings[0].model_dump(exclude={"confidence"}) == start.findings[0].model_dump(
        exclude={"confidence"}
    )
    assert back.grades["security"] == start.grades["security"]


@pytest.mark.parametrize(
    ("place", "wrong", "says"),
    [
        (("errors", 0, "category"), "formating erors",
         "error 1: unknown category 'formating erors'; meant is perhaps 'Formatting Errors'"),
        (("errors", 1, "category"), None, "error 2: no category"),
        (("errors", 1, "location"), "12345678901234e2", "error 2: the trace has no span"),
        (("errors", 1, "location"), "", "error 2: no location"),
        (("errors", 0, "impact"), "lowest", "error 1: impact 'LOWEST' is not HIGH, MEDIUM or LOW"),
        (("errors", 0, "why"), "now", "error 1: unknown key 'why'"),
        (("errors", 0, "evidenc"), "now", "error 1: unknown key 'evidenc'"),
        (("errors", 0), "late", "error 1 is no object"),
        (("errors",), "none", "no list of errors"),
        (("scores", 0, "reliability_score"), 6, "reliability_score: 6 is not within 0 and 5"),
        (("scores", 0, "reliability_score"), 0, "reliability: 0 is below 1"),
        (("scores", 0, "overall"), "good", "overall: 'good' is no number"),
        (("scores", 0, "reliabilty_score"), 3, "scores: unknown key 'reliabilty_score'"),
        (("trace_id",), "t2", "trace 't2' is not among the traces given"),
        (("trace_id",), None, "no trace_id"),
        (("error",), [], "unknown key 'error'"),
    ],
)  # fmt: skip
def test_every_mistake_is_told(
    read: Read, place: tuple[str | int, ...], wrong: object, says: str
) -> None:
    value = json.loads(json.dumps(FILLED))
    node = value
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = wrong
    filled = read(value)
    assert filled.findings is None
    assert len(filled.problems) == 1
    assert says in filled.problems[0]
    assert "mine.json: " in filled.problems[0]


def test_all_mistakes_are_told_at_once(read: Read) -> None:
    text = json.dumps(FILLED).replace("Goal Deviation", "Bad").replace('"low"', '"none at all"')
    assert len(read(text).problems) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"trace_id": "t1",\n"errors": [', "mine.json:2"),
        ("[" * 5000, "mine.json"),
        ('["just", "a list"]', "a sheet is an object with the keys trace_id, errors, scores"),
        ("", "mine.json"),
        ('{"trace_id": "t1", "errors": [], "errors": null}', "mine.json.*'errors'"),
    ],
)
def test_what_is_no_sheet_is_one_line(read: Read, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(text)
