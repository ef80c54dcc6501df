"""CSV and TSV as files of runs: what is read, what is guessed, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.table_files import guess_mapping, read_mapping

ROWS = (
    "ticket_id,customer_message,bot_reply,resolved\n"
    '7,"Where, please?","Line 1\nLine 2",yes\n8,Hm?,No.,no\n'
)
SHOP = {"input": "customer_message", "output": "bot_reply", "success": "resolved",
        "id": "ticket_id"}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ROWS),
        ("b.csv", "\ufeff" + ROWS.replace("\n7,", "\r\n7,").replace("\n8,", "\r\n8,")),
        ("c.csv", ROWS.replace(",", ";").replace("Where;", "Where,")),
        ("d.tsv", ROWS.replace(",", "\t").replace("Where\t", "Where,")),
    ],
)
def test_rows_become_runs(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    first, second = read_runs(path, mapping=SHOP).runs
    assert (first.id, first.input, first.output) == ("7", "Where, please?", "Line 1\nLine 2")
    assert (first.success, second.success, second.output) == (True, False, "No.")


def test_a_second_file_of_the_task_may_lack_what_a_run_can_do_without(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "name: t\ndescription: d\nmap: {output: said, input: was, system: version}\n"
    )
    (tmp_path / "r.csv").write_text("was,said\nq,a\n")
    read = read_runs(tmp_path / "r.csv")
    assert (read.runs[0].output, read.runs[0].system) == ("a", "unnamed")
    (warning,) = read.warnings
    assert "there is no column 'version' for system; there are was, said" in warning
    (tmp_path / "r.csv").write_text("was,version\nq,a\n")
    with pytest.raises(InputError, match="there is no column 'said' for output"):
        read_runs(tmp_path / "r.csv")


def test_names_that_tools_use_need_no_telling_contents() -> None:
    assert guess_mapping([{"input": "x", "output": "y"}]) == {
        "input": "input",
        "output": "output",
    }


def test_a_blank_cell_is_an_empty_answer_and_no_missing_column(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "ticket_id,customer_message,bot_reply,resolved\n1,q,,yes\n2,r,,\n,,\n"
    )
    first, second = read_runs(tmp_path / "r.csv", mapping=SHOP).runs
    assert (first.output, first.success) == ("", True)
    assert (second.output, second.success) == ("", None)


def test_the_task_says_which_column_is_which(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "name: t\ndescription: d\nmap: {output: said, input: was}\n"
    )
    (tmp_path / "runs.csv").write_text("was,said,output\nq,a,other\n")
    (run,) = read_runs(tmp_path / "runs.csv").runs
    assert (run.input, run.output) == ("q", "a")
    assert run.metadata == {"output (unmapped)": "other"}  # nothing is dropped
    (tmp_path / "runs.jsonl").write_text('{"was": "q", "said": "a"}\n')
    assert read_runs(tmp_path / "runs.jsonl", task=str(tmp_path)).runs[0].output == "a"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,a\n1,2\n", r"r.csv:1: the column 'a' stands twice"),
        ("a,\n1,2\n", r"r.csv:2: 2 cells, and the head line names 1 columns"),
        ("output\nx,y\n", r"r.csv:2: 2 cells, and the head line names 1 columns"),
        ('output\n"x\n', r"r.csv:2: is not CSV"),
        ("output,success\nx,perhaps\n", r"r.csv:2: 'success' is 'perhaps': a verdict must be"),
        ("said\nx\n", r"r.csv:2: no known form of a run"),
        ("output\nx\0\n", r"r.csv:2: a NUL character"),
        ("", "no runs found"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        read_runs(path)


def test_a_mapping_in_words() -> None:
    assert read_mapping(["input=q, output=a", "id=n"]) == {"input": "q", "output": "a", "id": "n"}
    for wrong in ("output", "answer=a", "output="):
        with pytest.raises(InputError, match="write FIELD=COLUMN with a field of input, output"):
            read_mapping([wrong])
    with pytest.raises(InputError, match="output is mapped twice"):
        read_mapping(["output=a,output=b"])


LONG = "a text of more than twenty characters, number "


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (SHOP.values(), SHOP),
        (("Nr", "Anfrage", "Antwort", "Erfolg"),
         {"input": "Anfrage", "output": "Antwort", "success": "Erfolg", "id": "Nr"}),
        (("one", "two"), {"input": "one", "output": "two"}),  # by what they hold, in their order
        (("prompt", "completion", "model"),
         {"input": "prompt", "output": "completion", "system": "model"}),
    ],
)  # fmt: skip
def test_a_guess(columns: list[str], expected: dict[str, str]) -> None:
    def cell(column: str, row: int) -> str:
        if column in (expected.get("success"), expected.get("id"), expected.get("system")):
            return {expected.get("success"): "yes" if row % 2 else "no",
                    expected.get("id"): f"T{row}"}.get(column, "m")  # fmt: skip
        return f"{LONG}{row}"

    assert guess_mapping([{c: cell(c, row) for c in columns} for row in range(6)]) == expected


def test_what_is_not_plain_is_not_guessed() -> None:
    rows = [{"a": f"{LONG}{n}", "b": f"{LONG}{n}", "c": f"{LONG}{n}"} for n in range(3)]
    with pytest.raises(InputError, match="say --map output=COLUMN,input=COLUMN"):
        guess_mapping(rows)  # three texts
    # `resolved` by its name, but what it holds is no verdict
    rows = [{"question": f"{LONG}{n}", "answer": f"{LONG}{n}", "resolved": "soon"} for n in "ab"]
    assert guess_mapping(rows) == {"input": "question", "output": "answer"}
