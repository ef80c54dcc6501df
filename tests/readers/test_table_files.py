"""CSV and TSV as files of runs: what is read, what is guessed, what is refused."""

from __future__ import annotations

import pytest

from agenteval.errors import InputError
from agenteval.readers.table_files import guess_mapping, read_mapping

SHOP = {
    "input": "customer_message",
    "output": "bot_reply",
    "success": "resolved",
    "id": "ticket_id",
}


def test_names_that_tools_use_need_no_telling_contents() -> None:
    assert guess_mapping([{"input": "x", "output": "y"}]) == {"input": "input", "output": "output"}


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
        (
            ("Nr", "Anfrage", "Antwort", "Erfolg"),
            {"input": "Anfrage", "output": "Antwort", "success": "Erfolg", "id": "Nr"},
        ),
        (("one", "two"), {"input": "one", "output": "two"}),  # by what they hold, in their order
        (
            ("prompt", "completion", "model"),
            {"input": "prompt", "output": "completion", "system": "model"},
        ),
    ],
)
def test_a_guess(columns: list[str], expected: dict[str, str]) -> None:
    def cell(column: str, row: int) -> str:
        if column in (expected.get("success"), expected.get("id"), expected.get("system")):
            return {
                expected.get("success"): "yes" if row % 2 else "no",
                expected.get("id"): f"T{row}",
            }.get(column, "m")
        return f"{LONG}{row}"

    assert guess_mapping([{c: cell(c, row) for c in columns} for row in range(6)]) == expected


def test_what_is_not_plain_is_not_guessed() -> None:
    rows = [{"a": f"{LONG}{n}", "b": f"{LONG}{n}", "c": f"{LONG}{n}"} for n in range(3)]
    with pytest.raises(InputError, match="use --map output=COLUMN,input=COLUMN"):
        guess_mapping(rows)  # three texts
    # `resolved` by its name, but what it holds is no verdict
    rows = [{"question": f"{LONG}{n}", "answer": f"{LONG}{n}", "resolved": "soon"} for n in "ab"]
    assert guess_mapping(rows) == {"input": "question", "output": "answer"}


def test_a_column_that_is_named_leaves_the_guesses_for_the_others() -> None:
    rows = [
        {"ticket": i, "question": f"how {i}", "answer": f"so {i}", "state": "yes", "closed?": "no"}
        for i in range(4)
    ]
    others = {"input": "question", "output": "answer"}
    assert guess_mapping(rows) == {**others, "success": "closed?"}
    assert guess_mapping(rows, {"success": "state"}) == {**others, "success": "state"}
    turned = {"input": "answer", "output": "question"}
    assert guess_mapping(rows, turned) == {**turned, "success": "closed?"}
