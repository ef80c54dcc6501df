"""Mermaid flowcharts into charts, and what is refused with line and column."""

from __future__ import annotations

import os
import re
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers.strict_yaml import read_yaml
from agenteval.workflows.chart import Chart, Edge, calls_by_node, names_in
from agenteval.workflows.conditions import Comparison, Condition
from agenteval.workflows.mermaid import parse_chart
from tests.workflows.boats import CHART

PAPER = Path(
    os.environ.get(
        "AGENTEVAL_REFERENCE_WORKFLOW_LISTINGS",
        Path(__file__).parents[3] / "shared/reference/workflows/paper_listings_en.txt",
    )
)
FOREIGN = Path(__file__).parent / "foreign_charts"
EXPECTED = read_yaml(FOREIGN / "expected.yaml")
HEAD = "flowchart TD\n"


def chart(body: str) -> Chart:
    return parse_chart(HEAD + body)


def pairs(found: Chart) -> list[tuple[str, str, str]]:
    return [(e.source, e.label, e.target) for e in found.edges]


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        parse_chart(text, "my.mmd")
    return str(error.value)


def graph(found: Chart) -> networkx.DiGraph[str]:
    return networkx.DiGraph((e.source, e.target) for e in found.edges)


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's listings are not here")
def test_the_flight_booking_chart_of_the_paper() -> None:
    text = PAPER.read_text(encoding="utf-8").partition("=== Listing 6")[2]
    text = text[text.index("flowchart TD") : text.index("=== Listing 7")]
    found = parse_chart(text)
    assert sorted(n.id for n in found.nodes) == [f"SK00{i}" for i in range(7)]
    assert len(found.edges) == 10
    assert {n.id for n in found.nodes if n.shape == "call"} == {"SK001", "SK002"}
    assert found.starts[0].id == "SK000"
    assert {("SK002", "SK003"), ("SK003", "SK002"), ("SK002", "SK004"), ("SK004", "SK002")} <= set(
        graph(found).edges
    )
    tools = ["reserveFlight", "checkAvailability"]
    called = calls_by_node([found], tools)
    assert (called["SK001"], called["SK002"]) == (("checkAvailability",), ("reserveFlight",))


def test_a_chart_of_the_same_form() -> None:
    found = parse_chart(CHART)
    assert [n.id for n in found.nodes] == [f"BH00{i}" for i in (0, 1, 2, 3, 4, 6, 5)]
    assert [n.shape for n in found.nodes] == ["start", "call", "call", *["reply"] * 4]
    assert sorted((e.source[-1], e.target[-1]) for e in found.edges) == [
        ("0", "1"), ("1", "2"), ("1", "5"), ("2", "3"), ("2", "4"),
        ("3", "2"), ("3", "6"), ("4", "2"), ("4", "6"), ("5", "1"),
    ]  # fmt: skip
    assert found.node("BH001").text == (
        "Ask which boat it shall be,\ncall check_boat, and go by the returned is_free"
    )
    assert found.node("BH002").text.endswith("the returned state")  # without the blank before ]
    assert [n.line for n in found.nodes] == [2, 2, 4, 6, 7, 9, 10]
    assert sorted(map(sorted, networkx.simple_cycles(graph(found)))) == [
        ["BH001", "BH005"], ["BH002", "BH003"], ["BH002", "BH004"],
    ]  # fmt: skip


def test_labels_are_split_into_intent_and_condition() -> None:
    edge = parse_chart(CHART).edges[1]
    assert edge == Edge(
        source="BH001",
        target="BH002",
        label="The boat is free (is_free = true)",
        intent="The boat is free",
        condition=Condition(alternatives=((Comparison(field="is_free", op="=", value=True),),)),
        line=4,
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("A(s)--x y-->B[b]", [("A", "x y", "B")]),
        ('A(s)\n -->B[b] %% c\n ;;B -- "x --> y" -->\nA', [("A", "", "B"), ("B", "x --> y", "A")]),
        ("A(s) -- x y --> B[b]", [("A", "x y", "B")]),
        ("A(s)-->|x y|B[b]", [("A", "x y", "B")]),
        ('A(s) --> | "x (y) | z" | B[b]', [("A", "x (y) | z", "B")]),
        ("A(s)-->B[b]", [("A", "", "B")]),
        ("A(s)-->B[b]--x-->C>c]", [("A", "", "B"), ("B", "x", "C")]),
        (
            "A(s) & B[b]--x-->C[c] & D>d]",
            [("A", "x", "C"), ("A", "x", "D"), ("B", "x", "C"), ("B", "x", "D")],
        ),
        ("A-->B\nA(s)\nB[b]", [("A", "", "B")]),
        ("A(s)--two or\n  more lines-->B[b]", [("A", "two or more lines", "B")]),
        ("A(s)--so\nn == 1-->B[b]", [("A", "so n == 1", "B")]),
        ("A(s)--in 2-3 days-->B[b];\n%% A-->C\n\n", [("A", "in 2-3 days", "B")]),
        ("A(s)--x-->B[b]\r\nB--y-->B\r\n", [("A", "x", "B"), ("B", "y", "B")]),
    ],
)
def test_edges(body: str, expected: list[tuple[str, str, str]]) -> None:
    assert pairs(chart(body)) == expected


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("[one,\n  two ]", "one,\ntwo"),
        ('[Say "hello", and [sic] more]', 'Say "hello", and [sic] more'),
        ('["Say (politely) no]"]', "Say (politely) no]"),
        ('["a #quot;b#quot; #35;1; c"]', 'a "b" #1; c'),
        ("[50 #percnt; #nosuchname; off]", "50 % #nosuchname; off"),
        ('["x" or "y"]', '"x" or "y"'),
        ("(a (b) c)", "a (b) c"),
        (">call it]", "call it"),
        ("[a < b; c = d % e]", "a < b; c = d % e"),
    ],
)
def test_labels_of_nodes(written: str, text: str) -> None:
    assert chart(f"A{written}").nodes[0].text == text


@pytest.mark.parametrize("name", EXPECTED)
def test_charts_in_the_styles_of_others(name: str) -> None:
    found, expected = parse_chart((FOREIGN / name).read_text()), EXPECTED[name]
    assert [f"{e.source} > {e.target}: {e.label}" for e in found.edges] == expected["edges"]
    assert [n.id for n in found.starts] == expected["starts"]
    assert sorted(r.kind for r in found.remarks) == expected["remarks"]
    assert [n.id for n in found.nodes if n.shape == "call"] == expected.get("calls", [])
    texts = expected.get("texts", {})
    assert {n.id: n.text for n in found.nodes if n.id in texts} == texts


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "bad_extra_bracket.mmd",
            "line 2, column 48: this `[` in the label of CS001",
        ),
        ("bad_group_edge.mmd", "line 5, column 16: desk is a subgraph, which is no step"),
        ("bad_unclosed.mmd", "line 2, column 2: the label of A is not closed before"),
        ("bad_direction.mmd", "line 3, column 3: the label has no arrow or is not closed"),
        ("bad_kind.md", "line 4, column 1: a chart begins with `flowchart` or `graph`"),
    ],
)
def test_charts_of_others_that_cannot_be_read(name: str, told: str) -> None:
    assert told in refused((FOREIGN / name).read_text())


@pytest.mark.parametrize(
    ("body", "starts", "begins"),
    [
        ("A[a]-->B(b)-->C((c))", ["A"], "A"),
        ("B[b]-->A[a]\nC(c)-->B", ["C"], None),
        ("A(a)-->B[b]-->A\nX[x]-->Y[y]", ["A"], None),  # X is unreachable
        ("A[a]-->B[b]-->A", ["A"], "A"),
        ("B[b]-->A[a]-->B\nX[x]-->A", ["X"], "X"),
        ("A(a)-->A\nB(b)-->A", ["B"], None),
        ("L[legend]\nA>find]-->B[b]", ["A"], "A"),
    ],
)
def test_where_a_chart_begins(body: str, starts: list[str], begins: str | None) -> None:
    found = chart(body)
    assert [n.id for n in found.starts] == starts
    assert found.begins == begins
    assert any(r.kind == "no_start" for r in found.remarks) is bool(begins)


def test_of_two_texts_the_later_one_stands_as_in_mermaid() -> None:
    found = chart("A(s)-->B[one]\nA-->B[two]\nB>two]-->B[two]")
    assert [(n.text, n.shape, n.line) for n in found.nodes if n.id == "B"] == [("two", "reply", 4)]
    assert [r.line for r in found.remarks] == [3, 4, 4]
    assert "text or shape in line 2 and another in line 3: the later" in found.remarks[0].message


@pytest.mark.parametrize("first", ["：\n", "The chart：\n", "%% mine\n\n", "\ufeff", "：", "  \n "])
def test_what_may_stand_before_the_first_line(first: str) -> None:
    assert parse_chart(first + "flowchart LR\nA(s)").direction == "LR"


def test_parameters() -> None:
    found = chart(
        "A(s)-->B[b]\n\nThe auxiliary parameter information in the workflow is as follows:\n"
        '"colour": "any, such as "red"",\n\n"size": "S to XL"\n"said": "as \\"they\\" say"\n'
    )
    assert found.parameters == {
        "colour": 'any, such as "red"', "size": "S to XL", "said": 'as "they" say',
    }  # fmt: skip
    assert len(found.edges) == 1


def test_the_same_node_may_be_declared_twice_with_the_same_text() -> None:
    found = chart("A(s)-->B[one  two]\nA-->B[one\ntwo]")
    assert [(n.id, n.text, n.line) for n in found.nodes] == [("A", "s", 2), ("B", "one  two", 2)]


@pytest.mark.parametrize(
    ("body", "where", "what"),
    [
        ("A(s)\nsubgraph one\nA-->B[b]", "line 3, column 1", "a line `end` is missing"),
        ("A(s)-->B\nsubgraph B[b]\nC-->D\nend", "line 2, column 8", "B is a subgraph"),
        ("A(s)-->B[b]\nend", "line 3, column 1", "`end` closes no subgraph"),
        ("A(s)-->end", "line 2, column 8", "`end` is a word of Mermaid"),
        ("A(s)-->class --> B", "line 2, column 8", "`class` is a word of Mermaid"),
        ("A(s) <-- B[b]", "line 2, column 6", "no arrow"),
        ("A(s) <--- B[b]", "line 2, column 6", "the other way round"),
        ("A(s) x--> B[b]", "line 2, column 6", "the other way round"),
        ("A(s)-->B@{ shape: rect", "line 2, column 9", "`}` is missing"),
        ("A(s)-->B@{ shape: [ }", "line 2, column 9", "cannot be read"),
        ("A(s)--a--B[b]--y-->C[c]", "line 2, column 5", "has no arrow or is not closed"),
        ("A(s)-->B[b", "line 2, column 9", "`]` is missing"),
        ("A(s)-->B[b\nB--x-->C[c]", "line 2, column 9", "`]` is missing"),
        ("A(s)-->B[b\nB--x-->C(c)]", "line 2, column 9", "before the next arrow"),
        ("A(s)-->B[say [b]-->C[c]", "line 2, column 14", "this `[` in the label of B is one too"),
        ("A(s)-->B[[b]\nB-->C[c]", "line 2, column 10", "this `[` in the label of B"),
        ("A(s)-->B[a [b], [c or\n[d] e]\nB-->C[c]", "line 2, column 17", "this `["),
        ("A(s)-->B{is (it {so}-->C[c]", "line 2, column 17", "this `{` in the label of B"),
        ("A(s)-->B[one] two]-->C[c]", "line 2, column 15", "`two]-->C[c]` cannot stand here"),
        ("A(s)-->B[one]]-->C[c]", "line 2, column 14", "this `]` closes nothing"),
        ("A(s)--a\nB-->C[c]", "line 2, column 5", "not closed before the next statement"),
        ("A(s)--a", "line 2, column 5", "no arrow"),
        ("A(s)-->|x\nB[b]", "line 2, column 5", "not closed"),
        ("A(s)-->", "line 2, column 8", "a node is expected, not the end of the line"),
        ("A(s)-->B[ ]", "line 2, column 9", "the label of B is empty"),
        ("A(s)  B[b]", "line 2, column 7", "`B[b]` cannot stand here"),
        ("A(s)--x  (free >= )-->B[b]", "line 2, column 7", "`free >=` is no comparison"),
        ("", "line 2, column 1", "no nodes"),
    ],
)
def test_refused_with_line_and_column(body: str, where: str, what: str) -> None:
    told = refused(HEAD + body)
    assert told.startswith(f"my.mmd, {where}: "), told
    assert what in told


@pytest.mark.parametrize(
    "text", ["", "A(s)-->B[b]", "flowcharts TD\nA(s)", "sequenceDiagram\nA->>B: x", "graph XX"]
)
def test_a_chart_begins_with_its_direction(text: str) -> None:
    assert "begins with `flowchart` or `graph` and one of TD, TB, LR, RL, BT" in refused(text)


@pytest.mark.parametrize("line", ['colour: "red"', '"a": 1', '"a": "x"\n"a": "y"'])
def test_parameters_that_are_none(line: str) -> None:
    heading = "The auxiliary parameter information in the workflow is as follows:"
    assert "my.mmd, line 4" in refused(f"{HEAD}A(s)\n{heading}\n{line}") or "line 5" in refused(
        f"{HEAD}A(s)\n{heading}\n{line}"
    )


def test_a_join_of_many_with_many_is_refused_before_it_is_made() -> None:
    many = " & ".join(f"A{i}" for i in range(1000))
    assert "more than 10,000 edges" in refused(f"{HEAD}{many}-->{many}")


N = 100_000


@pytest.mark.parametrize(
    "hostile",
    [
        "A" + "[" * N,
        "A[x" + "[]" * (N // 2),
        "A--" * (N // 3),
        "A(s)" + "-->A" * 9000,
        "A & " * (N // 4) + "B",
        "A(s)--" + "(a." * (N // 3) + ")-->A",
        "A(s)--" + "a." * (N // 2) + " (a = b)-->A",
        "A(s)--((a = " + "(" * N + ")-->A",
        "A(s)--(a = a" + " or a = a" * (N // 20) + ")-->A",
        'A["]\n' * (N // 5),
        'A["' + " " * N + "x",
        "A(s)--x" + "\n  " * (N // 3) + "-->A",
        "A[" + "#a" * (N // 2) + "]",
        "A(s)\nThe auxiliary parameter information in the workflow is as follows:"
        + '"a": "' * 20_000,
        "%%" * N,
        "%%{" * (N // 3),
        "%%{\n" * (N // 4) + "}%%",
        "subgraph a\n" * (N // 11),
        "A" + "(" * (N // 2) + ")" * (N // 2),
        "A--xA" * (N // 5),
        "A" + "==xA" * 9000,
        "A@{" + '"' * N,
        "A[`" + "*" * N + "`]",
        "A[" + "<b " * (N // 3) + "]",
        "A\n" + "```mermaid\n~~~mermaid\n" * (N // 22),
        "```mermaid\n" + "\n" * N + "graph",
        "\n" * N,
    ],
    ids=lambda text: text[:14],
)
def test_hostile_text_ends_in_a_chart_or_an_input_error(hostile: str) -> None:
    """A quadratic step would take minutes here: 100,000 characters squared are 1e10."""
    try:
        found = parse_chart(HEAD + hostile)
    except InputError as error:
        told = str(error)
    else:
        told = f"line {found.nodes[0].line}"
    assert "line" in told


@given(st.text(alphabet='AB01 ()[]>-|&"%\n=<ortue;#:', max_size=60))
def test_any_text_is_a_chart_or_an_input_error_with_line_and_column(body: str) -> None:
    try:
        found = chart(body)
    except InputError as error:
        where = str(error.where)
    else:
        ids = {n.id for n in found.nodes}
        assert all({e.source, e.target} <= ids for e in found.edges)
        where = "flowchart, line 1, column 1"
    assert re.fullmatch(r"flowchart, line \d+, column \d+", where)


def test_more_nodes_than_can_be_checked() -> None:
    many = "".join(f"A{i}[x]\n" for i in range(2000))
    assert len(parse_chart(f"flowchart TD\n{many}A7[x]").nodes) == 2000
    with pytest.raises(InputError, match=r"line 2002, column 1.*more than 2,000 nodes"):
        parse_chart(f"flowchart TD\n{many}B[x]")


TOOLS = ["find", "find_book", "lend"]


def calls(text: str, shape: str = ">") -> tuple[str, ...]:
    return calls_by_node([chart(f'A{shape}"{text}"]')], TOOLS)["A"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Lend it: call lend, then find_book,\n(find) or 'lends'", ("lend", "find_book", "find")),
        ("call lend, then find; if lend failed, lend nothing", ("lend", "find")),  # each once
        ("call find and go by find_book.is_in. Then lend.", ("find", "lend")),  # a returned field
        ("finding, LEND, find_books", ()),
    ],
)
def test_the_calls_of_a_node(text: str, named: tuple[str, ...]) -> None:
    assert calls(text) == calls(text, "[") == named


def test_a_reply_calls_what_no_call_node_names() -> None:
    drawn = chart("A(s)-->B>call find]-->C[tell what find found, then lend it]\nB-->D[lend]")
    assert calls_by_node([drawn], TOOLS) == {
        "A": (), "B": ("find",), "C": ("lend",), "D": ("lend",),
    }  # fmt: skip
    other = chart("E>lend]")
    assert calls_by_node([drawn, other], TOOLS)["C"] == ()


def test_all_occurrences_of_names() -> None:
    assert names_in("lend, find, lend", TOOLS) == ("lend", "find", "lend")
