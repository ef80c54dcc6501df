"""Names of tools in the text of a node."""

from __future__ import annotations

from agenteval.evaluators.workflows.chart.names import calls_in, names_in
from agenteval.evaluators.workflows.chart.nouns import Node

TOOLS = ["find", "find_book", "lend"]


def calls(text: str) -> tuple[str, ...]:
    return calls_in(Node(id="A", shape="call", text=text), TOOLS)


def test_whole_words_in_the_order_of_the_text() -> None:
    assert calls("Lend it: call lend, then find_book,\n(find) or 'lends'") == (
        "lend", "find_book", "find",
    )  # fmt: skip


def test_each_name_once() -> None:
    assert calls("call lend, then find; if lend failed, lend nothing") == ("lend", "find")
    assert names_in("lend, find, lend", TOOLS) == ("lend", "find", "lend")


def test_a_returned_field_is_no_call() -> None:
    assert calls("call find and go by find_book.is_in. Then lend.") == ("find", "lend")


def test_nothing_named() -> None:
    assert calls("finding, LEND, find_books") == ()
