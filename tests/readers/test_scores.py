"""Ratings made elsewhere: both forms, every field, and one clear line for what cannot be used."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers.scores import read_scores, score_rows
from agenteval.records import Criterion

CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear"))
KIND = Criterion(name="Kind", accepted_values=("x", "y"), scale="nominal")


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def test_csv_and_jsonl_say_the_same(tmp_path: Path) -> None:
    rows = [
        {"run": "a", "case": "p1", "system": "s", "criterion": "clarity", "repeat": 0,
         "label": "fair", "success": "true", "variant": "original", "status": "scored"},
        {"run": "b", "case": "p1", "system": "t", "criterion": "clarity", "repeat": 1,
         "label": "clear", "success": "", "variant": "pad", "status": "scored"},
        {"run": "c", "case": "", "system": "", "criterion": "clarity", "repeat": 0,
         "label": "", "success": "0", "variant": "", "status": "unscored:parse"},
    ]  # fmt: skip
    with (tmp_path / "s.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    jsonl(tmp_path / "s.jsonl", *rows, "")
    tables = [read_scores(tmp_path / name, [CLARITY]) for name in ("s.csv", "s.jsonl")]
    for table in tables:
        assert table.value[:2].tolist() == [0.5, 1.0]
        assert math.isnan(table.value[2])
        assert table.success.tolist() == [1, -1, 0]
        assert table.repeat.tolist() == [0, 1, 0]
        assert table.present("case") == ["p1", "c"]
        assert table.present("variant") == ["original", "pad"]
        assert table.statuses() == {"scored": 2, "unscored:parse": 1}


def test_values_need_no_criteria_and_other_fields_are_left_alone(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "s.jsonl", {"run_id": 7, "criterion_id": "x", "value": 0.25, "by": "me"}
    )
    table = read_scores(path)
    assert (table.run.names, table.value.tolist()) == (("7",), [0.25])


def test_one_rater_of_several(tmp_path: Path) -> None:
    rows = [{"run": "a", "criterion": "clarity", "label": v, "rater": r}
            for r, v in (("A", "fair"), ("B", "clear"))]  # fmt: skip
    path = jsonl(tmp_path / "s.jsonl", *rows)
    assert read_scores(path, [CLARITY], rater="B").value.tolist() == [1.0]
    with pytest.raises(InputError, match="rated twice"):
        read_scores(path, [CLARITY])
    with pytest.raises(InputError, match="no ratings of rater 'C'"):
        read_scores(path, [CLARITY], rater="C")


BASE = {"run": "a", "criterion": "clarity"}
BAD: list[tuple[Any, str]] = [
    ({"criterion": "clarity", "value": 1}, "run and criterion are needed"),
    ({**BASE, "label": "splendid"}, "'splendid' is not an accepted value of clarity: 'unclear'"),
    ({**BASE, "value": 1.5}, "not a number from 0"),
    ({**BASE, "value": 10**400}, "a number of more than 60 digits is not a number from 0"),
    ({**BASE}, "needs a label or a value"),
    ({**BASE, "status": "unscored:parse", "value": 0}, "exclude each other"),
    ({**BASE, "value": 1, "repeat": -1}, "whole number from 0"),
    ({**BASE, "value": 1, "repeat": True}, "whole number from 0"),
    ({**BASE, "value": 1, "success": "maybe"}, "'success' is 'maybe': a verdict must be"),
    ({**BASE, "criterion": "other", "value": 1}, "not among the criteria: clarity"),
    ({**BASE, "run": ["a"], "value": 1}, "run is no text"),
    ("1", "not a JSON object"),
    ("{", "broken JSON"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_what_cannot_be_used_is_named_with_its_line(tmp_path: Path, row: Any, message: str) -> None:
    path = jsonl(tmp_path / "s.jsonl", {**BASE, "run": "first", "value": 0.5}, row)
    with pytest.raises(InputError) as raised:
        read_scores(path, [CLARITY])
    text = str(raised.value)
    assert text.startswith(f"{path}:2:")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [("run,value\na,1\n", "s.csv:2: there is no column criterion"), ("", "no ratings"),
     ("run,criterion,value\na,b,1,2\n", "s.csv:2: 4 cells"), ("run,criterion\n", "no ratings"),
     ("run,criterion,value\na,b\n", "s.csv:2: the row is cut off")],
)  # fmt: skip
def test_files_that_are_no_table(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_scores(path)


def test_a_missing_and_a_binary_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_scores(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"run,criterion,value\n\x81,b,1\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_scores(tmp_path / "b.csv")
    with pytest.raises(InputError, match="say which criteria"):
        read_scores(jsonl(tmp_path / "s.jsonl", {**BASE, "label": "fair"}))


def test_a_run_is_told_once(tmp_path: Path) -> None:
    rows = [{"run": "a", "criterion": "x", "value": 1, "success": True},
            {"run": "a", "criterion": "y", "value": 1, "success": False}]  # fmt: skip
    with pytest.raises(InputError, match="another case, system or success"):
        read_scores(jsonl(tmp_path / "s.jsonl", *rows))


@pytest.mark.parametrize("status", ["failed", "timeout", "ERROR", "ok"])
def test_a_status_that_nobody_knows_is_no_score(tmp_path: Path, status: str) -> None:
    path = jsonl(tmp_path / "s.jsonl", {"run": "a", "criterion": "x", "status": status, "value": 0})
    with pytest.raises(InputError, match="is none of: scored, "):
        read_scores(path)


# ---- names of columns ----------------------------------------------------------------------------


def both(folder: Path, row: dict[str, Any]) -> list[Path]:
    """The row as CSV and as JSONL."""
    path = folder / "s.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        writer.writeheader()
        writer.writerow(row)
    return [path, jsonl(folder / "s.jsonl", row)]


def test_case_and_spacing_of_a_column_do_not_matter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"Run": "a", "CRITERION": "x", " Value ": 0.25, "Success": "false", "caseId": "c",
           "Rater": "A"}  # fmt: skip
    for path in both(tmp_path, row):
        table = read_scores(path, rater="A")
        assert (table.value.tolist(), table.success.tolist()) == ([0.25], [0])
        assert table.present("case") == ["c"]
        assert next(score_rows(path))[1]["rater"] == "A"
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("column", "meant"),
    [("sucess", "success"), ("Sucess", "success"), ("repetition", "repeat"), ("repeats", "repeat"),
     ("staus", "status"), ("varaint", "variant"), ("sytem", "system"), ("labell", "label")],
)  # fmt: skip
def test_a_column_that_looks_like_a_known_one_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, column: str, meant: str
) -> None:
    for path in both(tmp_path, {"run": "a", "criterion": "x", "value": 1, column: "0"}):
        caplog.clear()
        read_scores(path)
        read_scores(path)
        (told,) = caplog.messages
        assert told.endswith(f": column {column!r} is not read; did you mean {meant!r}?")


def test_a_column_beside_the_one_it_resembles_is_told_only_where_it_is_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"run": "a", "criterion": "x", "value": 1, "success": "1", "Success": "0", "labels": "y",
           "label": "z", "sucess": 2}  # fmt: skip
    for path in both(tmp_path, row):
        caplog.clear()
        assert read_scores(path).success.tolist() == [1]
        (told,) = caplog.messages
        assert told.endswith(": column 'Success' is not read; 'success' is")


def test_two_spellings_without_the_known_one_are_refused(tmp_path: Path) -> None:
    row = {"run": "a", "criterion": "x", "value": 1, "Success": "0", "SUCCESS": "1"}
    for path in both(tmp_path, row):
        with pytest.raises(InputError, match=r":[12]: the column success stands twice"):
            read_scores(path)


def test_what_an_export_holds_needs_no_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from agenteval.records.export import EXPORT_COLUMNS

    row: dict[str, Any] = dict.fromkeys(EXPORT_COLUMNS, "")
    row |= {"run_id": "a", "criterion_id": "x"}
    row |= {"value": 1, "repeat": 0}
    for path in both(tmp_path, {**row, "by": "me", "notes": "n", "rater": "A", "judge": "j"}):
        read_scores(path)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("row", "value", "told"),
    [
        ({"label": "clear", "value": 0.0}, 1.0, "'clear' has 1 on clarity, not 0"),
        ({"label": "fair", "value": 0.7}, 0.5, "'fair' has 0.5 on clarity, not 0.7"),
        ({"label": "fair", "value": 0.504}, 0.504, None),  # rounded by whoever wrote it
        ({"label": "fair", "value": 0.506}, 0.5, "'fair' has 0.5 on clarity"),
        ({"criterion": "kind", "label": "y", "value": 1.0}, None, "'y' has no value on kind"),
        ({"criterion": "unknown", "label": "clear", "value": 0.0}, 0.0, None),
        ({"label": "another's", "value": 0.3}, 0.3, None),
        # an expected value is not that of the likeliest label
        ({"label": "clear", "value": 0.75, "probabilities": {"clear": 0.5, "fair": 0.5}}, 0.75,
         None),
        ({"label": "clear", "value": 0.25, "probabilities": '{"clear": 0.5, "fair": 0.5}'}, 0.75,
         "'clear' has 0.75"),
        ({"label": "clear", "value": 0.9, "evidence": {"statistic": "x"}}, 0.9, None),
        ({"label": "unclear", "value": 0.0, "status": "degenerate"}, 0.0, None),
        ({"label": "clear", "value": 0.0, "status": "degenerate"}, 0.0, None),
    ],
)  # fmt: skip
def test_a_value_that_contradicts_its_label_gives_way_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, row: Any, value: Any, told: str | None
) -> None:
    sound = {"run": "b", "criterion": "clarity", "label": "clear", "value": 1.0}
    path = jsonl(tmp_path / "s.jsonl", {"run": "a", "criterion": "clarity", **row}, sound)
    known = [CLARITY, KIND] if row.get("criterion") != "unknown" else []
    read = read_scores(path, known).value[0]
    assert math.isnan(read) if value is None else read == pytest.approx(value)
    assert [told in r.message for r in caplog.records] == ([True] if told else [])
    if told:
        assert "1 of 2 ratings have a value that contradicts their label" in caplog.text
