"""Tables as spreadsheets and programs write them: one reader, for runs and for ratings alike."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.scores import read_scores
from agenteval.records import Criterion

STARS = Criterion(name="Stars", accepted_values=("1", "2", "3", "4", "5"))
RIGHT = Criterion(name="Right", accepted_values=("no", "yes"))
DEGREE = Criterion(name="Degree", scale="numeric", numeric_range=(1, 5))
KNOWN = (STARS, RIGHT, DEGREE)

RUNS = [
    ["id", "input", "output", "success"],
    ["1", "Wie, bitte?", "Schön; gut", "yes"],
    ["2", "Und?", "No.", "0"],
]
RATINGS = [["run", "criterion", "label"], ["1", "stars", "4"], ["2", "stars", "1"]]


def text_of(rows: list[list[str]], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def as_json(rows: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


# name of the file, and how a list of rows becomes its bytes
FORMS: dict[str, tuple[str, Any]] = {
    "commas": ("a.csv", lambda rows: text_of(rows).encode()),
    "semicolons": ("a.csv", lambda rows: text_of(rows, ";").encode()),
    "tabs": ("a.tsv", lambda rows: text_of(rows, "\t").encode()),
    "tabs in .csv": ("a.csv", lambda rows: text_of(rows, "\t").encode()),
    "bars": ("a.csv", lambda rows: text_of(rows, "|").encode()),
    "sep=;": ("a.csv", lambda rows: b"sep=;\r\n" + text_of(rows, ";").encode()),
    "quoted sep": ("a.csv", lambda rows: b'"sep=,"\n' + text_of(rows).encode()),
    "byte order mark": ("a.csv", lambda rows: b"\xef\xbb\xbf" + text_of(rows).encode()),
    "UTF-16 of Excel": ("a.csv", lambda rows: text_of(rows, "\t").encode("utf-16")),
    "UTF-16 without a mark": ("a.csv", lambda rows: text_of(rows).encode("utf-16-le")),
    "blank columns at the end": (
        "a.csv",
        lambda rows: text_of([[*row, "", ""] for row in rows]).encode(),
    ),
    "an index of pandas": (
        "a.csv",
        lambda rows: text_of(
            [[str(i - 1) if i else "", *row] for i, row in enumerate(rows)]
        ).encode(),
    ),
    "lines": (
        "a.jsonl",
        lambda rows: "".join(json.dumps(r) + "\n" for r in as_json(rows)).encode(),
    ),
    "an array": ("a.json", lambda rows: json.dumps(as_json(rows)).encode()),
    "an array in .jsonl": ("a.jsonl", lambda rows: json.dumps(as_json(rows)).encode()),
    "a pretty array in .jsonl": (
        "a.jsonl",
        lambda rows: json.dumps(as_json(rows), indent=2).encode(),
    ),
    "a line for each element": (
        "a.jsonl",
        lambda rows: (
            "[\n" + ",\n".join(json.dumps(row) for row in as_json(rows)) + "\n]\n"
        ).encode(),
    ),
    "pretty objects in .jsonl": (
        "a.jsonl",
        lambda rows: "\n".join(json.dumps(row, indent=2) for row in as_json(rows)).encode(),
    ),
}


@pytest.mark.parametrize(("name", "encode"), FORMS.values(), ids=FORMS)
def test_runs_and_ratings_in_every_form(tmp_path: Path, name: str, encode: Any) -> None:
    path = tmp_path / name
    path.write_bytes(encode(RUNS))
    read = read_runs(path)
    assert [(run.id, run.input, run.output, run.success) for run in read.runs] == [
        ("1", "Wie, bitte?", "Schön; gut", True),
        ("2", "Und?", "No.", False),
    ]
    assert read.warnings == []
    path.write_bytes(encode(RATINGS))
    table = read_scores(path, KNOWN)
    assert (table.present("run"), table.value.tolist()) == (["1", "2"], [0.75, 0.0])


def test_windows_1252_is_read_with_a_line(tmp_path: Path, caplog: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text_of(RUNS).encode("cp1252"))
    read = read_runs(path)
    assert read.runs[0].output == "Schön; gut"
    (line,) = read.warnings
    assert line.startswith(f"{path}:2: not UTF-8; read as Windows-1252")
    path.write_bytes("run,criterion,label,remark\n1,stars,4,schön\n".encode("cp1252"))
    assert read_scores(path, KNOWN).value.tolist() == [0.75]
    assert "read as Windows-1252" in caplog.text


@pytest.mark.parametrize(
    ("criterion", "column", "cell", "value"),
    [
        ("stars", "label", "4.0", 0.75),
        ("stars", "label", " 4 ", 0.75),
        ("stars", "value", "4", 0.75),
        ("right", "label", "TRUE", 1.0),
        ("right", "label", "Yes", 1.0),
        ("right", "label", "0", 0.0),
        ("right", "value", "yes", 1.0),
        ("right", "value", "0,5", 0.5),
        ("right", "value", "false", 0.0),
        ("degree", "label", "4.0", 0.75),
        ("degree", "value", "4", 0.75),
        ("degree", "label", "2,5", 0.375),
        *(
            ("stars", column, cell, None)
            for column in ("label", "value")
            for cell in ("NaN", "None", "N/A", "n-a", "#N/A", "null", "")
        ),
    ],
)
def test_cells_of_ratings(
    tmp_path: Path, criterion: str, column: str, cell: str, value: float | None
) -> None:
    for name, text in (
        ("a.csv", f"run;criterion;{column};system\n1;{criterion};{cell};s\n"),
        ("a.json", json.dumps([{"run": 1, "criterion": criterion, column: cell}])),
    ):
        (tmp_path / name).write_text(text)
        table = read_scores(tmp_path / name, KNOWN)
        if value is None:
            assert math.isnan(table.value[0])
            assert table.statuses() == {"unscored:missing": 1}
        else:
            assert table.value.tolist() == [value]


def test_true_and_false_are_no_levels_of_a_longer_scale(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("run,criterion,label\n1,stars,yes\n")
    with pytest.raises(InputError, match=r"a\.csv:2: 'yes' is not an accepted value of stars"):
        read_scores(tmp_path / "a.csv", KNOWN)


def test_numbers_are_of_the_own_scale_where_one_of_them_can_be_nothing_else(
    tmp_path: Path,
) -> None:
    """1 of 1 to 5 is the worst; alone it is what `value` means, the best."""
    (tmp_path / "a.csv").write_text("run,criterion,value\n1,degree,1\n2,degree,5\n")
    assert read_scores(tmp_path / "a.csv", KNOWN).value.tolist() == [0.0, 1.0]
    (tmp_path / "a.csv").write_text("run,criterion,value\n1,degree,1\n2,degree,0.5\n")
    assert read_scores(tmp_path / "a.csv", KNOWN).value.tolist() == [1.0, 0.5]


RAGAS = [
    ["user_input", "retrieved_contexts", "response", "reference", "faithfulness", "relevancy"],
    ["q1", "['c']", "a1", "g1", "0.5", ""],
    ["q2", "['c']", "a2", "g2", "1.0", "0.25"],
]


@pytest.mark.parametrize("form", ["commas", "semicolons", "an array", "an index of pandas"])
def test_a_column_for_each_metric(tmp_path: Path, form: str) -> None:
    name, encode = FORMS[form]
    path = tmp_path / name
    path.write_bytes(encode(RAGAS))
    table = read_scores(path)
    assert table.present("criterion") == ["faithfulness", "relevancy"]
    assert table.statuses() == {"scored": 3, "unscored:missing": 1}
    assert table.of(criterion="faithfulness").value.tolist() == [0.5, 1.0]
    assert [run.output for run in read_runs(path).runs] == ["a1", "a2"]
    assert len(table.present("case")) == 2


def test_a_column_for_each_criterion_with_its_own_scale(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "run;system;rater;Stars;right;degree;seconds\n1;s;A;4.0;yes;1;12\n2;t;A;;no;5;9\n"
    )
    table = read_scores(tmp_path / "a.csv", KNOWN, rater="A")
    assert table.of(run="1").value.tolist() == [0.75, 1.0, 0.0]
    assert table.of(run="2", criterion="degree").value.tolist() == [1.0]
    assert table.statuses() == {"scored": 5, "unscored:missing": 1}
    assert table.present("system") == ["s", "t"]


def test_a_wide_row_that_is_cut_off_has_no_rating(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("run,stars,right\n1,4,yes\n2,5,no\n3,1\n")
    table = read_scores(tmp_path / "a.csv", KNOWN)
    assert table.statuses() == {"scored": 4, "unscored:missing": 2}


def test_nan_in_json_is_a_rating_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"run": 1, "f": NaN}\n{"run": 2, "f": 0.5}\n')
    assert read_scores(tmp_path / "a.jsonl").statuses() == {"scored": 1, "unscored:missing": 1}


def test_cells_of_megabytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"output\n{'x' * 1_000_000}\n")
    assert len(read_runs(tmp_path / "a.csv").runs[0].output) == 1_000_000
    (tmp_path / "a.csv").write_text(f"run,stars,text\n1,4,{'x' * 1_000_000}\n")
    assert read_scores(tmp_path / "a.csv", KNOWN).value.tolist() == [0.75]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"output": "a"\n{"output": "b"}\n', r"a\.jsonl:1:\d+: broken JSON"),
        ("a.jsonl", '{\n"input": "q",\n"output" "b"}\n', r"a\.jsonl:3:10: broken JSON"),
        ("a.jsonl", '[\n{"output": "a"},\n{"output" "b"}\n]', r"a\.jsonl:3:11: broken JSON"),
        ("a.xlsx", "PK\3\4", r"a\.xlsx: this is a workbook: save the sheet as CSV"),
        ("a.csv", "id,output\n1,x,y\n", r"a\.csv:2: 3 cells, and the head line names 2"),
        ("a.csv", "id,output,output\n1,x,y\n", r"a\.csv:1: the column 'output' stands twice"),
        ("a.csv", "id,output,\n1,x,y\n", r"a\.csv:2: 3 cells, and the head line names 2"),
        ("a.csv", "id,,output\n1,x,y\n", r"a\.csv:2: a cell in a column without a name"),
    ],
)
def test_what_cannot_be_read_names_its_place(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text)
    for reader in (read_runs, read_scores):
        with pytest.raises(InputError, match=told):
            reader(tmp_path / name)
