"""Mermaid flowcharts and their conditions into charts, and what is refused with line and column."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers.strict_yaml import read_yaml
from agenteval.workflows.chart import (
    Chart,
    Condition,
    ConditionError,
    Edge,
    FieldComparison,
    calls_by_node,
    holds,
    names_in,
    read_condition,
    split_label,
    written,
)
from agenteval.workflows.mermaid import parse_chart
from tests.workflows.boats import CHART

FOREIGN = Path(__file__).parent / "foreign_charts"
EXPECTED = read_yaml(FOREIGN / "expected.yaml")
HEAD = "flowchart TD\n"
AUXILIARY = "The auxiliary parameter information in the workflow is as follows:\n"


def chart(body: str) -> Chart:
    return parse_chart(HEAD + body)


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        parse_chart(text, "my.mmd")
    return str(error.value)


def test_a_chart_of_the_same_form() -> None:
    found = parse_chart(CHART)
    assert [(n.id[-1], n.shape, n.line) for n in found.nodes] == [
        ("0", "start", 2),
        ("1", "call", 2),
        ("2", "call", 4),
        *((id, "reply", line) for id, line in (("3", 6), ("4", 7), ("6", 9), ("5", 10))),
    ]
    pairs = " ".join(sorted(e.source[-1] + e.target[-1] for e in found.edges))
    assert pairs == "01 12 15 23 24 32 36 42 46 51"
    assert found.node("BH001").text == (
        "Ask which boat it shall be,\ncall check_boat, and go by the returned is_free"
    )
    assert found.node("BH002").text.endswith("the returned state")  # without the blank before ]
    cycles = networkx.simple_cycles(networkx.DiGraph([(e.source, e.target) for e in found.edges]))
    assert sorted("".join(sorted(id[-1] for id in cycle)) for cycle in cycles) == ["15", "23", "24"]
    assert found.edges[1] == Edge(
        source="BH001",
        target="BH002",
        label="The boat is free (is_free = true)",
        intent="The boat is free",
        condition=Condition(
            alternatives=((FieldComparison(field="is_free", op="=", value=True),),)
        ),
        line=4,
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("A(s)--x y-->B[b]", "A x y B"),
        ('A(s)\n -->B[b] %% c\n ;;B -- "x --> y" -->\nA', "A  B|B x --> y A"),
        ("A(s) -- x y --> B[b]", "A x y B"),
        ("A(s)-->|x y|B[b]", "A x y B"),
        ('A(s) --> | "x (y) , z" | B[b]', "A x (y) , z B"),
        ("A(s)-->B[b]--x-->C>c]", "A  B|B x C"),
        ("A(s) & B[b]--x-->C[c] & D>d]", "A x C|A x D|B x C|B x D"),
        ("A-->B\nA(s)\nB[b]", "A  B"),
        ("A(s)--two or\n  more lines-->B[b]", "A two or more lines B"),
        ("A(s)--so\nn == 1-->B[b]", "A so n == 1 B"),
        ("A(s)--in 2-3 days-->B[b];\n%% A-->C\n\n", "A in 2-3 days B"),
        ("A(s)--x-->B[b]\r\nB--y-->B\r\n", "A x B|B y B"),
        ("A(s) -. x y .- B[b]", "A x y B"),
        ("A(s)-. x y .-B[b]", "A x y B"),
        ("A(s)-. x .-oB[b]\nB -.y..-C & D", "A x B|B y C|B y D"),
    ],
)
def test_edges(body: str, expected: str) -> None:
    assert "|".join(f"{e.source} {e.label} {e.target}" for e in chart(body).edges) == expected


@pytest.mark.parametrize(
    ("body", "expected", "left_out"),
    [
        ("A(s)-->g\nsubgraph g[b]\nC-->D\nE\nend\ng--x-->F", "AC AE CD DF EF", ""),
        ("subgraph g\nB-->C\nC-->B\nend\nA(s)-->g\ng-->D", "AB BC CB", "7"),  # no end
        ("A(s)-->g\nsubgraph g\nend", "", "2"),
        ("subgraph g\nA(s)-->B-->g\nend", "AB", "3"),  # to what it is in
        (
            "A(s)-->o\nsubgraph o\nsubgraph g\nB-->C\nend\nsubgraph h\nD\nend\ng-->h\nend",
            "AB BC CD",
            "",
        ),
        # As Mermaid draws it, C is in g alone, where it was mentioned first.
        ("subgraph g\nB-->C\nend\nsubgraph h\nD-->E\nC-->D\nend\nA(s)-->h", "AD BC CD DE", ""),
        ("A(s) & B-->g & C\nsubgraph g\nD\nend", "AC AD BC BD", ""),
    ],
)
def test_arrows_to_and_from_subgraphs(body: str, expected: str, left_out: str) -> None:
    found = chart(body)
    assert " ".join(sorted(e.source + e.target for e in found.edges)) == expected
    assert {n.id for n in found.nodes} >= set(expected) - {" "}
    assert not {"g", "h", "o"} & {n.id for n in found.nodes}
    lines = [str(r.line) for r in found.remarks if r.kind == "subgraph"]
    assert lines == ([left_out] if left_out else [])


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
    ("name", "part"),
    [
        ("bad_extra_bracket.mmd", "the label of CS001 is not closed"),
        ("bad_unclosed.mmd", "line 2, column 2: the label of A is not closed"),
        ("bad_direction.mmd", "line 3, column 3: the label has no arrow"),
        ("bad_kind.md", "line 4, column 1: a chart begins with `flowchart` or `graph`"),
    ],
)
def test_charts_of_others_that_cannot_be_read(name: str, part: str) -> None:
    assert part in refused((FOREIGN / name).read_text())


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
    assert ([n.id for n in found.starts], found.begins) == (starts, begins)
    assert any(r.kind == "no_start" for r in found.remarks) is bool(begins)


def test_of_two_texts_of_a_node_the_later_one_counts() -> None:
    found = chart("A(s)-->B[one]\nA-->B[two]\nB>two]-->B[two]")
    assert [(n.text, n.shape, n.line) for n in found.nodes if n.id == "B"] == [("two", "reply", 4)]
    assert [(r.kind, r.line) for r in found.remarks] == [("doubled", line) for line in (3, 4, 4)]
    same = chart("A(s)-->B[one  two]\nA-->B[one\ntwo]")
    assert [(n.text, n.line) for n in same.nodes] == [("s", 2), ("one  two", 2)]
    assert same.remarks == ()


def test_parameters() -> None:
    lines = '"a": "such as "red"",\n\n"b": "S to XL"\n"c": "as \\"they\\" say"\n'
    found = chart(f"A(s)-->B[b]\n\n{AUXILIARY}{lines}")
    assert found.parameters == {"a": 'such as "red"', "b": "S to XL", "c": 'as "they" say'}
    assert len(found.edges) == 1
    for line in ('colour: "red"', '"a": 1', '"a": "x"\n"a": "y"'):
        assert re.search("my.mmd, line [45]", refused(f"{HEAD}A(s)\n{AUXILIARY}{line}"))


@pytest.mark.parametrize(
    ("body", "line", "column", "part"),
    [
        ("A(s)\nsubgraph one\nA-->B[b]", 3, 1, "a line `end` is missing"),
        ("A(s)-->B[b]\nend", 3, 1, "`end` closes no subgraph"),
        ("A(s)-->end", 2, 8, "`end` is a word of Mermaid"),
        ("A(s)-->class --> B", 2, 8, "`class` is a word of Mermaid"),
        ("A(s) <-- B[b]", 2, 6, "no arrow"),
        ("A(s) <--- B[b]", 2, 6, "the other way round"),
        ("A(s) x--> B[b]", 2, 6, "the other way round"),
        ("A(s)-->B@{ shape: rect", 2, 9, "`}` is missing"),
        ("A(s)-->B@{ shape: [ }", 2, 9, "cannot be read"),
        ("A(s)-->B@{\n- x\n}", 2, 9, "write @{ shape: rect"),
        ("A(s)--a--B[b]--y-->C[c]", 2, 5, "has no arrow or is not closed"),
        ("A(s)-->B[b", 2, 9, "the label of B is not closed"),
        ("A(s)-->B[b\nB--x-->C(c)]", 2, 9, "before the next arrow"),
        ("A(s)-->B[say [b]-->C[c]", 2, 9, "close each bracket in it, or quote it"),
        ("A(s)-->B{is (it {so}-->C[c]", 2, 9, "the label of B is not closed"),
        ("A(s)-->B[one] two]-->C[c]", 2, 15, "`two]-->C[c]` cannot stand here"),
        ("A(s)--a\nB-->C[c]", 2, 5, "not closed before the next statement"),
        ("A(s)--a", 2, 5, "no arrow"),
        ("A(s)-->|x\nB[b]", 2, 5, "not closed"),
        ("A(s)-->", 2, 8, "a node is expected, not the end of the line"),
        ("A(s)-->B[ ]", 2, 9, "the label of B is empty"),
        ("A(s)  B[b]", 2, 7, "`B[b]` cannot stand here"),
        ("A(s)--x  (free >= )-->B[b]", 2, 7, "`free >=` is not a comparison"),
        ("", 2, 1, "no nodes"),
    ],
)
def test_refused_with_line_and_column(body: str, line: int, column: int, part: str) -> None:
    message = refused(HEAD + body)
    assert message.startswith(f"my.mmd, line {line}, column {column}: ")
    assert part in message


N = 100_000


@pytest.mark.parametrize(
    "hostile",
    [
        "A" + "[" * N,
        "A--" * (N // 3),
        "A(s)" + "-->A" * 9000,
        "A(s)--" + "(a." * (N // 3) + ")-->A",
        "A(s)--(a = a" + " or a = a" * (N // 20) + ")-->A",
        'A["' + " " * N + "x",
        "%%{" * (N // 3),
        "A" + "(" * (N // 2) + ")" * (N // 2),
        "A--xA" * (N // 5),
        "A[" + "<b " * (N // 3) + "]",
        "A\n" + "```mermaid\n~~~mermaid\n" * (N // 22),
    ],
    ids=lambda text: text[:14],
)
def test_hostile_text_ends_in_a_chart_or_an_input_error(hostile: str) -> None:
    """A quadratic step would take minutes here: 100,000 characters squared are 1e10."""
    try:
        where = f"line {parse_chart(HEAD + hostile).nodes[0].line}"
    except InputError as error:
        where = str(error)
    assert "line" in where


@given(st.text(alphabet='AB01 ()[]>-|&"%\n=<ortue;#:', max_size=60))
def test_any_text_is_a_chart_or_an_input_error_with_line_and_column(body: str) -> None:
    where = "flowchart, line 1, column 1"
    try:
        found = chart(body)
    except InputError as error:
        where = str(error.where)
    else:
        ids = {n.id for n in found.nodes}
        assert all({e.source, e.target} <= ids for e in found.edges)
    assert re.fullmatch(r"flowchart, line \d+, column \d+", where)


TOOLS = ["find", "find_book", "lend"]


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
    for shape in "[>":
        assert calls_by_node([chart(f'A{shape}"{text}"]')], TOOLS)["A"] == named
    assert tuple(dict.fromkeys(names_in(text, TOOLS))) == named


def test_a_reply_calls_what_no_call_node_names() -> None:
    drawn = chart("A(s)-->B>call find]-->C[tell what find found, then lend it]\nB-->D[lend]")
    called = {"A": (), "B": ("find",), "C": ("lend",), "D": ("lend",)}
    assert calls_by_node([drawn], TOOLS) == called
    assert calls_by_node([drawn, chart("E>lend]")], TOOLS)["C"] == ()


# -- conditions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "field", "op", "value"),
    [
        ("free = 3", "free", "=", 3.0),
        ("free >= -1.5", "free", ">=", -1.5),
        ("free ≤ 2", "free", "<=", 2.0),
        ("is_in is true", "is_in", "=", True),
        ("is_in IS NOT False", "is_in", "!=", False),
        ("state != on hold", "state", "!=", "on hold"),
        ('number = "3"', "number", "=", "3"),
        ('state = "this or that"', "state", "=", "this or that"),
        ("day < 2031-04-09", "day", "<", "2031-04-09"),
        ("find_book.free = 3", "find_book.free", "=", 3.0),
    ],
)
def test_comparisons(text: str, field: str, op: str, value: Any) -> None:
    ((found,),) = read_condition(text).alternatives
    assert (found.name, found.op, found.value) == (field, op, value)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("label", "intent"),
    [
        ("Seats are left (free >= 1)", "Seats are left"),
        ("Seats (of any class) are left (free >= 1)", "Seats (of any class) are left"),
        ("(free >= 1)", ""),
        ('Named ) so (name = "a) b")', "Named ) so"),
        *((label, label.strip()) for label in ("", "Pay (now) ", "Older (> 18)", "(", ")")),
        *((label, label) for label in ("Pay (by card)", "Pay :)", "A (B -> C)", "Go on (a => b)")),
        *((label, label) for label in ("Any (he is, she is)", "free >= 1", "x (free = 1) y")),
    ],
)
def test_intents_of_labels(label: str, intent: str) -> None:
    found, condition = split_label(label)
    assert found == intent
    assert (condition is None) == (intent == label.strip())


@pytest.mark.parametrize(
    ("inside", "part"),
    [
        ("free >= ", "`free >=` is not a comparison; allowed is `field op value`"),
        ("free >= 1 and ", "`` is not a comparison"),
        ("free = 1 or b", "`b` is not a comparison"),
        ("free = 1 x=2", "`free = 1 x=2` is not a comparison"),
        ("a.b.c = 1", "`a.b.c = 1`"),
        ("free = 1" + "0" * 400, "too large"),
        ("a = 1 and free is not", "`free is not`"),
    ],
)
def test_what_looks_like_a_condition_and_is_none(inside: str, part: str) -> None:
    with pytest.raises(ConditionError, match=re.escape(part)):
        split_label(f"Left ({inside})")


@pytest.mark.parametrize(
    ("text", "holding", "failing", "unknown"),
    [
        ("f = true", [True, "true", "True"], [False, 1], []),
        ("f != true", ["no"], [], []),
        ("f = 3", [3, "3", "3.0"], [4], []),
        ('f = "3"', [3], [], []),
        ("f > 2", ["10"], [2], []),
        ("f >= 2", [2.0], [], []),
        ("f < 2", [], [], ["few", True, None]),
        ("f < few", [], [], [2]),
        ("f = ready", ["READY"], [], []),
        ("f = a", [], [None, ["a"], {"a": 1}], []),
        ("f < 2031-04-09", ["2031-04-08"], ["2031-10-01"], ["soon"]),
        ("f < 10:30", ["09:00"], [], ["2031-04-09"]),
        ("f = 1", [], [float("inf"), 10**400], []),
        ("f < 1", [], [], [float("nan")]),
    ],
)
def test_when_a_comparison_holds(
    text: str, holding: list[Any], failing: list[Any], unknown: list[Any]
) -> None:
    condition = read_condition(text)
    for values, expected in ((holding, True), (failing, False), (unknown, None)):
        for value in values:
            assert holds(condition, [("t", {"f": value})]) is expected


RANK = {True: 2, None: 1, False: 0}


@pytest.mark.parametrize("values", list(itertools.product([True, False, None], repeat=4)))
def test_unknown_values_as_in_kleenes_logic(values: tuple[bool | None, ...]) -> None:
    """`and` is the minimum, `or` the maximum of false < unknown < true; `and` binds tighter."""
    condition = read_condition("a = true AND b = true or c = true and d = true")
    pairs = zip("abcd", values, strict=True)
    returned = [("t", {name: value}) for name, value in pairs if value is not None]
    a, b, c, d = (RANK[v] for v in values)
    assert RANK[holds(condition, returned)] == max(min(a, b), min(c, d))


VALUES = st.one_of(
    st.booleans(),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
    st.text(alphabet="ab orandis=<>()!.3é", max_size=8),
)
COMPARISONS = st.builds(
    FieldComparison,
    field=st.sampled_from(["free", "is_in", "größe"]),
    tool=st.sampled_from([None, "look_up"]),
    op=st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    value=VALUES,
)
CONDITIONS = st.builds(
    Condition,
    alternatives=st.lists(
        st.lists(COMPARISONS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3
    ).map(tuple),
)


@given(CONDITIONS, st.sampled_from(["Go on", "", "a) b (c"]))
def test_a_condition_is_read_as_it_was_written(condition: Condition, intent: str) -> None:
    assert read_condition(written(condition)) == condition
    assert split_label(f"{intent} ({written(condition)})") == (intent, condition)
